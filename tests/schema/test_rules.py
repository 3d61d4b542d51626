"""`options.rules` and `deprecated` in schemas: what is refused, and where."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.schema.load import read_all_content_types
from tests.sites import STRING, collection, component, write

TYPES = component("shared.seo", {"metaTitle": STRING})
ATTRIBUTES = {"title": STRING, "seo": {"type": "component", "component": "shared.seo"}}
WRONG: dict[str, tuple[Any, str]] = {
    "no list": ({"path": "title"}, "options.rules must be a list"),
    "no object": (["title"], "options.rules must contain only objects"),
    "an unknown key": (
        [{"path": "title", "maxLenght": 6}],
        'unknown key "maxLenght" in options.rules. Did you mean "maxLength"?',
    ),
    "another type": (
        [{"path": "title", "maxLength": "6"}],
        'maxLength in options.rules must be a whole number (found "6")',
    ),
    "a boolean": (
        [{"path": "title", "maxLength": True}],
        "maxLength in options.rules must be a whole number (found true)",
    ),
    "no path": ([{"maxLength": 6}], "a rule in options.rules has no path"),
    "no limit": ([{"path": "title"}], 'the rule for "title" in options.rules has no limit'),
    "a severity": (
        [{"path": "title", "required": True, "severity": "off"}],
        'must be "warning" or "error" (found "off")',
    ),
    "a pattern": ([{"path": "title", "regex": "("}], 'the regex of the rule for "title" is invalid'),
    "an unknown attribute": (
        [{"path": "titel", "required": True}],
        'the rule for "titel" has no effect, because api::page.page has no "titel". Did you mean "title"?',
    ),
    "an unknown attribute of a component": (
        [{"path": "seo.metatitle", "required": True}],
        'the rule for "seo.metatitle" has no effect, because seo has no "metatitle". '
        'Did you mean "metaTitle"?',
    ),
    "an attribute without parts": ([{"path": "title.x", "required": True}], 'because title has no "x"'),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_rule_that_can_not_be(tmp_path: Path, name: str) -> None:
    rules, message = WRONG[name]
    write(tmp_path, {**TYPES, **collection("page", ATTRIBUTES, rules=rules)})
    _, errors = read_all_content_types(tmp_path)
    (error,) = errors
    assert message in str(error)
    assert (error.line or 0) > 5


def test_rules_are_read(tmp_path: Path) -> None:
    rules = [{"path": "seo.metaTitle", "maxLength": 60, "severity": "error", "message": "short"}]
    write(tmp_path, {**TYPES, **collection("page", ATTRIBUTES, rules=rules)})
    schema, errors = read_all_content_types(tmp_path)
    assert errors == []
    (rule,) = schema.types["api::page.page"].rules
    assert (rule.path, rule.limits.max_length, rule.severity, rule.message) == (
        ("seo", "metaTitle"),
        60,
        "error",
        "short",
    )


def test_deprecated_is_true_or_text(tmp_path: Path) -> None:
    write(tmp_path, collection("page", {"title": {**STRING, "deprecated": 1}}))
    _, (error,) = read_all_content_types(tmp_path)
    assert 'deprecated of attribute "title" must be true, or text that says what to use instead' in str(error)
    assert json.loads((tmp_path / "content-types/page.json").read_text())
