"""Tests of deviations.json, the only list of intended differences from Strapi. Recordings and docs refer to
its rows.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.differential.checks import CHECKS, Context
from bench.differential.deviations import read_deviations
from bench.differential.difference import Difference
from bench.differential.model import read_model
from bench.differential.request import Answer, Request
from bench.differential.shapes import Shapes
from bench.differential.sites import SITES
from bench.differential.world import World
from tests.conformance.conversation import SCENARIOS, read_scenario

ENTRIES = json.loads((Path(__file__).parent / "deviations.json").read_text(encoding="utf-8"))


def test_every_deviation_of_a_recorded_step_has_an_entry() -> None:
    steps = [step for name in SCENARIOS for step in read_scenario(name)["steps"]]
    told = {step["deviation"] for step in steps if "deviation" in step}
    assert told == {text for entry in ENTRIES for text in entry.get("said", [])}


def test_an_entry_says_what_both_do_and_why() -> None:
    for entry in ENTRIES:
        assert all(entry[key] for key in ("name", "about", "strapi", "bifolio", "why")), entry
    names = [entry["name"] for entry in ENTRIES]
    assert len(set(names)) == len(names)


PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
SHAPES_MODEL = read_model(SITES["things"])
SHAPES = Shapes(SHAPES_MODEL)
REQUESTS = (
    Request("GET", "/api/things"),
    Request("POST", "/api/things", body={"data": {}}),
    Request("PUT", "/api/things/x", body={"data": {}}),
    Request("GET", "/api/users"),
)
KEYS = {"name", "about", "strapi", "bifolio", "why", "said", "match", "unmet", "aside", "lasting"}
PATTERNS = {"request", "where", "kind", "there", "here", "refused there", "refused here"}


def masks() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each mask (the pattern of differences that a row explains) with the name of its row."""
    for entry in ENTRIES:
        yield from ((entry["name"], mask) for mask in entry.get("match", []))


def test_every_entry_is_a_row_of_the_page_and_every_row_an_entry() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition("<!-- table: deviations -->")[2].partition("<!-- end of table -->")[0]
    rows = [
        re.split(r"(?<!\\)\|", line)[1].strip().replace("\\|", "|") for line in table.strip().splitlines()[2:]
    ]
    assert rows == [entry["about"] for entry in ENTRIES]


def test_a_row_has_masks_or_says_why_no_run_meets_it() -> None:
    for entry in ENTRIES:
        assert set(entry) <= KEYS, entry["name"]
        assert bool(entry.get("match")) != bool(entry.get("unmet")), entry["name"]


def test_a_mask_says_how_answers_differ_and_what_else_there_is_to_it() -> None:
    """A mask must name a kind of difference and at least one more condition. A kind or a request alone would
    also match differences that its row does not describe.
    """
    for name, mask in masks():
        assert set(mask) <= PATTERNS | {"instead", "check", "without"}, name
        if "instead" in mask:
            assert set(mask) == {"instead"}, name
            continue
        assert "kind" in mask, name
        assert len(mask) > 2 or "there" in mask or "where" in mask, (name, mask)
        assert "check" not in mask or mask["check"] in CHECKS, name


def test_no_mask_explains_an_ordinary_difference() -> None:
    """No mask may match a different text, number, list or status in the response to an ordinary request."""
    world = World(SHAPES_MODEL)
    for name, where, kind, theirs, ours in (
        ("value", "data.<text>", "value", "a", "b"),
        ("type", "data.<number>", "type", 1, None),
        ("list", "data", "fewer members", ["doc:1"], []),
        ("relation", "data[].<relation many>", "members", ["doc:1"], ["doc:2"]),
        ("itself", "data[].<relation one>", "itself", None, {"documentId": "a"}),
        ("status", "status", "status", "200", "404 NotFoundError: Not Found"),
        ("message", "error.message", "message", "one", "other"),
        ("header", "header.content-type", "header", "text/plain", "text/html"),
    ):
        for request in REQUESTS:
            context = Context([request], Answer(200, {}), Answer(200, {}), SHAPES, world, {}, {})
            text = f"{request.method} {request.path}? by full"
            found = Difference(where, kind, theirs, ours)
            told = [d.name for d in read_deviations() if d.explains(text, found, where, context)]
            assert told == [], name


def test_patterns_can_be_read() -> None:
    for _, mask in masks():
        for key, pattern in mask.items():
            for one in [pair[0] for pair in pattern] if key == "instead" else [pattern]:
                re.compile(one)
