"""URIs of resources: `bifolio://TYPE/ID` and `bifolio://schema/TYPE`."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from server.api.mcp.json_rpc import INVALID_PARAMS, RpcError
from server.api.mcp.rest_client import RestClient
from server.schema.model import Type

SCHEME = "bifolio://"
SCHEMA = "schema"  # A content type with this name is addressed by its plural name.
DOCUMENT_TEMPLATE = f"{SCHEME}{{type}}/{{documentId}}{{?locale,status}}"
SCHEMA_TEMPLATE = f"{SCHEME}{SCHEMA}/{{type}}"
VERSION_KEYS = ("locale", "status")
MAX_URI_CHARS = 2000


@dataclass(frozen=True, slots=True)
class DocumentUri:
    """URI of a document. `version` contains the locale and status, if given."""

    type: Type
    document_id: str
    version: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SchemaUri:
    """URI of a content type's schema."""

    type_name: str


def read_uri(uri: object, rest: RestClient) -> DocumentUri | SchemaUri | None:
    """Parse a URI, or return None if no resource can have this URI.

    Raises RpcError if the URI is not a string, is too long, or has an invalid query.
    """
    if not isinstance(uri, str) or len(uri) > MAX_URI_CHARS:
        raise RpcError(INVALID_PARAMS, f'"uri" must be a string of at most {MAX_URI_CHARS:,} characters')
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    name, _, document_id = path.partition("/")
    if not uri.startswith(SCHEME) or not name:
        return None
    if name == SCHEMA:
        return SchemaUri(unquote(document_id))
    type_ = rest.type_named(unquote(name))
    if type_ is None or (type_.kind == "singleType") != (document_id == ""):
        return None
    version = dict(parse_qsl(query, keep_blank_values=True))
    for key in version:
        if key not in VERSION_KEYS:
            allowed = " and ".join(VERSION_KEYS)
            raise RpcError(INVALID_PARAMS, f'The URI has the parameter "{key[:100]}"; allowed are {allowed}')
    return DocumentUri(type_, unquote(document_id), version)


def document_uri(type_: Type, document_id: str) -> str:
    name = type_.plural if type_.singular == SCHEMA else type_.singular
    return f"{SCHEME}{name}" if type_.kind == "singleType" else f"{SCHEME}{name}/{quote(document_id)}"


def schema_uri(type_: Type) -> str:
    return f"{SCHEME}{SCHEMA}/{type_.singular}"
