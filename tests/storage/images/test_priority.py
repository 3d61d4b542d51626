"""Tests of the scheduling priority of the processes that transform images."""

import platform
import subprocess
import sys

import pytest

from server.storage.images import priority

READ = """
import ctypes, os, platform
from server.storage.images import priority
{before}
priority.lower_priority()
attributes = ctypes.create_string_buffer(priority._ATTRIBUTES.size)
number = {{"x86_64": 315, "aarch64": 275, "riscv64": 275}}[platform.machine()]
if os.fork() == 0:
    ctypes.CDLL(None).syscall(number, 0, attributes, len(attributes), 0)
    values = priority._ATTRIBUTES.unpack(attributes.raw)
    print(os.getpriority(os.PRIO_PROCESS, 0), values[5], flush=True)
    os._exit(0)
os.wait()
"""


def niceness_and_slice_ns(before: str = "") -> list[int]:
    """Return the niceness and the time slice of a child of a process that has lowered its priority."""
    command = [sys.executable, "-c", READ.format(before=before)]
    return [int(number) for number in subprocess.check_output(command, text=True).split()]


def test_a_process_and_its_children_get_a_lower_priority_and_a_shorter_time_slice() -> None:
    niceness, slice_ns = niceness_and_slice_ns()
    assert niceness == priority.NICENESS
    kernel = tuple(int(number) for number in platform.release().split(".")[:2])
    if kernel < (6, 12):
        pytest.skip("Linux has time slices for each process since 6.12")
    assert slice_ns == priority.SLICE_NS


def test_the_priority_is_lowered_on_a_machine_whose_system_calls_are_unknown() -> None:
    niceness, slice_ns = niceness_and_slice_ns("priority._SYSTEM_CALLS = {}")
    assert niceness == priority.NICENESS
    assert slice_ns != priority.SLICE_NS
