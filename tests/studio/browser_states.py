"""Unpublishing, discarding, comparing and deleting in a form of the studio, and undoing each of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_bulk import contents, opened, undo
from tests.studio.conftest import Page, Studio, expect
from tests.waiting import until


@pytest.fixture
def own(tmp_path: Any) -> Iterator[Studio]:
    """A server of a site that a single test may change."""
    made = Studio(tmp_path)
    yield made
    stop(made.process)


def opened_form(own: Studio, page: Page, path: str) -> None:
    opened(own, page, "page")
    page.goto(f"{own.url}/{path}")
    page.get_by_role("button", name="More", exact=True).wait_for()


def choose(page: Page, name: str) -> None:
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name=name).click()


def test_a_draft_is_compared_discarded_and_brought_back(
    own: Studio, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = new_page()
    opened_form(own, page, "page/about")
    page.get_by_label("Title").first.fill("About them")
    page.get_by_role("button", name="Save draft").click()
    page.get_by_text("Saved as a draft").wait_for()
    before = contents(own)
    page.get_by_role("button", name="Compare", exact=True).click()
    panel = page.get_by_role("complementary").filter(has_text="Compare")
    panel.get_by_role("region", name="Published").get_by_text("About us").wait_for()
    expect(panel.get_by_role("heading", level=3)).to_have_text(["Title"], use_inner_text=True)
    expect(panel.get_by_role("region", name="Draft").last).to_have_text("About them", use_inner_text=True)
    expect(panel.locator("del, ins")).to_have_text(["us", "them"], use_inner_text=True)
    check_access(page)
    choose(page, "Discard draft")
    page.get_by_text("Draft discarded").wait_for()
    panel.get_by_text("No difference").wait_for()
    expect(page.get_by_label("Title").first).to_have_value("About us")
    assert not (own.root / "content/pages/about.draft.md").exists()
    undo(page)
    assert contents(own) == before
    until(lambda: page.get_by_label("Title").first.input_value() == "About them")


def test_what_is_published_is_unpublished_and_brought_back(
    own: Studio, new_page: Callable[..., Page]
) -> None:
    page = new_page()
    opened_form(own, page, "page/about")
    page.get_by_label("Title").first.fill("About them")
    page.get_by_role("button", name="Publish").click()
    page.locator(".actions-told", has_text="Published").wait_for()
    before = contents(own)
    choose(page, "Unpublish")
    page.locator(".actions .status", has_text="Draft").wait_for()
    until(lambda: page.locator(".actions-told").inner_text() == "")
    assert not (own.root / "content/pages/about.md").exists()
    undo(page)
    page.locator(".actions .status", has_text="Published").wait_for()
    assert contents(own) == before


def test_a_document_is_deleted_and_brought_back_from_the_list(
    own: Studio, new_page: Callable[..., Page]
) -> None:
    before = contents(own)
    page = new_page()
    opened_form(own, page, "page/about")
    choose(page, "Delete")
    page.get_by_text("Document deleted").wait_for()
    page.get_by_role("heading", level=1, name="Pages").wait_for()
    assert not list((own.root / "content/pages").glob("about.*"))
    undo(page)
    page.get_by_role("link", name="About us").wait_for()
    assert contents(own) == before


def test_unsaved_work_is_left_by_a_dialog_of_the_page(
    own: Studio, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = new_page()
    opened_form(own, page, "page/about")
    page.get_by_label("Title").first.fill("Typed")
    page.get_by_role("link", name="Tags").first.click()
    dialog = page.get_by_role("dialog", name="Leave the page?")
    dialog.wait_for()
    check_access(page)
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    expect(page.get_by_label("Title").first).to_have_value("Typed")
    page.get_by_role("link", name="Tags").first.click()
    dialog.get_by_role("button", name="Leave").click()
    page.get_by_role("heading", level=1, name="Tags").wait_for()


def test_the_menu_is_used_by_keys_and_the_bar_has_two_rows_on_a_phone(
    own: Studio, new_page: Callable[..., Page]
) -> None:
    page = new_page(viewport={"width": 320, "height": 640})
    opened_form(own, page, "page/about")
    page.get_by_role("button", name="More", exact=True).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Unpublish")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="More", exact=True)).to_be_focused()
    expect(page.get_by_role("button", name="Unpublish")).to_be_hidden()
    page.get_by_label("Title").first.fill("Typed")
    tops = "[...document.querySelectorAll('.actions .button, .actions .status')].filter(e => e.offsetParent)"
    rows = page.evaluate(f"new Set({tops}.map(e => Math.round(e.getBoundingClientRect().bottom / 24))).size")
    assert rows <= 2
    assert page.locator(".actions").bounding_box()["height"] < 110
    assert page.locator(".panel-buttons").bounding_box()["height"] < 50  # all buttons are in one row
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
