"""Levels of rules, and problems that a site accepts."""

from pathlib import Path

import pytest

from server.config.reader import survey_settings
from server.problems import RULES
from tests.site.check.sites import check, page, places
from tests.sites import write


def test_every_rule_that_is_a_warning_has_a_level(tmp_path: Path) -> None:
    for rule in RULES.values():
        write(tmp_path, {"site.yaml": f"check: {{rules: {{{rule.name}: error}}}}\n"})
        settings, wrong = survey_settings(tmp_path)
        assert bool(wrong) == rule.is_fixed, rule
        assert settings.severity_of(rule.name) == "error"


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("{broken-links: off}", 'unknown rule "broken-links" in check.rules. Did you mean "broken-link"?'),
        ("{broken-link: warn}", 'check.rules.broken-link must be "off", "warning" or "error" (found "warn")'),
        ("{syntax: off}", 'the level of the rule "syntax" can\'t be changed'),
        ("[broken-link]", "check.rules must be a mapping"),
    ],
)
def test_a_level_that_can_not_be(tmp_path: Path, levels: str, message: str) -> None:
    write(tmp_path, {"site.yaml": f"check:\n  rules: {levels}\n"})
    _, (error,) = survey_settings(tmp_path)
    assert message in str(error)
    assert error.line == 2


def test_old_rules_have_levels_too(tmp_path: Path) -> None:
    files = {"content/pages/x.md": page("", "colour: red")}
    assert [p.severity for p in check(tmp_path, files)] == ["warning"]
    assert [p.severity for p in check(tmp_path, files, "unknown-key: error")] == ["error"]
    assert check(tmp_path, files, "unknown-key: off") == []


def test_a_comment_accepts_a_problem(tmp_path: Path) -> None:
    body = (
        "[a](a.md) <!-- bifolio-ignore: broken-link -->\n\n"
        "{/* bifolio-ignore: missing-alt, broken-link */}\n[b](b.md)\n\n[c](c.md)\n\n"
        "<!-- bifolio-ignore: missing-alt -->\n[d](d.md)"
    )
    files = {
        "content/pages/x.md": page(body, "colour: red # bifolio-ignore: unknown-key"),
        "content/pages/y.yaml": "# bifolio-ignore: unknown-key\ncolour: red\ncolor: red\n",
        "content/pages/z.md": "---\ntitle: A: B # bifolio-ignore: syntax\n---\n",
    }
    problems = check(tmp_path, files)
    assert places(problems, "broken-link") == [("pages/x.md", 11, 5), ("pages/x.md", 14, 5)]
    assert places(problems, "unknown-key") == [("pages/y.yaml", 3, 1)]
    assert places(problems, "syntax") == [("pages/z.md", 2, 9)]


def test_paths_accept_problems_of_a_level_above(tmp_path: Path) -> None:
    settings = "check: {rules: {broken-link: error}, ignore: {broken-link: [content/pages/x.md]}}\n"
    files = {
        "content/pages/x.md": page("[a](b.md)"),
        "content/pages/y.md": page("[a](b.md)"),
        "site.yaml": settings,
    }
    assert places(check(tmp_path, files), "broken-link") == [("pages/y.md", 5, 5)]
