"""How soon the pages of the studio are there, which is printed; that nothing moves as they load is tested."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_form import define
from tests.studio.browser_pages import SIZES
from tests.studio.conftest import Page, Studio

TIMES = 7
PAGES = {
    "first page": "",
    "list": "article",
    "form": "article/2025--goemon",
    "form of 60 fields": "large/one",
}
MOST_MOVED = 0.01  # of a page, in the units of the browser; 0.1 is called good
WATCH = """
window.moved = []; window.painted = 0;
new PerformanceObserver((list) => list.getEntries().forEach((entry) => moved.push([entry.value,
  ...entry.sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent)])))
  .observe({type: "layout-shift", buffered: true});
new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
  if (entry.name === "first-contentful-paint") painted = entry.startTime;
})).observe({type: "paint", buffered: true});
"""
# Milliseconds from a click on the way to the form of 60 fields until they are painted.
OPENED = """
async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const begun = performance.now();
  document.querySelector("tbody a").click();
  while (document.querySelectorAll(".fields .form-field").length < 60) await frame();
  await frame();
  return performance.now() - begun;
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of the repository's site, and of a type of 60 attributes."""
    studio = Studio(tmp_path_factory.mktemp("speed"))
    kinds = ("string", "text", "integer", "date", "boolean", "enumeration")
    many: dict[str, dict[str, Any]] = {}
    for number in range(60):
        kind = kinds[number % len(kinds)]
        many[f"field{number}"] = {"type": kind} | ({"enum": ["a", "b"]} if kind == "enumeration" else {})
    define(studio, "large", many)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def watched(entered: Any, new_page: Callable[..., Page]) -> Page:
    """A page that has signed in, and notes what moves and when it is first painted."""
    page = new_page(storage_state=entered)
    page.add_init_script(WATCH)
    return page


def loaded(page: Page, site: Studio, path: str) -> None:
    """Load a page, until it has what it waits for, and a while longer."""
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


def test_a_first_visit_is_there_soon(site: Studio, entered: Any, new_page: Callable[..., Page]) -> None:
    took = []
    for _ in range(TIMES):
        page = new_page(storage_state=entered)  # of a browser that has nothing of the studio in its cache
        page.add_init_script(WATCH)
        loaded(page, site, "")
        took.append(page.evaluate("painted"))
    print(f"\na first visit is painted after {min(took):.0f} ms, the slowest after {max(took):.0f} ms")


def test_pages_are_there_soon(watched: Page, site: Studio) -> None:
    for name, path in PAGES.items():
        took = []
        for _ in range(TIMES):
            loaded(watched, site, path)
            took.append(watched.evaluate("painted"))
        print(f"\n{name}: first painted after {took[0]:.0f} ms, again after {min(took):.0f} ms", end="")
    took = []
    for _ in range(TIMES):
        loaded(watched, site, "large")
        took.append(watched.evaluate(OPENED))
    print(f"\na form of 60 fields opens in {took[0]:.0f} ms, again in {min(took):.0f} ms")
