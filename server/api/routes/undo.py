"""Handler for `POST /batch/undo/{id}` (docs/batch.md)."""

from flask import Response, request

from server.api.request import add_commit_header, answer, caller_of, prefers
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import UNDO, add_undo_header, commit_message, undo_json
from server.service.render import dumps
from server.service.undo import undo_write
from server.service.write import Writes


def bind(handles: Handlers, writes: Writes) -> None:
    @handles("undoWrite")
    def undo(key: str) -> Response:
        caller, again = caller_of(request), prefers(request, UNDO)
        outcome = undo_write(writes, caller, key, can_redo=again, message=commit_message(request))
        body = dumps({"data": {"files": len(outcome.result)}, **undo_json(outcome.undo)})
        return add_commit_header(add_undo_header(answer(body), outcome.undo), outcome.commit)
