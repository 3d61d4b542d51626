"""A list of 10,000 documents and a form of 60 fields: how long they take to open is printed, not tested."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.servers import stop
from tests.studio.browser_form import define
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


FIELDS: dict[str, dict[str, Any]] = {f"line{number}": {"type": "string"} for number in range(40)}
FIELDS |= {f"text{number}": {"type": "richtext"} for number in range(12)}
FIELDS |= {f"data{number}": {"type": "json"} for number in range(8)}
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
# Milliseconds from a click until the editors are there that are seen.
EDITING = """
async () => {
  const painted = () => new Promise((done) => requestAnimationFrame(done));
  const begun = performance.now();
  [...document.querySelectorAll("main a")].find((link) => link.textContent === "one").click();
  while (document.querySelectorAll(".form-field").length < 60) await painted();
  await painted();
  const opened = performance.now() - begun;
  while (!document.querySelector(".cm-content")) await painted();
  return [opened, performance.now() - begun];
}
"""


def test_a_form_of_60_fields_with_editors_opens(tmp_path: Path, new_page: Callable[..., Page]) -> None:
    studio = Studio(tmp_path)
    define(studio, "large", dict(reversed(FIELDS.items())))
    texts = {name: "Long foretold, *long last*.\n\n" * 200 for name in FIELDS if name.startswith("text")}
    data = {name: {"some": list(range(300))} for name in FIELDS if name.startswith("data")}
    (studio.root / "content/larges/one.md").unlink()
    (studio.root / "content/larges/one.json").write_text(json.dumps(texts | data))
    studio.start()
    try:
        page = new_page()
        page.goto(studio.entrance)
        is_shown(page)
        page.goto(f"{studio.url}/large")
        took = []
        for _ in range(TIMES):
            page.get_by_role("link", name="one").wait_for()
            took.append(page.evaluate(EDITING))
            page.go_back()
        opened, editing = map(min, zip(*took, strict=True))
        print(f"\na form of 60 fields opens in {took[0][0]:.0f} ms, again in {opened:.0f} ms, ", end="")
        print(f"with its editors in {took[0][1]:.0f} and {editing:.0f} ms")
        page.goto(f"{studio.url}/large/one")
        page.locator(".cm-content").first.wait_for()
        print(f"its first paint is after {page.evaluate(FIRST_PAINT):.0f} ms")
        assert page.locator(".cm-content").count() < 20, "editors are made that nobody sees"
    finally:
        stop(studio.process)
