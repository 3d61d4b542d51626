"""The methods for resources, which are the files of documents and the schemas of content types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import PurePosixPath
from urllib.parse import unquote

from server.api.mcp.calling import run_tool
from server.api.mcp.json_rpc import INVALID_PARAMS, METHOD_NOT_FOUND, Json, RpcError, encode
from server.api.mcp.request import (
    NOT_FOUND,
    Request,
    resource_error,
    with_cache_hints,
    with_private_cache_hints,
)
from server.api.mcp.rest_client import content_path, require_success
from server.api.mcp.subscription import (
    MAX_URIS,
    Subscription,
    WatchedResource,
    parse_watched,
    read_subscription,
    visible_types,
)
from server.api.mcp.tools.table import tool_named
from server.api.mcp.tools.tool import RESPONSE_BYTES, Call
from server.api.mcp.uris import (
    DOCUMENT_TEMPLATE,
    SCHEMA,
    SCHEMA_TEMPLATE,
    SCHEME,
    DocumentUri,
    SchemaUri,
    document_uri,
    read_uri,
    schema_uri,
)
from server.schema.model import Type

PAGE_RESOURCES = 100
MAX_TITLE_CHARS = 200
PAGE_TYPES = 20  # content types on a page, each of which takes a request to the REST API
SCHEMA_MEDIA_TYPE = "application/schema+json"
_JSON, _MARKDOWN = "application/json", "text/markdown"
MEDIA_TYPES: Mapping[str, str] = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".json": _JSON,
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
}
TEMPLATES: Sequence[Json] = (
    {
        "uriTemplate": DOCUMENT_TEMPLATE,
        "name": "document",
        "title": "Document",
        "description": "The text of a document's file",
    },
    {
        "uriTemplate": SCHEMA_TEMPLATE,
        "name": "schema",
        "title": "Content type",
        "description": "JSON Schema of a content type's documents",
        "mimeType": SCHEMA_MEDIA_TYPE,
    },
)


def list_templates(request: Request) -> Json:
    return with_cache_hints({"resourceTemplates": list(TEMPLATES)}, request.version)


# --- resources/list -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _PageStart:
    """Position where a page starts: the index of a content type, and the index of one of its resources."""

    type_number: int = 0
    start: int = 0

    @classmethod
    def from_cursor(cls, cursor: object) -> "_PageStart":
        if cursor is None:
            return cls()
        parts = cursor.split(".") if isinstance(cursor, str) else []
        if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
            raise RpcError(INVALID_PARAMS, "The cursor is invalid")
        return cls(*map(int, parts))

    @property
    def cursor(self) -> str:
        return f"{self.type_number}.{self.start}"


def list_resources(request: Request) -> Json:
    """Return a page of the schemas and documents that the caller may see."""
    position = _PageStart.from_cursor(request.params.get("cursor"))
    types = require_success(request.rest.send("GET", "/access")).body["data"]["contentTypes"]
    found: list[Json] = []
    end = min(len(types), position.type_number + PAGE_TYPES)
    while position.type_number < end and (room := PAGE_RESOURCES - len(found)):
        listed, total = _resources_of_type(request, types[position.type_number], position.start, room)
        found += listed
        start = position.start + len(listed)
        has_more = listed and start < total
        position = (
            _PageStart(position.type_number, start) if has_more else _PageStart(position.type_number + 1)
        )
    more = {"nextCursor": position.cursor} if position.type_number < len(types) else {}
    return with_private_cache_hints({"resources": found, **more}, request.version)


def _resources_of_type(request: Request, described: Json, start: int, limit: int) -> tuple[list[Json], int]:
    type_ = request.rest.type_named(described["uid"])
    if type_ is None:  # It was removed after the request to `/access`.
        return [], 0
    listed = [] if start else [_schema(type_, described["schema"]["displayName"])]
    title = described["titleAttribute"]
    title = title if title in described["schema"]["attributes"] else None
    query: Json = {"fields": [title or "documentId"]}
    is_single = type_.kind == "singleType"
    if not is_single:
        query["pagination"] = {"start": max(start - 1, 0), "limit": max(limit - len(listed), 1)}
    reply = request.rest.send("GET", content_path(type_), query)
    if reply.is_error:  # The caller may only write documents of this type, or there are none.
        return listed, len(listed)
    data: list[Json] = [reply.body["data"]] if is_single else reply.body["data"]
    total = len(data) if is_single else reply.body["meta"]["pagination"]["total"]
    listed += [_document(type_, item, title) for item in data[: limit - len(listed)]]
    return listed, total + 1


def _schema(type_: Type, title: str) -> Json:
    return {
        "uri": schema_uri(type_),
        "name": f"{SCHEMA}/{type_.singular}",
        "title": f"{_short(title)} (content type)",
        "mimeType": SCHEMA_MEDIA_TYPE,
    }


def _document(type_: Type, item: Json, title: str | None) -> Json:
    shown = item.get(title or "")
    titled = {"title": _short(shown)} if isinstance(shown, str) and shown else {}
    uri = document_uri(type_, item["documentId"])
    return {"uri": uri, "name": unquote(uri.removeprefix(SCHEME)), **titled}


def _short(title: str) -> str:
    return title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1]}…"


# --- resources/read -------------------------------------------------------------------------------


def read_resource(request: Request) -> Json:
    """Return the text of a resource."""
    uri = request.params.get("uri")
    match read_uri(uri, request.rest):
        case DocumentUri() as document:
            media_type, text = _document_text(request, document)
        case SchemaUri(type_name):
            media_type, text = SCHEMA_MEDIA_TYPE, _schema_text(request, type_name)
        case None:
            raise resource_error(NOT_FOUND, request)
    contents = [{"uri": uri, "mimeType": media_type, "text": text}]
    size, most = len(encode(contents)) + RESPONSE_BYTES, request.settings.mcp.max_bytes
    if size > most:
        raise RpcError(
            INVALID_PARAMS,
            f"The response would have {size:,} bytes, more than mcp.max_bytes allows ({most:,}); use a tool "
            "to read a part of the resource",
        )
    return with_private_cache_hints({"contents": contents}, request.version)


def _document_text(request: Request, document: DocumentUri) -> tuple[str, str]:
    """Return the media type and text of a document's file.

    If the caller may not read files, return the document as Markdown from the REST API instead.
    """
    path = content_path(document.type, document.document_id)
    send, query = request.rest.send, document.version
    source = send("GET", path.replace("/api/", "/source/", 1), query)
    if not source.is_error:
        found = source.body["data"]
        return MEDIA_TYPES.get(PurePosixPath(found["path"]).suffix, "text/plain"), found["text"]
    if source.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise resource_error(source.body, request)
    shown = send("GET", path, query, headers={"Accept": _MARKDOWN})
    if shown.is_error:
        raise resource_error(shown.body, request)
    return _MARKDOWN, shown.body.decode()


def _schema_text(request: Request, type_name: str) -> str:
    call = Call({"type": type_name}, request.rest, request.settings)
    result = run_tool(tool_named("get_schema"), call)
    if result.is_error:
        raise resource_error(result.content, request)
    return encode(result.content).decode()


# --- subscribing ----------------------------------------------------------------------------------


def listen(request: Request) -> Subscription:
    requested = request.params.get("notifications")
    return read_subscription(request.id, requested, request.rest, request.settings)


def subscribe(request: Request) -> Json:
    """Subscribe the client on this connection to changes to a resource."""
    connection = _subscribed(request)
    if len(connection) >= MAX_URIS:
        raise RpcError(
            INVALID_PARAMS, f"The client has subscribed to {MAX_URIS} resources, which is the limit"
        )
    found = parse_watched(request.params.get("uri"), request.rest, request.settings)
    if found is None or found.uid not in visible_types(request.rest):
        raise resource_error(NOT_FOUND, request)
    connection[found.uri] = found
    return {}


def unsubscribe(request: Request) -> Json:
    uri = request.params.get("uri")
    if isinstance(uri, str):
        _subscribed(request).pop(uri, None)
    return {}


def _subscribed(request: Request) -> dict[str, WatchedResource]:
    if request.subscribed is None:  # The server can't send messages to the client.
        raise RpcError(METHOD_NOT_FOUND, f"{request.version.name} has no subscriptions over HTTP")
    return request.subscribed
