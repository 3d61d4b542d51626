"""Expiry of the owner's studio sessions and one-time keys."""
# This is a separate module so that the background job does not import the authentication libraries.

import time
from pathlib import Path

from server.paths import studio_folder

KEY_TTL_S = 3600.0


def age_of(path: Path) -> float:
    # Missing files count as infinitely old.
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")


def sweep_sessions(root: Path, lifetime_s: float) -> int:
    """Delete one-time keys that have expired, and sessions that are older than `lifetime_s` seconds.

    Return the number of deleted files.
    """
    removed = 0
    for kind, longest_s in (("session", lifetime_s), ("key", KEY_TTL_S)):
        for path in studio_folder(root).glob(f"*.{kind}"):
            if longest_s < age_of(path) < float("inf"):
                path.unlink(missing_ok=True)
                removed += 1
    return removed
