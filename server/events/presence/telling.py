"""What event streams are told of who is at a document."""

import json
from collections.abc import Callable, Mapping, Sequence

from server.auth.permissions import Actor
from server.events.frames import frame
from server.events.presence.people import by_document, may_attend, others_at
from server.events.presence.table import Presence, PresenceTable
from server.schema.model import Schema

Document = tuple[str, str]  # the name of its type, and its id
Present = Mapping[Document, Sequence[Presence]]


class PresenceSource:
    """Who is where, as a hub tells its streams of it (`server.events.hub`)."""

    def __init__(self, table: PresenceTable, schema: Callable[[], Schema]) -> None:
        self._table, self._schema = table, schema

    def version(self) -> int:
        """Another number whenever somebody came, left or moved; it costs nothing to ask."""
        return self._table.version

    def read(self) -> Present:
        """Who is where now."""
        return by_document(self._table.all())

    def frame(self, actor: Actor, document: Document, present: Present) -> bytes:
        """What an actor is told of a document; nothing where it may not be."""
        schema = self._schema()
        type_ = schema.subjects.get(document[0])
        if type_ is None or not may_attend(actor, type_):
            return b""
        told = others_at(document, present.get(document, ()), type_, actor, schema)
        return frame("presence", json.dumps(told, ensure_ascii=False, separators=(",", ":")))
