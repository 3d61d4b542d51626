"""In CI (`CI=true`), no test is skipped: if a tool is missing, the test fails."""

import os

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


def skipped(name: str, reason: str) -> int:
    """Print why a test is skipped on this machine, and return the exit status."""
    print(f"{name}: SKIPPED, {reason}")
    if IN_CI:
        print(f"{name}: FAILED, since nothing is skipped in CI")
    return int(IN_CI)
