"""Attempts to log in: how many are allowed, and that no number of them takes up the memory."""

import tracemalloc

from server.auth.sessions import MAX_COUNTED_BYTES, Attempts


def test_after_some_attempts_the_next_has_to_wait() -> None:
    attempts = Attempts(most=2)
    for tried in (False, False, True, True):
        assert attempts.exhausted("ann", "10.0.0.1") == tried
        attempts.count("ann", "10.0.0.1")
    assert not attempts.exhausted("ann", "10.0.0.2")
    attempts.forget("ann", "10.0.0.1")
    assert not attempts.exhausted("ann", "10.0.0.1")


def test_an_attempt_is_forgotten_in_time() -> None:
    attempts = Attempts(most=1, window_s=0.0)
    attempts.count("ann", "10.0.0.1")
    assert not attempts.exhausted("ann", "10.0.0.1")


def test_attempts_with_long_names_stay_within_the_bound() -> None:
    attempts = Attempts()
    tracemalloc.start()
    try:
        for i in range(20_000):
            attempts.count(f"{i:06}" * 500, "10.0.0.1")
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert MAX_COUNTED_BYTES / 2 < taken < MAX_COUNTED_BYTES * 1.1
