"""A clock for a server that a test can set. It is a library that is preloaded into the server's processes.

libfaketime can't be used: if it does not change the monotonic clock, every sleep in Python fails with EINVAL.
"""

import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
COMPILER = shutil.which("cc")


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of day as seen by some processes."""

    library: Path
    file: Path

    @classmethod
    def make(cls, folder: Path) -> "Clock | None":
        """Return a clock with the right time, or None if there is no C compiler."""
        if not COMPILER:
            return None
        library, file = folder / "clock.so", folder / "clock"
        command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        file.write_bytes(bytes(8))
        return cls(library, file)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables with which a process uses this clock."""
        return {"LD_PRELOAD": str(self.library), "BIFOLIO_TEST_CLOCK": str(self.file)}

    def set(self, seconds: int) -> None:
        """Set the clock's offset from the real time for all its processes, in seconds."""
        descriptor = os.open(self.file, os.O_WRONLY)
        try:
            os.pwrite(descriptor, struct.pack("q", seconds), 0)
        finally:
            os.close(descriptor)
