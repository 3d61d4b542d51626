"""Size of the benchmarks. `BENCH_SHARE=0.01 make bench` makes them small, to check quickly that they work."""

import os

SHARE = float(os.environ.get("BENCH_SHARE", "1"))


def scaled(number: int, minimum: int = 2) -> int:
    """Multiply a number by BENCH_SHARE. Return at least `minimum`."""
    return max(minimum, round(number * SHARE)) if SHARE < 1 else number


def scaled_seconds(duration_s: float) -> float:
    """Multiply a duration by BENCH_SHARE. Return at least 0.25 s."""
    return max(0.25, duration_s * SHARE) if SHARE < 1 else duration_s
