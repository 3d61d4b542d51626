"""Faults in a request body, and the error response that lists them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from server.documents.constraints import REQUIRED_MESSAGE
from server.documents.values import HashedPassword
from server.errors import ValidationError
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree, size_of
from server.index.uniqueness import REPEATED_MESSAGE, TAKEN_MESSAGE
from server.schema.model import Attribute, Schema, Type

MAX_FAULTS = 100  # maximum number of faults in one error
MAX_QUOTED_VALUES = 100  # Larger lists and objects are not quoted.
MAX_QUOTE_CHARS = 2000  # Longer quotes are truncated.
UNSAID: Any = object()  # used as a fault's value if the body contains no value at the fault's path
# Clients rely on these messages from Strapi, which replace the messages for faults in files.
_MESSAGES: Mapping[str, str] = {
    REQUIRED_MESSAGE: "{path} must be defined.",
    TAKEN_MESSAGE: "This attribute must be unique",
    REPEATED_MESSAGE: "This attribute must be unique",
}
_NUMBERS = ("integer", "float", "decimal")


@dataclass(frozen=True, slots=True)
class Fault:
    """An invalid value in a request body. `sentence` is the error message without the path."""

    path: KeyPath
    sentence: str
    value: Any = None


def error_of(faults: Sequence[Fault]) -> ValidationError:
    return _error([(fault, f"{_dotted_path(fault.path)} {fault.sentence}".strip()) for fault in faults])


def error_of_body(
    faults: Sequence[Fault], schema: Schema, type_: Type, body: Mapping[str, Tree]
) -> ValidationError:
    """Return an error in Strapi's format that lists the faults in the order of the schema's attributes.

    It quotes the invalid values, except passwords.
    """
    places = [_BodyValue.find(schema, type_, body, fault.path) for fault in faults]
    ordered = sorted(zip(places, faults, strict=True), key=lambda pair: pair[0].order)
    messages = []
    for place, fault in ordered:
        path = _dotted_path(fault.path)
        message = _MESSAGES.get(fault.sentence, "{path} {sentence}")
        value = place.quote() if fault.value is None else fault.value
        messages.append(
            (Fault(fault.path, "", value), message.format(path=path, sentence=fault.sentence).lstrip())
        )
    return _error(messages)


def _error(messages: Sequence[tuple[Fault, str]]) -> ValidationError:
    errors: list[dict[str, Any]] = []
    for fault, message in messages[:MAX_FAULTS]:
        value = {} if fault.value is UNSAID else {"value": fault.value}
        path = [str(part) for part in fault.path]
        errors.append({"path": path, "message": message, "name": "ValidationError", **value})
    message = messages[0][1] if len(messages) == 1 else f"{len(messages)} errors occurred"
    if len(messages) > MAX_FAULTS:
        message += f"; these are the first {MAX_FAULTS}"
    return ValidationError(message, {"errors": errors})


def _dotted_path(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


# --- places in a body -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _BodyValue:
    order: tuple[int, ...]
    attribute: Attribute | None
    tree: Tree

    @classmethod
    def find(cls, schema: Schema, type_: Type, body: Mapping[str, Tree], path: KeyPath) -> "_BodyValue":
        holder: Type | None = type_
        attribute: Attribute | None = None
        tree: Tree = body
        order: list[int] = []
        for part in path:
            tree = _part(tree, part)
            if isinstance(part, int):
                order.append(part)
            else:
                attribute = holder.attributes.get(part) if holder else attribute
                order.append(_position(holder, part))
            holder = _component(schema, attribute, tree, listed=isinstance(part, int))
        return cls(tuple(order), attribute, tree)

    def quote(self) -> Any:
        # Passwords are never quoted.
        if self.tree is UNSAID or self.attribute is None or self.attribute.type != "password":
            return quote(self.tree, self.attribute)
        return None


def _part(tree: Tree, part: str | int) -> Tree:
    if isinstance(part, int):
        return tree[part] if isinstance(tree, list) and part < len(tree) else UNSAID
    return tree.get(part, UNSAID) if isinstance(tree, dict) else UNSAID


def _position(holder: Type | None, name: str) -> int:
    return list(holder.attributes).index(name) if holder and name in holder.attributes else -1


def _component(schema: Schema, attribute: Attribute | None, tree: Tree, *, listed: bool) -> Type | None:
    if attribute is None or not attribute.holds_components:
        return None
    if attribute.component:
        return schema.types.get(attribute.component)
    return schema.types.get(str(tree.get("__component"))) if listed and isinstance(tree, dict) else None


# --- quoted values -----------------------------------------------------------------------


def quote(tree: Tree, attribute: Attribute | None = None) -> Any:
    """Return a value as error messages quote it. Long strings, lists and objects are shortened."""
    if tree is UNSAID:
        return UNSAID
    if attribute and attribute.type == "enumeration" and (isinstance(tree, int) or type(tree) is Plain):
        return json.dumps(_plain(tree))  # Strapi quotes such a value as a string.
    if isinstance(tree, str) and (type(tree) is Plain or (attribute and attribute.type in _NUMBERS)):
        return _number(tree)
    if isinstance(tree, str):
        return None if isinstance(tree, HashedPassword) else tree[:MAX_QUOTE_CHARS]
    if isinstance(tree, Decimal):
        return _number(str(tree))
    if not isinstance(tree, dict | list):
        return tree
    if size_of(tree) <= MAX_QUOTED_VALUES:
        plain = _plain(tree)
        if len(json.dumps(plain)) <= MAX_QUOTE_CHARS:
            return plain
    return "a list" if isinstance(tree, list) else "an object"


def _plain(tree: Tree) -> Any:
    if isinstance(tree, dict):
        return {name: _plain(value) for name, value in tree.items()}
    return [_plain(item) for item in tree] if isinstance(tree, list) else quote(tree)


def _number(text: str) -> Any:
    try:
        number = float(text)
    except ValueError:
        return text[:MAX_QUOTE_CHARS]
    if not math.isfinite(number):
        return text[:MAX_QUOTE_CHARS]
    return int(number) if number.is_integer() else number
