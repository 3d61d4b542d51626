"""Limits on login attempts and on requests that send an email."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from server.auth.login_record import Attempt
from server.bounded import network_of
from server.database.engine import Connection, DuplicateError, Engine

# How long after a login the user's network address and device are treated as known.
KNOWN_TTL_S = 90 * 24 * 3600.0
MAX_ATTEMPTS = 3  # How many times to try to insert a row, in case another process is inserting the same row.


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """The maximum number of attempts within `window_s` seconds.

    - `pair`: the maximum for one account from one network address.
    - `devices`: the number of extra attempts from an account's known devices.
    """

    pair: int
    account: int
    address: int
    devices: int = 0
    window_s: float = 15 * 60


LOGINS = AttemptLimits(pair=10, account=100, address=100, devices=5)
MAILS = AttemptLimits(pair=5, account=20, address=50)


# The keys under which an attempt was counted, with the maximum number of attempts for each key.
CountedKeys = Mapping[str, int]


class AttemptLimiter:
    """Rate limiter for one kind of attempt, such as logins. Thread-safe and fork-safe."""

    def __init__(self, engine: Engine, kind: str, limits: AttemptLimits) -> None:
        self._engine, self._kind, self.limits = engine, kind, limits

    def count_attempt(self, attempt: Attempt) -> CountedKeys | None:
        """Count an attempt before it is made, and return the keys under which it was counted.

        Return None if the attempt must be rejected.
        """
        for _ in range(MAX_ATTEMPTS):
            with suppress(DuplicateError):  # Another process has just inserted the same row.
                return self._count(_Keys.for_attempt(self._kind, attempt))
        return None

    def _count(self, keys: "_Keys") -> CountedKeys | None:
        with self._engine.writing() as connection:
            rows, now = _lock_rows(connection, keys)
            for counted in self._candidate_key_sets(keys, rows, now):
                debts = self._debts(counted, rows, now)
                if max(debts.values()) <= now + self.limits.window_s:
                    for key, debt in debts.items():
                        _store_row(connection, key, key in rows, until=debt)
                    return counted
        return None

    def wait_s(self, attempt: Attempt) -> float:
        keys = _Keys.for_attempt(self._kind, attempt)
        with self._engine.writing() as connection:
            rows, now = _lock_rows(connection, keys)
            ways = (self._debts(counted, rows, now) for counted in self._candidate_key_sets(keys, rows, now))
            return min(max(debts.values()) for debts in ways) - now - self.limits.window_s

    def record_success(self, attempt: Attempt, counted: CountedKeys | None = None) -> None:
        """Remove a successful attempt from the counts, and record its network address and device as known."""
        keys = _Keys.for_attempt(self._kind, attempt)
        with self._engine.writing() as connection:
            rows, now = _lock_rows(connection, keys)
            for key, most in (counted or {}).items():
                if key in rows:
                    _store_row(connection, key, True, until=rows[key].until - self.limits.window_s / most)
            _store_row(connection, keys.pair, keys.pair in rows, until=0.0)
            for key in filter(None, (keys.known_address, keys.known_device)):
                _store_row(connection, key, key in rows, known_until=now + KNOWN_TTL_S)

    def _debts(self, counted: CountedKeys, rows: Mapping[str, "_Row"], now: float) -> dict[str, float]:
        # Token buckets: a row contains the time at which the bucket will be full again, and each attempt
        # moves this time forward.
        return {
            key: max(rows[key].until if key in rows else 0.0, now) + self.limits.window_s / most
            for key, most in counted.items()
        }

    def _candidate_key_sets(
        self, keys: "_Keys", rows: Mapping[str, "_Row"], now: float
    ) -> Iterator[CountedKeys]:
        # A known network address skips the account's limit, so an attacker can't lock the user out. A known
        # device gets extra attempts, in case the attacker shares the user's network address.

        def is_known(key: str) -> bool:
            return key in rows and rows[key].known_until > now

        counted = {keys.pair: self.limits.pair, keys.address: self.limits.address}
        yield counted if is_known(keys.known_address) else {**counted, keys.account: self.limits.account}
        if self.limits.devices and is_known(keys.known_device):
            yield {keys.devices: self.limits.devices}


class _Keys(NamedTuple):
    """Keys of the database rows for one attempt."""

    pair: str
    account: str
    address: str
    devices: str
    known_address: str
    known_device: str

    @classmethod
    def for_attempt(cls, kind: str, attempt: Attempt) -> "_Keys":
        # The key `pair` depends on the identifier as typed. If it depended on the account, attackers could
        # find out whether a user name and an email address belong to the same account.
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


def _lock_rows(connection: Connection, keys: tuple[str, ...]) -> tuple[dict[str, _Row], float]:
    # The UPDATE locks the rows. The clock is read afterwards, so that this attempt is later than those
    # already counted.
    began = time.time()
    connection.execute("DELETE FROM attempts WHERE until <= ? AND known_until <= ?", (began, began))
    marks = ", ".join("?" * len(keys))
    own = f"UPDATE attempts SET until = until WHERE key IN ({marks}) RETURNING key, until, known_until"
    return {key: _Row(*row) for key, *row in connection.execute(own, keys)}, time.time()


def _store_row(
    connection: Connection,
    key: str,
    exists: bool,
    *,
    until: float | None = None,
    known_until: float | None = None,
) -> None:
    # Columns whose value is None are not changed.
    if exists:
        statement = "UPDATE attempts SET until = coalesce(?, until), known_until = coalesce(?, known_until)"
        connection.execute(f"{statement} WHERE key = ?", (until, known_until, key))
    else:
        statement = "INSERT INTO attempts (key, until, known_until) VALUES (?, ?, ?)"
        connection.execute(statement, (key, until or 0.0, known_until or 0.0))


def _hash(*parts: str) -> str:
    # Hashed, so that the rows do not reveal accounts or network addresses.
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
