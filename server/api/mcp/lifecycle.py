"""The methods that tell a client what the server supports: server/discover, initialize and ping."""

from collections.abc import Mapping

from server.api.mcp.json_rpc import Json
from server.api.mcp.protocol import VERSIONS, server_info
from server.api.mcp.request import Request, cached

# What the server supports. Modules that add methods add a row.
CAPABILITIES: Mapping[str, Json] = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
INSTRUCTIONS = (
    "Tools for one site whose documents are files in git. Call site_info first, then get_schema for a type. "
    "By default, writes go to a branch that a person merges; each write returns its diff and new problems."
)


def discover(request: Request) -> Json:
    found = {
        "supportedVersions": list(VERSIONS),
        "capabilities": dict(CAPABILITIES),
        "instructions": INSTRUCTIONS,
    }
    return cached(found, request.version)


def initialize(request: Request) -> Json:
    return {
        "protocolVersion": request.version.name,
        "capabilities": dict(CAPABILITIES),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }


def ping(request: Request) -> Json:
    return {}
