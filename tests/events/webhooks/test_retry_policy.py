"""Tests of the retries of deliveries, and of when retries end."""

import pytest

from server.events.webhooks.retry_policy import BACKOFFS_S, MAX_ATTEMPTS, next_attempt


def test_the_steps_are_five_seconds_to_five_hours() -> None:
    waits, step = [], 0
    while found := next_attempt(BACKOFFS_S, step, len(waits) + 1, None):
        wait, step = found
        waits.append(wait)
    assert waits == [5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600]


@pytest.mark.parametrize(
    ("retry_after", "wait"), [(0.0, 1.0), (7.0, 7.0), (3600.0, 3600.0), (1e9, 24 * 3600.0)]
)
def test_a_receiver_says_when_but_not_at_once_nor_never(retry_after: float, wait: float) -> None:
    assert next_attempt(BACKOFFS_S, 4, 9, retry_after) == (wait, 4)
    assert next_attempt(BACKOFFS_S, 5, 9, retry_after) == (wait, 5)


def test_a_receiver_that_always_wants_to_be_asked_later_is_given_up() -> None:
    assert next_attempt(BACKOFFS_S, 0, MAX_ATTEMPTS - 1, 1.0) is not None
    assert next_attempt(BACKOFFS_S, 0, MAX_ATTEMPTS, 1.0) is None
