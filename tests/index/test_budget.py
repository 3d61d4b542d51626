"""The budget of a request: limits on steps, bytes and processor time, and the turn that costly requests wait
for.
"""

import threading
import time
import weakref
from datetime import timedelta

import pytest

from server.bounded import BoundedMutex
from server.config.model import DEFAULTS, Settings, with_values
from server.errors import BusyError, ClientGone, LimitError, NeedsThreadPool
from server.index import budget as budgets
from server.index.budget import LARGE_BYTES, Budget, large_responses, turns


def test_a_budget_without_settings_is_unlimited() -> None:
    budget = Budget()
    budget.spend(10**9)
    budget.write(10**12)


@pytest.mark.parametrize("most", [1, 10, 999, 1000, 1001, 25_000])
def test_the_step_after_the_last_is_refused(most: int) -> None:
    budget = Budget(with_values(DEFAULTS, {"api.limits.steps": most}))
    for _ in range(most):
        budget.spend(1)
    with pytest.raises(LimitError) as refused:
        budget.spend(1)
    assert refused.value.details == {"limit": "steps"}
    assert f"{most:,} steps" in refused.value.message


def test_many_steps_are_refused_in_advance() -> None:
    with pytest.raises(LimitError):
        Budget(with_values(DEFAULTS, {"api.limits.steps": 1_000_000})).spend(1_000_001)


def test_response_bytes_are_limited() -> None:
    budget = Budget(with_values(DEFAULTS, {"api.limits.size": 100}))
    budget.write(60)
    budget.allow(40)
    budget.write(40)
    with pytest.raises(LimitError) as refused:
        budget.allow(1)
    assert refused.value.details == {"limit": "size"}


def spend_without_end(budget: Budget) -> None:
    while True:
        budget.spend(1)


def test_a_write_has_more_processor_time_and_as_many_steps_as_it_needs() -> None:
    settings = with_values(DEFAULTS, {"api.limits.steps": 10, "api.limits.time": timedelta(milliseconds=30)})
    began = time.thread_time()
    with pytest.raises(LimitError) as refused:
        spend_without_end(Budget(settings).of_write())
    assert refused.value.details == {"limit": "time"}
    assert time.thread_time() - began >= budgets.WRITE_TIME_FACTOR * 0.03


def test_processor_time_is_limited() -> None:
    budget = Budget(
        with_values(DEFAULTS, {"api.limits.steps": 10**12, "api.limits.time": timedelta(milliseconds=30)})
    )
    with pytest.raises(LimitError) as refused:
        spend_without_end(budget)
    assert refused.value.details == {"limit": "time"}


def costly(taking: BoundedMutex) -> Budget:
    """Return a budget that has used so much processor time that it has acquired the turn for costly
    requests.
    """
    budget = Budget(
        with_values(DEFAULTS, {"api.limits.steps": 10**12, "api.limits.time": timedelta(minutes=1)}), taking
    )
    began = time.thread_time()
    while time.thread_time() - began < 2 * budgets.COSTLY_CPU_S:
        budget.spend(1)
    return budget


def test_one_costly_request_computes_at_a_time() -> None:
    taking, done = turns(), threading.Event()

    def wait() -> None:
        with costly(taking):
            done.set()

    with costly(taking):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not done.wait(0.5)
    assert done.wait(10)
    waiting.join(10)


def test_a_cheap_request_does_not_wait() -> None:
    taking = turns(max_waiting=0)
    with costly(taking), Budget(Settings(), taking) as cheap:
        cheap.spend(1500)


def test_too_many_waiting_requests_are_refused() -> None:
    taking = turns(max_waiting=0)
    with costly(taking), pytest.raises(BusyError):
        costly(taking)
    costly(taking).close()  # The next budget can acquire the turn.


def test_a_request_that_must_not_wait_is_postponed() -> None:
    taking = turns()
    settings = with_values(DEFAULTS, {"api.limits.steps": 10**12, "api.limits.time": timedelta(minutes=1)})
    with costly(taking), pytest.raises(NeedsThreadPool) as postponed:
        spend_without_end(Budget(settings, taking, waits=False))
    assert postponed.value.costly


def test_a_postponed_request_takes_its_turn_first() -> None:
    taking = turns(max_waiting=0)
    with costly(taking), pytest.raises(BusyError):
        Budget(Settings(), taking, is_costly=True).spend(budgets.STEPS_PER_CLOCK_READ + 1)


def test_a_request_of_a_disconnected_client_is_aborted() -> None:
    left = [False]
    budget = Budget(Settings(), turns(), is_client_gone=lambda: left[0])
    budget.spend(2 * budgets.STEPS_PER_CLOCK_READ)
    left[0] = True
    with pytest.raises(ClientGone):
        budget.spend(2 * budgets.STEPS_PER_CLOCK_READ)


def test_one_large_response_is_rendered_at_a_time() -> None:
    large = BoundedMutex("have large responses", 1, 0.05)
    settings = with_values(DEFAULTS, {"api.limits.size": 10 * LARGE_BYTES})
    with Budget(settings, large=large) as first, Budget(settings, large=large) as second:
        first.write(LARGE_BYTES)
        second.write(LARGE_BYTES)
        first.write(1)
        with pytest.raises(BusyError):
            second.write(1)
        with pytest.raises(NeedsThreadPool):
            Budget(settings, large=large, waits=False).allow(LARGE_BYTES + 1)
        first.write(8 * LARGE_BYTES)
        with pytest.raises(LimitError):
            first.write(LARGE_BYTES)
        first.close()
        second.write(1)


def test_a_large_response_is_not_rendered_on_the_event_loop() -> None:
    with pytest.raises(NeedsThreadPool):
        Budget(DEFAULTS, on_loop=True, large=large_responses()).write(LARGE_BYTES + 1)


def test_the_holder_of_the_turn_does_not_wait_for_large_responses() -> None:
    large = BoundedMutex("have large responses", 0, 0.05)
    with large, Budget(DEFAULTS, turns(), large=large) as budget:
        budget.take_turn()
        budget.write(2 * LARGE_BYTES)


def test_pieces_count_while_they_are_added() -> None:
    budget, pieces = Budget(with_values(DEFAULTS, {"api.limits.size": 1000})), list[bytes]()
    budget.count_pieces(pieces)
    pieces += [b"x"] * 1000
    budget.spend(budgets.STEPS_PER_CLOCK_READ + 1)
    pieces.append(b"x")
    with pytest.raises(LimitError) as refused:
        budget.spend(budgets.STEPS_PER_CLOCK_READ + 1)
    assert refused.value.details == {"limit": "size"}


def test_a_closed_budget_keeps_no_pieces() -> None:
    class Pieces(list[bytes]):
        """A list that can be weakly referenced, so that a test can check whether it was freed."""

    budget, pieces = Budget(DEFAULTS), Pieces([b"x"])
    budget.count_pieces(pieces)
    kept = weakref.ref(pieces)
    del pieces
    assert kept() is not None
    budget.close()
    assert kept() is None
