"""Responses about uncommitted changes."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from flask import Response, request

from server.api.request import add_commit_header, answer, budgeted_json_response, parameters, read_body
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.history.document import differences_json
from server.api.routes.write_requests import MAX_MESSAGE_CHARS, commit_message
from server.errors import ValidationError
from server.history.past import PastStates
from server.history.uncommitted import MAX_FILES, ChangedFile
from server.history.versions import date_of
from server.query.parse import pagination, read_page_parameters
from server.schema.model import key_of, title_of
from server.service.read import Caller
from server.service.render import dumps
from server.service.uncommitted import commit_files, find_uncommitted, list_uncommitted
from server.service.write import Writes
from server.site.site import Site, State
from server.storage.git.refs import checked_out_branch
from server.storage.git.repository import operation_in_progress


def list_files(site: Site, past: PastStates, caller: Caller) -> Response:
    """Return a response that lists the uncommitted files and their changed attributes."""
    state, params = caller.state, parameters(request)
    page = read_page_parameters(params, state.settings)
    found = list_uncommitted(site, past, caller, page)
    meta = {
        "head": found.head,
        "branch": checked_out_branch(site.root) or None,
        "commit": _commit_timing(state.settings.git.commit),
        "underWay": operation_in_progress(site.git.folder) or None if site.git.folder else None,
        "pending": len(site.committer.queue.pending()),
        "pagination": pagination(page, found.total),
    }
    data = [{**_shown(one, state, site.root), "attributes": names} for one, names in found.files]
    return budgeted_json_response(request, {"data": data, "meta": meta}, PRIVATE_REVALIDATE)


def diff_file(site: Site, past: PastStates, caller: Caller) -> Response:
    """Return a response that contains the uncommitted changes to a file.

    Only callers with all permissions get the changed lines.
    """
    path = parameters(request).get("path")
    found = find_uncommitted(site, past, caller, path)
    attributes = None if found.attributes is None else differences_json(found.attributes)
    shown = _shown(found.file, caller.state, site.root)
    data = {**shown, "attributes": attributes, "lines": found.lines}
    return budgeted_json_response(request, {"data": data, "meta": {"head": found.head}}, PRIVATE_REVALIDATE)


def commit_listed_files(writes: Writes, past: PastStates, caller: Caller) -> Response:
    past.require_commits()
    message, files = _read_commit_request(read_body(request))
    # The message comes from the body. This call only validates the header.
    commit_message(request)
    made = commit_files(writes, caller, files, message)
    return add_commit_header(answer(dumps({"data": {"commit": made, "files": files}}), 201), made)


def _read_commit_request(body: Any) -> tuple[str, list[str]]:
    message, files = (body.get(name) if isinstance(body, dict) else None for name in ("message", "files"))
    named = isinstance(files, list) and files and all(isinstance(path, str) for path in files)
    if not isinstance(message, str) or not isinstance(files, list) or not named:
        raise ValidationError(
            'The request body must look like {"message": "Fix typos", "files": ["content/pages/about.md"]}'
        )
    if len(message) > MAX_MESSAGE_CHARS:
        raise ValidationError(f'"message" must have at most {MAX_MESSAGE_CHARS:,} characters')
    if len(files) > MAX_FILES:
        raise ValidationError(f"At most {MAX_FILES:,} files can be committed in one request")
    return message, files


def _commit_timing(after: timedelta | None) -> str:
    if after is None:
        return "off"
    return f"{after.total_seconds():g}s" if after else "each"


def _shown(changed_file: ChangedFile, state: State, root: Path) -> Mapping[str, Any]:
    version = changed_file.version("")
    document = None
    if changed_file.type and changed_file.document_id:
        document = state.snapshot.get(
            changed_file.type, changed_file.document_id, changed_file.locale, changed_file.status
        )
    name = title_of(document.type) if document else None
    return {
        "path": changed_file.change.path,
        "before": changed_file.change.before or None,
        "action": changed_file.action,
        "type": key_of(changed_file.type) if changed_file.type else None,
        "documentId": changed_file.document_id or None,
        "locale": changed_file.locale or None,
        "status": changed_file.status or None,
        "title": str(document.get(name) or "") or None if document and name else None,
        "date": date_of(version, root),
    }
