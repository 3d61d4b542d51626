"""Writes of content: documents, single types, and what is done to one as a whole (docs/writing.md).

`server.api.entrance` reads content.
"""

from functools import partial

from flask import Response, request

from server.api.environ import is_v4
from server.api.identities import Identities
from server.api.operations.content import COLLECTION, DISCARD, SINGLE, UNPUBLISH
from server.api.request import answer, budget_of, not_found, parameters, prefers, read_body, state_of
from server.api.routes.branch_requests import BranchRequests
from server.api.routes.document_write import DocumentWrite, Sent, hashed, permit, read_document_write
from server.api.routes.dry_run import dry_run, is_dry_run
from server.api.routes.handlers import Handlers
from server.api.routes.undo import keeper_of, tell_undo
from server.documents.ids import composed
from server.errors import NotFoundError
from server.index.dangling import Key
from server.service.read import Reader, Rendering
from server.write.prepare import noting_merge


def bind(handles: Handlers, identities: Identities, branches: BranchRequests) -> None:
    """Bind the operations of content types that write."""

    def reader_of(api_id: str, kind: str) -> Reader | None:
        state = state_of(request)
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None or type_.kind != kind:
            return None
        actor = identities.actor(request)
        v4, budget = is_v4(request.environ, state.settings), budget_of(request)
        return Reader(state, type_, actor, v4=v4, users=identities.user_index, budget=budget)

    @handles("createDocument")
    def create(api_id: str) -> Response:
        return write(reader_of(api_id, COLLECTION))

    @handles("updateDocument", "deleteDocument")
    def write_document(api_id: str, document_id: str) -> Response:
        return write(reader_of(api_id, COLLECTION), document_id)

    @handles("updateSingle", "deleteSingle")
    def write_single(api_id: str) -> Response:
        return write(reader_of(api_id, SINGLE))

    def write(reader: Reader | None, document_id: str | None = None) -> Response:
        if reader is None:
            raise not_found(request)
        permit(reader, request.method, parameters(request))
        [wanted] = hashed([read_document_write(reader, _sent(document_id))])
        change = noting_merge(wanted.prepare)
        if is_dry_run():
            return dry_run(identities, branches, change, wanted.request)

        def addressed(result: tuple[str, bool]) -> list[Key]:
            return wanted.addressed(result[0])

        keeper = keeper_of(request, branches.site.root, [wanted])
        state, (written, merged) = branches.write(change, wanted.request, addressed, keeper=keeper)
        response = _answer(wanted, wanted.shown(state, written))
        if merged and wanted.status != 204:
            response.headers["Preference-Applied"] = "merge"
        return tell_undo(response, keeper)

    def act_on_document(action: str, api_id: str, document_id: str) -> Response:
        return act(reader_of(api_id, COLLECTION), action, composed(document_id))

    def act_on_single(action: str, api_id: str) -> Response:
        return act(reader_of(api_id, SINGLE), action, None)

    for action in (UNPUBLISH, DISCARD):
        handles(f"{action}Document")(partial(act_on_document, action))
        handles(f"{action}Single")(partial(act_on_single, action))

    def act(reader: Reader | None, action: str, document_id: str | None) -> Response:
        if reader is None:
            raise NotFoundError()
        params = parameters(request)
        permit(reader, action, params)
        sent = Sent(action, document_id, params, if_match=request.headers.get("If-Match"))
        wanted = read_document_write(reader, sent)
        if is_dry_run():
            return dry_run(identities, branches, wanted.prepare, wanted.request)
        keeper = keeper_of(request, branches.site.root, [wanted])
        state, written = branches.write(wanted.prepare, wanted.request, wanted.addressed, keeper=keeper)
        return tell_undo(_answer(wanted, wanted.shown(state, written)), keeper)


def _sent(document_id: str | None) -> Sent:
    body = None if request.method == "DELETE" else read_body(request)
    if_match = request.headers.get("If-Match")
    document_id = document_id and composed(document_id)
    merge = prefers(request, "merge")
    return Sent(request.method, document_id, parameters(request), body, if_match, merge=merge)


def _answer(wanted: DocumentWrite, shown: Rendering) -> Response:
    if wanted.status == 204:
        return Response(status=204)
    response = answer(shown.body, wanted.status)
    if shown.etag:
        response.headers["ETag"] = shown.etag
    return response
