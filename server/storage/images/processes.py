"""Client of the processes that transform images (server.storage.images.fork_server)."""

import atexit
import errno
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from server.config.transformation import Transformation
from server.storage.helper_processes import forget_helper, require_running, start_helper
from server.storage.images.kinds import ImageSize

JOB_BYTES = 1024
TIMEOUT_S = 30  # limit on elapsed time for each image
ANSWER_TIMEOUT_S = TIMEOUT_S + 5.0
MAX_ANSWER_BYTES = 4096
MAX_ATTEMPTS = 3
STARTED = b" "  # the first byte of each answer, which a fork sends before it opens the image
_IMPORT_FOLDER = Path(__file__).resolve().parents[3]
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ")  # The environment may contain secrets.


class UntransformableError(Exception):
    """The image can't be transformed. `str()` says why, as the end of a sentence about the image."""


class LostProcessError(Exception):
    """A process ended or did not respond, so the transformation may succeed if it is tried again."""


@dataclass(frozen=True, slots=True)
class Job:
    """A transformation of one image. `format` is the format of the result."""

    wanted: Transformation
    format: str
    max_pixels: int


class ImageProcesses:
    """Client of the process that transforms images, which is started on first use. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None

    def run(self, job: Job, source: IO[bytes], target: IO[bytes]) -> ImageSize:
        """Transform the image in `source`, and write it to `target`. Return the result's dimensions.

        Raises UntransformableError, LostProcessError, and OSError, for example if the disk is full.
        """
        answer = self._answer(job, source, target)
        if "error" in answer:
            raise UntransformableError(str(answer["error"]))
        if number := answer.get("errno"):
            raise OSError(number, os.strerror(number))
        return ImageSize(int(answer["width"]), int(answer["height"]))

    def _answer(self, job: Job, source: IO[bytes], target: IO[bytes]) -> Mapping[str, Any]:
        message = json.dumps(asdict(job)).encode().ljust(JOB_BYTES)
        for _ in range(MAX_ATTEMPTS):
            reading, writing = os.pipe()
            try:
                try:
                    link = self._send(message, [source.fileno(), target.fileno(), writing])
                finally:
                    os.close(writing)
                data = _read_all(reading, ANSWER_TIMEOUT_S)
            except TimeoutError as error:
                self.end(link)
                raise LostProcessError() from error
            finally:
                os.close(reading)
            require_running()
            if data == STARTED:
                raise LostProcessError()
            if data:
                answer: Mapping[str, Any] = json.loads(data)
                return answer
            self.end(link)  # The process ended, for example because it was idle, before it forked.
        raise LostProcessError()

    def _send(self, message: bytes, descriptors: list[int]) -> socket.socket:
        with self._lock:
            link = self._link or self._start()
            with suppress(OSError):  # If the process has ended, there is no answer.
                socket.send_fds(link, [message], descriptors)
        return link

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-P", "-m", "server.storage.images.fork_server", str(number)]
            environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
            folders = filter(None, (str(_IMPORT_FOLDER), environment.get("PYTHONPATH")))
            environment["PYTHONPATH"] = os.pathsep.join(folders)
            silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            self._process = start_helper(command, pass_fds=(number,), env=environment, **silent)
        self._link = ours
        return ours

    def end(self, link: socket.socket | None = None) -> None:
        """End the process, but only if it is the one at the other end of `link`, if that is given."""
        with self._lock:
            if self._link is None or self._process is None or link not in (None, self._link):
                return
            self._link.close()
            self._process.kill()
            self._process.wait()
            forget_helper(self._process)
            self._link = self._process = None

    def forget(self) -> None:
        """Close the socket without ending the process, which belongs to the parent of this process."""
        if self._link is not None:
            self._link.close()


def image_processes() -> ImageProcesses:
    """Return this process's client, which all sites share."""
    return _client


_client = ImageProcesses()


def _forget_inherited() -> None:
    global _client
    _client.forget()
    _client = ImageProcesses()


os.register_at_fork(after_in_child=_forget_inherited)
atexit.register(lambda: _client.end())


def _read_all(descriptor: int, timeout_s: float) -> bytes:
    """Read from a pipe until its end. Raises TimeoutError."""
    data, deadline = b"", time.monotonic() + timeout_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while len(data) < MAX_ANSWER_BYTES and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        part = os.read(descriptor, MAX_ANSWER_BYTES)
        if not part:
            return data
        data += part
    raise TimeoutError(errno.ETIMEDOUT, "the processes that transform images do not respond")
