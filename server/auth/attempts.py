"""How often what can be guessed may be tried: logins; and how often mails may be asked for.

Attempts are counted in the accounts database, for all processes of a server together. Each key is one row
with one number, the time until which it is in debt: an attempt adds to it, and time pays it off. So a key
has some attempts at once, and then one more each time that a part of the window has passed.

Counted are an identifier, as it was typed, from one address; the account that it names from all addresses;
and the address for all accounts. Were it the account that is counted from one address, then somebody who has
used up a user name would learn which e-mail address belongs to it. An address from which the owner has logged
in before is not kept waiting by what others try from elsewhere: an attacker is slowed down, the owner not
locked out. Who shares an address with an attacker gets in by a known device: one that a login of the account
has named before has a few attempts beside the others, which all devices of the account share.
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

# How long after a login its address and its device count as known for the account.
KNOWN_TTL_S = 90 * 24 * 3600.0
MAX_ATTEMPTS = 3  # To add a row that another process may add at the same time.


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    """How many attempts there are at once, by key; all are there again after `window_s` seconds."""

    pair: int
    account: int
    address: int
    devices: int = 0
    window_s: float = 15 * 60


LOGINS = AttemptLimits(pair=10, account=100, address=100, devices=5)
MAILS = AttemptLimits(pair=5, account=20, address=50)


# The keys that an attempt was counted for, and how many attempts each has.
Taken = Mapping[str, int]


class Attempts:
    """Counts attempts of one kind. Safe to use from many threads and processes at once."""

    def __init__(self, engine: Engine, kind: str, limits: AttemptLimits) -> None:
        """`kind` keeps these attempts apart from others in the same database."""
        self._engine, self._kind, self.limits = engine, kind, limits

    def take(self, attempt: Attempt) -> Taken | None:
        """Count an attempt, before it is known how it ends; return what it was counted for.

        None if it is one too many; it is not counted then.
        """
        for _ in range(MAX_ATTEMPTS):
            with suppress(DuplicateError):  # Another process has just made the same row.
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
        """How many seconds it takes until an attempt is counted that was one too many."""
        keys = _Keys.of(self._kind, attempt)
        with self._engine.writing() as connection:
            rows, now = _begin(connection, keys)
            ways = (self._debts(counted, rows, now) for counted in self._ways(keys, rows, now))
            return min(max(debts.values()) for debts in ways) - now - self.limits.window_s

    def succeeded(self, attempt: Attempt, taken: Taken | None = None) -> None:
        """Take back an attempt by who now proved to own the account; know address and device from now on.

        `taken` is what it was counted for: no login gives back what it has not taken.
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
        """Until when each key that an attempt counts for would be in debt after it."""
        return {
            key: max(rows[key].until if key in rows else 0.0, now) + self.limits.window_s / most
            for key, most in counted.items()
        }

    def _ways(self, keys: "_Keys", rows: Mapping[str, "_Row"], now: float) -> Iterator[Taken]:
        """Yield the keys that an attempt counts for; then, for a known device, those of all devices."""

        def is_known(key: str) -> bool:
            return key in rows and rows[key].known_until > now

        counted = {keys.pair: self.limits.pair, keys.address: self.limits.address}
        yield counted if is_known(keys.known) else {**counted, keys.account: self.limits.account}
        if self.limits.devices and is_known(keys.device):
            yield {keys.devices: self.limits.devices}


class _Keys(NamedTuple):
    """The keys of rows: of an identifier from an address, of the address, of the account, and of all its
    devices; and of whether its owner is known to have that address, and that device ("" for none).
    """

    pair: str
    account: str
    address: str
    devices: str
    known: str
    device: str

    @classmethod
    def of(cls, kind: str, attempt: Attempt) -> "_Keys":
        """Those of an attempt; `kind` keeps attempts of one kind apart from others."""
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
    """The rows of some keys, in a transaction that writes them first, and so is alone with them.

    The time is taken once it is alone, so that of several at once none is before what another has counted.
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
    """Write what is given of the row of a key, which may be there already."""
    if there:
        statement = "UPDATE attempts SET until = coalesce(?, until), known_until = coalesce(?, known_until)"
        connection.execute(f"{statement} WHERE key = ?", (until, known_until, key))
    else:
        statement = "INSERT INTO attempts (key, until, known_until) VALUES (?, ?, ?)"
        connection.execute(statement, (key, until or 0.0, known_until or 0.0))


def _hash(*parts: str) -> str:
    """A key says neither who was tried nor from where, and is as long whatever was sent."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()
