"""Takes a write back whose result offered that (`server.service.write.UndoOffer`)."""

from server.auth.permissions import may_write
from server.errors import ForbiddenError, NotFoundError
from server.service.document_write import WRITES, Verb, permit
from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.storage.undo import KeptWrite, Permit, UndoFolder
from server.write.undo import restore

MESSAGE = "Undo a change"
NONE = "There is no change of yours under this id that could still be undone"
# What versions before this one called it: a server that replaces one of these meets it for an hour.
_FORMER = {"POST": Verb.CREATE, "PUT": Verb.UPDATE, "DELETE": Verb.DELETE}


def take_back(
    writes: Writes, caller: Caller, id_: str, *, undo: bool = False, message: str = ""
) -> Outcome[tuple[str, ...]]:
    """Let the files of a write hold again what they held before it; the outcome has their paths.

    With `undo`, that can be taken back as well. Raises ForbiddenError, NotFoundError, ConflictError if the
    files are not as the write left them, and what `Writes.make` raises.
    """
    if not may_write(caller.actor, caller.state.schema.content_types):
        raise ForbiddenError()
    folder = UndoFolder(writes.site.root)
    kept = folder.find(id_, caller.actor.name)
    if kept is None:
        raise NotFoundError(NONE)
    _require_permits(kept, caller)
    permits = kept.permits if undo else ()
    outcome = writes.make(caller, restore, kept, message=message or MESSAGE, permits=permits)
    folder.forget(id_)
    return outcome


def _require_permits(kept: KeptWrite, caller: Caller) -> None:
    """Raise ForbiddenError if a caller may not make a write any more that is to be taken back."""
    for wanted in kept.permits:
        type_, verb = caller.state.schema.types.get(wanted.uid), _verb(wanted)
        if type_ is None or verb is None or (type_.kind, verb) not in WRITES:
            raise NotFoundError(NONE)
        permit(caller.reader(type_), verb, {"status": "draft"} if wanted.draft else {})


def _verb(wanted: Permit) -> Verb | None:
    """Return what was done; None if only another version of Quire knows that."""
    name = _FORMER.get(wanted.verb, wanted.verb)
    return Verb(name) if name in set(Verb) else None
