"""Relations to documents of any content type, in a browser."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_form import lines_that_changed, open_form, told
from tests.studio.conftest import Page, Studio, is_save

NOTICE = """---
title: One   # by hand
about: {__type: api::tag.tag, documentId: fog}
links:
  - {__type: api::tag.tag, documentId: islands}   # first
  - {__type: api::author.author, documentId: nell-trevanion}
createdAt: 2024-01-22T08:00:00.000Z
updatedAt: 2024-01-22T08:00:00.000Z
---
"""
SCHEMA = {
    "info": {"singularName": "notice", "pluralName": "notices", "displayName": "Notice"},
    "attributes": {
        "title": {"type": "string"},
        "about": {"type": "relation", "relation": "morphToOne"},
        "links": {"type": "relation", "relation": "morphToMany"},
    },
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Studio]:
    """A server of a site with a notice that has relations to documents of several content types."""
    studio = Studio(tmp_path)
    (studio.root / "content-types/notice.json").write_text(json.dumps(SCHEMA))
    tag = studio.root / "content-types/tag.json"
    schema = json.loads(tag.read_text())
    schema["attributes"]["notice"] = {
        "type": "relation",
        "relation": "morphOne",
        "target": "api::notice.notice",
        "morphBy": "about",
    }
    tag.write_text(json.dumps(schema))
    (studio.root / "content/notices").mkdir()
    (studio.root / "content/notices/one.md").write_text(NOTICE)
    studio.start()
    yield studio
    stop(studio.process)


def test_documents_of_any_type_are_found_ordered_and_taken_away(
    site: Studio, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page, path = new_page(), site.root / "content/notices/one.md"
    page.goto(site.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    open_form(page, site, "tag/fog")
    page.locator(".form-field", has_text="Notice").get_by_role("link", name="One").wait_for()
    open_form(page, site, "notice/one")
    links = page.get_by_role("group", name="Links")
    links.get_by_role("link", name="Nell Trevanion").wait_for()
    check_access(page)
    links.get_by_label("Type").select_option("Page")
    found = links.get_by_role("combobox", name="Links")
    found.fill("abo")
    links.get_by_role("listbox").get_by_role("option").first.wait_for()
    found.press("Enter")
    save(page)
    added = lines_that_changed(NOTICE, path.read_text())
    assert [line.split()[-1] for line in added] == ["api::page.page", "about"]
    assert len(lines_that_changed(path.read_text(), NOTICE)) == 0
    links.get_by_role("button", name="Move Nell Trevanion, Author, with the arrow keys").press("ArrowUp")
    links.get_by_role("button", name="Remove Islands, Tag").click()
    about = page.get_by_role("group", name="About")
    about.get_by_role("button", name="Remove Fog, Tag").click()
    save(page)
    text = path.read_text()
    assert text.index("nell-trevanion") < text.index("api::page.page")
    assert "islands" not in text
    assert "fog" not in text
    about.get_by_label("Type").select_option("Author")
    chooser: Any = about.get_by_role("combobox", name="About")
    chooser.fill("winif")
    page.get_by_role("option", name="Winifred Stannage").click()
    save(page)
    assert "documentId: winifred-stannage" in path.read_text()


def save(page: Page) -> None:
    """Save the form, and wait until it is saved."""
    with page.expect_response(lambda answer: is_save(answer.request, "notices/one")) as answered:
        page.keyboard.press("Control+s")
    assert answered.value.ok
    told(page, "Saved")
