"""Retry policy of failed deliveries: delays and limits (docs/webhooks.md)."""

from collections.abc import Sequence

BACKOFFS_S = (5.0, 300.0, 1800.0, 7200.0, 18_000.0)  # After each failed try: 5 s, 5 min, 30 min, 2 h, 5 h.
MAX_RETRY_AFTER_S = 86_400.0  # Longer pauses are cut to one day.
MAX_ATTEMPTS = 50  # Of one delivery, including those that a receiver's Retry-After delayed.


def next_try(
    steps: Sequence[float], step: int, tries: int, retry_after: float | None
) -> tuple[float, int] | None:
    """Return the seconds until the next attempt and the next step, or None to give up.

    A receiver's Retry-After is respected, and uses up no step.
    """
    if tries >= MAX_ATTEMPTS:
        return None
    if retry_after is not None and steps:
        return min(max(retry_after, 1.0), MAX_RETRY_AFTER_S), step
    return (steps[step], step + 1) if step < len(steps) else None
