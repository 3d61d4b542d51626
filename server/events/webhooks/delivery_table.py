"""The deliveries of webhooks, those that wait and those that are done: a table of the log of events.

Every function takes the connection of a transaction. Times are in seconds since 1970.
"""

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

MAX_DONE_DELIVERIES, RETENTION_S = 1000, 7 * 86_400.0  # Of a webhook's deliveries that are done.
_SELECT = (
    "SELECT number, webhook, id, document, event, first, last, state, made, due, tries, step, body, tried,"
    " status, error FROM deliveries"
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request to be made, or made: what it tells, how often it was tried, and what came of it last.

    `document` is what it must not overtake another one of, "" for nothing; `first` and `last` are the numbers
    of the events that it tells of; `body` is kept from the first try until it is done.
    """

    number: int
    webhook: str
    id: str
    document: str
    event: Event
    first: int
    last: int
    state: str
    made: float
    due: float
    tries: int
    step: int
    body: bytes | None
    tried: float | None
    status: int
    error: str


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """How a webhook stands: how many deliveries wait, when it was disabled, if it was, and its last try."""

    waiting: int
    disabled: float | None
    last: Delivery | None


def put(
    connection: Connection, name: str, document: str, event: Event, state: str, at: float, due: float
) -> None:
    """Add a delivery of an event."""
    row = (name, new_id(), document, pack(event), event.seq, event.seq, state, at, due, due - at)
    connection.execute(
        "INSERT INTO deliveries (webhook, id, document, event, first, last, state, made, due, wait)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row,
    )


def has_open(connection: Connection, name: str, document: str) -> bool:
    """Whether a webhook has a delivery of a document that is not done."""
    statement = f"SELECT 1 FROM deliveries WHERE webhook = ? AND document = ? AND {OPEN} LIMIT 1"
    return connection.execute(statement, (name, document)).fetchone() is not None


def next_due(connection: Connection, name: str, at: float, most: int, busy: Iterable[int]) -> list[Delivery]:
    """The deliveries of a webhook to be tried at a time, at most so many, without those that are `busy`."""
    statement = (
        f"{_SELECT} WHERE webhook = ? AND {TIMED} AND due <= ? AND number NOT IN ({_sql_list(busy)})"
        " ORDER BY due, number LIMIT ?"
    )
    return [delivery_of(row) for row in connection.execute(statement, (name, at, most))]


def first_due(connection: Connection, name: str, busy: Iterable[int]) -> float | None:
    """When the next delivery of a webhook is to be tried, of those that are not `busy`."""
    statement = (
        f"SELECT due FROM deliveries WHERE webhook = ? AND {TIMED} AND number NOT IN ({_sql_list(busy)})"
        " ORDER BY due LIMIT 1"
    )
    row = connection.execute(statement, (name,)).fetchone()
    return row[0] if row else None


def _sql_list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, (0, *numbers)))  # an empty list is no SQL, and no delivery has the number 0


def begin(connection: Connection, delivery: Delivery, body: bytes, at: float) -> None:
    """Note that a delivery is tried, and what it sends, so that every try sends the same."""
    statement = "UPDATE deliveries SET state = ?, body = ?, tried = ?, tries = tries + 1 WHERE number = ?"
    connection.execute(statement, (WAITING, body, at, delivery.number))


def try_again(connection: Connection, delivery: Delivery, at: float, wait: float, step: int) -> None:
    """Let a delivery be tried again, so many seconds after a time."""
    statement = "UPDATE deliveries SET due = ?, wait = ?, step = ? WHERE number = ?"
    connection.execute(statement, (at + wait, wait, step, delivery.number))


def note(connection: Connection, delivery: Delivery, status: int, error: str) -> None:
    """Note what came of a try."""
    statement = "UPDATE deliveries SET status = ?, error = ? WHERE number = ?"
    connection.execute(statement, (status, error, delivery.number))


def finish(connection: Connection, delivery: Delivery, state: str) -> None:
    """Let a delivery be done, and the next one of its document be tried."""
    statement = f"UPDATE deliveries SET state = ?, body = NULL WHERE number = ? AND {OPEN}"
    done = connection.execute(statement, (state, delivery.number)).rowcount
    if done and delivery.document:
        (number,) = connection.execute(
            f"SELECT min(number) FROM deliveries WHERE webhook = ? AND document = ? AND {OPEN}",
            (delivery.webhook, delivery.document),
        ).fetchone()
        statement = "UPDATE deliveries SET state = ? WHERE number = ? AND state = ?"
        connection.execute(statement, (WAITING, number, BEHIND))


def give_up_all(connection: Connection, name: str, why: str) -> None:
    """Give up every delivery of a webhook that is not done."""
    statement = f"UPDATE deliveries SET state = ?, error = ?, body = NULL WHERE webhook = ? AND {OPEN}"
    connection.execute(statement, (FAILED, why, name))


def oldest_open(connection: Connection, name: str, beyond: int) -> list[Delivery]:
    """The oldest deliveries of a webhook that are not done, as many as there are more than `beyond`."""
    count = webhook_status(connection, name).waiting - beyond
    if count <= 0:
        return []
    statement = f"{_SELECT} WHERE webhook = ? AND {OPEN} ORDER BY number LIMIT ?"
    return [delivery_of(row) for row in connection.execute(statement, (name, count))]


def shorten(connection: Connection, at: float) -> None:
    """Bring open deliveries forward to at most their wait from now, after the clock was put back.

    Those queued behind others are included: they keep their due time until their turn.
    """
    statement = f"UPDATE deliveries SET due = ? + wait WHERE {OPEN} AND due > ? + wait"
    connection.execute(statement, (at, at))


def forget(connection: Connection, at: float) -> None:
    """Remove deliveries that are done and old, or of which there are too many."""
    connection.execute(f"DELETE FROM deliveries WHERE {DONE} AND made < ?", (at - RETENTION_S,))
    newest = (
        f"SELECT number FROM deliveries WHERE webhook = ? AND {DONE} ORDER BY number DESC LIMIT 1 OFFSET ?"
    )
    for (name,) in connection.execute("SELECT DISTINCT webhook FROM deliveries").fetchall():
        row = connection.execute(newest, (name, MAX_DONE_DELIVERIES)).fetchone()
        if row:
            statement = f"DELETE FROM deliveries WHERE webhook = ? AND {DONE} AND number <= ?"
            connection.execute(statement, (name, row[0]))


def newest(connection: Connection, names: Sequence[str], most: int) -> list[Delivery]:
    """The newest deliveries of some webhooks, in order."""
    marks = ",".join("?" * len(names))
    statement = f"{_SELECT} WHERE webhook IN ({marks}) ORDER BY number DESC LIMIT ?"
    return [delivery_of(row) for row in connection.execute(statement, (*names, most))][::-1]


def of_events_after(connection: Connection, name: str, since: int) -> list[Delivery]:
    """The deliveries of a webhook that tell of events after one, in order."""
    statement = f"{_SELECT} WHERE webhook = ? AND last > ? ORDER BY number"
    return [delivery_of(row) for row in connection.execute(statement, (name, since))]


def by_id(connection: Connection, name: str, webhook_id: str) -> Delivery | None:
    """The delivery of a webhook with an id."""
    row = connection.execute(f"{_SELECT} WHERE webhook = ? AND id = ?", (name, webhook_id)).fetchone()
    return delivery_of(row) if row else None


def webhook_status(connection: Connection, name: str) -> WebhookStatus:
    """How a webhook stands."""
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
    """How many deliveries of each webhook are not done."""
    statement = f"SELECT webhook, count(*) FROM deliveries WHERE {OPEN} GROUP BY webhook"
    return dict(connection.execute(statement).fetchall())


def pack(event: Event) -> str:
    """An event as text; see `unpack`."""
    return json.dumps(asdict(event))


def unpack(text: str) -> Event:
    """The event that a text is."""
    values: Mapping[str, Any] = json.loads(text)
    changed = values["changed"]
    links = tuple((name, tuple(uids)) for name, uids in values.get("links", ()))
    return Event(**{**values, "changed": None if changed is None else tuple(changed), "links": links})


def delivery_of(row: tuple[Any, ...]) -> Delivery:
    """The delivery that a row of the table is."""
    number, webhook, webhook_id, document, event, *rest = row
    return Delivery(number, webhook, webhook_id, document, unpack(event), *rest)
