"""Growth of the processor time with the size of the input, to find quadratic work."""

import time
from collections.abc import Callable

FACTOR = 8


def growth(run: Callable[[int], object], size: int) -> float:
    """Return how many times the processor time of `run(size)` the call `run(FACTOR * size)` needs.

    Linear work returns about 8, quadratic work about 64.
    """
    return _least_time(run, FACTOR * size) / max(_least_time(run, size), 1e-6)


def is_linear(run: Callable[[int], object], size: int) -> bool:
    # Between 8 and 64. The first calls fill caches, and another process can slow a call down.
    return any(growth(run, size) < 3 * FACTOR for _ in range(3))


def _least_time(run: Callable[[int], object], size: int) -> float:
    times: list[float] = []
    while len(times) < 3:
        began = time.thread_time()
        run(size)
        times.append(time.thread_time() - began)
    return min(times)
