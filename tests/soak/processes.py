"""Processes of a server: their roles, leftover processes, and their memory."""

import os
from contextlib import suppress
from pathlib import Path

from tests.machines.cluster import Machine
from tests.servers import children, is_alive, workers


def generation_of(machine: Machine) -> int | None:
    """Return the id of the process that forked the workers, or None if there is none."""
    assert machine.process
    found = [one for one in sorted(children(machine.process.pid)) if children(one)]
    return found[-1] if found else None


def workers_of(machine: Machine) -> list[int]:
    """Return the process ids of the workers."""
    assert machine.process
    return sorted(workers(machine.process.pid))


def leader_of(machine: Machine) -> int | None:
    """Return the process id of the leader. It is recognized by its threads, one for each job."""
    return max(workers_of(machine), key=_count_threads, default=None)


def _count_threads(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/task"))
    return 0


def serving(root: Path) -> dict[int, str]:
    """Return the processes whose command line or current folder belongs to a site.

    The result contains the state and command of each process, by process id.
    """
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid() and is_alive(int(path.name)):
            with suppress(OSError):
                command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if f"--site {root} " in command or Path(os.readlink(path / "cwd")) == root:
                    found[int(path.name)] = command
    return found


def tree(pid: int) -> set[int]:
    """Return the ids of a process and of all its descendants."""
    return {pid}.union(*(tree(child) for child in children(pid)))


def memory_bytes(machine: Machine) -> int:
    """Return the memory of a server's processes in bytes. Shared memory is counted once."""
    assert machine.process
    total = 0
    for pid in tree(machine.process.pid):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total
