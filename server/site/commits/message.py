"""Commit messages, which name the actor and the documents."""

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

MAX_TITLE_CHARS = 60  # longer titles are truncated
MAX_LISTED_DOCUMENTS = 50  # If there are more documents, the message contains only their number.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
# Lines like Bifolio's trailers, and the scissors line after which git ignores trailers.
_TRAILER_LIKE = re.compile(r"^(?=bifolio-|\S+ -+ >8 -+$)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Authorship:
    """The author of a write, the message of its commit, and callbacks.

    `mentioned_documents` returns the documents that the message names. If it is None, the message names all
    changed documents. `describe` returns the message if `message` is "". `around` returns a context manager
    that encloses the replacement of the files, during which the write lock is held.
    """

    actor: str
    name: str
    email: str
    message: str = ""
    mentioned_documents: Callable[[Any], Collection[Key]] | None = None
    prepared_merge: Callable[[Any], "PreparedMerge"] | None = None
    around: Callable[[Collection[Write]], AbstractContextManager[None]] | None = None
    source: str = "api"
    describe: Callable[[Any], str] | None = None

    def origin(self, write: str) -> Origin:
        return Origin(self.source, self.actor if self.source == "api" else "", write)


def around_write(writes: Collection[Write], authorship: Authorship) -> AbstractContextManager[None]:
    return authorship.around(writes) if authorship.around else nullcontext()


@dataclass(frozen=True, slots=True)
class PreparedMerge:
    """A merge of the commits `base` and `joins`, which is committed together with a write.

    `ready` is the id of the merge commit, or "" if it does not exist yet. If `only_if_ready` is set, no other
    merge commit is made. `changed_files` are the files that differ from `base`. `committed_at` is in seconds
    since 1970. `move_branch` returns False if the branch is to be moved later. `index` identifies the state
    of git's index before the merge. The files in `extra_paths` are checked out by git.
    """

    base: str
    joins: str
    ready: str
    only_if_ready: bool = False
    changed_files: Tree | None = None
    committed_at: int | None = None
    other_refs: Mapping[str, str] = field(default_factory=dict)
    move_branch: Callable[[], bool] | None = None
    index: FileMark | None = None
    extra_paths: Sequence[str] = ()

    @property
    def queue_metadata(self) -> dict[str, Any]:
        fields = {"base": self.base, "joins": self.joins, "ready": self.ready, "exact": self.only_if_ready}
        return {**fields, "beside": self.extra_paths} if self.extra_paths else fields


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A changed document, and its description for a commit message, such as `Update article "Fog"`.

    `name` is the document's name in the trailer `Bifolio-Document`.
    """

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
    write: Write
    document: Document | None = None
    before: Document | None = None


def written_documents(
    writes: Iterable[Write], entries: Mapping[str, Entry], snapshot: Snapshot, store: Store
) -> list[ChangedDocument]:
    """Return the documents and media files that the writes change.

    `entries` and `snapshot` describe the site before the writes.
    """
    files: dict[Key, list[_FileChange]] = {}
    for write in writes:
        upload = media_key(write.path)
        if upload:
            files.setdefault((MEDIA, upload.removesuffix(SIDECAR_SUFFIX)), []).append(_FileChange(write))
        elif document := _document(write, entries, store):
            before = entries[write.path].document if write.path in entries else None
            change = _FileChange(write, document, before)
            files.setdefault((document.type.uid, document.document_id), []).append(change)
    return [_changed_document(key, change, snapshot) for key, change in files.items()]


def _document(write: Write, entries: Mapping[str, Entry], store: Store) -> Document | None:
    if write.data is None:
        entry = entries.get(write.path)
    else:
        entry = store.parse_file(write.path, write.data, size_signature(len(write.data)))
    return entry.document if entry else None


def _changed_document(key: Key, changes: list[_FileChange], snapshot: Snapshot) -> ChangedDocument:
    verb, document = _change_verb(key, changes, snapshot), changes[0].document
    if document is None:
        return ChangedDocument(
            key, f"upload/{key[1]}", "file", _short(key[1]), "Upload" if verb == "Create" else verb
        )
    type_ = document.type
    title = document.get(name) if (name := title_of(type_)) else None
    shown = _short(str(title or "")) or document.document_id
    return ChangedDocument(key, f"{type_.singular}/{document.document_id}", type_.singular, shown, verb)


def _change_verb(key: Key, changes: list[_FileChange], snapshot: Snapshot) -> str:
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


def commit_message_for(documents: Collection[ChangedDocument], authorship: Authorship, result: Any) -> str:
    """Return the message in `authorship` or, if it has none, a message that lists the changed documents."""
    if message := clean_message(
        authorship.message or (authorship.describe(result) if authorship.describe else "")
    ):
        return message
    keys = authorship.mentioned_documents(result) if authorship.mentioned_documents else ()
    addressed = [document for document in documents if document.key in keys] or list(documents)
    return combine_messages([document.sentence for document in addressed])


def combine_messages(sentences: Collection[str]) -> str:
    lines = list(dict.fromkeys(sentences))
    if len(lines) < 2:
        return "".join(lines) or "Update files"
    listed = [line.partition("\n")[0] for line in lines[:MAX_LISTED_DOCUMENTS]]
    more = [f"and {len(lines) - MAX_LISTED_DOCUMENTS:,} more"] if len(lines) > MAX_LISTED_DOCUMENTS else []
    return "\n".join((f"Make {len(lines):,} changes", "", *listed, *more))


def with_trailers(message: str, actor: str, documents: Iterable[str]) -> str:
    trailers = [f"Bifolio-Actor: {_short(actor, 200)}"]
    trailers.extend(f"Bifolio-Document: {_short(name, 400)}" for name in dict.fromkeys(documents))
    return "\n".join((message, "", *trailers, ""))


def clean_message(message: str) -> str:
    lines = (_CONTROL.sub(" ", line).rstrip() for line in message.splitlines())
    return _TRAILER_LIKE.sub(" ", "\n".join(lines).strip())


def _short(text: str, max_chars: int = MAX_TITLE_CHARS) -> str:
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + "…"
