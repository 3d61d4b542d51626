"""Tables in the docs that are generated from tables in the code.

On a page, each table is between the lines `<!-- table: NAME -->` and `<!-- end of table -->`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from docs.licences import LICENCES, bundled_packages
from docs.messages import SOURCES, messages_of
from docs.packages import LAZY, PACKAGES, about, modules
from server.api.mcp.prompting import PROMPTS
from server.api.mcp.tools.table import TOOLS
from server.api.mcp.tools.tool import Tool
from server.config.model import ACTIONS, DEFAULTS, KEYS, value_of
from server.config.public_site import FEED_KEYS, ITEM_KEYS
from server.config.sections import TYPE_KEYS
from server.config.setting import SettingKey
from server.config.webhooks import WEBHOOK_KEYS
from server.errors import ApiError
from server.events.model import KINDS
from server.problems import RULES
from server.query.operators import LOGIC, OPERATORS
from server.query.parse import PUBLICATION_FILTERS
from server.schema.model import ATTRIBUTE_TYPES
from server.schema.rules import RULE_KEYS

DEVIATIONS = Path(__file__).parents[1] / "tests" / "conformance" / "deviations.json"
_TABLE = re.compile(r"(<!-- table: ([a-z ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
_SUBJECTS = {"": "a content type, by its singular API id"}


def with_tables(page: str) -> str:
    """Return the page with all its tables generated again from the code."""
    return _TABLE.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], page)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _attribute_types() -> str:
    rows = ([f"`{row.name}`", row.description, row.group] for row in ATTRIBUTE_TYPES.values())
    return _table(["type", "value", "group"], rows)


def _operators() -> str:
    rows = [[f"`{row.name}`", row.description, row.operand_kind] for row in OPERATORS.values()]
    rows += [[f"`{name}`", sentence, "conditions"] for name, sentence in LOGIC.items()]
    return _table(["operator", "true if the value", "operand"], rows)


def _publication_filters() -> str:
    rows = ([f"`{name}`", sentence] for name, sentence in PUBLICATION_FILTERS.items())
    return _table(["`publicationFilter`", "finds a document if it"], rows)


def _settings() -> str:
    rows = (
        [
            f"`{key.name}`",
            key.value_type,
            _meaning(key),
            key.default_description or _default(value_of(DEFAULTS, name)),
            (" to ".join(key.bounds) if key.bounds else "yes") if key.editable else "",
        ]
        for name, key in KEYS.items()
    )
    return _table(["key", "value", "meaning", "default", "over HTTP"], rows)


def _meaning(key: SettingKey) -> str:
    return f"{key.description} A change requires a restart." if key.restart else key.description


def _default(value: Any) -> str:
    """Return a setting's default in the form in which site.yaml would contain it. Return "" if the default is
    empty.
    """
    if not value and value is not False:
        return ""
    shown = ", ".join(value) if isinstance(value, tuple) else value
    return f"`{str(shown).lower() if isinstance(shown, bool) else shown}`"


def _rules() -> str:
    rows = (
        [
            f"`{rule.name}`",
            "error, fixed" if rule.is_fixed else rule.default_severity,
            rule.description,
            rule.fix,
        ]
        for rule in RULES.values()
    )
    return _table(["rule", "default", "problem", "how to fix it"], rows)


def _content_rules() -> str:
    return _table(
        ["key of a rule", "meaning"], ([f"`{key.name}`", key.description] for key in RULE_KEYS.values())
    )


def _export_keys() -> str:
    return _table(
        ["key of a type", "meaning"], ([f"`{name}`", sentence] for name, sentence in TYPE_KEYS.items())
    )


def _feed_keys() -> str:
    return _table(
        ["key of a feed", "meaning"], ([f"`{name}`", sentence] for name, sentence in FEED_KEYS.items())
    )


def _item_keys() -> str:
    return _table(
        ["key of `item`", "meaning"], ([f"`{name}`", sentence] for name, sentence in ITEM_KEYS.items())
    )


def _webhook_keys() -> str:
    return _table(
        ["key of a webhook", "meaning"], ([f"`{name}`", sentence] for name, sentence in WEBHOOK_KEYS.items())
    )


def _actions() -> str:
    rows = (
        [_SUBJECTS.get(subject, f"`{subject}`"), ", ".join(f"`{a}`" for a in actions)]
        for subject, actions in ACTIONS.items()
    )
    return _table(["subject", "actions"], rows)


def _errors() -> str:
    kinds = sorted(_kinds(ApiError), key=_by_status)
    rows = ([str(kind.status), f"`{kind.name}`", _first_paragraph(kind)] for kind in kinds)
    return _table(["status", "name", "when"], rows)


def _first_paragraph(kind: type[ApiError]) -> str:
    return " ".join((kind.__doc__ or "").partition("\n\n")[0].split())


def _kinds(kind: type[ApiError]) -> list[type[ApiError]]:
    return [found for sub in kind.__subclasses__() for found in (sub, *_kinds(sub))]


def _by_status(kind: type[ApiError]) -> tuple[int, str]:
    return kind.status, kind.name


def _packages() -> str:
    rows = [["(top)", "Modules outside any package. All packages can import them.", _listed(modules(""))]]
    rows += (row for package in PACKAGES for row in _package_rows(package))
    return _table(["package", "contents", "modules"], rows)


def _package_rows(package: str) -> Iterator[list[str]]:
    """Yield a row for the package, and rows for the packages inside it."""
    yield [f"`{package}`", about(package), _listed(modules(package))]
    for name in modules(package):
        if name.endswith("/"):
            yield from _package_rows(f"{package}.{name.removesuffix('/')}")


def _lazy() -> str:
    rows = ([f"`{name.removeprefix('server.')}`", reason] for name, reason in LAZY.items())
    return _table(["module", "cost, and when it is loaded"], rows)


def _listed(names: Iterable[str]) -> str:
    return " ".join(name for name in names if not name.endswith("/"))


def _events() -> str:
    return _table(["event", "meaning"], ([f"`{kind}`", sentence] for kind, sentence in KINDS.items()))


def _deviations() -> str:
    entries = json.loads(DEVIATIONS.read_text(encoding="utf-8"))
    rows = ([entry[key] for key in ("about", "strapi", "bifolio", "why")] for entry in entries)
    return _table(["subject", "Strapi 5", "Bifolio", "reason"], rows)


def _licences() -> str:
    return _table(["package", "licence"], ([f"`{name}`", licence] for name, licence in LICENCES.items()))


def _bundled() -> str:
    rows = ([f"`{each.name}`", each.version, each.licence, f"`{each.file}`"] for each in bundled_packages())
    return _table(["package", "version", "licence", "in"], rows)


def _messages(table: str) -> str:
    rows = ([_code(one.text), one.fix and _code(one.fix)] for one in messages_of(table))
    return _table(["message", "fix"], rows)


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _prompts() -> str:
    rows = (
        [f"`{one.name}`", " ".join(f"`{argument.name}`" for argument in one.arguments), f"{one.description}."]
        for one in PROMPTS.values()
    )
    return _table(["prompt", "arguments", "task"], rows)


def _tools() -> str:
    rows = ([f"`{tool.name}`", _arguments(tool), tool.description] for tool in TOOLS)
    return _table(["tool", "arguments", "description"], rows)


def _arguments(tool: Tool) -> str:
    return " ".join(f"**`{name}`**" if name in tool.required else f"`{name}`" for name in tool.input)


TABLES: Mapping[str, Callable[[], str]] = {
    "attribute types": _attribute_types,
    "operators": _operators,
    "publication filters": _publication_filters,
    "settings": _settings,
    "export keys": _export_keys,
    "feed keys": _feed_keys,
    "item keys": _item_keys,
    "webhook keys": _webhook_keys,
    "actions": _actions,
    "errors": _errors,
    "rules": _rules,
    "content rules": _content_rules,
    "packages": _packages,
    "deviations": _deviations,
    "lazy": _lazy,
    "events": _events,
    "licences": _licences,
    "prompts": _prompts,
    "tools": _tools,
    "bundled packages": _bundled,
    **{table: partial(_messages, table) for table in SOURCES},
}
