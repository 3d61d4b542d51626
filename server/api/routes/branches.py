"""Handlers for `/branches`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flask import Response, request
from orjson import Fragment

from server.api.operations.branches import MAX_LISTED_MEDIA
from server.api.request import (
    add_commit_header,
    answer,
    budgeted_json_response,
    caller_of,
    parameters,
    read_body,
)
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.api.routes.history.document import differences_json
from server.api.routes.problems import problem_json
from server.api.routes.write_requests import MAX_MESSAGE_CHARS, commit_message
from server.documents.timestamps import from_seconds
from server.errors import BusyError, LimitError, ValidationError
from server.history.branching import DocumentChange, MediaChange
from server.history.merging.conflicts import Resolution, read_resolution
from server.index.budget import Budget
from server.query.parse import pagination, read_page_parameters
from server.schema.spelling import suggestion
from server.service.branches import HEAD, SiteBranches
from server.service.problems import parse_paths
from server.service.read import Caller
from server.service.render import dumps
from server.storage.git.branches import Branch

_KEYS = ("name", "from")
_MERGE_KEYS = ("into", "message", "resolve")


def bind(handles: Handlers, branches: SiteBranches) -> None:
    """Register the handlers."""

    def permitted(action: str) -> Caller:
        caller = caller_of(request)
        branches.permit(caller, action)
        return caller

    def counted(caller: Caller, found: Sequence[Branch], *, made: bool) -> list[int | None]:
        try:
            return branches.count_documents(caller, found)
        except (BusyError, LimitError):
            if not made:
                raise
            return [None] * len(found)  # The branches exist, so the response must be a success.

    def shown(caller: Caller, found: Sequence[Branch], *, made: bool = False) -> list[dict[str, Any]]:
        counts, served = counted(caller, found, made=made), branches.served
        merged = branches.merged_names()
        return [
            {**_branch_json(branch, served, count), "merged": branch.name in merged}
            for branch, count in zip(found, counts, strict=True)
        ]

    @handles("findBranches")
    def listed() -> Response:
        caller = permitted("find")
        return answer(dumps({"data": shown(caller, branches.all(caller))}), cache_control=PRIVATE_REVALIDATE)

    @handles("createBranch")
    def create() -> Response:
        caller = permitted("create")
        name, origin = _read_new_branch(read_body(request))
        branch = branches.create(caller, name, origin)
        return answer(dumps({"data": shown(caller, [branch], made=True)[0]}), 201)

    @handles("deleteBranch")
    def delete(name: str) -> Response:
        branches.delete(permitted("delete"), name, request.headers.get("If-Match"))
        return Response(status=204)

    @handles("findBranchChanges")
    def changes(name: str) -> Response:
        caller, params = permitted("find"), parameters(request)
        page = read_page_parameters(params, caller.state.settings)
        found = branches.changes(caller, name)
        part = found.documents[page.start : page.start + page.limit]
        caller.budget.spend(len(part) * 20)
        meta = {
            "from": found.fork,
            "to": found.head,
            "pagination": pagination(page, len(found.documents)),
            "media": [_media_change(each) for each in found.media[:MAX_LISTED_MEDIA]],
            "mediaTotal": len(found.media),
            "files": [asdict(change) for change in found.files],
            "filesTotal": found.total_files,
        }
        data = [_change(each, caller.budget) for each in part]
        return answer(dumps({"data": data, "meta": meta}), cache_control=PRIVATE_REVALIDATE)

    @handles("findBranchProblems")
    def problems(name: str) -> Response:
        caller, params = permitted("find"), parameters(request)
        page = read_page_parameters(params, caller.state.settings)
        since = params.get("since", "")
        if not isinstance(since, str):
            raise ValidationError('"since" must be a single commit id')
        found = branches.problems(caller, name, since, parse_paths(params.get("path")))
        part = found.problems[page.start : page.start + page.limit]
        errors = sum(one.problem.severity == "error" for one, _ in found.problems)
        meta = {
            "from": found.since,
            "to": found.head,
            "errors": errors,
            "warnings": len(found.problems) - errors,
            "pagination": pagination(page, len(found.problems)),
        }
        data = [{**problem_json(one, caller.state.schema), "new": is_new} for one, is_new in part]
        return budgeted_json_response(request, {"data": data, "meta": meta}, PRIVATE_REVALIDATE)

    @handles("mergeBranch")
    def merge(name: str) -> Response:
        caller = permitted("merge")
        into, message, resolution = _read_merge(read_body(request))
        if_match = request.headers.get("If-Match")
        made = branches.merge(caller, name, resolution, into, commit_message(request, message), if_match)
        shown = {"branch": name, "into": made.target_branch, "result": made.result, "commit": made.commit}
        counted: dict[str, Any] = {"documents": made.document_count, "files": made.file_count}
        if made.migrations:
            counted["migrations"] = [asdict(migration) for migration in made.migrations]
        return add_commit_header(answer(dumps({"data": {**shown, **counted}})), made.commit)


def _read_new_branch(body: Any) -> tuple[str, str]:
    name = body.get("name") if isinstance(body, dict) else None
    origin = body.get("from", HEAD) if isinstance(body, dict) else None
    if not isinstance(name, str) or not name or not isinstance(origin, str) or not origin:
        raise ValidationError(
            'The request body must look like {"name": "spring", "from": "main"}; "from" can be a commit, '
            "tag, branch or time"
        )
    _refuse_other_keys(body, _KEYS)
    return name, origin


def _read_merge(body: Any) -> tuple[str, str, Resolution]:
    """Return the target branch, commit message and conflict resolution from a request body.

    The target branch is "" for the served branch.
    """
    body = {} if body is None else body
    into, message = (body.get(key, "") if isinstance(body, dict) else None for key in ("into", "message"))
    if not isinstance(into, str) or not isinstance(message, str):
        raise ValidationError(
            'The request body must look like {"into": "main", "message": "Publish", "resolve": {}}'
        )
    _refuse_other_keys(body, _MERGE_KEYS)
    if len(message) > MAX_MESSAGE_CHARS:
        raise ValidationError(f'"message" must have at most {MAX_MESSAGE_CHARS:,} characters')
    return into, message, read_resolution(body.get("resolve"))


def _refuse_other_keys(body: Mapping[str, Any], known: Collection[str]) -> None:
    for key in body.keys() - set(known):
        hint = suggestion(str(key)[:100], known) or f"use {', '.join(known)}"
        raise ValidationError(f'Unknown key "{str(key)[:100]}" in the request body; {hint}')


def _change(change: DocumentChange, budget: Budget) -> Fragment:
    shown = {
        "type": change.type.singular,
        "documentId": change.document_id,
        "title": change.title,
        "locale": change.locale,
        "status": change.status,
        "action": change.action,
        "attributes": differences_json(change.attributes),
    }
    body = dumps(shown)
    budget.write(len(body))
    return Fragment(body)


def _media_change(change: MediaChange) -> dict[str, Any]:
    return {
        "path": change.path,
        "action": change.action,
        "attributes": differences_json(change.attributes),
    }


def _branch_json(branch: Branch, served: str, documents: int | None) -> dict[str, Any]:
    return {
        "name": branch.name,
        "commit": branch.commit,
        "author": {"name": branch.author, "email": branch.email},
        "date": None if branch.problem else from_seconds(branch.authored),
        "served": branch.name == served,
        "checkedOut": branch.worktree != "",
        "documents": documents,
        **({"problem": branch.problem} if branch.problem else {}),
    }
