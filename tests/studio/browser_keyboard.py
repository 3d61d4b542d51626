"""Keyboard operation of the studio: everything can be reached and done with keys, and the focus is never
lost.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.sites import collection, component, relation
from tests.studio.browser_form import PNG, told
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio, answer_to, expect
from tests.waiting import until

ATTRIBUTES = {
    "title": {"type": "string", "required": True},
    "text": {"type": "text"},
    "body": {"type": "richtext"},
    "count": {"type": "integer"},
    "day": {"type": "date"},
    "open": {"type": "boolean"},
    "colour": {"type": "enumeration", "enum": ["red", "green"]},
    "data": {"type": "json"},
    "tags": relation("manyToMany", "tag"),
    "sections": {"type": "component", "component": "part.section", "repeatable": True},
    "zone": {"type": "dynamiczone", "components": ["part.section", "part.quote"]},
    "cover": {"type": "media", "multiple": True},
}
PAPER = """---
title: One
tags: [blue, green, red]
sections:
  - words: first
  - words: second
---
The body.
"""
FILES = {
    **collection("paper", ATTRIBUTES, drafts=True),
    **collection("tag", {"title": "string"}),
    **component("part.section", {"words": {"type": "string"}}),
    **component("part.quote", {"said": {"type": "string"}}),
    **{f"content/tags/{name}.yaml": f"title: {name.title()}\n" for name in ("red", "green", "blue", "white")},
    **{f"content/papers/p{number:02}.md": f"---\ntitle: Paper {number:02}\n---\n" for number in range(30)},
    "content/uploads/picture.png": PNG,
    "site.yaml": "name: Papers\nroles: {public: {auth: [callback]}, editor: {paper: [find, findOne, "
    "readDraft, create, update, delete], tag: [find, findOne], upload: [find, upload]}}\n",
}
FOCUS = """() => {
  const focused = document.activeElement;
  if (!focused || focused === document.body) return "nothing";
  const around = ["*", ".source-view", ".markdown", "label"].map((where) => focused.closest(where));
  const shown = [...around, focused.nextElementSibling].filter(Boolean).map((one) => getComputedStyle(one));
  const seen = shown.some((style) => style.outlineStyle !== "none" || style.boxShadow !== "none");
  return seen || focused.matches("h1, main, .form-field") ? "" : focused.outerHTML.slice(0, 200);
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with every kind of input, and with a user who is an editor."""
    studio = Studio(tmp_path_factory.mktemp("keyboard"), files=FILES)
    add_user(studio, "ann", "editor")
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def paper(site: Studio) -> Path:
    """The document that tests edit, in its initial state."""
    path = site.root / "content/papers/one.md"
    path.write_text(PAPER)
    path.with_name("one.draft.md").unlink(missing_ok=True)
    return path


@pytest.fixture
def page(site: Studio, new_page: Callable[..., Page]) -> Page:
    """A page in which the user ann has signed in by keyboard."""
    page = new_page()
    page.goto(site.url)
    page.get_by_label("E-mail address or user name").wait_for()
    to(page, page.get_by_label("E-mail address or user name"))
    page.keyboard.type("ann")
    page.keyboard.press("Tab")
    page.keyboard.type("slack water")
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    return page


def to(page: Page, wanted: Any, key: str = "Tab") -> None:
    """Press Tab until an element has the focus. The focus must never be lost on the way."""
    wanted.wait_for()
    for _ in range(120):
        if wanted.evaluate("one => one === document.activeElement"):
            is_kept(page)
            return
        page.keyboard.press(key)
    raise AssertionError(f"Tab does not lead to {wanted}")


def is_kept(page: Page) -> None:
    """Wait until the focus is on a visible element."""
    until(lambda: page.evaluate(FOCUS) == "", 10)


def open_by_palette(page: Page, name: str) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find documents and commands").wait_for()
    page.keyboard.type(name)
    page.get_by_role("option", name=re.compile(f"^{name}")).first.wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name=name)).to_be_focused()


def button(page: Page, name: str | re.Pattern[str]) -> Any:
    return page.get_by_role("button", name=name, exact=isinstance(name, str)).first


def test_every_kind_of_field_is_edited_saved_and_published(page: Page, paper: Path) -> None:
    open_by_palette(page, "One")
    fill = {"Title": "Two", "Text": "Words", "Count": "7"}
    for label, text in fill.items():
        to(page, page.get_by_label(label, exact=True))
        page.keyboard.press("Control+a")
        page.keyboard.type(text)
        if label == "Text":
            to(page, page.locator("#field-body.cm-content"))
            page.keyboard.press("Control+Home")
            page.keyboard.type("Typed. ")
            page.keyboard.press("Escape")  # Tab then leaves the editor.
            page.keyboard.press("Tab")
    to(page, page.get_by_label("Day"))
    page.keyboard.type("02292024")
    to(page, page.get_by_role("radio", checked=True))
    page.keyboard.press("ArrowRight")
    to(page, page.get_by_label("Colour"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+s")
    told(page, "Saved as a draft")
    is_kept(page)
    draft = paper.with_name("one.draft.md").read_text()
    for line in (
        "title: Two",
        "text: Words",
        "count: 7",
        "day: 2024-02-29",
        "colour: red",
        "Typed. The body.",
    ):
        assert line in draft
    to(page, button(page, "Publish"), "Shift+Tab")
    page.keyboard.press("Enter")
    told(page, "Published")
    assert "title: Two" in paper.read_text()


def test_relations_components_zones_and_media_are_ordered_added_and_removed(page: Page, paper: Path) -> None:
    open_by_palette(page, "One")
    to(page, button(page, re.compile("^Move Green")))
    page.keyboard.press("ArrowUp")
    is_kept(page)
    to(page, button(page, "Remove Blue"))
    page.keyboard.press("Enter")
    is_kept(page)
    to(page, page.get_by_role("combobox", name="Tags"))
    page.keyboard.type("whi")
    page.get_by_role("option", name="White").wait_for()
    page.keyboard.press("Enter")
    to(page, button(page, re.compile("^Move part.section: second")))
    page.keyboard.press("ArrowUp")
    is_kept(page)
    to(page, button(page, "Remove part.section: first"))
    page.keyboard.press("Enter")
    is_kept(page)
    to(page, button(page, "part.quote"))
    page.keyboard.press("Enter")
    to(page, page.get_by_label("Said"), "Shift+Tab")
    page.keyboard.type("Quoted")
    to(page, button(page, "Choose"))
    page.keyboard.press("Enter")
    to(page, button(page, re.compile("picture")))
    page.keyboard.press("Enter")
    page.locator(".media-card").get_by_text("picture").wait_for()
    is_kept(page)
    page.keyboard.press("Control+s")
    told(page, "Saved as a draft")
    draft = paper.with_name("one.draft.md").read_text()
    assert "tags: [green, red, white]" in draft
    assert "words: second" in draft
    assert "words: first" not in draft
    assert "said: Quoted" in draft
    assert "picture.png" in draft


def test_a_list_is_filtered_sorted_paged_and_selected(page: Page, paper: Path) -> None:
    open_by_palette(page, "Papers")
    to(page, button(page, "Filter"))
    page.keyboard.press("Enter")
    to(page, page.get_by_label("Attribute"))
    to(page, page.get_by_label("Value"))
    page.keyboard.type("Paper")
    page.keyboard.press("Enter")
    to(page, button(page, re.compile("^Remove the filter")))
    page.keyboard.press("Enter")
    is_kept(page)
    to(page, page.get_by_role("columnheader", name="Title").get_by_role("button"))
    page.keyboard.press("Enter")
    page.get_by_role("columnheader", name="Title").and_(page.locator("[aria-sort=ascending]")).wait_for()
    is_kept(page)
    to(page, page.get_by_role("checkbox").nth(1))
    page.keyboard.press("Space")
    to(page, button(page, "Clear selection"))
    page.keyboard.press("Enter")
    is_kept(page)
    to(page, page.get_by_role("link", name=re.compile("Next")))
    page.keyboard.press("Enter")
    page.wait_for_url("**page=2*")
    is_kept(page)


def test_a_deletion_leaves_the_focus_on_the_list(page: Page, site: Studio) -> None:
    name = "gone"
    (site.root / f"content/papers/{name}.md").write_text("---\ntitle: A gone one\n---\n")
    until(lambda: "A gone one" in answer_to(page, site, "papers/gone"))
    page.goto(f"{site.url}/paper?sort=title:asc")
    page.get_by_role("rowheader", name="A gone one").wait_for()
    to(page, page.get_by_role("checkbox").nth(1))
    page.keyboard.press("Space")
    to(page, button(page, "Delete 1"))
    page.keyboard.press("Enter")
    page.get_by_role("rowheader", name="A gone one").wait_for(state="detached")
    is_kept(page)
    page.keyboard.press("Enter")  # The Undo button has the focus.
    page.get_by_role("rowheader", name="A gone one").wait_for()
    is_kept(page)
