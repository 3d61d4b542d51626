"""Scheduling priority of image processes."""

import ctypes
import os
import platform
import struct

# Decoders have a lower priority than the threads that handle requests. With 5, the kernel let a decoder
# finish its time slice of some milliseconds before a thread that had just received a request.
NICENESS = 15
# Linux 6.12 and newer let a process choose its time slice. With the shortest one, a thread that has received
# a request waits less until it replaces a decoder on a core.
SLICE_NS = 100_000
# Number of the system call sched_setattr, which neither Python nor all C libraries provide.
_SYSTEM_CALLS = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_NORMAL_POLICY = 0
# struct sched_attr: size, policy, flags, niceness, real-time priority, and slice, deadline and period in ns.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


def lower_priority() -> None:
    """Lower the priority of this process and its children. If possible, shorten their time slices."""
    os.nice(NICENESS)
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        return
    attributes = _ATTRIBUTES.pack(
        _ATTRIBUTES.size, _NORMAL_POLICY, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, SLICE_NS, 0, 0
    )
    ctypes.CDLL(None).syscall(number, 0, attributes, 0)
