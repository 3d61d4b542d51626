"""Handlers for /api/content-type-builder and /api/i18n."""

from dataclasses import replace
from typing import Any

from flask import Response, request

from server.api.request import (
    add_commit_header,
    answer,
    budgeted_json_response,
    caller_of,
    parameters,
    prefers,
    read_body,
    require_permission,
    state_of,
)
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import (
    UNDO,
    add_undo_header,
    commit_message,
    data_of,
    files_json,
    is_dry_run,
    required_if_match,
    undo_json,
)
from server.auth.permissions import require_schema_write
from server.documents.locale_names import describe
from server.errors import NotFoundError, ValidationError
from server.schema.describe import describe_component, describe_types, describe_visible_type
from server.schema.model import Schema
from server.service.cache_tags import tag_of
from server.service.render import dumps
from server.service.schema_changes import (
    change_request,
    make_change,
    plan_change,
    schema_change_message,
)
from server.service.write import Writes
from server.site.migrations.plan import Plan


def bind(handles: Handlers, writes: Writes) -> None:
    """Register the handlers."""

    @handles("changeContentTypes")
    def change_content_types() -> Response:
        caller = caller_of(request)
        require_schema_write(caller.actor, caller.state.schema)
        wanted = change_request(caller, data_of(read_body(request)))
        if is_dry_run():
            plan = plan_change(writes, caller, wanted)
            files = {"files": files_json(plan.files), "total": plan.total_files}
            response = budgeted_json_response(request, {"data": {"changes": _steps_json(plan.plan), **files}})
            # The version depends on parts of files that are not shown, such as passwords.
            response.headers["ETag"] = tag_of(plan.version, response.get_data())
            return response
        wanted = replace(wanted, if_match=required_if_match())
        message = commit_message(request, schema_change_message(wanted.changes))
        outcome = make_change(writes, caller, wanted, message, undo=prefers(request, UNDO))
        # This is not counted against `api.limits`, because the write is not undone if it fails here.
        body = dumps({"data": {"changes": _steps_json(outcome.result)}, **undo_json(outcome.undo)})
        return add_commit_header(add_undo_header(answer(body), outcome.undo), outcome.commit)

    def allowed(action: str) -> Schema:
        require_permission(request, "content-type", action)
        return state_of(request).schema

    @handles("findContentTypes")
    def content_types() -> Response:
        described = describe_types(allowed("find"))
        kind = _kind(parameters(request).get("kind"))
        return answer(dumps({"data": [d for d in described if kind in ("", d["schema"]["kind"])]}))

    @handles("findOneContentType")
    def content_type(uid: str) -> Response:
        described = describe_visible_type(allowed("findOne"), uid)
        if described is None:
            raise NotFoundError("contentType.notFound")
        return answer(dumps({"data": described}))

    @handles("findComponents")
    def components() -> Response:
        schema = allowed("find")
        found = sorted((t for t in schema.types.values() if t.kind == "component"), key=lambda t: t.uid)
        return answer(dumps({"data": [describe_component(type_) for type_ in found]}))

    @handles("findOneComponent")
    def component(uid: str) -> Response:
        schema = allowed("findOne")
        type_ = schema.types.get(uid)
        if type_ is None or type_.kind != "component":
            raise NotFoundError("component.notFound")
        return answer(dumps({"data": describe_component(type_)}))

    @handles("findLocales")
    def locales() -> Response:
        require_permission(request, "locale", "find")
        settings = state_of(request).settings
        return answer(dumps([describe(code, settings) for code in settings.locales.available]))


def _steps_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "change": str(step.migration),
            "documents": len(step.documents),
            "files": step.files,
            "notes": step.notes,
            "warnings": step.warnings,
            "losses": step.losses,
            "lost": step.loss_count,
        }
        for step in plan.steps
    ]


def _kind(value: object) -> str:
    if value not in (None, "", "collectionType", "singleType"):
        raise ValidationError("kind must be one of the following values: collectionType, singleType")
    return str(value or "")
