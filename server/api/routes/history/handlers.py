"""The routes of `/history`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.request import answer_within, budget_of, caller_of, parameters, read_body, state_of
from server.api.response import CALLER
from server.api.routes.handlers import Handlers
from server.api.routes.history import uncommitted
from server.api.routes.history.document import READS, Asked, entry
from server.api.routes.history.lists import asks_deleted, documents_of, of_site, shown_deleted, wanted_by
from server.api.routes.write_requests import answer_write, is_dry_run, message_of
from server.auth.permissions import may_read_drafts, require
from server.documents.document import DRAFT, PUBLISHED
from server.errors import ForbiddenError, NotFoundError, ValidationError
from server.history.deleted import deleted_documents
from server.history.differences import values_of
from server.history.past import PastStates
from server.history.restore import restored
from server.history.versions import Version, Versions
from server.history.viewer import Viewer
from server.query.pagination import pagination, read_page
from server.schema.model import Attribute
from server.service.document_write import Operation, Verb, permit
from server.service.write import Command, Writes
from server.site.site import Site, State
from server.storage.git.times import CommitTimes
from server.storage.store import Store


def bind(handles: Handlers, site: Site, identities: Identities, past: PastStates, writes: Writes) -> None:
    """Bind the operations of `/history`."""
    known = Versions(site, past.log)

    def asked(api_id: str, document_id: str, action: str = "read") -> Asked:
        actor = identities.permit(request, "history", action)
        state = state_of(request)
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None or (type_.kind == "singleType") != (document_id == ""):
            raise NotFoundError()
        require(actor, type_, "find")
        past.require_commits()
        head = writes.head(caller_of(request, identities))
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

    @handles("findHistory")
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

    @handles("findUncommitted")
    def not_committed() -> Response:
        return uncommitted.listed(site, past, identities.permit(request, "history", "read"))

    @handles("diffUncommitted")
    def not_committed_diff() -> Response:
        return uncommitted.diff(site, past, identities.permit(request, "history", "read"))

    @handles("commitFiles")
    def commit() -> Response:
        identities.permit(request, "history", "read")
        identities.permit(request, "history", "commit")
        return uncommitted.commit(site, writes, past, caller_of(request, identities))

    @handles("findTypeHistory")
    def single(api_id: str) -> Response:
        params = parameters(request)
        return deleted(api_id, params) if asks_deleted(params) else listed(asked(api_id, ""))

    def deleted(api_id: str, params: Mapping[str, Any]) -> Response:
        actor, state = identities.permit(request, "history", "read"), state_of(request)
        type_ = state.schema.endpoints.get(api_id)
        if type_ is None:
            raise NotFoundError()
        require(actor, type_, "find")
        past.require_commits()
        drafts = may_read_drafts(actor, type_)
        if type_.draft_key and not drafts:  # Only what a file says tells whether that version was a draft.
            raise ForbiddenError()
        found = deleted_documents(state, type_, known.timeline(state), site.root, drafts=drafts)
        store = Store(site.root, state.schema, state.settings, CommitTimes().timestamps)
        viewer, budget = Viewer(actor, state), budget_of(request)
        return _page(found, params, state, lambda part: shown_deleted(type_, part, store, viewer, budget))

    @handles("findDocumentHistory")
    def collection(api_id: str, document_id: str) -> Response:
        if document_id in READS and _is_single(api_id):
            return READS[document_id](asked(api_id, ""), past)
        return listed(asked(api_id, document_id))

    @handles("findVersions")
    def more(api_id: str, document_id: str, what: str) -> Response:
        one = asked(api_id, document_id)
        if what not in READS:
            raise NotFoundError()
        return READS[what](one, past)

    @handles("restoreSingle")
    def restore_single(api_id: str) -> Response:
        return restore(asked(api_id, "", "restore"))

    @handles("restore")
    def restore_one(api_id: str, document_id: str) -> Response:
        return restore(asked(api_id, document_id, "restore"))

    def restore(one: Asked) -> Response:
        """Write the values that a document had at a commit, as a PUT of them would."""
        identities.permit(request, "history", "read")
        exists = one.type.kind == "singleType" or known.is_there(one.state, one.type, one.document_id)
        caller, verb = caller_of(request, identities), Verb.UPDATE if exists else Verb.CREATE
        permit(caller.reader(one.type), verb, one.params)
        body = read_body(request)
        at, status, fields = _restoring(body, one.attributes)
        content = one.content_at(past.resolve(at), status)
        if content is None:
            raise NotFoundError(f'There is no such version at "{at}"')
        data = restored(one.attributes, content.values, fields, one.viewer)
        document_id = one.document_id if one.type.kind != "singleType" else None
        if_match = request.headers.get("If-Match") if exists else None
        operation = Operation(one.type, verb, document_id, one.params, data, if_match)
        message = message_of(request)
        return answer_write(writes.write(Command(caller, [operation], dry_run=is_dry_run(), message=message)))

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


def _restoring(body: Any, attributes: Iterable[Attribute]) -> tuple[str, str, list[str]]:
    """The commit that a body names, the status there, if it says one, and the attributes to restore.

    Raises ValidationError.
    """
    names = [attribute.name for attribute in attributes]
    at = body.get("at") if isinstance(body, dict) else None
    if not isinstance(at, str) or not at:
        raise ValidationError('The body must be {"at": "a commit, tag, branch or time", "fields": ["title"]}')
    status = body.get("status", "")
    if status not in ("", PUBLISHED, DRAFT):
        raise ValidationError('status must be "draft" or "published"')
    fields = body.get("fields", names)
    if not isinstance(fields, list) or not fields or not all(isinstance(name, str) for name in fields):
        raise ValidationError("fields must be a list of attributes")
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise ValidationError(f'There is no attribute "{unknown[0][:100]}" that could be restored')
    return at, status, fields
