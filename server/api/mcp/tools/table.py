"""The table of tools, in the order in which clients see them."""

from collections.abc import Mapping

from server.api.mcp.json_rpc import INVALID_PARAMS, Json, RpcError
from server.api.mcp.tools import reading
from server.api.mcp.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (*reading.TOOLS,)
BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}
DESCRIBED: tuple[Json, ...] = tuple(tool.describe() for tool in TOOLS)


def tool_named(name: object) -> Tool:
    """Return a tool. Raises RpcError if there is none with this name."""
    found = BY_NAME.get(name) if isinstance(name, str) else None
    if found is None:
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {str(name)[:100]}; the tools are {', '.join(BY_NAME)}")
    return found
