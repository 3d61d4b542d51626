"""Selecting documents in a list of the studio, to publish or delete them at once, with a browser."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_lists import titles
from tests.studio.browser_pages import is_shown
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio

ROLES = """
roles:
  public: {auth: [callback]}
  reader: {article: [find, findOne, readDraft], tag: [find, findOne, delete]}
"""


@pytest.fixture
def own(tmp_path: Any) -> Iterator[Studio]:
    """A server of a site that a test may change."""
    made = Studio(tmp_path)
    yield made
    stop(made.process)


def opened(own: Studio, page: Page, path: str) -> None:
    """Sign in as the owner of the machine, and show a list."""
    own.start()
    page.goto(own.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    page.goto(f"{own.url}/{path}")
    is_shown(page)


def selected(page: Page) -> str:
    return str(page.get_by_role("region", name="Selected documents").get_by_role("status").inner_text())


def test_ranges_and_the_whole_page_are_selected(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/tag?sort=name:asc")
    is_shown(page)
    boxes = page.get_by_role("checkbox")
    boxes.nth(2).click()
    boxes.nth(5).click(modifiers=["Shift"])
    assert selected(page) == "4 selected"
    boxes.nth(3).click()
    assert selected(page) == "3 selected"
    boxes.nth(0).click()
    assert selected(page) == "12 selected"
    page.get_by_role("button", name="Select none").click()
    assert boxes.nth(0).is_checked() is False
    boxes.nth(1).focus()
    page.keyboard.press("Space")
    assert selected(page) == "1 selected"
    page.get_by_role("columnheader", name="Title").get_by_role("button").click()
    assert titles(page)[0] == "Weather"
    assert page.get_by_role("checkbox", checked=True).count() == 0  # what is not shown is not selected


def test_drafts_are_published_together(
    own: Studio, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = new_page()
    opened(own, page, "page?sort=title:asc")
    page.get_by_role("checkbox", name="Select all of this page").click()
    page.get_by_role("button", name="Publish 2").click()
    dialog = page.get_by_role("dialog", name="Publish 2 documents?")
    assert dialog.get_by_role("listitem").all_inner_texts() == ["Open days", "Subscribe"]
    check_access(page)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Publish 2"
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Publish").click()
    page.get_by_text("2 documents published").wait_for()
    titles(page)
    assert page.get_by_role("cell", name="Published").count() == 6
    assert (own.root / "content/pages/open-days.md").exists()
    assert not list((own.root / "content/pages").glob("*.draft.*"))


def test_all_or_none_are_published(own: Studio, new_page: Callable[..., Page]) -> None:
    for path in (own.root / "content/pages").glob("open-days.draft.md"):
        path.write_text(path.read_text().replace("title: Open days", "title:"))
    page = new_page()
    opened(own, page, "page")
    page.get_by_role("checkbox", name="Select all of this page").click()
    page.get_by_role("button", name="Publish 2").click()
    page.get_by_role("dialog").get_by_role("button", name="Publish").click()
    page.get_by_text("Nothing was changed").wait_for()
    assert "open-days: " in page.get_by_role("alert").inner_text()
    assert (own.root / "content/pages/subscribe.draft.md").exists()


def test_documents_are_deleted_in_all_locales(own: Studio, new_page: Callable[..., Page]) -> None:
    page = new_page()
    opened(own, page, "page")
    page.get_by_role("checkbox", name="Select About us").click()
    page.get_by_role("checkbox", name="Select Subscribe").click()
    page.get_by_role("button", name="Delete 2").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("2 documents deleted").wait_for()
    assert len(titles(page)) == 4
    left = {path.name.partition(".")[0] for path in (own.root / "content/pages").iterdir()}
    assert left == {"colophon", "contribute", "open-days", "stockists"}
    assert page.get_by_role("link", name="Pages").inner_text().split() == ["Pages", "4"]


def test_what_the_role_may_not_do_is_not_shown(own: Studio, new_page: Callable[..., Page]) -> None:
    settings = own.root / "site.yaml"
    settings.write_text(settings.read_text().partition("roles:")[0] + ROLES)
    add_user(own, "nell", "reader")
    own.start()
    page = new_page()
    page.goto(f"{own.url}/article")
    page.get_by_label("E-mail address or user name").fill("nell")
    page.get_by_label("Password").fill("slack water")
    page.keyboard.press("Enter")
    titles(page)
    assert page.get_by_role("checkbox").count() == 0
    assert "Author" not in page.get_by_role("table").inner_text()
    page.get_by_role("button", name="Filter", exact=True).click()
    offered = page.get_by_label("Attribute").get_by_role("option").all_inner_texts()
    assert "Tags" in offered
    assert "Author" not in offered
    page.get_by_role("link", name="Tags").click()
    page.get_by_role("heading", level=1, name="Tags").wait_for()
    page.get_by_role("checkbox", name="Select Fog").click()
    page.get_by_role("button", name="Delete 1").wait_for()


def test_a_site_that_answers_as_strapi_4_did_is_listed(own: Studio, new_page: Callable[..., Page]) -> None:
    settings = own.root / "site.yaml"
    settings.write_text(settings.read_text().replace("\napi:\n", "\napi:\n  format: v4\n"))
    page = new_page()
    opened(own, page, "tag?sort=name:asc")
    assert titles(page)[:2] == ["Birds", "Field notes"]
