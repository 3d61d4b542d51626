"""Sorting by dragging: in the file, only the moved lines may change."""

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.sites import collection, component, relation
from tests.studio.browser_form import PNG, open_form, told
from tests.studio.conftest import Page, Studio
from tests.waiting import until

ATTRIBUTES = {
    "title": {"type": "string"},
    "tags": relation("manyToMany", "tag"),
    "sections": {"type": "component", "component": "part.section", "repeatable": True},
    "zone": {"type": "dynamiczone", "components": ["part.section", "part.quote"]},
    "pictures": {"type": "media", "multiple": True},
}
PAPER = """---
# By hand, and to stay so.
title:   "One"   # quoted
tags:
  - red    # the first
  - green  # the second
  - blue   # the third
sections:
  - words: first    # one
  - words: second   # two
  - words: third
zone:
  - __component: part.section
    words: here
  - __component: part.quote
    said: there     # by somebody
pictures:
  - a.png  # the cover
  - b.png
other: kept
---
The body.
"""
FILES = {
    **collection("paper", ATTRIBUTES),
    **collection("tag", {"title": "string"}),
    **component("part.section", {"words": {"type": "string"}}),
    **component("part.quote", {"said": {"type": "string"}}),
    **{f"content/tags/{name}.yaml": f"title: {name.title()}\n" for name in ("red", "green", "blue")},
    **{f"content/uploads/{name}.png": PNG for name in "ab"},
    "content/papers/one.md": PAPER,
    "site.yaml": "name: Papers\n",
}
# By attribute: the dragged item, the position where it is dropped, and the number of lines that move.
MOVES = {"tags": (2, 0, 1), "sections": (0, 1, 1), "zone": (1, 0, 2), "pictures": (1, 0, 1)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with every attribute that has an order."""
    studio = Studio(tmp_path_factory.mktemp("order"), files=FILES)
    studio.start()
    yield studio
    stop(studio.process)


def moved(before: str, after: str) -> tuple[set[str], set[str]]:
    """Return the lines that were removed from their place, and the lines that were added."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    timestamps = ("updatedAt:", "createdAt:")
    gone = {line[2:] for line in lines if line.startswith("- ")}
    new = {line[2:] for line in lines if line.startswith("+ ") and not line[2:].startswith(timestamps)}
    return gone, new


@pytest.mark.parametrize("attribute", MOVES)
def test_what_is_dragged_moves_its_own_lines(
    attribute: str, site: Studio, entered: Any, new_page: Callable[..., Page]
) -> None:
    start, end, count = MOVES[attribute]
    path: Path = site.root / "content/papers/one.md"
    path.write_text(PAPER)
    page = new_page(storage_state=entered)
    open_form(page, site, "paper/one")
    handles = page.locator(f"[id^=field-{attribute}-move]")
    until(lambda: handles.count() >= 2)
    names = handles.evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    handles.nth(start).drag_to(handles.nth(end))
    wanted = [*names]
    wanted.insert(end, wanted.pop(start))
    until(lambda: handles.evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))") == wanted)
    page.keyboard.press("Control+s")
    told(page, "Saved")
    gone, new = moved(PAPER, path.read_text())
    assert gone == new
    assert len(new) == count
