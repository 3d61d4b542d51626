"""How much the benchmarks measure: a share of their usual documents, requests and seconds.

`BENCH_SHARE=0.01 make bench` runs everything at nearly its smallest size, to see that it runs. The figures
mean nothing then.
"""

import os

SHARE = float(os.environ.get("BENCH_SHARE", "1"))


def scaled(usual: int, least: int = 2) -> int:
    """Return how many to measure where it is usually so many."""
    return max(least, round(usual * SHARE)) if SHARE < 1 else usual


def scaled_seconds(usual: float) -> float:
    """Return for how many seconds to measure, at least a quarter of one."""
    return max(0.25, usual * SHARE) if SHARE < 1 else usual
