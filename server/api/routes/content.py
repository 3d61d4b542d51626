"""Handlers for writes to content (docs/writing.md)."""

from functools import partial

from flask import Response, request

from server.api.operations.content import COLLECTION, SINGLE
from server.api.request import caller_of, not_found, parameters, prefers, read_body, state_of
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import (
    MERGE,
    UNDO,
    VERBS,
    commit_message,
    data_of,
    is_dry_run,
    write_response,
)
from server.documents.ids import to_nfc
from server.errors import NotFoundError
from server.schema.model import Type
from server.service.document_write import ACTIONS, Operation, Verb, require_write
from server.service.read import Caller
from server.service.write import Command, Writes


def bind(handles: Handlers, writes: Writes) -> None:
    """Register the handlers."""

    def type_of(api_id: str, kind: str) -> Type | None:
        type_ = state_of(request).schema.endpoints.get(api_id)
        return type_ if type_ and type_.kind == kind else None

    @handles("createDocument")
    def create(api_id: str) -> Response:
        return write(type_of(api_id, COLLECTION))

    @handles("updateDocument", "deleteDocument")
    def write_document(api_id: str, document_id: str) -> Response:
        return write(type_of(api_id, COLLECTION), document_id)

    @handles("updateSingle", "deleteSingle")
    def write_single(api_id: str) -> Response:
        return write(type_of(api_id, SINGLE))

    def write(type_: Type | None, document_id: str | None = None) -> Response:
        if type_ is None:
            raise not_found(request)
        caller, verb, params = caller_of(request), VERBS[request.method], parameters(request)
        require_write(
            caller.reader(type_), verb, params
        )  # The permission is checked before the body is read.
        data = None if verb is Verb.DELETE else data_of(read_body(request))
        document_id = document_id and to_nfc(document_id)
        if_match, merge = request.headers.get("If-Match"), prefers(request, MERGE)
        return make(caller, Operation(type_, verb, document_id, params, data, if_match, merge))

    def act_on_document(verb: Verb, api_id: str, document_id: str) -> Response:
        return act(type_of(api_id, COLLECTION), verb, to_nfc(document_id))

    def act_on_single(verb: Verb, api_id: str) -> Response:
        return act(type_of(api_id, SINGLE), verb, None)

    for verb in ACTIONS:
        handles(f"{verb}Document")(partial(act_on_document, verb))
        handles(f"{verb}Single")(partial(act_on_single, verb))

    def act(type_: Type | None, verb: Verb, document_id: str | None) -> Response:
        if type_ is None:
            raise NotFoundError()
        if_match = request.headers.get("If-Match")
        operation = Operation(type_, verb, document_id, parameters(request), if_match=if_match)
        return make(caller_of(request), operation)

    def make(caller: Caller, operation: Operation) -> Response:
        undo, message = prefers(request, UNDO), commit_message(request)
        command = Command(caller, [operation], dry_run=is_dry_run(), undo=undo, message=message)
        return write_response(writes.write(command))
