"""Output formats of `bifolio check`."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from server import __version__
from server.errors import as_sentence, place_of, with_fix
from server.problems import RULES, Problem
from server.site.check.fixes import Fix, FixResult, KeyFix
from server.site.check.survey import Survey
from server.tools.causes import MAX_EXAMPLES, ProblemGroup, group_by_cause
from server.tools.terminal import Part, Style, printable

# --- formats --------------------------------------------------------------------------------------

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SARIF_LEVELS = {"error": "error", "warning": "warning", "off": "none"}


def as_json(survey: Survey, prefix: str) -> str:
    """Return the problems in the JSON format that docs/check.md describes."""
    made = {
        "version": 1,
        "summary": {"files": survey.file_count, "errors": survey.errors, "warnings": survey.warnings},
        "fixed": [_as_fixed(fix) for fix in survey.applied_fixes],
        "problems": [problem.as_json() for problem in survey.problems],
    }
    return json.dumps(made, indent=2, ensure_ascii=False)


def _as_fixed(fix: Fix | KeyFix) -> Mapping[str, Any]:
    key = ".".join(map(str, fix.key_path))
    return {"path": fix.path, "key": key, "before": fix.old or None, "after": fix.new}


def as_github(survey: Survey, prefix: str) -> str:
    return "\n".join(_as_command(problem, prefix) for problem in survey.problems)


def _as_command(problem: Problem, prefix: str) -> str:
    properties = {"file": prefix + problem.path, "line": problem.line or 1, "col": problem.column}
    properties["title"] = f"bifolio: {problem.rule}"
    parameters = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value)
    return f"::{problem.severity} {parameters}::{_data(_sentence(problem))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sentence(problem: Problem) -> str:
    return with_fix(problem.message, problem.fix)


def as_sarif(survey: Survey, prefix: str) -> str:
    """Return the problems as a SARIF log."""
    rules = list(RULES)
    driver = {
        "name": "bifolio",
        "semanticVersion": __version__,
        "rules": [
            {
                "id": rule.name,
                "shortDescription": {"text": rule.description.replace("`", "")},
                "help": {"text": rule.fix.replace("`", "")},
                "defaultConfiguration": {"level": _SARIF_LEVELS[rule.default_severity]},
            }
            for rule in RULES.values()
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_as_result(problem, prefix, rules) for problem in survey.problems],
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False)


def _as_result(problem: Problem, prefix: str, rules: list[str]) -> Mapping[str, Any]:
    region = {"startLine": problem.line or 1}
    if problem.column:
        region["startColumn"] = problem.column
    return {
        "ruleId": problem.rule,
        "ruleIndex": rules.index(problem.rule),
        "level": problem.severity,
        "message": {"text": _sentence(problem)},
        "locations": [
            {"physicalLocation": {"artifactLocation": _artifact(problem, prefix), "region": region}}
        ],
        "partialFingerprints": {"bifolio/v1": _fingerprint(problem)},
    }


def _artifact(problem: Problem, prefix: str) -> Mapping[str, str]:
    # The URI is relative to the current folder, or absolute if the file is outside it.
    if prefix.startswith(("/", "../")):
        return {"uri": Path(prefix, problem.path).resolve().as_uri()}
    return {"uri": quote(prefix + problem.path), "uriBaseId": "%SRCROOT%"}


def _fingerprint(problem: Problem) -> str:
    # The line number is left out, because unrelated changes can move the problem to a different line.
    identity = "\0".join((problem.rule, problem.path, problem.message))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def as_gitlab(survey: Survey, prefix: str) -> str:
    """Return the problems as a GitLab code quality report."""
    issues = [
        {
            "description": _sentence(problem),
            "check_name": problem.rule,
            "fingerprint": _unique_fingerprint(problem),
            "severity": "major" if problem.severity == "error" else "minor",
            "location": {"path": prefix + problem.path, "lines": {"begin": problem.line or 1}},
        }
        for problem in survey.problems
    ]
    return json.dumps(issues, indent=2, ensure_ascii=False)


def _unique_fingerprint(problem: Problem) -> str:
    # Include the line number, because GitLab requires unique fingerprints.
    return hashlib.sha256(f"{_fingerprint(problem)}\0{problem.line}".encode()).hexdigest()[:32]


FORMATS: Mapping[str, Callable[[Survey, str], str]] = {
    "json": as_json,
    "github": as_github,
    "gitlab": as_gitlab,
    "sarif": as_sarif,
}


# --- report ---------------------------------------------------------------------------------------

_SIGNS: Mapping[str, tuple[str, Style]] = {
    "error": ("✗", {"fg": "red"}),
    "warning": ("!", {"fg": "yellow"}),
}
_PLAIN: Style = {}
_QUIET: Style = {"dim": True}
_PATH: Style = {"bold": True}


def report(survey: Survey, prefix: str, elapsed_s: float, *, list_all: bool = False) -> Iterator[list[Part]]:
    """Yield the lines of a report for the terminal.

    Large groups of problems with the same cause are summarized, unless `list_all` is set.
    """
    large = (
        []
        if list_all
        else [cause for cause in group_by_cause(survey.problems, survey.audit) if cause.is_large]
    )
    summarized = {problem for cause in large for problem in cause.problems}
    for cause in large:
        yield from _cause_lines(cause, prefix)
        yield []
    others = [problem for problem in survey.problems if problem not in summarized]
    yield from (_problem_line(problem, prefix) for problem in others)
    if others:
        yield []
    yield _summary(survey, elapsed_s)
    if large:
        yield [("  Run bifolio check --all to list each of them.", _PLAIN)]
    if survey.fixable_count:
        yield [(f"  Run bifolio check --fix to fix {count_text(survey.fixable_count, 'value')}.", _PLAIN)]


def _cause_lines(cause: ProblemGroup, prefix: str) -> Iterator[list[Part]]:
    sign, style = _SIGNS[cause.severity]
    times = f"{len(cause.problems):,} times"
    yield [(f"{sign} ", style), (f"{times}: ", _PATH), (printable(cause.message), _PLAIN)]
    is_same = len({problem.message for problem in cause.problems}) == 1
    for problem in cause.examples:
        text = "" if is_same else f": {printable(problem.message)}"
        yield [(f"    {_place(problem, prefix)}", _QUIET), (text, _PLAIN)]
    yield [(f"    and {len(cause.problems) - MAX_EXAMPLES:,} more", _QUIET)]
    if cause.advice:
        yield [(f"  {printable(as_sentence(cause.advice))}", _QUIET)]


def _problem_line(problem: Problem, prefix: str) -> list[Part]:
    sign, style = _SIGNS[problem.severity]
    text = f": {_sentence(problem)}"
    return [(f"{sign} ", style), (_place(problem, prefix), _PATH), (printable(text), _PLAIN)]


def _place(problem: Problem, prefix: str) -> str:
    return printable(place_of(prefix + problem.path, problem.line, problem.column))


def _summary(survey: Survey, seconds: float) -> list[Part]:
    checked = f"{count_text(survey.file_count, 'file')} checked in {seconds:.2f} s"
    if survey.site is None:
        checked = "no document was checked"
    if not survey.problems:
        return [("✓ ", {"fg": "green"}), (f"no problems; {checked}", _PLAIN)]
    sign, style = _SIGNS["error" if survey.errors else "warning"]
    counts = [
        count_text(n, what) for n, what in ((survey.errors, "error"), (survey.warnings, "warning")) if n
    ]
    files = len({problem.path for problem in survey.problems})
    return [
        (f"{sign} ", style),
        (f"{' and '.join(counts)} in {count_text(files, 'file')}; {checked}", _PLAIN),
    ]


def count_text(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("s" if n != 1 else "")


def fix_lines(fix_result: FixResult, prefix: str) -> Iterator[list[Part]]:
    """Yield lines that list the applied and the rejected fixes, file by file."""
    for path, fixes in groupby(fix_result.fixes, key=lambda fix: fix.path):
        yield [(printable(prefix + path), _PATH)]
        yield from ([("  ✓ ", {"fg": "green"}), (printable(_fix_line(fix)), _PLAIN)] for fix in fixes)
    for path, reason in fix_result.rejected.items():
        yield [(printable(prefix + path), _PATH)]
        yield [("  ! ", {"fg": "yellow"}), (printable(reason), _PLAIN)]
    if fix_result.fixes or fix_result.rejected:
        yield []


def _fix_line(fix: Fix | KeyFix) -> str:
    name = ".".join(map(str, fix.key_path))
    if isinstance(fix, Fix) and fix.line is not None:
        return f"{name}: removed from line {fix.line}; the last one stays"
    if fix.key_path[-1] == fix.old:  # This fix renames a key.
        return f"{name} → {fix.new}"
    return (
        f"{name}: {fix.old} → {'null' if fix.new is None else fix.new}" if fix.old else f"{name}: {fix.new}"
    )
