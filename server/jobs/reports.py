"""The latest reports on background jobs, in shared memory."""

import mmap
import struct

from server.jobs.runner import JobReport

MAX_JOBS = 32
_SLOT = struct.Struct("=48s200sdd")  # name, error, end of the last run, time of the next run


class JobReports:
    """The latest report on each job, in shared memory.

    Create this object before workers are forked. Readers may see a report that is only half written.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, MAX_JOBS * _SLOT.size)
        self._slots: dict[str, int] = {}  # by job name; empty in workers other than the leader

    def clear(self) -> None:
        self._slots.clear()
        self._memory[:] = bytes(len(self._memory))

    def store(self, report: JobReport) -> None:
        """Store the latest report on a job. Threads may call this at the same time for different jobs."""
        slot = self._slots.setdefault(report.name, len(self._slots))
        if slot < MAX_JOBS:
            due = -1.0 if report.next_run_time is None else report.next_run_time
            texts = report.name.encode()[:48], report.error.encode()[:200]
            _SLOT.pack_into(self._memory, slot * _SLOT.size, *texts, report.last_run_time, due)

    def reports(self) -> tuple[JobReport, ...]:
        result = []
        for name, error, ended, due in _SLOT.iter_unpack(self._memory[:]):
            if text := name.rstrip(b"\0"):
                message = error.rstrip(b"\0").decode(errors="replace")
                result.append(
                    JobReport(text.decode(errors="replace"), None if due < 0 else due, ended, message)
                )
        return tuple(result)
