"""A list of 10,000 documents in the studio: how long it takes to open is printed, and not tested."""

from collections.abc import Callable
from pathlib import Path

from tests.servers import stop
from tests.studio.browser_lists import titles
from tests.studio.browser_pages import is_shown
from tests.studio.conftest import Page, Studio

MANY = 10_000
TIMES = 7
# Milliseconds from a click until the rows are painted.
OPENED = """
async (name) => {
  const painted = () => new Promise((done) => requestAnimationFrame(done));
  const begun = performance.now();
  [...document.querySelectorAll("nav a")].find((link) => link.textContent.startsWith(name)).click();
  while (!document.querySelector(`[aria-label=${name}][aria-busy=false] tbody tr`)) await painted();
  await painted();
  return performance.now() - begun;
}
"""


def test_a_list_of_10000_documents_opens(tmp_path: Path, new_page: Callable[..., Page]) -> None:
    studio = Studio(tmp_path)
    for number in range(MANY):
        values = f"title: Sounding {number}\nslug: sounding-{number}\nauthor: nell-trevanion"
        name = f"{number}.draft.md" if number % 10 == 0 else f"{number}.md"
        (studio.root / "content/articles" / name).write_text(f"---\n{values}\n---\nBy the lead.\n")
    studio.start()
    try:
        page = new_page()
        page.set_default_timeout(60_000)
        page.goto(studio.entrance)
        is_shown(page)
        took = []
        for _ in range(TIMES):
            took.append(page.evaluate(OPENED, "Articles"))
            page.go_back()
            is_shown(page)
        print(f"\na list of {MANY:,} documents opens in {took[0]:.0f} ms, again in {min(took):.0f} ms")
        page.goto(f"{studio.url}/article?q=sounding%2012&sort=title:asc")
        assert titles(page)[:2] == ["Sounding 12", "Sounding 120"]
        page.get_by_text("111 documents").wait_for()
    finally:
        stop(studio.process)
