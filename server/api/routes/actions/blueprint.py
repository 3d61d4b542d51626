"""The routes of `/api/…/actions/ACTION`."""

from flask import Blueprint, Response, request

from server.api.environ import is_v4
from server.api.identities import Identities
from server.api.reading import Reader
from server.api.request import answer, budget_of, parameters, state_of
from server.api.routes.branches.writing import BranchRequests
from server.api.routes.operation import ACTIONS, Sent, permit, read_operation
from server.api.routes.source.dry_run import dry_run, is_dry_run
from server.api.routes.undo.offer import keeper_of, tell_undo
from server.documents.ids import composed
from server.errors import NotFoundError

_ACTION = f"<any({','.join(ACTIONS)}):action>"


def blueprint(identities: Identities, branches: BranchRequests) -> Blueprint:
    """The routes of the actions: `/api/:pluralApiId/:documentId/actions/:action`, and of single types."""
    bp = Blueprint("actions", __name__, url_prefix="/api")

    def reader_of(api_id: str, kind: str) -> Reader:
        state = state_of(request)
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None or type_.kind != kind:
            raise NotFoundError()
        actor, v4 = identities.actor(request), is_v4(request.environ, state.settings)
        return Reader(state, type_, actor, v4=v4, users=identities.user_index, budget=budget_of(request))

    @bp.post(f"/<api_id>/<document_id>/actions/{_ACTION}", strict_slashes=False)
    def on_document(api_id: str, document_id: str, action: str) -> Response:
        return act(reader_of(api_id, "collectionType"), action, composed(document_id))

    @bp.post(f"/<api_id>/actions/{_ACTION}", strict_slashes=False)
    def on_single(api_id: str, action: str) -> Response:
        return act(reader_of(api_id, "singleType"), action, None)

    def act(reader: Reader, action: str, document_id: str | None) -> Response:
        params = parameters(request)
        permit(reader, action, params)
        sent = Sent(action, document_id, params, if_match=request.headers.get("If-Match"))
        operation = read_operation(reader, sent)
        if is_dry_run():
            return dry_run(identities, branches, operation.prepare, operation.request)
        keeper = keeper_of(request, branches.site.root, [operation])
        state, written = branches.write(
            operation.prepare, operation.request, operation.addressed, keeper=keeper
        )
        shown = operation.shown(state, written)
        response = answer(shown.body, operation.status)
        if shown.etag:
            response.headers["ETag"] = shown.etag
        return tell_undo(response, keeper)

    return bp
