"""Handler for `POST /batch/undo/{id}`, which undoes a write (docs/batch.md)."""

from flask import Response, request

from server.api.request import answer, caller_of, prefers, tell_commit
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import UNDO, message_of, tell_undo, undo_of
from server.service.render import dumps
from server.service.undo import take_back
from server.service.write import Writes


def bind(handles: Handlers, writes: Writes) -> None:
    @handles("undoWrite")
    def undo(key: str) -> Response:
        caller, again = caller_of(request), prefers(request, UNDO)
        outcome = take_back(writes, caller, key, undo=again, message=message_of(request))
        body = dumps({"data": {"files": len(outcome.made)}, **undo_of(outcome.undo)})
        return tell_commit(tell_undo(answer(body), outcome.undo), outcome.commit)
