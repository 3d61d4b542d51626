"""Fixtures with one site (`places`) or two servers (`two`) that share a git remote."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.history.remote.machines import Machines, machines
from tests.history.remote.places import FILES, Places, set_up


@pytest.fixture
def places(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Places]:
    """A remote, a site cloned from it, and a second clone. If the test module defines `SITE`, its files are
    used.
    """
    made = set_up(tmp_path, files=getattr(request.module, "SITE", FILES))
    yield made
    made.api.accounts.close()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Machines]:
    """Two machines with `git.push: before`, which push each write to the remote before they respond."""
    with machines(tmp_path, "a", "b") as made:
        yield made
