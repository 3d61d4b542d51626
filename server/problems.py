"""Problems: what is wrong in the files of a site, without keeping the other files from being served."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from server.errors import place_of, with_fix

Severity = Literal["error", "warning"]

# The rules by name, with what a problem of each says; docs/check.md shows this table.
RULES: Mapping[str, str] = {
    "settings": "`site.yaml` can't be used, or names what is not there.",
    "schema": "A content type or component can't be used, or has a key that looks mistyped.",
    "unreadable": "A file, folder or link can't be read.",
    "syntax": "The text is no YAML, JSON, TOML or Markdown with front matter.",
    "value": "A value is not of its attribute's type.",
    "option": "A value breaks an option of its attribute: required, a length, a bound, a pattern.",
    "unknown-key": "A key that the type does not have; it is not served.",
    "dangling": "A relation or a media path points to nothing; it reads as absent.",
    "repeated-key": "A key stands twice in one mapping; only its last value is served.",
    "duplicate-id": "Two files claim one document; the first by path is served.",
    "duplicate-value": "Two documents have one value of an attribute that is unique, or a `uid`.",
    "draft": "A file says that it is a draft, and its type does not go by that: it is served as published.",
    "missing-id": "A file says no `documentId`, and another locale or draft of its name does.",
    "file-name": "A name says draft, or a locale, where there is none: the file is a document of its own.",
    "translation": "A document is not there in the default locale; with `--translations`, in any other.",
    "shared": "The locales of a document say different things of an attribute that they share.",
    "stale-draft": "A draft is older than what is published.",
    "interrupted": "A write was cut off with its process; it has been finished, dropped, or put aside.",
    "unclaimed": "No type claims the file.",
}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with one file.

    An `error` keeps the file from being served (its last good version stays); a `warning` does
    not. `path` is relative to the site. `line` and `column` count from 1; they are None for a problem
    without a position in the file. `rule` is one of RULES. `at` is the path of the attribute or key that it
    is about, () where it is about the file.
    """

    path: str
    line: int | None
    message: str
    fix: str = ""
    severity: Severity = "error"
    column: int | None = field(default=None, compare=False)
    rule: str = field(default="unreadable", compare=False)
    at: tuple[str | int, ...] = field(default=(), compare=False)

    def as_json(self) -> dict[str, Any]:
        """What programs are told of it: a public format (docs/check.md)."""
        return {
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "severity": self.severity,
            "rule": self.rule,
            "message": self.message,
            "fix": self.fix,
        }

    def __str__(self) -> str:
        return f"{place_of(self.path, self.line, self.column)}: {with_fix(self.message, self.fix)}"


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems by path, line and column."""
    return tuple(sorted(problems, key=lambda p: (p.path, p.line or 0, p.column or 0, p.message)))
