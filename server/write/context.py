"""Context of a change: the site's state and the changed files."""

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from server.config.model import Settings
from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.encode import changed_keys, encode
from server.documents.file_keys import collect_other_keys, spread_other_keys
from server.documents.path_rules import MARKDOWN, Layout
from server.documents.values import same_values
from server.errors import ConflictError, ValidationError
from server.formats.tree import SyntaxProblem, Tree
from server.index.budget import UNLIMITED, Budget
from server.index.snapshot import Snapshot, apply
from server.schema.model import Type
from server.storage.changeset import Changeset
from server.storage.document_text import WRITTEN_NULL, change_text
from server.storage.entry import Entry
from server.storage.files import size_signature
from server.storage.read import parse, refuse_empty
from server.storage.store import Store
from server.write.broken_files import conflict_error, contains_version, error_in_file, invalid_attributes

# The cost of parsing or changing a document's text. See `server.index.budget` for the cost of a step.
_STEPS_PER_TEXT, _CHARS_PER_STEP = 100, 16
Values = dict[str, Any]
Versions = tuple[Document | None, ...]
# maximum number of files that one write can change, including those that change only because of relations
MAX_FILES = 1000
TOO_MANY_FILES_MESSAGE = (
    f"This write would change more than {MAX_FILES:,} files; change fewer relations at once"
)


def _none(type_: Type, document_id: str, locale: str) -> Iterable[Document]:
    return ()


class BaseVersions:
    """The document versions on which the first attempt at a write was based.

    If the write is retried, they are compared with the current versions.
    """

    def __init__(self) -> None:
        self._versions: list[Versions] = []
        self._next = 0
        self.is_retry = False

    @property
    def has_versions(self) -> bool:
        return bool(self._versions)

    def begin(self) -> None:
        self._next = 0
        if not self.is_retry:
            self._versions.clear()

    def start_retry(self) -> None:
        self.is_retry = True

    def record_or_replay(self, current: Versions) -> Versions:
        """In the first attempt at a write, record `current` and return it.

        In a retry, return the versions that the first attempt recorded.
        """
        if not self.is_retry:
            self._versions.append(current)
            return current
        at, self._next = self._next, self._next + 1
        return self._versions[at] if at < len(self._versions) else current


@dataclass(frozen=True, slots=True)
class Context:
    """Input for one change, and the `changeset` that collects the changed files.

    - `find_recent`: yields earlier versions of a document in a locale, newest first
    - `broken`: the files that had errors before the change, by path
    - `old_documents`: for each written or deleted file, the document that it contained before
    """

    snapshot: Snapshot
    settings: Settings
    store: Store
    changeset: Changeset
    now: str
    find_recent: Callable[[Type, str, str], Iterable[Document]] = _none
    base_versions: BaseVersions = field(default_factory=BaseVersions)
    old_documents: dict[str, Document | None] = field(default_factory=dict)
    broken: Mapping[str, Entry] = field(default_factory=dict)
    budget: Budget = UNLIMITED
    # the `old_documents` of each earlier step of the same change
    _outer: tuple[dict[str, Document | None], ...] = ()
    # each file's text and parsed values, by path
    _trees: dict[str, tuple[str, Mapping[str, Tree]]] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return self.store.layout

    def for_next_change(self) -> "Context":
        if not self.old_documents:
            return self
        removed = [document for document in self.old_documents.values() if document]
        entries = [self._entry(path) for path in sorted(self.old_documents) if self.changeset.exists(path)]
        added = [entry.document for entry in entries if entry and entry.document]
        snapshot = apply(self.snapshot, removed, added)
        return replace(
            self, snapshot=snapshot, find_recent=partial(self._before, removed), old_documents={}, _outer=()
        )

    def next_step(self) -> "Context":
        # Paths that the next step writes are also added to the `old_documents` of this context.
        if not self.old_documents:
            return self
        return replace(
            self.for_next_change(), find_recent=self.find_recent, _outer=(*self._outer, self.old_documents)
        )

    def _before(
        self, replaced: Iterable[Document], type_: Type, document_id: str, locale: str
    ) -> Iterator[Document]:
        for document in replaced:
            if (document.type.uid, document.document_id, document.locale) == (type_.uid, document_id, locale):
                yield document
        yield from self.find_recent(type_, document_id, locale)

    def _entry(self, path: str) -> Entry | None:
        return self._parse(path, self.changeset.text(path))

    def _parse(self, path: str, text: str) -> Entry | None:
        self._spend(text)
        data = text.encode()
        return self.store.parse_file(path, data, size_signature(len(data), time.time_ns()))

    def changes_published(self) -> bool:
        # The files after the change can also contain published versions.
        entries = (self._entry(path) for path in self.old_documents if self.changeset.exists(path))
        documents = (*self.old_documents.values(), *(entry.document for entry in entries if entry))
        return any(document is not None and document.status == PUBLISHED for document in documents)

    def versions(self, type_: Type, document_id: str, locale: str) -> tuple[Document | None, Document | None]:
        self.budget.spend(1)
        published, draft = (
            next(iter(self.snapshot.claims.get((type_.uid, document_id, locale, status), ())), None)
            for status in (PUBLISHED, DRAFT)
        )
        return published, draft

    def only_version(self, type_: Type, document_id: str, locale: str, status: str) -> Document | None:
        """Return the document's version in this locale and with this status, or None if it does not exist.

        Raises ConflictError if several files contain this version.
        """
        document, *others = self.snapshot.claims.get((type_.uid, document_id, locale, status), ()) or (None,)
        if others:
            raise ConflictError(
                f"{others[0].path} also contains this document; change the documentId in that file"
            )
        return document

    def changed_keys(
        self, document: Document, new_values: Values, rewritten_names: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return the keys and values to write to a document's file so that it contains `new_values`.

        The attributes in `rewritten_names` are included even if their values are unchanged.
        """
        old, attributes = values_of(document), document.type.attributes
        if same_values(old, new_values) and not rewritten_names:
            return {}
        rewritten = {name: encode(attributes[name], new_values[name]) for name in rewritten_names}
        return {**rewritten, **changed_keys(document.type, old, new_values, self.tree(document))}

    def invalid_attributes(self, document: Document) -> frozenset[str]:
        broken = self._broken(document.path)
        return invalid_attributes(broken) if broken else frozenset()

    def require_valid_file(self, path: str) -> None:
        self._refuse(self._broken(path))

    def require_served(self, type_: Type, document_id: str | None, locales: Container[str]) -> None:
        """Raise ConflictError if a version of the document is not served because its file has an error.

        If `document_id` is None, all documents of the content type are checked.
        """
        for path, entry in self.broken.items():
            is_unserved = entry.document is None and not self.changeset.changes(path)
            if is_unserved and contains_version(entry, self.layout, type_, document_id, locales):
                self._refuse(entry)

    def _broken(self, path: str) -> Entry | None:
        # An earlier change in the same changeset might have fixed the file.
        if not self.changeset.changes(path):
            return self.broken.get(path)
        return self._entry(path) if path in self.broken and self.changeset.exists(path) else None

    def _refuse(self, entry: Entry | None) -> None:
        problem = entry.error if entry else None
        if entry and problem:
            self.changeset.signature(entry.path)  # Record the access, so that a retry reads the file again.
            raise conflict_error(problem, self.layout)

    def tree(self, document: Document) -> Mapping[str, Tree]:
        """Return the parsed content of a document's file.

        Raises ConflictError if the file has a syntax error.
        """
        with syntax_errors_as_conflicts(document.path):
            text = self._text(document)
            cached = self._trees.get(document.path)
            if cached is None or cached[0] != text:
                self._spend(text)
                parsed = parse(document.path, text, document.type.body)
                cached = self._trees[document.path] = text, collect_other_keys(document.type, parsed)
            return cached[1]

    def text_with_changes(self, document: Document, changes: Mapping[str, Any]) -> str:
        """Return the text of a document's file with new values for the keys in `changes`.

        Raises ConflictError if the file has an error that the changes do not fix.
        """
        type_ = document.type
        keys = spread_other_keys(type_, changes, self.tree(document) if type_.other_keys in changes else None)
        body = type_.attributes.get(type_.body or "")
        if body and body.has_default and keys.get(body.name, "") is None and document.path.endswith(MARKDOWN):
            # An empty body would be read as the attribute's default, so write an explicit null.
            keys = {**keys, body.name: WRITTEN_NULL}
        with syntax_errors_as_conflicts(document.path):
            text = self._text(document)
            self._spend(text)
            text = change_text(document.path, text, type_.body, keys)
        if document.path in self.broken:
            self._refuse_unmended(document.path, text)
        return text

    def _refuse_unmended(self, path: str, text: str) -> None:
        entry = self._parse(path, text)
        problem = entry.error if entry else None
        if problem:
            # The line may have moved, so report the line before the change.
            same = (old for old in self.broken[path].problems if old.message == problem.message)
            raise conflict_error(next(same, problem), self.layout)

    def _text(self, document: Document) -> str:
        text = self.changeset.text(document.path)
        refuse_empty(text)
        return text

    def rewrite(self, document: Document, changes: Mapping[str, Any]) -> None:
        # The timestamps stay the same, because the write is to a different document.
        self.put(document.path, self.text_with_changes(document, changes), document)

    def put(self, path: str, text: str, old: Document | None = None) -> None:
        self._refuse_too_many(path)
        self._put(path, text, old)

    def _refuse_too_many(self, path: str) -> None:
        if self.changeset.count >= MAX_FILES and not self.changeset.changes(path):
            raise ValidationError(TOO_MANY_FILES_MESSAGE)

    def _spend(self, text: str) -> None:
        self.budget.spend(_STEPS_PER_TEXT + len(text) // _CHARS_PER_STEP)

    def _put(self, path: str, text: str, old: Document | None) -> None:
        self._spend(text)
        self._touch(path, old)
        self.changeset.put(path, text)

    def _touch(self, path: str, old: Document | None) -> None:
        for touched in (self.old_documents, *self._outer):
            touched.setdefault(path, old)

    def replace_file(self, path: str, text: str, *replaceable: Document | None) -> None:
        """Create a file, or replace a file that contains one of the `replaceable` versions.

        Raises ConflictError if the existing file contains another document or has a syntax error.
        """
        old = next((document for document in replaceable if document and document.path == path), None)
        if old is not None:
            self.tree(old)
        elif self.changeset.exists(path):
            self.require_valid_file(path)
            raise ConflictError(f"{path} already exists and contains a different document")
        self._put(path, text, old)

    def remove(self, document: Document) -> None:
        self.require_valid_file(document.path)
        self.remove_after_move(document)

    def remove_after_move(self, document: Document) -> None:
        self.tree(document)
        self._touch(document.path, document)
        self.changeset.delete(document.path)

    def remove_other(self, document: Document) -> None:
        self._refuse_too_many(document.path)
        self.remove(document)

    def sibling(self, path: str, *, draft: bool, locale: str | None = None) -> str:
        sibling_path = self.layout.sibling(path, draft=draft, locale=locale)
        if sibling_path is None:
            raise ConflictError(f"{path} no longer contains a document; try again")
        return sibling_path


@contextmanager
def syntax_errors_as_conflicts(path: str) -> Iterator[None]:
    """Context manager that converts a SyntaxProblem in the file at `path` to a ConflictError."""
    try:
        yield
    except SyntaxProblem as error:
        raise error_in_file(path, error.line, error.message) from error


def values_of(document: Document) -> Values:
    return dict(zip(document.type.attributes, document.values, strict=True))
