"""The tools `find` and `get` for media files."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import Reply
from server.api.mcp.tools.missing import missing_file_error
from server.api.mcp.tools.tool import MEDIA, Call, Image, Result, body_of, fitting_page, list_summary
from server.errors import LimitError, NotFoundError, ValidationError

# The attributes of a file in a result, unless the call names `fields`.
SHOWN = (
    *("id", "documentId", "name", "url", "mime", "size", "width", "height"),
    *("alternativeText", "caption", "focalPoint"),
)
# The longest edges to try, in pixels, until an image fits into mcp.max_bytes.
_EDGES = (800, 560, 400, 280, 200)
_FORMAT = "jpg"
# Types of images that models accept.
_ACCEPTED = ("image/jpeg", "image/png", "image/webp", "image/gif")


def is_media(call: Call) -> bool:
    """Return whether the argument `type` refers to media files.

    The value `upload` refers to media files, unless a content type has this name.
    """
    return call.text("type") == MEDIA and call.rest.type_named(MEDIA) is None


def find_files(call: Call) -> Result:
    """Run the `find` tool for media files."""
    call.reject(f"with the type {MEDIA}", "status", "locale", "q")
    query = call.values("filters", "fields", "populate", "sort", "at")
    if pages := call.values("page", "pageSize"):
        query["pagination"] = pages
    body = body_of(call.rest.send("GET", "/api/upload/files/page", query))
    meta = body["meta"]["pagination"]
    offset = (meta["page"] - 1) * meta["pageSize"]
    found = [_shown(file, call) for file in body["data"]]
    listed = fitting_page(found, meta["total"], offset, meta["pageSize"], call.max_bytes)
    return Result(list_summary(listed, "media files"), listed)


def get_file(call: Call) -> Result:
    """Run the `get` tool for a media file."""
    call.reject(f"with the type {MEDIA}", "status", "locale")
    key = call.text("documentId")
    if not key:
        raise NotFoundError('"documentId" is missing')
    query = call.values("populate", "at")
    reply = call.rest.send("GET", f"/api/upload/files/{key.replace('/', '%2F')}", query)
    if reply.status == HTTPStatus.NOT_FOUND:
        raise missing_file_error(call, call.values("at"))
    file = body_of(reply)
    if "mime" not in file:  # a response of another operation, such as GET /api/upload/files/page
        raise missing_file_error(call, call.values("at"))
    content = {"data": _shown(file, call)}
    image = _image(file, call) if call.arguments.get("image") else None
    return Result(f"media file {file['name']}", content, image=image)


def _shown(file: Json, call: Call) -> Json:
    if not call.values("fields"):
        return {key: value for key, value in file.items() if key in SHOWN}
    names = call.arguments["fields"]
    names = names if isinstance(names, list) else str(names).split(",")
    kept = ("id", "documentId", *names)
    return file if "*" in names else {key: value for key, value in file.items() if key in kept}


def _image(file: Mapping[str, Any], call: Call) -> Image:
    if not str(file["mime"]).startswith("image/"):
        raise ValidationError(f'{file["name"]} is not an image ({file["mime"]}); omit "image"')
    at, is_found = call.values("at"), False
    max_bytes = (call.max_bytes - _DESCRIPTION_BYTES) * 3 // 4  # Base64 has four characters for three bytes.
    for url, query in _image_urls(file):
        path = unquote(url)
        reply = _request_image(call, path, query | at, max_bytes)
        kind = reply.headers.get("content-type", "") if reply else ""
        if reply is None or reply.status != 200 or kind not in _ACCEPTED:
            continue
        is_found = True
        if not reply.is_too_large:
            return Image(b64encode(reply.body).decode(), kind)
    if is_found:
        raise LimitError(f"The image {file['name']} is larger than mcp.max_bytes allows", "max_bytes")
    raise ValidationError(f'The image {file["name"]} can\'t be shown; omit "image"')


def _request_image(call: Call, path: str, query: Json, max_bytes: int) -> Reply | None:
    if not path.startswith("/"):
        return None
    return call.rest.send("GET", path, query, max_bytes=max_bytes)


_DESCRIPTION_BYTES = 4000  # room for the JSON of the file


def _image_urls(file: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    for edge in _EDGES:
        yield file["url"], {"max-w": str(edge), "max-h": str(edge), "format": _FORMAT}
    made = [one for one in (file.get("formats") or {}).values() if isinstance(one, dict)]
    for one in sorted((file, *made), key=lambda each: -(each.get("width") or 0)):
        edges = one.get("width"), one.get("height")  # unknown if the image could not be read
        if all(edge and edge <= _EDGES[0] for edge in edges) and one.get("url"):
            yield one["url"], {}
