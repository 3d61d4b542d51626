"""The places and the machines that these tests work in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.remote.machines import Machines, machines
from tests.history.remote.places import FILES, Places, set_up


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Places]:
    """A remote, a site and somebody else; of the files `SITE`, where a module of tests has that."""
    made = set_up(tmp_path, files=getattr(request.module, "SITE", FILES))
    yield made
    made.api.accounts.close()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Machines]:
    """Two machines that push before they answer."""
    with machines(tmp_path, "a", "b") as made:
        yield made
