"""Who has pushed pauses where others want to push as well, and only there."""

from server.history.remote.pushing import MAX_PAUSE_S, PushFairness


def test_who_meets_nobody_does_not_pause() -> None:
    courtesy = PushFairness()
    for _ in range(10):
        courtesy.pushed(0.1)
    assert courtesy.left == 0


def test_who_was_refused_pauses_after_its_own_pushes() -> None:
    courtesy = PushFairness()
    courtesy.record_rival()
    assert courtesy.left == 0  # It is behind, and tries again at once.
    courtesy.pushed(0.2)
    assert 0.1 < courtesy.left <= MAX_PAUSE_S


def test_who_pushes_without_end_lets_others_in_now_and_then() -> None:
    courtesy = PushFairness()
    courtesy.pushed(3.0)
    assert courtesy.left > 0
