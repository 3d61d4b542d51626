"""What a change is prepared with: the site as it is, and the files as they are to be."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.encode import changed_keys
from server.documents.file_keys import gather, spread
from server.documents.path_rules import MARKDOWN, Layout
from server.documents.values import same_values
from server.errors import ConflictError, ValidationError
from server.formats.tree import SyntaxProblem, Tree
from server.index.snapshot import Snapshot, apply
from server.schema.model import Type
from server.storage.changeset import Changeset
from server.storage.document_text import WRITTEN_NULL, change_text
from server.storage.entry import Entry
from server.storage.files import size_signature
from server.storage.read import parse, refuse_empty
from server.storage.store import Store

Values = dict[str, Any]
Versions = tuple[Document | None, ...]
MAX_FILES = 1000  # Files that one write changes: of a document, and of others that relate to it.
TOO_MANY_FILES_MESSAGE = f"This changes more than {MAX_FILES:,} files; relate fewer documents at once"


def _none(type_: Type, document_id: str, locale: str) -> Iterable[Document]:
    return ()


class FirstSeen:
    """What one write was prepared on the first time, in the order in which it asks, each time for the same.

    A write that a git remote has to take is prepared again where another machine was faster.
    """

    def __init__(self) -> None:
        self._found: list[Versions] = []
        self._next = 0
        self.is_again = False

    @property
    def is_asked(self) -> bool:
        """Whether the write compares versions by itself."""
        return bool(self._found)

    def begin(self) -> None:
        """The write is about to be prepared."""
        self._next = 0
        if not self.is_again:
            self._found.clear()

    def again(self) -> None:
        """What the write was prepared on by now is the first from now on, however often it is prepared."""
        self.is_again = True

    def of(self, current: Versions) -> Versions:
        """What the write was first prepared on, where it is prepared on something now."""
        if not self.is_again:
            self._found.append(current)
            return current
        at, self._next = self._next, self._next + 1
        return self._found[at] if at < len(self._found) else current


@dataclass(frozen=True, slots=True)
class Context:
    """One change's view of the site: what there is, the files that will be, and its timestamp `now`.

    `touched` are the paths of the files that the change has set or removed, with the document that each held.
    `recent` gives the versions of a document in a locale that there were before, the newest first. `first`
    knows what the change was prepared on before, where it is prepared again.
    """

    snapshot: Snapshot
    settings: Settings
    store: Store
    changeset: Changeset
    now: str
    recent: Callable[[Type, str, str], Iterable[Document]] = _none
    first: FirstSeen = field(default_factory=FirstSeen)
    touched: dict[str, Document | None] = field(default_factory=dict)
    _outer: tuple[dict[str, Document | None], ...] = ()  # `touched` of the same write's earlier contexts
    _trees: dict[str, tuple[str, Mapping[str, Tree]]] = field(default_factory=dict)  # by path, with its text

    @property
    def layout(self) -> Layout:
        """Where documents are."""
        return self.store.layout

    def after(self) -> "Context":
        """The context of a further change, which sees what this one comes to and adds to the same files.

        What this one replaces is of the versions that there were before.
        """
        if not self.touched:
            return self
        removed = [document for document in self.touched.values() if document]
        entries = [self._entry(path) for path in sorted(self.touched) if self.changeset.exists(path)]
        added = [entry.document for entry in entries if entry and entry.document]
        snapshot = apply(self.snapshot, removed, added)
        return replace(self, snapshot=snapshot, recent=partial(self._before, removed), touched={}, _outer=())

    def next_step(self) -> "Context":
        """Return the context of a further step of the same change, which sees what the steps before it did.

        The files that it touches are among those that this context has touched.
        """
        if not self.touched:
            return self
        return replace(self.after(), recent=self.recent, _outer=(*self._outer, self.touched))

    def _before(
        self, replaced: Iterable[Document], type_: Type, document_id: str, locale: str
    ) -> Iterator[Document]:
        """The versions that there were before a further change, as `recent` gives them."""
        for document in replaced:
            if (document.type.uid, document.document_id, document.locale) == (type_.uid, document_id, locale):
                yield document
        yield from self.recent(type_, document_id, locale)

    def _entry(self, path: str) -> Entry | None:
        """What a file will be read as, once it is written."""
        data = self.changeset.text(path).encode()
        return self.store.entry(path, data, size_signature(len(data), time.time_ns()))

    def changes_published(self) -> bool:
        """Whether a file that the change has set or removed held a published version, or is to."""
        entries = (self._entry(path) for path in self.touched if self.changeset.exists(path))
        documents = (*self.touched.values(), *(entry.document for entry in entries if entry))
        return any(document is not None and document.status == PUBLISHED for document in documents)

    def versions(self, type_: Type, document_id: str, locale: str) -> tuple[Document | None, Document | None]:
        """What is published of a document, and its draft where that has a file of its own."""
        published, draft = (
            next(iter(self.snapshot.claims.get((type_.uid, document_id, locale, status), ())), None)
            for status in (PUBLISHED, DRAFT)
        )
        return published, draft

    def only_version(self, type_: Type, document_id: str, locale: str, status: str) -> Document | None:
        """A version that has a file of its own. Raises ConflictError where a second file claims to be it."""
        document, *others = self.snapshot.claims.get((type_.uid, document_id, locale, status), ()) or (None,)
        if others:
            raise ConflictError(f"{others[0].path} claims this document as well; give it another id")
        return document

    def changes(self, document: Document, new: Values) -> dict[str, Any]:
        """What the file of a document has to say otherwise, by key, so that it holds new values."""
        old = values_of(document)
        if same_values(old, new):
            return {}
        return changed_keys(document.type, old, new, self.tree(document))

    def tree(self, document: Document) -> Mapping[str, Tree]:
        """What the file of a document says, by attribute. ConflictError where it can't be read."""
        with unreadable(document.path):
            text = self._text(document)
            known = self._trees.get(document.path)
            if known is None or known[0] != text:
                said = parse(document.path, text, document.type.body)
                known = self._trees[document.path] = text, gather(document.type, said)
            return known[1]

    def changed(self, document: Document, changes: Mapping[str, Any]) -> str:
        """The text of a document's file with some attributes changed. ConflictError where that can't be."""
        type_ = document.type
        keys = spread(type_, changes, self.tree(document) if type_.other_keys in changes else None)
        body = type_.attributes.get(type_.body or "")
        if body and body.has_default and keys.get(body.name, "") is None and document.path.endswith(MARKDOWN):
            keys = {**keys, body.name: WRITTEN_NULL}  # No body would mean the default.
        with unreadable(document.path):
            return change_text(document.path, self._text(document), type_.body, keys)

    def _text(self, document: Document) -> str:
        text = self.changeset.text(document.path)
        refuse_empty(text)
        return text

    def rewrite(self, document: Document, changes: Mapping[str, Any]) -> None:
        """Change some keys of the file of a document that was not itself edited: its timestamps stay."""
        self.put(document.path, self.changed(document, changes), document)

    def put(self, path: str, text: str, held: Document | None = None) -> None:
        """Set the text of the file of another document. ValidationError where that is one too many."""
        self._refuse_too_many(path)
        self._put(path, text, held)

    def _refuse_too_many(self, path: str) -> None:
        """Raise ValidationError if a change of this file would be one too many."""
        if self.changeset.count >= MAX_FILES and not self.changeset.changes(path):
            raise ValidationError(TOO_MANY_FILES_MESSAGE)

    def _put(self, path: str, text: str, held: Document | None) -> None:
        self._touch(path, held)
        self.changeset.put(path, text)

    def _touch(self, path: str, held: Document | None) -> None:
        """Note that a file is set or removed that held a document, or none, before."""
        for touched in (self.touched, *self._outer):
            touched.setdefault(path, held)

    def replace(self, path: str, text: str, *known: Document | None) -> None:
        """Let a file hold a version of a document, where it is new or holds one of those that are `known`.

        Raises ConflictError where it is another document's, or somebody has written what can't be read.
        """
        held = next((document for document in known if document and document.path == path), None)
        if held is not None:
            self.tree(held)
        elif self.changeset.exists(path):
            raise ConflictError(f"{path} is there already, and is not this document")
        self._put(path, text, held)

    def remove(self, document: Document) -> None:
        """Remove the file of a version. Raises ConflictError where somebody has made it unreadable."""
        self.tree(document)
        self._touch(document.path, document)
        self.changeset.delete(document.path)

    def remove_other(self, document: Document) -> None:
        """Remove the file of another document's version. ValidationError if that is one too many."""
        self._refuse_too_many(document.path)
        self.remove(document)

    def sibling(self, path: str, *, draft: bool, locale: str | None = None) -> str:
        """The path of another version of the document in `path`."""
        found = self.layout.sibling(path, draft=draft, locale=locale)
        if found is None:
            raise ConflictError(f"{path} is no document any more; try again")
        return found


@contextmanager
def unreadable(path: str) -> Iterator[None]:
    """Turn what can't be read in a file into a ConflictError that names it."""
    try:
        yield
    except SyntaxProblem as error:
        line = f", line {error.line}" if error.line else ""
        raise ConflictError(f"{path}{line}: {error.message}; fix the file first") from error


def values_of(document: Document) -> Values:
    """A document's attributes by name."""
    return dict(zip(document.type.attributes, document.values, strict=True))
