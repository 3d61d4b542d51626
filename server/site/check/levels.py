"""Severities of problems, and problems that are ignored.

A problem can be ignored in the settings, or with a comment such as `bifolio-ignore: RULE`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from server.config.model import Settings
from server.formats.tree import SyntaxProblem
from server.problems import CONTENT_RULE, Problem
from server.site.check.audit import Audit

_COMMENT = re.compile(r"bifolio-ignore:[ \t]*([a-z-]+(?:[ \t]*,[ \t]*[a-z-]+)*)")


def apply_severities(audit: Audit, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems that are not ignored, with the severities that the settings define.

    Errors can be ignored only if they come from content rules.
    """
    settings, ignored = audit.settings, dict[str, dict[int, frozenset[str]]]()
    for problem in problems:
        if problem.severity == "error" and problem.rule != CONTENT_RULE:
            yield problem
        elif not settings.ignores(problem):
            if problem.path not in ignored:
                ignored[problem.path] = ignored_rules_by_line(_text_of(audit, problem.path))
            if not is_ignored(problem, ignored[problem.path]):
                yield apply_severity(settings, problem)


def apply_severity(settings: Settings, problem: Problem) -> Problem:
    level = settings.check.rules.get(problem.rule)
    if level is None or level == "off" or problem.rule == CONTENT_RULE:
        return problem
    return replace(problem, severity=level)


def ignored_rules_by_line(text: str) -> dict[int, frozenset[str]]:
    """Return the rules that `bifolio-ignore` comments name, by line number."""
    if "bifolio-ignore:" not in text:
        return {}
    found: dict[int, frozenset[str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if (comment := _COMMENT.search(line)) is not None:
            found[number] = frozenset(rule.strip() for rule in comment[1].split(","))
    return found


def is_ignored(problem: Problem, ignored: dict[int, frozenset[str]]) -> bool:
    """Return True if a comment on the problem's line, or on the line above, names the problem's rule.

    If the problem has no line, a comment anywhere in the file is enough.
    """
    if problem.line is None:
        return any(problem.rule in rules for rules in ignored.values())
    return any(problem.rule in ignored.get(line, ()) for line in (problem.line, problem.line - 1))


def _text_of(audit: Audit, path: str) -> str:
    try:
        return audit.text(path)
    except (OSError, SyntaxProblem):
        return ""
