"""Size of the benchmarks: a share of the usual documents, requests and seconds.

`BENCH_SHARE=0.01 make bench` runs everything at nearly the smallest size, to check that it works. The figures
are meaningless then.
"""

import os

SHARE = float(os.environ.get("BENCH_SHARE", "1"))


def scaled(usual: int, least: int = 2) -> int:
    """Return a number for this run, given the usual number."""
    return max(least, round(usual * SHARE)) if SHARE < 1 else usual


def scaled_seconds(usual: float) -> float:
    """Return a duration for this run, given the usual one; at least 0.25 s."""
    return max(0.25, usual * SHARE) if SHARE < 1 else usual
