"""Changes to one attribute of a document, as an editor would make them."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from bench.real.expected import Attribute
from bench.real.layout import Components
from bench.real.values import Served

NOT_SENT = (
    "id",
    "documentId",
    "createdAt",
    "updatedAt",
    "publishedAt",
    "locale",
    "localizations",
    "status",
)


def body_of(served: Served) -> dict[str, Any]:
    return {name: value for name, value in served.values.items() if name not in NOT_SENT}


def own_body_of(served: Served) -> dict[str, Any]:
    # Writes to other documents may have changed this one since.
    attributes = served.document.type.attributes
    return {
        name: value for name, value in body_of(served).items() if not attributes.get(name, {}).get("mappedBy")
    }


def choose(served: Served, turn: int) -> tuple[str, Any] | None:
    """Return an attribute and a new value for it, or None. Each turn chooses a different attribute."""
    options = list(_options(served))
    return options[turn % len(options)] if options else None


def _options(served: Served) -> Iterator[tuple[str, Any]]:
    content_type = served.document.type
    for name, attribute in content_type.attributes.items():
        value = served.values.get(name)
        is_own = attribute.get("pluginOptions", {}).get("i18n", {}).get("localized") or (
            attribute["type"] in ("uid", "relation")
        )
        is_shared = content_type.is_localized and not is_own
        if is_shared or attribute.get("mappedBy") or value is None or value == []:
            continue
        changed = change(value, attribute, content_type.components)
        is_allowed = bool(changed) or changed in (0, False) or not attribute.get("required")
        if changed != value and is_allowed:
            yield name, changed


def change(value: Any, attribute: Attribute, components: Components) -> Any:
    """Return a different value for an attribute, or the same value if no other is possible."""
    kind = attribute["type"]
    if kind == "dynamiczone" or (kind == "component" and attribute.get("repeatable")):
        uid = value[0].get("__component") or attribute["component"]
        return [_change_component(value[0], components, components[uid]), *value[1:]]
    if kind == "component":
        return _change_component(value, components, components[attribute["component"]])
    return _CHANGES[kind](value, attribute) if kind in _CHANGES else value


def _change_text(value: Any, attribute: Attribute) -> str:
    lines = str(value).split("\n")
    number = next((number for number, line in enumerate(lines) if line.strip()), 0)
    first = lines[number].rstrip()
    lines[number] = f"{first} again{lines[number][len(first) :]}"
    return "\n".join(lines)


def _change_choice(value: Any, attribute: Attribute) -> Any:
    return next((other for other in attribute["enum"] if other != value), value)


def _change_number(value: Any, attribute: Attribute) -> Any:
    return value + 1


def _change_boolean(value: Any, attribute: Attribute) -> bool:
    return not value


def _change_date(value: Any, attribute: Attribute) -> str:
    return str((datetime.fromisoformat(str(value)) + timedelta(days=1)).date())


def _change_moment(value: Any, attribute: Attribute) -> str:
    changed = datetime.fromisoformat(str(value).replace("Z", "+00:00")) + timedelta(days=1)
    return changed.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _change_list(value: Any, attribute: Attribute) -> Any:
    return [*value, "again"] if all(isinstance(one, str) for one in value) else value[:-1]


def _change_json(value: Any, attribute: Attribute) -> Any:
    """Change the first scalar inside the value."""
    if isinstance(value, dict):
        name = next(iter(value), None)
        return value if name is None else {**value, name: _change_json(value[name], attribute)}
    if isinstance(value, list):
        return [_change_json(value[0], attribute), *value[1:]] if value else ["again"]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return "again" if value is None else f"{value} again"


def _change_component(value: Any, components: Components, attributes: Mapping[str, Attribute]) -> Any:
    for name, attribute in attributes.items():
        if value.get(name) and (changed := change(value[name], attribute, components)) != value[name]:
            return {**value, name: changed}
    return value


def _change_blocks(value: Any, attribute: Attribute) -> Any:
    block = value[0]
    return [
        {**block, "children": [{**block["children"][0], "text": "again"}, *block["children"][1:]]},
        *value[1:],
    ]


def _change_relation(value: Any, attribute: Attribute) -> Any:
    return value[:-1] if isinstance(value, list) else None


_CHANGES: Mapping[str, Callable[[Any, Attribute], Any]] = {
    "string": _change_text,
    "text": _change_text,
    "uid": lambda value, attribute: f"{value}-again",
    "richtext": _change_text,
    "enumeration": _change_choice,
    "email": lambda value, attribute: f"again.{value}",
    "date": _change_date,
    "datetime": _change_moment,
    "integer": _change_number,
    "float": _change_number,
    "decimal": _change_number,
    "boolean": _change_boolean,
    "array": _change_list,
    "json": _change_json,
    "relation": _change_relation,
    "blocks": _change_blocks,
}
