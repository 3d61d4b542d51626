"""Process that has imported Pillow, and forks for each image to transform.

    python -m server.storage.images.fork_server DESCRIPTOR

DESCRIPTOR is a Unix socket. Each message on it is a job of JOB_BYTES bytes of JSON, with three file
descriptors: the image, the file for the result, and a pipe for the answer, which is JSON, too.

Forking takes 3 ms; starting Python and importing Pillow takes 100 ms. Each fork has limits on memory,
processor time and elapsed time, so a malicious image ends only its own fork.
"""

import errno
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from PIL import Image

from server.config.transformation import Transformation
from server.storage.helper_processes import end_with_parent
from server.storage.images.processes import JOB_BYTES, STARTED, TIMEOUT_S
from server.storage.images.transform import UnusableImageError, transform

IDLE_S = 60.0  # Without a job for this long, the process exits.
MAX_CPU_S = 20  # limit on processor time for each image
MAX_MEMORY_BYTES = 1024 * 1024 * 1024  # limit on the address space of each fork
MAX_RESULT_BYTES = 64_000_000
_SIGNALS_OF_LIMITS = (signal.SIGXCPU, signal.SIGALRM)
NICENESS = 5  # Forks have a lower priority than the threads that handle requests.


def main() -> None:
    """Fork for each job on the socket, until the socket is closed or no job has arrived for IDLE_S."""
    link, woken = socket.socket(fileno=int(sys.argv[1])), _wake_at_ends()
    Image.init()  # imports all decoders
    answers: dict[int, int] = {}  # by process id: the pipe for the answer
    while True:
        ready = select.select([link.fileno(), woken], [], [], IDLE_S)[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(answers)
        if not ready and not answers:
            return
        if link.fileno() not in ready:
            continue
        message, descriptors = _receive(link)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            link.close()
            for answer in answers.values():  # Otherwise their readers would wait for this fork, too.
                os.close(answer)
            _work(message, *descriptors)
        for descriptor in descriptors[:2]:
            os.close(descriptor)
        answers[pid] = descriptors[2]


def _wake_at_ends() -> int:
    """Return a pipe that becomes readable when a fork ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _tell_ends(answers: dict[int, int]) -> None:
    """Close the pipes of forks that have ended. If a limit ended a fork, say so."""
    while answers:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        answer = answers.pop(pid)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in _SIGNALS_OF_LIMITS:
            with suppress(OSError):
                os.write(answer, json.dumps({"error": "takes too much time to decode"}).encode())
        os.close(answer)


def _receive(link: socket.socket) -> tuple[bytes, list[int]]:
    message, descriptors = b"", list[int]()
    while len(message) < JOB_BYTES:
        part, received, _, _ = socket.recv_fds(link, JOB_BYTES - len(message), 3)
        descriptors.extend(received)
        if not part:
            return b"", descriptors
        message += part
    return message, descriptors


def _work(message: bytes, source: int, target: int, answer: int) -> NoReturn:
    signal.set_wakeup_fd(-1)
    os.write(answer, STARTED)
    _bound()
    told: Mapping[str, object]
    try:
        job = json.loads(message)
        fields: dict[str, Any] = job["wanted"]
        # JSON has lists instead of tuples.
        tuples = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        wanted = Transformation(**fields | tuples)
        with open(source, "rb") as image, open(target, "wb") as result:
            image.seek(0)
            size = transform(image, result, wanted, job["format"], job["max_pixels"])
        told = {"width": size.width, "height": size.height}
    except MemoryError:
        told = {"error": "takes too much memory to decode"}
    except Exception as error:  # Pillow may raise any exception for a damaged file.
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            told = {"error": f"would be larger than {MAX_RESULT_BYTES // 1_000_000} MB"}
        elif isinstance(error, OSError) and error.errno is not None:
            told = {"errno": error.errno}
        elif isinstance(error, UnusableImageError):
            told = {"error": str(error)}
        else:
            told = {"error": "is damaged, or is not an image in a supported format"}
    with suppress(OSError):
        os.write(answer, json.dumps(told).encode())
    os._exit(0)


def _bound() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.alarm(TIMEOUT_S)  # By default, SIGALRM kills the process.
    end_with_parent()
    # The soft limit on processor time is lower than the hard one, so SIGXCPU ends the process, not SIGKILL.
    for limit, soft, hard in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MAX_CPU_S, MAX_CPU_S + 1),
        (resource.RLIMIT_FSIZE, MAX_RESULT_BYTES, MAX_RESULT_BYTES),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (soft, hard))
    os.nice(NICENESS)


if __name__ == "__main__":
    main()
