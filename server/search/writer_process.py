"""Client of the process that writes the search index (`server.search.indexer`)."""

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from server.search.status import read_status
from server.storage.helper_processes import forget_helper, start_helper

# the folder from which the process imports the package `server`
_IMPORT_FOLDER = Path(__file__).resolve().parents[2]


class DamagedIndexError(Exception):
    """The search index can't be read, or has been replaced since the writer process last opened it."""


class WriterProcess:
    """Client of the index writer. `call` starts the writer process if it is not running."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self.lock = folder, lock
        self._child: _ProcessRun | None = None
        self._build = ""  # `Status.build` of the index that the last process opened

    def __enter__(self) -> "WriterProcess":
        try:
            self._open()  # If the index is damaged, the process replaces it with an empty one.
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def call(self, name: str, *arguments: Any) -> Any:
        """Send a command, and return the response.

        Raises DamagedIndexError if the index can't be read, and ChildProcessError if the command fails.
        """
        return (self._child or self._open()).call(name, *arguments)

    def _open(self) -> "_ProcessRun":
        self._child = _ProcessRun(self.folder, self.lock)
        self._child.begin()
        status = read_status(self.folder)
        if status is None or self._build not in ("", status.build):
            raise DamagedIndexError
        self._build = status.build
        return self._child

    def end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


class _ProcessRun:
    """One run of the writer process, which holds the index lock until it exits."""

    def __init__(self, folder: Path, lock: int) -> None:
        command = [sys.executable, "-P", "-m", "server.search.indexer", str(folder)]
        path = os.pathsep.join(filter(None, (str(_IMPORT_FOLDER), os.environ.get("PYTHONPATH"))))
        self._process = start_helper(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(lock,),
            env={**os.environ, "PYTHONPATH": path},
        )

    def begin(self) -> None:
        self._receive()

    def end(self) -> None:
        """Kill the process. Its uncommitted changes are lost."""
        self._process.kill()
        self._process.wait()
        forget_helper(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # Closing the pipe fails if the process has not read all of its input.
                if pipe is not None:
                    pipe.close()

    def call(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # The process has ended; `_receive` reads its last response.
            pickle.dump((name, arguments), self._process.stdin)
            self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        try:
            answer = pickle.load(self._process.stdout)
        except EOFError as error:
            raise ChildProcessError(f"its process ended with status {self._process.wait()}") from error
        if isinstance(answer, str):
            raise ChildProcessError(answer)
        return answer
