"""Problems: mistakes in a site's files. A problem in one file does not affect other files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from server.errors import place_of, with_fix

Severity = Literal["error", "warning"]

# Descriptions by rule; docs/check.md contains this table.
RULES: Mapping[str, str] = {
    "settings": "`site.yaml` is invalid, or refers to something that does not exist.",
    "schema": "A content type or component is invalid, or contains a key that is probably mistyped.",
    "unreadable": "A file, folder or symbolic link can't be read.",
    "syntax": "A file is not valid YAML, JSON, TOML, or Markdown with front matter.",
    "value": "A value does not have the type of its attribute.",
    "option": "A value breaks an option of its attribute: `required`, a length, a limit or a pattern.",
    "unknown-key": "A key is not an attribute of the type, so it is not served.",
    "dangling": "The target of a relation or media path does not exist, so responses omit it.",
    "repeated-key": "A key occurs twice in the same mapping, so only the last value is served.",
    "duplicate-id": "Two files contain the same document, so only the file whose path sorts first is served.",
    "duplicate-value": "Two documents have the same value for a unique attribute or a `uid`.",
    "draft": "A file is marked as a draft, but its type has no drafts, so it is served as published.",
    "missing-id": "A file has no `documentId`, but the file for another locale or version contains one.",
    "file-name": "A file is named like a draft or translation, but is served as a separate document.",
    "translation": "A document is missing in the default locale or, with `--translations`, in any locale.",
    "shared": "The locales of a document have different values for an attribute that they should share.",
    "stale-draft": "A draft is older than the published version. Publishing it would restore old content.",
    "interrupted": "A write was interrupted. It was completed or discarded, or its text is in another file.",
    "unclaimed": "A file belongs to no content type, so it is not served.",
}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem in a file.

    - `path` is relative to the site's folder.
    - `line` and `column` count from 1, or are None if unknown.
    - `severity`: a file with an `error` is not served, but the file's last valid version continues to be
      served. A `warning` has no such effect.
    - `rule` is a key in RULES.
    - `at` is the path to the attribute or key. It is () if the problem concerns the whole file.
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
        """Return the problem as JSON. The JSON format is public (docs/check.md)."""
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
    """Return problems sorted by path, line and column."""
    return tuple(sorted(problems, key=lambda p: (p.path, p.line or 0, p.column or 0, p.message)))
