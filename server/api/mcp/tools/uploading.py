"""The `upload` tool."""

import re
import secrets
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib import import_module
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from server.api.mcp.json_rpc import Json, encode
from server.api.mcp.rest_client import Reply, Upload
from server.api.mcp.tools.checking import new_problems, problems_before
from server.api.mcp.tools.destination import (
    branch_for_write,
    describe_write,
    read_query,
    write_destination,
    write_query,
)
from server.api.mcp.tools.media import SHOWN
from server.api.mcp.tools.missing import missing_file_error
from server.api.mcp.tools.schemas import BRANCH, OBJECT, TEXT, WRITTEN
from server.api.mcp.tools.tool import Call, Result, Tool, body_of, cut_lists
from server.errors import ForbiddenError, ValidationError
from server.storage.media import actual_extension, extension_of, mime_type
from server.write.uploads.uploading import ENDING

_DESCRIPTION = ("name", "alternativeText", "caption", "focalPoint")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.=-]+)*;base64,", re.ASCII)
_MAX_PREFIX_CHARS = 200  # of a data URL
_BINARY = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class _File:
    """A file to upload. If its name was changed, `note` describes the change."""

    content: bytes
    name: str
    media_type: str
    note: str = ""


def upload(call: Call) -> Result:
    """Run the `upload` tool, which adds a file or, if `documentId` is given, changes a file's description."""
    destination = write_destination(call)
    access = body_of(call.rest.send("GET", "/access"))["data"]
    if "upload" not in access["permissions"].get("upload", ()):  # before a branch is made or a URL fetched
        is_public = access["caller"]["kind"] == "public"
        raise ForbiddenError(details={} if is_public else {"permission": "upload.upload"})
    file = None if call.text("documentId") else _read_upload(call)
    info = _file_info(call) | ({"name": file.name} if file else {})
    query = write_query(destination, dry_run=False)
    if not file:
        query["id"] = call.text("documentId")
    before = problems_before(call, destination)
    with branch_for_write(call, destination):
        reply = call.rest.send("POST", "/api/upload", query, _encode_form(file, info))
        if reply.status == HTTPStatus.NOT_FOUND and not file:
            raise missing_file_error(call, read_query(destination))
        made = body_of(_name_arguments(reply))
    [made] = made if isinstance(made, list) else [made]
    content = {
        "data": {key: made[key] for key in SHOWN if made.get(key) is not None},
        "problems": new_problems(call, destination, before),
        **describe_write(call, destination, reply.headers.get("bifolio-commit", "")),
        **({"note": file.note} if file and file.note else {}),
    }
    line = f"{made['name']} has the documentId {made['documentId']}."
    return Result(f"{line} {content['note']}" if "note" in content else line, cut_lists(content, call))


def _name_arguments(reply: Reply) -> Reply:
    """Remove the parameter `fileInfo`, which the tool does not have, from an error's paths and messages."""
    if reply.status != HTTPStatus.BAD_REQUEST:
        return reply
    error = reply.body["error"]
    told = {**error, "message": error["message"].replace("fileInfo.", "")}
    faults = (error["details"] or {}).get("errors")
    if faults:
        told["details"] = {
            **error["details"],
            "errors": [
                {
                    **fault,
                    "path": [key for key in fault["path"] if key != "fileInfo"],
                    "message": fault["message"].replace("fileInfo.", ""),
                }
                for fault in faults
            ],
        }
    return replace(reply, body={**reply.body, "error": told})


def _file_info(call: Call) -> Json:
    """Return the file's description, such as its caption, from the call's arguments."""
    info = {key: call.arguments[key] for key in _DESCRIPTION if key in call.arguments}
    if not call.text("documentId"):
        return {key: value for key, value in info.items() if value is not None}
    if call.arguments.get("data") is not None or call.text("url"):
        raise ValidationError('With "documentId", the content can\'t be replaced: omit "data" and "url"')
    if not info:
        raise ValidationError(f"Nothing to change: give at least one of {', '.join(_DESCRIPTION)}")
    if "name" in info:
        _check_name(info["name"])
    return info


def _read_upload(call: Call) -> _File:
    data, url, name = call.arguments.get("data"), call.text("url"), call.text("name")
    if (data is None) == (not url):
        raise ValidationError('Give either "data" or "url", or the "documentId" of an existing file')
    if data is not None:
        if not name:
            raise ValidationError('"name" is missing; it needs an extension such as .jpg')
        _check_name(name)
        try:
            kind, content = split_data_url(data)
            return _with_matching_extension(_File(b64decode(content, validate=True), name, kind))
        except (Base64Error, ValueError) as error:
            raise ValidationError('"data" is not base64') from error
    _check_name(name)
    settings = call.settings
    fetch = import_module("server.api.mcp.fetch").fetch
    found, media_type = fetch(
        url, settings.mcp.upload_from, settings.webhooks_allow, settings.api.upload_limit
    )
    name = name or unquote(urlsplit(url).path).rpartition("/")[2] or "file"
    return _with_matching_extension(_File(found, name, media_type or _BINARY))


def split_data_url(data: str) -> tuple[str, str]:
    """Split a data URL into its media type and its base64 text. `data` can also be plain base64.

    If `data` does not name a media type, return `application/octet-stream`.
    """
    found = _DATA_URL.match(data[:_MAX_PREFIX_CHARS])
    return (found[1] or _BINARY, data[found.end() :]) if found else (_BINARY, data)


def _check_name(name: str) -> None:
    if "/" in name or "\\" in name:
        example = re.split(r"[/\\]", name)[-1][:100] or "fog.jpg"
        raise ValidationError(f'"name" must be a file name without folders, such as {example}')


def _with_matching_extension(file: _File) -> _File:
    suffix = PurePosixPath(file.name).suffix
    ending = suffix if ENDING.fullmatch(suffix) else ""
    right = actual_extension(file.content, ending or extension_of(file.media_type.partition(";")[0].strip()))
    if not right:
        raise ValidationError('The type of the content is unknown; give "name" an extension such as .pdf')
    if right == ending:
        return file
    name = file.name.removesuffix(ending) + right
    done = f"the extension {ending} was replaced with {right}" if ending else f"{right} was added to the name"
    return replace(file, name=name, note=f"The content is {mime_type(name)}, so {done}.")


def _encode_form(file: _File | None, info: Json) -> Upload:
    boundary = secrets.token_hex(16)
    parts = [("fileInfo", "", encode(info))]
    if file:
        safe = "".join(c if c.isprintable() and c not in '"\\' else "_" for c in file.name)
        is_plain = file.media_type.isascii() and file.media_type.isprintable()
        kind = file.media_type if is_plain else _BINARY
        parts.append(("files", f'; filename="{safe}"\r\nContent-Type: {kind}', file.content))
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
        "Add a file to the media library, from base64 or a URL of an allowed host. With documentId: "
        "change that file's name, texts or focalPoint.",
        {
            "data": {"type": "string", "description": "Base64"},
            "url": TEXT,
            "documentId": {"type": "string", "description": "The file to change, instead of adding one"},
            "name": {"type": "string", "description": "File name with its extension"},
            "alternativeText": {"type": "string", "description": "What an image shows"},
            "caption": TEXT,
            "focalPoint": {"type": "object", "description": "x and y in percent"},
            "branch": BRANCH,
        },
        {"data": OBJECT, **WRITTEN},
        upload,
        optional=tuple(WRITTEN),
        is_open_world=True,
    ),
)
