"""The `fields` and `populate` parameters, in every form (spec.md 4.5)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from server.bounded import Cache
from server.errors import ValidationError, invalid_key
from server.query import qs
from server.query.ast import ALL_FIELDS, Node, Selection
from server.query.brackets import MAX_DEPTH
from server.query.filters import read_filters
from server.query.qs import Mistakes, read_boolean
from server.query.queryable_attributes import AttributePath, is_hidden, targets_of
from server.query.sorting import read_sort
from server.schema.model import Schema, Type


def read_fields(type_: Type, value: Any, param: str = "fields") -> tuple[str, ...] | None:
    """The selected names, without id and documentId, which are always shown; None selects all."""
    if value is None or value == "":
        return None
    names = _names(value, "fields")
    if "*" in names or not names:
        return None
    named = {name: type_.columns.get(name) for name in names if name not in ("id", "documentId")}
    for name, attribute in named.items():  # an unknown name is reported before one that may not be seen
        if attribute is None or not attribute.scalar:
            raise invalid_key(name, name if attribute or is_hidden(type_, name) else None, param)
    for name, attribute in named.items():
        if attribute and not attribute.selectable:
            raise invalid_key(name, name, param)
    # The schema's own strings, so that caches do not keep a copy of each name.
    return tuple(attribute.name for attribute in named.values() if attribute)


def read_populate(schema: Schema, type_: Type, value: Any, *, forgiving: bool = False) -> tuple[Node, ...]:
    """The nodes that any form of `populate` asks for. Raises ValidationError.

    `forgiving` reads it as Strapi 4 did: names that no attribute has are left out, and names may stand beside
    objects.
    """
    if value is None:
        return ()
    key = (schema, type_.uid, repr(value), forgiving)
    parsed = _parsed.get(key)
    if parsed is None:
        parser = _PopulateParser(schema, forgiving)
        parsed = _Parsed(parser.nodes(type_, value, ()), parser.count)
        parser.mistakes.report()
        _parsed.put(key, parsed)
    return parsed.nodes


class _Parsed(NamedTuple):
    nodes: tuple[Node, ...]
    attributes: int  # how many, also inside of others


def _size(key: tuple[Schema, str, str, bool], parsed: _Parsed) -> int:
    return 4 * len(key[2]) + _ENTRY_BYTES * (1 + parsed.attributes)


_MAX_BYTES, _ENTRY_BYTES = 4 * 1024 * 1024, 600  # Of all that is kept, and of each attribute, about.
# Saves 36 µs of 150 of a new read with populate=*.
_parsed: Cache[tuple[Schema, str, str, bool], _Parsed] = Cache(_MAX_BYTES, _size)


_FORMS = {
    "fields": "a string or an array of strings",
    "populate": "a string, an array of strings, a populate object",
}


def _names(value: Any, param: str) -> list[str]:
    items = [value] if isinstance(value, str) else qs.items(value) if qs.is_list(value) else [None]
    if not all(isinstance(item, str) for item in items):
        raise ValidationError(f"Invalid {param} parameter. Expected {_FORMS[param]}")
    names = [name.strip() for item in items for name in str(item).split(",")]
    if param == "fields" and "" in names:
        raise invalid_key("", None, param)
    return [name for name in names if name]


class _Dotted(dict[str, Any]):
    """The populate of a dotted form, `author.articles`: its errors name the whole path."""


@dataclass(slots=True)
class _PopulateParser:
    """Reads one parameter. `count` is the number of nodes so far: through relations to several types, a
    short parameter may stand for very many."""

    schema: Schema
    forgiving: bool
    count: int = 0
    mistakes: Mistakes = field(default_factory=Mistakes)

    def nodes(
        self, type_: Type, value: Any, path: AttributePath, above: AttributePath = ()
    ) -> tuple[Node, ...]:
        """The nodes of one level, which is below some attributes; names are told with `path` before them."""
        wanted = self.wanted(value)
        if isinstance(value, dict) and not qs.is_list(value):
            # Keys such as `true` and `1` count for nothing.
            wanted = {k: v for k, v in wanted.items() if k in type_.populatable or read_boolean(k) is None}
        if "*" in wanted:
            wanted = {**dict.fromkeys(type_.populatable, True), **wanted}
            del wanted["*"]
        is_object = isinstance(value, dict) and not qs.is_list(value) and not isinstance(value, _Dotted)
        nodes = []
        for name, options in wanted.items():
            of_type = name in type_.populatable or is_hidden(type_, name)
            known = of_type or (name in type_.columns and name != "id")
            if is_object and not known and not self.forgiving:
                raise invalid_key(name, ".".join(above) or None, "populate")
            nodes.append(self.node(type_, name, options, path, (*above, name)))
        return tuple(node for node in nodes if node is not None)

    def wanted(self, value: Any) -> dict[str, Any]:
        """Any form of populate as an object; see `_as_object`."""
        return _as_object(_merge_forms(value) if self.forgiving else value)

    def node(
        self, type_: Type, name: str, value: Any, path: AttributePath, above: AttributePath
    ) -> Node | None:
        """One attribute of a level; None where it is switched off."""
        self.count += 1
        if self.count > qs.MAX_POPULATED_ATTRIBUTES:
            raise ValidationError(
                f"populate leads to more than {qs.MAX_POPULATED_ATTRIBUTES} attributes; populate less"
            )
        path = (*path, name)
        if name not in type_.populatable and self.forgiving:
            return None
        if name not in type_.populatable:
            raise invalid_key(name, ".".join(path), "populate")
        attribute = type_.attributes.get(name)
        if self.forgiving and isinstance(value, str) and read_boolean(value) is None:
            value = True
        targets = targets_of(self.schema, attribute) if attribute else [type_]
        mixed = attribute is not None and (attribute.type == "dynamiczone" or attribute.polymorphic)
        options = _options(value, above, () if mixed else targets)
        if options is None:
            return None
        if attribute is None:
            selections = {type_.uid: self.selection(type_, options, path, above)}
            return Node(name, None, -1, selections, _count(options.get("count"), path))
        if mixed:
            return Node(name, attribute, type_.position[name], self.by_type(targets, options, path))
        selections = {target.uid: self.selection(target, options, path, above) for target in targets}
        return Node(name, attribute, type_.position[name], selections, _count(options.get("count"), path))

    def selection(
        self, type_: Type, options: Mapping[str, Any], path: AttributePath, above: AttributePath
    ) -> Selection:
        """fields, filters, sort and populate inside of populate; their errors start a path of their own."""
        if not options:
            return ALL_FIELDS
        read: dict[str, Any] = {}
        for key, value in options.items():
            # In the order of the request, of whose mistakes the first is reported.
            if value == "" and key in ("populate", "fields") and not self.forgiving:
                raise invalid_key("", ".".join(above) if key == "populate" else None, "populate")
            if key == "populate":
                inside = path if isinstance(value, _Dotted) else ()
                read["populate"] = self.nodes(type_, value, inside, above)
            elif key in ("fields", "filters", "sort"):
                with self.mistakes:
                    self.narrow(type_, key, value, read)
            elif key != "count" and read_boolean(key) is None:  # such as `populate[author][1]=…`
                named = key in type_.attributes or (key == "on" and type_.kind == "component")
                at = (*above, key) if named else above
                raise invalid_key(key, ".".join(at), "populate")
        return Selection(**read)

    def narrow(self, type_: Type, key: str, value: Any, read: dict[str, Any]) -> None:
        """Read what says which documents of a level are shown, in which order, with which fields."""
        if key == "fields":
            read["fields"] = read_fields(type_, value, "populate")
        elif key == "filters":
            read["filter"] = read_filters(self.schema, type_, value, "populate")
        else:
            read["sort"] = read_sort(self.schema, type_, value, "populate")

    def by_type(
        self, targets: list[Type], options: Mapping[str, Any], path: AttributePath
    ) -> dict[str, Selection]:
        """What to show of each type in a dynamic zone or morph relation: by `on`, or all the same."""
        for key in options:
            if key not in ("populate", "on", "count"):  # Strapi takes `count` here, and does nothing
                self.mistakes.hold(invalid_key(key, ".".join(path), "populate"))
        if "on" in options:
            return self.on({t.uid: t for t in targets}, options["on"], (*path, "on"))
        inside = options.get("populate")
        if inside not in (None, "*") and not isinstance(inside, _Dotted) and not self.forgiving:
            raise invalid_key("populate", ".".join(path), "populate")  # It takes `on`.
        wanted = self.wanted(inside)
        for name in wanted:
            if name != "*" and not self.forgiving and not any(name in t.populatable for t in targets):
                raise invalid_key("populate", ".".join(path), "populate")
        return {t.uid: Selection(populate=self.nodes(t, _of(t, wanted), ())) for t in targets}

    def on(self, targets: Mapping[str, Type], value: Any, path: AttributePath) -> dict[str, Selection]:
        """`on[category.component]=…`: only the types that it names are shown, in the order of the attribute.

        A type that it names is shown whatever stands behind it, also `false`.
        """
        if not isinstance(value, dict):
            raise invalid_key("on", ".".join(path), "populate")
        for uid in value:
            if uid not in targets and uid not in self.schema.types:
                raise invalid_key(uid, ".".join((*path, uid)), "populate")
        found: dict[str, Selection] = {}
        for uid, item in value.items():
            # A type that exists, but that this attribute never holds, adds nothing to the answer.
            if uid in targets:
                options = _options(item, path[:-1]) or {}
                selection = self.selection(targets[uid], options, (*path, uid), (*path, uid))
                found[uid] = selection._replace(sort=())
        return found


def _count(value: Any, path: AttributePath) -> bool:
    if value is None:
        return False
    counted = read_boolean(value)
    if counted is None:
        raise invalid_key("count", ".".join(path), "populate")
    return counted


def _of(type_: Type, wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if name == "*" or name in type_.populatable}


def _merge_forms(value: Any) -> Any:
    """`populate[a]=*&populate=b`, which is read as a list of an object and a name → one object."""
    numbered = isinstance(value, dict) and any(key.isdecimal() for key in value)
    if not numbered and not (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        return value
    found: dict[str, Any] = {}
    for key, part in value.items() if numbered else ((str(i), item) for i, item in enumerate(value)):
        found.update(_as_object(_merge_forms(part)) if key.isdecimal() else {key: part})
    return found


def _as_object(value: Any) -> dict[str, Any]:
    """Any form of populate as an object: attribute → True, False, text or options."""
    if value is None or value == "":
        return {}
    if qs.is_list(value):
        _refuse_objects(value)
    if isinstance(value, str) or qs.is_list(value):
        return _tree_of(_names(value, "populate"))
    if isinstance(value, dict):
        return dict(value)
    raise ValidationError("Invalid populate: text, a list or an object is expected")


def _refuse_objects(value: Any) -> None:
    """Raise ValidationError for a list with anything but names: it is an object whose keys are numbers."""
    keys = value if isinstance(value, dict) else map(str, range(len(value)))
    if not all(isinstance(item, str) for item in qs.items(value)):
        for key in keys:
            if read_boolean(key) is None:  # 0 and 1 pass for true and false, which are no keys.
                raise invalid_key(key, None, "populate")


def _tree_of(names: Iterable[str]) -> dict[str, Any]:
    """`["author", "author.articles"]` → `{"author": {"populate": {"articles": True}}}`."""
    found: dict[str, Any] = {}
    for name in names:
        place = found
        *above, last = name.split(".")
        if len(above) >= MAX_DEPTH:
            raise ValidationError(
                f"populate leads {len(above) + 1} levels deep; at most {MAX_DEPTH} levels are read"
            )
        for part in above:
            if not isinstance(place.get(part), dict):
                place[part] = {"populate": _Dotted()}
            place = place[part]["populate"]
        place.setdefault(last, True)
    return found


def _options(value: Any, path: AttributePath, targets: Iterable[Type] = ()) -> Mapping[str, Any] | None:
    """What stands behind one attribute of populate: None where it is switched off.

    Raises ValidationError for names in place of options, with the path of the first one where it is one
    of the targets' attributes, else with that of the attribute.
    """
    if isinstance(value, dict):
        return value
    if value is True or value is None or value == "*" or read_boolean(value):
        return {}
    if read_boolean(value) is False:
        return None
    listed = qs.is_list(value)
    first = str(qs.items(value)[0] if listed else value)
    name = first if listed else first.partition(".")[0]
    told = (*path, name) if any(name in target.columns for target in targets) else path
    raise invalid_key(name, ".".join(told), "populate")
