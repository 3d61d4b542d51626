"""The command palette of the studio, and its color themes, in a browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_pages import is_shown
from tests.studio.conftest import Page, Studio, expect
from tests.waiting import until


def open_palette(page: Page, text: str = "") -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find documents and commands").wait_for()
    page.keyboard.type(text)


def test_a_document_is_found_and_opened_by_the_keyboard_alone(page: Page, studio: Studio) -> None:
    page.goto(studio.url)
    is_shown(page)
    open_palette(page, "goemon")
    page.get_by_role("option", name="Goémon Article", exact=True).wait_for()
    options = page.get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    wanted = options.all_inner_texts().index("Goémon\nArticle")
    for _ in range(wanted):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Goémon").wait_for()
    expect(page).to_have_url(f"{studio.url}/article/2025--goemon")


def test_types_and_commands_are_offered_and_escape_leads_back(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/tag")
    is_shown(page)
    page.get_by_role("button", name="Columns").focus()
    open_palette(page, "cat")
    page.get_by_role("option", name="Categories").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Columns")).to_be_focused()
    open_palette(page, "cat")
    page.get_by_role("option", name="Categories").wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Categories")).to_be_focused()


def test_nothing_is_found_once_the_search_has_answered(page: Page, studio: Studio) -> None:
    page.goto(studio.url)
    is_shown(page)
    held: list[Any] = []
    page.route("**/search?*", lambda route: held.append(route))
    page.get_by_role("button", name="Go to").click()
    page.keyboard.type("qqzzxx")
    page.get_by_text("Searching…").wait_for()
    until(lambda: page.evaluate("1") and held != [])  # evaluating lets Playwright call the route's handler
    assert not page.get_by_text("No results").is_visible()
    held[-1].continue_()
    page.get_by_text("No results").wait_for()


def test_the_arrows_go_round(page: Page, studio: Studio) -> None:
    page.goto(studio.url)
    is_shown(page)
    open_palette(page)
    page.keyboard.press("ArrowUp")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_have_text(re.compile("^Sign out"))
    field = page.get_by_role("combobox", name="Find documents and commands")
    expect(field).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_text(re.compile("^Recently changed"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_theme_is_chosen_and_remembered(scheme: str, page: Page, studio: Studio) -> None:
    page.emulate_media(color_scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    page.goto(studio.url)
    is_shown(page)
    by_system = page.evaluate(ground)
    open_palette(page, "light theme" if scheme == "dark" else "dark theme")
    page.keyboard.press("Enter")
    until(lambda: page.evaluate(ground) != by_system)
    page.reload()
    is_shown(page)
    until(lambda: page.evaluate(ground) != by_system)
    open_palette(page, "system theme")
    page.keyboard.press("Enter")
    until(lambda: page.evaluate(ground) == by_system)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_palette(
    scheme: str, page: Page, studio: Studio, check_access: Callable[[Page], None]
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(studio.url)
    is_shown(page)
    open_palette(page, "tide")
    page.get_by_role("option", name="Tides").wait_for()
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 640})
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_signing_out_by_the_palette(tmp_path: Path, new_page: Callable[..., Page]) -> None:
    studio = Studio(tmp_path)
    studio.start()
    try:
        page = new_page()
        page.goto(studio.entrance)
        is_shown(page)
        open_palette(page, "sign out")
        page.keyboard.press("Enter")
        page.get_by_text("open the address that").wait_for()
    finally:
        stop(studio.process)
