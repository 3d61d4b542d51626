"""One operation of the API: what it takes, what it answers, every way in which it can fail."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from server.api.commits.header import COMMIT_HEADER
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.errors import HTTP_NAMES, ApiError

JSON = "application/json"
# The errors that operations of a kind can have, beside their own.
ALWAYS = (400, 401, 403, 500)
READ = (*ALWAYS,)
WRITE = (*ALWAYS, 409, 413, 503, 507)
TAG = {"schema": {"type": "string"}, "description": "The version of what is shown."}
COMMIT = {
    "schema": {"type": "string"},
    "description": "The commit of the write; `pending` before it is made.",
}

SERVED = {
    "schema": {"type": "string"},
    "description": "The commit that is served, in a repository; with `; changed` where files differ from it.",
}


def closed(properties: Mapping[str, Any]) -> JsonSchema:
    """An object with these members: all of them, and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def json_content(schema: JsonSchema, example: Any = None) -> JsonSchema:
    """A JSON body or answer."""
    return {JSON: {"schema": schema} | ({} if example is None else {"example": example})}


def answer(
    description: str, schema: JsonSchema | None = None, *, example: Any = None, tagged: bool = False
) -> JsonSchema:
    """One answer of an operation; `tagged` where it has an ETag, unless it shows the ids of a draft alone."""
    found: JsonSchema = {"description": description}
    if tagged:
        found["headers"] = {"ETag": TAG}
    if schema is not None:
        found["content"] = json_content(schema, example)
    return found


def operation(
    tag: str,
    name: str,
    summary: str,
    answers: Mapping[int, JsonSchema],
    *,
    parameters: Iterable[JsonSchema] = (),
    body: JsonSchema | None = None,
    errors: Iterable[int] = READ,
    public: bool = False,
    limited: bool = False,
    commits: bool = False,
) -> JsonSchema:
    """An operation of the document; `public` where it needs no credentials, `limited` where 429 may come.

    `commits` where what it writes may become a commit, whose message the request says.
    """
    statuses = sorted({*errors, 429} if limited else set(errors))
    found: JsonSchema = {"tags": [tag], "operationId": name, "summary": summary}
    parameters = [*parameters, *[ref("message", "parameters")] * commits]
    if parameters:
        found["parameters"] = parameters
    if body is not None:
        found["requestBody"] = body
    shown = {str(status): _committed(made) if commits else made for status, made in answers.items()}
    found["responses"] = {**shown, **{str(s): ref(f"Error{s}", "responses") for s in statuses}}
    found["security"] = [{}, {"bearer": []}] if public else [{"bearer": []}]
    return found


def _committed(answered: JsonSchema) -> JsonSchema:
    return {**answered, "headers": {**answered.get("headers", {}), COMMIT_HEADER: COMMIT}}


def read(described: JsonSchema, *, of_content: bool) -> JsonSchema:
    """A GET: what it answers has an entity tag, and is not sent again to who names that.

    `of_content`: it says which commit it is of, and may be asked for from one.
    """
    responses = dict(described["responses"])
    if "200" not in responses:
        return described
    commit = {COMMIT_HEADER: SERVED} if of_content else {}
    answered = {**responses.pop("200"), "headers": {"ETag": {**TAG, "required": True}, **commit}}
    known = {"description": "What If-None-Match names still holds.", "headers": {"ETag": TAG, **commit}}
    parameters = [*described.get("parameters", ()), ref("ifNoneMatch", "parameters")]
    if of_content:
        parameters.append(ref("after", "parameters"))
        responses["503"] = ref("Error503", "responses")
    return {**described, "parameters": parameters, "responses": {"200": answered, "304": known, **responses}}


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
