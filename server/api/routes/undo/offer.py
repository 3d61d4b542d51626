"""What a write offers that prefers so (`Prefer: undo`): to take it back, by an id that its answer has."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flask import Request, Response

from server.api.request import prefers
from server.api.routes.operation import DISCARD, Operation
from server.documents.timestamps import from_seconds
from server.storage.undo.keeper import Keeper
from server.storage.undo.kept import Permit

UNDO = "undo"  # the preference
UNDO_HEADER = "Quire-Undo"
PUBLIC = "public"  # the caller that nobody can be told from


def keeper_of(request: Request, root: Path, operations: Iterable[Operation]) -> Keeper | None:
    """What keeps the files that operations replace; None where that is not asked for, or by the public."""
    operations = list(operations)
    caller = operations[0].reader.actor.name
    if not prefers(request, UNDO) or caller == PUBLIC:
        return None
    return Keeper(root, caller, dict.fromkeys(_permit(operation) for operation in operations))


def _permit(operation: Operation) -> Permit:
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
