"""Undo for earlier writes (`server.service.write.UndoOffer`)."""

from dataclasses import replace
from functools import partial

from server.auth.permissions import may_write
from server.errors import ForbiddenError, NotFoundError
from server.service.read import Caller
from server.service.undo_permission import NOT_FOUND_MESSAGE, permit_undoing, permit_write, sight_of_files
from server.service.write import Outcome, Writes
from server.storage.undo import UndoFolder
from server.write.undo import UndoRequest, restore

DEFAULT_MESSAGE = "Undo a change"


def take_back(
    writes: Writes, caller: Caller, id_: str, *, undo: bool = False, message: str = ""
) -> Outcome[tuple[str, ...]]:
    """Restore the files that an earlier write changed, and return the paths of the visible files.

    If `undo` is set, the caller can undo the restoration, too.

    Raises ForbiddenError or NotFoundError. Raises ConflictError if the files have been changed again.
    """
    may = may_write(caller.actor, caller.state.schema.content_types) or caller.actor.may("upload", "upload")
    if not may:
        raise ForbiddenError()
    folder = UndoFolder(writes.site.root)
    record = folder.find(id_, caller.actor.name)
    if record is None:
        raise NotFoundError(NOT_FOUND_MESSAGE)
    permit_write(caller, record.permits)
    permits, may_see = record.permits if undo else (), sight_of_files(caller)
    restoration = UndoRequest(record, folder.copy_of, partial(permit_undoing, caller), may_see)
    outcome = writes.make(caller, restore, restoration, message=message or DEFAULT_MESSAGE, permits=permits)
    folder.forget(id_)
    return replace(outcome, made=tuple(filter(may_see, outcome.made)))
