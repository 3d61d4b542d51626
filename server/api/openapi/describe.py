"""OpenAPI definitions of operations and errors."""

from collections.abc import Iterator
from dataclasses import replace

from server.api.commits import COMMIT_HEADER
from server.api.operations.json_schema import (
    JSON,
    TAG,
    TEXT,
    JsonSchema,
    json_content,
    parameter_refs,
    ref,
    response_doc,
)
from server.api.operations.operation import Area, Audience, Docs, Operation
from server.api.operations.permission import TypePermissionCheck
from server.errors import HTTP_NAMES, ApiError

_WRITTEN = {"schema": TEXT, "description": "Commit of the write; `pending` before it is made."}
_SERVED = {
    "schema": TEXT,
    "description": "The served commit, if the site is in a git repository; then `; changed` if files differ.",
}


def describe(operation: Operation, area: Area, audience: Audience) -> JsonSchema | None:
    """Return an operation's definition, or None if it is undocumented or the caller may not use it."""
    type_ = audience.view.type if audience.view else None
    if isinstance(operation.docs, str) or not operation.permission(audience.actor, audience.schema, type_):
        return None
    docs = (
        operation.docs
        if isinstance(operation.docs, Docs)
        else operation.docs(_with_drafts_only(operation, audience))
    )
    commits, accepts_dry_run = _commits(operation, audience), audience.may_dry_run(operation.dry_run)
    names = [
        *["branch"] * (operation.branch and audience.may_branch),
        *["dryRunOfSource" if operation.dry_run == "source" else "dryRun"] * accepts_dry_run,
        *["message"] * commits,
    ]
    parameters = [*docs.parameters, *parameter_refs(*names)]
    answers = {s: _with_commit(a) if commits else a for s, a in docs.responses.items()}
    errors = {*docs.errors, *[429] * audience.is_rate_limited}
    if operation.method == "GET" and 200 in answers:
        parameters += parameter_refs("ifNoneMatch", *["after"] * area.varies_by_commit)
        answers |= _read(answers[200], varies_by_commit=area.varies_by_commit)
        errors |= {503} if area.varies_by_commit else set()
    if accepts_dry_run:
        answers[200] = _with_dry_run(answers.get(200))
    responses = {status: ref(f"Error{status}", "responses") for status in errors} | answers
    public = operation.permission(audience.public, audience.schema, type_)
    found: JsonSchema = {
        "tags": [type_.display if type_ else area.tag.name if area.tag else area.name],
        "operationId": _operation_id(operation, audience),
        "summary": docs.summary,
        "parameters": parameters,
        **({} if docs.body is None else {"requestBody": docs.body}),
        "responses": {str(status): responses[status] for status in sorted(responses)},
        "security": [{}, {"bearer": []}] if public else [{"bearer": []}],
    }
    return found if parameters else {key: value for key, value in found.items() if key != "parameters"}


def _with_drafts_only(operation: Operation, audience: Audience) -> Audience:
    view, permission = audience.view, operation.permission
    if view is None or not isinstance(permission, TypePermissionCheck):
        return audience
    drafts_only = not audience.actor.may(view.type.singular, permission.action)
    return replace(audience, view=replace(view, drafts_only=drafts_only))


def _operation_id(operation: Operation, audience: Audience) -> str:
    if audience.view is None:
        return operation.id
    return operation.id.removesuffix("Document").removesuffix("Single") + audience.view.name


def _commits(operation: Operation, audience: Audience) -> bool:
    if operation.commits == "maybe":
        to_branch = operation.branch and audience.may_branch
        return to_branch or audience.settings.git.commit is not None
    return operation.commits == "always"


def _with_commit(answered: JsonSchema) -> JsonSchema:
    return {**answered, "headers": {**answered.get("headers", {}), COMMIT_HEADER: _WRITTEN}}


def _read(answered: JsonSchema, *, varies_by_commit: bool) -> dict[int, JsonSchema]:
    commit = {COMMIT_HEADER: _SERVED} if varies_by_commit else {}
    shown = {**answered, "headers": {"ETag": {**TAG, "required": True}, **commit}}
    return {
        200: shown,
        304: {
            "description": "Not modified since the version in `If-None-Match`.",
            "headers": {"ETag": TAG, **commit},
        },
    }


def _with_dry_run(written: JsonSchema | None) -> JsonSchema:
    dry_run = ref("DryRun")
    if written is None:
        return response_doc("The files that would change.", dry_run)
    described = written["content"][JSON]
    return {**written, "content": {JSON: {**described, "schema": {"anyOf": [described["schema"], dry_run]}}}}


# --- errors --------------------------------------------------------------------------------------


def error_responses() -> Iterator[tuple[str, JsonSchema]]:
    """Yield the name, such as `Error404`, and the definition of each error response."""
    kinds: dict[int, list[type[ApiError]]] = {}
    every: list[type[ApiError]] = [ApiError, *_below(ApiError)]
    for kind in every:
        kinds.setdefault(kind.status, []).append(kind)
    for status in sorted({*kinds, *HTTP_NAMES}):
        found = kinds.get(status, [])
        yield f"Error{status}", _error_response(status, found)


def _below(kind: type[ApiError]) -> Iterator[type[ApiError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def _error_response(status: int, kinds: list[type[ApiError]]) -> JsonSchema:
    names = list(dict.fromkeys([*(kind.name for kind in kinds), *_http_name(status)]))
    sentences = [_sentence(kind) for kind in kinds if kind is not ApiError]
    inner = {"properties": {"status": {"const": status}, "name": {"enum": names}}}
    schema = {"allOf": [ref("Error"), {"properties": {"error": inner}}]}
    message = kinds[0].default if kinds else names[0]
    example = {"data": None, "error": {"status": status, "name": names[0], "message": message, "details": {}}}
    return {
        "description": " ".join(sentences) or "An error of the server; its log has the details.",
        "content": json_content(schema, example),
    }


def _http_name(status: int) -> list[str]:
    return [HTTP_NAMES[status]] if status in HTTP_NAMES else []


def _sentence(kind: type[ApiError]) -> str:
    return " ".join((kind.__doc__ or "").split())
