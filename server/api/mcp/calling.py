"""The methods `tools/list` and `tools/call`."""

import json
from http import HTTPStatus
from typing import Any

from server.api.error_response import failure
from server.api.mcp.arguments import check_arguments
from server.api.mcp.denial import reason_of_denial
from server.api.mcp.json_rpc import INVALID_PARAMS, Json, RpcError, encode
from server.api.mcp.request import Request, cached
from server.api.mcp.tools.table import DESCRIBED, tool_named
from server.api.mcp.tools.tool import RESPONSE_BYTES, Call, RefusedError, Result, Tool, too_large
from server.errors import SUGGESTION, ApiError


def list_tools(request: Request) -> Json:
    return cached({"tools": list(DESCRIBED)}, request.version)


def call_tool(request: Request) -> Json:
    """Run a tool and return its result, which can be an error. Raises RpcError if there is no such tool."""
    tool = tool_named(request.params.get("name"))
    arguments = request.params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, '"arguments" must be an object')
    is_text = not request.version.has_structured_content
    return _run(tool, Call(arguments, request.gateway, request.settings, is_escaped=is_text))


def _run(tool: Tool, call: Call) -> Json:
    try:
        check_arguments(call.arguments, tool.input_schema)
        shown = _shown(tool.run(call), call)
        size = len(encode(shown)) + RESPONSE_BYTES
        if size > call.settings.mcp.max_bytes:
            raise too_large(size)
        return shown
    except RefusedError as error:
        return _shown(_failed(error.reply.body, call), call)
    except ApiError as error:
        body = failure(error).body
        assert isinstance(body, bytes)
        return _shown(_failed(json.loads(body), call), call)


def _shown(result: Result, call: Call) -> Json:
    """Return a result as the client's version of the protocol has it."""
    is_error = {"isError": True} if result.is_error else {}
    if call.is_escaped:
        text = f"{result.line}\n{encode(result.content).decode()}"
        return {"content": [_text(text)], **is_error}
    return {"content": [_text(result.line)], "structuredContent": result.content, **is_error}


def _failed(body: Any, call: Call) -> Result:
    """Return an error as the REST API returns it, with its message as the text."""
    error = body["error"]
    line = " ".join(f"{error['message']} ({error['status']} {error['name']})".split())
    if SUGGESTION in error["details"]:
        line += f'; did you mean "{error["details"][SUGGESTION]}"?'
    if error["status"] == HTTPStatus.FORBIDDEN:
        line += f". {reason_of_denial(call, error)}site_info lists your permissions"
    return Result(line, body, is_error=True)


def _text(line: str) -> Json:
    return {"type": "text", "text": line}
