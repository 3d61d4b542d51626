"""What tests of the service share."""

from pathlib import Path

import pytest

from tests.service.sites import Service


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A site with two types, a single type and one note, whose files are committed."""
    return Service(tmp_path)
