"""The routes of `/history`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flask import Blueprint, Response, request

from server.api.environ import is_v4
from server.api.identities import Identities
from server.api.reading import Reader
from server.api.request import answer, answer_within, budget_of, parameters, read_body, state_of
from server.api.response import CALLER
from server.api.routes.branches.writing import BranchRequests
from server.api.routes.history.document import READS, Asked, entry
from server.api.routes.history.whole_site import documents_of, of_site, wanted_by
from server.api.routes.operation import Sent, hashed, permit, read_operation
from server.auth.permissions import may_read_drafts, require
from server.documents.document import DRAFT
from server.errors import ForbiddenError, NotFoundError, ValidationError
from server.history.differences import values_of
from server.history.past import PastStates
from server.history.restore import restored
from server.history.versions import Version, Versions
from server.query.pagination import pagination, read_page
from server.schema.model import Attribute
from server.site.site import Site, State
from server.storage.git.times import CommitTimes
from server.storage.store import Store


def blueprint(site: Site, identities: Identities, past: PastStates, branches: BranchRequests) -> Blueprint:
    """The routes of `/history`."""
    bp = Blueprint("history", __name__, url_prefix="/history")
    known = Versions(site, past.log)

    def asked(api_id: str, document_id: str, action: str = "read") -> Asked:
        actor = identities.permit(request, "history", action)
        state = state_of(request)
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None or (type_.kind == "singleType") != (document_id == ""):
            raise NotFoundError()
        require(actor, type_, "find")
        past.require_commits()
        head = branches.commit
        document_id = document_id or known.single_id(state, type_, head)
        versions = known.of(state, type_, document_id, head)
        drafts = may_read_drafts(actor, type_)
        if type_.draft_key and not drafts:  # Only what a file says tells whether that version was a draft.
            raise ForbiddenError()
        if not drafts:
            versions = [version for version in versions if version.status != DRAFT]
        if not versions and not known.is_there(state, type_, document_id, drafts=drafts):
            raise NotFoundError()
        store = Store(site.root, state.schema, state.settings, CommitTimes().timestamps)
        return Asked(state, actor, type_, document_id, versions, store, parameters(request))

    @bp.get("", strict_slashes=False)
    def whole() -> Response:
        actor = identities.permit(request, "history", "read")
        past.require_commits()
        state, params = state_of(request), parameters(request)
        wanted = wanted_by(params, past)
        timeline = known.timeline(state)
        commits = (
            (commit, documents)
            for commit in timeline.commits
            if wanted(commit) and (documents := list(documents_of(commit, timeline, actor, params)))
        )
        return _page(list(commits), params, state, lambda part: [of_site(*each) for each in part])

    @bp.get("/<api_id>", strict_slashes=False)
    def single(api_id: str) -> Response:
        return listed(asked(api_id, ""))

    @bp.get("/<api_id>/<document_id>", strict_slashes=False)
    def collection(api_id: str, document_id: str) -> Response:
        if document_id in READS and _is_single(api_id):
            return READS[document_id](asked(api_id, ""), past)
        return listed(asked(api_id, document_id))

    @bp.get("/<api_id>/<document_id>/<what>", strict_slashes=False)
    def more(api_id: str, document_id: str, what: str) -> Response:
        one = asked(api_id, document_id)
        if what not in READS:
            raise NotFoundError()
        return READS[what](one, past)

    @bp.post("/<api_id>/restore", strict_slashes=False)
    def restore_single(api_id: str) -> Response:
        return restore(asked(api_id, "", "restore"))

    @bp.post("/<api_id>/<document_id>/restore", strict_slashes=False)
    def restore_one(api_id: str, document_id: str) -> Response:
        return restore(asked(api_id, document_id, "restore"))

    def restore(one: Asked) -> Response:
        """Write the values that a document had at a commit, as a PUT of them would."""
        identities.permit(request, "history", "read")
        exists = one.type.kind == "singleType" or known.is_there(one.state, one.type, one.document_id)
        v4, budget = is_v4(request.environ, one.state.settings), budget_of(request)
        reader = Reader(one.state, one.type, one.actor, v4, identities.user_index, budget)
        method = "PUT" if exists else "POST"
        permit(reader, method, one.params)
        body = read_body(request)
        at, fields = _restoring(body, one.attributes)
        values = one.values_at(past.resolve(at))
        if values is None:
            raise NotFoundError(f'There is no such version at "{at}"')
        data = restored(one.attributes, values, fields, one.viewer)
        document_id = one.document_id if one.type.kind != "singleType" else None
        [operation] = hashed([read_operation(reader, Sent(method, document_id, one.params, {"data": data}))])
        state, written = branches.write(operation.prepare, operation.request, operation.addressed)
        shown = operation.shown(state, written)
        response = answer(shown.body, operation.status)
        if shown.etag:
            response.headers["ETag"] = shown.etag
        return response

    def listed(one: Asked) -> Response:
        locale, status = one.params.get("locale"), one.params.get("status")
        found = [
            version
            for version in one.versions
            if locale in (None, "", "*", version.locale) and status in (None, "", version.status)
        ]

        def rendered(part: list[Version]) -> list[Any]:
            values = values_of(one.store, part, budget_of(request))
            return [entry(v, pair, one, site) for v, pair in zip(part, values, strict=True)]

        return _page(found, one.params, one.state, rendered)

    return bp


def _is_single(api_id: str) -> bool:
    type_ = state_of(request).schema.endpoints.get(api_id)
    return type_ is not None and type_.kind == "singleType"


def _page(
    found: list[Any], params: Mapping[str, Any], state: State, rendered: Callable[[list[Any]], list[Any]]
) -> Response:
    page = read_page({name: params[name] for name in ("page", "pageSize") if name in params}, state.settings)
    part = found[page.start : page.start + page.limit]
    budget_of(request).spend(len(part) * 20)
    meta = {"pagination": pagination(page, len(found))}
    return answer_within(request, {"data": rendered(part), "meta": meta}, CALLER)


def _restoring(body: Any, attributes: Iterable[Attribute]) -> tuple[str, list[str]]:
    """The commit that a body names, and the attributes to restore. Raises ValidationError."""
    names = [attribute.name for attribute in attributes]
    at = body.get("at") if isinstance(body, dict) else None
    if not isinstance(at, str) or not at:
        raise ValidationError('The body must be {"at": "a commit, tag, branch or time", "fields": ["title"]}')
    fields = body.get("fields", names)
    if not isinstance(fields, list) or not fields or not all(isinstance(name, str) for name in fields):
        raise ValidationError("fields must be a list of attributes")
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise ValidationError(f'There is no attribute "{unknown[0][:100]}" that could be restored')
    return at, fields
