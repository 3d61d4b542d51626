"""The studio while its server is stopped, and after the server has been restarted."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.conftest import Page, Studio, expect, signed_in_at
from tests.waiting import until


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server that tests stop and restart on the same port."""
    made = Studio(tmp_path_factory.mktemp("network"), separate_modules=True)
    made.start()
    yield made
    stop(made.process)


@pytest.fixture(scope="module")
def entered(own: Studio, browser: Any) -> Any:
    return signed_in_at(own, browser)


@pytest.fixture
def open_page(own: Studio, entered: Any, new_page: Callable[..., Page]) -> Callable[[str], Page]:
    """A function that opens a page of the studio."""

    def opened(path: str) -> Page:
        page = new_page(storage_state=entered)
        page.goto(f"{own.url}{path}")
        page.locator("main h1").wait_for()
        page.locator("main [aria-busy=true], main .loading").first.wait_for(state="detached")
        return page

    return opened


# Another version of the studio. The server uses the version in the URLs of the studio's files.
OTHER_VERSION = "0123456789abcdef"
BROKEN = "The server is up, but the browser could not load part of this page."
UPDATED = f"from server.api.studio import routes; routes._version = lambda: {OTHER_VERSION!r}"
# The horizontal distance between the text of a note and the border of its input.
FROM_FRAME_PX = """(note) => {
  const words = document.createRange();
  words.selectNodeContents(note);
  return words.getBoundingClientRect().left - note.closest(".markdown").getBoundingClientRect().left;
}"""


def notice(page: Page) -> Any:
    return page.get_by_role("status").filter(has_text="No connection. Your changes stay in this page")


def go_to(page: Page, link: str) -> None:
    page.get_by_role("navigation", name="Content").get_by_role("link", name=re.compile(f"^{link}")).click()


def test_a_list_stays_and_goes_on(own: Studio, open_page: Callable[[str], Page]) -> None:
    page = open_page("/tag")
    first = page.get_by_role("rowheader").first
    before = first.inner_text()
    stop(own.process)
    try:
        page.get_by_role("columnheader", name="Title").get_by_role("button").click()
        notice(page).wait_for()
        expect(first).to_have_text(before)
        expect(page.get_by_role("region", name="Tags")).to_have_attribute("aria-busy", "true")
    finally:
        own.start()
    expect(page.get_by_role("region", name="Tags")).to_have_attribute("aria-busy", "false")
    expect(notice(page)).to_have_count(0)


def test_all_pages_say_so_and_go_on(
    own: Studio, open_page: Callable[[str], Page], check_access: Callable[[Page], None]
) -> None:
    page = open_page("")
    recent = page.locator(".recent-row")
    count = recent.count()
    stop(own.process)
    try:
        go_to(page, "Tags")
        notice(page).wait_for()
        page.get_by_text("The server can't be reached").wait_for()
        go_to(page, "Problems")
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("link", name="Slack Water").first.click()
        expect(recent).to_have_count(count)
        page.keyboard.press("Control+k")
        page.get_by_role("combobox").fill("lighthouse")
        page.get_by_text("No connection: the search continues").wait_for()
        check_access(page)
    finally:
        own.start()
    page.get_by_role("option", name=re.compile("^Lighthouses")).first.wait_for()
    page.keyboard.press("Escape")
    expect(notice(page)).to_have_count(0)
    go_to(page, "Tags")
    page.get_by_role("rowheader", name="Lighthouses").wait_for()
    go_to(page, "Problems")
    page.get_by_role("heading", level=1, name="Problems").wait_for()
    page.locator(".loading").wait_for(state="detached")


def test_pages_that_could_not_be_loaded_are_when_the_server_is_back(
    own: Studio, open_page: Callable[[str], Page]
) -> None:
    page = open_page("")
    stop(own.process)
    try:
        go_to(page, "Tags")
        page.get_by_text("The server can't be reached").wait_for()
    finally:
        own.start()
    page.get_by_role("rowheader", name="Lighthouses").wait_for()
    stop(own.process)
    try:
        go_to(page, "Changes")
        notice(page).wait_for()
    finally:
        own.start()
    page.get_by_role("heading", level=1, name="Changes").wait_for()


def test_what_is_typed_meanwhile_is_saved_after(own: Studio, open_page: Callable[[str], Page]) -> None:
    page = open_page("/page/about")
    title = page.get_by_label("Title").first
    title.fill("Typed before")
    stop(own.process)
    try:
        notice(page).wait_for()
        title.fill("Typed meanwhile")
        page.keyboard.press("Control+s")
        told = page.get_by_text("The server can't be reached. Your changes are kept in this page.")
        told.wait_for()
        page.get_by_role("button", name="File", exact=True).click()
        page.locator("#panel-heading", has_text="File").wait_for()
    finally:
        own.start()
    expect(notice(page)).to_have_count(0)
    expect(told).to_have_count(0)
    expect(title).to_have_value("Typed meanwhile")
    page.get_by_role("complementary").get_by_text("about.md").first.wait_for()
    page.keyboard.press("Control+s")
    page.get_by_text("Saved as a draft").wait_for()
    until(lambda: "Typed meanwhile" in (own.root / "content/pages/about.draft.md").read_text())


def test_an_editor_that_does_not_fit_the_page_leaves_the_plain_input(
    own: Studio, entered: Any, new_page: Callable[..., Page]
) -> None:
    page = new_page(storage_state=entered)
    newer = 'import { added } from "../api.js"; export const makeSourceView = added;'
    parts = "**/editor/source-view.js*"
    page.route(parts, lambda route: route.fulfill(body=newer, content_type="text/javascript"))
    page.goto(f"{own.url}/author/nell-trevanion")
    page.get_by_text("The editor could not be loaded").wait_for()
    assert page.locator(".not-loaded").evaluate(FROM_FRAME_PX) > 5
    plain = page.locator("textarea#field-bio")
    plain.fill("Typed into the plain input")
    page.locator(".actions-told", has_text="One field is not saved").wait_for()
    page.unroute(parts)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Reload the page").click()
    page.locator("#field-bio.cm-content").wait_for()
    page.get_by_text("There are unsaved changes").wait_for()


def test_a_page_whose_import_broke_off_is_shown_when_the_server_is_back(
    own: Studio, open_page: Callable[[str], Page]
) -> None:
    page = open_page("")
    page.evaluate("document.body.dataset.loaded = 'before'")
    held: list[Any] = []
    requested: list[str] = []
    page.route("**/site/changes-page.js", lambda route: held.append(route))
    go_to(page, "Changes")
    until(lambda: page.evaluate("1") == 1 and bool(held))  # lets Playwright process the request
    stop(own.process)
    try:
        held.pop().abort()
        page.unroute_all()
        page.on("request", lambda request: requested.append(request.url.rpartition("/")[2]))
        page.locator(".state").get_by_text("The server can't be reached").wait_for()
    finally:
        own.start()
    page.get_by_role("heading", level=1, name="Changes").wait_for()
    assert page.evaluate("document.body.dataset.loaded") == "before"
    assert "changes-page.js?again=1" in requested  # Some browsers would not request the first URL again.


def test_a_page_that_an_import_of_an_import_has_broken_reloads_itself(
    open_page: Callable[[str], Page],
) -> None:
    page = open_page("")
    page.evaluate("document.body.dataset.loaded = 'before'")
    page.route("**/site/difference.js", lambda route: route.abort())
    go_to(page, "Changes")
    # The message also appears after the reload, because the page is reloaded only once.
    page.get_by_text(BROKEN).wait_for()
    expect(page.locator("body[data-loaded]")).to_have_count(0)
    page.unroute_all()
    page.get_by_role("button", name="Reload the page").click()
    page.get_by_role("heading", level=1, name="Changes").wait_for()


def test_a_part_that_is_broken_leaves_what_was_typed(open_page: Callable[[str], Page]) -> None:
    page = open_page("/page/about")
    title = page.get_by_label("Title").first
    title.fill("Typed")
    page.route("**/preview/framed.js", lambda route: route.abort())
    page.get_by_role("button", name="Preview", exact=True).click()
    page.get_by_text(BROKEN).wait_for()
    expect(page.get_by_role("button", name="Reload the page")).to_have_count(1)
    expect(title).to_have_value("Typed")


def files_of(page: Page, version: str) -> Any:
    """Return the page's script element, if the script has the given version."""
    return page.locator(f"script[src*='/-/{version}/']")


@pytest.fixture
def update(own: Studio) -> Iterator[Callable[[Page], None]]:
    """A function that stops the server and, once a page has noticed this, starts a server of another
    version.
    """

    def updated(page: Page) -> None:
        expect(files_of(page, OTHER_VERSION)).to_have_count(0)
        stop(own.process)
        notice(page).wait_for()
        own.start(UPDATED)

    yield updated
    stop(own.process)
    own.start()


def test_an_updated_studio_is_loaded_when_nothing_is_unsaved(
    open_page: Callable[[str], Page], update: Callable[[Page], None]
) -> None:
    page = open_page("/page/about")
    update(page)
    expect(files_of(page, OTHER_VERSION)).to_have_count(1)
    page.locator("main h1").wait_for()
    expect(page.get_by_text("The studio was updated")).to_have_count(0)


def test_an_updated_studio_says_so_beside_unsaved_work(
    open_page: Callable[[str], Page],
    update: Callable[[Page], None],
    check_access: Callable[[Page], None],
) -> None:
    page = open_page("/page/about")
    title = page.get_by_label("Title").first
    title.fill("Beside an update")
    update(page)
    told = page.get_by_role("status").filter(has_text="The studio was updated. Save your work, then reload.")
    told.wait_for()
    expect(title).to_have_value("Beside an update")
    expect(files_of(page, OTHER_VERSION)).to_have_count(0)
    check_access(page)
    page.on("dialog", lambda dialog: dialog.accept())
    told.get_by_role("button", name="Reload the page").click()
    unsaved = page.get_by_role("region", name="Unsaved work").get_by_role("region", name="Not saved")
    expect(unsaved).to_have_text("Beside an update")
    expect(files_of(page, OTHER_VERSION)).to_have_count(1)


def test_an_updated_studio_is_loaded_when_unsaved_work_is_left(
    open_page: Callable[[str], Page], update: Callable[[Page], None]
) -> None:
    page = open_page("/page/about")
    page.get_by_label("Title").first.fill("Left after an update")
    update(page)
    page.get_by_text("The studio was updated").wait_for()
    page.get_by_role("button", name="Save draft").click()
    page.get_by_text("Saved as a draft").wait_for()
    go_to(page, "Tags")
    expect(files_of(page, OTHER_VERSION)).to_have_count(1)
    page.get_by_role("heading", level=1, name="Tags").wait_for()
