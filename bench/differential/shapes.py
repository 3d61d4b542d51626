"""Shapes of requests and differences. A shape is a text without names and values, so differences with the
same cause have the same shape.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from bench.differential.difference import WORDING, Difference
from bench.differential.model import OWN, Attribute, Attributes, Model, Type, shared, to_many
from bench.differential.request import GET, Request

_REFERENCE = re.compile(r"«([a-zA-Z]+)[^»]*»")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d:\d\d.*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_KEPT = ("true", "false", "*", "asc", "desc", "ASC", "DESC", "draft", "published", "abc", "")
_HEADERS = {"Strapi-Response-Format": "v4"}
_MOST_DIFFERENCES = 3
_TEXTUAL = {
    f"{name}{fold}" for name in ("contains", "notContains", "startsWith", "endsWith") for fold in ("", "i")
}
_AS_TEXT = {  # These operators compare a value's text, which can differ from its text in responses.
    **dict.fromkeys(("boolean", "datetime"), _TEXTUAL),
    **dict.fromkeys(("float", "decimal"), _TEXTUAL | {"eqi", "nei"}),
}
_GROUPS = {
    **dict.fromkeys(("string", "text", "richtext", "email"), "text"),
    **dict.fromkeys(("integer", "float", "decimal"), "number"),
    **dict.fromkeys(("date", "time", "datetime"), "moment"),
}


class Shapes:
    """Generator of shapes for the content types in one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._kinds: dict[str, str] = {}
        every = [type_.attributes for type_ in model.types.values()] + list(model.components.values())
        for attributes in every:
            for name, found in attributes.items():
                self._kinds.setdefault(name, kind(found))
        self._singles = {type_.path for type_ in model.types.values() if type_.single}
        self._paths = {type_.path for type_ in model.types.values()}

    def names(self, path: str) -> str:
        return _WORD.sub(lambda found: self._kinds.get(found[0], found[0]), path)

    def request(self, request: Request) -> str:
        """Return the shape of a request."""
        made = f"{request.method} {self._path(request.path)}"
        pairs = (f"{self._key(key)}={self._operand(key, value)}" for key, value in request.query)
        query = "&".join(sorted(set(pairs)))
        made += f"?{query}" if query else ""
        made += "".join(f" {_HEADERS.get(name, name)}" for name, _ in request.headers)
        if request.body is not None:
            made += f" {self._top(request.body)}"
        return made + (f" {request.kind}" if request.kind != "application/json" else "")

    def _path(self, path: str) -> str:
        parts = path.split("/")
        head = "/".join(parts[:3])
        at = "/«single»" if head in self._singles else "/«type»" if head in self._paths else head
        return "/".join([at, *map(_part, parts[3:])])

    def _key(self, key: str) -> str:
        # Only the last attribute is needed.
        names = ["" if n.isdigit() else n for n in self.names(key).replace("]", "").split("[")]
        head, made = names[0], names[1:]
        for inner in ("populate", "filters", "sort"):
            if inner in made and head == "populate":
                cut = len(made) - made[::-1].index(inner)
                head, made = f"{head}…[{inner}]", made[cut:]
        if head.endswith(("filters", "[filters]")):
            through = [i for i, name in enumerate(made) if not name.startswith("$") and name]
            made = made[through[-1] :] if through else made
            head += "…" if len(through) > 1 else ""
        if head == "sort" and not any("$" in name for name in made):
            made = []
        return head + "".join(f"[{name}]" for name in made)

    def _operand(self, key: str, value: str) -> str:
        if key.startswith(("filters", "_q")) or "[filters]" in key:
            return _value(value)
        if value in _KEPT or _REFERENCE.search(value):
            return _REFERENCE.sub(r"«\1»", value)
        return self.names(value)

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

    def differences(self, found: Sequence[Difference], request: Request) -> str:
        told = [d for d in found if not d.where.startswith("meta.")] or found
        made = [_last(self.difference(difference, request)) for difference in told]
        return "; ".join(list(dict.fromkeys(made))[:_MOST_DIFFERENCES])

    def where(self, found: Difference, request: Request) -> str:
        """Return the place of a difference, with the kinds of attributes instead of their names."""
        head = "/".join(request.path.split("/")[:3])
        at = next((t for t in self._model.types.values() if t.path == head), None)
        attributes: Attributes | None = at.attributes if at else {}
        made: list[str] = []
        for part in found.where.split("."):
            name = part.removesuffix("[]")
            attribute = (attributes or {}).get(name) if made else None
            if attribute is None:
                made.append(part)
                continue
            told = kind(attribute)
            if at:
                told = f"{told[:-1]}{' shared' * shared(at, attribute)}{self._stored(at, attribute)}>"
                at = self._model.types.get(str(attribute.get("target")))
            made.append(told + part.removeprefix(name))
            attributes = self._inside(attribute)
        return ".".join(made)

    def _stored(self, type_: Type, attribute: Attribute) -> str:
        # Returns words for properties of a relation that Strapi stores but Bifolio does not.
        other = self._model.types.get(str(attribute.get("target")))
        if str(attribute.get("relation")).startswith("morphTo"):  # The target can have any type.
            return " to-localized" * (not type_.localized or not type_.drafts)
        if other is None:
            return ""
        if not attribute.get("mappedBy"):
            return " to-localized" * (other.localized and not type_.localized)
        plain = " by-unlocalized" * (type_.localized and not other.localized)
        return plain + " by-undrafted" * (type_.drafts and not other.drafts)

    def through(self, request: Request) -> str:
        """Return words that describe special steps in filters and sort keys."""
        head = "/".join(request.path.split("/")[:3])
        type_ = next((t for t in self._model.types.values() if t.path == head), None)
        if type_ is None or request.method != "GET":
            return ""
        found = {word for key, value in request.query for word in self._led_through(type_, key, value)}
        return "".join(f" through {word}" for word in sorted(found))

    def _led_through(self, type_: Type, key: str, value: str) -> Iterator[str]:
        at, attributes, deciding = type_, type_.attributes, False
        names = _WORD.findall(f"{key}.{value}")
        for name in names:
            deciding = deciding or name in ("filters", "sort")
            attribute = attributes.get(name) or OWN.get(name, {})
            inside = self._model.components.get(str(attribute.get("component")))
            target = self._model.types.get(str(attribute.get("target")))
            if not _AS_TEXT.get(str(attribute.get("type")), set()).isdisjoint(names):
                yield f"text-of-{attribute['type']}"
            compared = re.search(rf"\[{name}\](\[(\$\w+|\d*)\])*$", key)
            if attribute.get("type") in ("relation", "media") and compared and _NUMBER.fullmatch(value):
                yield "number-of-row"
            if inside is not None:
                attributes = inside
            if target is None:
                continue
            if deciding and target.drafts and not at.drafts:
                yield "drafts"
            if deciding:
                yield from self._stored(at, attribute).split()
            if deciding and attribute.get("morphBy"):
                yield "other-sides-of-morphs"
            at, attributes = target, target.attributes

    def _inside(self, attribute: Attribute) -> Attributes | None:
        if attribute["type"] != "dynamiczone":
            return self._model.inside(attribute)
        every = [self._model.components[name] for name in attribute["components"]]
        return {name: found for attributes in every for name, found in attributes.items()}

    def difference(self, found: Difference, request: Request) -> str:
        """Return the shape of one difference."""
        if found.kind in ("status", "error", WORDING):
            return f"{_message(found.theirs)} ≠ {_message(found.ours)}"
        if found.kind in ("header", "details"):
            return f"{found.where} {found.theirs} ≠ {found.ours}"[:200]
        if found.kind == "order" or found.kind.endswith("members"):
            return f"{self.where(found, request)} {found.kind}"
        return f"{self.where(found, request)} {found.kind} {_value(found.theirs)} ≠ {_value(found.ours)}"


def _last(difference: str) -> str:
    where, _, rest = difference.partition(" ") if "<" not in difference else difference.rpartition("> ")
    names = (where + (">" if "<" in difference else "")).split(".")
    return difference if "≠" in names[0] or len(names) < 4 else f"….{'.'.join(names[-2:])} {rest}"


def kind(attribute: Attribute) -> str:
    """Return a description of an attribute's kind, without its name."""
    found = [_GROUPS.get(attribute["type"], str(attribute["type"]))]
    if "relation" in attribute:
        found = [str(attribute["relation"])] if attribute["relation"].startswith("morph") else found
        found += ["many" if to_many(attribute) else "one"]
        found += ["derived"] if attribute.get("mappedBy") or attribute.get("morphBy") else []
    found += [word for word in ("repeatable", "multiple", "unique") if attribute.get(word)]
    return f"<{' '.join(found)}>"


def _value(value: Any) -> str:
    """Return the kind of a value."""
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


def _part(part: str) -> str:
    if _REFERENCE.search(part):
        return _REFERENCE.sub(r"«\1»", part)
    return "'number'" if part.isdigit() else part


def _message(value: Any) -> str:
    text = re.sub(r'"[^"]*"|\'[^\']*\'|`[^`]*`|“[^”]*”', "…", str(value))
    text = re.sub(r"(Invalid key) .*", r"\1 …", text)
    return re.sub(r"(?<=: )(\S+) must", "… must", re.sub(r"\d{2,}(?!\d* )", "N", text))[:160]
