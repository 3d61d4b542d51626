"""Tests of the class on which all caches are based, which limits their size, and of the mutex that grants
turns.
"""

import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.bounded import BoundedMutex, Cache, size_of, work_for
from server.errors import BusyError
from tests.waiting import until


def text_cache(most: int) -> Cache[str, str]:
    """Return a cache of texts in which each character counts as one byte."""
    return Cache(most, lambda key, value: len(key) + len(value))


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = text_cache(9)
    cache.put("a", "11")
    cache.put("b", "22")
    cache.put("c", "33")
    assert cache.get("a") == "11"
    cache.put("d", "44")
    assert [cache.get(key) for key in "abcd"] == ["11", None, "33", "44"]


def test_keys_count() -> None:
    cache = text_cache(100)
    for i in range(50):
        cache.put(f"{i:020}", "")
    assert len(cache) == 5


def test_what_is_too_large_is_not_kept_and_replaces_what_was() -> None:
    cache = text_cache(5)
    cache.put("a", "1")
    cache.put("b", "too large for it")
    assert (cache.get("a"), cache.get("b")) == ("1", None)
    cache.put("a", "too large for it")
    assert cache.get("a") is None
    assert cache.bytes == 0


@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=30)), max_size=60))
def test_the_bound_holds_and_nothing_wrong_is_answered(puts: list[tuple[str, str]]) -> None:
    cache, last = text_cache(40), dict[str, str]()
    for key, value in puts:
        cache.put(key, value)
        last[key] = value
        assert cache.bytes <= 40
        assert all(cache.get(k) in (None, v) for k, v in last.items())
        assert cache.bytes == sum(len(k) + len(v) for k, v in last.items() if cache.get(k) is not None)


def test_what_is_removed_is_gone_and_not_counted() -> None:
    cache = text_cache(10)
    cache.put("a", "1")
    cache.put("b", "2")
    cache.remove("a")
    cache.remove("nothing")
    assert (cache.items(), cache.bytes) == ([("b", "2")], 2)


def test_a_key_is_counted_with_all_its_texts() -> None:
    long = "x" * 10_000
    assert size_of(long) > 10_000
    assert size_of(("a", (long, 1), None)) > 10_000


# --- turns ---------------------------------------------------------------------------------------


def test_one_at_a_time() -> None:
    turns, inside, most = BoundedMutex("count", 20, 10), [0], [0]

    def count() -> None:
        for _ in range(200):
            with turns:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (inside, most) == ([0], [1])


def test_too_many_that_wait_are_refused_at_once() -> None:
    turns = BoundedMutex("count", 0, 10)
    with turns, pytest.raises(BusyError, match="Too many requests that count are being processed; try again"):
        turns.acquire()
    with turns:  # The next request gets its turn.
        pass


def test_nobody_waits_for_ever() -> None:
    turns = BoundedMutex("count", 1, 0.01)
    with turns:
        for _ in range(5):  # Each request that gives up makes room for the next one.
            with pytest.raises(BusyError):
                turns.acquire()


class Asking:
    """A client's request that waits for its turn in its own thread. `order` records the clients' turns."""

    def __init__(self, turns: BoundedMutex, client: str, order: list[str]) -> None:
        self.refused = False
        self._turns, self._client, self._order = turns, client, order
        self._waiting = sum(map(len, turns._waiting.values()))
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        work_for(self._client)
        try:
            with self._turns:
                self._order.append(self._client)
        except BusyError:
            self.refused = True

    def waits(self) -> "Asking":
        until(lambda: sum(map(len, self._turns._waiting.values())) > self._waiting)
        return self


def test_one_client_does_not_fill_all_places_that_others_wait_in() -> None:
    turns, order = BoundedMutex("count", 3, 10), list[str]()
    with turns:
        many = [Asking(turns, "192.0.2.1", order).waits() for _ in range(3)]
        other = Asking(turns, "192.0.2.2", order)
        many[-1].thread.join(10)  # Its place in the queue goes to the other client immediately.
        until(lambda: len(turns._waiting) == 2)
        assert [one.refused for one in many] == [False, False, True]
        # The client with the most requests can't displace another client.
        again = Asking(turns, "192.0.2.1", order)
        again.thread.join(10)
        assert again.refused
    for one in (*many, other):
        one.thread.join(10)
    assert not other.refused


def test_clients_take_turns_whoever_asks_most() -> None:
    turns, order = BoundedMutex("count", 8, 10), list[str]()
    with turns:
        asking = [Asking(turns, "192.0.2.1", order).waits() for _ in range(4)]
        asking += [Asking(turns, client, order).waits() for client in ("2001:db8::1", "2001:db8::2")]
    for one in asking:
        one.thread.join(10)
    # Addresses in the same network count as one client.
    first, many = "2001:db8::1", "192.0.2.1"
    assert order == [many, first, many, "2001:db8::2", many, many]


class Slow:
    """A key that runs a function when it is compared."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.meanwhile()
        return isinstance(other, Slow)


def test_no_other_thread_changes_a_cache_while_a_key_is_looked_up() -> None:
    cache: Cache[Slow, int] = Cache(100, lambda *_: 1)
    changing = threading.Thread(target=cache.clear)

    def meanwhile() -> None:
        if not changing.ident:
            changing.start()
            changing.join(0.2)
            assert changing.is_alive()

    cache.put(Slow(meanwhile), 7)
    assert cache.get(Slow(lambda: None)) == 7
    changing.join()
    assert len(cache) == 0
