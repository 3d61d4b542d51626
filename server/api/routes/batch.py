"""Handler for POST /batch (docs/batch.md)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import orjson
from flask import Response, request

from server.api.operations.batch import DIFF, MAX_MESSAGE_CHARS, MAX_OPERATIONS, MERGE
from server.api.operations.content import parse_content_path
from server.api.request import add_commit_header, answer, caller_of, parameters, prefers, read_body
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import (
    DRY_RUN,
    STATUSES,
    UNDO,
    VERBS,
    WRITE_METHODS,
    add_undo_header,
    answer_files,
    commit_message,
    data_of,
    files_json,
    is_dry_run,
    is_like_dry_run,
    undo_json,
)
from server.auth.permissions import forbidden, may_find, may_write
from server.documents.ids import to_nfc
from server.errors import (
    RESPONSE_ERRORS,
    ForbiddenError,
    NotFoundError,
    ValidationError,
    add_operation_number,
)
from server.query import qs
from server.schema.model import Type
from server.schema.spelling import suggestion
from server.service.document_write import ACTIONS, WRITES, Operation, Verb
from server.service.read import Caller, Rendering
from server.service.render import dumps
from server.service.write import Command, Writes, Written

MAX_PATH_CHARS = 40_000  # Maximum length of an operation's path with its query.
_MAX_NAME_CHARS = 100  # Longer names are truncated before the search for similar names.
_OPERATION_KEYS = ("method", "path", "body", "ifMatch", "prefer")
_ACTION = re.compile(rf"(.+)/actions/({'|'.join(ACTIONS)})/?")
# Reasons why paths below /api/ can't be written in a batch.
_OTHERS = {
    "upload": "files can't be uploaded or changed in a batch",
    "users": "users can't be written in a batch",
    "users-permissions": "users can't be written in a batch",
    "auth": "users can't be written in a batch",
}


def bind(handles: Handlers, writes: Writes) -> None:
    """Register the handler."""

    @handles("batch")
    def batch() -> Response:
        caller = caller_of(request)
        if not may_write(caller.actor, caller.state.schema.content_types):
            raise ForbiddenError()
        wanted, message = _read_batch(read_body(request))
        command = Command(
            caller,
            _operations(wanted, caller),
            is_batch=True,
            dry_run=is_dry_run(),
            diff=_wants_diff(),
            undo=prefers(request, UNDO),
            message=commit_message(request, message),
        )
        result = writes.write(command)
        if command.dry_run:
            return answer_files(result.files or ())
        body = {"data": [_result_json(written) for written in result.documents], **undo_json(result.undo)}
        if command.diff:
            body["files"] = None if result.files is None else files_json(result.files)
        if result.note:
            body["meta"] = {"note": result.note}
        return add_commit_header(add_undo_header(answer(dumps(body)), result.undo), result.commit)


def _wants_diff() -> bool:
    wanted = parameters(request).get(DIFF, "false")
    if wanted not in ("true", "false"):
        raise ValidationError(f'"{DIFF}" must be "true" or "false"')
    return wanted == "true"


def _read_batch(body: Any) -> tuple[Sequence[Any], str]:
    if not isinstance(body, dict) or not isinstance(body.get("operations"), list):
        raise ValidationError('The body of a batch must be an object that contains the list "operations"')
    _refuse_keys(body, ("operations", "message"), "A batch")
    operations, message = body["operations"], body.get("message")
    if not 1 <= len(operations) <= MAX_OPERATIONS:
        raise ValidationError(
            f"A batch must have 1 to {MAX_OPERATIONS} operations, but this one has {len(operations):,}"
        )
    if message is not None and type(message) is not str:
        raise ValidationError('"message" must be a string')
    if message and (len(message) > MAX_MESSAGE_CHARS or "\0" in message):
        raise ValidationError(
            f'"message" must have at most {MAX_MESSAGE_CHARS:,} characters, and no null characters'
        )
    return operations, message or ""


def _refuse_keys(found: Iterable[str], known: Sequence[str], what: str) -> None:
    for key in found:
        if key not in known:
            hint = suggestion(key[:_MAX_NAME_CHARS], known) or f"its keys are {', '.join(known)}"
            raise ValidationError(f'{what} has no key "{key}"; {hint}')


def _operations(items: Iterable[Any], caller: Caller) -> Iterator[Operation]:
    # This is a generator, so that each operation is parsed only after the previous ones have been handled.
    for number, one in enumerate(items):
        with add_operation_number(number):
            operation = _operation(one, caller)
        yield operation


def _operation(item: Any, caller: Caller) -> Operation:
    if not isinstance(item, dict):
        raise ValidationError('An operation must be an object with the keys "method" and "path"')
    _refuse_keys(item, _OPERATION_KEYS, "An operation")
    method, path, if_match = item.get("method"), item.get("path"), item.get("ifMatch")
    if method not in WRITE_METHODS:
        raise ValidationError('"method" must be "POST", "PUT" or "DELETE"')
    if type(path) is not str or len(path) > MAX_PATH_CHARS:
        raise ValidationError('"path" must be a string, such as "/api/articles"')
    if if_match is not None and type(if_match) is not str:
        raise ValidationError('"ifMatch" must be a string that contains the entity tag of a document')
    if item.get("prefer") not in (None, MERGE):
        raise ValidationError(f'"prefer" must be "{MERGE}"')
    place, _, query = path.partition("?")
    place, verb = to_nfc(unquote(place)), VERBS[method]
    if (acted := _ACTION.fullmatch(place)) and verb is Verb.CREATE:
        place, verb = acted[1], Verb(acted[2])
    type_, document_id = _parse_path(place, verb, caller)
    params = qs.parse(query)
    if "branch" in params:
        raise ValidationError(
            "An operation can't have its own branch; specify the branch for the whole batch: "
            "/batch?branch=NAME"
        )
    if any(map(is_like_dry_run, params)):
        raise ValidationError(
            f"An operation can't be a dry run on its own; send the whole batch to /batch?{DRY_RUN}=true"
        )
    merge, data = item.get("prefer") == MERGE, data_of(item.get("body"))
    return Operation(type_, verb, document_id, params, data, if_match, merge)


def _parse_path(path: str, verb: Verb, caller: Caller) -> tuple[Type, str | None]:
    schema = caller.state.schema
    found = parse_content_path(path, schema)
    if found is None:
        name = path.removeprefix("/api/").partition("/")[0]
        why = _OTHERS.get(name) or suggestion(
            name[:_MAX_NAME_CHARS],
            (key for key, type_ in schema.endpoints.items() if _may_use(caller, type_)),
        )
        if not path.startswith("/api/"):
            why = "the path must begin with /api/"
        raise ValidationError(
            f"A batch can't write to {path}: {why or 'it is not the path of a content type'}"
        )
    # The permission is checked first, so that other errors don't reveal anything about the type.
    type_, document_id = found
    if not _may_use(caller, type_):
        action = verb.value if verb in (Verb.CREATE, Verb.DELETE) else "update"
        raise forbidden(caller.actor, type_.singular, action)
    single = type_.kind == "singleType"
    verbs = [
        v for kind, v in WRITES if kind == type_.kind and (single or (v is Verb.CREATE) != bool(document_id))
    ]
    if verb in ACTIONS and verb not in verbs:
        raise ValidationError(
            f'{path} does not support the action "{verb}", because this path does not contain a document id'
        )
    if verb not in verbs:
        names = [name for name, v in VERBS.items() if v in verbs]
        name = next(name for name, v in VERBS.items() if v is verb)
        raise ValidationError(f"{path} does not support {name}; use {' or '.join(names)}")
    return type_, document_id or None


def _may_use(caller: Caller, type_: Type) -> bool:
    return may_find(caller.actor, type_.uid) or may_write(caller.actor, [type_])


def _result_json(written: Written) -> dict[str, Any]:
    try:
        shown = written.render()
    except (*RESPONSE_ERRORS, NotFoundError):
        shown = Rendering(b"", "")
    return {
        "status": STATUSES.get(written.verb, 200),
        "documentId": written.document_id or None,
        "etag": shown.etag or None,
        "body": orjson.Fragment(shown.body) if shown.body else None,
        **({"preferenceApplied": MERGE} if written.merged else {}),
    }
