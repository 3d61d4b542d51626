"""Writes of content: collections, documents and single types (spec.md 4.3). `server.api.front` reads them."""

from dataclasses import replace

from flask import Blueprint, Response, current_app, request

from server.api.environ import is_v4
from server.api.identities import Identities
from server.api.reading import Reader, Shown
from server.api.request import answer, budget_of, parameters, read_body, state_of
from server.api.serving.bodies import MAX_BODY
from server.auth.permissions import may_read_drafts, require
from server.documents.document import DRAFT
from server.errors import ApiError, MethodNotAllowedError, NotFoundError, ValidationError
from server.query.ast import Query
from server.query.parse import deleted_locales, read_status, written_locale
from server.schema.model import Type
from server.site.site import Site
from server.write import prepare
from server.write.passwords import hash_passwords
from server.write.request import Address, WriteRequest
from server.write.validate import read_data

METHODS = ("GET", "POST", "PUT", "DELETE")
REFUSING = ("users.refuse_role",)  # endpoints that refuse every request: `Allow` does not list their methods


def blueprint(site: Site, identities: Identities) -> Blueprint:
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
        ask = asked(api_id, "collectionType")
        require(ask.actor, ask.type, "create")
        query, wanted = _query(ask), _write_request(ask, None)
        state, document_id = site.write(prepare.create, wanted)
        return _written(replace(ask, state=state), query, wanted.address, document_id, status=201)

    @bp.put("/<api_id>/<document_id>", strict_slashes=False)
    def update(api_id: str, document_id: str) -> Response:
        ask = asked(api_id, "collectionType")
        require(ask.actor, ask.type, "update")
        query, wanted = _query(ask), _write_request(ask, document_id)
        state, document_id = site.write(prepare.update, wanted)
        return _written(replace(ask, state=state), query, wanted.address, document_id)

    @bp.put("/<api_id>", strict_slashes=False)
    def update_single(api_id: str) -> Response:
        ask = asked(api_id, "singleType")
        require(ask.actor, ask.type, "update")
        query, wanted = _query(ask), _write_request(ask, None)
        state, document_id = site.write(prepare.put_single, wanted)
        return _written(replace(ask, state=state), query, wanted.address, document_id)

    @bp.delete("/<api_id>/<document_id>", strict_slashes=False)
    def delete(api_id: str, document_id: str) -> Response:
        ask = asked(api_id, "collectionType")
        require(ask.actor, ask.type, "delete")
        site.write(prepare.delete, _delete_request(ask, document_id))
        return Response(status=204)

    @bp.delete("/<api_id>", strict_slashes=False)
    def delete_single(api_id: str) -> Response:
        ask = asked(api_id, "singleType")
        require(ask.actor, ask.type, "delete")
        site.write(prepare.delete, _delete_request(ask, None))
        return Response(status=204)

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


def _shown(shown: Shown, status: int = 200) -> Response:
    response = answer(shown.body, status)
    if shown.etag:
        response.headers["ETag"] = shown.etag
    return response


def _query(ask: Reader) -> Query:
    """How the answer to a write shows the document."""
    return ask.query(parameters(request), own_draft=True)


def _write_request(ask: Reader, document_id: str | None) -> WriteRequest:
    """What the request wants written: which version, the data, `If-Match`."""
    params = parameters(request)
    locale = written_locale(params.get("locale"), ask.type, ask.state.settings)
    draft = read_status(params.get("status")) == DRAFT and ask.type.draft_publish
    address = Address(ask.type, document_id, locale, draft)
    data = hash_passwords(ask.state.schema, ask.type, read_data(read_body(request, MAX_BODY)))
    if_match = request.headers.get("If-Match")
    return WriteRequest(address, ask.actor, data, if_match, ask.user_tables())


def _delete_request(ask: Reader, document_id: str | None) -> WriteRequest:
    """The locales of a document that are to be gone; none there is no error (spec.md 4.3.7)."""
    params = parameters(request)
    ask.query({name: value for name, value in params.items() if name not in ("locale", "status")})
    if ask.type.draft_publish and params.get("status") == DRAFT:
        raise ValidationError("A draft can't be deleted alone: without status, both versions are deleted")
    locales = deleted_locales(params.get("locale"), ask.type, ask.state.settings)
    address = Address(ask.type, document_id, locales[0], draft=False)
    if_match = request.headers.get("If-Match")
    return WriteRequest(address, ask.actor, if_match=if_match, locales=locales)


def _written(ask: Reader, query: Query, address: Address, document_id: str, status: int = 200) -> Response:
    """The version that a request has just written, in the state after it.

    Without an entity tag where it is a draft that the actor may not read: that stands for all of its values.
    """
    document = ask.state.snapshot.get(address.type, document_id, address.locale, address.status)
    shown = ask.show(ask.view(query), query, document, parameters(request))
    if address.draft and not may_read_drafts(ask.actor, address.type):
        shown = replace(shown, etag="")
    return _shown(shown, status)
