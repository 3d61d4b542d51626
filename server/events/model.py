"""Events, which describe changes to documents, media files and content types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from server.auth.permissions import permission_subject
from server.schema.model import SITE_TAG, UPLOAD, document_tag, type_tag

# Kinds of events, with descriptions for the documentation.
KINDS: Mapping[str, str] = {
    "entry.create": "a document was created in a locale",
    "entry.update": "the draft changed or, if there is no draft, the published version changed",
    "entry.publish": "a document was published, or its published version changed",
    "entry.unpublish": "a document was unpublished; its draft still exists",
    "entry.delete": "a document and its draft were deleted",
    "media.create": "a media file was added",
    "media.update": "a media file or its description changed",
    "media.delete": "a media file was deleted",
    "schema.update": "a content type or component was added, changed or removed",
    "site.update": "many documents changed at once; no separate events are recorded for these documents",
}
# Kinds of events that are sent only to callers without permission to read drafts, and the kinds that these
# callers see instead. These events prevent the callers from finding out whether a document has a draft.
PUBLIC_KINDS: Mapping[str, str] = {
    f"public.{verb}": f"entry.{verb}" for verb in ("create", "unpublish", "delete")
}
SOURCES = ("api", "file", "git")  # a write through the API, an edited file, a checked-out commit

# The number of individual events in a site.update, by uid, status and kind.
Counts = Mapping[str, Mapping[str, Mapping[str, int]]]


class Key(NamedTuple):
    """Key of the document (in one locale) or media file that an event is about."""

    uid: str
    document_id: str
    locale: str


@dataclass(frozen=True, slots=True)
class Event:
    """An entry in the event log. A string field that does not apply to the event is "".

    - `status`: "published" if the public could see the document before or after the change, otherwise "draft"
    - `changed`: the names of the changed attributes, or None if they are unknown
    - `hidden`: whether only private attributes differ
    - `links`: the attributes in which only relations differ, each with the uids of its target types
    - `counts`: for site.update, the number of combined events by uid, status and kind; otherwise None
    - `paths`: the changed files, which are read from the log only on request
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
        """The singular API id of the content type, or the name of the component, such as `shared.seo`."""
        return self.uid.partition("::")[2].rpartition(".")[2] if "::" in self.uid else self.uid

    @property
    def tags(self) -> tuple[str, ...]:
        """The cache tags of the responses that are out of date after this event."""
        if self.counts is not None:
            return (*map(type_tag, self.counts), SITE_TAG)
        if self.document_id:
            return (type_tag(self.uid), document_tag(self.uid, self.document_id))
        return (type_tag(self.uid), SITE_TAG) if "::" in self.uid else (SITE_TAG,)

    @property
    def is_media(self) -> bool:
        return self.uid == UPLOAD

    def shown(self) -> dict[str, Any]:
        body: dict[str, Any] = {
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
            body["counts"] = {permission_subject(uid): counts for uid, counts in self.counts.items()}
        return body
