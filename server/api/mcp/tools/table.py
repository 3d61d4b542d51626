"""The tools, in the order in which clients see them."""

from collections.abc import Mapping

from server.api.mcp.json_rpc import INVALID_PARAMS, Json, RpcError
from server.api.mcp.tools import checking, history, reading, sources, uploading, writing
from server.api.mcp.tools.tool import Tool

_MODULES = (reading, writing, history, checking, sources, uploading)
# In the order in which an agent needs them.
_ORDER = (
    "site_info", "get_schema", "find", "get", "search", "write", "diff", "check", "history", "restore",
    "read_file", "write_file", "upload",
)  # fmt: skip
TOOLS: tuple[Tool, ...] = tuple(
    sorted((tool for module in _MODULES for tool in module.TOOLS), key=lambda tool: _ORDER.index(tool.name))
)
BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}
DESCRIBED: tuple[Json, ...] = tuple(tool.describe() for tool in TOOLS)


def tool_named(name: object) -> Tool:
    found = BY_NAME.get(name) if isinstance(name, str) else None
    if found is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {str(name)[:100]}; the tools are {', '.join(BY_NAME)}")
    return found
