"""Bulk actions in a list of the studio: selecting documents, publishing, unpublishing or deleting them, and
undo.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_pages import is_shown
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio, expect, sign_in
from tests.waiting import until

ROLES = """
roles:
  public: {auth: [callback]}
  reader: {article: [find, findOne, readDraft], tag: [find, findOne, delete]}
"""


@pytest.fixture
def own(tmp_path: Any) -> Iterator[Studio]:
    """A server of a site that a single test may change."""
    made = Studio(tmp_path)
    yield made
    stop(made.process)


def opened(own: Studio, page: Page, path: str) -> None:
    """Sign in as the owner, and open a list."""
    own.start()
    page.goto(own.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    page.goto(f"{own.url}/{path}")
    is_shown(page)


def selected(page: Page, count: int) -> None:
    """Wait until the given number of documents is selected."""
    bar = page.get_by_role("region", name="Selected documents")
    expect(bar.get_by_role("status")).to_have_text(f"{count} selected")


def test_ranges_and_the_whole_page_are_selected(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/tag?sort=name:asc")
    is_shown(page)
    boxes = page.get_by_role("checkbox")
    boxes.nth(2).click()
    boxes.nth(5).click(modifiers=["Shift"])
    selected(page, 4)
    boxes.nth(3).click()
    selected(page, 3)
    boxes.nth(0).click()
    selected(page, 12)
    page.get_by_role("button", name="Clear selection").click()
    expect(boxes.nth(0)).not_to_be_checked()
    boxes.nth(1).focus()
    page.keyboard.press("Space")
    selected(page, 1)
    page.get_by_role("columnheader", name="Title").get_by_role("button").click()
    expect(page.get_by_role("rowheader").first).to_have_text("Weather")
    # Documents that are not shown are not selected.
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(0)


def contents(own: Studio) -> dict[str, bytes]:
    found = (own.root / "content").rglob("*")
    return {str(path.relative_to(own.root)): path.read_bytes() for path in found if path.is_file()}


def undo(page: Page) -> None:
    bar = page.get_by_role("region", name="Undo")
    bar.get_by_role("button", name="Undo").click()
    bar.get_by_text("Undone").wait_for()


def test_drafts_are_published_together_and_undone(
    own: Studio, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    before = contents(own)
    page = new_page()
    opened(own, page, "page?sort=title:asc")
    page.get_by_role("checkbox", name="Select all on this page").click()
    page.get_by_role("button", name="Publish 2").click()
    page.get_by_text("2 documents published").wait_for()
    expect(page.get_by_role("cell", name="Published")).to_have_count(6)
    assert (own.root / "content/pages/open-days.md").exists()
    assert not list((own.root / "content/pages").glob("*.draft.*"))
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    check_access(page)
    page.keyboard.press("Enter")
    page.get_by_text("Undone").wait_for()
    assert contents(own) == before
    expect(page.get_by_role("cell", name="Published")).to_have_count(4)


def test_all_or_none_are_published(own: Studio, new_page: Callable[..., Page]) -> None:
    for path in (own.root / "content/pages").glob("open-days.draft.md"):
        path.write_text(path.read_text().replace("title: Open days", "title:"))
    page = new_page()
    opened(own, page, "page")
    page.get_by_role("checkbox", name="Select all on this page").click()
    page.get_by_role("button", name="Publish 2").click()
    page.get_by_text("Nothing was changed").wait_for()
    expect(page.get_by_role("alert").filter(has_text="Nothing")).to_contain_text(
        "open-days: ", use_inner_text=True
    )
    assert (own.root / "content/pages/subscribe.draft.md").exists()


def test_a_draft_that_was_changed_meanwhile_is_not_published_unseen(
    own: Studio, new_page: Callable[..., Page]
) -> None:
    page = new_page()
    opened(own, page, "page")
    page.get_by_role("checkbox", name="Select Subscribe").click()
    path = own.root / "content/pages/subscribe.draft.md"
    path.write_text(path.read_text().replace("title: Subscribe", "title: Unsubscribe"))
    until(
        lambda: (
            "Unsubscribe"
            in page.evaluate(
                "fetch('/api/pages?status=draft', {headers: {'Bifolio-Studio': '1'}}).then((it) => it.text())"
            )
        )
    )
    page.get_by_role("button", name="Publish 1", exact=True).click()
    page.get_by_text("Changed since this list was loaded").wait_for()
    assert path.exists()


def test_documents_are_unpublished_and_undone(own: Studio, new_page: Callable[..., Page]) -> None:
    before = contents(own)
    page = new_page()
    opened(own, page, "page")
    page.get_by_role("checkbox", name="Select About us").click()
    page.get_by_role("button", name="Unpublish 1").click()
    page.get_by_text("1 document unpublished").wait_for()
    page.get_by_role("row", name="About us").get_by_text("Draft").wait_for()
    assert contents(own) != before
    undo(page)
    assert contents(own) == before


def test_documents_are_deleted_in_all_locales_and_come_back(
    own: Studio, new_page: Callable[..., Page]
) -> None:
    before = contents(own)
    page = new_page()
    opened(own, page, "page")
    page.get_by_role("checkbox", name="Select About us").click()
    page.get_by_role("checkbox", name="Select Subscribe").click()
    page.get_by_role("button", name="Delete 2").click()
    page.get_by_text("2 documents deleted").wait_for()
    expect(page.get_by_role("rowheader")).to_have_count(4)
    left = {path.name.partition(".")[0] for path in (own.root / "content/pages").iterdir()}
    assert left == {"colophon", "contribute", "open-days", "stockists"}
    expect(page.get_by_role("link", name="Pages")).to_have_text(re.compile(r"^Pages\s*4$"))
    undo(page)
    expect(page.get_by_role("rowheader")).to_have_count(6)
    assert contents(own) == before


def test_what_was_changed_since_is_not_undone(own: Studio, new_page: Callable[..., Page]) -> None:
    page = new_page()
    opened(own, page, "page")
    page.get_by_role("checkbox", name="Select Subscribe").click()
    page.get_by_role("button", name="Delete 1").click()
    page.get_by_text("1 document deleted").wait_for()
    path = own.root / "content/pages/subscribe.draft.md"
    path.write_text("---\ntitle: Another\n---\n")
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Can't undo: the document has changed since.").wait_for()
    assert path.read_text() == "---\ntitle: Another\n---\n"


def test_what_the_role_may_not_do_is_not_shown(own: Studio, new_page: Callable[..., Page]) -> None:
    settings = own.root / "site.yaml"
    settings.write_text(settings.read_text().partition("roles:")[0] + ROLES)
    add_user(own, "nell", "reader")
    own.start()
    page = new_page()
    page.goto(f"{own.url}/article")
    sign_in(page, "nell")
    page.get_by_role("rowheader").first.wait_for()
    expect(page.get_by_role("checkbox")).to_have_count(0)
    expect(page.get_by_role("table")).not_to_contain_text("Author")
    page.get_by_role("button", name="Filter", exact=True).click()
    offered = page.get_by_label("Attribute").get_by_role("option")
    expect(offered.filter(has_text=re.compile("^Tags$"))).to_have_count(1)
    expect(offered.filter(has_text=re.compile("^Author$"))).to_have_count(0)
    page.get_by_role("link", name="Tags").click()
    page.get_by_role("heading", level=1, name="Tags").wait_for()
    page.get_by_role("checkbox", name="Select Fog").click()
    page.get_by_role("button", name="Delete 1").wait_for()


def test_a_site_that_answers_as_strapi_4_did_is_listed(own: Studio, new_page: Callable[..., Page]) -> None:
    settings = own.root / "site.yaml"
    settings.write_text(settings.read_text().replace("\napi:\n", "\napi:\n  format: v4\n"))
    page = new_page()
    opened(own, page, "tag?sort=name:asc")
    rows = page.get_by_role("rowheader")
    expect(rows.nth(0)).to_have_text("Birds")
    expect(rows.nth(1)).to_have_text("Field notes")
