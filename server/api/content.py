"""GET of collections, documents and single types (spec.md 4.1 and 4.2)."""

from dataclasses import dataclass

from flask import Blueprint, Request, Response, request

from server.accounts import Accounts
from server.ask import read_query
from server.context import actor_of, answer, is_v4, parameters
from server.errors import MethodNotAllowedError, NotFoundError
from server.find import find, find_one, find_single
from server.index import View
from server.permissions import Actor, narrow, require
from server.query import Query
from server.render import render_list, render_one
from server.schema import Type
from server.site import Site, State

_OTHERS = ["POST", "PUT", "DELETE", "PATCH"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One read request: the state that it keeps, its type, its actor."""

    state: State
    type: Type
    actor: Actor

    def query(self, incoming: Request, *, many: bool) -> Query:
        """The request's query, narrowed to what its actor may see."""
        state = self.state
        query = read_query(state.schema, state.settings, self.type, parameters(incoming), many=many)
        return narrow(query, self.actor, state.schema)

    def view(self, query: Query) -> View:
        """The snapshot as the query sees it."""
        return View(self.state.snapshot, self.state.settings, query.drafts)


def blueprint(site: Site, accounts: Accounts) -> Blueprint:
    """The routes of `/api/:pluralApiId`, `/api/:pluralApiId/:documentId` and `/api/:singularApiId`."""
    bp = Blueprint("content", __name__, url_prefix="/api")

    def asked(api_id: str) -> _Asked:
        state = site.state
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None:
            raise NotFoundError()
        return _Asked(state, type_, actor_of(request, state.settings, accounts))

    @bp.get("/<api_id>", strict_slashes=False)
    def collection_or_single(api_id: str) -> Response:
        ask = asked(api_id)
        require(ask.actor, ask.type, "find")
        if ask.type.kind == "singleType":
            return _single(ask)
        query = ask.query(request, many=True)
        found = find(ask.view(query), query)
        return answer(render_list(ask.view(query), found, query, v4=is_v4(request)))

    @bp.get("/<api_id>/<document_id>", strict_slashes=False)
    def document(api_id: str, document_id: str) -> Response:
        ask = asked(api_id)
        if ask.type.kind == "singleType":
            raise NotFoundError()
        require(ask.actor, ask.type, "findOne")
        query = ask.query(request, many=False)
        found = find_one(ask.view(query), query, document_id)
        if found is None:
            raise NotFoundError()
        return answer(render_one(ask.view(query), found, query, v4=is_v4(request)))

    @bp.route("/<path:rest>", methods=_OTHERS)
    def no_such_method(rest: str) -> Response:
        raise MethodNotAllowedError()

    return bp


def _single(ask: _Asked) -> Response:
    query = ask.query(request, many=False)
    found = find_single(ask.view(query), query)
    if found is None:
        raise NotFoundError()
    return answer(render_one(ask.view(query), found, query, v4=is_v4(request)))
