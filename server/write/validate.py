"""Parsing and validation of request bodies."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

from server.documents.advice import advice
from server.documents.blocks import cast_blocks, find_block_errors
from server.documents.constraints import Limits, errors_within, value_errors
from server.documents.document import DRAFT, ID, PUBLISHED, column_of
from server.documents.file_keys import reserved_keys
from server.documents.ids import to_nfc
from server.documents.readers import InvalidValue
from server.documents.values import Component, HashedPassword, derive_id, empty_value
from server.errors import SUGGESTION, ApplicationError, ValidationError
from server.formats.text_positions import KeyPath, attribute_path
from server.formats.tree import Tree
from server.index.budget import UNLIMITED, Budget
from server.index.dangling import with_missing_targets
from server.index.snapshot import Snapshot
from server.index.type_table import Table
from server.schema.model import UPLOAD, Attribute, Type
from server.schema.spelling import Suggestions
from server.write.body_values import default_of, read_scalar
from server.write.faults import Fault, error_of
from server.write.media_input import MediaInput
from server.write.relation_input import (
    OPERATIONS,
    Links,
    morph_targets,
    read_links,
    split_by_locale,
    targets_in,
)

IGNORED_KEYS = ("publishedAt", "locale")
# a document's current components by type and id, or None if the document version is new
_Held = Mapping[tuple[str, str], Component] | None
_NO_VALUE: Any = object()  # passed as an attribute's current value if the document version is new
_MAX_NAME_CHARS = 100  # Longer names are truncated before the search for similar names.
MAX_STRING_CHARS = 255  # maximum length of strings for which the schema sets no limit
# Clients can use documents from responses as targets. These keys of such documents are ignored.
OF_TARGETS = ("localizations", "createdBy", "updatedBy", "options")
IDS = ("id", "documentId")
READ_ONLY = ("createdAt", "updatedAt", "createdBy", "updatedBy", "localizations")


@dataclass(frozen=True, slots=True)
class Change:
    """A parsed request body.

    For a relation that is stored in localized documents, `by_locale` contains the change in each locale.
    """

    values: Mapping[str, Any]
    links: Mapping[str, Links] = field(default_factory=dict)
    by_locale: Mapping[str, Mapping[str, Links]] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    body: Mapping[str, Tree] = field(default_factory=dict)

    def lenient(self) -> "Change":
        return replace(self, links={name: replace(one, strict=False) for name, one in self.links.items()})


def read_data(data: Tree) -> dict[str, Tree]:
    if isinstance(data, list):
        raise error_of([Fault((), "data must be an object", None)])
    if not isinstance(data, dict):
        raise ValidationError('Missing "data" payload in the request body')
    return data


@dataclass(slots=True)
class Validator:
    """Parser of request bodies. Relation targets that the caller may not see are treated as missing."""

    snapshot: Snapshot
    locales: tuple[str, ...]
    may_find: Callable[[str], bool]
    may_read_drafts: Callable[[Type], bool]
    reads_version: bool
    reads_private: bool
    in_private: bool = False  # whether the values being parsed are inside a private attribute
    faults: list[Fault] = field(default_factory=list)
    drafts: bool = False  # whether the content type has drafts; if so, `status` in a target is ignored
    draft: bool = False  # whether a draft is written, for which only upper limits are checked
    # documentIds by uid and numeric id, filled at the first lookup
    numbers: dict[str, dict[int, str]] = field(default_factory=dict)
    media: MediaInput | None = None
    # content types that the caller is not allowed to find, filled at the first lookup
    hidden: frozenset[str] | None = None
    budget: Budget = UNLIMITED

    def change(
        self, type_: Type, data: Mapping[str, Tree], current: Mapping[str, Any] | None = None
    ) -> Change:
        """Parse a request body. `current` contains the values before the change; for a new version, it is
        None.

        Raises ValidationError for unknown keys and targets.
        """
        _refuse_own_keys(type_, data)
        self._refuse_keys(type_, data, ())
        self._refuse_relations(type_, data, ())
        self.drafts = type_.draft_publish
        values: dict[str, Any] = {}
        links: dict[str, Links] = {}
        by_locale: dict[str, Mapping[str, Links]] = {}
        for name, tree in data.items():
            attribute = type_.attributes.get(name)
            if attribute is None:
                continue
            inner = self._inside(attribute)
            if attribute.type == "relation":
                change = inner._links(attribute, tree, (name,))
                if change != Links():  # An object without operations changes nothing.
                    links[name] = change
                    if not type_.localized and self._stored_in_locales(attribute):
                        by_locale[name] = inner._in_each_locale(attribute, tree, (name,))
            else:
                values[name] = inner._value(attribute, tree, (name,), current[name] if current else _NO_VALUE)
                if name == type_.other_keys:
                    self._refuse_other_keys(type_, values[name])
        return Change(values, links, by_locale, tuple(self.faults), data)

    def _inside(self, attribute: Attribute) -> "Validator":
        if attribute.private and not self.reads_private:
            return replace(self, in_private=True)
        return self

    def _refuse_other_keys(self, type_: Type, value: Any) -> None:
        name = str(type_.other_keys)
        if value is not None and not isinstance(value, dict):
            self._fail((name,), "must be an object")
        elif known := sorted((value or {}).keys() & reserved_keys(type_)):
            self._fail((name, known[0]), f"must not be in {name}, because this key is reserved")

    def _stored_in_locales(self, attribute: Attribute) -> bool:
        target = self.snapshot.schema.types.get(attribute.target or "")
        return attribute.derived and target is not None and target.localized

    def _in_each_locale(self, attribute: Attribute, tree: Tree, path: KeyPath) -> dict[str, Links]:
        parts = split_by_locale(attribute, tree, self.locales, self.locales[0])
        links = {locale: self._links(attribute, part, path) for locale, part in parts.items()}
        # In a one-to-one relation, the target that is added last is kept, so removals are applied first.
        ordered = sorted(links.items(), key=lambda item: bool(item[1].set or item[1].connect))
        return {locale: change for locale, change in ordered if change != Links()}

    def _refuse_keys(self, type_: Type, data: Mapping[str, Tree], path: KeyPath) -> None:
        dotted = attribute_path(path)
        for key, tree in data.items():
            attribute = type_.attributes.get(key)
            if attribute is None:
                if (not path and key in IGNORED_KEYS) or (
                    path and key in ("id", "__component", "__temp_key__")
                ):
                    continue
                error = _unknown_key(key, dotted or None, f" at {dotted}" if dotted else "")
                if near := Suggestions().nearest(key[:_MAX_NAME_CHARS], self._known_names(type_)):
                    error.details[SUGGESTION] = near
                raise error
            if attribute.type == "relation":
                self._refuse_keys_of_targets(attribute, tree, attribute_path((*path, key)))
            for component, item in self._components_in(attribute, tree):
                self._refuse_keys(component, item, (*path, key))

    def _known_names(self, type_: Type) -> list[str]:
        return [
            name
            for name, a in type_.attributes.items()
            if (self.reads_private or not a.private) and (a.type != "relation" or self._may_relate(a))
        ]

    def _refuse_keys_of_targets(self, attribute: Attribute, tree: Tree, dotted: str) -> None:
        for item in targets_in(tree):
            uid = item.get("__type") if attribute.morph else attribute.target
            target = self.snapshot.schema.types.get(uid if isinstance(uid, str) else "")
            if target is None or not self.may_find(target.uid):  # Skip the target, which is rejected later.
                continue
            known = {
                *target.columns,
                *OPERATIONS,
                *OF_TARGETS,
                *(["__type"] if attribute.polymorphic else []),
            }
            if unknown := [key for key in item if key not in known]:
                raise _unknown_key(unknown[0], dotted, f" at {dotted}")

    def _refuse_relations(self, type_: Type, data: Mapping[str, Tree], path: KeyPath) -> None:
        # Raises ValidationError if the caller lacks the `find` permission for a relation's target type.
        for key, tree in data.items():
            attribute = type_.attributes.get(key)
            if attribute is None:
                continue
            dotted, at = attribute_path(path), attribute_path((*path, key))
            if attribute.type == "relation" and not self._may_relate(attribute):
                raise _unknown_key(key, dotted or key, f" at {dotted}" if dotted else "")
            if attribute.polymorphic and not all(map(self._names_type, morph_targets(attribute, tree))):
                raise _unknown_key(key, at, f" at {at}" if dotted else "")
            for component, item in self._components_in(attribute, tree):
                self._refuse_relations(component, item, (*path, key))

    def _names_type(self, item: Tree) -> bool:
        uid = item.get("__type") if isinstance(item, dict) else None
        return isinstance(uid, str) and self.may_find(uid)

    def _may_relate(self, attribute: Attribute) -> bool:
        if attribute.polymorphic:
            return len(self._hidden_types()) < len(self.snapshot.schema.content_types)
        return attribute.target is None or self.may_find(attribute.target)

    def _hidden_types(self) -> frozenset[str]:
        if self.hidden is None:
            types = self.snapshot.schema.content_types
            self.hidden = frozenset(type_.uid for type_ in types if not self.may_find(type_.uid))
        return self.hidden

    def _links(self, attribute: Attribute, tree: Tree, path: KeyPath) -> Links:
        # Existing targets that the caller is not allowed to see are not removed.
        links = read_links(attribute, tree, path, self._resolve)
        links = replace(links, strict=self._reads_targets(attribute))
        if attribute.polymorphic and links.set is not None:
            return replace(links, kept_types=self._hidden_types())
        return links

    def _reads_targets(self, attribute: Attribute) -> bool:
        # The targets of a derived relation depend on the drafts of the documents that store it.
        owner = self.snapshot.schema.types.get(attribute.target or "") if attribute.derived else None
        reads_owners = owner is None or not owner.draft_publish or self.may_read_drafts(owner)
        return self.reads_version and not self.in_private and reads_owners

    def _components_in(self, attribute: Attribute, tree: Tree) -> list[tuple[Type, Mapping[str, Tree]]]:
        items = [item for item in (tree if isinstance(tree, list) else [tree]) if isinstance(item, dict)]
        if attribute.type == "component":
            return [(self.snapshot.schema.types[attribute.component or ""], item) for item in items]
        if attribute.type == "dynamiczone":
            known = ((self.snapshot.schema.types.get(str(item.get("__component"))), item) for item in items)
            return [(type_, item) for type_, item in known if type_ and type_.uid in attribute.components]
        return []

    def _fail(self, path: KeyPath, sentence: str) -> None:
        self.faults.append(Fault(path, sentence))

    # --- values --------------------------------------------------------------------------------

    def _value(self, attribute: Attribute, tree: Tree, path: KeyPath, current: Any) -> Any:
        # `current` is _NO_VALUE for a new document version.
        if attribute.type == "media":
            stored = () if current is _NO_VALUE else current
            sent = () if tree is None else self._media(attribute, tree, path, stored)
            return with_missing_targets(self.snapshot, attribute, stored, sent)
        if tree is None:
            return empty_value(attribute)
        if attribute.type == "component":
            return self._component(attribute, tree, path, current)
        if attribute.type == "dynamiczone":
            return self._zone(attribute, tree, path, current)
        if attribute.type == "blocks":
            faults = [Fault(at, sentence) for at, sentence in find_block_errors(tree, path)]
            self.faults.extend(faults)
            if faults:
                return None
            tree = cast_blocks(tree)
        try:
            value = read_scalar(attribute, tree)
            if attribute.type == "password":
                self._check_password(attribute, tree, path)
            return value
        except InvalidValue as error:
            self._fail(path, _unreadable(attribute, tree, error))
            fraction = _fraction(attribute, tree)
            if fraction is not None:
                for sentence in value_errors(attribute, fraction, Limits(self.draft)):
                    self._fail(path, sentence)
            return None

    def _check_password(self, attribute: Attribute, tree: Tree, path: KeyPath) -> None:
        typed = tree.plain_text if isinstance(tree, HashedPassword) else tree
        for sentence in value_errors(attribute, typed, Limits(self.draft)):
            self._fail(path, sentence)

    def _component(self, attribute: Attribute, tree: Tree, path: KeyPath, current: Any) -> Any:
        type_ = self.snapshot.schema.types[attribute.component or ""]
        if not attribute.repeatable:
            return self._one(type_, tree, path, _by_id(current))
        if not isinstance(tree, list):
            self._fail(path, "must be a list of components")
            return ()
        held = _by_id(current)
        return _without_repetition(self._one(type_, item, (*path, i), held) for i, item in enumerate(tree))

    def _one(self, type_: Type, tree: Tree, path: KeyPath, held: _Held) -> Component:
        # If the `id` is in `held`, the result is a changed version of that component.
        self.budget.spend(len(type_.attributes))
        if not isinstance(tree, dict):
            self._fail(path, "must be an object")
            # The item is replaced rather than skipped, so that the paths of other faults stay correct.
            tree = {}
        if tree.get("__component", type_.uid) != type_.uid:
            self._fail((*path, "__component"), f"must be {type_.uid}")
        before = self._find_component(type_, tree, path, held)
        values = []
        for i, (name, attribute) in enumerate(type_.attributes.items()):
            inner = self._inside(attribute)
            at, current = (*path, name), before.values[i] if before else _NO_VALUE
            if name not in tree:
                values.append(current if before else default_of(attribute))
            elif attribute.type == "relation":
                links = inner._links(attribute, tree[name], at)
                stored = current if before else ()
                sent = links.apply(stored, to_many=attribute.to_many)
                if links.set is not None:
                    sent = with_missing_targets(self.snapshot, attribute, stored, sent)
                values.append(sent)
            else:
                values.append(inner._value(attribute, tree[name], at, current))
        return Component(type_, (before.id if before else self._new_id(type_, tree, path), *values))

    def _find_component(
        self, type_: Type, tree: Mapping[str, Tree], path: KeyPath, held: _Held
    ) -> Component | None:
        # Returns None for a new component. Raises ApplicationError if the id is unknown.
        number = tree.get("id")
        if number is None or held is None or self.in_private:
            return None
        component = held.get((type_.uid, str(number)))
        # Clients can compute ids. The error would reveal which components exist, so only some callers get it.
        if component is None and self.reads_version:
            name = next(str(part) for part in reversed(path) if isinstance(part, str))
            raise ApplicationError(f"Some of the provided components in {name} are not related to the entity")
        return component

    def _new_id(self, type_: Type, tree: Mapping[str, Tree], path: KeyPath) -> int:
        # If an unknown id was ignored, items with the same id are still duplicates, as with known ids.
        number = tree.get("id")
        is_ignored = number is not None and not self.reads_version and not self.in_private
        return derive_id(type_.uid, str(number)) if is_ignored else derive_id(*map(str, path))

    def _zone(self, attribute: Attribute, tree: Tree, path: KeyPath, current: Any) -> tuple[Component, ...]:
        if not isinstance(tree, list):
            self._fail(path, "must be a list of components")
            return ()
        made, held = [], _by_id(current)
        for i, item in enumerate(tree):
            uid = item.get("__component") if isinstance(item, dict) else attribute.components[0]
            if uid not in attribute.components:
                allowed = ", ".join(attribute.components)
                sentence = (
                    "is a required field"
                    if uid is None
                    else f"must be one of the following values: {allowed}"
                )
                self._fail((*path, i, "__component"), sentence)
                continue
            made.append(self._one(self.snapshot.schema.types[str(uid)], item, (*path, i), held))
        return _without_repetition(made)

    # --- targets -------------------------------------------------------------------------------

    def _resolve(self, attribute: Attribute, item: Any, path: KeyPath, existing: bool) -> Any:
        self.budget.spend(1)
        document_id = item.get("documentId") if isinstance(item, dict) else item
        uid = attribute.target
        if attribute.polymorphic:
            uid = item.get("__type") if isinstance(item, dict) else None
        number = item.get("id") if isinstance(item, dict) else item
        if isinstance(uid, str) and not isinstance(document_id, str) and type(number) is int:
            document_id = self._find_by_number(uid, number)
            if document_id is None and isinstance(item, dict) and not existing:
                return None
        if not isinstance(document_id, str) or not document_id or not isinstance(uid, str):
            dotted = ".".join(map(str, path))
            raise ValidationError(f"Invalid relation at {dotted}: relate by documentId", {"path": dotted})
        document_id = to_nfc(document_id)
        status = item.get("status") if isinstance(item, dict) and not self.drafts else None
        if existing and not self._exists(uid, document_id, published=status == "published"):
            raise ValidationError(
                f'Document with id "{document_id}", locale "null" not found',
                {"path": ".".join(map(str, path))},
            )
        return (uid, document_id) if attribute.polymorphic else document_id

    def _find_by_number(self, uid: str, number: int) -> str | None:
        table = self._table(uid)
        if uid not in self.numbers and table:
            statuses = self._statuses(uid)
            versions = [version for version in table.versions.values() if version.status in statuses]
            # Read only this column, because whole rows would stay in memory.
            numbers = column_of(versions, ID)
            self.numbers[uid] = {n: version.document_id for n, version in zip(numbers, versions, strict=True)}
        return self.numbers[uid].get(number) if table else None

    def _table(self, uid: str) -> Table | None:
        # Check the content type: this may be the neighbour of a target, whose type has not been checked yet.
        return self.snapshot.tables.get(uid) if self.may_find(uid) else None

    def _statuses(self, uid: str) -> tuple[str, ...]:
        type_ = self.snapshot.schema.types[uid]
        return (PUBLISHED, DRAFT) if self.may_read_drafts(type_) else (PUBLISHED,)

    def _exists(self, uid: str, document_id: str, *, published: bool) -> bool:
        table = self._table(uid)
        if table is None:
            return False
        return any(
            (document_id, locale, status) in table.versions
            for locale in self.locales
            for status in ((PUBLISHED,) if published else self._statuses(uid))
        )

    def _media(self, attribute: Attribute, tree: Tree, path: KeyPath, current: Any) -> tuple[str, ...]:
        if self.media is None:
            default = next((locale for locale, _ in self.snapshot.tables[UPLOAD].order), self.locales[0])
            self.media = MediaInput(self.snapshot, default, self.faults)
        return self.media.read(tree, path, current, multiple=attribute.multiple)


def _refuse_own_keys(type_: Type, data: Mapping[str, Tree]) -> None:
    others = [key for key in data if key not in type_.attributes]
    if key := next((key for key in IDS if key in others), None):
        raise ValidationError(f"Invalid key {key}", {"key": key, "source": "body"})
    if key := next((key for key in others if key in READ_ONLY), None):
        raise _unknown_key(key, key)


def _unreadable(attribute: Attribute, tree: Tree, error: InvalidValue) -> str:
    if attribute.type == "enumeration" and not isinstance(tree, dict | list):
        return f"must be one of the following values: {', '.join(attribute.enum)}, "
    if _fraction(attribute, tree) is not None:
        return "must be an integer"
    if attribute.type == "biginteger":
        return "must be a valid integer"
    fix = "" if isinstance(tree, dict | list) else error.fix or advice(attribute, tree)
    return f"must be {error.expected}" + (f"; {fix}" if fix else "")


def _fraction(attribute: Attribute, tree: Tree) -> float | None:
    # Returns None if the value is not a finite number.
    try:
        is_number = attribute.type == "integer" and isinstance(tree, str) and "_" not in tree
        number = float(tree) if is_number else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _by_id(current: Any) -> _Held:
    if current is _NO_VALUE:
        return None
    held = current if isinstance(current, tuple) else () if current is None else (current,)
    return {(component.type.uid, str(component.id)): component for component in reversed(held)}


def _without_repetition(components: Iterable[Component]) -> tuple[Component, ...]:
    return tuple({component.id: component for component in components}.values())


def _unknown_key(key: str, path: str | None, at: str = "") -> ValidationError:
    # This error is also used for relations to content types for which the caller has no permission.
    return ValidationError(f"Invalid key {key}{at}", {"key": key, "path": path, "source": "body"})


def check(
    type_: Type,
    values: Mapping[str, Any],
    faults: Iterable[Fault],
    is_checked: Callable[[str], bool],
    draft: bool,
) -> list[Fault]:
    """Return `faults` plus a fault for each value that violates an option of its attribute.

    In a draft, only upper limits are checked.
    """
    row, body_faults = [values[name] for name in type_.attributes], list(faults)
    broken = errors_within(type_, row, Limits(draft, MAX_STRING_CHARS))
    others = (Fault(path, sentence) for path, sentence in broken if is_checked(str(path[0])))
    fault_paths = {fault.path for fault in body_faults}
    around = {outer for path in fault_paths for outer in _outwards(path)}
    return [*body_faults, *(fault for fault in others if not _is_known(fault.path, fault_paths, around))]


def _is_known(path: KeyPath, fault_paths: Set[KeyPath], around: Set[KeyPath]) -> bool:
    # One fault is enough for a value, its parts, and the values that contain it.
    return path in around or any(outer in fault_paths for outer in _outwards(path))


def _outwards(path: KeyPath) -> Iterator[KeyPath]:
    return (path[:end] for end in range(len(path), 0, -1))
