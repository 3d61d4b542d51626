"""Limits on the number of login attempts, and on the number of requests that send an email.

Attempts are counted in the accounts database, which all processes share. Each limit is a token bucket. The
bucket is stored as one row that contains a time, and each attempt moves this time forward. An attempt is
rejected if it would move the time to more than `window_s` in the future.

Each attempt is counted for three limits:

- the limit for the identifier as typed, in combination with the network address
- the limit for the account, from all network addresses
- the limit for the network address, for all accounts

The first limit uses the identifier as typed instead of the account. Otherwise, an attacker could find out
which email address belongs to a user name.

An attacker must not be able to lock a user out by using up the account's limit. Therefore, this limit does
not apply to a network address from which the user has logged in before. If the attacker shares the user's
network address, the other two limits can still block the user. Therefore, a device from which the user has
logged in before has a few extra attempts.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from server.auth.login_record import Attempt
from server.bounded import network_of
from server.database.engine import Connection, DuplicateError, Engine

# For this long after a login, the user's network address and device are treated as known.
KNOWN_TTL_S = 90 * 24 * 3600.0
MAX_ATTEMPTS = 3  # How often to try to insert a row that other processes insert at the same time.


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """The maximum number of attempts for each kind of limit. After a limit was reached, it takes `window_s`
    seconds until all attempts are available again.
    """

    pair: int
    account: int
    address: int
    devices: int = 0
    window_s: float = 15 * 60


LOGINS = AttemptLimits(pair=10, account=100, address=100, devices=5)
MAILS = AttemptLimits(pair=5, account=20, address=50)


# The keys under which an attempt was counted, with the maximum number of attempts for each key.
Taken = Mapping[str, int]


class Attempts:
    """Rate limiter for one kind of attempt, such as logins. An instance can be shared between threads and
    processes.
    """

    def __init__(self, engine: Engine, kind: str, limits: AttemptLimits) -> None:
        """`kind` is a name, such as "login". Each kind of attempt is counted separately."""
        self._engine, self._kind, self.limits = engine, kind, limits

    def take(self, attempt: Attempt) -> Taken | None:
        """Count an attempt before it is made. Return the keys of the rows in which it was counted, with the
        maximum number of attempts for each key. Returns None if a limit has been reached.
        """
        for _ in range(MAX_ATTEMPTS):
            with suppress(DuplicateError):  # Another process has just inserted the same row.
                return self._take(_Keys.of(self._kind, attempt))
        return None

    def _take(self, keys: "_Keys") -> Taken | None:
        with self._engine.writing() as connection:
            rows, now = _begin(connection, keys)
            for counted in self._ways(keys, rows, now):
                debts = self._debts(counted, rows, now)
                if max(debts.values()) <= now + self.limits.window_s:
                    for key, debt in debts.items():
                        _put(connection, key, key in rows, until=debt)
                    return counted
        return None

    def wait_s(self, attempt: Attempt) -> float:
        """Return how many seconds a client must wait after an attempt was rejected."""
        keys = _Keys.of(self._kind, attempt)
        with self._engine.writing() as connection:
            rows, now = _begin(connection, keys)
            ways = (self._debts(counted, rows, now) for counted in self._ways(keys, rows, now))
            return min(max(debts.values()) for debts in ways) - now - self.limits.window_s

    def succeeded(self, attempt: Attempt, taken: Taken | None = None) -> None:
        """Remove a successful attempt from the counts, and mark its network address and device as known.

        `taken` is the value that `take` returned for this attempt.
        """
        keys = _Keys.of(self._kind, attempt)
        with self._engine.writing() as connection:
            rows, now = _begin(connection, keys)
            for key, most in (taken or {}).items():
                if key in rows:
                    _put(connection, key, True, until=rows[key].until - self.limits.window_s / most)
            _put(connection, keys.pair, keys.pair in rows, until=0.0)
            for key in filter(None, (keys.known, keys.device)):
                _put(connection, key, key in rows, known_until=now + KNOWN_TTL_S)

    def _debts(self, counted: Taken, rows: Mapping[str, "_Row"], now: float) -> dict[str, float]:
        """Return the time that the row of each key would contain after this attempt was counted."""
        return {
            key: max(rows[key].until if key in rows else 0.0, now) + self.limits.window_s / most
            for key, most in counted.items()
        }

    def _ways(self, keys: "_Keys", rows: Mapping[str, "_Row"], now: float) -> Iterator[Taken]:
        """Yield the sets of keys under which the attempt can be counted, in the order in which they should be
        tried. The values are the maximum numbers of attempts.

        The first set contains the usual limits. If the client's device is known, there is a second set. It
        contains only the limit for attempts from the account's known devices.
        """

        def is_known(key: str) -> bool:
            return key in rows and rows[key].known_until > now

        counted = {keys.pair: self.limits.pair, keys.address: self.limits.address}
        yield counted if is_known(keys.known) else {**counted, keys.account: self.limits.account}
        if self.limits.devices and is_known(keys.device):
            yield {keys.devices: self.limits.devices}


class _Keys(NamedTuple):
    """The keys of the database rows for one attempt. The first four are the keys of the limits. `known` is
    the key of the row that marks the network address as known, and `device` is the key of the row that marks
    the device as known.

    If the client sent no device id, `device` is "".
    """

    pair: str
    account: str
    address: str
    devices: str
    known: str
    device: str

    @classmethod
    def of(cls, kind: str, attempt: Attempt) -> "_Keys":
        """Return the keys of the database rows for an attempt."""
        network = network_of(attempt.address)
        return cls(
            _hash(kind, "pair", attempt.identifier, network),
            _hash(kind, "account", attempt.account),
            _hash(kind, "address", network),
            _hash(kind, "devices", attempt.account),
            _hash(kind, "known", attempt.account, network),
            _hash(kind, "device", attempt.account, attempt.device) if attempt.device else "",
        )


class _Row(NamedTuple):
    until: float
    known_until: float


def _begin(connection: Connection, keys: tuple[str, ...]) -> tuple[dict[str, _Row], float]:
    """Lock the rows with the given keys by updating them. Return these rows and the current time.

    The clock is read only after the rows have been locked, so the returned time is not earlier than any time
    that another process has stored in them.
    """
    began = time.time()
    connection.execute("DELETE FROM attempts WHERE until <= ? AND known_until <= ?", (began, began))
    marks = ", ".join("?" * len(keys))
    own = f"UPDATE attempts SET until = until WHERE key IN ({marks}) RETURNING key, until, known_until"
    return {key: _Row(*row) for key, *row in connection.execute(own, keys)}, time.time()


def _put(
    connection: Connection,
    key: str,
    there: bool,
    *,
    until: float | None = None,
    known_until: float | None = None,
) -> None:
    """Store a row: update it if it exists (`there` is True), otherwise insert it. If an argument is None, its
    column keeps its value.
    """
    if there:
        statement = "UPDATE attempts SET until = coalesce(?, until), known_until = coalesce(?, known_until)"
        connection.execute(f"{statement} WHERE key = ?", (until, known_until, key))
    else:
        statement = "INSERT INTO attempts (key, until, known_until) VALUES (?, ?, ?)"
        connection.execute(statement, (key, until or 0.0, known_until or 0.0))


def _hash(*parts: str) -> str:
    """Return a fixed-length digest for use as a key. The digest does not reveal the account or the network
    address.
    """
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
