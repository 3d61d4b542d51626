"""Fixtures for tests of tools that write."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git import commit_all
from tests.mcp.sites import FILES, SETTINGS, Make
from tests.sites import Api, opened, write


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Make]:
    """Return a function that creates a site in a git repository, with `more` in the section `mcp`."""
    made: list[Api] = []

    def build(more: str = "", rest: str = "") -> Api:
        settings = SETTINGS.replace("mcp: {enabled: true}", f"mcp: {{enabled: true{more}}}") + rest
        write(tmp_path, {**FILES, "site.yaml": settings, ".gitignore": ".bifolio/\n"})
        commit_all(tmp_path)
        made.append(Api.of(opened(tmp_path)))
        return made[-1]

    yield build
    for api in made:
        api.accounts.close()
