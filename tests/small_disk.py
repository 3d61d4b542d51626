"""A file system of a few kilobytes, which fills up quickly."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

MAX_ATTEMPTS = 20  # to shrink a file system while other processes write to it


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """Context manager: mount a file system with a size such as `256k`. Skip the test if mounting is not
    permitted.
    """
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write to a file until its file system is full."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            continue


@contextmanager
def full(folder: Path, size: str) -> Iterator[None]:
    """Context manager: shrink a mounted file system so that it is full, and afterwards restore its size."""
    for attempts_left in reversed(range(MAX_ATTEMPTS)):
        used = shutil.disk_usage(folder).used
        try:
            _resize(folder, f"{-(-used // 4096) * 4}k")
            break
        except subprocess.CalledProcessError:  # A file has grown since its size was read.
            if not attempts_left:
                raise
    try:
        yield
    finally:
        _resize(folder, size)


def _resize(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
