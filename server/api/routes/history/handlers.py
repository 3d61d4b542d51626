"""Handlers for `/history`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from flask import Response, request

from server.api.request import budget_of, budgeted_json_response, caller_of, parameters, read_body, state_of
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.api.routes.history import uncommitted
from server.api.routes.history.document import READS, version_json
from server.api.routes.history.lists import asks_deleted, commit_json, deleted_json, read_commit_filter
from server.api.routes.write_requests import commit_message, is_dry_run, write_response
from server.documents.document import DRAFT, PUBLISHED
from server.errors import NotFoundError, ValidationError
from server.history.differences import values_of
from server.history.past import PastStates
from server.history.versions import Deleted, Version
from server.history.viewer import Viewer
from server.query.parse import pagination, read_page_parameters
from server.schema.model import Attribute
from server.service.history import CommittedDocument, DocumentHistory, Histories, require_history
from server.service.read import Caller
from server.service.write import Writes
from server.site.site import Site, State
from server.storage.git.log import Commit


def bind(handles: Handlers, site: Site, past: PastStates, writes: Writes) -> None:
    """Register the handlers."""
    histories = Histories(site, past, writes)

    def permitted(*actions: str) -> Caller:
        caller = caller_of(request)
        for action in actions:
            require_history(caller, action)
        return caller

    def history(api_id: str, document_id: str, action: str = "read") -> DocumentHistory:
        return histories.document_history(permitted(), api_id, document_id, parameters(request), action)

    @handles("findHistory")
    def whole() -> Response:
        caller, params = permitted("read"), parameters(request)
        commits = histories.commits(caller, **read_commit_filter(params))

        def rendered(part: Sequence[tuple[Commit, list[CommittedDocument]]]) -> list[Any]:
            hidden = histories.hidden_updates(caller, (commit for commit, _ in part))
            message = partial(histories.visible_message, caller, hidden)
            return [
                commit_json(
                    commit, [d for d in documents if d.path not in hidden.get(commit.id, ())], message
                )
                for commit, documents in part
            ]

        return _page(commits, params, caller.state, rendered)

    @handles("findUncommitted")
    def not_committed() -> Response:
        return uncommitted.list_files(site, past, permitted("read"))

    @handles("diffUncommitted")
    def not_committed_diff() -> Response:
        return uncommitted.diff_file(site, past, permitted("read"))

    @handles("commitFiles")
    def commit() -> Response:
        return uncommitted.commit_listed_files(writes, past, permitted("read", "commit"))

    @handles("findTypeHistory")
    def single(api_id: str) -> Response:
        params = parameters(request)
        return deleted(api_id, params) if asks_deleted(params) else listed(history(api_id, ""))

    def deleted(api_id: str, params: Mapping[str, Any]) -> Response:
        caller = permitted()
        type_, found = histories.deleted_documents(caller, api_id)
        store, viewer = histories.store(caller.state), Viewer(caller.actor, caller.state)

        def rendered(part: Sequence[Deleted]) -> list[Any]:
            commits = (version.commit for _, versions in part for version in versions)
            message = partial(histories.visible_message, caller, histories.hidden_updates(caller, commits))
            viewers = [histories.historical_viewer(versions[0], viewer) for _, versions in part]
            return deleted_json(type_, part, store, viewers, caller.budget, message)

        return _page(found, params, caller.state, rendered)

    @handles("findDocumentHistory")
    def collection(api_id: str, document_id: str) -> Response:
        if document_id in READS and _is_single(api_id):
            return READS[document_id](histories, history(api_id, ""))
        return listed(history(api_id, document_id))

    @handles("findVersions")
    def more(api_id: str, document_id: str, what: str) -> Response:
        one = history(api_id, document_id)
        if what not in READS:
            raise NotFoundError()
        return READS[what](histories, one)

    @handles("restoreSingle")
    def restore_single(api_id: str) -> Response:
        return restore(history(api_id, "", "restore"))

    @handles("restore")
    def restore_one(api_id: str, document_id: str) -> Response:
        return restore(history(api_id, document_id, "restore"))

    def restore(history: DocumentHistory) -> Response:
        histories.require_restore(history)  # The permission is checked before the body is read.
        at, status, fields = _read_restore(read_body(request), history.attributes)
        if_match, message = request.headers.get("If-Match"), commit_message(request)
        result = histories.restore(
            history, at, status, fields, if_match=if_match, dry_run=is_dry_run(), message=message
        )
        return write_response(result)

    def listed(history: DocumentHistory) -> Response:
        locale, status = history.params.get("locale"), history.params.get("status")
        found = [
            version
            for version in history.versions
            if locale in (None, "", "*", version.locale) and status in (None, "", version.status)
        ]
        found = histories.visible_versions(history, found)

        def rendered(part: list[Version]) -> list[Any]:
            viewers = [histories.historical_viewer(version, history.viewer) for version in part]
            values = values_of(history.store, part, history.caller.budget, viewers)
            hidden = histories.hidden_updates(history.caller, (version.commit for version in part))
            message = partial(histories.visible_message, history.caller, hidden)
            return [
                version_json(version, pair, history, viewer, message)
                for version, pair, viewer in zip(part, values, viewers, strict=True)
            ]

        return _page(found, history.params, history.state, rendered)


def _is_single(api_id: str) -> bool:
    type_ = state_of(request).schema.endpoints.get(api_id)
    return type_ is not None and type_.kind == "singleType"


def _page(
    found: Sequence[Any], params: Mapping[str, Any], state: State, rendered: Callable[[Any], list[Any]]
) -> Response:
    page = read_page_parameters(params, state.settings)
    part = found[page.start : page.start + page.limit]
    budget_of(request).spend(len(part) * 20)
    meta = {"pagination": pagination(page, len(found))}
    return budgeted_json_response(request, {"data": rendered(part), "meta": meta}, PRIVATE_REVALIDATE)


def _read_restore(body: Any, attributes: Iterable[Attribute]) -> tuple[str, str, list[str]]:
    names = [attribute.name for attribute in attributes]
    at = body.get("at") if isinstance(body, dict) else None
    if not isinstance(at, str) or not at:
        raise ValidationError(
            'The request body must look like {"at": "2026-11-01", "fields": ["title"]}; "at" can be a '
            "commit, tag, branch or time"
        )
    status = body.get("status", "")
    if status not in ("", PUBLISHED, DRAFT):
        raise ValidationError('"status" must be "draft" or "published"')
    fields = body.get("fields", names)
    if not isinstance(fields, list) or not fields or not all(isinstance(name, str) for name in fields):
        raise ValidationError('"fields" must be a list of attribute names')
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise ValidationError(f'The attribute "{unknown[0][:100]}" does not exist or can\'t be restored')
    return at, status, fields
