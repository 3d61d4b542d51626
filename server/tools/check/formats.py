"""The result of a check for programs: as JSON, as annotations of GitHub Actions, as SARIF 2.1.0."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from server import __version__
from server.problems import RULES, Problem
from server.site.check.fixes import Fix
from server.site.check.key_fixes import KeyFix
from server.site.check.survey import Survey

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# Rules whose problems are warnings, as SARIF wants to know beforehand.
_WARNINGS = frozenset(RULES) - {"settings", "schema", "unreadable", "syntax", "value", "duplicate-id"}


def as_json(found: Survey, prefix: str) -> str:
    """One JSON object, with paths relative to the site. Its keys are a public format (docs/check.md)."""
    made = {
        "version": 1,
        "summary": {"files": found.files, "errors": found.errors, "warnings": found.warnings},
        "fixed": [_as_fixed(fix) for fix in found.fixed],
        "problems": [problem.as_json() for problem in found.problems],
    }
    return json.dumps(made, indent=2, ensure_ascii=False)


def _as_fixed(fix: Fix | KeyFix) -> Mapping[str, Any]:
    key = ".".join(map(str, fix.at))
    return {"path": fix.path, "key": key, "before": fix.old or None, "after": fix.new}


def as_github(found: Survey, prefix: str) -> str:
    """One workflow command for each problem, which GitHub shows beside its line."""
    return "\n".join(_as_command(problem, prefix) for problem in found.problems)


def _as_command(problem: Problem, prefix: str) -> str:
    properties = {"file": prefix + problem.path, "line": problem.line or 1, "col": problem.column}
    properties["title"] = f"quire: {problem.rule}"
    told = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value)
    return f"::{problem.severity} {told}::{_data(_sentence(problem))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sentence(problem: Problem) -> str:
    return problem.message + (f" ({problem.fix})" if problem.fix else "")


def as_sarif(found: Survey, prefix: str) -> str:
    """A SARIF log of one run, as code scanning services read it."""
    rules = list(RULES)
    driver = {
        "name": "quire",
        "semanticVersion": __version__,
        "rules": [
            {
                "id": rule,
                "shortDescription": {"text": sentence.replace("`", "")},
                "defaultConfiguration": {"level": "warning" if rule in _WARNINGS else "error"},
            }
            for rule, sentence in RULES.items()
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_as_result(problem, prefix, rules) for problem in found.problems],
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
        "partialFingerprints": {"quire/v1": _fingerprint(problem)},
    }


def _artifact(problem: Problem, prefix: str) -> Mapping[str, str]:
    """A file by its path relative to the current folder, or by its absolute path if it is elsewhere."""
    if prefix.startswith(("/", "../")):
        return {"uri": Path(prefix, problem.path).resolve().as_uri()}
    return {"uri": quote(prefix + problem.path), "uriBaseId": "%SRCROOT%"}


def _fingerprint(problem: Problem) -> str:
    """A digest that stays the same for a problem when other lines of its file change."""
    told = "\0".join((problem.rule, problem.path, problem.message))
    return hashlib.sha256(told.encode()).hexdigest()[:32]


FORMATS: Mapping[str, Callable[[Survey, str], str]] = {
    "json": as_json,
    "github": as_github,
    "sarif": as_sarif,
}
