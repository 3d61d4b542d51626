"""Retry policy for failed deliveries: delays and limits (docs/webhooks.md)."""

from collections.abc import Sequence

# after failed attempts: 5 s, 5 min, 30 min, 2 h, 5 h
BACKOFFS_S = (5.0, 300.0, 1800.0, 7200.0, 18_000.0)
MAX_RETRY_AFTER_S = 86_400.0  # a longer Retry-After is reduced to one day
MAX_ATTEMPTS = 50  # per delivery, including attempts delayed by Retry-After


def next_attempt(
    backoffs_s: Sequence[float], backoff_step: int, attempts: int, retry_after_s: float | None
) -> tuple[float, int] | None:
    """Return the delay in seconds before the next attempt, and the next `backoff_step`.

    `backoff_step` is an index in `backoffs_s`. Returns None if no further attempt should be made.
    """
    if attempts >= MAX_ATTEMPTS:
        return None
    if retry_after_s is not None and backoffs_s:
        return min(max(retry_after_s, 1.0), MAX_RETRY_AFTER_S), backoff_step
    return (backoffs_s[backoff_step], backoff_step + 1) if backoff_step < len(backoffs_s) else None
