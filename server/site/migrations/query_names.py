"""Editor that replaces attribute names in site.yaml's query parameters."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from server.formats.edits import REMOVE
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree, is_null
from server.schema.model import Attribute, Schema, Type
from server.site.migrations.edits import Edits

UP = ".."  # In a new path, this step removes the name before it.
_OWN_NAMES = "only the type's own attributes can be listed here"


@dataclass(frozen=True, slots=True)
class NewNames:
    """The paths that replace the name of the attribute `old` of the type `uid`.

    Examples: `(("headline",),)` for a renamed attribute, `(("seo", "title"),)` if it moves into a component,
    `(("first",), ("last",))` if it is split, `()` if it is removed, and `((),)` if it is a component that is
    replaced by its attributes.
    """

    uid: str
    old: str
    paths: tuple[tuple[str, ...], ...]

    @property
    def new_name(self) -> str | None:
        if len(self.paths) == 1 and len(self.paths[0]) == 1 and self.paths[0][0] != UP:
            return self.paths[0][0]
        return None


@dataclass(frozen=True, slots=True)
class QueryNames:
    """Editor that replaces attribute names in query parameters."""

    schema: Schema
    new: NewNames

    def parameters(self, type_: Type, tree: Tree) -> Edits:
        edits = Edits()
        for key, value in tree.items() if isinstance(tree, dict) else ():
            if key in _READERS:
                edits.add(_READERS[key](self, type_, value), (key,))
        return edits

    def populate(self, type_: Type, value: Tree) -> Edits:
        """Return the edits to a `populate` value, which can be text with paths, a list or a mapping."""
        if not isinstance(value, dict):
            return self._texts(type_, value, truncate=True)
        edits = Edits()
        for key, inner in value.items():
            if key == "on" and isinstance(inner, dict):
                for uid, parameters in inner.items():
                    if uid in self.schema.types:
                        edits.add(self.parameters(self.schema.types[uid], parameters), (key, uid))
                continue
            if self._is_old(type_, key) and self.new.new_name is None:
                self._replace(edits, value, key, "populate")
                continue
            self._rename(edits, type_, key)
            for target in self._targets(type_, key):
                edits.add(self._nested(target, inner), (key,))
        return _without_empty(edits, value)

    def _nested(self, target: Type, value: Tree) -> Edits:
        return self.parameters(target, value) if isinstance(value, dict) else Edits()

    def fields(self, type_: Type, value: Tree) -> Edits:
        edits = self._texts(type_, value)
        for at, new in list(edits.values.items()):
            if new is not REMOVE and "." in str(new):
                del edits.values[at]
                edits.refused[at] = _OWN_NAMES
        return edits

    def paths(self, type_: Type, value: Tree) -> Edits:
        return self._texts(type_, value)

    def sort(self, type_: Type, value: Tree) -> Edits:
        if isinstance(value, dict):
            return self.filters(type_, value)
        return self._texts(type_, value)

    def filters(self, type_: Type, value: Tree) -> Edits:
        edits = Edits()
        if isinstance(value, list):
            for i, item in enumerate(value):
                edits.add(self.filters(type_, item), (i,))
        for key, inner in value.items() if isinstance(value, dict) else ():
            if key.startswith("$"):
                edits.add(self.filters(type_, inner), (key,))
                continue
            if self._is_old(type_, key) and self.new.new_name is None:
                self._replace(edits, value, key, "")
                continue
            self._rename(edits, type_, key)
            for target in self._targets(type_, key):
                edits.add(self.filters(target, inner), (key,))
        return edits

    def new_paths(self, type_: Type, path: str, *, truncate: bool = False) -> list[str]:
        """Return the paths that replace a path such as `author.avatar` or `title:desc`.

        If the attribute is removed, the result is empty or, if `truncate` is set, the path is cut off before
        the attribute.
        """
        dotted, colon, order = path.partition(":")
        made, types = [list[str]()], [type_]
        for name in dotted.split("."):
            stripped = name.strip()
            if any(self._is_old(t, stripped) for t in types):
                if truncate and not self.new.paths:
                    break
                spaces = name[: len(name) - len(name.lstrip())]
                made = [_extended(each, new, spaces) for each in made for new in self.new.paths]
            else:
                made = [[*each, name] for each in made]
            types = [target for t in types for target in self._targets(t, stripped)]
        return [".".join(each) + colon + order for each in made if each]

    def request(self, url: str) -> str:
        """Return a URL such as `/api/articles?sort=title`, with the attribute names replaced."""
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
        first, *steps = key.replace("]", "").split("[")
        types, made, mode = [type_], [first], first
        for step in steps:
            if step in _READERS and mode == "populate":
                mode = step
            elif mode != "fields" and (owner := next((t for t in types if step in t.attributes), None)):
                made.append(self._name(owner, step))
                types = list(self._targets(owner, step))
                continue
            made.append(step)
        if mode in ("populate", "fields", "sort") and types:
            value = self._comma_separated(types[0], value)
        return made[0] + "".join(f"[{step}]" for step in made[1:]), value

    # --- parts ---------------------------------------------------------------------------------

    def _is_old(self, type_: Type, name: str) -> bool:
        return (type_.uid, name) == (self.new.uid, self.new.old)

    def _name(self, type_: Type, name: str) -> str:
        return self.new.new_name or "" if self._is_old(type_, name) else name

    def _comma_separated(self, type_: Type, text: str, *, truncate: bool = False) -> str:
        paths = (self.new_paths(type_, path, truncate=truncate) for path in text.split(","))
        return ",".join(new for found in paths for new in found)

    def _texts(self, type_: Type, value: Tree, *, truncate: bool = False) -> Edits:
        edits = Edits()
        for at, text in _strings(value):
            if (new := self._comma_separated(type_, text, truncate=truncate)) != text:
                edits.values[at] = REMOVE if not new else Plain(new) if type(text) is Plain else new
        removed = [at for at, new in edits.values.items() if new is REMOVE]
        if isinstance(value, list) and removed and len(removed) == len(value):
            return Edits(values={(): REMOVE})
        return edits

    def _rename(self, edits: Edits, type_: Type, key: str) -> None:
        new = self._name(type_, key)
        if new != key:
            edits.renames[(key,)] = new

    def _replace(self, edits: Edits, tree: dict[str, Any], key: str, inner_key: str) -> None:
        """Add edits that replace the entry `key` of `tree`, whose attribute is moved or removed.

        `inner_key` is the key between a component and its attributes, such as `populate`, or "" if no such
        key is used.
        """
        inner, paths = tree[key], self.new.paths
        within = inner.get(inner_key) if inner_key and isinstance(inner, dict) else inner
        if paths == ((),) and isinstance(within, dict):
            _replace_with_inner(edits, tree, key, within)
        elif len(paths) == 1 and len(paths[0]) == 2 and UP not in paths[0]:
            holder, name = paths[0]
            if holder in tree:
                edits.refused[key,] = f'there is already an entry "{holder}"'
            else:
                edits.renames[key,] = holder
                edits.values[key,] = {inner_key: {name: inner}} if inner_key else {name: inner}
        elif inner_key and paths in ((), ((),)):
            edits.values[key,] = REMOVE
        else:
            edits.refused[key,] = "without it, the entry would have another meaning"

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


def _extended(path: list[str], new: tuple[str, ...], spaces: str) -> list[str]:
    made = list(path)
    for at, step in enumerate(new):
        if step == UP:
            made.pop()
        else:
            made.append(spaces + step if at == 0 else step)
    return made


def _replace_with_inner(edits: Edits, tree: dict[str, Any], key: str, inner: dict[str, Any]) -> None:
    if taken := inner.keys() & tree.keys():
        edits.refused[key,] = f'there is already an entry "{min(taken)}"'
    elif len(inner) == 1:
        edits.renames[key,], edits.values[key,] = next(iter(inner.items()))
    else:
        edits.values.update({(key,): REMOVE, **{(name,): value for name, value in inner.items()}})


def _without_empty(edits: Edits, value: dict[str, Any]) -> Edits:
    only_removals = not edits.renames and not edits.refused
    removed = {at[0] for at, new in edits.values.items() if len(at) == 1 and new is REMOVE}
    is_empty = only_removals and len(removed) == len(edits.values) and removed == value.keys()
    return Edits(values={(): REMOVE}) if value and is_empty else edits


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
