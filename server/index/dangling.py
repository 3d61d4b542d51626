"""Relations and media that point to nothing: they read as absent, and are problems of their files."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from server.documents.document import PUBLISHED, VALUES, Document, column_of
from server.documents.ids import id_of_reference
from server.documents.readers import Unreadable, read_target
from server.documents.values import components_at
from server.formats.text_positions import KeyPath, Position, Positions, line_and_column, nearest
from server.formats.tree import Tree
from server.index.snapshot import Snapshot
from server.problems import Problem
from server.schema.model import ACCOUNT_UIDS, Attribute, Schema, Type, title_of
from server.schema.spelling import Suggestions

Key = tuple[str, str]  # uid and documentId of a document; MEDIA and the path of a media file
MEDIA = "media"
MAX_TITLED_VERSIONS = 50_000  # The titles of a larger type are not searched.
Parsed = Callable[[str], tuple[Tree, Positions]]


def dangling(
    snapshot: Snapshot, parsed: Parsed, documents: Iterable[Document] | None = None
) -> Iterator[Problem]:
    """A warning for each target, in some documents or in all, that no document or media file has.

    `parsed` gives the tree of a file, and the positions of everything in it.
    """
    targets = _Targets(snapshot)
    for document in _all(snapshot) if documents is None else documents:
        missing = [
            (attribute, path, target)
            for attribute, path, target in _targets(
                snapshot.schema, document.type, document.read_row()[VALUES], ()
            )
            if not exists(snapshot, key_of(attribute, target))
        ]
        tree, lines = parsed(document.path) if missing else ({}, {})
        for attribute, path, target in missing:
            what, fix = targets.sentences(attribute, path, target)
            position = _position(tree, lines, attribute, path, target)
            line, column = line_and_column(position)
            yield Problem(document.path, line, what, fix, "warning", column, "dangling", path)


def _all(snapshot: Snapshot) -> Iterator[Document]:
    """One version for each file."""
    for table in (table for uid, table in snapshot.tables.items() if uid not in ACCOUNT_UIDS):
        yield from without_copies(snapshot, table.versions.values())


def without_copies(snapshot: Snapshot, versions: Iterable[Document]) -> Iterator[Document]:
    """One version for each file of some."""
    for document in versions:
        if document.status == PUBLISHED or not _is_copy(snapshot, document):
            yield document


def _position(
    tree: Tree, lines: Positions, attribute: Attribute, path: KeyPath, target: Any
) -> Position | None:
    """Where a target is written: its own position in a list, else that of the attribute."""
    for key in path:
        try:
            tree = tree[key]
        except (LookupError, TypeError):  # The file has changed since.
            return nearest(lines, path)
    for i, item in enumerate(tree if isinstance(tree, list) else ()):
        try:
            if read_target(item, attribute) == target:
                return nearest(lines, (*path, i))
        except Unreadable:
            continue
    return nearest(lines, path)


def _is_copy(snapshot: Snapshot, draft: Document) -> bool:
    """Whether a draft is the published file shown as a draft, which needs no second look."""
    live = snapshot.get(draft.type, draft.document_id, draft.locale, PUBLISHED)
    return live is not None and live.path == draft.path


def _targets(
    schema: Schema, type_: Type, values: Any, path: KeyPath
) -> Iterator[tuple[Attribute, KeyPath, Any]]:
    for i, attribute in schema.referring[type_.uid]:
        value = values[i]
        if not value:
            continue
        at = (*path, attribute.name)
        if attribute.has_targets:
            for target in value:
                yield attribute, at, target
        for inner, component in components_at(attribute, value, at):
            yield from _targets(schema, component.type, component.values, inner)


def related_to_users(snapshot: Snapshot) -> Iterator[Document]:
    """The documents that relate to users and roles, each as often as it does."""
    for document in _all(snapshot):
        for attribute, _, target in _targets(snapshot.schema, document.type, document.read_row()[VALUES], ()):
            uid = target[0] if isinstance(target, tuple) else attribute.target
            if attribute.type == "relation" and uid in ACCOUNT_UIDS:
                yield document


def key_of(attribute: Attribute, target: Any) -> Key:
    """What a target of an attribute names, as `exists` takes it."""
    if attribute.type == "media":
        return MEDIA, target
    return target if isinstance(target, tuple) else (attribute.target or "", target)


def exists(snapshot: Snapshot, key: Key) -> bool:
    """Whether there is a document in any locale and status, or a media file."""
    uid, document_id = key
    if uid == MEDIA:
        return document_id in snapshot.media
    if uid in ACCOUNT_UIDS and snapshot.users is None:
        return True  # nobody knows: the users are not in this snapshot
    table = snapshot.tables.get(uid)
    # A type that is not in the index (of another plugin) can't be looked into.
    return table is None or any((document_id, *at) in table.versions for at in table.order)


def keep_dangling(
    snapshot: Snapshot, attribute: Attribute, stored: tuple[Any, ...], sent: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return the stored targets if those that exist are the ones that a client has sent, else the sent ones.

    Readers are not shown the others, so a client that sends back what it has read leaves them in the file.
    """
    shown = tuple(target for target in stored if exists(snapshot, key_of(attribute, target)))
    return stored if sent == shown else sent


def pointing(snapshot: Snapshot, keys: Collection[Key]) -> Iterator[Document]:
    """The documents that refer to some documents or media files, whether or not there are such."""
    for document in _all(snapshot):
        targets = _targets(snapshot.schema, document.type, document.read_row()[VALUES], ())
        if any(key_of(attribute, target) in keys for attribute, _, target in targets):
            yield document


class _Targets:
    """The documents of a snapshot, by what a file may call them: says which were probably meant."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._titles: dict[str, dict[str, str]] = {}
        self._suggestions = Suggestions()

    def sentences(self, attribute: Attribute, path: KeyPath, target: Any) -> tuple[str, str]:
        """What is wrong with a target that is not there, and how to fix it."""
        name = ".".join(map(str, path))
        if attribute.type == "media":
            fix = self._split_targets(attribute, MEDIA, target) or self._suggestions.of(
                target, self._snapshot.media
            )
            if "://" in target:
                fix = "put the file into content/uploads/, and write its path there"
            return f"{name}: there is no content/uploads/{target}", fix or "add the file, or remove the path"
        uid, document_id = key_of(attribute, target)
        meant = self._find_meant(uid, document_id)
        fix = f'did you mean "{meant}"?' if meant else self._split_targets(attribute, uid, document_id)
        ids = (key[0] for key in self._snapshot.tables[uid].versions)
        fix = fix or self._suggestions.of(document_id, ids)
        return f"{name}: {no_document(uid, document_id)}", fix or "fix the id, or remove it"

    def _split_targets(self, attribute: Attribute, uid: str, text: str) -> str:
        """The list that was meant by a text with several targets in it; "" where it has but one."""
        many = attribute.multiple if attribute.type == "media" else attribute.to_many
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if len(parts) < 2:
            parts = text.split()
            if not all(self._find_meant(uid, part) for part in parts):
                return ""
        if len(parts) < 2 or not many:
            return ""
        return f"write a list: [{', '.join(self._find_meant(uid, part) or part for part in parts)}]"

    def _find_meant(self, uid: str, text: str) -> str:
        """The one document that has a text as its id or its title; "" where none has, or several do."""
        if uid == MEDIA:
            return text if text in self._snapshot.media else ""
        return text if exists(self._snapshot, (uid, text)) else self._titles_of(uid).get(_fold(text), "")

    def _titles_of(self, uid: str) -> dict[str, str]:
        """By title, the one document of a type that has it; "" where several do."""
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
    """A title as a file may refer to it: in any case, with any spaces, and as ids are read."""
    return " ".join(id_of_reference(title).casefold().split())


def no_document(uid: str, document_id: str) -> str:
    """The sentence that says that a document is not there."""
    return f'there is no document "{document_id}" of {uid}'
