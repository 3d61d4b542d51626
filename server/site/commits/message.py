"""Commit messages: what was written, by whom, and which documents changed."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from server.documents.document import DRAFT, PUBLISHED, Document
from server.index.dangling import MEDIA, Key, exists
from server.index.snapshot import Snapshot
from server.schema.model import title_of
from server.site.change import Origin
from server.storage.entry import Entry
from server.storage.files import FileMark, size_signature
from server.storage.git.repository import Tree
from server.storage.intent import Write
from server.storage.media import SIDECAR_SUFFIX, media_key
from server.storage.store import Store

MAX_TITLE_CHARS = 60  # Longer titles are cut in messages.
MAX_LISTED_DOCUMENTS = 50  # More documents are only counted.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
# Lines that begin like our trailers, or after which git ignores trailers (from `git commit --verbose`).
_TRAILER_LIKE = re.compile(r"^(?=bifolio-|\S+ -+ >8 -+$)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Authorship:
    """The author of a write, with the message of the request, if any.

    These functions take the result of the write: `addressed` returns the requested documents as (uid, id), so
    that the message omits others that changed with them (None: all); `joined` returns the merge that it
    commits; `describe` returns the message if the request has none. `keep` is a context manager around the
    write that saves files for undo. `source` is the origin (`server.site.change.Origin`).
    """

    actor: str
    name: str
    email: str
    message: str = ""
    addressed: Callable[[Any], Collection[Key]] | None = None
    joined: Callable[[Any], "Joined"] | None = None
    keep: Callable[[Collection[Write]], AbstractContextManager[None]] | None = None
    source: str = "api"
    describe: Callable[[Any], str] | None = None

    def origin(self, write: str) -> Origin:
        return Origin(self.source, self.actor if self.source == "api" else "", write)


def keeping(writes: Collection[Write], by: Authorship) -> AbstractContextManager[None]:
    """Return a context manager that saves the files that writes in its block replace, for undo."""
    return by.keep(writes) if by.keep else nullcontext()


@dataclass(frozen=True, slots=True)
class Joined:
    """A merge: `joins` is the second parent of its commit, `base` the first.

    `ready` is the finished commit, if any; if `exact`, no other will do. `changed` are all files that differ
    from `base`, as the write has them. `at` is its time in seconds since 1970, None to read it from git.
    `names` are refs to set to commits. `beside` are files that are checked out with it, since the journal
    can't write them.

    `move` moves the branch once the files are in place, and returns whether it did; otherwise that is done
    later. `index` is the git index until then.
    """

    base: str
    joins: str
    ready: str
    exact: bool = False
    changed: Tree | None = None
    at: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    move: Callable[[], bool] | None = None
    index: FileMark | None = None
    beside: Sequence[str] = ()

    @property
    def noted(self) -> dict[str, Any]:
        fields = {"base": self.base, "joins": self.joins, "ready": self.ready, "exact": self.exact}
        return {**fields, "beside": self.beside} if self.beside else fields


@dataclass(frozen=True, slots=True)
class Touched:
    """A document that a write changes: names for trailers and sentences, and the verb of the change."""

    key: Key
    name: str
    kind: str
    title: str
    verb: str

    @property
    def sentence(self) -> str:
        return f'{self.verb} {self.kind} "{self.title}"'


@dataclass(frozen=True, slots=True)
class _FileChange:
    """One file of a document: its content after the write, or before it was deleted, and its old content."""

    write: Write
    document: Document | None = None
    before: Document | None = None


def touched_documents(
    writes: Iterable[Write], entries: Mapping[str, Entry], snapshot: Snapshot, store: Store
) -> list[Touched]:
    """Return the documents and media files that writes change, without repetition, in order of files."""
    files: dict[Key, list[_FileChange]] = {}
    for write in writes:
        upload = media_key(write.path)
        if upload:
            files.setdefault((MEDIA, upload.removesuffix(SIDECAR_SUFFIX)), []).append(_FileChange(write))
        elif document := _document(write, entries, store):
            before = entries[write.path].document if write.path in entries else None
            change = _FileChange(write, document, before)
            files.setdefault((document.type.uid, document.document_id), []).append(change)
    return [_touched_document(key, change, snapshot) for key, change in files.items()]


def _document(write: Write, entries: Mapping[str, Entry], store: Store) -> Document | None:
    if write.data is None:
        entry = entries.get(write.path)
    else:
        entry = store.entry(write.path, write.data, size_signature(len(write.data)))
    return entry.document if entry else None


def _touched_document(key: Key, changes: list[_FileChange], snapshot: Snapshot) -> Touched:
    verb, document = _verb(key, changes, snapshot), changes[0].document
    if document is None:
        return Touched(
            key, f"upload/{key[1]}", "file", _short(key[1]), "Upload" if verb == "Create" else verb
        )
    type_ = document.type
    title = document.get(name) if (name := title_of(type_)) else None
    shown = _short(str(title or "")) or document.document_id
    return Touched(key, f"{type_.singular}/{document.document_id}", type_.singular, shown, verb)


def _verb(key: Key, changes: list[_FileChange], snapshot: Snapshot) -> str:
    """Return what a write does to a document; `snapshot` is the state before."""
    before = {(d.locale, d.status) for one in changes if (d := one.before)}
    after = {(d.locale, d.status) for one in changes if (d := one.document) and not one.write.deletes}
    for locale, status in sorted(before - after):
        other = DRAFT if status == PUBLISHED else PUBLISHED
        exists_before = snapshot.claims.get((*key, locale, other)) is not None
        stays = (locale, other) in after or (exists_before and (locale, other) not in before)
        if stays and status == PUBLISHED:
            return "Unpublish"
        if stays and (locale, PUBLISHED) not in before | after:
            return "Discard the draft of"
    if all(one.write.deletes for one in changes):
        return "Delete"
    return "Update" if exists(snapshot, key) else "Create"


def message_of(documents: Collection[Touched], by: Authorship, result: Any) -> str:
    """Return the message of one write, without trailers."""
    if message := clean_message(by.message or (by.describe(result) if by.describe else "")):
        return message
    keys = by.addressed(result) if by.addressed else ()
    addressed = [document for document in documents if document.key in keys] or list(documents)
    return summary([document.sentence for document in addressed])


def summary(sentences: Collection[str]) -> str:
    """Join several sentences into one message with a list."""
    lines = list(dict.fromkeys(sentences))
    if len(lines) < 2:
        return "".join(lines) or "Update files"
    listed = [line.partition("\n")[0] for line in lines[:MAX_LISTED_DOCUMENTS]]
    more = [f"and {len(lines) - MAX_LISTED_DOCUMENTS:,} more"] if len(lines) > MAX_LISTED_DOCUMENTS else []
    return "\n".join((f"Make {len(lines):,} changes", "", *listed, *more))


def with_trailers(message: str, actor: str, documents: Iterable[str]) -> str:
    """Append machine-readable trailers to a message: actor and documents."""
    trailers = [f"Bifolio-Actor: {_short(actor, 200)}"]
    trailers.extend(f"Bifolio-Document: {_short(name, 400)}" for name in dict.fromkeys(documents))
    return "\n".join((message, "", *trailers, ""))


def clean_message(message: str) -> str:
    """Return a client's message without control characters and without lines that look like our trailers."""
    lines = (_CONTROL.sub(" ", line).rstrip() for line in message.splitlines())
    return _TRAILER_LIKE.sub(" ", "\n".join(lines).strip())


def _short(text: str, longest: int = MAX_TITLE_CHARS) -> str:
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
