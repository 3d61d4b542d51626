"""The methods `server/discover`, `initialize` and `ping`."""

from server.api.mcp.json_rpc import Json
from server.api.mcp.protocol import VERSIONS, server_info
from server.api.mcp.request import Request, with_cache_hints

INSTRUCTIONS = (
    "Tools for one site whose documents are files in git. Call site_info first, then get_schema for a type. "
    "By default, writes go to a branch that a person merges; each write returns its diff and new problems. "
    "Reads return what is served: to read what you have written, name the branch as `at`. "
    "To add a translation, use the action update with a locale."
)


def _capabilities(request: Request) -> Json:
    resources: Json = {}
    if request.version.is_stateless:
        resources = {"subscribe": True, "listChanged": True}
    elif request.subscribed is not None:
        resources = {"subscribe": True}
    return {"tools": {}, "resources": resources, "prompts": {}, "completions": {}}


def discover(request: Request) -> Json:
    found = {
        "supportedVersions": list(VERSIONS),
        "capabilities": _capabilities(request),
        "instructions": INSTRUCTIONS,
    }
    return with_cache_hints(found, request.version)


def initialize(request: Request) -> Json:
    return {
        "protocolVersion": request.version.name,
        "capabilities": _capabilities(request),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }


def ping(request: Request) -> Json:
    return {}
