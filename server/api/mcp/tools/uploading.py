"""The tool upload, which adds a file to the media library."""

import json
import secrets
from base64 import b64decode
from binascii import Error as Base64Error
from importlib import import_module
from urllib.parse import unquote, urlsplit

from server.api.mcp.gateway import Upload
from server.api.mcp.json_rpc import Json
from server.api.mcp.tools.destination import (
    about_write,
    destination_of_write,
    new_branch,
    query_of,
)
from server.api.mcp.tools.schemas import BRANCH, OBJECT, TEXT, WRITTEN
from server.api.mcp.tools.tool import Call, Result, Tool, body_of
from server.errors import ForbiddenError, ValidationError

_SHOWN = ("id", "documentId", "name", "url", "mime", "size", "width", "height", "alternativeText")
_BINARY = "application/octet-stream"


def upload(call: Call) -> Result:
    """Run the tool upload."""
    destination = destination_of_write(call)
    access = body_of(call.gateway.send("GET", "/access"))["data"]
    if "upload" not in access["permissions"].get("upload", ()):  # before a branch is made or a URL fetched
        raise ForbiddenError()
    content, name, media_type = _file(call)
    info = {"name": name, **call.values("alternativeText")}
    sent = _form(content, name, media_type, info)
    query = query_of(destination, dry_run=False)
    with new_branch(call, destination):
        reply = call.gateway.send("POST", "/api/upload", query, sent)
        [made] = body_of(reply)
    shown = {key: made[key] for key in _SHOWN if made.get(key) is not None}
    where = about_write(call, destination, reply.headers.get("bifolio-commit", ""))
    return Result(f"{made['name']} has the documentId {made['documentId']}.", {"data": shown, **where})


def _file(call: Call) -> tuple[bytes, str, str]:
    """Return the content, name and media type of the file. Raises ApiError."""
    data, url, name = call.arguments.get("data"), call.text("url"), call.text("name")
    if (data is None) == (not url):
        raise ValidationError('Give either "data" or "url"')
    if data is not None:
        if not name:
            raise ValidationError('"name" is missing; it needs an ending such as .jpg')
        try:
            return b64decode(data, validate=True), name, _BINARY
        except (Base64Error, ValueError) as error:
            raise ValidationError('"data" is not base64') from error
    settings = call.settings
    fetch = import_module("server.api.mcp.fetch").fetch
    found, media_type = fetch(
        url, settings.mcp.upload_from, settings.webhooks_allow, settings.api.upload_limit
    )
    return found, name or unquote(urlsplit(url).path.rpartition("/")[2]) or "file", media_type or _BINARY


def _form(content: bytes, name: str, media_type: str, info: Json) -> Upload:
    """Return a form with one file and its description, as browsers send it."""
    boundary = secrets.token_hex(16)
    safe = "".join(c if c.isprintable() and c not in '"\\' else "_" for c in name)
    kind = media_type if media_type.isascii() and media_type.isprintable() else _BINARY
    parts = (
        ("fileInfo", "", json.dumps(info).encode()),
        ("files", f'; filename="{safe}"\r\nContent-Type: {kind}', content),
    )
    body = b"".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"{more}\r\n\r\n'.encode()
        + value
        + b"\r\n"
        for field, more, value in parts
    )
    return Upload(body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}")


TOOLS = (
    Tool(
        "upload",
        "Upload a file",
        "Add a file to the media library, from base64 or from a URL of an allowed host.",
        {
            "data": {"type": "string", "description": "Base64"},
            "url": TEXT,
            "name": {"type": "string", "description": "File name with its ending"},
            "alternativeText": {"type": "string", "description": "What an image shows"},
            "branch": BRANCH,
        },
        {"data": OBJECT, **WRITTEN},
        upload,
        optional=tuple(WRITTEN),
        is_open_world=True,
    ),
)
