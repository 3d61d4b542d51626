"""A site with prose for the tests of rules, and the problems that a check of it finds."""

from pathlib import Path
from typing import Any

from server.problems import Problem
from server.site.check.survey import survey_site
from tests.sites import STRING, Files, collection, component, opened, translated, write

PAGE: dict[str, Any] = {
    "title": STRING,
    "body": translated({"type": "richtext"}),
    "blocks": {"type": "blocks"},
    "cover": {"type": "media", "multiple": True},
    "parts": {"type": "dynamiczone", "components": ["shared.text"]},
}
TYPES: dict[str, str] = {
    **collection("page", PAGE, drafts=True, localized=True),
    **collection("note", {"text": {"type": "richtext"}}),
    **component("shared.text", {"text": {"type": "richtext"}, "label": STRING}),
}
SETTINGS = "locales: {default: en, available: [en, fr]}\n"


def page(body: str, *lines: str) -> str:
    """Return a Markdown file with the title A, in which the body begins in line 5."""
    return "\n".join(("---", "title: A", *lines, "---", "", body, ""))


def check(root: Path, files: Files, *rules: str) -> list[Problem]:
    """Return the problems in a site of these files. `rules` are levels such as `missing-alt: error`."""
    levels = "check: {rules: {" + ", ".join(rules) + "}}\n" if rules else ""
    write(root, {**TYPES, "site.yaml": SETTINGS + levels, **files})
    return list(survey_site(opened(root)).problems)


def places(problems: list[Problem], rule: str) -> list[tuple[str, int | None, int | None]]:
    """Return the path in content/, line and column of each problem of a rule."""
    return [(p.path.removeprefix("content/"), p.line, p.column) for p in problems if p.rule == rule]
