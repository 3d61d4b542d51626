"""Data classes for requests and for the methods that handle them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from server.api.mcp.json_rpc import Json, RequestId, RpcError
from server.api.mcp.protocol import CACHE_MS, Version
from server.api.mcp.rest_client import RestClient, rpc_error
from server.api.mcp.subscription import Subscription, WatchedResource
from server.config.model import Settings

NOT_FOUND: Json = {"error": {"status": 404, "name": "NotFoundError", "message": "Resource not found"}}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a method, together with the objects that the method needs.

    `subscribed` maps URIs to subscribed resources. It is None if the connection can't receive notifications.
    """

    id: RequestId
    params: Mapping[str, Any]
    version: Version
    rest: RestClient
    settings: Settings
    subscribed: dict[str, WatchedResource] | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the protocol. `run` raises RpcError if the request is invalid or can't be fulfilled.

    - `in_stateless`: whether the method exists in the stateless versions of the protocol.
    - `in_handshake`: whether it exists in the versions that begin with a handshake (`initialize`).
    """

    run: Callable[[Request], Json | Subscription]
    in_stateless: bool = True
    in_handshake: bool = True

    def exists_in(self, version: Version) -> bool:
        return self.in_stateless if version.is_stateless else self.in_handshake


def with_cache_hints(result: Json, version: Version) -> Json:
    return {**result, "ttlMs": CACHE_MS, "cacheScope": "public"} if version.is_stateless else result


def with_private_cache_hints(result: Json, version: Version) -> Json:
    return {**result, "ttlMs": 0, "cacheScope": "private"} if version.is_stateless else result


def resource_error(body: Json, request: Request) -> RpcError:
    found = rpc_error(body)
    is_missing = body["error"]["status"] == HTTPStatus.NOT_FOUND
    code = request.version.resource_not_found if is_missing else found.code
    return RpcError(code, found.message, {**(found.data or {}), "uri": request.params.get("uri")})
