"""Queue of webhook deliveries. Each function needs an open transaction."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

from server.config.webhooks import Webhook
from server.database.engine import Connection
from server.documents.timestamps import from_seconds
from server.events.model import Event
from server.events.tables import BEHIND, FAILED, GATHERING, OPEN, WAITING
from server.events.webhooks.delivery_table import (
    Delivery,
    by_id,
    deliveries_after,
    finish,
    give_up_all,
    has_open,
    note,
    oldest_excess,
    pack,
    put,
    unpack,
)
from server.events.webhooks.matching import SITE_UPDATE, receives

MAX_QUEUED_DELIVERIES = 10_000  # per webhook
SAME_MOMENT_S = 60.0  # a new webhook receives no events older than this
MAX_EVENTS_OF_A_MOMENT = 1000  # maximum number of earlier events that a new webhook receives
MAX_BURST_DEBOUNCES = 10  # a burst is delivered after at most this many times the setting `debounce`


def update_webhooks(
    connection: Connection,
    webhooks: Iterable[Webhook],
    last_event: Callable[[], int],
    former: Collection[str] | None = None,
) -> None:
    """Store the enabled webhooks, and delete the webhooks in `former` that are no longer enabled.

    If `former` is None, all webhooks that are no longer enabled are deleted. A new webhook receives the
    events after the number that `last_event` returns. If a webhook was disabled after a failed delivery and
    its settings have changed, it is enabled again.
    """
    known = dict(connection.execute("SELECT name, settings FROM webhooks").fetchall())
    current = {webhook.name: _digest(webhook) for webhook in webhooks if webhook.enabled}
    for name in (known.keys() if former is None else known.keys() & {*former}) - current.keys():
        connection.execute("DELETE FROM webhooks WHERE name = ?", (name,))
        connection.execute(f"DELETE FROM deliveries WHERE webhook = ? AND {OPEN}", (name,))
    for name, digest in current.items():
        if name not in known:
            connection.execute("INSERT INTO webhooks VALUES (?, ?, ?, NULL)", (name, last_event(), digest))
        elif known[name] != digest:
            enable(connection, name, last_event())
            connection.execute("UPDATE webhooks SET settings = ? WHERE name = ?", (digest, name))


def last_before(connection: Connection, written_at: float, now: float) -> int:
    """Return the number of the last event before `written_at`, the time at which site.yaml was saved.

    Events that are older than SAME_MOMENT_S seconds are always treated as earlier.
    """
    number: int = connection.execute("SELECT last FROM log").fetchone()[0]
    since = from_seconds(max(written_at, now - SAME_MOMENT_S))
    latest = "SELECT seq, at FROM events ORDER BY seq DESC LIMIT ?"
    for seq, created in connection.execute(latest, (MAX_EVENTS_OF_A_MOMENT,)).fetchall():
        if created < since:
            break
        number = seq - 1
    return number


def remove(connection: Connection, name: str) -> None:
    selected = "FROM deliveries WHERE webhook = ?"
    statement = f"DELETE FROM exchanges WHERE delivery IN (SELECT number {selected})"
    connection.execute(statement, (name,))
    connection.execute(f"DELETE {selected}", (name,))
    connection.execute("DELETE FROM webhooks WHERE name = ?", (name,))


def _digest(webhook: Webhook) -> str:
    return blake2b(repr((webhook, webhook.headers)).encode(), digest_size=16).hexdigest()


def enable(connection: Connection, name: str, last_event: int) -> bool:
    """Enable a disabled webhook, which then receives the events after number `last_event`.

    Returns False if the webhook was not disabled.
    """
    statement = "UPDATE webhooks SET disabled = NULL, cursor = ? WHERE name = ? AND disabled IS NOT NULL"
    return connection.execute(statement, (last_event, name)).rowcount > 0


def disable(connection: Connection, name: str, now: float, reason: str) -> None:
    connection.execute("UPDATE webhooks SET disabled = ? WHERE name = ?", (now, name))
    give_up_all(connection, name, reason)


def cursors(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT name, cursor FROM webhooks WHERE disabled IS NULL").fetchall())


def enqueue(connection: Connection, webhook: Webhook, events: Sequence[Event], now: float) -> int:
    """Queue deliveries of the events that a webhook receives.

    `events` must begin right after the webhook's cursor. Returns the number of old deliveries that were
    discarded because the queue was full.
    """
    if not events:
        return 0
    for event in events:
        if receives(webhook, event):
            _add(connection, webhook, event, now)
    statement = "UPDATE webhooks SET cursor = ? WHERE name = ?"
    connection.execute(statement, (events[-1].seq, webhook.name))
    surplus = oldest_excess(connection, webhook.name, MAX_QUEUED_DELIVERIES)
    for delivery in surplus:
        note(
            connection,
            delivery,
            delivery.status,
            f"given up: more than {MAX_QUEUED_DELIVERIES:,} deliveries were waiting",
        )
        finish(connection, delivery, FAILED)
    return len(surplus)


def _add(connection: Connection, webhook: Webhook, event: Event, now: float) -> None:
    if webhook.debounce:
        _gather(connection, webhook, event, now)
        return
    document = f"{event.uid} {event.document_id}" if event.document_id else ""
    state = BEHIND if document and has_open(connection, webhook.name, document) else WAITING
    put(connection, webhook.name, document, event, state, now, now)


def _gather(connection: Connection, webhook: Webhook, event: Event, now: float) -> None:
    pause = webhook.debounce.total_seconds()
    statement = "SELECT number, made, event FROM deliveries WHERE webhook = ? AND state = ?"
    found = connection.execute(statement, (webhook.name, GATHERING)).fetchone()
    if found is None:
        put(connection, webhook.name, "", add_to_burst(None, event), GATHERING, now, now + pause)
        return
    number, made, text = found
    due = max(now, min(now + pause, made + MAX_BURST_DEBOUNCES * pause))
    statement = "UPDATE deliveries SET event = ?, last = ?, due = ?, wait = ? WHERE number = ?"
    extended = pack(add_to_burst(unpack(text), event))
    connection.execute(statement, (extended, event.seq, due, due - now, number))


def add_to_burst(burst: Event | None, event: Event) -> Event:
    """Return the combined event `burst` with another event added to its counts.

    If `burst` is None, return a new combined event.
    """
    counts: dict[str, dict[str, dict[str, int]]] = {}
    single = {event.uid: {event.status: {event.kind: 1}}}
    for part in ((burst and burst.counts) or {}, event.counts or single):
        for uid, by_status in part.items():
            for status, kinds in by_status.items():
                sums = counts.setdefault(uid, {}).setdefault(status, {})
                for kind, count in kinds.items():
                    sums[kind] = sums.get(kind, 0) + count
    joined = replace(
        event,
        kind=SITE_UPDATE,
        uid="",
        document_id="",
        locale="",
        status="",
        changed=(),
        links=(),
        counts=counts,
    )
    if burst is None or (burst.actor, burst.source, burst.commit) == (
        event.actor,
        event.source,
        event.commit,
    ):
        return joined
    return replace(joined, actor="", source="file", commit="", write="")


def requeue_since(
    connection: Connection, webhook: Webhook, events: Iterable[Event], since: int, now: float
) -> int:
    """Queue deliveries of all events after number `since`, including events that were already delivered.

    Returns the number of queued deliveries.
    """
    found = deliveries_after(connection, webhook.name, since)
    delivered = {seq for delivery in found for seq in range(delivery.first_event, delivery.last_event + 1)}
    again = [delivery for delivery in found if _queue_again(connection, delivery, now)]
    missing = [event for event in events if event.seq not in delivered and receives(webhook, event)]
    for event in missing:
        _add(connection, webhook, event, now)
    return len(again) + (min(1, len(missing)) if webhook.debounce else len(missing))


def replay_one(connection: Connection, name: str, webhook_id: str, now: float) -> Delivery | None:
    """Queue a delivery again if it is completed, and return it. Return None if the id is unknown."""
    delivery = by_id(connection, name, webhook_id)
    if delivery:
        _queue_again(connection, delivery, now)
    return delivery


def _queue_again(connection: Connection, delivery: Delivery, now: float) -> bool:
    # Returns False if the delivery is still open.
    if delivery.state in (GATHERING, BEHIND, WAITING):
        return False
    document = delivery.document
    state = BEHIND if document and has_open(connection, delivery.webhook, document) else WAITING
    statement = (
        "UPDATE deliveries SET state = ?, made = ?, due = ?, wait = 0, tries = 0, step = 0 WHERE number = ?"
    )
    connection.execute(statement, (state, now, now, delivery.number))
    return True
