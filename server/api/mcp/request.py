"""A request as the functions of the methods receive it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from server.api.mcp.gateway import Gateway
from server.api.mcp.json_rpc import Json
from server.api.mcp.protocol import CACHE_MS, Version
from server.config.model import Settings


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its parameters and version, and what its method may use."""

    params: Mapping[str, Any]
    version: Version
    gateway: Gateway
    settings: Settings


@dataclass(frozen=True, slots=True)
class Method:
    """A row in the table of methods.

    - `stateless`, `with_handshake`: whether versions without and with an `initialize` request have it.
    """

    run: Callable[[Request], Json]
    stateless: bool = True
    with_handshake: bool = True

    def exists_in(self, version: Version) -> bool:
        return self.stateless if version.is_stateless else self.with_handshake


def cached(result: Json, version: Version) -> Json:
    """Add the cache hints that stateless versions require. The result must be the same for all callers."""
    return {**result, "ttlMs": CACHE_MS, "cacheScope": "public"} if version.is_stateless else result


def private(result: Json, version: Version) -> Json:
    """Add the cache hints for a result that depends on the caller, and must be requested each time."""
    return {**result, "ttlMs": 0, "cacheScope": "private"} if version.is_stateless else result
