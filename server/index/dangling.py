"""Relations and media paths whose target does not exist."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from server.documents.document import PUBLISHED, VALUES, Document, column_of
from server.documents.ids import id_of_reference
from server.documents.readers import InvalidValue, read_target
from server.documents.values import components_at
from server.formats.text_positions import KeyPath, Position, Positions, line_and_column, nearest_position
from server.formats.tree import Tree
from server.index.snapshot import Snapshot
from server.problems import Problem
from server.schema.model import ACCOUNT_UIDS, Attribute, Schema, Type, title_of
from server.schema.spelling import Suggestions

Key = tuple[str, str]  # (uid, documentId) for a document, (MEDIA, path) for a media file
MEDIA = "media"
MAX_TITLED_VERSIONS = 50_000  # If a content type has more versions, titles are not searched.
Parsed = Callable[[str], tuple[Tree, Positions]]


def find_dangling(
    snapshot: Snapshot,
    parse: Parsed,
    documents: Iterable[Document] | None = None,
    target_keys: Collection[Key] | None = None,
) -> Iterator[Problem]:
    """Yield a warning for each missing target to which `documents` refer. The default is all documents.

    If `target_keys` is given, only these targets are checked. `parse` returns the tree and positions of a
    file.
    """
    targets = _TargetLookup(snapshot)
    for document in _all(snapshot) if documents is None else documents:
        missing = [
            (attribute, path, target)
            for attribute, path, target in targets_in(
                snapshot.schema, document.type, document.read_row()[VALUES], ()
            )
            if not exists(snapshot, key_of(attribute, target))
            and (target_keys is None or key_of(attribute, target) in target_keys)
        ]
        tree, lines = parse(document.path) if missing else ({}, {})
        for attribute, path, target in missing:
            message, fix = targets.describe(attribute, path, target)
            position = _position(tree, lines, attribute, path, target)
            line, column = line_and_column(position)
            yield Problem(document.path, line, message, fix, "warning", column, "dangling", path)


def _all(snapshot: Snapshot) -> Iterator[Document]:
    for table in (table for uid, table in snapshot.tables.items() if uid not in ACCOUNT_UIDS):
        yield from without_copies(snapshot, table.versions.values())


def without_copies(snapshot: Snapshot, versions: Iterable[Document]) -> Iterator[Document]:
    """Yield the versions, except drafts that are only copies of the published version."""
    for document in versions:
        if document.status == PUBLISHED or not _is_copy(snapshot, document):
            yield document


def _position(
    tree: Tree, lines: Positions, attribute: Attribute, path: KeyPath, target: Any
) -> Position | None:
    for key in path:
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            # The file has changed since the snapshot was created, so the value is no longer at this path.
            return nearest_position(lines, path)
    for i, item in enumerate(tree if isinstance(tree, list) else ()):
        try:
            if read_target(item, attribute) == target:
                return nearest_position(lines, (*path, i))
        except InvalidValue:
            continue
    return nearest_position(lines, path)


def _is_copy(snapshot: Snapshot, draft: Document) -> bool:
    published = snapshot.get(draft.type, draft.document_id, draft.locale, PUBLISHED)
    return published is not None and published.path == draft.path


def targets_in(
    schema: Schema, type_: Type, values: Any, path: KeyPath
) -> Iterator[tuple[Attribute, KeyPath, Any]]:
    """Yield the attribute, path and target of each reference in `values`, including those in components."""
    for i, attribute in schema.reference_attributes[type_.uid]:
        value = values[i]
        if not value:
            continue
        at = (*path, attribute.name)
        if attribute.has_targets:
            for target in value:
                yield attribute, at, target
        for inner, component in components_at(attribute, value, at):
            yield from targets_in(schema, component.type, component.values, inner)


def referred_keys(snapshot: Snapshot) -> Iterator[Key]:
    for document in _all(snapshot):
        for attribute, _, target in targets_in(
            snapshot.schema, document.type, document.read_row()[VALUES], ()
        ):
            yield key_of(attribute, target)


def documents_with_users(snapshot: Snapshot) -> Iterator[Document]:
    """Yield the documents that refer to users or roles, once for each such reference."""
    for document in _all(snapshot):
        for attribute, _, target in targets_in(
            snapshot.schema, document.type, document.read_row()[VALUES], ()
        ):
            uid = target[0] if isinstance(target, tuple) else attribute.target
            if attribute.type == "relation" and uid in ACCOUNT_UIDS:
                yield document


def key_of(attribute: Attribute, target: Any) -> Key:
    if attribute.type == "media":
        return MEDIA, target
    return target if isinstance(target, tuple) else (attribute.target or "", target)


def exists(snapshot: Snapshot, key: Key) -> bool:
    """Return True if the media file exists, or if the document exists in any locale or status.

    If the snapshot does not index the target's type, the target is assumed to exist.
    """
    uid, document_id = key
    if uid == MEDIA:
        return document_id in snapshot.media
    if uid in ACCOUNT_UIDS and snapshot.users is None:
        return True  # without users in this snapshot, assume that the user exists
    table = snapshot.tables.get(uid)
    # Types from other Strapi plugins are not indexed, so their documents can't be checked.
    return table is None or any((document_id, *at) in table.versions for at in table.order)


def with_missing_targets(
    snapshot: Snapshot, attribute: Attribute, stored: tuple[Any, ...], sent: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the targets to store if a client sends the targets `sent`.

    Clients can't see missing targets. If `sent` equals the existing targets in `stored`, the client has
    changed nothing, so the missing targets are kept.
    """
    existing = tuple(target for target in stored if exists(snapshot, key_of(attribute, target)))
    return stored if sent == existing else sent


def pointing(snapshot: Snapshot, keys: Collection[Key]) -> Iterator[Document]:
    for document in _all(snapshot):
        targets = targets_in(snapshot.schema, document.type, document.read_row()[VALUES], ())
        if any(key_of(attribute, target) in keys for attribute, _, target in targets):
            yield document


class _TargetLookup:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._titles: dict[str, dict[str, str]] = {}
        self._similar: dict[Key, str] = {}
        self._suggestions = Suggestions()

    def describe(self, attribute: Attribute, path: KeyPath, target: Any) -> tuple[str, str]:
        name = ".".join(map(str, path))
        if attribute.type == "media":
            fix = self._split_targets(attribute, MEDIA, target) or self._suggestions.suggest(
                target, self._snapshot.media
            )
            if "://" in target:
                fix = "put the file into content/uploads/, and use its path in that folder"
            return (
                f"{name}: the file content/uploads/{target} does not exist",
                fix or "add the file, or remove the path",
            )
        uid, document_id = key_of(attribute, target)
        suggestion = self._find_by_id_or_title(uid, document_id)
        fix = (
            f'did you mean "{suggestion}"?'
            if suggestion
            else self._split_targets(attribute, uid, document_id)
        )
        fix = fix or self._similar_id(uid, document_id)
        return f"{name}: {no_document(uid, document_id)}", fix or "fix the id, or remove it"

    def _similar_id(self, uid: str, document_id: str) -> str:
        # Cached, because many documents may refer to the same missing document.
        if (uid, document_id) not in self._similar:
            ids = (key[0] for key in self._snapshot.tables[uid].versions)
            self._similar[uid, document_id] = self._suggestions.suggest(document_id, ids)
        return self._similar[uid, document_id]

    def _split_targets(self, attribute: Attribute, uid: str, text: str) -> str:
        # Returns the suggestion to write a list, or "" if `text` is not a list of targets.
        many = attribute.multiple if attribute.type == "media" else attribute.to_many
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if len(parts) < 2:
            parts = text.split()
            if not all(self._find_by_id_or_title(uid, part) for part in parts):
                return ""
        if len(parts) < 2 or not many:
            return ""
        return f"write a list: [{', '.join(self._find_by_id_or_title(uid, part) or part for part in parts)}]"

    def _find_by_id_or_title(self, uid: str, text: str) -> str:
        # Returns "" if there is no such document, or more than one with this title.
        if uid == MEDIA:
            return text if text in self._snapshot.media else ""
        return text if exists(self._snapshot, (uid, text)) else self._ids_by_title(uid).get(_fold(text), "")

    def _ids_by_title(self, uid: str) -> dict[str, str]:
        # A title shared by more than one document maps to "".
        if uid not in self._titles:
            titles: dict[str, str] = {}
            documents = list(self._snapshot.tables[uid].versions.values()) if uid not in ACCOUNT_UIDS else []
            type_ = self._snapshot.schema.types.get(uid)
            name = title_of(type_) if type_ and len(documents) <= MAX_TITLED_VERSIONS else None
            values = column_of(documents, type_.position[name]) if type_ and name else ()
            for document, value in zip(documents, values, strict=False):
                title = _fold(str(value or ""))
                if titles.setdefault(title, document.document_id) != document.document_id:
                    titles[title] = ""
            self._titles[uid] = titles
        return self._titles[uid]


def _fold(title: str) -> str:
    # A file path is converted to an id, so that it can be compared with ids.
    return " ".join(id_of_reference(title).casefold().split())


def no_document(uid: str, document_id: str) -> str:
    return f'the document "{document_id}" of type {uid} does not exist'
