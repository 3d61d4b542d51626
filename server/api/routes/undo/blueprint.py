"""The route of `/batch/undo/ID`."""

from flask import Blueprint, Response, request

from server.api.identities import Identities
from server.api.reading import Reader
from server.api.render import dumps
from server.api.request import answer, prefers, state_of, write_signed
from server.api.routes.operation import WRITES, permit
from server.api.routes.undo.offer import UNDO, described, tell_undo
from server.auth.permissions import Actor, may_write
from server.errors import ForbiddenError, NotFoundError
from server.site.site import Site, State
from server.storage.undo.folder import UndoFolder
from server.storage.undo.keeper import Keeper
from server.storage.undo.kept import KeptWrite
from server.write.undo.restore import restore

MESSAGE = "Undo a change"
NONE = "There is no change of yours under this id that could still be undone"


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The route that takes a write back."""
    bp = Blueprint("undo", __name__)
    folder = UndoFolder(site.root)

    @bp.post("/batch/undo/<id_>", strict_slashes=False)
    def undo(id_: str) -> Response:
        state, actor = state_of(request), identities.actor(request)
        if not may_write(actor, state.schema.content_types):
            raise ForbiddenError()
        kept = folder.find(id_, actor.name)
        if kept is None:
            raise NotFoundError(NONE)
        _permit(kept, state, actor)
        again = Keeper(site.root, actor.name, kept.permits) if prefers(request, UNDO) else None
        _, paths = write_signed(site, identities, request, restore, kept, message=MESSAGE, keeper=again)
        folder.forget(id_)
        return tell_undo(answer(dumps({"data": {"files": len(paths)}, **described(again)})), again)

    return bp


def _permit(kept: KeptWrite, state: State, actor: Actor) -> None:
    """Raise ForbiddenError where an actor may not make a write any more that is to be taken back."""
    for wanted in kept.permits:
        type_ = state.schema.types.get(wanted.uid)
        if type_ is None or (type_.kind, wanted.verb) not in WRITES:
            raise NotFoundError(NONE)
        permit(Reader(state, type_, actor), wanted.verb, {"status": "draft"} if wanted.draft else {})
