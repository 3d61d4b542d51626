"""The files of the sessions of the machine's owner, and of the keys for them: how old they are, and which go.

What removes them in the background needs none of the libraries that read a token.
"""

import time
from pathlib import Path

from server.paths import studio_folder

KEY_TTL_S = 3600.0


def age_of(path: Path) -> float:
    """How many seconds ago a key was made, or the key of a session; infinitely many where there is none."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")


def sweep_sessions(root: Path, lifetime_s: float) -> int:
    """Remove the sessions that have ended, and the keys that are too old; return how many."""
    removed = 0
    for kind, longest_s in (("session", lifetime_s), ("key", KEY_TTL_S)):
        for path in studio_folder(root).glob(f"*.{kind}"):
            if longest_s < age_of(path) < float("inf"):
                path.unlink(missing_ok=True)
                removed += 1
    return removed
