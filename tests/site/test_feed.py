"""The feed tells every record once, in order, and says so when some were missed."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.site.feed import Feed, Record

Make = Callable[..., Feed]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:
        yield lambda *size: stack.enter_context(closing(Feed(*size)))


paths = st.lists(st.text("ab/é", min_size=1, max_size=5), max_size=3, unique=True)
told = st.lists(st.tuples(st.none() | paths, st.none() | st.integers(0, 9)), max_size=12)


@given(told, st.integers(0, 5))
def test_all_that_was_told_is_heard_unless_the_ring_went_round(
    records: list[tuple[list[str] | None, int | None]], every: int
) -> None:
    with closing(Feed(600)) as feed:
        tell_and_hear(feed, records, every)


def tell_and_hear(feed: Feed, records: list[tuple[list[str] | None, int | None]], every: int) -> None:
    at, waiting = 0, list[Record]()
    for i, (names, write) in enumerate(records):
        feed.tell(names, write)
        waiting.append(Record(os.getpid(), None if names is None else tuple(sorted(names)), write))
        if i % (every + 1) == 0:
            behind = feed.position - at
            at, heard = feed.since(at)
            assert heard == (waiting if behind <= feed.size else None)
            assert at == feed.position
            waiting = []


def test_what_is_urgent_demands_to_be_known_and_a_hint_does_not(make: Make) -> None:
    feed = make()
    feed.tell(["a"])
    assert feed.demanded == 0
    feed.tell(["b"], 2, urgent=True)
    assert feed.demanded == feed.position
    feed.tell(["c"])
    assert feed.demanded < feed.position


def test_a_record_that_is_too_long_stands_for_anything(make: Make) -> None:
    feed = make(1024)
    feed.tell([f"content/{i}.md" for i in range(500)], 3, urgent=True)
    assert feed.since(0)[1] == [Record(os.getpid(), None, 3, urgent=True)]


def test_other_processes_hear_it_and_are_heard(make: Make) -> None:
    feed = make()
    child = os.fork()
    if not child:
        feed.tell(["from the child"], 1)
        os._exit(feed.enter())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert feed.since(0)[1] == [Record(child, ("from the child",), 1)]
    assert feed.enter() == 2
