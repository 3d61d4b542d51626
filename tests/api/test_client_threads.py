"""Tests of the threads that handle requests: clients take turns, and no client occupies all threads."""

import threading
from collections.abc import Iterator

import pytest

from server.api.serving import client_threads
from server.api.serving.client_threads import ClientThreads
from server.errors import QueueError
from tests.waiting import until


@pytest.fixture
def threads() -> Iterator[ClientThreads]:
    pool = ClientThreads(3, "test", reserved=1)
    yield pool
    pool.shutdown()


def test_a_client_with_many_requests_leaves_threads_to_others(threads: ClientThreads) -> None:
    ended, working = threading.Event(), list[int]()

    def work(number: int) -> int:
        working.append(number)
        assert ended.wait(30)
        return number

    try:
        many = [threads.submit("many", work, number) for number in range(5)]
        until(lambda: len(working) == 2)
        assert threads.submit("other", str, 7).result(30) == "7"
        assert working == [0, 1]
    finally:
        ended.set()
    assert [future.result(30) for future in many] == [0, 1, 2, 3, 4]


def test_the_calls_that_wait_for_a_client_are_limited(
    threads: ClientThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_threads, "MAX_QUEUED_CALLS", 3)
    ended = threading.Event()
    waiting = [threads.submit("many", ended.wait, 30) for _ in range(5)]
    with pytest.raises(QueueError):
        threads.submit("many", str, 1)
    assert threads.submit("other", str, 7).result(30) == "7"
    ended.set()
    assert [future.result(30) for future in waiting] == [True] * 5
    assert threads.submit("many", str, 8).result(30) == "8"


def test_clients_that_wait_are_served_in_turn() -> None:
    pool, ended, order = ClientThreads(1, "test", reserved=0), threading.Event(), list[str]()
    held = pool.submit("many", ended.wait, 30)
    waiting = [pool.submit(client, order.append, client) for client in ("many", "many", "many", "a", "b")]
    ended.set()
    for future in (held, *waiting):
        future.result(30)
    pool.shutdown()
    assert order == ["many", "a", "b", "many", "many"]


def test_what_work_raises_is_raised_by_its_future(threads: ClientThreads) -> None:
    with pytest.raises(ZeroDivisionError):
        threads.submit("one", divmod, 1, 0).result(30)
    assert threads.submit("one", divmod, 7, 2).result(30) == (3, 1)


def test_what_was_given_up_is_not_begun(threads: ClientThreads) -> None:
    ended, begun = threading.Event(), list[int]()
    held = [threads.submit("one", ended.wait, 30) for _ in range(2)]
    given_up = threads.submit("one", begun.append, 1)
    assert given_up.cancel()
    ended.set()
    last = threads.submit("one", begun.append, 2)
    for future in (*held, last):
        future.result(30)
    assert begun == [2]
