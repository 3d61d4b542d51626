"""POST /batch: several writes of content as one, all of which are made or none (docs/batch.md)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import orjson
from flask import Response, request

from server.api.environ import is_v4
from server.api.identities import Identities
from server.api.operations.batch import MAX_MESSAGE, MAX_OPERATIONS, MERGE
from server.api.operations.content import content_at
from server.api.request import answer, budget_of, read_body, state_of
from server.api.routes.branch_requests import BranchRequests
from server.api.routes.document_write import (
    ACTIONS,
    WRITES,
    DocumentWrite,
    Sent,
    hashed,
    permit,
    read_document_write,
)
from server.api.routes.dry_run import PARAMETER, dry_run, is_dry_run, is_like_dry_run
from server.api.routes.handlers import Handlers
from server.api.routes.undo import described, keeper_of, tell_undo
from server.api.serving.bodies import MAX_BODY
from server.auth.permissions import may_write
from server.documents.ids import composed, new_document_id
from server.errors import (
    ForbiddenError,
    LimitError,
    NotFoundError,
    PayloadTooLargeError,
    ValidationError,
    of_operation,
)
from server.index.dangling import Key
from server.query import qs
from server.query.parse import written_locale
from server.schema.model import Type
from server.schema.spelling import suggestion
from server.service.read import Params, Reader, Rendering
from server.service.render import dumps
from server.site.site import State
from server.write import prepare
from server.write.request import BatchRequest
from server.write.write import single_id

LONGEST_PATH = 40_000  # characters, with its query
_LONGEST_NAME = 100  # characters of a word for which a similar one is looked for
_KEYS = ("method", "path", "body", "ifMatch", "prefer")
_ACTION = re.compile(rf"(.+)/actions/({'|'.join(ACTIONS)})/?")
_REFERENCE = re.compile(r"\{\{ *([0-9]{1,9})\.documentId *\}\}")
# What is written in another way, by the part of a path behind /api/.
_OTHERS = {
    "upload": "files can't be uploaded or changed in a batch",
    "users": "users can't be written in a batch",
    "users-permissions": "users can't be written in a batch",
    "auth": "users can't be written in a batch",
}


def bind(handles: Handlers, identities: Identities, branches: BranchRequests) -> None:
    """Bind the operations of `/batch`."""

    @handles("batch")
    def batch() -> Response:
        state, budget = state_of(request), budget_of(request)
        v4, actor = is_v4(request.environ, state.settings), identities.actor(request)
        if not may_write(actor, state.schema.content_types):
            raise ForbiddenError()

        def reader_of(type_: Type) -> Reader:
            return Reader(state, type_, actor, v4=v4, users=identities.user_index, budget=budget)

        wanted, message = _read_batch(read_body(request))
        operations = hashed(_Operations(state, reader_of).read(wanted))
        batch_request = BatchRequest(
            tuple((operation.prepare, operation.request) for operation in operations), message
        )
        if is_dry_run():
            return dry_run(identities, branches, prepare.batch, batch_request)

        def addressed(results: Iterable[tuple[str, bool]]) -> list[Key]:
            pairs = zip(operations, results, strict=True)
            return [key for operation, (written, _) in pairs for key in operation.addressed(written)]

        keeper = keeper_of(request, branches.site.root, operations)
        after, written = branches.write(prepare.batch, batch_request, addressed, message, keeper)
        results = [
            _result(operation, document_id, after, merged=merged)
            for operation, (document_id, merged) in zip(operations, written, strict=True)
        ]
        return tell_undo(answer(dumps({"data": results, **described(keeper)})), keeper)


def _read_batch(body: Any) -> tuple[Sequence[Any], str]:
    """The operations of a body, and its message. Raises ValidationError."""
    if not isinstance(body, dict) or not isinstance(body.get("operations"), list):
        raise ValidationError('A batch is an object with a list "operations"')
    _refuse_keys(body, ("operations", "message"), "A batch")
    operations, message = body["operations"], body.get("message")
    if not 1 <= len(operations) <= MAX_OPERATIONS:
        raise ValidationError(f"A batch has 1 to {MAX_OPERATIONS} operations, not {len(operations):,}")
    if message is not None and type(message) is not str:
        raise ValidationError("message must be text")
    if message and (len(message) > MAX_MESSAGE or "\0" in message):
        raise ValidationError(f"message must have at most {MAX_MESSAGE:,} characters, none of them null")
    return operations, message or ""


def _refuse_keys(found: Iterable[str], known: Sequence[str], what: str) -> None:
    for key in found:
        if key not in known:
            hint = suggestion(key[:_LONGEST_NAME], known) or f"it has {', '.join(known)}"
            raise ValidationError(f'{what} has no "{key}"; {hint}')


@dataclass(slots=True)
class _Operations:
    """Reads the operations of a batch one after the other.

    `ids` are those of their documents, which later ones refer to; None of one that deletes. A document that
    is still to be made has its id already, that of a single type in `singles` by its uid. `room` is how many
    more characters may stand for references.
    """

    state: State
    reader_of: Callable[[Type], Reader]
    ids: list[str | None] = field(default_factory=list)
    singles: dict[str, str] = field(default_factory=dict)
    room: int = MAX_BODY

    def read(self, wanted: Iterable[Any]) -> list[DocumentWrite]:
        """The operations. Raises ForbiddenError, ValidationError and PayloadTooLargeError."""
        operations = []
        for number, one in enumerate(wanted):
            with of_operation(number):
                operation = self._one(one)
            operations.append(operation)
            self.ids.append(operation.sent.document_id if operation.query else None)
        return operations

    def _one(self, wanted: Any) -> DocumentWrite:
        if not isinstance(wanted, dict):
            raise ValidationError("An operation is an object with a method and a path")
        _refuse_keys(wanted, _KEYS, "An operation")
        method, path, if_match = wanted.get("method"), wanted.get("path"), wanted.get("ifMatch")
        if method not in ("POST", "PUT", "DELETE"):
            raise ValidationError("method must be POST, PUT or DELETE")
        if type(path) is not str or len(path) > LONGEST_PATH:
            raise ValidationError("path must be text, such as /api/articles")
        if if_match is not None and type(if_match) is not str:
            raise ValidationError("ifMatch must be text: the entity tag of a document")
        if wanted.get("prefer") not in (None, MERGE):
            raise ValidationError(f'prefer must be "{MERGE}"')
        place, _, query = path.partition("?")
        place = composed(self._filled(unquote(place)))
        if (acted := _ACTION.fullmatch(place)) and method == "POST":
            place, method = acted.groups()
        type_, document_id = self._addressed(place, method)
        reader = self.reader_of(type_)
        params = self._filled(qs.parse(query))
        permit(reader, method, params)
        body = self._filled(wanted.get("body"))
        if "branch" in params:
            raise ValidationError("A batch is written to one branch; name it in /batch?branch=NAME")
        if any(map(is_like_dry_run, params)):
            raise ValidationError(f"A batch is tried as a whole, with /batch?{PARAMETER}=true")
        if method != "DELETE":
            document_id = document_id or self._id_of(type_, {} if acted else params)
        merge = wanted.get("prefer") == MERGE
        return read_document_write(reader, Sent(method, document_id, params, body, if_match, merge=merge))

    def _addressed(self, path: str, method: str) -> tuple[Type, str | None]:
        """The type that a path names, and the id in it. Raises ValidationError for what no write has."""
        endpoints = self.state.schema.endpoints
        found = content_at(path, self.state.schema)
        if found is None:
            name = path.removeprefix("/api/").partition("/")[0]
            why = _OTHERS.get(name) or suggestion(name[:_LONGEST_NAME], endpoints)
            if not path.startswith("/api/"):
                why = "its path has to begin with /api/"
            raise ValidationError(f"{path} can't be written: {why or 'no content type is there'}")
        type_, document_id = found
        single = type_.kind == "singleType"
        methods = [m for k, m in WRITES if k == type_.kind and (single or (m == "POST") != bool(document_id))]
        if method in ACTIONS and method not in methods:
            raise ValidationError(f"{path} can't be written by actions/{method}: it names no document")
        methods = [m for m in methods if m == method or m not in ACTIONS]
        if method not in methods:
            raise ValidationError(f"{path} can't be written by {method}; use {' or '.join(methods)}")
        return type_, document_id or None

    def _id_of(self, type_: Type, params: Params) -> str:
        """The id of a document whose path has none: it is new, or that of a single type."""
        if type_.kind != "singleType":
            return new_document_id()
        snapshot, settings = self.state.snapshot, self.state.settings
        there = single_id(snapshot, settings, type_, written_locale(params.get("locale"), type_, settings))
        return there or self.singles.setdefault(type_.uid, new_document_id())

    def _filled(self, value: Any) -> Any:
        """A value with the ids that texts in it refer to."""
        if type(value) is str:
            return _REFERENCE.sub(self._referred, value) if "{{" in value else value
        if isinstance(value, Mapping):
            return {key: self._filled(inner) for key, inner in value.items()}
        return [self._filled(item) for item in value] if isinstance(value, list) else value

    def _referred(self, found: re.Match[str]) -> str:
        number = int(found[1])
        if number >= len(self.ids):
            raise ValidationError(f"{found[0]} refers to an operation that does not come before this one")
        document_id = self.ids[number]
        if document_id is None:
            raise ValidationError(f"{found[0]} refers to an operation that deletes its document")
        self.room -= len(document_id)
        if self.room < 0:
            raise PayloadTooLargeError(f"The references come to more than {MAX_BODY:,} characters")
        return document_id


def _result(operation: DocumentWrite, document_id: str, state: State, *, merged: bool) -> dict[str, Any]:
    """What an operation came to: its document as it is after the whole batch.

    There is no body where that is deleted, and where the answer has no room for it: it is written already.
    """
    try:
        shown = operation.shown(state, document_id)
    except (LimitError, NotFoundError):
        shown = Rendering(b"", "")
    return {
        "status": operation.status,
        "documentId": document_id or None,
        "etag": shown.etag or None,
        "body": orjson.Fragment(shown.body) if shown.body else None,
        **({"preferenceApplied": MERGE} if merged else {}),
    }
