"""The HTTP transport of the Model Context Protocol, `POST /mcp`."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from server.api.entrance import Entrance
from server.api.environ import is_loopback
from server.api.mcp.dispatcher import respond
from server.api.mcp.json_rpc import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Message,
    RpcError,
    encode,
    error_of,
    parse,
)
from server.api.mcp.protocol import (
    METHOD_HEADER,
    NAME_HEADER,
    VERSION_HEADER,
    VERSION_KEY,
    WITHOUT_HEADER,
    Version,
    require_supported,
    version_of,
)
from server.api.mcp.rest_client import RestClient
from server.api.mcp.subscription import Subscription, SubscriptionFrames
from server.config.model import Settings

# The parameter that the header Mcp-Name repeats, by method.
NAMED_BY: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
JSON_TYPE = "application/json"
_ENCODED = ("=?base64?", "?=")


def handle_post(
    app: Entrance, environ: Mapping[str, Any], data: bytes, settings: Settings
) -> tuple[int, bytes | SubscriptionFrames]:
    """Handle a POST request, and return the status and body of the response.

    The body is b"" if the message needs no response, and an event stream for `subscriptions/listen`.
    """
    try:
        check_origin(environ, settings)
        if environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != JSON_TYPE:
            raise RpcError(INVALID_REQUEST, f"The Content-Type must be {JSON_TYPE}")
        message = parse(data, settings.api.limits.values)
        check_version_header(message, environ)
        header = _read_header(environ, VERSION_HEADER)
        default = WITHOUT_HEADER if header is None else require_supported(header, message)
        version = version_of(message, default)
        if version.is_stateless and message.id is not None:
            check_headers(message, version, environ)
    except RpcError as error:
        return 403 if isinstance(error, ForeignOriginError) else 400, encode(error_of(error))
    try:
        response = respond(message, version, RestClient(app, environ), settings)
    except RpcError as error:
        status = version.unknown_method_status if error.code == METHOD_NOT_FOUND else 200
        return status, encode(error_of(error))
    if isinstance(response, Subscription):
        return 200, SubscriptionFrames(response)
    return (202, b"") if response is None else (200, encode(response))


class ForeignOriginError(RpcError):
    """Error for a request from a page of another website."""


def check_origin(environ: Mapping[str, Any], settings: Settings) -> None:
    """Raise ForeignOriginError if a browser sent the request from a page whose origin is not allowed.

    The origins listed in `api.cors` are allowed, but `*` has no effect here. If the Host header is a loopback
    address, loopback origins are allowed, too.
    """
    origin = environ.get("HTTP_ORIGIN")
    if origin is None or origin in settings.api.cors:
        return
    if is_loopback(_host_of(origin)) and is_loopback(_host_of(f"//{environ.get('HTTP_HOST', '')}")):
        return
    raise ForeignOriginError(
        INVALID_REQUEST, f"The origin {origin[:100]} is not allowed; add it to api.cors in site.yaml"
    )


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def check_version_header(message: Message, environ: Mapping[str, Any]) -> None:
    meta, header = message.params.get("_meta"), _read_header(environ, VERSION_HEADER)
    named = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    if header is not None and isinstance(named, str) and header != named:
        raise _mismatch(VERSION_HEADER, header, named, message)


def check_headers(message: Message, version: Version, environ: Mapping[str, Any]) -> None:
    """Raise RpcError if a required header is missing, or differs from its counterpart in the message."""
    wanted = {VERSION_HEADER: version.name, METHOD_HEADER: message.method}
    if message.method in NAMED_BY:
        wanted[NAME_HEADER] = str(message.params.get(NAMED_BY[message.method], ""))
    for name, value in wanted.items():
        sent = _read_header(environ, name)
        if sent is None:
            raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is missing", id_=message.id)
        found = _decode_header(sent) if name == NAME_HEADER else sent
        if found != value:
            raise _mismatch(name, str(found), value, message)


def _mismatch(name: str, sent: str, value: str, message: Message) -> RpcError:
    said = f"{name} is '{sent[:100]}', but the body says '{value[:100]}'"
    return RpcError(HEADER_MISMATCH, f"Header mismatch: {said}", id_=message.id)


def _decode_header(value: str) -> str | None:
    start, end = _ENCODED
    if not (value.startswith(start) and value.endswith(end)):
        return value
    try:
        return b64decode(value[len(start) : -len(end)], validate=True).decode()
    except (Base64Error, UnicodeDecodeError):
        return None


def _read_header(environ: Mapping[str, Any], name: str) -> str | None:
    found: str | None = environ.get(f"HTTP_{name.upper().replace('-', '_')}")
    return None if found is None else found.strip(" \t")
