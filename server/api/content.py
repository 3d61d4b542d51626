"""The content API: collections, documents and single types (spec.md 4.1 to 4.3)."""

from collections.abc import Callable
from dataclasses import dataclass

from flask import Blueprint, Request, Response, request

from server.ask import read_locale, read_query, read_status, written_locale
from server.context import Identities, answer, is_v4, json_body, parameters
from server.documents import DRAFT, PUBLISHED, Document
from server.errors import MethodNotAllowedError, NotFoundError
from server.etags import require_match, tag_of
from server.find import find, find_one, find_single
from server.index import View
from server.permissions import Actor, narrow, require, subject_of
from server.query import Query
from server.render import render_list, render_one
from server.schema import Type
from server.site import Site, State
from server.validate import Change, Validator, read_data
from server.versions import Versions
from server.write import Place, Writer


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request: the state that it begins with, its type, its actor."""

    state: State
    type: Type
    actor: Actor

    def query(self, incoming: Request, *, many: bool = False, own_draft: bool = False) -> Query:
        """The request's query, narrowed to what its actor may see."""
        state = self.state
        query = read_query(state.schema, state.settings, self.type, parameters(incoming), many=many)
        return narrow(query, self.actor, state.schema, own_draft=own_draft)

    def view(self, query: Query, state: State | None = None) -> View:
        """A snapshot as the query sees it."""
        state = state or self.state
        return View(state.snapshot, state.settings, query.drafts)

    def place(self, incoming: Request, document_id: str | None) -> Place:
        """The version that a write is about."""
        params = parameters(incoming)
        locale = written_locale(params.get("locale"), self.type, self.state.settings)
        draft = read_status(params.get("status")) == DRAFT and self.type.draft_publish
        return Place(self.type, document_id, locale, draft)


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The routes of `/api/:pluralApiId`, `/api/:pluralApiId/:documentId` and `/api/:singularApiId`."""
    bp = Blueprint("content", __name__, url_prefix="/api")

    def asked(api_id: str, kind: str = "") -> _Asked:
        state = site.state
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None or (kind and type_.kind != kind):
            raise NotFoundError() if request.method in ("GET", "HEAD") else MethodNotAllowedError()
        return _Asked(state, type_, identities.actor(request, state.settings))

    @bp.get("/<api_id>", strict_slashes=False)
    def find_many(api_id: str) -> Response:
        ask = asked(api_id)
        require(ask.actor, ask.type, "find")
        if ask.type.kind == "singleType":
            return _single(ask)
        query = ask.query(request, many=True)
        found = find(ask.view(query), query)
        return answer(render_list(ask.view(query), found, query, v4=is_v4(request)))

    @bp.get("/<api_id>/<document_id>", strict_slashes=False)
    def find_document(api_id: str, document_id: str) -> Response:
        ask = asked(api_id, "collectionType")
        require(ask.actor, ask.type, "findOne")
        query = ask.query(request)
        found = find_one(ask.view(query), query, document_id)
        if found is None:
            raise NotFoundError()
        return _shown(ask, query, found)

    @bp.post("/<api_id>", strict_slashes=False)
    def create(api_id: str) -> Response:
        ask = asked(api_id, "collectionType")
        require(ask.actor, ask.type, "create")
        query, place = ask.query(request, own_draft=True), ask.place(request, None)
        act = _changing(ask, place, lambda writer, change: writer.create(place, change))
        return _written(ask, query, place, *site.write(act), status=201)

    @bp.put("/<api_id>/<document_id>", strict_slashes=False)
    def update(api_id: str, document_id: str) -> Response:
        ask = asked(api_id, "collectionType")
        require(ask.actor, ask.type, "update")
        query, place = ask.query(request, own_draft=True), ask.place(request, document_id)
        act = _changing(ask, place, lambda writer, change: writer.update(place, change))
        return _written(ask, query, place, *site.write(act))

    @bp.put("/<api_id>", strict_slashes=False)
    def update_single(api_id: str) -> Response:
        ask = asked(api_id, "singleType")
        require(ask.actor, ask.type, "update")
        query, place = ask.query(request, own_draft=True), ask.place(request, None)
        act = _changing(ask, place, lambda writer, change: writer.put_single(place, change))
        return _written(ask, query, place, *site.write(act))

    @bp.delete("/<api_id>/<document_id>", strict_slashes=False)
    def delete(api_id: str, document_id: str) -> Response:
        ask = asked(api_id, "collectionType")
        return _delete(site, ask, document_id)

    @bp.delete("/<api_id>", strict_slashes=False)
    def delete_single(api_id: str) -> Response:
        ask = asked(api_id, "singleType")
        return _delete(site, ask, None)

    @bp.route("/<path:rest>", methods=["GET", "POST", "PUT", "DELETE", "PATCH"])
    def nothing_else(rest: str) -> Response:
        raise NotFoundError() if request.method in ("GET", "HEAD") else MethodNotAllowedError()

    return bp


def _shown(ask: _Asked, query: Query, document: Document, state: State | None = None) -> Response:
    """The answer that shows one document, with its entity tag."""
    body = render_one(ask.view(query, state), document, query, v4=is_v4(request))
    shown = answer(body)
    shown.headers["ETag"] = tag_of(document, body)
    return shown


def _single(ask: _Asked) -> Response:
    query = ask.query(request)
    found = find_single(ask.view(query), query)
    if found is None:
        raise NotFoundError()
    return _shown(ask, query, found)


def _changing(
    ask: _Asked, place: Place, act: Callable[[Writer, Change], str]
) -> Callable[[State, Versions], str]:
    """What `site.write` calls under its lock: validate against the state there is then, and act."""
    data, wanted = read_data(json_body(request)), request.headers.get("If-Match")

    def may_find(uid: str) -> bool:
        return ask.actor.may(subject_of(uid), "find")

    def prepare(state: State, versions: Versions) -> str:
        require_match(wanted, _current(state, place))
        validator = Validator(state.schema, state.snapshot, state.settings.locales, may_find)
        return act(Writer(versions), validator.change(place.type, data))

    return prepare


def _written(
    ask: _Asked, query: Query, place: Place, state: State, document_id: str, status: int = 200
) -> Response:
    """The version that a request has just written, in the state after it."""
    wanted = DRAFT if place.draft else PUBLISHED
    found: Document | None = state.snapshot.get(place.type, document_id, place.locale, wanted)
    if found is None:
        raise NotFoundError()
    shown = _shown(ask, query, found, state)
    shown.status_code = status
    return shown


def _current(state: State, place: Place) -> Document | None:
    """The version that a write with `If-Match` is about: what a GET of the same place shows."""
    status = DRAFT if place.draft else PUBLISHED
    if place.document_id is not None:
        return state.snapshot.get(place.type, place.document_id, place.locale, status)
    return next(iter(state.snapshot.list(place.type, place.locale, status)), None)


def _delete(site: Site, ask: _Asked, document_id: str | None) -> Response:
    """Delete a document, or one locale of it; 204 also where there is none (spec.md 4.3.7)."""
    require(ask.actor, ask.type, "delete")
    locale = read_locale(parameters(request).get("locale"), ask.state.settings, many=True)
    if not ask.type.localized:
        locale = ask.state.settings.default_locale
    place = Place(ask.type, document_id, locale, draft=False)
    wanted = request.headers.get("If-Match")

    def prepare(state: State, versions: Versions) -> None:
        require_match(wanted, _current(state, place))
        Writer(versions).delete(place)

    site.write(prepare)
    return Response(status=204)
