"""The message of a commit: what was written, by whom, and which documents it changed."""

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

MAX_TITLE_CHARS = 60  # Characters of a document's title in a message.
MAX_LISTED_DOCUMENTS = 50  # Documents that a message lists.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
# A line that begins like our trailers, or behind which git looks for none (of `git commit --verbose`).
_TRAILER_LIKE = re.compile(r"^(?=bifolio-|\S+ -+ >8 -+$)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Authorship:
    """Who makes a write, with the message of the request, if it has one.

    `addressed` says, of what the write returns, which documents were asked to be written, as (uid, id): other
    files that change with them are not told first. None where all are. `joined` says, of the same, which
    branch the write merges. `keep` is what the write is made in, so that it can be undone. `source` is where
    the change comes from (`server.site.change.Origin`). `describe` makes the message, without one of the
    request, from what the write returns.
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
        """Where a change comes from that has a name in the queue of commits."""
        return Origin(self.source, self.actor if self.source == "api" else "", write)


def keeping(writes: Collection[Write], by: Authorship) -> AbstractContextManager[None]:
    """What keeps the files that writes replace which are made in its block, for who wants to undo them."""
    return by.keep(writes) if by.keep else nullcontext()


@dataclass(frozen=True, slots=True)
class Joined:
    """What a write merges: `joins` becomes the second parent of its commit, `base` is the first.

    `ready` is the commit itself, which is made already; where it is `exact`, it is that or none. `changed`
    are all files that it changes of `base`, each as the write has it, and `at` is when it was made, in
    seconds since 1970; None where that is for git to say. `names` are to lead to commits from then on.
    `beside` are files that are checked out with it, since the journal can't write them.

    `move` lets the branch move to it once the files are in place, and says whether it has; otherwise that is
    done later. `index` is the index that there is until then.
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
        """What the queue of commits has of it."""
        found = {"base": self.base, "joins": self.joins, "ready": self.ready, "exact": self.exact}
        return {**found, "beside": self.beside} if self.beside else found


@dataclass(frozen=True, slots=True)
class Touched:
    """A document that a write changes: what it is called in trailers, and in a sentence; and what is done."""

    key: Key
    name: str
    kind: str
    title: str
    verb: str

    @property
    def sentence(self) -> str:
        """One line for people."""
        return f'{self.verb} {self.kind} "{self.title}"'


@dataclass(frozen=True, slots=True)
class _Made:
    """One file of a document: what it holds after a write, or held before it was deleted; and held before."""

    write: Write
    document: Document | None = None
    before: Document | None = None


def touched_documents(
    writes: Iterable[Write], entries: Mapping[str, Entry], snapshot: Snapshot, store: Store
) -> list[Touched]:
    """The documents and media files that writes change, each once, in the order of their files."""
    files: dict[Key, list[_Made]] = {}
    for write in writes:
        inside = media_key(write.path)
        if inside:
            files.setdefault((MEDIA, inside.removesuffix(SIDECAR_SUFFIX)), []).append(_Made(write))
        elif document := _document(write, entries, store):
            before = entries[write.path].document if write.path in entries else None
            made = _Made(write, document, before)
            files.setdefault((document.type.uid, document.document_id), []).append(made)
    return [_touched_document(key, made, snapshot) for key, made in files.items()]


def _document(write: Write, entries: Mapping[str, Entry], store: Store) -> Document | None:
    """The document that a file holds, or held before it was deleted."""
    if write.data is None:
        entry = entries.get(write.path)
    else:
        entry = store.entry(write.path, write.data, size_signature(len(write.data)))
    return entry.document if entry else None


def _touched_document(key: Key, made: list[_Made], snapshot: Snapshot) -> Touched:
    verb, document = _verb(key, made, snapshot), made[0].document
    if document is None:
        return Touched(
            key, f"upload/{key[1]}", "file", _short(key[1]), "Upload" if verb == "Create" else verb
        )
    type_ = document.type
    title = document.get(name) if (name := title_of(type_)) else None
    shown = _short(str(title or "")) or document.document_id
    return Touched(key, f"{type_.singular}/{document.document_id}", type_.singular, shown, verb)


def _verb(key: Key, made: list[_Made], snapshot: Snapshot) -> str:
    """What is done to a document; `snapshot` is of before."""
    before = {(d.locale, d.status) for one in made if (d := one.before)}
    after = {(d.locale, d.status) for one in made if (d := one.document) and not one.write.deletes}
    for locale, status in sorted(before - after):
        other = DRAFT if status == PUBLISHED else PUBLISHED
        there = snapshot.claims.get((*key, locale, other)) is not None
        stays = (locale, other) in after or (there and (locale, other) not in before)
        if stays and status == PUBLISHED:
            return "Unpublish"
        if stays and (locale, PUBLISHED) not in before | after:
            return "Discard the draft of"
    if all(one.write.deletes for one in made):
        return "Delete"
    return "Update" if exists(snapshot, key) else "Create"


def message_of(documents: Collection[Touched], by: Authorship, result: Any) -> str:
    """The message of one write, without trailers."""
    if said := clean_message(by.message or (by.describe(result) if by.describe else "")):
        return said
    keys = by.addressed(result) if by.addressed else ()
    told = [document for document in documents if document.key in keys] or list(documents)
    return summary([document.sentence for document in told])


def summary(sentences: Collection[str]) -> str:
    """One message of several; they stand below it."""
    lines = list(dict.fromkeys(sentences))
    if len(lines) < 2:
        return "".join(lines) or "Update files"
    listed = [line.partition("\n")[0] for line in lines[:MAX_LISTED_DOCUMENTS]]
    more = [f"and {len(lines) - MAX_LISTED_DOCUMENTS:,} more"] if len(lines) > MAX_LISTED_DOCUMENTS else []
    return "\n".join((f"Make {len(lines):,} changes", "", *listed, *more))


def with_trailers(message: str, actor: str, documents: Iterable[str]) -> str:
    """A message with what programs read: who wrote, and which documents."""
    trailers = [f"Bifolio-Actor: {_short(actor, 200)}"]
    trailers.extend(f"Bifolio-Document: {_short(name, 400)}" for name in dict.fromkeys(documents))
    return "\n".join((message, "", *trailers, ""))


def clean_message(message: str) -> str:
    """A message that a client has sent, without control characters and without lines like our trailers."""
    lines = (_CONTROL.sub(" ", line).rstrip() for line in message.splitlines())
    return _TRAILER_LIKE.sub(" ", "\n".join(lines).strip())


def _short(text: str, longest: int = MAX_TITLE_CHARS) -> str:
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
