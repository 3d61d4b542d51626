"""Size of the benchmarks, as a share of the usual number of documents, requests and seconds.

`BENCH_SHARE=0.01 make bench` runs all benchmarks at nearly their smallest size, to check that the benchmarks
work. The figures from such a run are meaningless.
"""

import os

SHARE = float(os.environ.get("BENCH_SHARE", "1"))


def scaled(usual: int, least: int = 2) -> int:
    """Return the number to use in this run, which is at least `least`. `usual` is the number for
    BENCH_SHARE=1.
    """
    return max(least, round(usual * SHARE)) if SHARE < 1 else usual


def scaled_seconds(usual: float) -> float:
    """Return the duration to use in this run, which is at least 0.25 s. `usual` is the duration for
    BENCH_SHARE=1.
    """
    return max(0.25, usual * SHARE) if SHARE < 1 else usual
