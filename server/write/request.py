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
    """The address of a document version. Without an id: a new document, or a single type's."""

    type: Type
    document_id: str | None
    locale: str
    draft: bool

    @property
    def status(self) -> str:
        return DRAFT if self.draft else PUBLISHED


Show = Callable[[Snapshot, Document, Collection[str]], Mapping[str, Any]]


def show_nothing(snapshot: Snapshot, document: Document, names: Collection[str]) -> Mapping[str, Any]:
    """Return no attributes of a version."""
    return {}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A change of one version: the `data` of the body, and the `If-Match` condition.

    With `merge`, a change that does not meet the condition is merged with later changes; if they overlap,
    `show` returns what the actor may see of attributes of a version.

    The actor may relate to types that it may find; permission to write was checked before. With
    `drafts_only`, it may write drafts but change nothing published. `users` are the possible targets of
    relations to users. A deletion affects all `locales`.
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
    """Several changes in one step: functions of `prepare` with their requests."""

    operations: tuple[tuple[Callable[[WriteRequest, Context], str], WriteRequest], ...]
