"""Handlers for `/problems`, the problems that `bifolio check` finds."""

from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.operations.source import MAX_FIXES
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
from server.api.routes.write_requests import commit_message
from server.errors import ValidationError
from server.query.parse import pagination, read_page_parameters
from server.schema.model import Schema, key_of
from server.service.problems import ProblemFilter, Problems, ProblemViewer, fix_message
from server.service.render import dumps
from server.service.write import Writes
from server.site.check.served import BackgroundChecks, DocumentProblem, ValueChange
from server.site.site import Site

CHECK_TIMEOUT_S = 3.0  # Maximum wait for a check of the site.
_KEYS = ("path", "key", "before", "after")


def bind(handles: Handlers, site: Site, identities: Identities, writes: Writes) -> None:
    """Register the handlers."""
    checks = BackgroundChecks(
        site, lambda: identities.user_index().join(site.state.snapshot, site.state.settings)
    )
    problems = Problems(checks, writes)

    @handles("findProblems")
    def listed() -> Response:
        viewer, params = ProblemViewer.for_caller(caller_of(request), "find"), parameters(request)
        settings, schema = viewer.caller.state.settings, viewer.caller.state.schema
        wanted = ProblemFilter.from_params(params)
        page = read_page_parameters(params, settings)
        told = problems.find(viewer, wanted, CHECK_TIMEOUT_S)
        part = told.matching[page.start : page.start + page.limit]
        errors = sum(one.problem.severity == "error" for one in told.in_scope)
        meta = {
            "checkedAt": told.check.checked_at,
            "current": told.is_current,
            "errors": errors,
            "warnings": len(told.in_scope) - errors,
            "fixable": sum(one.fix is not None for one in told.in_scope),
            "more": told.check.omitted_count,
            "pagination": pagination(page, len(told.matching)),
        }
        data = [problem_json(one, schema) for one in part]
        return budgeted_json_response(request, {"data": data, "meta": meta}, PRIVATE_REVALIDATE)

    @handles("fixProblems")
    def fix() -> Response:
        viewer = ProblemViewer.for_caller(caller_of(request), "fix", "find")
        wanted = _read_fixes(read_body(request))
        done = problems.fix(viewer, wanted, lambda count: commit_message(request, fix_message(count)))
        refused = [{**_fix_json(change), "reason": reason} for change, reason in done.rejected]
        body = dumps({"data": {"fixed": [_fix_json(one) for one in done.applied], "refused": refused}})
        return add_commit_header(answer(body), done.commit)


def problem_json(document_problem: DocumentProblem, schema: Schema) -> dict[str, Any]:
    """Return the JSON for a problem and its document."""
    problem, type_ = document_problem.problem, schema.types.get(document_problem.uid)
    return {
        **problem.as_json(),
        "type": key_of(type_) if type_ else None,
        "documentId": document_problem.document_id or None,
        "locale": document_problem.locale or None,
        "status": document_problem.status or None,
        "title": document_problem.title or None,
        "attribute": ".".join(map(str, problem.at)) or None,
        "change": _fix_json(document_problem.fix) if document_problem.fix else None,
    }


def _fix_json(change: ValueChange) -> dict[str, str | None]:
    return {"path": change.path, "key": change.key, "before": change.before, "after": change.after}


def _read_fixes(body: Any) -> list[ValueChange]:
    given = body["fixes"] if isinstance(body, dict) and body.keys() == {"fixes"} else None
    if not isinstance(given, list) or not given:
        raise ValidationError(
            'The request body must look like {"fixes": [{"path": …, "key": …, "before": …, "after": …}]}'
        )
    if len(given) > MAX_FIXES:
        raise ValidationError(f"At most {MAX_FIXES:,} fixes can be sent in one request")
    return [_read_fix(one, i) for i, one in enumerate(given)]


def _read_fix(data: Any, i: int) -> ValueChange:
    texts: dict[str, Any] = {name: data.get(name) for name in _KEYS} if isinstance(data, dict) else {}
    missing = [n for n in _KEYS if not isinstance(texts.get(n), str) and not _is_null(data, n)]
    if missing:
        raise ValidationError(
            f'fixes.{i} must contain "path", "key", "before" and "after", as returned by GET /problems'
        )
    return ValueChange(texts["path"], texts["key"], texts["before"], texts["after"])


def _is_null(fix: Any, name: str) -> bool:
    """Return whether `name` is "before" or "after" and is null in `fix`.

    If `before` is missing, it counts as null. If `after` is missing, it does not.
    """
    if not isinstance(fix, dict) or fix.get(name) is not None:
        return False
    return name == "before" or (name == "after" and name in fix)
