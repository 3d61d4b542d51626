"""Write requests as plain values. They depend neither on HTTP nor on the site's state."""

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
    """Address of a version. The id is None for a new document or a single type's document."""

    type: Type
    document_id: str | None
    locale: str
    draft: bool

    @property
    def status(self) -> str:
        return DRAFT if self.draft else PUBLISHED


Show = Callable[[Snapshot, Document, Collection[str]], Mapping[str, Any]]


def show_nothing(snapshot: Snapshot, document: Document, names: Collection[str]) -> Mapping[str, Any]:
    """Return no attributes."""
    return {}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A change to one version, with the `data` from the body and the condition from `If-Match`.

    - If `merge` is set and the condition is not met, the change is merged with later changes. If they
      overlap, the error contains conflicting attributes. `show` returns those that the actor is permitted to
      see.
    - `actor` is the caller, whose permission to write has already been checked. The new relations can refer
      only to types for which the actor has the permission to find documents.
    - `drafts_only` means that the actor is permitted to write drafts, but not to change anything published.
    - `users` are the possible targets of relations to users.
    - `locales` are the locales in which to delete, unpublish or discard.
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
    """Several changes that succeed or fail together. Each is a function in `prepare` with its request."""

    operations: tuple[tuple[Callable[[WriteRequest, Context], str], WriteRequest], ...]
