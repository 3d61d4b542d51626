"""Rules for single documents: images, headings, deprecated attributes and `options.rules`."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.problems import Problem
from tests.site.check.sites import TYPES, check, page, places
from tests.sites import STRING, collection, component

# --- prose ----------------------------------------------------------------------------------------


def test_images_without_alternative_text(tmp_path: Path) -> None:
    image = {"name": "a", "url": "https://a.b/c.png", "hash": "a", "ext": ".png", "mime": "image/png"}
    image |= {"provider": "local", "createdAt": "2024", "updatedAt": "2024"}
    blocks = [
        {
            "type": "image",
            "image": {**image, "width": 1, "height": 1, "size": 1, **more},
            "children": [{"type": "text", "text": ""}],
        }
        for more in ({}, {"alternativeText": "A chart"}, {"alternativeText": None})
    ]
    body = "![](https://a.b/c.png) ![a](https://a.b/d.png)\n\n"
    body += "<img src='https://a.b/e'> <img alt='' src='https://a.b/f'>"
    files = {
        "content/pages/x.md": page(body),
        "content/pages/y.json": json.dumps({"title": "A", "blocks": blocks}, indent=1),
    }
    problems = check(tmp_path, files, "missing-alt: warning")
    assert [path for path, *_ in places(problems, "missing-alt")] == ["pages/x.md"] * 2 + ["pages/y.json"] * 2
    assert places(problems, "missing-alt")[:2] == [("pages/x.md", 5, 5), ("pages/x.md", 7, 11)]
    assert check(tmp_path, {}) == []  # The rule is off by default.


def test_images_in_media_attributes_without_alternative_text(tmp_path: Path) -> None:
    picture = b"\x89PNG\r\n\x1a\n"
    part = {"picture": {"type": "media"}}
    files = {
        **collection("story", {"part": {"type": "component", "component": "shared.picture"}}),
        **component("shared.picture", part),
        **{f"content/uploads/{name}": picture for name in ("a.png", "b.png", "c.png")},
        "content/uploads/b.png.yaml": "alternativeText: A chart\n",
        "content/uploads/c.png.yaml": "alternativeText: ' '\n",
        "content/uploads/d.txt": "text",
        "content/pages/x.md": page("", "cover:", "- a.png", "- b.png", "- c.png", "- d.txt", "- lost.png"),
        "content/pages/x.fr.md": page("", "cover: [a.png] # bifolio-ignore: missing-alt"),
        "content/pages/y.draft.md": page("", "cover: [a.png]"),
        "content/storys/z.yaml": "part: {picture: a.png}\n",
    }
    problems = check(tmp_path, files, "missing-alt: warning", "shared: off", "translation: off")
    assert places(problems, "missing-alt") == [
        ("pages/x.md", 4, 3), ("pages/x.md", 6, 3), ("pages/y.draft.md", 3, 9), ("storys/z.yaml", 1, 17),
    ]  # fmt: skip
    assert str(problems[-1]) == (
        "content/storys/z.yaml:1:17: part.picture: the image a.png has no alternative text. "
        "Add alternativeText to content/uploads/a.png.yaml."
    )
    assert problems[-1].at == ("part", "picture")


def test_headings_that_skip_a_level(tmp_path: Path) -> None:
    files = {
        "content/pages/x.md": page("### Any first\n\n# A\n\n## B\n\n#### C\n\n## D\n\n### E"),
        "content/notes/x.yaml": "text: |\n  # A\n\n  ### B\n",
    }
    problems = check(tmp_path, files, "heading-jump: error")
    assert places(problems, "heading-jump") == [("notes/x.yaml", 4, 7), ("pages/x.md", 11, 1)]
    assert str(problems[1]).endswith("a heading of level 4 follows a heading of level 2. Use level 3.")


# --- deprecated attributes ------------------------------------------------------------------------


def test_deprecated_attributes_with_values(tmp_path: Path) -> None:
    types = {
        **collection(
            "page",
            {
                "title": STRING,
                "lead": {**STRING, "deprecated": "use title"},
                "old": {"type": "boolean", "deprecated": True, "default": False},
                "fine": {**STRING, "deprecated": False},
                "part": {"type": "component", "component": "shared.text"},
            },
        ),
        **component(
            "shared.text", {"label": {**STRING, "deprecated": "use title of the page"}, "text": STRING}
        ),
    }
    files = {
        **types,
        "content/pages/a.yaml": "title: A\nlead: B\nfine: C\nold: true\npart:\n  label: D\n  text: E\n",
        "content/pages/b.yaml": "title: A\nlead:\nold: false\npart: {}\n",
    }
    problems = check(tmp_path, files)
    assert [str(problem) for problem in problems] == [
        "content/pages/a.yaml:2:7: lead is deprecated. Use title.",
        "content/pages/a.yaml:4:6: old is deprecated. Remove the value.",
        "content/pages/a.yaml:6:10: part.label is deprecated. Use title of the page.",
    ]


# --- rules in schemas -----------------------------------------------------------------------------

ATTRIBUTES: dict[str, Any] = {
    "title": STRING,
    "count": {"type": "integer"},
    "tags": {"type": "json"},
    "seo": {"type": "component", "component": "shared.seo"},
    "parts": {"type": "dynamiczone", "components": ["shared.seo", "shared.text"]},
    "faq": {"type": "component", "component": "shared.text", "repeatable": True},
}
SEO = component("shared.seo", {"metaTitle": STRING, "robots": STRING})


def ruled(
    root: Path, text: str, *rules: dict[str, Any], name: str = "a.yaml", levels: str = ""
) -> list[Problem]:
    types = {**TYPES, **SEO, **collection("page", ATTRIBUTES, drafts=True, rules=list(rules))}
    return check(root, {**types, f"content/pages/{name}": text}, *([levels] if levels else []))


# A rule, the text of a document, and what the check says after the position.
RULED: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "a length": (
        {"path": "title", "maxLength": 3},
        "title: ABCD",
        ["1:8: title must be at most 3 characters"],
    ),
    "a length that is right": ({"path": "title", "maxLength": 3}, "title: ABC", []),
    "in a component": (
        {"path": "seo.metaTitle", "minLength": 3},
        "seo:\n  metaTitle: A",
        ["2:14: seo.metaTitle must be at least 3 characters"],
    ),
    "a message": (
        {"path": "seo.metaTitle", "minLength": 3, "regex": "^x", "message": "show three to sixty"},
        "seo:\n  metaTitle: A",
        ["2:14: seo.metaTitle: show three to sixty"],
    ),
    "required": ({"path": "seo.metaTitle", "required": True}, "title: A", ["seo.metaTitle is required"]),
    "required in a list that is empty": ({"path": "faq.label", "required": True}, "title: A", []),
    "required in a list": (
        {"path": "faq.label", "required": True},
        "faq:\n- label: A\n- text: B",
        ["3:3: faq.1.label is required"],
    ),
    "in a zone": (
        {"path": "parts.robots", "enum": ["all", "none"]},
        "parts:\n- __component: shared.text\n- __component: shared.seo\n  robots: nothing",
        ['4:11: parts.1.robots must be one of all, none (found "nothing")'],
    ),
    "a pattern": (
        {"path": "title", "regex": "^[^!]*$"},
        "title: A!",
        ['1:8: title must match the following: "/^[^!]*$/"'],
    ),
    "a number": ({"path": "count", "max": 2.5}, "count: 3", ["1:8: count must be less than or equal to 2.5"]),
    "a number of items": (
        {"path": "faq", "min": 2},
        "faq:\n- label: A",
        ["1:1: faq field must have greater than or equal to 2 items"],
    ),
}


@pytest.mark.parametrize("name", RULED)
def test_a_rule_in_a_schema(tmp_path: Path, name: str) -> None:
    rule, text, wanted = RULED[name]
    problems = ruled(tmp_path, text + "\n", rule)
    assert [str(p).removeprefix("content/pages/a.yaml:").strip() for p in problems] == wanted


def test_drafts_may_be_incomplete(tmp_path: Path) -> None:
    rules = ({"path": "title", "minLength": 5, "maxLength": 8}, {"path": "count", "required": True})
    assert ruled(tmp_path, "title: A\n", *rules, name="a.draft.yaml") == []
    assert len(ruled(tmp_path, "title: Much too long\n", *rules, name="a.draft.yaml")) == 1


def test_a_rule_has_its_own_severity(tmp_path: Path) -> None:
    rule = {"path": "title", "maxLength": 3, "severity": "error"}
    assert [p.severity for p in ruled(tmp_path, "title: Long\n", rule)] == ["error"]
    assert [p.severity for p in ruled(tmp_path, "title: Long\n", rule, levels="content-rule: warning")] == [
        "error"
    ]
    assert ruled(tmp_path, "title: Long\n", rule, levels="content-rule: off") == []
    assert ruled(tmp_path, "title: Long # bifolio-ignore: content-rule\n", rule) == []
