"""An event: one thing that happened to one document in one locale, to a media file, or to a content type."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from server.auth.permissions import subject_of
from server.schema.model import SITE_TAG, UPLOAD, document_tag, type_tag

# What can happen, and when it is said.
KINDS: Mapping[str, str] = {
    "entry.create": "a document is there in a locale in which it was not",
    "entry.update": "what an editor sees of a document has changed",
    "entry.publish": "what readers see of a document has changed, or they see it for the first time",
    "entry.unpublish": "readers see a document no more, of which a draft is left",
    "entry.delete": "a document is gone, with its draft",
    "media.create": "a media file is there that was not",
    "media.update": "a media file or its description has changed",
    "media.delete": "a media file is gone",
    "schema.update": "a content type or component was added, changed or removed",
    "site.update": "more documents have changed at once than are told one by one",
}
SOURCES = ("api", "file", "git")  # a write through the API, an edit of files, a commit that was checked out

# Of a site.update: how many events there would have been, by uid, status and kind.
Counts = Mapping[str, Mapping[str, Mapping[str, int]]]


class Key(NamedTuple):
    """What an event is about: a document in one locale."""

    uid: str
    document_id: str
    locale: str


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log.

    `status` is "published" where readers could see it before or after, else "draft"; "" where there is no
    status. `changed` names the attributes that differ, None where that is not known; where nothing differs
    but what nobody is shown, the event is `hidden`. `links` has the attributes that differ in relations
    alone, each with the types of their targets: who may find none of these is not told of it. `actor`,
    `commit` and `write`, the name of a write that is committed later, are "" where there is none. `paths`
    are the files that changed, which only those who ask for them read from the log.
    """

    kind: str
    uid: str
    document_id: str = ""
    locale: str = ""
    status: str = ""
    changed: tuple[str, ...] | None = ()
    actor: str = ""
    source: str = "file"
    commit: str = ""
    write: str = ""
    counts: Counts | None = None
    hidden: bool = False
    paths: tuple[str, ...] = ()
    at: str = ""
    seq: int = 0
    links: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def model(self) -> str:
        """What the type is called: the singular API id of a content type, `shared.seo` of a component."""
        return self.uid.partition("::")[2].rpartition(".")[2] if "::" in self.uid else self.uid

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the answers that it may change (`server.schema.model`)."""
        if self.counts is not None:
            return (*map(type_tag, self.counts), SITE_TAG)
        if self.document_id:
            return (type_tag(self.uid), document_tag(self.uid, self.document_id))
        return (type_tag(self.uid), SITE_TAG) if "::" in self.uid else (SITE_TAG,)

    @property
    def is_media(self) -> bool:
        """Whether it is about a media file."""
        return self.uid == UPLOAD

    def shown(self) -> dict[str, Any]:
        """What JSON says of it, to whoever may see everything."""
        said: dict[str, Any] = {
            "seq": self.seq or None,
            "event": self.kind,
            "createdAt": self.at or None,
            "model": self.model or None,
            "uid": self.uid or None,
            "documentId": self.document_id or None,
            "locale": self.locale or None,
            "status": self.status or None,
            "changed": None if self.changed is None else list(self.changed),
            "actor": self.actor or None,
            "source": self.source,
            "commit": self.commit or None,
            "tags": list(self.tags),
        }
        if self.counts is not None:
            said["counts"] = {subject_of(uid): counts for uid, counts in self.counts.items()}
        return said
