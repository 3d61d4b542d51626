"""Errors of the REST API as errors of the protocol, for methods that are not tools."""

from http import HTTPStatus

from server.api.mcp.gateway import Reply
from server.api.mcp.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, Json, RpcError
from server.api.mcp.protocol import Version


def require_success(reply: Reply) -> Reply:
    """Return a reply of the REST API. Raises RpcError if it is an error."""
    if reply.is_error:
        raise refusal(reply.body)
    return reply


def refusal(body: Json, version: Version | None = None) -> RpcError:
    """Return the error of the protocol for the body of an error response.

    With `version`, the error is about a resource, which has its own code if it does not exist.
    """
    error = body["error"]
    code = INVALID_PARAMS
    if error["status"] == HTTPStatus.NOT_FOUND and version is not None:
        code = version.resource_not_found
    elif error["status"] >= HTTPStatus.INTERNAL_SERVER_ERROR:
        code = INTERNAL_ERROR
    return RpcError(code, f"{error['message']} ({error['status']} {error['name']})", {"error": error})
