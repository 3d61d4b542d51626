"""The table of protocol methods, and the dispatch of messages to them."""

import logging
from collections.abc import Mapping

from server.api.mcp import calling, completion, lifecycle, prompting, resources
from server.api.mcp.json_rpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Json,
    Message,
    RpcError,
    result_of,
)
from server.api.mcp.protocol import INITIALIZE, SERVER_KEY, Version, server_info
from server.api.mcp.request import Method, Request
from server.api.mcp.rest_client import RestClient
from server.api.mcp.subscription import Subscription, WatchedResource
from server.config.model import Settings
from server.errors import ClientGone

log = logging.getLogger("bifolio")

METHODS: Mapping[str, Method] = {
    "server/discover": Method(lifecycle.discover, in_handshake=False),
    INITIALIZE: Method(lifecycle.initialize, in_stateless=False),
    "ping": Method(lifecycle.ping, in_stateless=False),
    "tools/list": Method(calling.list_tools),
    "tools/call": Method(calling.call_tool),
    "resources/list": Method(resources.list_resources),
    "resources/templates/list": Method(resources.list_templates),
    "resources/read": Method(resources.read_resource),
    "prompts/list": Method(prompting.list_prompts),
    "prompts/get": Method(prompting.get_prompt),
    "subscriptions/listen": Method(resources.listen, in_handshake=False),
    "resources/subscribe": Method(resources.subscribe, in_stateless=False),
    "resources/unsubscribe": Method(resources.unsubscribe, in_stateless=False),
    "completion/complete": Method(completion.complete),
}


def respond(
    message: Message,
    version: Version,
    rest: RestClient,
    settings: Settings,
    subscribed: dict[str, WatchedResource] | None = None,
) -> Json | Subscription | None:
    """Return the response to a message, or None if the message needs no response.

    Raises RpcError if the method is unknown or fails, and ClientGone if the client has disconnected.
    """
    if message.id is None or not message.method:
        return None
    method = METHODS.get(message.method)
    if method is None or not method.exists_in(version):
        raise RpcError(METHOD_NOT_FOUND, f"Unknown method: {message.method[:100]}", id_=message.id)
    try:
        result = method.run(Request(message.id, message.params, version, rest, settings, subscribed))
    except RpcError as error:
        raise RpcError(error.code, error.message, error.data, message.id) from error
    except ClientGone:
        raise
    except Exception as error:
        log.exception("a request of the Model Context Protocol failed with an unexpected error")
        raise RpcError(INTERNAL_ERROR, "Internal error", id_=message.id) from error
    if isinstance(result, Subscription):
        return result
    if version.is_stateless:
        meta = {**result.get("_meta", {}), SERVER_KEY: server_info()}
        result = {"resultType": "complete", **result, "_meta": meta}
    return result_of(message.id, result)
