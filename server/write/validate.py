"""A request body → a Change of a document, or every error at once.

Keys that a type does not have are refused first, by name. Then every value is read as its type, in
nested components and dynamic zones; what is published is also held against the options of its
attributes. A draft is checked for types only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.documents.constraints import broken_within
from server.documents.values import Component, Unreadable, empty_value, identify
from server.errors import ApiError, ValidationError
from server.formats.positions import KeyPath
from server.formats.tree import Plain, Tree
from server.index.snapshot import Snapshot
from server.schema.model import UPLOAD, Attribute, Type
from server.storage.media import refusal, upload_path
from server.write.body_values import default_of, faults_of_blocks, read_scalar, shown
from server.write.faults import Fault, error_of
from server.write.relation_input import Links, read_links

IGNORED = ("publishedAt", "locale", "localizations")
READ_ONLY = ("id", "documentId", "createdAt", "updatedAt")


@dataclass(frozen=True, slots=True)
class Change:
    """What a body says: the values of attributes as a row holds them, and changes of relations."""

    values: Mapping[str, Any]
    links: Mapping[str, Links] = field(default_factory=dict)


def read_data(body: Tree) -> dict[str, Tree]:
    """The `data` of a request body. Raises ValidationError where it is missing or no object."""
    data = body.get("data") if isinstance(body, dict) else None
    if isinstance(data, list):
        raise error_of([Fault((), "data must be an object", None)])
    if not isinstance(data, dict):
        raise ValidationError('Missing "data" payload in the request body')
    return data


@dataclass(slots=True)
class Validator:
    """Reads bodies against one snapshot. `may_find` says which types the caller may relate to."""

    snapshot: Snapshot
    locales: tuple[str, ...]
    may_find: Callable[[str], bool]
    faults: list[Fault] = field(default_factory=list)

    def change(self, type_: Type, data: Mapping[str, Tree]) -> Change:
        """The change that the data of a body describes. Raises ValidationError with all faults."""
        self._refuse_keys(type_, data, ())
        values: dict[str, Any] = {}
        links: dict[str, Links] = {}
        for name, tree in data.items():
            attribute = type_.attributes.get(name)
            if attribute is None:
                continue
            if attribute.type == "relation":
                links[name] = read_links(attribute, tree, (name,), self._resolve)
            else:
                values[name] = self._value(attribute, tree, (name,))
        if self.faults:
            raise error_of(self.faults)
        return Change(values, links)

    def _refuse_keys(self, type_: Type, data: Mapping[str, Tree], path: KeyPath) -> None:
        """Refuse keys that a type does not have, here and in the components below."""
        dotted = ".".join(str(part) for part in path if isinstance(part, str))
        for key, tree in data.items():
            attribute = type_.attributes.get(key)
            if attribute is None:
                if (not path and key in IGNORED) or (path and key in ("id", "__component", "__temp_key__")):
                    continue
                where = key if not path and key in READ_ONLY else dotted or None
                at = f" at {where}" if where and where != key else ""
                raise ValidationError(f"Invalid key {key}{at}", {"key": key, "path": where, "source": "body"})
            if attribute.type == "relation" and tree and not self._may_relate(attribute):
                where = ".".join(filter(None, (dotted, key)))
                raise ValidationError(f"Invalid key {key}", {"key": key, "path": where, "source": "body"})
            for component, item in self._components_in(attribute, tree):
                self._refuse_keys(component, item, (*path, key))

    def _may_relate(self, attribute: Attribute) -> bool:
        return attribute.target is None or self.may_find(attribute.target)

    def _components_in(self, attribute: Attribute, tree: Tree) -> list[tuple[Type, Mapping[str, Tree]]]:
        items = [item for item in (tree if isinstance(tree, list) else [tree]) if isinstance(item, dict)]
        if attribute.type == "component":
            return [(self.snapshot.schema.types[attribute.component or ""], item) for item in items]
        if attribute.type == "dynamiczone":
            known = ((self.snapshot.schema.types.get(str(item.get("__component"))), item) for item in items)
            return [(type_, item) for type_, item in known if type_ and type_.uid in attribute.components]
        return []

    def _fail(self, path: KeyPath, sentence: str, value: Any = None) -> None:
        self.faults.append(Fault(path, sentence, value))

    # --- values --------------------------------------------------------------------------------

    def _value(self, attribute: Attribute, tree: Tree, path: KeyPath) -> Any:
        if tree is None:
            return empty_value(attribute)
        if attribute.type == "component":
            return self._component(attribute, tree, path)
        if attribute.type == "dynamiczone":
            return self._zone(attribute, tree, path)
        if attribute.type == "media":
            return self._media(attribute, tree, path)
        if attribute.type == "blocks":
            self.faults.extend(faults_of_blocks(tree, path))
        try:
            return read_scalar(attribute, tree)
        except Unreadable as error:
            self._fail(path, f"must be {error.expected}", shown(tree))
            return None

    def _component(self, attribute: Attribute, tree: Tree, path: KeyPath) -> Any:
        type_ = self.snapshot.schema.types[attribute.component or ""]
        if not attribute.repeatable:
            return self._one(type_, tree, path)
        if not isinstance(tree, list):
            self._fail(path, "must be a list of components", shown(tree))
            return ()
        made = [self._one(type_, item, (*path, i)) for i, item in enumerate(tree)]
        return tuple(component for component in made if component is not None)

    def _one(self, type_: Type, tree: Tree, path: KeyPath) -> Component | None:
        if not isinstance(tree, dict):
            self._fail(path, "must be an object", shown(tree))
            return None
        if tree.get("__component", type_.uid) != type_.uid:
            self._fail((*path, "__component"), f"must be {type_.uid}", shown(tree["__component"]))
        values = []
        for name, attribute in type_.attributes.items():
            at = (*path, name)
            if name not in tree:
                values.append(default_of(attribute))
            elif attribute.type == "relation":
                links = read_links(attribute, tree[name], at, self._resolve)
                values.append(links.apply((), to_many=attribute.to_many))
            else:
                values.append(self._value(attribute, tree[name], at))
        return Component(type_, (identify(*map(str, path)), *values))

    def _zone(self, attribute: Attribute, tree: Tree, path: KeyPath) -> tuple[Component, ...]:
        if not isinstance(tree, list):
            self._fail(path, "must be a list of components", shown(tree))
            return ()
        made = []
        for i, item in enumerate(tree):
            uid = item.get("__component") if isinstance(item, dict) else None
            if uid not in attribute.components:
                wanted = ", ".join(attribute.components)
                what = "is required" if uid is None else f"must be one of the following values: {wanted}"
                self._fail((*path, i, "__component"), what, shown(uid))
                continue
            made.append(self._one(self.snapshot.schema.types[str(uid)], item, (*path, i)))
        return tuple(component for component in made if component is not None)

    # --- targets -------------------------------------------------------------------------------

    def _resolve(self, attribute: Attribute, item: Any, path: KeyPath) -> Any:
        """The target that an item of a relation names. Raises ValidationError where there is none."""
        document_id = item.get("documentId") if isinstance(item, dict) else item
        uid = attribute.target
        if attribute.polymorphic:
            uid = item.get("__type") if isinstance(item, dict) else None
        if not isinstance(document_id, str) or type(document_id) is Plain or not isinstance(uid, str):
            dotted = ".".join(map(str, path))
            raise ValidationError(f"Invalid relation at {dotted}: relate by documentId", {"path": dotted})
        if not self._exists(uid, document_id):
            raise ValidationError(
                f'Document with id "{document_id}", locale "null" not found',
                {"path": ".".join(map(str, path))},
            )
        return (uid, document_id) if attribute.polymorphic else document_id

    def _exists(self, uid: str, document_id: str) -> bool:
        table = self.snapshot.tables.get(uid)
        if table is None:
            return False
        return any(
            (document_id, locale, status) in table.versions
            for locale in self.locales
            for status in ("published", "draft")
        )

    def _media(self, attribute: Attribute, tree: Tree, path: KeyPath) -> tuple[str, ...]:
        if isinstance(tree, dict) and not ("id" in tree or "documentId" in tree):
            tree = tree.get("set", tree.get("connect", tree))
        items = tree if isinstance(tree, list) else [tree]
        found = []
        for item in items:
            key = item.get("documentId", item.get("id")) if isinstance(item, dict) else item
            media = self._file(key)
            if media is None:
                self._fail(path, f"names a file that does not exist: {shown(key)}", shown(item))
            elif refused := refusal(attribute, media):
                self._fail(path, refused, shown(item))
            else:
                found.append(media)
        return tuple(dict.fromkeys(found))[: None if attribute.multiple else 1]

    def _file(self, key: Any) -> str | None:
        """The upload path of the file with an id or documentId."""
        files = self.snapshot.list(self.snapshot.schema.types[UPLOAD], self._default_locale(), "published")
        found = next((f for f in files if key == f.document_id or str(key) == str(f.id)), None)
        return upload_path(found.path) if found else None

    def _default_locale(self) -> str:
        return next((locale for locale, _ in self.snapshot.tables[UPLOAD].order), self.locales[0])


def check_published(type_: Type, values: Mapping[str, Any], only: Callable[[str], bool]) -> None:
    """Hold what is to be published against the options of its attributes (of those in `only`).

    Raises ValidationError with every broken one.
    """
    row = [values[name] for name in type_.attributes]
    faults = [Fault(path, sentence) for path, sentence in broken_within(type_, row) if only(str(path[0]))]
    if faults:
        raise error_of(faults)


def not_unique(names: list[KeyPath]) -> ApiError:
    """The error for values that other documents have already."""
    return error_of([Fault(path, "must be unique: another document has this value") for path in names])
