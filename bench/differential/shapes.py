"""What a request and a difference look like when names and values are taken out: the same for one cause."""

import re
from collections.abc import Sequence
from typing import Any

from bench.differential.compare import Difference
from bench.differential.model import Attribute, Model
from bench.differential.request import GET, Request

_REFERENCE = re.compile(r"«([a-zA-Z]+)[^»]*»")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d:\d\d.*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_KEPT = ("true", "false", "*", "asc", "desc", "ASC", "DESC", "draft", "published", "abc", "")
_MOST_DIFFERENCES = 3


class Shapes:
    """The shapes of requests to the content types of one model."""

    def __init__(self, model: Model) -> None:
        self._kinds: dict[str, str] = {}
        every = [type_.attributes for type_ in model.types.values()] + list(model.components.values())
        for attributes in every:
            for name, found in attributes.items():
                self._kinds.setdefault(name, kind(found))
        self._paths = {type_.path: _type_kind(type_) for type_ in model.types.values()}

    def names(self, path: str) -> str:
        """A path of names with the kind of each attribute instead."""
        return _WORD.sub(lambda found: self._kinds.get(found[0], found[0]), path)

    def request(self, request: Request) -> str:
        """The shape of a request."""
        parts = request.path.split("/")
        at = self._paths.get("/".join(parts[:3]), "/".join(parts[:3]))
        made = f"{request.method} {at}{'/' + _value(parts[3]) if len(parts) > 3 else ''}"
        pairs = (f"{self.names(key)}={self._operand(key, value)}" for key, value in request.query)
        query = "&".join(sorted({re.sub(r"\[\d+\]", "[]", pair) for pair in pairs}))
        made += f"?{query}" if query else ""
        made += " v4" if request.headers else ""
        if request.body is not None:
            made += f" {self._top(request.body)}"
        return made + (f" {request.kind}" if request.kind != "application/json" else "")

    def _operand(self, key: str, value: str) -> str:
        if key.startswith(("filters", "_q")) or "[filters]" in key:
            return _value(value)
        return _REFERENCE.sub(r"«\1»", self.names(value)) if value not in _KEPT else value

    def _top(self, body: Any) -> str:
        if isinstance(body, dict):
            return "{" + ", ".join(f"{key}: {self._body(value)}" for key, value in body.items()) + "}"
        return self._body(body)

    def _body(self, value: Any, deep: int = 0) -> str:
        if isinstance(value, dict) and GET in value:
            return "«as populated»"
        if isinstance(value, dict):
            inner = (f"{self.names(key)}: {self._body(v, deep + 1)}" for key, v in value.items())
            return "{" + ", ".join(sorted(set(inner))) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(dict.fromkeys(self._body(item, deep + 1) for item in value)) + "]"
        return _value(value)

    def differences(self, found: Sequence[Difference]) -> str:
        """The shape of what differs."""
        made = [self.difference(difference) for difference in found]
        return "; ".join(list(dict.fromkeys(made))[:_MOST_DIFFERENCES])

    def where(self, found: Difference) -> str:
        """Where a difference is, with the kinds of attributes for their names."""
        head, dot, rest = found.where.partition(".")
        return f"{head}{dot}{self.names(rest)}"

    def difference(self, found: Difference) -> str:
        """The shape of one difference."""
        if found.kind in ("status", "error"):
            return f"{_message(found.theirs)} ≠ {_message(found.ours)}"
        if found.kind in ("members", "order"):
            return f"{self.where(found)} {found.kind}"
        return f"{self.where(found)} {found.kind} {_value(found.theirs)} ≠ {_value(found.ours)}"


def kind(attribute: Attribute) -> str:
    """What an attribute is, without its name."""
    found = [str(attribute["type"])]
    if "relation" in attribute:
        found.append(str(attribute["relation"]))
        found += ["derived"] if attribute.get("mappedBy") or attribute.get("morphBy") else []
    found += [word for word in ("repeatable", "multiple", "unique", "regex") if attribute.get(word)]
    return f"<{' '.join(found)}>"


def _type_kind(type_: Any) -> str:
    words = ["single" if type_.single else "collection"]
    words += ["drafts"] if type_.drafts else []
    return f"/<{' '.join(words + (['localized'] if type_.localized else []))}>"


def _value(value: Any) -> str:
    """The kind of a value."""
    if isinstance(value, str):
        if _REFERENCE.search(value):
            return _REFERENCE.sub(r"«\1»", value)
        if value in _KEPT:
            return value or "''"
        if _NUMBER.fullmatch(value):
            return "'number'"
        return "'date'" if _DATE.fullmatch(value) else "'text'"
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, list):
        return "[…]" if value else "[]"
    return {int: "int", float: "float", dict: "{…}" if value else "{}"}.get(type(value), str(value))


def _message(value: Any) -> str:
    """An error without the names and values that it quotes."""
    text = re.sub(r'"[^"]*"|\'[^\']*\'|`[^`]*`|“[^”]*”', "…", str(value))
    text = re.sub(r"(Invalid key) .*", r"\1 …", text)
    return re.sub(r"(?<=: )(\S+) must", "… must", re.sub(r"\d{2,}(?!\d* )", "N", text))[:160]
