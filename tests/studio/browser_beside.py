"""A document's form while other clients change the document: it must always show the current values.

This includes late responses, missed events and rejected saves.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_form import SAMPLE, define, open_form, told
from tests.studio.conftest import Page, Studio, answer_to, expect
from tests.waiting import until

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "title": {"type": "string", "required": True},
    "slug": {"type": "uid", "targetField": "title"},
    "email": {"type": "email"},
}
THEIRS = SAMPLE.replace("one@example.org", "them@example.org")
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with a content type that has no drafts."""
    studio = Studio(tmp_path_factory.mktemp("beside"))
    define(studio, "plain", ATTRIBUTES)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def page(site: Studio, entered: Any, new_page: Callable[..., Page]) -> Page:
    """A page in which the owner is signed in. The document of `site` is in its initial state."""
    page = new_page(storage_state=entered)
    write(page, site, SAMPLE)
    return page


def write(page: Page, site: Studio, text: str) -> None:
    """Write the document's file as another person would, and wait until the server serves it."""
    (site.root / "content/plains/one.md").write_text(text)
    until(lambda: json.loads(answer_to(page, site, "plains/one"))["data"]["email"] in text)
    until(lambda: '"One"' not in text or '"title":"One"' in answer_to(page, site, "plains/one"))


def test_an_answer_that_is_late_takes_nothing_back(page: Page, site: Studio) -> None:
    open_form(page, site, "plain/one")
    held: list[Any] = []

    def hold(route: Any) -> None:
        if route.request.method != "GET" or held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/api/plains/one*", hold)
    write(page, site, THEIRS)
    until(lambda: page.evaluate("true") and len(held) == 1)
    page.get_by_label("Title").fill("Mine")
    page.keyboard.press("Control+s")
    told(page, "Saved")
    route, answer = held[0]
    with page.expect_event("requestfinished", lambda request: request == route.request):
        route.fulfill(response=answer)
    page.evaluate(FRAMES)
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    expect(page.locator(".actions-told")).to_have_text("Saved")
    expect(page.get_by_label("Title")).to_have_value("Mine")
    expect(page.get_by_label("Email")).to_have_value("them@example.org")


def test_what_changed_before_the_page_could_hear_of_it_is_shown(page: Page, site: Studio) -> None:
    held: list[Any] = []
    page.route("**/events*", lambda route: held.append(route) if not held else route.continue_())
    open_form(page, site, "plain/one")
    expect(page.get_by_label("Email")).to_have_value("one@example.org")
    until(lambda: page.evaluate("true") and len(held) == 1)
    write(page, site, THEIRS)
    held[0].continue_()
    expect(page.get_by_label("Email")).to_have_value("them@example.org")


def test_what_changes_while_a_save_is_refused_is_shown(
    page: Page, site: Studio, entered: Any, new_page: Callable[..., Page]
) -> None:
    other = new_page(storage_state=entered)
    open_form(other, site, "plain/one")
    open_form(page, site, "plain/one")
    held: list[Any] = []
    page.route("**/api/plains/one*", lambda route: held.append(route) if put(route) else route.continue_())
    page.get_by_label("Title").fill("Mine")
    page.keyboard.press("Control+s")
    until(lambda: page.evaluate("true") and len(held) == 1)
    write(page, site, THEIRS)
    expect(other.get_by_label("Email")).to_have_value("them@example.org")
    page.evaluate(FRAMES)  # By then, the page has processed the event.
    error = {"status": 400, "name": "ValidationError", "message": "Not so", "details": {}}
    held[0].fulfill(status=400, json={"data": None, "error": error})
    told(page, "Not so")
    expect(page.get_by_label("Email")).to_have_value("them@example.org")
    expect(page.get_by_label("Title")).to_have_value("Mine")
    expect(page.locator(".actions-told")).to_have_text("Not so")


def put(route: Any) -> bool:
    return bool(route.request.method == "PUT")
