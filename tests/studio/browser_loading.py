"""Layout shifts: nothing may move while a page of the studio loads."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_form import define
from tests.studio.browser_pages import SIZES
from tests.studio.conftest import Page, Studio

PAGES = {
    "first page": "",
    "list": "article",
    "form": "article/2025--goemon",
    "form of 60 fields": "large/one",
}
KINDS = ("string", "text", "integer", "date", "boolean", "enumeration")
MOST_MOVED = 0.01  # the maximum layout shift score of a page; browsers regard 0.1 as good
WATCH = """
window.moved = [];
new PerformanceObserver((list) => list.getEntries().forEach((entry) => moved.push([entry.value,
  ...entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent)])))
  .observe({type: "layout-shift", buffered: true});
"""


def define_large(studio: Studio) -> None:
    """Add a content type with 60 attributes that do not need editors, and its document `one`."""
    many: dict[str, dict[str, Any]] = {}
    for number in range(60):
        kind = KINDS[number % len(KINDS)]
        many[f"field{number}"] = {"type": kind} | ({"enum": ["a", "b"]} if kind == "enumeration" else {})
    define(studio, "large", many)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of the repository's example site, with an additional content type that has 60 attributes."""
    studio = Studio(tmp_path_factory.mktemp("speed"))
    define_large(studio)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def watched(entered: Any, new_page: Callable[..., Page]) -> Page:
    """A page in which the owner is signed in, and which records layout shifts."""
    page = new_page(storage_state=entered)
    page.add_init_script(WATCH)
    return page


def loaded(page: Page, site: Studio, path: str) -> None:
    """Load a page, and wait until it is complete and then a little longer."""
    page.goto(f"{site.url}/{path}".rstrip("/"))
    page.locator("main h1").wait_for()
    page.locator("[aria-busy=true]").wait_for(state="detached")
    page.locator(".form-field, tbody tr, main li").first.wait_for()
    page.wait_for_timeout(500)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_moves_while_it_loads(name: str, size: str, watched: Page, site: Studio) -> None:
    width, height = SIZES[size]
    watched.set_viewport_size({"width": width, "height": height})
    loaded(watched, site, PAGES[name])
    moved = watched.evaluate("moved")
    assert sum(one[0] for one in moved) < MOST_MOVED, moved
