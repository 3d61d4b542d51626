"""Write requests as plain values, independent of HTTP and of the site's state."""

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
    """Address of a document version. The id is None for a new document or a single type's document."""

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
    """A change to one version: the `data` in the body, and the `If-Match` condition.

    - With `merge`, a change that does not meet the condition is merged with later changes. If they overlap,
      `show` returns the attributes of a version that the actor may see.
    - `actor` has already been permitted to write. It may relate to types that it may find.
    - With `drafts_only`, the actor may write drafts but must not change anything published.
    - `users` are the possible targets of relations to users.
    - `locales` are the locales to delete, unpublish or discard.
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
    """Several changes that succeed or fail together: functions in `prepare` with their requests."""

    operations: tuple[tuple[Callable[[WriteRequest, Context], str], WriteRequest], ...]
