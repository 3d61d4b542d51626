"""Versions of the site that are not served: editing a branch, and reading a past commit, in a browser."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.git import git
from tests.servers import stop
from tests.studio.browser_form import open_form, told
from tests.studio.browser_history import FIRST, SECOND, commit, make
from tests.studio.conftest import Page, Studio, expect


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with two commits and the branch `next`."""
    studio = make(tmp_path_factory.mktemp("versions"))
    for day, text in ((1, FIRST), (2, SECOND)):
        (studio.root / "content/notes/tides.md").write_text(text)
        commit(studio.root, day, f"Day {day}", "Ada")
    git(studio.root, "branch", "next")
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def owner(entered: Any, new_page: Callable[..., Page]) -> Page:
    return new_page(storage_state=entered)


def test_a_branch_is_read_and_written_and_every_link_stays_in_it(owner: Page, site: Studio) -> None:
    open_form(owner, site, "note/tides?branch=next")
    owner.get_by_text("You are working on the branch next").wait_for()
    owner.get_by_role("textbox", name="Title").fill("Tides of next year")
    owner.keyboard.press("Control+S")
    told(owner, "Saved")
    assert "Tides of next year" in git(site.root, "show", "next:content/notes/tides.md")
    assert "Tides of next year" not in (site.root / "content/notes/tides.md").read_text()
    owner.get_by_role("navigation", name="Content").get_by_role("link", name="Notes").click()
    owner.get_by_role("link", name="Tides of next year").wait_for()
    assert "branch=next" in owner.url
    owner.goto(f"{site.url}/note")
    owner.get_by_role("link", name="Tides", exact=True).wait_for()


def test_a_past_commit_is_read_only(owner: Page, site: Studio) -> None:
    first = git(site.root, "rev-parse", "main~1").strip()
    open_form(owner, site, f"note/tides?at={first}")
    owner.get_by_text(f"This is the site at {first}. It is read-only.").wait_for()
    expect(owner.get_by_role("radio", name="Yes", exact=True)).to_be_checked()  # as in that commit
    buttons = owner.get_by_role("main").get_by_role("button").all_inner_texts()
    assert not {"Save", "Delete", "Duplicate"} & set(buttons)
    for name in ("History", "File"):
        expect(owner.get_by_role("button", name=name, exact=True)).to_be_disabled()
    owner.get_by_role("navigation", name="Content").get_by_role("link", name="Notes").click()
    owner.get_by_role("heading", level=1, name="Notes").wait_for()
    assert f"at={first}" in owner.url
    expect(owner.get_by_role("link", name="New note")).to_have_count(0)
