"""Tests of the connection pool: its size, the choice of a connection, and when a connection is closed."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from server.database.pool import MAX_IDLE_CONNECTIONS, NoConnectionLeftError, Pool


class Link:
    """A fake connection."""

    def __init__(self, seconds: float) -> None:
        self.is_open, self.is_idle = True, True

    def close(self) -> None:
        self.is_open = False


def make_pool(size: int, is_usable: Callable[[Link], bool] = lambda link: link.is_open) -> Pool[Link]:
    return Pool(size, Link, lambda link, _: is_usable(link), lambda link: link.is_open and link.is_idle)


def test_one_is_used_again_and_others_wait_for_it() -> None:
    pool = make_pool(1)
    with pool.lend(0) as first, pytest.raises(NoConnectionLeftError), pool.lend(0.01):
        pass
    with pool.lend(0) as again:
        assert again is first


def test_what_can_not_be_made_takes_no_place() -> None:
    def connect(_: float) -> Link:
        raise OSError("away")

    pool = Pool(1, connect, lambda *_: True, lambda _: True)
    for _ in range(2):
        with pytest.raises(OSError, match="away"), pool.lend(0):
            pass


def test_one_that_is_no_longer_good_is_closed_and_another_made() -> None:
    bad = set[Link]()
    pool = make_pool(1, lambda link: link not in bad)
    with pool.lend(0) as first:
        bad.add(first)
    with pool.lend(0) as second:
        assert second is not first
        second.is_idle = False  # as if a transaction had been left open
    assert not first.is_open
    assert not second.is_open


def test_only_some_are_kept() -> None:
    pool = make_pool(2 * MAX_IDLE_CONNECTIONS)
    with ExitStack() as stack:
        links = [stack.enter_context(pool.lend(0)) for _ in range(2 * MAX_IDLE_CONNECTIONS)]
    assert sum(link.is_open for link in links) == MAX_IDLE_CONNECTIONS


def test_those_in_use_are_closed_when_they_are_given_back_to_a_pool_that_was_cleared() -> None:
    pool = make_pool(2)
    with pool.lend(0) as one:
        with pool.lend(0) as other:
            pass
        pool.clear()
        assert (one.is_open, other.is_open) == (True, False)
    assert not one.is_open
