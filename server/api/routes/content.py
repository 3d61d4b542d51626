"""Writes of content: collections, documents and single types (spec.md 4.3). `server.api.front` reads them."""

from flask import Blueprint, Response, current_app, request

from server.api.environ import is_v4
from server.api.identities import Identities
from server.api.reading import Reader, Shown
from server.api.request import answer, budget_of, parameters, prefers, read_body, state_of
from server.api.routes.branches.writing import BranchRequests
from server.api.routes.operation import Sent, hashed, permit, read_operation
from server.api.routes.source.dry_run import dry_run, is_dry_run
from server.api.routes.undo.offer import keeper_of, tell_undo
from server.api.serving.bodies import MAX_BODY
from server.documents.ids import composed
from server.errors import ApiError, MethodNotAllowedError, NotFoundError
from server.index.dangling import Key
from server.schema.model import Type
from server.write.prepare import noting_merge

METHODS = ("GET", "POST", "PUT", "DELETE")
REFUSING = ("users.refuse_role",)  # endpoints that refuse every request: `Allow` does not list their methods


def blueprint(identities: Identities, branches: BranchRequests) -> Blueprint:
    """The routes of `/api/:pluralApiId`, `/api/:pluralApiId/:documentId` and `/api/:singularApiId`."""
    bp = Blueprint("content", __name__, url_prefix="/api")

    def asked(api_id: str, kind: str) -> Reader:
        state = state_of(request)
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None or type_.kind != kind:
            raise _nothing_at(type_)
        actor = identities.actor(request)
        v4, budget = is_v4(request.environ, state.settings), budget_of(request)
        return Reader(state, type_, actor, v4=v4, users=identities.user_index, budget=budget)

    @bp.before_app_request
    def answer_method() -> Response | None:
        """Answer OPTIONS, and methods that no path has."""
        if request.method in (*METHODS, "HEAD") or not request.path.startswith("/api/"):
            return None
        type_ = state_of(request).schema.endpoints.get(request.path.split("/", 3)[2])
        if request.method != "OPTIONS":
            raise _nothing_at(type_)
        return Response(headers={"Allow": ", ".join(_allowed(type_))})

    @bp.post("/<api_id>", strict_slashes=False)
    def create(api_id: str) -> Response:
        return write(asked(api_id, "collectionType"))

    @bp.put("/<api_id>/<document_id>", strict_slashes=False)
    def update(api_id: str, document_id: str) -> Response:
        return write(asked(api_id, "collectionType"), document_id)

    @bp.put("/<api_id>", strict_slashes=False)
    def update_single(api_id: str) -> Response:
        return write(asked(api_id, "singleType"))

    @bp.delete("/<api_id>/<document_id>", strict_slashes=False)
    def delete(api_id: str, document_id: str) -> Response:
        return write(asked(api_id, "collectionType"), document_id)

    @bp.delete("/<api_id>", strict_slashes=False)
    def delete_single(api_id: str) -> Response:
        return write(asked(api_id, "singleType"))

    def write(reader: Reader, document_id: str | None = None) -> Response:
        permit(reader, request.method, parameters(request))
        [operation] = hashed([read_operation(reader, _sent(document_id))])
        change = noting_merge(operation.prepare)
        if is_dry_run():
            return dry_run(identities, branches, change, operation.request)

        def addressed(result: tuple[str, bool]) -> list[Key]:
            return operation.addressed(result[0])

        keeper = keeper_of(request, branches.site.root, [operation])
        state, (written, merged) = branches.write(change, operation.request, addressed, keeper=keeper)
        shown = operation.shown(state, written)
        return tell_undo(_answer(shown, operation.status, merged=merged), keeper)

    @bp.route("/<path:rest>", methods=METHODS)
    def nothing_else(rest: str) -> Response:
        raise _nothing_at(state_of(request).schema.endpoints.get(rest.partition("/")[0]))

    return bp


def _nothing_at(type_: Type | None) -> ApiError:
    """The error for a method that a path does not have, or for a path that there is not."""
    allowed = _allowed(type_)
    if request.method in ("GET", "HEAD") and ("GET" in allowed or allowed == ("OPTIONS",)):
        return NotFoundError()
    return MethodNotAllowedError(allowed)


def _allowed(type_: Type | None) -> tuple[str, ...]:
    """The methods that the path of the request has, whose first part may name a type."""
    below = request.path.rstrip("/").removeprefix("/api/").partition("/")[2]
    one = type_ is not None and (type_.kind == "singleType") != bool(below) and "/" not in below
    many = type_ is not None and type_.kind == "collectionType" and not below
    content = ("GET", "PUT", "DELETE") if one else ("GET", "POST") if many else ()
    methods = content or _methods_of(request.path)
    return (*methods, *["HEAD"] * ("GET" in methods), "OPTIONS")


def _methods_of(path: str) -> tuple[str, ...]:
    """The methods that a path has which is no content type's."""
    routes = current_app.url_map.bind("")
    had = (method for method in METHODS if routes.test(path, method))
    found = ((method, str(routes.match(path, method)[0])) for method in had)
    return tuple(m for m, name in found if not name.startswith("content.") and name not in REFUSING)


def _sent(document_id: str | None) -> Sent:
    body = None if request.method == "DELETE" else read_body(request, MAX_BODY)
    if_match = request.headers.get("If-Match")
    document_id = document_id and composed(document_id)
    merge = prefers(request, "merge")
    return Sent(request.method, document_id, parameters(request), body, if_match, merge=merge)


def _answer(shown: Shown, status: int, *, merged: bool) -> Response:
    if status == 204:
        return Response(status=status)
    response = answer(shown.body, status)
    if merged:
        response.headers["Preference-Applied"] = "merge"
    if shown.etag:
        response.headers["ETag"] = shown.etag
    return response
