"""The operations of `/source`, as far as the caller may use them (docs/files.md)."""

from collections.abc import Iterator, Mapping

from server.api.openapi.operations import JSON, READ, WRITE, answer, closed, json_content, operation
from server.api.openapi.parameters import name_in_path
from server.api.openapi.services.caller import Caller
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.auth.permissions import may_source
from server.schema.model import Schema

SOURCE = "Source"
_TEXT: JsonSchema = {"type": "string"}
_STATUS: JsonSchema = {"enum": ["published", "draft"]}
_PROBLEM = closed({"line": {"type": ["integer", "null"]}, "message": _TEXT, "fix": _TEXT})
_FILE = {"path": _TEXT, "locale": _TEXT, "status": _STATUS}
_SOURCE = closed(
    {
        **_FILE,
        "text": {**_TEXT, "description": "The text of the file, with (hidden 1) in place of a password."},
        "otherKeys": {**_TEXT, "description": "The keys that the type does not have, in the file's format."},
        "problem": {"anyOf": [_PROBLEM, {"type": "null"}], "description": "What keeps it from being read."},
    }
)
_ANSWER = closed({"data": _SOURCE, "meta": closed({"files": {"type": "array", "items": closed({**_FILE})}})})
_WRITTEN: JsonSchema = {"anyOf": [_ANSWER, ref("DryRun")]}
_BODY = closed({"data": {"anyOf": [closed({"text": _TEXT}), closed({"otherKeys": _TEXT})]}})
_WRITE_PARAMETERS = ("localeWritten", "statusWritten", "dryRun", "ifMatch")
_TYPE = name_in_path(
    "type", "The name of a content type: the plural of a collection, or that of a single type."
)
_PATHS = {
    "/source/{type}": ("Single", (_TYPE,)),
    "/source/{type}/{documentId}": ("Document", (_TYPE, name_in_path("documentId", "A document."))),
}


_WRITES = ("post", "put", "delete")
_CHANGED = closed(
    {
        "path": _TEXT,
        "action": {"enum": ["create", "update", "delete"]},
        "lines": {"type": "array", "items": _TEXT, "description": "Of a unified diff."},
    }
)
DRY_RUN: JsonSchema = {
    **closed({"data": closed({"files": {"type": "array", "items": _CHANGED}})}),
    "description": "With `dryRun=true`: the files that would change.",
}


COMMIT = "/history/commit"  # which changes nothing in files


def with_dry_runs(paths: Mapping[str, JsonSchema]) -> dict[str, JsonSchema]:
    """Operations of paths, of which those that write can be tried."""
    return {
        path: {
            m: _with_dry_run(made) if m in _WRITES and path != COMMIT else made for m, made in methods.items()
        }
        for path, methods in paths.items()
    }


def _with_dry_run(made: JsonSchema) -> JsonSchema:
    """A write with the parameter that tries it, and what is answered then."""
    tried, written = ref("DryRun"), made["responses"].get("200")
    shown = answer("What it would change in files.", tried)
    if written is not None:
        said = written["content"][JSON]
        shown = {**written, "content": {JSON: {**said, "schema": {"anyOf": [said["schema"], tried]}}}}
    parameters = [*made.get("parameters", ()), ref("dryRun", "parameters")]
    return {**made, "parameters": parameters, "responses": {**made["responses"], "200": shown}}


def source_paths(caller: Caller, schema: Schema) -> Iterator[tuple[str, JsonSchema]]:
    """The paths below `/source`, each with the methods that the caller may use."""
    if not may_source(caller.actor, "read", schema):
        return
    for path, (name, inside) in _PATHS.items():
        found = operation(
            SOURCE,
            f"find{name}Source",
            "The file of a document as it is written",
            {200: answer("Its path and text.", _ANSWER)},
            parameters=[*inside, ref("localeWritten", "parameters"), ref("status", "parameters")],
            errors=(*READ, 404, 409, 507),
            public=may_source(caller.public, "read", schema),
            limited=caller.limited,
        )
        written = _replace(name, inside, caller) if may_source(caller.actor, "write", schema) else {}
        yield path, {"get": found, **({"put": written} if written else {})}


def _replace(name: str, inside: tuple[JsonSchema, ...], caller: Caller) -> JsonSchema:
    return operation(
        SOURCE,
        f"replace{name}Source",
        "Write the text of a file, or the keys in it that the type does not have",
        {200: answer("The file as it is now; with `dryRun=true`, what would change.", _WRITTEN, tagged=True)},
        parameters=[*inside, *(ref(one, "parameters") for one in _WRITE_PARAMETERS)],
        body={"required": True, "content": json_content(_BODY)},
        errors=(*WRITE, 404, 412),
        limited=caller.limited,
        commits=caller.commits,
    )
