"""The tools `site_info`, `get_schema`, `find`, `get` and `search`."""

from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import content_path
from server.api.mcp.tools.destination import default_destination
from server.api.mcp.tools.media import find_files, get_file, is_media
from server.api.mcp.tools.missing import missing_document_error
from server.api.mcp.tools.schemas import (
    AT,
    ID,
    LISTED,
    NAMES,
    OBJECT,
    PAGES,
    POPULATE,
    STATUS,
    STATUS_TO_READ,
    TEXT,
    TYPE,
)
from server.api.mcp.tools.tool import (
    MEDIA,
    Call,
    Result,
    Tool,
    body_of,
    error_about_type,
    fitting_page,
    list_summary,
    reject_locale,
    required_id,
    type_of,
)
from server.errors import NotFoundError, ValidationError
from server.schema.model import Type

METASCHEMA = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "#/components/schemas/"
PAGE_TYPES = 200

# --- site_info ------------------------------------------------------------------------------------


def site_info(call: Call) -> Result:
    """Run the `site_info` tool. Like every tool, it raises ApiError or RestRequestError if it fails."""
    access = body_of(call.rest.send("GET", "/access"))["data"]
    overview = call.rest.send("GET", "/overview", {"limit": "1"})
    counts = {} if overview.is_error else overview.body["meta"]["counts"]
    types = [_summary(each, access["permissions"], counts) for each in access["contentTypes"]]
    names = {each["name"] for each in types}
    site = access["site"]
    destination = default_destination(call)
    about = {
        "site": {
            "name": site["name"],
            "locales": [locale["code"] for locale in site["locales"]],
            "defaultLocale": next(one["code"] for one in site["locales"] if one["isDefault"]),
            "servedAt": site["servedAt"],
            "pageSize": site["pageSize"],
        },
        "caller": access["caller"],
        "permissions": {name: may for name, may in access["permissions"].items() if name not in names},
        "writes": destination.describe(),
        **({"media": {"type": MEDIA}} if "find" in access["permissions"].get(MEDIA, ()) else {}),
    }
    listed = _paginate(types, call)
    line = f"{site['name']}: {len(types)} content types. {destination.description}"
    return Result(line, {**about, **listed})


def _summary(described: Json, permissions: Json, counts: Json) -> Json:
    schema = described["schema"]
    name = schema["singularName"]
    return {
        "name": name,
        "title": schema["displayName"],
        **({"description": schema["description"]} if schema.get("description") else {}),
        "isSingleType": schema["kind"] == "singleType",
        "hasDrafts": schema["draftAndPublish"],
        "isLocalized": described["localized"],
        "titleAttribute": described["titleAttribute"],
        **({"documents": counts[name]} if name in counts else {}),
        "allowedActions": permissions.get(name, []),
    }


def _paginate(items: list[Json], call: Call) -> Json:
    page = int(call.arguments.get("page") or 1)
    size = int(call.arguments.get("pageSize") or PAGE_TYPES)
    offset = (page - 1) * size
    return fitting_page(items[offset : offset + size], len(items), offset, size, call.max_bytes * 2 // 3)


# --- get_schema -----------------------------------------------------------------------------------


def get_schema(call: Call) -> Result:
    """Run the `get_schema` tool. The schemas come from the OpenAPI document."""
    type_ = type_of(call)
    document = body_of(call.rest.send("GET", "/openapi.json"))
    path = content_path(type_)
    operations = {
        **document["paths"].get(f"{path}/{{documentId}}", {}),
        **document["paths"].get(path, {}),
    }
    schemas = document["components"]["schemas"]
    read = _read_name(operations.get("get", {}))
    create, update = (_written(operations.get(method, {})) for method in ("post", "put"))
    if not (read or create or update):
        raise NotFoundError(f'You have no permission for the content type "{call.text("type")}"')
    wanted = {"read": read, "create": create, "update": "" if create else update}
    found: Json = {"$schema": METASCHEMA, "contentType": type_.singular, "path": path}
    found |= {name: {"$ref": f"#/$defs/{schema}"} for name, schema in wanted.items() if schema}
    whole = {name for name in schemas if f"{name}Answer" in schemas and name != read}
    found["$defs"] = _with_dependencies([name for name in wanted.values() if name], schemas, whole)
    found["example"] = _example_data(operations)
    note = (
        "For an update, every attribute is optional" if create else "Attributes not named keep their values"
    )
    line = f"Schema of {type_.singular}. {note}; null clears an attribute."
    if type_.localized:
        found |= _by_locale(type_, {key for name in wanted.values() for key in _properties(schemas, name)})
        shared = ", ".join(found["sharedByAllLocales"]) or "none"
        line += f" Attributes with the same value in all locales: {shared}."
    return Result(line, found)


def _properties(schemas: Json, name: str) -> Json:
    found: Json = schemas.get(name, {}).get("properties", {})
    return found


def _by_locale(type_: Type, visible: Collection[str]) -> Json:
    attributes = [each for each in type_.attributes.values() if each.name in visible]
    return {
        "localized": [each.name for each in attributes if each.localized],
        "sharedByAllLocales": [each.name for each in attributes if not each.localized],
    }


def _read_name(operation: Json) -> str:
    answer = operation.get("responses", {}).get("200", {}).get("content", {}).get("application/json", {})
    name = str(answer.get("schema", {}).get("$ref", "")).removeprefix(_REFERENCE)
    return name.removesuffix("List").removesuffix("Answer") if name else ""


def _written(operation: Json) -> str:
    data = _json_body(operation).get("schema", {}).get("properties", {}).get("data", {})
    return str(data.get("$ref", "")).removeprefix(_REFERENCE)


def _json_body(operation: Json) -> Json:
    found: Json = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return found


def _example_data(operations: Json) -> Any:
    bodies = (_json_body(operations.get(method, {})) for method in ("post", "put"))
    return next((body["example"]["data"] for body in bodies if "example" in body), None)


def _with_dependencies(names: list[str], all_schemas: Json, types: set[str]) -> Json:
    """Return the named schemas, and all schemas that they refer to directly or indirectly.

    Each schema named in `types` is replaced with a schema that allows any object.
    """
    found: Json = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if name in types:
            found[name] = {"type": "object", "description": f"{all_schemas[name].get('description', name)}"}
            continue
        found[name] = _with_local_references(all_schemas[name], waiting)
    return dict(sorted(found.items()))


def _with_local_references(value: Any, referenced: list[str]) -> Any:
    if isinstance(value, list):
        return [_with_local_references(item, referenced) for item in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for key, item in value.items():
        if key == "$ref" and isinstance(item, str):
            referenced.append(item.removeprefix(_REFERENCE))
            changed[key] = item.replace(_REFERENCE, "#/$defs/")
        elif key != "discriminator":  # a keyword of OpenAPI
            changed[key] = _with_local_references(item, referenced)
    return changed


# --- find, get and search -------------------------------------------------------------------------


def find(call: Call) -> Result:
    """Run the `find` tool."""
    if is_media(call):
        return find_files(call)
    type_ = type_of(call)
    if type_.kind == "singleType":
        raise error_about_type(call, type_, ValidationError(f"{type_.singular} is a single type; use get"))
    reject_locale(call, type_)
    query = call.values("filters", "fields", "populate", "sort", "status", "locale", "at")
    if call.text("q"):
        query["_q"] = call.text("q")
    pages = call.values("page", "pageSize")
    if pages:
        query["pagination"] = pages
    body = body_of(call.rest.send("GET", content_path(type_), query))
    meta = body["meta"]["pagination"]
    offset = (meta["page"] - 1) * meta["pageSize"]
    listed = fitting_page(body["data"], meta["total"], offset, meta["pageSize"], call.max_bytes)
    return Result(list_summary(listed, type_.plural), listed)


def get(call: Call) -> Result:
    """Run the `get` tool."""
    if is_media(call):
        return get_file(call)
    call.reject(f"without the type {MEDIA}", "image")
    type_ = type_of(call)
    reject_locale(call, type_)
    query = call.values("fields", "populate", "status", "locale", "at")
    reply = call.rest.send("GET", content_path(type_, required_id(call, type_)), query)
    if reply.status == HTTPStatus.NOT_FOUND:
        raise missing_document_error(call, type_, call.values("at"))
    document = body_of(reply)["data"]
    tag = {"etag": reply.headers["etag"]} if "etag" in reply.headers else {}
    shown = type_.singular if type_.kind == "singleType" else f"{type_.singular} {document['documentId']}"
    return Result(shown, {"data": document, **tag})


def search(call: Call) -> Result:
    """Run the `search` tool."""
    if not call.text("q").strip():
        raise ValidationError('"q" contains no word to search for')
    query = call.values("q", "type", "locale", "status", "at", "page")
    if isinstance(query.get("type"), list):
        query["type"] = ",".join(map(str, query["type"]))
    if "pageSize" in call.arguments:
        query["limit"] = call.arguments["pageSize"]
    body = body_of(call.rest.send("GET", "/search", query))
    meta = body["meta"]["pagination"]
    offset = (meta["page"] - 1) * meta["pageSize"]
    listed = fitting_page(body["data"], meta["total"], offset, meta["pageSize"], call.max_bytes)
    suggested: Mapping[str, Any] = body["meta"]
    if suggested.get("didYouMean"):
        listed["didYouMean"] = suggested["didYouMean"]
    return Result(list_summary(listed, "hits"), listed)


# --- the table ------------------------------------------------------------------------------------

TOOLS = (
    Tool(
        "site_info",
        "Describe the site",
        "Content types, locales, your permissions, and where your writes go. Call this first.",
        PAGES,
        {"site": OBJECT, "caller": OBJECT, "permissions": OBJECT, "writes": OBJECT, **LISTED},
        site_info,
        optional=("next",),
        is_read_only=True,
    ),
    Tool(
        "get_schema",
        "Get a schema",
        "A content type's attributes, as JSON Schema: what get returns, what write accepts, an example.",
        {"type": TYPE},
        {"contentType": TEXT, "path": TEXT, "$defs": OBJECT, "example": {"type": ["object", "null"]}},
        get_schema,
        required=("type",),
        is_read_only=True,
    ),
    Tool(
        "find",
        "Find documents",
        "List documents of a type. filters: {title: {$contains: tide}}; operators $eq, $in, $gt, $null, $or. "
        "Relations are absent unless populated. Request few fields. For media files, use type upload.",
        {
            "type": TYPE,
            "filters": OBJECT,
            "fields": NAMES,
            "populate": POPULATE,
            "sort": {**NAMES, "description": "title or title:desc"},
            "q": {"type": "string", "description": "Words to search for"},
            "status": STATUS_TO_READ,
            "locale": TEXT,
            "at": AT,
            **PAGES,
        },
        LISTED,
        find,
        required=("type",),
        optional=("next",),
        is_read_only=True,
    ),
    Tool(
        "get",
        "Get a document",
        "One document, with the etag that write and write_file accept as ifMatch.",
        {
            "type": TYPE,
            "documentId": ID,
            "fields": NAMES,
            "populate": POPULATE,
            "status": STATUS_TO_READ,
            "locale": TEXT,
            "at": AT,
            "image": {"type": "boolean", "description": "Include the image of an upload"},
        },
        {"data": OBJECT, "etag": TEXT},
        get,
        required=("type",),
        optional=("etag",),
        is_read_only=True,
    ),
    Tool(
        "search",
        "Search",
        'Ranked full-text search. q: words, "phrases", field:word, -excluded.',
        {"q": TEXT, "type": NAMES, "status": STATUS, "locale": TEXT, "at": AT, **PAGES},
        {**LISTED, "didYouMean": TEXT},
        search,
        required=("q",),
        optional=("next", "didYouMean"),
        is_read_only=True,
    ),
)
