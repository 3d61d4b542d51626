"""Size of the benchmarks. `BENCH_SHARE=0.01 make bench` makes them small, to check quickly that they work."""

import os

SHARE = float(os.environ.get("BENCH_SHARE", "1"))


def scaled(usual: int, least: int = 2) -> int:
    """Scale a number by BENCH_SHARE, but return at least `least`."""
    return max(least, round(usual * SHARE)) if SHARE < 1 else usual


def scaled_seconds(usual: float) -> float:
    """Scale a duration by BENCH_SHARE, but return at least 0.25 s."""
    return max(0.25, usual * SHARE) if SHARE < 1 else usual
