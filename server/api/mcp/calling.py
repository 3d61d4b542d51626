"""The methods `tools/list` and `tools/call`."""

import json
from http import HTTPStatus
from typing import Any

from server.api.error_response import failure
from server.api.mcp.arguments import check_arguments
from server.api.mcp.json_rpc import INVALID_PARAMS, Json, RpcError, encode
from server.api.mcp.request import Request, cached
from server.api.mcp.tools.table import DESCRIBED, tool_named
from server.api.mcp.tools.tool import Call, RefusedError, Result, Tool, too_large
from server.errors import ApiError


def list_tools(request: Request) -> Json:
    return cached({"tools": list(DESCRIBED)}, request.version)


def call_tool(request: Request) -> Json:
    """Run a tool and return its result, which can be an error. Raises RpcError if there is no such tool."""
    tool = tool_named(request.params.get("name"))
    arguments = request.params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, '"arguments" must be an object')
    result = _run(tool, Call(arguments, request.gateway, request.settings))
    content, is_error = result.content, {"isError": True} if result.is_error else {}
    if not request.version.has_structured_content:
        text = f"{result.line}\n{encode(content).decode()}"
        return {"content": [_text(text)], **is_error}
    return {"content": [_text(result.line)], "structuredContent": content, **is_error}


def _run(tool: Tool, call: Call) -> Result:
    try:
        check_arguments(call.arguments, tool.input_schema)
        result = tool.run(call)
        size = len(encode(result.content)) + len(result.line.encode())
        if size > call.max_bytes:
            raise too_large(size)
        return result
    except RefusedError as error:
        return _failed(error.reply.body)
    except ApiError as error:
        shown = failure(error).body
        assert isinstance(shown, bytes)
        return _failed(json.loads(shown))


def _failed(body: Any) -> Result:
    """Return an error as the REST API returns it, with its message as the text."""
    error = body["error"]
    line = " ".join(f"{error['message']} ({error['status']} {error['name']})".split())
    if error["status"] == HTTPStatus.FORBIDDEN:
        line += ". site_info lists your permissions"
    return Result(line, body, is_error=True)


def _text(line: str) -> Json:
    return {"type": "text", "text": line}
