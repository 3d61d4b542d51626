"""Client of the processes that transform images."""

import atexit
import json
import os
import re
import select
import signal
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

from server.config.transformation import MEDIA_TYPES, Transformation
from server.storage.helper_processes import forget_helper, require_running, start_helper
from server.storage.images.errors import LostProcessError, UntransformableError
from server.storage.images.kinds import ImageSize

JOB_BYTES = 1024
TIMEOUT_S = 30.0  # limit on elapsed time for each image; the limit on its processor time is lower
# After this time, a process counts as frozen and is replaced. Starting Python takes 0.1 s of processor time.
START_TIMEOUT_S = 4.0
MAX_REPLY_BYTES = 4096
MAX_ATTEMPTS = 2
FORK = b"F"  # asks the fork server for a decoder
FORKED = b"F"  # the first byte from a new decoder's socket
STARTED = b" "  # the first byte of each reply, which a decoder sends before it opens the image
END = b"\n"  # the last byte of each reply
_DIGEST = re.compile(r"[0-9a-f]{64}")
_IMPORT_FOLDER = Path(__file__).resolve().parents[3]
_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TZ")  # The environment may contain secrets.
# glibc keeps up to 64 MB of freed memory, so a decoder does not request memory again for each image.
_MEMORY_SETTINGS = {"MALLOC_TRIM_THRESHOLD_": "67108864", "MALLOC_MMAP_THRESHOLD_": "33554432"}


@dataclass(frozen=True, slots=True)
class Job:
    """Transformation of an image to `format`, or to one of the `alternative_formats` if its file is smaller.

    If `avif_threads` is 0, an AVIF file is encoded with one thread per core.
    """

    transformation: Transformation
    format: str
    max_pixels: int
    alternative_formats: tuple[str, ...] = ()
    avif_threads: int = 0


@dataclass(frozen=True, slots=True)
class JobResult:
    """Size, format and SHA-256 digest of a new image, and the digest of the original image."""

    size: ImageSize
    format: str
    digest: str
    source_digest: str


class ImageProcesses:
    """Thread-safe client of the fork server and its decoders."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._decoders: set[socket.socket] = set()
        self._idle: list[socket.socket] = []

    def run(self, job: Job, source: IO[bytes], target: IO[bytes]) -> JobResult:
        """Transform the image in `source`, and write the result to `target`.

        Raises UntransformableError if a retry would fail too, LostProcessError if it may succeed, or OSError.
        """
        reply = self._reply(job, source, target)
        if "error" in reply:
            raise UntransformableError(str(reply["error"]), str(reply.get("source_digest", "")))
        if number := reply.get("errno"):
            raise OSError(number, os.strerror(number))
        # A decoder might have been taken over by a malicious image, so its reply is checked, too.
        if reply["format"] not in MEDIA_TYPES or not _DIGEST.fullmatch(reply["digest"]):
            raise LostProcessError()
        size = ImageSize(int(reply["width"]), int(reply["height"]))
        return JobResult(size, str(reply["format"]), str(reply["digest"]), str(reply["source_digest"]))

    def _reply(self, job: Job, source: IO[bytes], target: IO[bytes]) -> Mapping[str, Any]:
        message = json.dumps(asdict(job)).encode().ljust(JOB_BYTES)
        for attempt in range(MAX_ATTEMPTS):
            # An idle decoder may have ended meanwhile, but not a new one.
            decoder = (None if attempt else self._idle_decoder()) or self._new_decoder()
            data = _exchange(decoder, message, [source.fileno(), target.fileno()])
            if data.endswith(END):
                reply: Mapping[str, Any] = json.loads(data)
                self._give_back(decoder, is_reusable="width" in reply)
                return reply
            self._give_back(decoder, is_reusable=False)
            require_running()
            if data.startswith(STARTED):
                break
        raise LostProcessError()

    def _idle_decoder(self) -> socket.socket | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _new_decoder(self) -> socket.socket:
        for _ in range(MAX_ATTEMPTS):
            ours, theirs = socket.socketpair()
            with self._lock, theirs:
                link = self._link or self._start()
                self._decoders.add(ours)
                with suppress(OSError):  # If the process has ended, there is no reply.
                    socket.send_fds(link, [FORK], [theirs.fileno()])
            if _receive(ours, FORKED, 1, START_TIMEOUT_S) == FORKED:
                return ours
            self._give_back(ours, is_reusable=False)
            self.end(link)
            require_running()
        raise LostProcessError()

    def _give_back(self, decoder: socket.socket, *, is_reusable: bool) -> None:
        with self._lock:
            if is_reusable and decoder in self._decoders:
                self._idle.append(decoder)
            else:
                self._decoders.discard(decoder)
                decoder.close()  # The fork server then kills the decoder.

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-P", "-m", "server.storage.images.fork_server", str(number)]
            environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
            folders = filter(None, (str(_IMPORT_FOLDER), environment.get("PYTHONPATH")))
            environment["PYTHONPATH"] = os.pathsep.join(folders)
            environment |= _MEMORY_SETTINGS
            silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            self._process = start_helper(command, pass_fds=(number,), env=environment, **silent)
        self._link = ours
        return ours

    def end(self, link: socket.socket | None = None) -> None:
        """Kill the fork server and its decoders.

        If `link` is given and is no longer the fork server's socket, do nothing.
        """
        with self._lock:
            if self._link is None or self._process is None or link not in (None, self._link):
                return
            self._link.close()
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # Even stopped processes end at once.
            self._process.wait()
            forget_helper(self._process)
            self._link = self._process = None
            for decoder in self._idle:
                self._decoders.discard(decoder)
                decoder.close()
            self._idle.clear()

    def forget(self) -> None:
        """Close the sockets. Called in a forked process, which must not use its parent's fork server."""
        for each in (self._link, *self._decoders):
            if each is not None:
                each.close()


def image_processes() -> ImageProcesses:
    return _client


_client = ImageProcesses()


def _forget_inherited() -> None:
    global _client
    _client.forget()
    _client = ImageProcesses()


os.register_at_fork(after_in_child=_forget_inherited)
atexit.register(lambda: _client.end())


def _exchange(decoder: socket.socket, message: bytes, descriptors: list[int]) -> bytes:
    """Send a job to a decoder, and return its reply.

    If the reply does not end with END, the decoder has exited or did not finish in time.
    """
    try:
        socket.send_fds(decoder, [message], descriptors)
    except OSError:
        return b""
    if _receive(decoder, STARTED, 1, START_TIMEOUT_S) != STARTED:
        return b""
    return STARTED + _receive(decoder, END, MAX_REPLY_BYTES, TIMEOUT_S)


def _receive(decoder: socket.socket, end: bytes, max_bytes: int, timeout_s: float) -> bytes:
    data, deadline = b"", time.monotonic() + timeout_s
    poll = select.poll()
    poll.register(decoder, select.POLLIN)
    while not data.endswith(end) and len(data) < max_bytes:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            break
        part = b""
        with suppress(ConnectionResetError):  # from a decoder that was killed before it had read the job
            part = decoder.recv(max_bytes - len(data))
        if not part:
            break
        data += part
    return data
