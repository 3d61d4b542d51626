"""Request counts for each client, in memory that all workers share.

The table has a fixed size. If there is no room for a new client, it replaces a client whose counting period
has ended or, failing that, the client with the fewest requests.
"""

import mmap
import secrets
import time
from dataclasses import dataclass
from hashlib import blake2b

from server.site.change_log import SharedLock

SETS, WAYS = 4096, 8  # a client can use any slot of the set that its hash selects
ID_BYTES = 16
_SLOTS = SETS * WAYS


@dataclass(frozen=True, slots=True)
class UnsentCount:
    """The number of a client's requests that have not yet been sent to the shared store."""

    id: bytes
    count: int


class CountTable:
    """Request counts for each client. Must be created before forking. Thread-safe."""

    def __init__(self) -> None:
        view = memoryview(mmap.mmap(-1, _SLOTS * (ID_BYTES + 3 * 8)))
        times, end = _SLOTS * ID_BYTES, _SLOTS * 8
        self._ids = view[:times]
        self._ends = view[times : times + end].cast("d")  # Unix times
        self._counts = view[times + end : times + 2 * end].cast("Q")
        self._unsent = view[times + 2 * end :].cast("Q")
        self._key = secrets.token_bytes(16)
        self._lock = SharedLock()

    def add(self, client: bytes, window_s: float, amount: int = 1) -> tuple[int, float]:
        """Add `amount` requests to the count of a client.

        Return the new count, and the Unix time at which the client's counting period ends.
        """
        places, now = self._places(client), time.time()
        with self._lock:
            slot = self._find(client, places)
            if slot is None:
                slot = min(places, key=lambda at: (self._ends[at] > now, self._counts[at], self._ends[at]))
                self._ends[slot] = 0.0
                self._ids[slot * ID_BYTES : (slot + 1) * ID_BYTES] = client
            if self._ends[slot] <= now:
                self._counts[slot] = self._unsent[slot] = 0
                self._ends[slot] = now + window_s
            self._counts[slot] += amount
            self._unsent[slot] += amount
            return self._counts[slot], self._ends[slot]

    def unsent(self, min_count: int, max_clients: int) -> list[UnsentCount]:
        """Return up to `max_clients` unsent counts that are at least `min_count`, highest counts first."""
        now, ends = time.time(), self._ends.tolist()
        waiting = [
            (count, slot)
            for slot, count in enumerate(self._unsent.tolist())
            if count >= min_count and ends[slot] > now
        ]
        waiting.sort(reverse=True)
        with self._lock:
            return [UnsentCount(self._id(slot), self._unsent[slot]) for _, slot in waiting[:max_clients]]

    def record_total(self, sent: UnsentCount, total: int, remaining_s: float) -> None:
        """Set a client's count to `total` (from all machines, including `sent`) plus its unsent requests."""
        with self._lock:
            slot = self._find(sent.id, self._places(sent.id))
            if slot is not None:
                self._unsent[slot] -= min(sent.count, self._unsent[slot])
                self._counts[slot] = total + self._unsent[slot]
                self._ends[slot] = time.time() + remaining_s

    def _places(self, client: bytes) -> range:
        number = int.from_bytes(blake2b(client, key=self._key, digest_size=4).digest()) % SETS
        return range(number * WAYS, (number + 1) * WAYS)

    def _find(self, client: bytes, places: range) -> int | None:
        start = places.start * ID_BYTES
        ids = bytes(self._ids[start : start + WAYS * ID_BYTES])
        at = ids.find(client)
        while at >= 0 and at % ID_BYTES:
            at = ids.find(client, at + 1)
        return None if at < 0 else places.start + at // ID_BYTES

    def _id(self, slot: int) -> bytes:
        return bytes(self._ids[slot * ID_BYTES : (slot + 1) * ID_BYTES])


def client_id(key: str) -> bytes:
    """Return a hash of a client's address, which is the same on all machines."""
    return blake2b(key.encode(errors="surrogatepass"), digest_size=ID_BYTES).digest()
