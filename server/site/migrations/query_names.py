"""Names of attributes in query parameters, such as `populate` and `sort`, in the settings."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree, is_null
from server.schema.model import Attribute, Schema, Type
from server.site.migrations.edits import Edits

# Returns the new name of an attribute, given the uid of its type and the old name.
NewName = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class QueryNames:
    """Editor that replaces the names of attributes in query parameters."""

    schema: Schema
    new_name: NewName

    def parameters(self, type_: Type, tree: Tree) -> Edits:
        edits = Edits()
        for key, value in tree.items() if isinstance(tree, dict) else ():
            if key in _READERS:
                edits.add(_READERS[key](self, type_, value), (key,))
        return edits

    def populate(self, type_: Type, value: Tree) -> Edits:
        """Return the edits to the value of `populate`: paths with commas, a list of them, or a mapping."""
        if not isinstance(value, dict):
            return self._texts(value, lambda text: self._comma_separated(type_, text))
        edits = Edits()
        for key, inner in value.items():
            if key == "on" and isinstance(inner, dict):
                for uid, parameters in inner.items():
                    if uid in self.schema.types:
                        edits.add(self.parameters(self.schema.types[uid], parameters), (key, uid))
                continue
            self._rename(edits, type_, key)
            for target in self._targets(type_, key):
                edits.add(self._nested(target, inner), (key,))
        return edits

    def _nested(self, target: Type, value: Tree) -> Edits:
        return self.parameters(target, value) if isinstance(value, dict) else Edits()

    def fields(self, type_: Type, value: Tree) -> Edits:
        return self._texts(value, lambda text: self._comma_separated(type_, text))

    def sort(self, type_: Type, value: Tree) -> Edits:
        if isinstance(value, dict):
            return self.filters(type_, value)
        return self._texts(value, lambda text: self._comma_separated(type_, text))

    def filters(self, type_: Type, value: Tree) -> Edits:
        edits = Edits()
        if isinstance(value, list):
            for i, item in enumerate(value):
                edits.add(self.filters(type_, item), (i,))
        for key, inner in value.items() if isinstance(value, dict) else ():
            if key.startswith("$"):
                edits.add(self.filters(type_, inner), (key,))
                continue
            self._rename(edits, type_, key)
            for target in self._targets(type_, key):
                edits.add(self.filters(target, inner), (key,))
        return edits

    def path(self, type_: Type, path: str) -> str:
        """Return a path such as `author.avatar` or `title:desc` with the new names."""
        dotted, colon, order = path.partition(":")
        made, types = [], [type_]
        for name in dotted.split("."):
            owner = next((t for t in types if name.strip() in t.attributes), None)
            stripped = name.strip()
            new = self.new_name(owner.uid, stripped) if owner else stripped
            made.append(name.replace(stripped, new, 1) if stripped else name)
            types = [target for t in types for target in self._targets(t, stripped)]
        return ".".join(made) + colon + order

    def request(self, url: str) -> str:
        """Return a request such as `/api/articles?sort=title` with the new names."""
        parts = urlsplit(url)
        names = parts.path.removeprefix("/api/").split("/")
        type_ = self.schema.endpoints.get(names[0])
        if type_ is None or not parts.query:
            return url
        pairs = []
        for pair in parts.query.split("&"):
            key, equals, value = pair.partition("=")
            decoded = dict(parse_qsl(pair, keep_blank_values=True))
            name, text = next(iter(decoded.items()), (key, value))
            new_key, new_value = self._pair(type_, name, text)
            key = key if new_key == name else quote(new_key, safe="[]$*")
            value = value if new_value == text else quote(new_value, safe=":,*.")
            pairs.append(key + equals + value)
        return url[: url.index("?") + 1] + "&".join(pairs)

    def _pair(self, type_: Type, key: str, value: str) -> tuple[str, str]:
        """Return a key such as `filters[author][name][$eq]` and its value with the new names."""
        first, *steps = key.replace("]", "").split("[")
        types, made, mode = [type_], [first], first
        for step in steps:
            if step in _READERS and mode == "populate":
                mode = step
            elif mode != "fields" and (owner := next((t for t in types if step in t.attributes), None)):
                made.append(self.new_name(owner.uid, step))
                types = list(self._targets(owner, step))
                continue
            made.append(step)
        if mode in ("populate", "fields", "sort") and types:
            value = self._comma_separated(types[0], value)
        return made[0] + "".join(f"[{step}]" for step in made[1:]), value

    # --- parts ---------------------------------------------------------------------------------

    def _comma_separated(self, type_: Type, text: str) -> str:
        return ",".join(self.path(type_, path) for path in text.split(","))

    def _texts(self, value: Tree, change: Callable[[str], str]) -> Edits:
        edits = Edits()
        for at, text in _strings(value):
            if (new := change(text)) != text:
                edits.values[at] = Plain(new) if type(text) is Plain else new
        return edits

    def _rename(self, edits: Edits, type_: Type, key: str) -> None:
        new = self.new_name(type_.uid, key) if key in type_.attributes else key
        if new != key:
            edits.renames[(key,)] = new

    def _targets(self, type_: Type, name: str) -> Iterator[Type]:
        attribute = type_.attributes.get(name)
        for uid in target_uids(attribute) if attribute else ():
            if uid in self.schema.types:
                yield self.schema.types[uid]


_READERS: Mapping[str, Callable[[QueryNames, Type, Any], Edits]] = {
    "populate": QueryNames.populate,
    "fields": QueryNames.fields,
    "sort": QueryNames.sort,
    "filters": QueryNames.filters,
}


def target_uids(attribute: Attribute) -> tuple[str, ...]:
    uids = (attribute.target, attribute.component, *attribute.components)
    return tuple(uid for uid in uids if uid)


def _strings(value: Tree) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str) and not is_null(value):
        yield (), value
    elif isinstance(value, list):
        for i, item in enumerate(value):
            if isinstance(item, str):
                yield (i,), item
