"""The clock of a server, which the soak sets: a library that is loaded before others tells another time.

libfaketime does not serve here: with the monotonic clock left as it is, every sleep of Python ends in EINVAL.
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
    """The wall clock of some processes."""

    library: Path
    file: Path

    @classmethod
    def make(cls, folder: Path) -> "Clock | None":
        """Return a clock that is right at first, None if there is no C compiler."""
        if not COMPILER:
            return None
        library, file = folder / "clock.so", folder / "clock"
        command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        file.write_bytes(bytes(8))
        return cls(library, file)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that give a process this clock."""
        return {"LD_PRELOAD": str(self.library), "BIFOLIO_TEST_CLOCK": str(self.file)}

    def set(self, seconds: int) -> None:
        """Set the clock to so many seconds after the right time, or before it, for all processes at once."""
        descriptor = os.open(self.file, os.O_WRONLY)
        try:
            os.pwrite(descriptor, struct.pack("q", seconds), 0)
        finally:
            os.close(descriptor)
