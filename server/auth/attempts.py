"""Rate limits for logins and for requests that send mail.

Attempts are counted in the accounts database, shared by all processes. Each limit is a token bucket, stored
as one row with one time. Each attempt moves that time forward. If the time would be more than `window_s`
ahead of now, the attempt is refused.

Each attempt counts against three limits:

- the identifier as typed, from one network address
- the account, from all addresses
- the address, for all accounts

Counting the account per address would tell an attacker which e-mail address belongs to a user name.

Two exceptions prevent an attacker from locking the user out. The account's limit does not apply to an address
from which the user has logged in before. A known device has a few extra attempts, in case the attacker shares
the user's address.
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

# How long an address and device are remembered as known after a login.
KNOWN_TTL_S = 90 * 24 * 3600.0
MAX_ATTEMPTS = 3  # Retries if another process inserts the same row at the same time.


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """Numbers of attempts allowed for each key. An exhausted limit is fully restored after `window_s`
    seconds.
    """

    pair: int
    account: int
    address: int
    devices: int = 0
    window_s: float = 15 * 60


LOGINS = AttemptLimits(pair=10, account=100, address=100, devices=5)
MAILS = AttemptLimits(pair=5, account=20, address=50)


# Maps each key that an attempt was charged to, to its limit.
Taken = Mapping[str, int]


class Attempts:
    """Rate limiter for one kind of attempts. Safe to share between threads and processes."""

    def __init__(self, engine: Engine, kind: str, limits: AttemptLimits) -> None:
        """`kind` is part of the keys, so attempts of other kinds are counted separately."""
        self._engine, self._kind, self.limits = engine, kind, limits

    def take(self, attempt: Attempt) -> Taken | None:
        """Count an attempt before it is made. Returns the keys that were charged, or None if a limit is
        reached.
        """
        for _ in range(MAX_ATTEMPTS):
            with suppress(DuplicateError):  # Another process just inserted the same row.
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
        """Return the seconds until a refused attempt will be accepted."""
        keys = _Keys.of(self._kind, attempt)
        with self._engine.writing() as connection:
            rows, now = _begin(connection, keys)
            ways = (self._debts(counted, rows, now) for counted in self._ways(keys, rows, now))
            return min(max(debts.values()) for debts in ways) - now - self.limits.window_s

    def succeeded(self, attempt: Attempt, taken: Taken | None = None) -> None:
        """Refund a successful attempt, and remember its address and device as known.

        `taken` is the result of `take`: only the keys charged there are refunded.
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
        """Return the new time of each key's row if the attempt is charged."""
        return {
            key: max(rows[key].until if key in rows else 0.0, now) + self.limits.window_s / most
            for key, most in counted.items()
        }

    def _ways(self, keys: "_Keys", rows: Mapping[str, "_Row"], now: float) -> Iterator[Taken]:
        """Yield the sets of keys that may be charged, in order of preference.

        The second set, for a known device only, is the account's limit for known devices.
        """

        def is_known(key: str) -> bool:
            return key in rows and rows[key].known_until > now

        counted = {keys.pair: self.limits.pair, keys.address: self.limits.address}
        yield counted if is_known(keys.known) else {**counted, keys.account: self.limits.account}
        if self.limits.devices and is_known(keys.device):
            yield {keys.devices: self.limits.devices}


class _Keys(NamedTuple):
    """Row keys for one attempt: four limits, the known address, and the known device ("" if not sent)."""

    pair: str
    account: str
    address: str
    devices: str
    known: str
    device: str

    @classmethod
    def of(cls, kind: str, attempt: Attempt) -> "_Keys":
        """Return the keys for an attempt."""
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
    """Lock the rows with the given keys by updating them. Returns the rows and the current time.

    The time is read while the lock is held, so it is not earlier than times used by other processes.
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
    """Update a row if it exists (`there`), else insert it. None leaves a column unchanged."""
    if there:
        statement = "UPDATE attempts SET until = coalesce(?, until), known_until = coalesce(?, known_until)"
        connection.execute(f"{statement} WHERE key = ?", (until, known_until, key))
    else:
        statement = "INSERT INTO attempts (key, until, known_until) VALUES (?, ?, ?)"
        connection.execute(statement, (key, until or 0.0, known_until or 0.0))


def _hash(*parts: str) -> str:
    """Return a fixed-length digest as key. It does not reveal the account or address."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
