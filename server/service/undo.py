"""Undoing earlier writes."""

from dataclasses import replace
from functools import partial

from server.auth.permissions import CONTENT_TYPE, may_write
from server.config.model import FILE
from server.errors import ForbiddenError, NotFoundError
from server.paths import TYPES
from server.service.read import Caller
from server.service.undo_permission import (
    NOT_FOUND_MESSAGE,
    changes_schema,
    file_visibility,
    require_undo,
    require_write_permits,
)
from server.service.write import Outcome, Writes
from server.site.migrations.undo import restore_schemas
from server.storage.undo import UndoFolder
from server.write.undo import UndoRequest, restore

DEFAULT_MESSAGE = "Undo a change"


def undo_write(
    writes: Writes, caller: Caller, id_: str, *, can_redo: bool = False, message: str = ""
) -> Outcome[tuple[str, ...]]:
    """Undo a write by restoring the files that it changed. Return the paths that the caller may see.

    If `can_redo` is set, the undo itself can be undone, too. Raises ConflictError if the files have changed
    since the write. Also raises ForbiddenError or NotFoundError.
    """
    actor = caller.actor
    may = may_write(actor, caller.state.schema.content_types) or actor.may("upload", "upload")
    if not may and not actor.may(CONTENT_TYPE, "write"):
        raise ForbiddenError()
    folder = UndoFolder(writes.site.root)
    record = folder.find(id_, actor.name)
    if record is None:
        raise NotFoundError(NOT_FOUND_MESSAGE)
    require_write_permits(caller, record.permits)
    permits, may_see = record.permits if can_redo else (), file_visibility(caller)
    restoration = UndoRequest(record, folder.copy_of, partial(require_undo, caller), may_see)
    prepare = restore_schemas if changes_schema(record.permits) else restore
    outcome = writes.save(caller, prepare, restoration, message=message or DEFAULT_MESSAGE, permits=permits)
    folder.forget(id_)
    if configuration := tuple(path for path in outcome.result if path.startswith((f"{TYPES}/", FILE))):
        writes.refresh_configuration(configuration)
    return replace(outcome, result=tuple(filter(may_see, outcome.result)))
