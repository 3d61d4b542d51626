"""Retry policy for failed deliveries: delays and limits (docs/webhooks.md)."""

from collections.abc import Sequence

# after failed attempts: 5 s, 5 min, 30 min, 2 h, 5 h
BACKOFFS_S = (5.0, 300.0, 1800.0, 7200.0, 18_000.0)
MAX_RETRY_AFTER_S = 86_400.0  # a longer Retry-After is reduced to one day
MAX_ATTEMPTS = 50  # per delivery, including attempts delayed by Retry-After


def next_try(
    steps: Sequence[float], step: int, tries: int, retry_after: float | None
) -> tuple[float, int] | None:
    """Return the delay in seconds before the next attempt, and the next `step`, or None to give up.

    `step` is an index in `steps`. If the receiver sent `retry_after`, the delay is that value, within limits.
    """
    if tries >= MAX_ATTEMPTS:
        return None
    if retry_after is not None and steps:
        return min(max(retry_after, 1.0), MAX_RETRY_AFTER_S), step
    return (steps[step], step + 1) if step < len(steps) else None
