"""The methods `tools/list` and `tools/call`."""

from typing import Any

from server.api.mcp.arguments import check_arguments
from server.api.mcp.explanations import explain
from server.api.mcp.json_rpc import INVALID_PARAMS, Json, RpcError, encode
from server.api.mcp.request import Request, with_cache_hints
from server.api.mcp.rest_client import error_reply
from server.api.mcp.tools.table import DESCRIBED, tool_named
from server.api.mcp.tools.tool import RESPONSE_BYTES, Call, Image, RestRequestError, Result, Tool, too_large
from server.config.mcp import ResultText
from server.errors import ABOUT_BRANCH, CHECKED_OUT, ApiError

_MAX_REPEATS = 3
_MAX_NOTE_CHARS = 1000
_LEFT_OUT = "Long values are left out."
_IDS = ("id", "documentId", "name", "url", "locale")


def list_tools(request: Request) -> Json:
    return with_cache_hints({"tools": list(DESCRIBED)}, request.version)


def call_tool(request: Request) -> Json:
    """Run a tool, and return its result or error. Raises RpcError for an unknown tool."""
    tool = tool_named(request.params.get("name"))
    arguments = request.params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, '"arguments" must be an object')
    is_text = not request.version.has_structured_content
    call = Call(arguments, request.rest, request.settings, json_as_text=is_text)
    result = run_tool(tool, call)
    if not result.is_error and (size := _limited_size(result, call)) > call.settings.mcp.max_bytes:
        result = _failure(too_large(size), call) if tool.is_read_only else _shortened(result)
    return _encode_result(result, call)


def run_tool(tool: Tool, call: Call) -> Result:
    """Run a tool, and return its result.

    If the REST API responds with an error, the result describes the error.
    """
    try:
        check_arguments(call.arguments, tool.input_schema)
        return _run_with_retry(tool, call)
    except RestRequestError as error:
        return _error_result(error.reply.body, call)
    except ApiError as error:
        return _failure(error, call)


def _run_with_retry(tool: Tool, call: Call) -> Result:
    """Run a tool. If the agent's branch is deleted or checked out during the run, run the tool again."""
    for _ in range(_MAX_REPEATS):
        try:
            return tool.run(call)
        except RestRequestError as error:
            details = error.reply.body["error"]["details"] or {}
            if call.text("branch") or not details.keys() & {CHECKED_OUT, ABOUT_BRANCH}:
                raise
    return tool.run(call)


def _encode_result(result: Result, call: Call) -> Json:
    """Encode a result as the client's protocol version requires.

    Errors are encoded as text, because structured content must match the tool's output schema.
    """
    image = [_image(result.image)] if result.image else []
    if not result.is_error and not call.json_as_text:
        is_summary = call.settings.mcp.text is ResultText.SUMMARY
        text = result.summary if is_summary else encode(result.content).decode()
        return {"content": [_text(text), *image], "structuredContent": result.content}
    is_error = {"isError": True} if result.is_error else {}
    text = f"{result.summary}\n{encode(result.content).decode()}"
    return {"content": [_text(text), *image], **is_error}


def _limited_size(result: Result, call: Call) -> int:
    content = encode(result.content)
    text = f"{result.summary}\n{content.decode()}" if call.json_as_text else result.summary
    image = len(result.image.data) if result.image else 0
    return len(encode(text)) + (0 if call.json_as_text else len(content)) + image + RESPONSE_BYTES


def _shortened(result: Result) -> Result:
    """Return a write's result without its long values, so that the response is small enough.

    An error response would make the agent repeat the write.
    """
    content = {
        **result.content,
        "note": f"{result.content.get('note', '')[:_MAX_NOTE_CHARS]} {_LEFT_OUT}".strip(),
    }
    if "data" in content:
        content["data"] = {key: content["data"][key] for key in _IDS if key in content["data"]}
    return Result(f"{result.summary[:_MAX_NOTE_CHARS]} {_LEFT_OUT}", content)


def _failure(error: ApiError, call: Call) -> Result:
    return _error_result(error_reply(error).body, call)


def _error_result(body: Any, call: Call) -> Result:
    return Result(explain(call, body["error"]), body, is_error=True)


def _image(image: Image) -> Json:
    return {"type": "image", "data": image.data, "mimeType": image.media_type}


def _text(line: str) -> Json:
    return {"type": "text", "text": line}
