"""Fair access to the remote: a machine pauses after its own pushes only if other machines are also
pushing.
"""

from server.history.remote.pushing import MAX_PAUSE_S, PushFairness


def test_a_machine_without_rivals_does_not_pause() -> None:
    courtesy = PushFairness()
    for _ in range(10):
        courtesy.record_push(0.1)
    assert courtesy.remaining_s == 0


def test_a_machine_that_lost_a_race_pauses_after_its_own_pushes() -> None:
    courtesy = PushFairness()
    courtesy.record_other_machine()
    assert courtesy.remaining_s == 0  # After losing a race, the machine retries immediately.
    courtesy.record_push(0.2)
    assert 0.1 < courtesy.remaining_s <= MAX_PAUSE_S


def test_a_constantly_pushing_machine_pauses_at_times() -> None:
    courtesy = PushFairness()
    courtesy.record_push(3.0)
    assert courtesy.remaining_s > 0
