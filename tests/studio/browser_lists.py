"""The lists of the studio, in a browser: what they show, and that the URL contains all of a list's
settings.
"""

import re
from collections.abc import Callable
from typing import Any

from tests.studio.browser_pages import is_shown
from tests.studio.conftest import Page, Studio, expect
from tests.waiting import until


def titles(page: Page) -> list[str]:
    """Return the titles in a list, once the list has loaded.

    If the list is about to send another request, the result may be outdated.
    """
    is_shown(page)
    return list(page.get_by_role("rowheader").all_inner_texts())


def shows(page: Page, wanted: list[str]) -> None:
    """Wait until a list shows exactly the given titles in this order."""
    until(lambda: titles(page) == wanted)


def shows_some(page: Page, found: set[str], everything: list[str]) -> list[str]:
    """Wait until a list shows at least the titles in `found`, but not all in `everything`. Return its
    titles.
    """
    until(lambda: found <= set(titles(page)) < set(everything))
    return titles(page)


def add_filter(page: Page, attribute: str, condition: str, value: str | None = None) -> None:
    """Add a filter to a list. The form for filters must be open."""
    page.get_by_label("Attribute").select_option(label=attribute)
    page.get_by_label("Condition").select_option(label=condition)
    field = page.get_by_label("Value", exact=True)
    if value is not None and field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(label=value)
    elif value is not None:
        field.fill(value)
    page.get_by_role("button", name="Add filter").click()


def test_a_search_follows_the_typing_and_survives_reload_and_back(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/article")
    everything = titles(page)
    page.get_by_role("searchbox").press_sequentially("corkscrew", delay=20)
    shows(page, ["Goémon"])
    expect(page).to_have_url(f"{studio.url}/article?q=corkscrew")
    page.reload()
    shows(page, ["Goémon"])
    expect(page.get_by_role("searchbox")).to_have_value("corkscrew")
    page.go_back()
    shows(page, everything)
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_an_answer_that_is_late_does_not_replace_a_later_one(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/tag")
    titles(page)
    early = re.compile(r"_q=fo&")
    held: list[Any] = []
    ended: list[Any] = []
    page.on("requestfinished", lambda request: ended.append(request) if early.search(request.url) else None)
    page.on("requestfailed", lambda request: ended.append(request) if early.search(request.url) else None)
    page.route(early, lambda route: held.append(route))
    field = page.get_by_role("searchbox")
    field.fill("fo")
    until(lambda: page.evaluate("1") == 1 and bool(held))  # lets Playwright process the request
    field.fill("harbour")
    shows(page, ["Harbours"])
    held.pop().continue_()
    until(lambda: page.evaluate("1") == 1 and bool(ended))
    shows(page, ["Harbours"])


def test_a_click_on_a_column_sorts_by_it_and_says_so(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/category")
    upwards = sorted(titles(page))
    head = page.get_by_role("columnheader", name="Title")
    head.get_by_role("button").click()
    shows(page, upwards)
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    shows(page, upwards[::-1])
    assert page.url.endswith("?sort=name%3Adesc")
    page.goto(f"{studio.url}/article?sort=author.name:asc&status=published")
    is_shown(page)
    expect(page.get_by_role("columnheader", name="Author")).to_have_attribute("aria-sort", "ascending")
    expect(page.get_by_role("row").nth(1).get_by_text("Ewen Gourvellec")).to_be_visible()


def test_filters_of_each_type_find_what_they_say(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/article")
    everything = titles(page)
    for attribute, condition, value, found in [
        ("Author", "contains", "solveig", {"Night ferry", "The weather glass", "By the ladder"}),
        ("Reading minutes", "is less than", "2", {"Corrections and second thoughts"}),
        ("Published on", "is after", "2025-08-01", {"Lifeboat house, for sale", "The road to Withern"}),
        ("Seo › Meta title", "contains", "quay", {"The weather glass"}),
        ("Published on", "is empty", None, {"Oyster lease", "Ice in the harbour"}),
    ]:
        page.get_by_role("button", name="Filter", exact=True).click()
        add_filter(page, attribute, condition, value)
        shows_some(page, found, everything)
        page.reload()
        shows_some(page, found, everything)
        page.get_by_role("button", name=f"Remove the filter: {attribute} {condition}").click()
        shows(page, everything)


def test_filters_of_choices_and_several_at_once(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/category")
    is_shown(page)
    page.get_by_role("button", name="Filter", exact=True).click()
    add_filter(page, "Colour", "is", "amber")
    shows(page, ["Lights"])
    add_filter(page, "Name", "contains", "tides")
    page.get_by_text("No results").wait_for()
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("rowheader")).to_have_count(5)


def choose_filter(page: Page, attribute: str, condition: str) -> None:
    page.get_by_label("Attribute").select_option(label=attribute)
    page.get_by_label("Condition").select_option(label=condition)


def test_a_filter_has_several_values(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/category")
    everything = titles(page)
    page.get_by_role("button", name="Filter", exact=True).click()
    choose_filter(page, "Colour", "is one of")
    page.get_by_role("button", name="Add filter").click()  # no attribute has been selected yet
    page.get_by_label("amber").check()
    page.get_by_label("rust").check()
    page.get_by_role("button", name="Add filter").click()
    some = shows_some(page, {"Lights"}, everything)
    assert len(some) > 1
    expect(page.get_by_role("list", name="Filters")).to_have_text(
        "Colour is one of “amber”, “rust”", use_inner_text=True
    )
    page.reload()
    shows(page, some)
    page.get_by_role("button", name="Remove the filter").click()
    page.get_by_role("button", name="Filter", exact=True).click()
    choose_filter(page, "Name", "is none of")
    page.get_by_label("Values").fill("Lights, Tides")
    page.get_by_role("button", name="Add filter").click()
    shows(page, [title for title in everything if title not in ("Lights", "Tides")])


def test_a_filter_has_a_range(page: Page, studio: Studio) -> None:
    for attribute, ends, found in [
        ("Reading minutes", ("1", "2"), "Corrections and second thoughts"),
        ("Published on", ("2025-08-01", "2025-12-31"), "The road to Withern"),
    ]:
        page.goto(f"{studio.url}/article")
        everything = titles(page)
        page.get_by_role("button", name="Filter", exact=True).click()
        choose_filter(page, attribute, "is between")
        page.get_by_label("From", exact=True).fill(ends[0])
        page.get_by_label("To", exact=True).fill(ends[1])
        page.get_by_role("button", name="Add filter").click()
        some = shows_some(page, {found}, everything)
        page.reload()
        shows(page, some)


def test_a_filter_that_was_written_by_hand_does_no_harm(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/category?filter=colour:$in:amber&filter=colour:$between:[1]")
    expect(page.get_by_role("rowheader")).to_have_count(5)


def test_locale_and_status_are_chosen(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/article")
    is_shown(page)
    expect(page.get_by_text("23 documents in English (en)")).to_be_visible()
    expect(page.get_by_role("link", name="Articles").get_by_title("Documents in English (en)")).to_have_text(
        "23"
    )
    page.get_by_label("Language", exact=True).select_option("fr")
    page.get_by_role("rowheader", name="Occultations et isophase").wait_for()
    expect(page.get_by_text("documents in French (fr)")).to_be_visible()
    page.get_by_label("Language", exact=True).select_option("en")
    page.get_by_label("Status").select_option("draft")
    until(lambda: set(titles(page)) == {"Oyster lease", "Ice in the harbour"})
    page.get_by_label("Status").select_option("modified")
    shows(page, ["The road to Withern"])
    assert page.url.endswith("/article?status=modified")


def test_columns_are_chosen_and_remembered(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/article")
    is_shown(page)
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Reading minutes").check()
    page.get_by_label("Tags").check()
    page.get_by_label("Author").uncheck()
    page.reload()
    is_shown(page)
    heads = [text.strip() for text in page.get_by_role("columnheader").all_inner_texts()]
    assert heads == ["", "Title", "Status", "Published on", "Reading minutes", "Tags", "Changed"]
    expect(page.get_by_role("row", name="Goémon").get_by_text("Seaweed")).to_be_visible()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="Reset columns").click()
    page.get_by_role("columnheader", name="Author").wait_for()


def test_a_panel_is_closed_by_escape_and_leads_back(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/tag")
    is_shown(page)
    page.get_by_role("button", name="Filter", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Attribute")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Filter", exact=True)).to_be_focused()


def test_everybody_can_use_the_panels(
    page: Page, studio: Studio, check_access: Callable[[Page], None]
) -> None:
    page.goto(f"{studio.url}/article?filter=title:$containsi:the")
    is_shown(page)
    for name in ("Filter", "Columns"):
        page.get_by_role("button", name=name, exact=True).click()
        for width in (1280, 320):
            page.set_viewport_size({"width": width, "height": 640})
            check_access(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_what_no_schema_knows_any_more_is_said(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/tag?filter=gone:$eq:1&sort=name:asc")
    expect(page.get_by_role("rowheader")).to_have_count(12)
    page.get_by_text("gone: not available here").wait_for()


def test_pages_keep_the_sort(page: Page, studio: Studio, signed_in: Any) -> None:
    page.route(
        "**/access",
        lambda route: route.fulfill(
            response=(answer := route.fetch()), body=answer.text().replace('"default":25', '"default":5')
        ),
    )
    page.goto(f"{studio.url}/tag?sort=name:asc")
    first = titles(page)
    assert first[0] == "Birds"
    page.get_by_role("link", name="Next page").click()
    page.get_by_text("Page 2 of 3").wait_for()
    until(lambda: titles(page)[:1] > first[-1:])
    assert "sort=name%3Aasc&page=2" in page.url
