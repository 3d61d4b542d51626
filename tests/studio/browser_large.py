"""Large sites in the studio: search a list of 10,000 documents, and load only the visible editors of 60
fields.
"""

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
EDITED: dict[str, dict[str, Any]] = {f"data{number}": {"type": "json"} for number in range(8)}
EDITED |= {f"text{number}": {"type": "richtext"} for number in range(12)}
EDITED |= {f"line{number}": {"type": "string"} for number in range(40)}


def add_articles(studio: Studio, count: int = MANY) -> None:
    """Add many articles to a site whose server has not been started yet. One article in ten is a draft."""
    for number in range(count):
        values = f"title: Sounding {number}\nslug: sounding-{number}\nauthor: nell-trevanion"
        name = f"{number}.draft.md" if number % 10 == 0 else f"{number}.md"
        (studio.root / "content/articles" / name).write_text(f"---\n{values}\n---\nBy the lead.\n")


def define_edited(studio: Studio) -> None:
    """Add a content type with 60 attributes, 20 of which have editors, and its document `one` with long
    values.
    """
    define(studio, "edited", EDITED)
    texts = {name: "Long foretold, *long last*.\n\n" * 200 for name in EDITED if name.startswith("text")}
    data = {name: {"some": list(range(300))} for name in EDITED if name.startswith("data")}
    (studio.root / "content/editeds/one.md").unlink()
    (studio.root / "content/editeds/one.json").write_text(json.dumps(texts | data))


def test_a_list_of_10000_documents_opens(tmp_path: Path, new_page: Callable[..., Page]) -> None:
    studio = Studio(tmp_path)
    add_articles(studio)
    studio.start()
    try:
        page = new_page()
        page.set_default_timeout(60_000)
        page.goto(studio.entrance)
        is_shown(page)
        page.get_by_role("navigation").get_by_role("link", name="Articles").click()
        is_shown(page)
        page.goto(f"{studio.url}/article?q=sounding%2012&sort=title:asc")
        assert titles(page)[:2] == ["Sounding 12", "Sounding 120"]
        page.get_by_text("111 documents").wait_for()
    finally:
        stop(studio.process)


def test_a_form_of_60_fields_with_editors_opens(tmp_path: Path, new_page: Callable[..., Page]) -> None:
    studio = Studio(tmp_path)
    define_edited(studio)
    studio.start()
    try:
        page = new_page()
        page.goto(studio.entrance)
        is_shown(page)
        page.goto(f"{studio.url}/edited/one")
        page.locator(".cm-content").first.wait_for()
        assert page.locator(".cm-content").count() < 20, "editors are made that nobody sees"
    finally:
        stop(studio.process)
