"""One operation of the table as OpenAPI describes it to a caller; and the errors that operations can have."""

from collections.abc import Iterator
from dataclasses import replace

from server.api.commits import COMMIT_HEADER
from server.api.operations.json_schema import (
    JSON,
    TAG,
    TEXT,
    JsonSchema,
    answer,
    json_content,
    ref,
    shared_parameters,
)
from server.api.operations.operation import Area, Audience, Docs, Operation
from server.api.operations.permission import MayOfType
from server.errors import HTTP_NAMES, ApiError

_WRITTEN = {"schema": TEXT, "description": "The commit of the write; `pending` before it is made."}
_SERVED = {
    "schema": TEXT,
    "description": "The commit that is served, in a repository; with `; changed` where files differ from it.",
}


def describe(operation: Operation, area: Area, audience: Audience) -> JsonSchema | None:
    """An operation for a caller; None where that may not use it, and where OpenAPI leaves it out."""
    type_ = audience.view.type if audience.view else None
    if isinstance(operation.docs, str) or not operation.permission(audience.actor, audience.schema, type_):
        return None
    docs = (
        operation.docs if isinstance(operation.docs, Docs) else operation.docs(_drafting(operation, audience))
    )
    commits, tries = _commits(operation, audience), operation.dry_run and audience.may_dry_run
    names = [
        *["branch"] * (operation.branch and audience.may_branch),
        *["dryRun"] * tries,
        *["message"] * commits,
    ]
    parameters = [*docs.parameters, *shared_parameters(*names)]
    answers = {s: _with_commit(a) if commits else a for s, a in docs.answers.items()}
    errors = {*docs.errors, *[429] * audience.is_rate_limited}
    if operation.method == "GET" and 200 in answers:
        parameters += shared_parameters("ifNoneMatch", *["after"] * area.varies_by_commit)
        answers |= _read(answers[200], varies_by_commit=area.varies_by_commit)
        errors |= {503} if area.varies_by_commit else set()
    if tries:
        answers[200] = _with_dry_run(answers.get(200))
    responses = {status: ref(f"Error{status}", "responses") for status in errors} | answers
    public = operation.permission(audience.public, audience.schema, type_)
    found: JsonSchema = {
        "tags": [type_.display if type_ else area.tag.name if area.tag else area.name],
        "operationId": _id_of(operation, audience),
        "summary": docs.summary,
        "parameters": parameters,
        **({} if docs.body is None else {"requestBody": docs.body}),
        "responses": {str(status): responses[status] for status in sorted(responses)},
        "security": [{}, {"bearer": []}] if public else [{"bearer": []}],
    }
    return found if parameters else {key: value for key, value in found.items() if key != "parameters"}


def _drafting(operation: Operation, audience: Audience) -> Audience:
    """An audience that knows whether it may use an operation of a content type for drafts only."""
    view, permission = audience.view, operation.permission
    if view is None or not isinstance(permission, MayOfType):
        return audience
    drafts_only = not audience.actor.may(view.type.singular, permission.action)
    return replace(audience, view=replace(view, drafts_only=drafts_only))


def _id_of(operation: Operation, audience: Audience) -> str:
    """The row's id; of a content type, with the name of that in place of the kind."""
    if audience.view is None:
        return operation.id
    return operation.id.removesuffix("Document").removesuffix("Single") + audience.view.name


def _commits(operation: Operation, audience: Audience) -> bool:
    """Whether what an operation writes may become a commit."""
    if operation.commits == "maybe":
        to_branch = operation.branch and audience.may_branch
        return to_branch or audience.settings.git.commit is not None
    return operation.commits == "always"


def _with_commit(answered: JsonSchema) -> JsonSchema:
    return {**answered, "headers": {**answered.get("headers", {}), COMMIT_HEADER: _WRITTEN}}


def _read(answered: JsonSchema, *, varies_by_commit: bool) -> dict[int, JsonSchema]:
    """The answers to a GET: with an entity tag, and not sent again to who names that."""
    commit = {COMMIT_HEADER: _SERVED} if varies_by_commit else {}
    shown = {**answered, "headers": {"ETag": {**TAG, "required": True}, **commit}}
    return {
        200: shown,
        304: {"description": "What If-None-Match names still holds.", "headers": {"ETag": TAG, **commit}},
    }


def _with_dry_run(written: JsonSchema | None) -> JsonSchema:
    """The answer to a write that can be tried: what it has written, or would change in files."""
    tried = ref("DryRun")
    if written is None:
        return answer("What it would change in files.", tried)
    said = written["content"][JSON]
    return {**written, "content": {JSON: {**said, "schema": {"anyOf": [said["schema"], tried]}}}}


# --- errors --------------------------------------------------------------------------------------


def error_responses() -> Iterator[tuple[str, JsonSchema]]:
    """Every error that the API can answer, by status: from the tree of errors."""
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
        "description": " ".join(sentences) or "Something went wrong that should not.",
        "content": json_content(schema, example),
    }


def _http_name(status: int) -> list[str]:
    return [HTTP_NAMES[status]] if status in HTTP_NAMES else []


def _sentence(kind: type[ApiError]) -> str:
    return " ".join((kind.__doc__ or "").split())
