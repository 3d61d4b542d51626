"""Undo: what the answer to a write with `Prefer: undo` offers, and `POST /batch/undo/{id}`, which does it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flask import Request, Response, request

from server.api.identities import Identities
from server.api.operations.content import DISCARD
from server.api.request import answer, prefers, state_of, write_signed
from server.api.routes.document_write import WRITES, DocumentWrite, permit
from server.api.routes.handlers import Handlers
from server.auth.permissions import Actor, may_write
from server.documents.timestamps import from_seconds
from server.errors import ForbiddenError, NotFoundError
from server.events.presence.people import PUBLIC
from server.service.read import Reader
from server.service.render import dumps
from server.site.site import Site, State
from server.storage.undo.folder import UndoFolder
from server.storage.undo.keeper import Keeper
from server.storage.undo.kept import KeptWrite, Permit
from server.write.undo.restore import restore

UNDO = "undo"  # the preference
UNDO_HEADER = "Quire-Undo"


def keeper_of(request: Request, root: Path, operations: Iterable[DocumentWrite]) -> Keeper | None:
    """What keeps the files that operations replace; None where that is not asked for, or by the public."""
    operations = list(operations)
    caller = operations[0].reader.actor.name
    if not prefers(request, UNDO) or caller == PUBLIC:
        return None
    return Keeper(root, caller, dict.fromkeys(_permit(operation) for operation in operations))


def _permit(operation: DocumentWrite) -> Permit:
    request, verb = operation.request, operation.sent.method
    return Permit(request.address.type.uid, verb, request.address.draft or verb == DISCARD)


def described(keeper: Keeper | None) -> dict[str, Any]:
    """What the body of an answer says of it, if the write can be taken back."""
    if keeper is None or not keeper.id:
        return {}
    return {"undo": {"id": keeper.id, "expires": from_seconds(keeper.expires.timestamp())}}


def tell_undo(response: Response, keeper: Keeper | None) -> Response:
    """An answer with the headers that say that the write can be taken back, if it can."""
    if keeper and keeper.id:
        applied = filter(None, (response.headers.get("Preference-Applied"), UNDO))
        response.headers["Preference-Applied"] = ", ".join(applied)
        response.headers[UNDO_HEADER] = keeper.id
    return response


MESSAGE = "Undo a change"
NONE = "There is no change of yours under this id that could still be undone"


def bind(handles: Handlers, site: Site, identities: Identities) -> None:
    """Bind the operations that takes a write back."""
    folder = UndoFolder(site.root)

    @handles("undoWrite")
    def undo(key: str) -> Response:
        state, actor = state_of(request), identities.actor(request)
        if not may_write(actor, state.schema.content_types):
            raise ForbiddenError()
        kept = folder.find(key, actor.name)
        if kept is None:
            raise NotFoundError(NONE)
        _require_permits(kept, state, actor)
        again = Keeper(site.root, actor.name, kept.permits) if prefers(request, UNDO) else None
        _, paths = write_signed(site, identities, request, restore, kept, message=MESSAGE, keeper=again)
        folder.forget(key)
        return tell_undo(answer(dumps({"data": {"files": len(paths)}, **described(again)})), again)


def _require_permits(kept: KeptWrite, state: State, actor: Actor) -> None:
    """Raise ForbiddenError where an actor may not make a write any more that is to be taken back."""
    for wanted in kept.permits:
        type_ = state.schema.types.get(wanted.uid)
        if type_ is None or (type_.kind, wanted.verb) not in WRITES:
            raise NotFoundError(NONE)
        permit(Reader(state, type_, actor), wanted.verb, {"status": "draft"} if wanted.draft else {})
