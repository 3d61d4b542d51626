"""What requests that write have in common: the branch, dry runs, `Prefer: undo`, the message, the commit.

A dry run is a parameter, and no preference (RFC 7240): that may be ignored, and a dry run that is ignored
writes.
"""

from collections.abc import Sequence
from typing import Any

from flask import Request, Response, g, request

from server.api.environ import STATE, parse_query, wsgi_text
from server.api.request import answer, answer_within, caller_of, operation_of, tell_commit
from server.documents.timestamps import from_seconds
from server.errors import ValidationError
from server.service.document_write import Verb
from server.service.dry_run import FileChange
from server.service.write import Result, UndoOffer, Writes

WRITE_METHODS = ("POST", "PUT", "DELETE")
DRY_RUN = "dryRun"  # the parameter
_LIKE = "dryrun"  # the parameter and its misspellings in lower case, without hyphens
MESSAGE = "Bifolio-Message"  # the header that has the message of a commit
MAX_MESSAGE_CHARS = 10_000
MERGE, UNDO = "merge", "undo"  # preferences
UNDO_HEADER = "Bifolio-Undo"
APPLIED = "Preference-Applied"
STATUSES = {Verb.CREATE: 201, Verb.DELETE: 204}  # of the answer to a write; otherwise 200
VERBS = {"POST": Verb.CREATE, "PUT": Verb.UPDATE, "DELETE": Verb.DELETE}


# --- what a request says -------------------------------------------------------------------------


def open_branch(writes: Writes) -> None:
    """Let a write that names a branch (`?branch=NAME`) be one of the state of that branch.

    Raises ForbiddenError, ValidationError, and what `Writes.on_branch` raises.
    """
    environ = request.environ
    if request.method not in WRITE_METHODS or "branch" not in environ.get("QUERY_STRING", ""):
        return
    if request.routing_exception:
        return
    if not operation_of(request).branch:
        if "branch" in request.args:
            raise ValidationError("branch is for writes of content; this is not written to a branch")
        return
    name = parse_query(environ["QUERY_STRING"]).get("branch")
    if name is not None:
        caller = writes.on_branch(caller_of(request), name)
        environ[STATE], g.branch = caller.state, caller.branch


def open_dry_run() -> None:
    """Refuse a dry run of what has none, and a parameter that is spelled nearly so. Raises ValidationError.

    Other parameters that are not known are ignored. Here that would write.
    """
    query = request.environ.get("QUERY_STRING", "")
    if request.method not in WRITE_METHODS or "dry" not in query.lower() or request.routing_exception:
        return
    for name, value in parse_query(query).items():
        if not is_like_dry_run(name):
            continue
        if name != DRY_RUN or value not in ("true", "false"):
            raise ValidationError(f"A dry run is asked for with {DRY_RUN}=true")
        if value == "true" and not operation_of(request).dry_run:
            raise ValidationError("There is no dry run of this")


def is_like_dry_run(name: str) -> bool:
    """Return whether a parameter is the one for dry runs, or a misspelling of it."""
    return name.replace("-", "").replace("_", "").lower() == _LIKE


def is_dry_run() -> bool:
    """Return whether the current request is for a dry run."""
    query = request.environ.get("QUERY_STRING", "")
    return DRY_RUN in query and parse_query(query).get(DRY_RUN) == "true"


def message_of(request: Request, otherwise: str = "") -> str:
    """Return the message that a request has for its commit. Raises ValidationError if it is too long."""
    said = wsgi_text(request.environ.get("HTTP_BIFOLIO_MESSAGE", "")) or otherwise
    if len(said) > MAX_MESSAGE_CHARS:
        raise ValidationError(f"{MESSAGE} must have at most {MAX_MESSAGE_CHARS:,} characters")
    return said


def data_of(body: Any) -> Any:
    """Return the new values in a body, `{"data": {…}}`; None if it has none."""
    return body.get("data") if isinstance(body, dict) else None


# --- what it is answered -------------------------------------------------------------------------


def answer_write(result: Result) -> Response:
    """Answer with the one document that a command wrote, or with the files of a dry run."""
    if result.files is not None:
        return answer_files(result.files)
    [written] = result.documents
    shown, status = written.render(), STATUSES.get(written.verb, 200)
    response = Response(status=204) if status == 204 else answer(shown.body, status)
    if shown.etag:
        response.headers["ETag"] = shown.etag
    if written.merged:
        response.headers[APPLIED] = MERGE
    return tell_commit(tell_undo(response, result.undo), result.commit)


def answer_files(files: Sequence[FileChange]) -> Response:
    """Answer a dry run with the files that would change."""
    shown = [{"path": file.path, "action": file.action, "lines": file.lines} for file in files]
    return answer_within(request, {"data": {"files": shown}})


def undo_of(offer: UndoOffer | None) -> dict[str, Any]:
    """Return what the body of an answer says of it if the write can be taken back."""
    if offer is None:
        return {}
    return {"undo": {"id": offer.id, "expires": from_seconds(offer.expires.timestamp())}}


def tell_undo(response: Response, offer: UndoOffer | None) -> Response:
    """Return an answer with the headers that say that the write can be taken back, if it can."""
    if offer:
        applied = filter(None, (response.headers.get(APPLIED), UNDO))
        response.headers[APPLIED] = ", ".join(applied)
        response.headers[UNDO_HEADER] = offer.id
    return response
