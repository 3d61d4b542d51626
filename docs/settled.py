"""`python docs/settled.py FOLDER` waits until all processes that work in a folder are idle.

The processes are idle if all their threads were asleep at every check for a while. A thread that is waiting
for a processor is treated as running. A process that sleeps for a fixed time, for example before a retry, is
treated as idle.
"""

import os
import sys
import time
from collections.abc import Iterator

QUIET_S, PAUSE_S, LONGEST_S = 0.3, 0.02, 20.0


def is_busy(folder: str) -> bool:
    """Return whether a process in the folder has a thread that is running or waiting for a disk."""
    return any(state in "RD" for pid in processes_in(folder) for state in _states(pid))


def processes_in(folder: str) -> Iterator[str]:
    """Yield the ids of all other processes whose current folder is `folder` or a folder inside it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            inside = f"{os.readlink(f'/proc/{pid}/cwd')}/".startswith(f"{folder}/")
        except OSError:
            continue  # The process has ended, or belongs to another user.
        if inside and int(pid) != os.getpid():
            yield pid


def _states(pid: str) -> Iterator[str]:
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8", errors="replace") as file:
                yield file.read().rpartition(")")[2].split()[0]
    except OSError:
        return  # The process has ended.


if __name__ == "__main__":
    deadline = time.monotonic() + LONGEST_S
    quiet = time.monotonic()
    while quiet + QUIET_S > time.monotonic() < deadline:
        if is_busy(sys.argv[1]):
            quiet = time.monotonic()
        time.sleep(PAUSE_S)
