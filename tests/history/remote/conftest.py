"""Fixtures: places and machines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.remote.machines import Machines, machines
from tests.history.remote.places import FILES, Places, set_up


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Places]:
    """Yield a remote, a site and another clone, with the test module's `SITE` files if it has them."""
    made = set_up(tmp_path, files=getattr(request.module, "SITE", FILES))
    yield made
    made.api.accounts.close()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Machines]:
    """Yield two machines that push before they respond."""
    with machines(tmp_path, "a", "b") as made:
        yield made
