"""Hooks for schemathesis, with information that an OpenAPI document can't contain.

- Requests contain ids of existing documents, because requests with random ids would all fail.
- Some valid requests may be rejected, because they conflict with other documents.
- Filters are shortened: testing every operator with every attribute would take an hour.
"""

import re
from typing import Any

import schemathesis
from schemathesis.specs.openapi import checks

ID = "x"  # the id of one document of every type, and of a file; no request deletes them; the user's id is 1
SPARE = ["spare", "nothing"]
FILTERED = ("str", "i", "dt", "b", "tags", "one", "name", "username")
# Text attributes are filtered with all operators, other attributes only with these.
OPERATORS = ("$eq", "$in", "$between", "$containsi", "$null")
# Reasons to reject a valid request: its values conflict with other documents or with each other.
ABOUT_OTHERS = re.compile(
    r"must be unique|already taken|not found|does not exist|not connected|before itself|after itself"
    r"|has no draft to discard|is not published, so its draft"
    r"|not related to the entity"  # a component, by its id
    r"|control character|halves of surrogate|must be a valid email|new file must have"
    r"|Invalid identifier or password|Incorrect code|Invalid token|current password|Passwords do not match"
    r"|must be authenticated|only the first|multiple ones|Files are empty|fileInfo|refId"
    r"|Invalid key [^\"]* at (pics?|near)"  # the target has no such attribute
    # In a batch: wrong paths, or references to other operations.
    r"|A batch can't write to|refers to an operation"
    r"|file type must stay the same|valid name for a media file|the folder for media files"
    r"|invitation has been used"
    r"|role.connect is a required"
    r"|If-Match header is missing"  # The hook below leaves this header out.
    r"|permissions are not valid"  # They must be ones that exist, and only for tokens of the type custom.
    # A change to a content type that the site's content or schemas don't allow.
    r'|"message":"(?!changes\[)(?:[^"\\]|\\.)*","details":{"change":'
    # The values of a webhook, which depend on the site's settings and content types.
    r'|"path":\["(url|events|types|locales|debounce|headers)"'
    r"|(field|locale)\W+ must be (null|one)"  # presence: what the site contains
    r"|must be (less|greater) than or equal to"  # a number that is written as text
    # Parameters of images, which are described as texts: their values depend on each other and on settings.
    r"|(width|height|fit|format|quality|dpr|fp-[xy]|crop|ar|rect|m(in|ax)-[wh]|withoutEnlargement|key)"
    r"( times dpr [\d.]+)? must (be|have) |can't be transformed|The image "
)


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Insert ids of existing documents, and shorten the filters."""
    schemas = raw_schema["components"]["schemas"]
    for name, made in schemas.items():
        if name.endswith("Filters"):
            schemas[name]["properties"] = _fewer(schemas[name]["properties"])
        elif name.endswith("Filter") and name != "LinkFilter":
            kept = {*OPERATORS, *(k for k in made["anyOf"][2]["properties"] if name == "TextFilter")}
            _keep(made["anyOf"][2]["properties"], kept - {"$and", "$or", "$not"})
        elif name.endswith(("Input", "Change")) and "properties" in made and not name.startswith("Place"):
            _drop_relations(made["properties"])
        elif name in ("RelationInput", "MorphInput", "MediaInput"):
            schemas[name] = _with_ids(schemas[name])
    for path, methods in raw_schema["paths"].items():
        for method, operation in methods.items():
            inside = [_inlined(raw_schema, each) for each in operation.get("parameters", [])]
            known = SPARE if method == "delete" else [ID]
            # Leave out random `If-Match` headers, because they would never match. Leave out `status` in PUT
            # requests: they would create incomplete drafts, and publishing these would fail later. Leave out
            # `Bifolio-After`, because the server waits for the commit.
            apart = ("If-Match", "status") if method == "put" else ("If-Match", "Bifolio-After")
            kept = [each for each in inside if each["name"] not in apart]
            operation["parameters"] = [_fewer_names(_with_known(path, each, known)) for each in kept]


def _keep(members: dict[str, Any], names: set[str]) -> None:
    for name in members.keys() - names:
        del members[name]


def _fewer(properties: dict[str, Any]) -> dict[str, Any]:
    kept = {name: made for name, made in properties.items() if name in FILTERED}
    return {name: made["anyOf"][0] if "anyOf" in made else made for name, made in kept.items()}


def _drop_relations(properties: dict[str, Any]) -> None:
    """Remove relations from a schema. They are tested with one type (`place`) only, because they take
    long.
    """
    for name, made in list(properties.items()):
        if made.get("$ref", "").endswith("/RelationInput"):
            del properties[name]


def _with_ids(schema: Any) -> Any:
    """Return a schema in which every document id is the id of an existing document."""
    if isinstance(schema, list):
        return [_with_ids(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("description") == "A documentId." or schema.get("type") == ["integer", "string"]:
        return {"enum": [ID]}
    # A document to disconnect need not exist.
    return {key: value if key == "disconnect" else _with_ids(value) for key, value in schema.items()}


def _inlined(raw: dict[str, Any], parameter: dict[str, Any]) -> dict[str, Any]:
    name = parameter.get("$ref", "").rpartition("/")[2]
    return dict(raw["components"]["parameters"][name]) if name else parameter


def _fewer_names(parameter: dict[str, Any]) -> dict[str, Any]:
    if parameter["name"] != "fields":
        return parameter
    names = parameter["schema"]["items"]["enum"]
    return {**parameter, "schema": {"type": "array", "items": {"enum": names[:6]}}}


def _with_known(path: str, parameter: dict[str, Any], known: list[str]) -> dict[str, Any]:
    schema = parameter["schema"]
    if parameter["in"] != "path" or parameter["name"] == "client" or "enum" in schema:
        return parameter
    number = schema["type"] == "integer"
    ids: list[Any] = [1] if number and known == [ID] else [2, 99] if number else known
    if path == "/uploads/{path}":
        ids = ["x.png", "nothing.png"]
    elif "users-permissions" in path or "content-type-builder" in path:
        ids = ["public", "api::thing.thing", "shared.quote", "nothing"]
    return {**parameter, "schema": {"enum": ids}}


@schemathesis.check
def valid_is_accepted(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> bool | None:
    """Check that valid requests are accepted. A 400 is allowed if its reason is in ABOUT_OTHERS."""
    if response.status_code == 400 and ABOUT_OTHERS.search(response.text):
        return None
    # The requested event is not in the log, which is likely for a random number.
    if response.status_code == 410:
        return None
    return checks.positive_data_acceptance(ctx, response, case)


@schemathesis.check
def invalid_is_refused(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> bool | None:
    """Check that invalid requests are rejected. Drafts are excluded, because they may be incomplete."""
    if (case.query or {}).get("status") == "draft":
        return None
    if None in (case.query or {}).values():
        return None  # In a URL, null is an empty text, which is allowed, or left out.
    if case.media_type == "multipart/form-data":
        return None  # All values in a form are text.
    if _operates_on_media(case.body):
        return None  # If `set` is present, `connect` and `disconnect` are ignored, even if they are invalid.
    if response.status_code == 204 and (case.path_parameters or {}).get("documentId", ID) not in (ID, *SPARE):
        return None  # Deleting a document that does not exist succeeds.
    return checks.negative_data_rejection(ctx, response, case)


def _operates_on_media(body: Any) -> bool:
    data = body.get("data") if isinstance(body, dict) else None
    return isinstance(data, dict) and any(isinstance(data.get(name), dict) for name in ("pic", "pics"))
