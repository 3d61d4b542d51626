"""Benchmark of first visits to the studio, with an empty cache: a checkout and a package side by side."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import sleep
from typing import Any

from bench.effort import scaled
from bench.tables import show
from tests.servers import stop
from tests.studio.conftest import USE_PAGE, Studio, signed_in_at
from tests.vendor.studio import bundle

VISITS = scaled(10, 2)
SETTLES_S = 0.5  # until the browser and the server have nothing left to do
PAGES = {"the first page": "", "a list": "/article"}
# Notes in `painted` and `listed` when anything is painted first, and the first documents of a list.
WATCH = """
window.painted = new Promise((done) => {
  const isFirst = ({ name }) => name === "first-contentful-paint";
  const found = (entries) => entries.getEntries().filter(isFirst).forEach((entry) => done(entry.startTime));
  new PerformanceObserver(found).observe({ type: "paint", buffered: true });
});
window.listed = new Promise((done) => {
  const look = () => {
    const isListed = document.querySelector("main [aria-busy=false] :is(li, tbody tr)");
    requestAnimationFrame(isListed ? () => setTimeout(() => done(performance.now())) : look);
  };
  look();
});
"""
# JavaScript for the milliseconds from the navigation until each phase has ended
PHASES = """
async () => {
  const list = await listed;
  const page = performance.getEntriesByType("navigation")[0];
  const access = performance.getEntriesByType("resource").find(({ name }) => name.endsWith("/access"));
  return [page.responseEnd, access.responseEnd, page.domContentLoadedEventStart, await painted, list];
}
"""
HEAD = ("page", "requests", "HTML", "GET /access", "modules run", "first paint", "list shown", "slowest")
Visit = tuple[int, list[float]]  # the number of requests, and the times of the phases


def measure_first_visits(folder: Path, browser: Any) -> None:
    """Print the requests and milliseconds until the first list of documents, for the example site."""
    rows = []
    with ExitStack() as running:
        studios = {name: running.enter_context(serve()) for name, serve in _variants(folder).items()}
        states = {name: signed_in_at(studio, browser) for name, studio in studios.items()}
        for page, path in PAGES.items():
            visits: dict[str, list[Visit]] = {name: [] for name in studios}
            for _ in range(VISITS):  # in turn, so that a busy machine slows down both
                for name, studio in studios.items():
                    visits[name].append(_visit(browser, states[name], studio.url + path))
            rows += [_row(f"{page}, {name}", made) for name, made in visits.items()]
    note = f"Median of {VISITS} visits each. `requests` includes all files and data of the page."
    show("First visit, in ms from the navigation", HEAD, rows, note)


def _variants(folder: Path) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {"checkout": lambda: _serving(folder / "checkout", "")}
    page = folder / "bundled"
    if reason := bundle(page):
        print(f"Without a package: {reason}")
    else:
        found["package"] = lambda: _serving(folder / "package", USE_PAGE.format(str(page)))
    return found


@contextmanager
def _serving(folder: Path, first: str) -> Iterator[Studio]:
    folder.mkdir()
    studio = Studio(folder, separate_modules=True)
    studio.start(first)
    try:
        yield studio
    finally:
        stop(studio.process)


def _visit(browser: Any, state: Any, url: str) -> Visit:
    context = browser.new_context(storage_state=state, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.add_init_script(WATCH)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    phases = [float(ms) for ms in page.evaluate(PHASES)]
    page.wait_for_load_state("networkidle")
    context.close()
    sleep(SETTLES_S)
    return len(asked), phases


def _row(name: str, visits: list[Visit]) -> list[str]:
    phases = list(zip(*(times for _, times in visits), strict=True))
    slowest = max(phases[-1])
    return [name, f"{median(count for count, _ in visits):.0f}"] + [
        f"{ms:.0f}" for ms in (*map(median, phases), slowest)
    ]
