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


def refusal(body: Json) -> RpcError:
    """Return the error of the protocol for the body of an error response."""
    error = body["error"]
    code = INTERNAL_ERROR if error["status"] >= HTTPStatus.INTERNAL_SERVER_ERROR else INVALID_PARAMS
    return RpcError(code, f"{error['message']} ({error['status']} {error['name']})", {"error": error})


def refusal_of_resource(body: Json, uri: object, version: Version) -> RpcError:
    """Return the error for a resource. One that does not exist has a code of its own."""
    found = refusal(body)
    code = version.resource_not_found if body["error"]["status"] == HTTPStatus.NOT_FOUND else found.code
    return RpcError(code, found.message, {**(found.data or {}), "uri": uri})
