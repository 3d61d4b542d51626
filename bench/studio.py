"""Benchmark of the studio in chromium: first visits, the first paint, and opening lists and forms."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from PIL import Image

from bench.effort import scaled
from bench.studio_visits import measure_first_visits
from bench.tables import show
from tests.servers import stop
from tests.studio.browser_large import MANY, add_articles, define_edited
from tests.studio.browser_loading import define_large
from tests.studio.conftest import CHROMIUM, OPTIONS, Page, Studio, signed_in_at

TIMES = scaled(9, 2)
ARTICLES = scaled(MANY, 200)
FILES = scaled(10_000, 100)  # in the media library
PAGE_FILES = 60  # on a page of the media library
SETTLES_MS = 300
PAGES = {"the first page": "", "a list": "article", "a form": "article/2025--goemon"}
PAGES |= {"a form of 60 fields": "large/one"}
# JavaScript for the milliseconds until the first paint of a page
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
# JavaScript for the milliseconds from a click until the new view is painted, and until `later` exists
OPENED = """
async ([link, shown, count, later]) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const begun = performance.now();
  [...document.querySelectorAll("a")].find((one) => one.textContent.startsWith(link)).click();
  while (document.querySelectorAll(shown).length < count) await frame();
  await frame();
  const opened = performance.now() - begun;
  while (later && !document.querySelector(later)) await frame();
  return [opened, performance.now() - begun];
}
"""
ROWS = "[aria-label=Articles][aria-busy=false] tbody tr"
MEDIA = ".media-files[aria-busy=false] .media-tile"
OPENING = {  # by name: start page, link to click, and element to wait for
    f"a list of {ARTICLES:,}, by its link": ("", "Articles", ROWS, 1, ""),
    f"the media library of {FILES:,} files": ("", "Media", MEDIA, PAGE_FILES, ""),
    "a form of 60 fields, from its list": ("large", "one", ".form-field", 60, ""),
    "one with 20 editors, from its list": ("edited", "one", ".form-field", 60, ".cm-content"),
}


def measure(folder: Path) -> None:
    """Print how long users have to wait."""
    with _browser() as browser:
        measure_first_visits(folder, browser)
    with _browser() as browser, _site(folder) as studio:
        signed_in = signed_in_at(studio, browser)
        _show("First painted, in ms", "the page", _painted(studio, browser, signed_in))
        page = _page(browser, signed_in)
        opened = {name: _opened(page, studio, *how) for name, how in OPENING.items()}
        _show(
            "Opened within the page, in ms", "what", {n: [t[0] for t in took] for n, took in opened.items()}
        )
        later = [took[1] for took in opened["one with 20 editors, from its list"]]
        print(f"\nIts editors are there after {later[0]:.0f} ms, later after {median(later[1:]):.0f} ms.")


def _painted(studio: Studio, browser: Any, signed_in: Any) -> dict[str, list[float]]:
    visits = [_first_visit(studio, browser, signed_in) for _ in range(TIMES)]
    page, found = _page(browser, signed_in), {"the first page, of a first visit": visits}
    for name, path in PAGES.items():
        _paint(page, studio, path)
        found[name] = [_paint(page, studio, path) for _ in range(TIMES)]
    return found


def _first_visit(studio: Studio, browser: Any, signed_in: Any) -> float:
    # The page is closed, because open pages would slow down the next one.
    page = _page(browser, signed_in)
    painted = _paint(page, studio, "")
    page.context.close()
    return painted


def _paint(page: Page, studio: Studio, path: str) -> float:
    page.goto(f"{studio.url}/{path}".rstrip("/"))
    _wait(page)
    return float(page.evaluate(PAINTED))


def _opened(
    page: Page, studio: Studio, start: str, link: str, shown: str, count: int, later: str
) -> list[list[float]]:
    page.goto(f"{studio.url}/{start}".rstrip("/"))
    took = []
    for _ in range(TIMES):
        page.locator("a", has_text=link).first.wait_for()
        took.append(page.evaluate(OPENED, [link, shown, count, later]))
        page.go_back()
        _wait(page)
    return took


def _wait(page: Page) -> None:
    page.locator("main h1").wait_for()
    page.locator("[aria-busy=true]").wait_for(state="detached")
    page.locator(".form-field, tbody tr, main li").first.wait_for()
    page.wait_for_timeout(SETTLES_MS)


def _page(browser: Any, signed_in: Any) -> Page:
    page = browser.new_context(storage_state=signed_in, viewport={"width": 1280, "height": 800}).new_page()
    page.set_default_timeout(60_000)
    return page


def _show(title: str, what: str, measured: dict[str, list[float]]) -> None:
    head = [what, "the first time", "median", "slowest"]
    numbers: list[Callable[[list[float]], float]] = [lambda t: t[0], median, max]
    rows = [[name, *(f"{of(took):.0f}" for of in numbers)] for name, took in measured.items()]
    show(title, head, rows, f"{TIMES} times each.")


@contextmanager
def _browser() -> Iterator[Any]:
    # playwright is installed by the extra `studio`
    with import_module("playwright.sync_api").sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield launched
        launched.close()


@contextmanager
def _site(folder: Path) -> Iterator[Studio]:
    """Context manager: serve the repository's site with added articles and media files, and with two added
    types with 60 attributes.
    """
    studio = Studio(folder)
    add_articles(studio, ARTICLES)
    define_large(studio)
    define_edited(studio)
    add_files(studio)
    studio.start()
    try:
        yield studio
    finally:
        stop(studio.process)


def add_files(studio: Studio) -> None:
    """Add small pictures in ten folders. Every second one has an alternative text."""
    out = io.BytesIO()
    Image.linear_gradient("L").resize((120, 90)).save(out, "PNG")
    for number in range(FILES):
        folder = studio.root / f"content/uploads/folder-{number % 10}"
        folder.mkdir(exist_ok=True)
        file = folder / f"sounding-{number}.png"
        file.write_bytes(out.getvalue())
        text = f"alternativeText: Sounding {number}\n" if number % 2 else ""
        stamp = f"2026-01-01T00:00:00.{number % 1000:03}Z"
        file.with_name(f"{file.name}.yaml").write_text(f"{text}createdAt: {stamp}\nupdatedAt: {stamp}\n")
