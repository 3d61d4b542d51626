"""Subscriptions to resources, and their notifications."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from server.api.mcp.json_rpc import (
    INVALID_PARAMS,
    Json,
    RequestId,
    RpcError,
    encode,
    result_of,
)
from server.api.mcp.protocol import SERVER_KEY, SUBSCRIPTION_KEY, server_info
from server.api.mcp.rest_client import RestClient, require_success
from server.api.mcp.uris import DocumentUri, read_uri
from server.auth.permissions import Actor
from server.config.model import Settings
from server.documents.document import DRAFT
from server.events.model import Event
from server.events.reading import Selection

MAX_SUBSCRIPTIONS = 20  # of one client over stdio
MAX_URIS = 100  # in one subscription
SELECTION = Selection(events=frozenset({"entry.*", "schema.update", "site.update"}))
# Events after which a document or content type may have been added to the list of resources, or removed.
_LIST_KINDS = {
    "entry.create",
    "entry.delete",
    "entry.publish",
    "entry.unpublish",
    "schema.update",
    "site.update",
}


@dataclass(frozen=True, slots=True)
class WatchedResource:
    """A resource that a client watches. `document_id` is set only for documents of collection types."""

    uri: str
    uid: str
    document_id: str = ""
    locale: str = ""
    is_schema: bool = False
    is_draft: bool = False

    @property
    def key(self) -> Hashable:
        return self.uid, self.document_id, self.locale, self.is_schema, self.is_draft

    def is_changed_by(self, event: Event) -> bool:
        if event.counts is not None:
            return not self.is_schema and self.uid in event.counts
        if event.kind == "schema.update":
            return self.is_schema and (event.uid == self.uid or "::" not in event.uid)  # or a component
        if self.is_schema or event.uid != self.uid:
            return False
        is_same = not self.document_id or event.document_id == self.document_id
        return is_same and event.locale in ("", self.locale)


@dataclass(frozen=True, slots=True)
class Subscription:
    """The resources that a client watches.

    - `id`: the id of the `subscriptions/listen` request, or None if the client used `resources/subscribe`.
    - `watches_list`: whether the client also watches the list of resources.
    """

    id: RequestId | None = None
    watched: Sequence[WatchedResource] = ()
    watches_list: bool = False

    def acknowledged(self) -> Json:
        found: Json = {}
        if self.watches_list:
            found["resourcesListChanged"] = True
        if self.watched:
            found["resourceSubscriptions"] = [one.uri for one in self.watched]
        return self._notification("subscriptions/acknowledged", {"notifications": found})

    def notifications(self, event: Event) -> Iterator[Json]:
        if self.watches_list and event.kind in _LIST_KINDS:
            yield self._list_changed()
        for one in self.watched:
            if one.is_changed_by(event):
                yield self._updated(one)

    def everything_changed(self) -> Iterator[Json]:
        if self.watches_list:
            yield self._list_changed()
        yield from map(self._updated, self.watched)

    def closed(self) -> Json:
        assert self.id is not None
        meta = {SUBSCRIPTION_KEY: self.id, SERVER_KEY: server_info()}
        return result_of(self.id, {"resultType": "complete", "_meta": meta})

    def _updated(self, watched: WatchedResource) -> Json:
        return self._notification("resources/updated", {"uri": watched.uri})

    def _list_changed(self) -> Json:
        return self._notification("resources/list_changed", {})

    def _notification(self, name: str, params: Json) -> Json:
        meta = {} if self.id is None else {"_meta": {SUBSCRIPTION_KEY: self.id}}
        return {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": {**meta, **params}}


@dataclass(frozen=True, slots=True)
class SubscriptionFrames:
    """Encoder of notifications for an event stream. It implements `server.events.stream.Frames`."""

    subscription: Subscription
    selection: Selection = SELECTION

    def opening(self, log_id: str, position: int, newest: int, *, restarted: bool) -> bytes:
        return _frame(self.subscription.acknowledged())

    def event(self, log_id: str, event: Event, actor: Actor) -> bytes:
        return b"".join(map(_frame, self.subscription.notifications(event)))

    def restart(self, log_id: str, newest: int) -> bytes:
        return b"".join(map(_frame, self.subscription.everything_changed()))

    def goaway(self, reason: str, retry_ms: int) -> bytes:
        return _frame(self.subscription.closed())

    def heartbeat(self, id_: str = "") -> bytes:
        return b": heartbeat\n\n"


def _frame(message: Json) -> bytes:
    return b"event: message\ndata: " + encode(message) + b"\n\n"


# --- requests -------------------------------------------------------------------------------------


def read_subscription(id_: RequestId, wanted: Any, rest: RestClient, settings: Settings) -> Subscription:
    """Parse the `notifications` parameter of `subscriptions/listen`. Raises RpcError if it is invalid.

    Unsupported kinds of notifications and repeated URIs are ignored, and so are URIs of resources that can't
    exist or that the caller can't see.
    """
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, '"notifications" must be an object')
    watches_list = wanted.get("resourcesListChanged", False)
    uris = wanted.get("resourceSubscriptions", [])
    if not isinstance(watches_list, bool):
        raise RpcError(INVALID_PARAMS, '"resourcesListChanged" must be true or false')
    if not isinstance(uris, list) or len(uris) > MAX_URIS or not all(isinstance(uri, str) for uri in uris):
        raise RpcError(INVALID_PARAMS, f'"resourceSubscriptions" must be a list of at most {MAX_URIS} URIs')
    visible = visible_types(rest)
    watched: dict[Hashable, WatchedResource] = {}
    for uri in dict.fromkeys(uris):
        if (one := parse_watched(uri, rest, settings)) and one.uid in visible:
            watched.setdefault(one.key, one)
    return Subscription(id_, tuple(watched.values()), watches_list)


def parse_watched(uri: object, rest: RestClient, settings: Settings) -> WatchedResource | None:
    """Return the resource with this URI, or None if it can't exist. Raises RpcError if the URI is invalid."""
    found = read_uri(uri, rest)
    if found is None:
        return None
    if isinstance(found, DocumentUri):
        locale = found.version.get("locale") or settings.locales.default
        if locale not in settings.locales.available:
            return None
        is_draft = found.version.get("status") == DRAFT
        return WatchedResource(str(uri), found.type.uid, found.document_id, locale, is_draft=is_draft)
    type_ = rest.type_named(found.type_name)
    return WatchedResource(str(uri), type_.uid, is_schema=True) if type_ else None


def visible_types(rest: RestClient) -> set[str]:
    access = require_success(rest.send("GET", "/access")).body["data"]
    return {each["uid"] for each in access["contentTypes"]}
