"""In CI (`CI=true`) nothing is skipped: a tool that is missing there is a failure."""

import os

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


def skipped(name: str, reason: str) -> int:
    """Say why something is not tested on this machine; the exit status."""
    print(f"{name}: SKIPPED, {reason}")
    if IN_CI:
        print(f"{name}: FAILED, since nothing is skipped in CI")
    return int(IN_CI)
