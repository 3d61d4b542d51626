"""Write requests as plain data, without references to HTTP or to the state of the site."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.auth.permissions import Actor
from server.documents.document import DRAFT, PUBLISHED, Document
from server.formats.tree import Tree
from server.index.snapshot import Snapshot
from server.index.user_index import NO_USERS, UserTables
from server.schema.model import Type
from server.write.context import Context


@dataclass(frozen=True, slots=True)
class Address:
    """Which version of a document a request writes: content type, id, locale, and whether it is the draft.

    The id is None for a new document, or for the document of a single type.
    """

    type: Type
    document_id: str | None
    locale: str
    draft: bool

    @property
    def status(self) -> str:
        return DRAFT if self.draft else PUBLISHED


Show = Callable[[Snapshot, Document, Collection[str]], Mapping[str, Any]]


def show_nothing(snapshot: Snapshot, document: Document, names: Collection[str]) -> Mapping[str, Any]:
    """Return an empty mapping. Used if the client may see no conflicting attributes."""
    return {}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request to change one version of a document, with the `data` in the body and the `If-Match` header.

    - `merge`: if `If-Match` does not match the current version, merge the change with later changes. If the
      changes overlap, the error contains the conflicting attributes that `show` returns: those that the actor
      has permission to see.
    - `actor` is the caller. Its permission to write was already checked. New relations can only have targets
      of content types for which the actor has the `find` permission.
    - `drafts_only` means that the actor has permission to write drafts, but not to change published content.
    - `users` are the users to which relations can refer.
    - `locales` are the locales in which a document is deleted, unpublished, or its drafts are discarded.
    """

    address: Address
    actor: Actor
    data: Mapping[str, Tree] = field(default_factory=dict)
    if_match: str | None = None
    users: UserTables = NO_USERS
    locales: tuple[str, ...] = ()
    merge: bool = False
    drafts_only: bool = False
    show: Show = show_nothing


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Several writes, which either all succeed or are all rejected.

    Each write consists of a function in `write.prepare` and the request with which it is called.
    """

    operations: tuple[tuple[Callable[[WriteRequest, Context], str], WriteRequest], ...]
