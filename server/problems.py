"""Problems, which are mistakes in a site's files. A problem in one file does not affect other files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from server.errors import place_of, with_fix

Severity = Literal["error", "warning"]
RuleSeverity = Literal["error", "warning", "off"]
RULE_SEVERITIES: tuple[RuleSeverity, ...] = ("off", "warning", "error")


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a site's files should follow.

    The setting `check.rules` can change its severity, unless `default_severity` is "error".
    """

    name: str
    default_severity: RuleSeverity
    description: str
    fix: str

    @property
    def is_fixed(self) -> bool:
        # The level can't be changed, because files with this problem are not served.
        return self.default_severity == "error"


# The schema sets the severity of these problems (`options.rules`). They do not affect what is served.
CONTENT_RULE = "content-rule"

# docs/check.md contains this table.
RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "settings",
            "error",
            "`site.yaml` is invalid, or refers to something that does not exist.",
            "Correct the key or the value.",
        ),
        Rule(
            "schema",
            "error",
            "A content type or component is invalid, or contains a key that is probably mistyped.",
            "Correct the schema.",
        ),
        Rule(
            "unreadable",
            "error",
            "A file, folder or symbolic link can't be read.",
            "Change its permissions, or remove the link.",
        ),
        Rule(
            "syntax",
            "error",
            "A file is not valid YAML, JSON, TOML, or Markdown with front matter.",
            "Correct the syntax at this position.",
        ),
        Rule(
            "value",
            "error",
            "A value does not have the type of its attribute.",
            "Write a value of this type.",
        ),
        Rule(
            "option",
            "warning",
            "A value breaks an option of its attribute: `required`, a length, a limit or a pattern.",
            "Change the value, or the option in the schema.",
        ),
        Rule(
            "unknown-key",
            "warning",
            "A key is not an attribute of the type, so it is not served.",
            "Correct the key, add the attribute, or set `options.otherKeys`.",
        ),
        Rule(
            "dangling",
            "warning",
            "The target of a relation or media path does not exist, so responses omit it.",
            "Correct the id or path, or add the document or file.",
        ),
        Rule(
            "repeated-key",
            "warning",
            "A key occurs twice in the same mapping, so only the last value is served.",
            "Remove the earlier key, for example with `--fix`.",
        ),
        Rule(
            "duplicate-id",
            "error",
            "Two files contain the same document, so only the file whose path sorts first is served.",
            "Rename or remove one of the files.",
        ),
        Rule(
            "duplicate-value",
            "warning",
            "Two documents have the same value for a unique attribute or a `uid`.",
            "Change one of the values.",
        ),
        Rule(
            "draft",
            "warning",
            "A file is marked as a draft, but its type has no drafts, so it is served as published.",
            "Set `options.draftAndPublish` and `options.draftWhen`, or remove the mark.",
        ),
        Rule(
            "missing-id",
            "warning",
            "A file has no `documentId`, but the file for another locale or version contains one.",
            "Add the `documentId`, for example with `--fix`.",
        ),
        Rule(
            "file-name",
            "warning",
            "A file is named like a draft or translation, but is served as a separate document.",
            "Rename the file, or add the locale to the settings.",
        ),
        Rule(
            "translation",
            "warning",
            "A document is missing in the default locale or, with `--translations`, in any locale.",
            "Add the translation.",
        ),
        Rule(
            "shared",
            "warning",
            "The locales of a document have different values for an attribute that they should share.",
            "Write the same value, or make the attribute localized.",
        ),
        Rule(
            "stale-draft",
            "warning",
            "A draft is older than the published version. Publishing it would restore old content.",
            "Update or remove the draft.",
        ),
        Rule(
            "interrupted",
            "warning",
            "A write was interrupted. It was completed or discarded, or its text is in another file.",
            "Review the change with `git diff`.",
        ),
        Rule(
            "migration",
            "warning",
            "A document lacks a kept migration, so it still has an old attribute or an old value.",
            "Run `bifolio migrate apply --write`.",
        ),
        Rule(
            "unclaimed",
            "warning",
            "A file belongs to no content type, so it is not served.",
            "Move or rename the file, or add a content type.",
        ),
        Rule(
            "broken-link",
            "warning",
            "A link in a text leads to a file, heading or media file that does not exist.",
            "Correct the link.",
        ),
        Rule(
            "missing-alt",
            "off",
            "An image has no text for readers who can't see it.",
            'Describe the image. If it is only decoration, write `<img alt="">`.',
        ),
        Rule(
            "heading-jump",
            "off",
            "A heading skips a level: a third-level heading directly follows a first-level heading.",
            "Use the next level.",
        ),
        Rule(
            "unused-media",
            "off",
            "No document refers to a media file.",
            "Use the file, or delete it.",
        ),
        Rule(
            "stale-translation",
            "off",
            "The document in the default locale changed after its translation.",
            "Update the translation.",
        ),
        Rule(
            "deprecated-attribute",
            "warning",
            "A document has a value for an attribute that the schema marks as `deprecated`.",
            "Move the value to the attribute that replaces it.",
        ),
        Rule(
            CONTENT_RULE,
            "warning",
            "A value breaks one of the `options.rules` in the schema of its type.",
            "Change the value, or the rule.",
        ),
    )
}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """A problem in a file.

    `path` is relative to the site. `line` and `column` count from 1, and are None if unknown. If `severity`
    is "error", the server keeps using the file's last valid version. `at` is the path to an attribute or key,
    or () if the problem is about the whole file.
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
        # This format is public (docs/check.md).
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
    return tuple(sorted(problems, key=lambda p: (p.path, p.line or 0, p.column or 0, p.message)))
