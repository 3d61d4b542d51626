"""What somebody asks to have written: plain values, which say nothing of HTTP or of the site's state."""

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
    """Which version of a document is meant. Without an id it is a new one, or that of a single type."""

    type: Type
    document_id: str | None
    locale: str
    draft: bool

    @property
    def status(self) -> str:
        """The status of that version."""
        return DRAFT if self.draft else PUBLISHED


Show = Callable[[Snapshot, Document, Collection[str]], Mapping[str, Any]]


def show_nothing(snapshot: Snapshot, document: Document, names: Collection[str]) -> Mapping[str, Any]:
    """Nothing of a version, whatever is asked for."""
    return {}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """A change of one version: the `data` of the body, and the `If-Match` that the version must meet.

    With `merge`, a change of a version that it does not meet is merged with what others have changed since.
    `show` says what the actor may see of some attributes of a version, where that can't be done.
    The actor may relate to what it may find; whether it may write at all has been asked before.
    With `drafts_only` it may write drafts, and nothing that is published.
    `users` are those who can be related to. A deletion is of all `locales`.
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
    """Several changes in one step: for each, a function of `prepare`, and the request that it gets."""

    operations: tuple[tuple[Callable[[WriteRequest, Context], str], WriteRequest], ...]
