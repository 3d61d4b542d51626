"""`python docs/settled.py FOLDER`: waits until no process that works in a folder has anything to do.

That is so once each of their threads has slept whenever it was looked at for a while: a thread that only
lacks a processor shows as running. What waits for a time to come, as a retry does, counts as settled.
"""

import os
import sys
import time
from collections.abc import Iterator

QUIET_S, PAUSE_S, LONGEST_S = 0.3, 0.02, 20.0


def is_busy(folder: str) -> bool:
    """Whether a thread of a process with its current folder there is running, or waits for a disk."""
    return any(state in "RD" for pid in processes_in(folder) for state in _states(pid))


def processes_in(folder: str) -> Iterator[str]:
    """Yield the ids of other processes whose current folder is there."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            inside = f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{folder}/")
        except OSError:
            continue  # it has ended, or is somebody else's
        if inside and int(pid) != os.getpid():
            yield pid


def _states(pid: str) -> Iterator[str]:
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8", errors="replace") as file:
                yield file.read().rpartition(")")[2].split()[0]
    except OSError:
        return  # it has ended meanwhile


if __name__ == "__main__":
    deadline = time.monotonic() + LONGEST_S
    quiet = time.monotonic()
    while quiet + QUIET_S > time.monotonic() < deadline:
        if is_busy(sys.argv[1]):
            quiet = time.monotonic()
        time.sleep(PAUSE_S)
