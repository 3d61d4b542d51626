"""Client that sends requests to the REST API of the same process, with the permissions of the MCP caller."""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from server.api.entrance import Entrance
from server.api.environ import ADMITTED, EXACT_ID, GONE, OF_AGENT
from server.api.error_response import error_answer
from server.api.mcp.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, Json, RpcError, encode
from server.documents.path_rules import Layout, PathClaim
from server.errors import ApiError, GitError
from server.formats.tree import Plain
from server.query.serialize import untrusted_query_string
from server.schema.model import Type
from server.storage.git.branches import remove_new_branch

log = logging.getLogger("bifolio")

# Keys of the WSGI environ that the requests inherit. Cookies are not among them.
INHERITED = ("HTTP_AUTHORIZATION", "HTTP_HOST", "REMOTE_ADDR", "wsgi.url_scheme", ADMITTED, GONE)
_DEFAULTS: Mapping[str, Any] = {
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "REMOTE_ADDR": "127.0.0.1",
    "wsgi.url_scheme": "http",
    "HTTP_STRAPI_RESPONSE_FORMAT": "v5",
    EXACT_ID: True,
    OF_AGENT: True,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A response from the REST API.

    - `headers`: the header values, by lower-case header name.
    - `body`: the parsed JSON, or bytes if the response is not JSON.
    """

    status: int
    headers: Mapping[str, str]
    body: Any
    is_too_large: bool = False

    @property
    def is_error(self) -> bool:
        return self.status >= HTTPStatus.BAD_REQUEST


@dataclass(frozen=True, slots=True)
class Upload:
    """A request body that is not JSON."""

    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """The parameters that identify a document version in the REST API."""

    type: Type
    document_id: str
    locale: str
    status: str


class RestClient:
    """Client of the REST API that acts for one caller."""

    def __init__(self, app: Entrance, environ: Mapping[str, Any]) -> None:
        self._app = app
        self._environ = {**_DEFAULTS, **{key: environ[key] for key in INHERITED if key in environ}}

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
    ) -> Reply:
        """Send a request. Raises ClientGone if the MCP client has disconnected.

        - `path`: the path, not percent-encoded.
        - `body`: an Upload, or a value that is sent as JSON.
        - `max_bytes`: the maximum size of the response body. A larger body is left out of the reply.
        """
        try:
            query_text = untrusted_query_string(query) if query else ""
        except ApiError as error:
            return error_reply(error)
        sent = Upload(encode(body), "application/json") if not isinstance(body, Upload) else body
        environ = {
            **self._environ,
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path.encode(errors="replace").decode("latin-1"),
            "QUERY_STRING": query_text,
            "wsgi.input": BytesIO(sent.content if body is not None else b""),
            "wsgi.errors": None,
            "wsgi.version": (1, 0),
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
            **{_key(name): value.encode().decode("latin-1") for name, value in (headers or {}).items()},
        }
        if body is not None:
            environ |= {"CONTENT_TYPE": sent.media_type, "CONTENT_LENGTH": str(len(sent.content))}
        # The new context keeps Flask's `g` and `request` of the served request out of the inner one.
        return Context().run(_send, self._app, environ, max_bytes)

    def delete_new_branch(self, name: str, commit: str) -> None:
        """Delete a new branch to which nothing has been written. The caller needs no permission for this."""
        try:
            remove_new_branch(self._app.site.root, name, commit)
        except GitError as error:
            log.warning("the new branch %s of a rejected write can't be deleted: %s", name, error)

    @property
    def root(self) -> Path:
        return self._app.site.root

    @property
    def origin(self) -> str:
        """The server's URL, or "" if no server is running."""
        host, public_url = self._environ.get("HTTP_HOST", ""), self._app.site.state.settings.public_url
        return (public_url or f"{self._environ['wsgi.url_scheme']}://{host}") if host else ""

    def document_versions_at(
        self, paths: Sequence[str], branch: str, *, for_writing: bool = False
    ) -> list[DocumentVersion | None]:
        """Return the document version for each file path, or None for a path that no document can have.

        A returned version might not exist, and the caller might not be allowed to see it.
        Raises UnauthorizedError or ForbiddenError if the caller may not read files.
        """
        environ = {**self._environ, "REQUEST_METHOD": "PUT" if for_writing else "GET"}
        state = self._app.source_state(environ, branch, to_write=for_writing)
        layout = Layout(state.schema, state.settings)
        claims = {path: layout.claim(path) for path in paths}
        uids = {claim.type.uid for claim in claims.values() if claim}
        versions = (d for uid in uids for d in state.snapshot.tables[uid].versions.values())
        ids = {document.path: document.document_id for document in versions if document.path in claims}
        return [_version_of(claims[path], ids.get(path)) for path in paths]

    def type_named(self, name: str) -> Type | None:
        """Return the content type with this API id or uid, or None if there is no such type.

        The caller may lack the permission to see the type.
        """
        types = self._app.site.state.schema.content_types
        return next((t for t in types if name in (t.singular, t.plural, t.uid)), None)


def _version_of(claim: PathClaim | None, document_id: str | None) -> DocumentVersion | None:
    if claim is None:
        return None
    status = "draft" if claim.draft else "published"
    return DocumentVersion(claim.type, document_id or claim.document_id, claim.locale, status)


def _key(header: str) -> str:
    return f"HTTP_{header.upper().replace('-', '_')}"


def content_path(type_: Type, document_id: str = "", action: str = "") -> str:
    """Return the REST path of a type, document or action. Slashes in the id are replaced with `%2F`."""
    name = type_.plural if type_.kind == "collectionType" else type_.singular
    path = "/".join(part for part in ("/api", name, document_id.replace("/", "%2F")) if part)
    return f"{path}/actions/{action}" if action else path


def quoted(path: str) -> str:
    return quote(path, safe="/{}")


def error_reply(error: ApiError) -> Reply:
    body = error_answer(error).body
    assert isinstance(body, bytes)
    return Reply(error.status, {"content-type": "application/json"}, json.loads(body))


def _send(app: Callable[..., Iterable[bytes]], environ: dict[str, Any], max_bytes: int | None) -> Reply:
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        started.append((status, headers))

    parts = app(environ, start_response)
    try:
        content = _read_at_most(parts, max_bytes)
    finally:
        close = getattr(parts, "close", None)
        if close is not None:
            close()
    status, sent = started[-1]
    headers = {name.lower(): value for name, value in sent}
    if content is None:
        return Reply(int(status[:3]), headers, b"", is_too_large=True)
    is_json = headers.get("content-type", "").startswith("application/json")
    # Numbers with a fraction keep all their digits.
    body = json.loads(content, parse_float=Plain) if is_json and content else content
    return Reply(int(status[:3]), headers, body)


def _read_at_most(parts: Iterable[bytes], max_bytes: int | None) -> bytes | None:
    read, size = list[bytes](), 0
    for part in parts:
        size += len(part)
        if max_bytes is not None and size > max_bytes:
            return None
        read.append(part)
    return b"".join(read)


def require_success(reply: Reply) -> Reply:
    if reply.is_error:
        raise rpc_error(reply.body)
    return reply


def rpc_error(body: Json) -> RpcError:
    error = body["error"]
    code = INTERNAL_ERROR if error["status"] >= HTTPStatus.INTERNAL_SERVER_ERROR else INVALID_PARAMS
    return RpcError(code, f"{error['message']} ({error['status']} {error['name']})", {"error": error})
