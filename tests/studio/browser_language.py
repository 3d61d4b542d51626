"""The studio in another language: texts, plurals and dates, and the choice of the language."""

import re
from collections.abc import Callable
from typing import Any

from tests.studio.browser_pages import is_shown
from tests.studio.conftest import Page, Studio, expect

GERMAN_DATE = re.compile(r"^\d\d\.\d\d\.\d{4}$")


def test_a_list_is_in_the_language_of_the_browser_or_the_chosen_one(
    studio: Studio, signed_in: Any, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = new_page(storage_state=signed_in, locale="de-AT")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{studio.url}/article?locale=fr")
    is_shown(page)
    assert [url.rpartition("/")[2] for url in asked if "/messages/" in url] == ["de.json"]
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("status").filter(has_text="Dokumente auf")).to_have_text(
        re.compile(r"^\d+ Dokumente auf Französisch \(fr\)")
    )
    expect(page.get_by_role("columnheader", name="Geändert")).to_be_visible()
    expect(page.get_by_role("cell", name="Veröffentlicht").first).to_be_visible()
    expect(page.get_by_role("cell").locator("time").first).to_have_text(GERMAN_DATE)
    page.goto(f"{studio.url}/article?q=goemon")
    expect(page.get_by_role("status").filter(has_text="Dokument")).to_have_text(
        re.compile("^1 Dokument auf Englisch")
    )
    page.get_by_role("button", name="Farben und Sprache").click()
    check_access(page)
    expect(page.get_by_role("dialog").get_by_label("Sprache")).to_have_value("de")
    page.get_by_role("dialog").get_by_label("Sprache").select_option(label="English")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    is_shown(page)
    expect(page.get_by_role("status").filter(has_text="document")).to_have_text(re.compile("^1 document in"))
    before = len(asked)
    page.reload()
    is_shown(page)
    expect(page.get_by_role("button", name="Theme and language")).to_be_visible()
    assert [url for url in asked[before:] if "/messages/" in url] == []


def test_unsaved_work_stays_when_the_language_changes(page: Page, studio: Studio) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{studio.url}/category")
    page.get_by_role("rowheader").first.get_by_role("link").click()
    field = page.get_by_label("Name", exact=True)
    field.fill("Not saved yet")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("combobox").fill("deutsch")
    page.get_by_role("option", name="Deutsch").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.get_by_role("button", name="Wiederherstellen").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Not saved yet")
