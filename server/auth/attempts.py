"""Rate limits of logins and of requests for mails.

Attempts are counted in the accounts database, for all processes of a server. Each key is a token bucket,
one row with one number: the time until which the key is in debt. Attempts add to it, and time pays it off.

Three keys are counted: the identifier as typed, from one address; the account, from all addresses; and the
address, for all accounts. (Counting the account per address would tell an attacker which e-mail address
belongs to a user name.) An address from which the owner has logged in before is exempt from the account's
limit, so attackers elsewhere can't lock the owner out. A known device has a few attempts of its own, so
neither can attackers at the same address.
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

# How long the address and device of a login count as known for the account.
KNOWN_TTL_S = 90 * 24 * 3600.0
MAX_ATTEMPTS = 3  # To add a row that another process may add at the same time.


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """Attempts per key. A used-up key is full again after `window_s` seconds."""

    pair: int
    account: int
    address: int
    devices: int = 0
    window_s: float = 15 * 60


LOGINS = AttemptLimits(pair=10, account=100, address=100, devices=5)
MAILS = AttemptLimits(pair=5, account=20, address=50)


# The keys that an attempt was counted for, with the limit of each.
Taken = Mapping[str, int]


class Attempts:
    """Counter of attempts of one kind. Safe to use from many threads and processes."""

    def __init__(self, engine: Engine, kind: str, limits: AttemptLimits) -> None:
        """`kind` separates these attempts from others in the same database."""
        self._engine, self._kind, self.limits = engine, kind, limits

    def take(self, attempt: Attempt) -> Taken | None:
        """Count an attempt before it is made; return the keys it was counted for, None at a limit."""
        for _ in range(MAX_ATTEMPTS):
            with suppress(DuplicateError):  # Another process has just added the same row.
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
        """Return how many seconds a refused attempt has to wait."""
        keys = _Keys.of(self._kind, attempt)
        with self._engine.writing() as connection:
            rows, now = _begin(connection, keys)
            ways = (self._debts(counted, rows, now) for counted in self._ways(keys, rows, now))
            return min(max(debts.values()) for debts in ways) - now - self.limits.window_s

    def succeeded(self, attempt: Attempt, taken: Taken | None = None) -> None:
        """Refund a successful attempt, and remember its address and device as known.

        `taken` is what `take` returned: a login refunds only what it was charged.
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
        """Return until when each key would be in debt after an attempt."""
        return {
            key: max(rows[key].until if key in rows else 0.0, now) + self.limits.window_s / most
            for key, most in counted.items()
        }

    def _ways(self, keys: "_Keys", rows: Mapping[str, "_Row"], now: float) -> Iterator[Taken]:
        """Yield the keys to charge; then, for a known device, the key of the account's devices instead."""

        def is_known(key: str) -> bool:
            return key in rows and rows[key].known_until > now

        counted = {keys.pair: self.limits.pair, keys.address: self.limits.address}
        yield counted if is_known(keys.known) else {**counted, keys.account: self.limits.account}
        if self.limits.devices and is_known(keys.device):
            yield {keys.devices: self.limits.devices}


class _Keys(NamedTuple):
    """Keys of rows: four limits, and the known address and device ("" for none)."""

    pair: str
    account: str
    address: str
    devices: str
    known: str
    device: str

    @classmethod
    def of(cls, kind: str, attempt: Attempt) -> "_Keys":
        """Return the keys of an attempt of a kind."""
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
    """Lock the rows of some keys by writing them, and return them with the current time.

    The time is read under the lock, so it is never before a time that another process has counted.
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
    """Update a row, or insert it unless it is `there`. Columns that are None keep their value."""
    if there:
        statement = "UPDATE attempts SET until = coalesce(?, until), known_until = coalesce(?, known_until)"
        connection.execute(f"{statement} WHERE key = ?", (until, known_until, key))
    else:
        statement = "INSERT INTO attempts (key, until, known_until) VALUES (?, ?, ?)"
        connection.execute(statement, (key, until or 0.0, known_until or 0.0))


def _hash(*parts: str) -> str:
    """Return a key of fixed length that reveals neither account nor address."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
