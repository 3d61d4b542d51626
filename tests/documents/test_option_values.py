"""Warnings about options of attributes that no value satisfies, or that have no effect."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.site.check.survey import survey_site
from server.site.site import Site
from tests.sites import STRING, collection, write

PATH = "content-types/note.json"
INVALID: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "decimal", "default": "1,5"}, "default", 'must be a number (found "1,5")'),
    ({"type": "integer", "default": "ten"}, "default", 'must be a whole number (found "ten")'),
    ({"type": "integer", "default": 1.5}, "default", "must be a whole number (found 1.5)"),
    ({"type": "date", "default": "tomorrow"}, "default", 'such as 2024-02-29 (found "tomorrow")'),
    ({"type": "boolean", "default": "maybe"}, "default", 'must be true or false (found "maybe")'),
    ({"type": "enumeration", "enum": ["a"], "default": "c"}, "default", 'must be one of a (found "c")'),
    ({"type": "integer", "default": 3, "min": 5}, "default", "must be greater than or equal to 5 (found 3)"),
    ({"type": "string", "default": "long", "maxLength": 3}, "default", "must be at most 3 characters"),
    ({"type": "email", "default": "me"}, "default", 'must be a valid email (found "me")'),
    ({"type": "integer", "min": 10, "max": 5}, "min", "is 10, but max is 5"),
    ({"type": "string", "minLength": 10, "maxLength": 5}, "minLength", "is 10, but maxLength is 5"),
    ({"type": "uid", "targetField": "picture"}, "targetField", '"picture" is of type media'),
]  # fmt: skip
VALID: list[dict[str, Any]] = [
    {"type": "decimal", "default": "1.5", "max": "1.5"},
    {"type": "float", "default": 2, "min": 2, "max": 2},
    {"type": "boolean", "default": False},
    {"type": "date", "default": "2024-02-29"},
    {"type": "integer", "default": ""},
    {"type": "uid", "targetField": "title"},
    {"type": "string", "default": "", "minLength": 1, "maxLength": 1},
]


def site_with(root: Path, attribute: dict[str, Any]) -> Path:
    attributes = {"title": STRING, "picture": {"type": "media"}, "other": attribute}
    write(root, collection("note", attributes))
    return root


@pytest.mark.parametrize(("attribute", "option", "message"), INVALID)
def test_an_option_that_can_not_be_right_is_a_warning(
    tmp_path: Path, attribute: dict[str, Any], option: str, message: str
) -> None:
    root = site_with(tmp_path, attribute)
    site = Site(root)
    site.load()
    (problem,) = site.problems
    assert problem.severity == "warning"
    assert problem.message.startswith(f'{option} of attribute "other" ')
    assert message in problem.message
    part = (root / PATH).read_text().partition('"other"')
    line = (part[0] + part[2].partition(f'"{option}"')[0]).count("\n") + 1
    assert (problem.path, problem.line) == (PATH, line)
    assert [each.message for each in survey_site(site).problems] == [problem.message]


@pytest.mark.parametrize("attribute", VALID)
def test_options_that_values_can_satisfy_are_none(tmp_path: Path, attribute: dict[str, Any]) -> None:
    site = Site(site_with(tmp_path, attribute))
    site.load()
    assert site.problems == ()
    assert json.loads((tmp_path / PATH).read_text())["attributes"]["other"] == attribute
