"""When a delivery that failed is tried again, and when it is given up (docs/webhooks.md)."""

from collections.abc import Sequence

BACKOFFS_S = (5.0, 300.0, 1800.0, 7200.0, 18_000.0)  # After each failed try: 5 s, 5 min, 30 min, 2 h, 5 h.
MAX_RETRY_AFTER_S = 86_400.0  # A receiver may ask for a pause of one day.
MAX_ATTEMPTS = 50  # Of a delivery, also if a receiver asks for later ones, which count as no step.


def next_try(
    steps: Sequence[float], step: int, tries: int, retry_after: float | None
) -> tuple[float, int] | None:
    """In how many seconds to try again, and the step from then on; None where it is given up.

    A receiver that says when it wants to be asked again is asked then, which takes no step.
    """
    if tries >= MAX_ATTEMPTS:
        return None
    if retry_after is not None and steps:
        return min(max(retry_after, 1.0), MAX_RETRY_AFTER_S), step
    return (steps[step], step + 1) if step < len(steps) else None
