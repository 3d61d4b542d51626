"""What schemathesis has to know that an OpenAPI document can't say.

Ids of documents that there are, in place of ids at random, so that requests come to something; which
refusals of sound requests are right, because they are about other documents; and less of the filters,
whose every operator under every attribute would take an hour.
"""

import re
from typing import Any

import schemathesis
from schemathesis.specs.openapi import checks

ID = "x"  # a document of every type, a file, and (as 1) a user, has this id; no request deletes it
SPARE = ["spare", "nothing"]
FILTERED = ("str", "i", "dt", "b", "tags", "one", "name", "username")
OPERATORS = ("$eq", "$in", "$between", "$containsi", "$null")  # all others under text alone
# Why a request that is sound by itself may be refused: what it says of others, or its parts of each other.
ABOUT_OTHERS = re.compile(
    r"must be unique|already taken|not found|does not exist|not connected|before itself|after itself"
    r"|has no draft to discard|is not published, so its draft"
    r"|not related to the entity"  # a component, by its id
    r"|control character|halves of surrogate|must be a valid email|new file must have"
    r"|Invalid identifier or password|Incorrect code|Invalid token|current password|Passwords do not match"
    r"|must be authenticated|only the first|multiple ones|Files are empty|fileInfo|refId"
    r"|Invalid key [^\"]* at (pics?|near)"  # in a target: what documents or files of its type do not say
    r"|A batch can't write to|refers to an operation"  # in a batch: paths, and what comes before
    r"|(field|locale)\W+ must be (null|one)"  # who is where: what the site has
    r"|must be (less|greater) than or equal to"  # a number that is written as text
)


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Put ids of documents where ids go; make filters small."""
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
            # No If-Match at random: every write would be for a version that there never was. No draft of
            # what there is either: a later write would be refused for what is missing in that.
            # Nor commits at random, which are waited for.
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
    """One type (place) has a relation in all its forms; everywhere else they would only take long."""
    for name, made in list(properties.items()):
        if made.get("$ref", "").endswith("/RelationInput"):
            del properties[name]


def _with_ids(schema: Any) -> Any:
    """The schema with the id of a document wherever it takes an id."""
    if isinstance(schema, list):
        return [_with_ids(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("description") == "A documentId." or schema.get("type") == ["integer", "string"]:
        return {"enum": [ID]}
    # What is disconnected need not be there.
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
    if parameter["in"] != "path" or parameter["name"] == "client":
        return parameter
    number = parameter["schema"]["type"] == "integer"
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
    """A request that the document allows is not refused, unless for what other documents are."""
    if response.status_code == 400 and ABOUT_OTHERS.search(response.text):
        return None
    if response.status_code == 410:  # The number of an event that the log has not, as few numbers are.
        return None
    return checks.positive_data_acceptance(ctx, response, case)


@schemathesis.check
def invalid_is_refused(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> bool | None:
    """A request that the document does not allow is refused; a draft may break what it is published with."""
    if (case.query or {}).get("status") == "draft":
        return None
    if case.media_type == "multipart/form-data":
        return None  # in a form everything is text
    if _operates_on_media(case.body):
        return None  # `connect` and `disconnect` beside `set` count for nothing, whatever they are
    if response.status_code == 204 and (case.path_parameters or {}).get("documentId", ID) not in (ID, *SPARE):
        return None  # a document that there is not is as good as deleted
    return checks.negative_data_rejection(ctx, response, case)


def _operates_on_media(body: Any) -> bool:
    data = body.get("data") if isinstance(body, dict) else None
    return isinstance(data, dict) and any(isinstance(data.get(name), dict) for name in ("pic", "pics"))
