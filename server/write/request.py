"""Write requests as plain data, independent of HTTP."""

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
    """The document version that a request writes.

    `document_id` can be None for new documents and single types.
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
    # for clients that are not allowed to see any conflicting attributes
    return {}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A request to change one version of a document. Its creator has checked that `actor` may do this.

    - `users`: the users to which relations can refer
    - `locales`: the locales in which to delete, unpublish or discard versions
    - `merge`: whether to merge the request with later changes if `If-Match` does not match
    - `show`: function that returns the conflicting attributes that `actor` may see
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
    """Writes that either all succeed or all fail."""

    operations: tuple[tuple[Callable[[WriteRequest, Context], str], WriteRequest], ...]
