"""Retry policy for failed deliveries, which determines delays and limits (docs/webhooks.md)."""

from collections.abc import Sequence

# Delays after failed attempts: 5 s, 5 min, 30 min, 2 h, 5 h.
BACKOFFS_S = (5.0, 300.0, 1800.0, 7200.0, 18_000.0)
MAX_RETRY_AFTER_S = 86_400.0  # A longer delay in Retry-After is reduced to one day.
MAX_ATTEMPTS = 50  # limit per delivery, including attempts that Retry-After delays


def next_try(
    steps: Sequence[float], step: int, tries: int, retry_after: float | None
) -> tuple[float, int] | None:
    """Return the number of seconds until the next attempt, and the next index in `steps` (the list of
    delays). Return None if no further attempt should be made.

    If the receiver sent the header Retry-After, the delay in this header is used, and the index stays the
    same.
    """
    if tries >= MAX_ATTEMPTS:
        return None
    if retry_after is not None and steps:
        return min(max(retry_after, 1.0), MAX_RETRY_AFTER_S), step
    return (steps[step], step + 1) if step < len(steps) else None
