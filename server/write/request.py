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
    """The document version that a request writes: content type, id, locale, and whether it is the draft.

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
    """Return an empty mapping. Used if the client is not permitted to see any conflicting attributes."""
    return {}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request to change one version of a document, with the `data` in the body and the `If-Match` header.

    - `merge`: whether to merge the change with later changes if `If-Match` does not match the current
      version. If the changes overlap, the error contains the conflicting attributes. The function `show`
      returns those that the actor is permitted to see.
    - `actor` is the caller, whose permission to write has already been checked. New relations can only have
      targets of content types for which the actor has the `find` permission.
    - `drafts_only` means that the actor is permitted to write drafts, but not to change published content.
    - `users` contains the users to which relations can refer.
    - `locales` contains the locales in which a document is deleted or unpublished, or in which its drafts are
      discarded.
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
    """Several writes. Either all of them succeed, or all of them are rejected.

    Each write consists of a function in `write.prepare` and the request with which the function is called.
    """

    operations: tuple[tuple[Callable[[WriteRequest, Context], str], WriteRequest], ...]
