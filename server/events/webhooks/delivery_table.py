"""Table of webhook deliveries. Each function needs an open transaction. Times are in seconds since 1970."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from server.database.engine import Connection
from server.events.model import Event
from server.events.tables import (
    BEHIND,
    DONE,
    FAILED,
    OPEN,
    TIMED,
    WAITING,
)
from server.events.webhooks.http_client import new_id

MAX_DONE_DELIVERIES, RETENTION_S = (
    1000,
    7 * 86_400.0,
)  # limits per webhook, for completed deliveries
MAX_KEPT_BODY_BYTES = 8192  # of a request's body, after the delivery is done
_SELECT = (
    "SELECT number, webhook, id, document, event, first, last, state, made, due, tries, step, body, tried,"
    " status, error FROM deliveries"
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery of one event, or of several combined events, to a webhook.

    Deliveries with the same `document` are sent in order, unless `document` is "".
    """

    number: int
    webhook: str
    id: str
    document: str
    event: Event
    first_event: int
    last_event: int
    state: str
    created_at: float
    due: float
    attempts: int
    backoff_step: int
    body: bytes | None
    attempted_at: float | None
    status: int
    error: str


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """The status of a webhook.

    `waiting` is the number of deliveries that are not completed. `disabled` is the time at which the webhook
    was disabled, or None.
    """

    waiting: int
    disabled: float | None
    last_attempted: Delivery | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """The request body and the response of a delivery's last attempt, both truncated.

    `size` is the number of bytes in the complete request body.
    """

    body: bytes
    size: int
    response: str
    seconds: float


def put(
    connection: Connection, name: str, document: str, event: Event, state: str, now: float, due: float
) -> None:
    row = (name, new_id(), document, pack(event), event.seq, event.seq, state, now, due, due - now)
    connection.execute(
        "INSERT INTO deliveries (webhook, id, document, event, first, last, state, made, due, wait)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )


def has_open(connection: Connection, name: str, document: str) -> bool:
    statement = f"SELECT 1 FROM deliveries WHERE webhook = ? AND document = ? AND {OPEN} LIMIT 1"
    return connection.execute(statement, (name, document)).fetchone() is not None


def next_due(
    connection: Connection, name: str, now: float, limit: int, in_progress: Iterable[int]
) -> list[Delivery]:
    statement = (
        f"{_SELECT} WHERE webhook = ? AND {TIMED} AND due <= ? AND number NOT IN ({_sql_list(in_progress)})"
        " ORDER BY due, number LIMIT ?"
    )
    return [delivery_of(row) for row in connection.execute(statement, (name, now, limit))]


def first_due(connection: Connection, name: str, in_progress: Iterable[int]) -> float | None:
    """Return the time at which a webhook's next delivery is due, or None if no delivery is waiting.

    Deliveries whose numbers are in `in_progress` are skipped.
    """
    statement = (
        f"SELECT due FROM deliveries WHERE webhook = ? AND {TIMED}"
        f" AND number NOT IN ({_sql_list(in_progress)}) ORDER BY due LIMIT 1"
    )
    row = connection.execute(statement, (name,)).fetchone()
    return row[0] if row else None


def _sql_list(numbers: Iterable[int]) -> str:
    # SQL lists can't be empty, and no delivery has the number 0.
    return ",".join(map(str, (0, *numbers)))


def begin(connection: Connection, delivery: Delivery, body: bytes, now: float) -> bool:
    """Record that an attempt has started, and store the request body for retries.

    Returns False if the delivery was deleted.
    """
    statement = "UPDATE deliveries SET state = ?, body = ?, tried = ?, tries = tries + 1 WHERE number = ?"
    return connection.execute(statement, (WAITING, body, now, delivery.number)).rowcount > 0


def try_again(
    connection: Connection, delivery: Delivery, now: float, delay_s: float, backoff_step: int
) -> None:
    statement = "UPDATE deliveries SET due = ?, wait = ?, step = ? WHERE number = ?"
    connection.execute(statement, (now + delay_s, delay_s, backoff_step, delivery.number))


def note(connection: Connection, delivery: Delivery, status: int, error: str) -> None:
    statement = "UPDATE deliveries SET status = ?, error = ? WHERE number = ?"
    connection.execute(statement, (status, error, delivery.number))


def keep_exchange(connection: Connection, delivery: Delivery, response: str, seconds: float) -> None:
    """Store an attempt's response and the beginning of its request body."""
    statement = (
        "INSERT INTO exchanges (delivery, body, size, response, seconds)"
        " SELECT number, substr(body, 1, ?), length(body), ?, ? FROM deliveries"
        " WHERE number = ? AND body IS NOT NULL"
        " ON CONFLICT (delivery) DO UPDATE SET body = excluded.body, size = excluded.size,"
        " response = excluded.response, seconds = excluded.seconds"
    )
    connection.execute(statement, (MAX_KEPT_BODY_BYTES, response, seconds, delivery.number))


def exchange_of(connection: Connection, delivery: Delivery) -> Exchange | None:
    statement = "SELECT body, size, response, seconds FROM exchanges WHERE delivery = ?"
    row = connection.execute(statement, (delivery.number,)).fetchone()
    return Exchange(bytes(row[0]), *row[1:]) if row else None


def finish(connection: Connection, delivery: Delivery, state: str) -> None:
    """Mark a delivery as delivered or failed, so that the next delivery for its document can start."""
    statement = f"UPDATE deliveries SET state = ?, body = NULL WHERE number = ? AND {OPEN}"
    updated = connection.execute(statement, (state, delivery.number)).rowcount
    if updated and delivery.document:
        (number,) = connection.execute(
            f"SELECT min(number) FROM deliveries WHERE webhook = ? AND document = ? AND {OPEN}",
            (delivery.webhook, delivery.document),
        ).fetchone()
        statement = "UPDATE deliveries SET state = ? WHERE number = ? AND state = ?"
        connection.execute(statement, (WAITING, number, BEHIND))


def give_up_all(connection: Connection, name: str, reason: str) -> None:
    statement = f"UPDATE deliveries SET state = ?, error = ?, body = NULL WHERE webhook = ? AND {OPEN}"
    connection.execute(statement, (FAILED, reason, name))


def oldest_excess(connection: Connection, name: str, limit: int) -> list[Delivery]:
    count = webhook_status(connection, name).waiting - limit
    if count <= 0:
        return []
    statement = f"{_SELECT} WHERE webhook = ? AND {OPEN} ORDER BY number LIMIT ?"
    return [delivery_of(row) for row in connection.execute(statement, (name, count))]


def correct_due_times(connection: Connection, now: float) -> None:
    """Correct due times that are too far in the future because the system clock was set back."""
    statement = f"UPDATE deliveries SET due = ? + wait WHERE {OPEN} AND due > ? + wait"
    connection.execute(statement, (now, now))


def forget(connection: Connection, now: float) -> None:
    """Delete completed deliveries that are older than RETENTION_S seconds.

    Of the other completed deliveries, keep only the newest MAX_DONE_DELIVERIES of each webhook.
    """
    connection.execute(f"DELETE FROM deliveries WHERE {DONE} AND made < ?", (now - RETENTION_S,))
    newest = (
        f"SELECT number FROM deliveries WHERE webhook = ? AND {DONE} ORDER BY number DESC LIMIT 1 OFFSET ?"
    )
    for (name,) in connection.execute("SELECT DISTINCT webhook FROM deliveries").fetchall():
        row = connection.execute(newest, (name, MAX_DONE_DELIVERIES)).fetchone()
        if row:
            statement = f"DELETE FROM deliveries WHERE webhook = ? AND {DONE} AND number <= ?"
            connection.execute(statement, (name, row[0]))
    connection.execute("DELETE FROM exchanges WHERE delivery NOT IN (SELECT number FROM deliveries)")


def page_of(
    connection: Connection, name: str, limit: int, before: int | None, states: Sequence[str]
) -> list[Delivery]:
    """Return up to `limit` deliveries of a webhook, newest first.

    If `before` is given, return only deliveries with a lower number. If `states` is not empty, return only
    deliveries in one of these states.
    """
    conditions, values = ["webhook = ?"], list[str | int]([name])
    if before is not None:
        conditions, values = [*conditions, "number < ?"], [*values, before]
    if states:
        conditions.append(f"state IN ({','.join('?' * len(states))})")
    where = " AND ".join(conditions)
    statement = f"{_SELECT} WHERE {where} ORDER BY number DESC LIMIT ?"
    return [delivery_of(row) for row in connection.execute(statement, (*values, *states, limit))]


def newest(connection: Connection, names: Sequence[str], limit: int) -> list[Delivery]:
    marks = ",".join("?" * len(names))
    statement = f"{_SELECT} WHERE webhook IN ({marks}) ORDER BY number DESC LIMIT ?"
    return [delivery_of(row) for row in connection.execute(statement, (*names, limit))][::-1]


def deliveries_after(connection: Connection, name: str, since: int) -> list[Delivery]:
    statement = f"{_SELECT} WHERE webhook = ? AND last > ? ORDER BY number"
    return [delivery_of(row) for row in connection.execute(statement, (name, since))]


def by_id(connection: Connection, name: str, webhook_id: str) -> Delivery | None:
    row = connection.execute(f"{_SELECT} WHERE webhook = ? AND id = ?", (name, webhook_id)).fetchone()
    return delivery_of(row) if row else None


def webhook_status(connection: Connection, name: str) -> WebhookStatus:
    """Return the status of the webhook with this name."""
    waiting = f"SELECT count(*) FROM deliveries WHERE webhook = ? AND {OPEN}"
    disabled = connection.execute("SELECT disabled FROM webhooks WHERE name = ?", (name,)).fetchone()
    last = f"{_SELECT} WHERE webhook = ? AND tried IS NOT NULL ORDER BY tried DESC, number DESC LIMIT 1"
    found = connection.execute(last, (name,)).fetchone()
    return WebhookStatus(
        connection.execute(waiting, (name,)).fetchone()[0],
        disabled[0] if disabled else None,
        delivery_of(found) if found else None,
    )


def waiting(connection: Connection) -> dict[str, int]:
    statement = f"SELECT webhook, count(*) FROM deliveries WHERE {OPEN} GROUP BY webhook"
    return dict(connection.execute(statement).fetchall())


def pack(event: Event) -> str:
    return json.dumps(asdict(event))


def unpack(text: str) -> Event:
    values: Mapping[str, Any] = json.loads(text)
    changed = values["changed"]
    links = tuple((name, tuple(uids)) for name, uids in values.get("links", ()))
    return Event(**{**values, "changed": None if changed is None else tuple(changed), "links": links})


def delivery_of(row: tuple[Any, ...]) -> Delivery:
    number, webhook, webhook_id, document, event, *rest = row
    return Delivery(number, webhook, webhook_id, document, unpack(event), *rest)
