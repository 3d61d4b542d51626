"""Content rules in schemas, which `bifolio check` enforces but the API does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from server.formats.config_file import ConfigFile
from server.formats.tree import describe_value
from server.schema.model import Attribute, ContentRule, Type
from server.schema.spelling import suggestion


@dataclass(frozen=True, slots=True)
class RuleKey:
    """Key in a content rule. `expected` describes its valid values in error messages."""

    name: str
    type: type | tuple[type, ...]
    expected: str
    description: str


RULE_KEYS: Mapping[str, RuleKey] = {
    key.name: key
    for key in (
        RuleKey(
            "path",
            str,
            "text",
            "The attribute. An attribute in a component or dynamic zone is written after a dot. Required.",
        ),
        RuleKey("required", bool, "true or false", "Whether a value must be present."),
        RuleKey("minLength", int, "a whole number", "The minimum number of characters."),
        RuleKey("maxLength", int, "a whole number", "The maximum number of characters."),
        RuleKey("min", (int, float), "a number", "The minimum of a number, or of the number of items."),
        RuleKey("max", (int, float), "a number", "The maximum of a number, or of the number of items."),
        RuleKey("regex", str, "text", "A regular expression that the value must match."),
        RuleKey("enum", list, "a list", "The allowed values."),
        RuleKey("severity", str, "text", "`warning` (the default) or `error`."),
        RuleKey("message", str, "text", "A message that replaces the usual one."),
    )
}
_LIMITS = ("required", "minLength", "maxLength", "min", "max", "regex", "enum")


def read_rules(file: ConfigFile) -> tuple[ContentRule, ...]:
    """Return a schema file's rules. Raises SetupError."""
    rules = (file.get("options") or {}).get("rules")
    if rules is None:
        return ()
    if not isinstance(rules, list):
        raise file.refuse_value(
            "be a list", 'write it as [{"path": "…", "maxLength": 60}]', "options", "rules"
        )
    return tuple(_read_rule(file, rule, ("options", "rules", i)) for i, rule in enumerate(rules))


def _read_rule(file: ConfigFile, rule: Any, key_path: tuple[str | int, ...]) -> ContentRule:
    if not isinstance(rule, dict):
        raise file.refuse_value(
            "contain only objects",
            'write each entry as an object, such as {"path": "…", "maxLength": 60}',
            *key_path,
        )
    for key, value in rule.items():
        if key not in RULE_KEYS:
            fix = suggestion(str(key), RULE_KEYS) or "use one of " + ", ".join(RULE_KEYS)
            raise file.refuse_key(f'unknown key "{key}" in options.rules', fix, *key_path, key)
        wanted, expected = RULE_KEYS[key].type, RULE_KEYS[key].expected
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            what = f"{key} in options.rules must be {expected} (found {describe_value(value)})"
            raise file.refuse(what, "", *key_path, key)
    if not rule.get("path"):
        raise file.refuse("a rule in options.rules has no path", 'add "path": "…"', *key_path)
    if not any(key in rule for key in _LIMITS):
        fix = "add one of " + ", ".join(_LIMITS)
        raise file.refuse(f'the rule for "{rule["path"]}" in options.rules has no limit', fix, *key_path)
    severity = rule.get("severity", "warning")
    if severity not in ("warning", "error"):
        raise file.refuse_value('be "warning" or "error"', "", *key_path, "severity")
    return ContentRule(
        tuple(rule["path"].split(".")), _limits(file, rule, key_path), severity, rule.get("message", "")
    )


def _limits(file: ConfigFile, rule: Mapping[str, Any], key_path: tuple[str | int, ...]) -> Attribute:
    regex = rule.get("regex")
    if regex is not None and (fault := import_module("server.schema.patterns").fault(regex)):
        what = f'the regex of the rule for "{rule["path"]}" is invalid: {fault}'
        raise file.refuse(what, "write a valid regular expression", *key_path, "regex")
    # The type does not matter, so "text" is used, which has no options of its own.
    return Attribute(
        rule["path"],
        "text",
        required=rule.get("required", False),
        min=rule.get("min"),
        max=rule.get("max"),
        min_length=rule.get("minLength"),
        max_length=rule.get("maxLength"),
        regex=regex,
        enum=tuple(map(str, rule.get("enum", ()))),
    )


def check_rules(file: ConfigFile, type_: Type, types: Mapping[str, Type]) -> None:
    """Raise SetupError if the path of a rule does not lead to an attribute."""
    for i, rule in enumerate(type_.rules):
        reached = [type_]
        for depth, name in enumerate(rule.path):
            attributes = [one.attributes[name] for one in reached if name in one.attributes]
            if not attributes:
                known = sorted({known for one in reached for known in one.attributes})
                where = ".".join(rule.path[:depth]) or type_.uid
                what = f'the rule for "{".".join(rule.path)}" has no effect, because {where} has no "{name}"'
                fix = suggestion(name, known) or "correct the path"
                raise file.refuse(what, fix, "options", "rules", i, "path")
            reached = [types[uid] for a in attributes for uid in a.component_uids if uid in types]
