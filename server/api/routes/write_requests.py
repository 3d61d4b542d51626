"""Helpers for the handlers of writes.

A dry run is requested with a query parameter instead of a `Prefer` header, because a server that ignored the
header would perform the write.
"""

from collections.abc import Sequence
from typing import Any

from flask import Request, Response, g, request

from server.api.environ import OF_AGENT, STATE, wsgi_text
from server.api.request import (
    actor_of,
    add_commit_header,
    answer,
    budgeted_json_response,
    caller_of,
    operation_of,
    parameters,
)
from server.config.mcp import WriteMode
from server.documents.timestamps import from_seconds
from server.errors import (
    CHECKED_OUT,
    BranchCheckedOutError,
    ForbiddenError,
    UnauthorizedError,
    ValidationError,
)
from server.service.document_write import Verb
from server.service.dry_run import FileChange
from server.service.write import Result, UndoOffer, Writes

WRITE_METHODS = ("POST", "PUT", "DELETE")
DRY_RUN = "dryRun"  # query parameter
_LIKE = "dryrun"  # DRY_RUN in lower case, to recognize misspellings such as `dry_run`
MESSAGE = "Bifolio-Message"  # request header with the commit message
MAX_MESSAGE_CHARS = 10_000
MERGE, UNDO = "merge", "undo"  # values of the header `Prefer`
UNDO_HEADER = "Bifolio-Undo"
APPLIED = "Preference-Applied"
# Statuses of successful writes. The other verbs have the status 200.
STATUSES = {Verb.CREATE: 201, Verb.DELETE: 204}
VERBS = {"POST": Verb.CREATE, "PUT": Verb.UPDATE, "DELETE": Verb.DELETE}


BRANCH_ONLY_MESSAGE = "This token may write only to branches; {}"
NAME_BRANCH = "name a branch other than the served one: ?branch=NAME"


# --- requests ------------------------------------------------------------------------------------


def switch_to_branch(writes: Writes) -> None:
    """If the request has the parameter `branch`, make the request read and write that branch.

    Raises ForbiddenError if the caller may not write to branches, and ValidationError if the parameter is
    invalid or not supported.
    """
    environ, params = request.environ, _write_parameters()
    if "branch" not in params:
        return
    if not operation_of(request).branch:
        raise ValidationError('The "branch" parameter can only be used in requests that write content')
    name = params["branch"]
    caller = writes.on_branch(caller_of(request), name)
    settings = caller.state.settings
    if caller.branch is None and OF_AGENT in environ and settings.mcp.write is not WriteMode.DIRECT:
        # Somebody has checked the branch out since the tool chose it.
        raise BranchCheckedOutError(
            f"The branch \"{name}\" is checked out in the site's folder now, so agents can't write to it",
            {CHECKED_OUT: name},
        )
    environ[STATE], g.branch = caller.state, caller.branch


def enforce_branch_only() -> None:
    """Raise ForbiddenError if the caller may write only to branches, but does not write to one."""
    if request.method not in WRITE_METHODS or request.routing_exception or g.get("branch"):
        return
    operation = operation_of(request)
    if operation.branch_only or is_dry_run():
        return
    try:
        actor = actor_of(request)
    except UnauthorizedError:
        return  # The handler decides whether the request needs a valid token.
    if actor.branch_only:
        fix = NAME_BRANCH if operation.branch else "this request can't be made on a branch"
        raise ForbiddenError(BRANCH_ONLY_MESSAGE.format(fix), actor=actor.name)


def check_dry_run() -> None:
    """Raise ValidationError if `dryRun` is misspelled, invalid or not supported."""
    # Other misspelled parameters are ignored, but ignoring a misspelled `dryRun` would change data.
    for name, value in _write_parameters().items():
        if not is_like_dry_run(name):
            continue
        if name != DRY_RUN or value not in ("true", "false"):
            raise ValidationError(f'"{DRY_RUN}" must be "true" or "false"')
        if value == "true" and not operation_of(request).dry_run:
            raise ValidationError("This request does not support a dry run")


def is_like_dry_run(name: str) -> bool:
    return name.replace("-", "").replace("_", "").lower() == _LIKE


def is_dry_run() -> bool:
    return parameters(request).get(DRY_RUN) == "true"


def _write_parameters() -> dict[str, object]:
    # The names are compared after parsing, because they can be percent-encoded or in brackets.
    is_write = request.method in WRITE_METHODS and not request.routing_exception
    return parameters(request) if is_write else {}


def commit_message(request: Request, default: str = "") -> str:
    said = wsgi_text(request.environ.get("HTTP_BIFOLIO_MESSAGE", "")) or default
    if len(said) > MAX_MESSAGE_CHARS:
        raise ValidationError(f"The {MESSAGE} header must have at most {MAX_MESSAGE_CHARS:,} characters")
    return said


def required_if_match() -> str:
    if_match = request.headers.get("If-Match")
    if not if_match:
        raise ValidationError(
            "The If-Match header is missing; it must contain the ETag of the version that you edited"
        )
    return if_match


def data_of(body: Any) -> Any:
    return body.get("data") if isinstance(body, dict) else None


# --- responses -----------------------------------------------------------------------------------


def write_response(result: Result) -> Response:
    """Return the response to a write, or to a dry run of a write."""
    if result.files is not None:
        return answer_files(result.files)
    [written] = result.documents
    shown, status = written.render_within_limits(), STATUSES.get(written.verb, 200)
    response = Response(status=204) if status == 204 else answer(shown.body, status)
    if shown.etag:
        response.headers["ETag"] = shown.etag
    if written.merged:
        response.headers[APPLIED] = MERGE
    return add_commit_header(add_undo_header(response, result.undo), result.commit)


def answer_files(files: Sequence[FileChange]) -> Response:
    return budgeted_json_response(request, {"data": {"files": files_json(files)}})


def files_json(files: Sequence[FileChange]) -> list[dict[str, Any]]:
    return [{"path": file.path, "action": file.action, "lines": file.lines} for file in files]


def undo_json(offer: UndoOffer | None) -> dict[str, Any]:
    if offer is None:
        return {}
    return {"undo": {"id": offer.id, "expires": from_seconds(offer.expires.timestamp())}}


def add_undo_header(response: Response, offer: UndoOffer | None) -> Response:
    if offer:
        applied = filter(None, (response.headers.get(APPLIED), UNDO))
        response.headers[APPLIED] = ", ".join(applied)
        response.headers[UNDO_HEADER] = offer.id
    return response
