"""Fixtures for the tests of `server.service`."""

from pathlib import Path

import pytest

from tests.service.sites import Service


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A site with two collection types, a single type and one note. All files are committed."""
    return Service(tmp_path)
