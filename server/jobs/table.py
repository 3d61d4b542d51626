"""The reports of jobs in memory that all workers of a server share: any worker can be asked for metrics."""

import mmap
import struct

from server.jobs.runner import Report

MAX_JOBS = 32
_SLOT = struct.Struct("=48s200sdd")  # the name, the error, when the last run ended, when the next is due


class JobTable:
    """The newest report of each job. Make it before the workers are forked; only the leader writes.

    A reader that meets a write may get a part of each report: it is for people and graphs.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, MAX_JOBS * _SLOT.size)
        self._slots: dict[str, int] = {}  # of the process that leads, by the name of the job

    def clear(self) -> None:
        """Forget the jobs of another process that has led."""
        self._slots.clear()
        self._memory[:] = bytes(len(self._memory))

    def note(self, report: Report) -> None:
        """Replace the report of a job. Each job has a thread, but a slot of its own."""
        slot = self._slots.setdefault(report.name, len(self._slots))
        if slot < MAX_JOBS:
            due = -1.0 if report.due is None else report.due
            texts = report.name.encode()[:48], report.error.encode()[:200]
            _SLOT.pack_into(self._memory, slot * _SLOT.size, *texts, report.ended, due)

    def reports(self) -> tuple[Report, ...]:
        """Return the reports of all jobs, as any worker sees them; none before a worker leads."""
        found = []
        for name, error, ended, due in _SLOT.iter_unpack(self._memory[:]):
            if text := name.rstrip(b"\0"):
                told = error.rstrip(b"\0").decode(errors="replace")
                found.append(Report(text.decode(errors="replace"), None if due < 0 else due, ended, told))
        return tuple(found)
