"""Limits on the number of login attempts, and of requests that send an email.

Attempts are counted in the accounts database, which all processes share. Each limit is a token bucket, stored
as one row that contains a time. Each attempt moves this time forward. If the time would then be more than
`window_s` in the future, the attempt is rejected.

Each attempt is counted for three limits:

- the limit for the identifier as typed, in combination with the network address
- the limit for the account, from all network addresses
- the limit for the network address, for all accounts

For the first limit, the identifier as typed is used instead of the account. Otherwise, an attacker could find
out which email address belongs to a user name.

An attacker must not be able to lock a user out. Therefore, the account's limit does not apply to a network
address from which the user has logged in before. In addition, a device from which the user has logged in
before has a few extra attempts, because the attacker may be using the same network address.
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

# After a login, its network address and device are known for this long.
KNOWN_TTL_S = 90 * 24 * 3600.0
MAX_ATTEMPTS = 3  # Maximum number of tries if other processes insert the same row at the same time.


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """The maximum number of attempts for each limit. After a limit was reached, it takes `window_s` seconds
    until all attempts are available again.
    """

    pair: int
    account: int
    address: int
    devices: int = 0
    window_s: float = 15 * 60


LOGINS = AttemptLimits(pair=10, account=100, address=100, devices=5)
MAILS = AttemptLimits(pair=5, account=20, address=50)


# The keys for which an attempt was counted, with the limit of each key.
Taken = Mapping[str, int]


class Attempts:
    """Rate limiter for one kind of attempt, such as logins. An instance can be shared between threads and
    processes.
    """

    def __init__(self, engine: Engine, kind: str, limits: AttemptLimits) -> None:
        """`kind` is a name, such as "login". Each kind of attempt is counted separately."""
        self._engine, self._kind, self.limits = engine, kind, limits

    def take(self, attempt: Attempt) -> Taken | None:
        """Count an attempt before it is made. Return the keys for which it was counted, with the limit of
        each key. Returns None if a limit is reached.
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

        `taken` is the result of `take` for this attempt.
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
        """Return the time that each key's row will contain if the attempt is counted."""
        return {
            key: max(rows[key].until if key in rows else 0.0, now) + self.limits.window_s / most
            for key, most in counted.items()
        }

    def _ways(self, keys: "_Keys", rows: Mapping[str, "_Row"], now: float) -> Iterator[Taken]:
        """Yield the sets of keys for which the attempt can be counted. The set to try first comes first.

        A second set exists only if the device is known. It contains only the account's limit for known
        devices.
        """

        def is_known(key: str) -> bool:
            return key in rows and rows[key].known_until > now

        counted = {keys.pair: self.limits.pair, keys.address: self.limits.address}
        yield counted if is_known(keys.known) else {**counted, keys.account: self.limits.account}
        if self.limits.devices and is_known(keys.device):
            yield {keys.devices: self.limits.devices}


class _Keys(NamedTuple):
    """The keys of the database rows for one attempt: four limits, the known network address, and the known
    device. If the client sent no device id, the key for the device is "".
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
    """Lock the rows with the given keys, by updating them. Return the rows and the current time.

    The time is read only after the rows were locked, so it is not earlier than a time that another process
    has stored.
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
    """Store a row: update it if it exists (`there`), otherwise insert it. Columns whose argument is None are
    not changed.
    """
    if there:
        statement = "UPDATE attempts SET until = coalesce(?, until), known_until = coalesce(?, known_until)"
        connection.execute(f"{statement} WHERE key = ?", (until, known_until, key))
    else:
        statement = "INSERT INTO attempts (key, until, known_until) VALUES (?, ?, ?)"
        connection.execute(statement, (key, until or 0.0, known_until or 0.0))


def _hash(*parts: str) -> str:
    """Return a fixed-length digest for use as a key. It does not reveal the account or the network
    address.
    """
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
