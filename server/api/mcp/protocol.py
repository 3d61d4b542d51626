"""The supported versions of the Model Context Protocol."""

from collections.abc import Mapping
from dataclasses import dataclass

from server import __version__
from server.api.mcp.json_rpc import (
    INVALID_PARAMS,
    UNSUPPORTED_VERSION,
    Json,
    Message,
    RpcError,
)

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
INITIALIZE = "initialize"
# How long clients may cache lists that change only when the server is updated.
CACHE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Version:
    """A version of the protocol.

    - `is_stateless`: whether every request names the protocol version. If False, only `initialize` names it.
    - `has_structured_content`: whether the result of a tool has a separate field for JSON.
    - `unknown_method_status`: the HTTP status of the response to an unknown method.
    - `resource_not_found`: the error code for a missing resource.
    """

    name: str
    is_stateless: bool = False
    has_structured_content: bool = True
    unknown_method_status: int = 200
    resource_not_found: int = -32002


STATELESS = Version(
    "2026-07-28", is_stateless=True, unknown_method_status=404, resource_not_found=INVALID_PARAMS
)
LATEST_WITH_HANDSHAKE = Version("2025-11-25")
# The version of a client that sends no header. Later versions require the header.
WITHOUT_HEADER = Version("2025-03-26", has_structured_content=False)
VERSIONS: Mapping[str, Version] = {
    version.name: version
    for version in (
        STATELESS,
        LATEST_WITH_HANDSHAKE,
        Version("2025-06-18"),
        WITHOUT_HEADER,
        Version("2024-11-05", has_structured_content=False),
    )
}


def version_of(message: Message, default: Version) -> Version:
    """Return the protocol version that a request names, or `default` if it names none.

    Raises RpcError if the version is not supported, or is required but missing.
    """
    meta = message.params.get("_meta")
    if isinstance(meta, dict) and VERSION_KEY in meta:
        requested = meta[VERSION_KEY]
        version = require_supported(requested, message)
        if not isinstance(meta.get(CAPABILITIES_KEY), dict):
            raise RpcError(INVALID_PARAMS, f'_meta must contain "{CAPABILITIES_KEY}"', id_=message.id)
        return version
    if message.method == INITIALIZE:
        return negotiate(message.params.get("protocolVersion"))
    if default.is_stateless or message.method == "server/discover":
        raise RpcError(INVALID_PARAMS, f'_meta must contain "{VERSION_KEY}"', id_=message.id)
    return default


def negotiate(requested: object) -> Version:
    found = VERSIONS.get(requested) if isinstance(requested, str) else None
    return found if found and not found.is_stateless else LATEST_WITH_HANDSHAKE


def require_supported(requested: object, message: Message) -> Version:
    found = VERSIONS.get(requested) if isinstance(requested, str) else None
    if found is None:
        data = {"supported": list(VERSIONS), "requested": str(requested)[:100]}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data, message.id)
    return found


def server_info() -> Json:
    return {"name": "bifolio", "version": __version__}
