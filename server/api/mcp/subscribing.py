"""The methods with which clients subscribe to changes of resources."""

from server.api.mcp.json_rpc import INVALID_PARAMS, METHOD_NOT_FOUND, Json, RpcError
from server.api.mcp.request import Request
from server.api.mcp.resources import NOT_FOUND, refusal_of
from server.api.mcp.subscription import (
    MAX_URIS,
    Subscription,
    Watched,
    read_subscription,
    visible_types,
    watched_of,
)


def listen(request: Request) -> Subscription:
    """Return what a client of a stateless version wants to know. Raises RpcError."""
    wanted = request.params.get("notifications")
    return read_subscription(request.id, wanted, request.gateway, request.settings)


def subscribe(request: Request) -> Json:
    """Add a resource to those that the connection's client watches. Raises RpcError."""
    connection = _subscribed(request)
    if len(connection) >= MAX_URIS:
        raise RpcError(
            INVALID_PARAMS, f"The client has subscribed to {MAX_URIS} resources, which is the limit"
        )
    found = watched_of(request.params.get("uri"), request.gateway, request.settings)
    if found is None or found.uid not in visible_types(request.gateway):
        raise refusal_of(NOT_FOUND, request)
    connection[found.uri] = found
    return {}


def unsubscribe(request: Request) -> Json:
    """Remove a resource from those that the connection's client watches. Raises RpcError."""
    uri = request.params.get("uri")
    if isinstance(uri, str):
        _subscribed(request).pop(uri, None)
    return {}


def _subscribed(request: Request) -> dict[str, Watched]:
    if request.subscribed is None:  # The server can't send messages to the client.
        raise RpcError(METHOD_NOT_FOUND, f"{request.version.name} has no subscriptions over HTTP")
    return request.subscribed
