"""Process that has imported Pillow, and forks workers that transform images.

    python -m server.storage.images.fork_server DESCRIPTOR

DESCRIPTOR is a Unix socket. Each message on it is a byte and a file descriptor: the socket of a new worker.
A job on a worker's socket is JOB_BYTES bytes of JSON, with two file descriptors: the image, and the file for
the result. The answer is JSON, too.

Forking takes 3 ms; starting Python and importing Pillow takes 100 ms. A worker transforms one image at a
time, with limits on memory and processor time, so a malicious image ends only its own worker. The client
limits the elapsed time: it closes the worker's socket, and this process then kills the worker, even if it is
stopped.
A worker is reused only after a success: it keeps its memory, so the kernel need not provide it again, which
takes 10 ms for each image.
"""

import errno
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from PIL import Image

from server.config.transformation import Transformation
from server.storage.helper_processes import end_with_parent
from server.storage.images.processes import END, FORKED, JOB_BYTES, STARTED
from server.storage.images.transform import UnusableImageError, transform

IDLE_S = 60.0  # Without a worker for this long, the process exits.
WORKER_IDLE_S = 10.0  # Without a job for this long, a worker exits and frees its memory.
MAX_JOBS = 100  # for each worker
# A worker that has used more memory is not reused: its freed memory may be too fragmented for the next large
# image, and is not available to other processes.
MAX_REUSED_KB = 250_000
MAX_CPU_S = 20  # limit on processor time for each image
MAX_MEMORY_BYTES = 1024 * 1024 * 1024  # limit on the address space of each worker
MAX_RESULT_BYTES = 64_000_000
_TOO_LARGE = (
    f"gives a result of more than {MAX_RESULT_BYTES // 1_000_000} MB; "
    "request a smaller width, a lower quality or another format"
)
# What the image did, by the signal that ended its worker. SIGKILL is missing, because others send it, too.
_ERRORS_OF_SIGNALS: Mapping[int, str] = {
    signal.SIGXCPU: "takes too much time to decode",
    # Some encoders crash if they get no memory.
    **dict.fromkeys((signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT), "can't be decoded or encoded"),
}
# Workers and forks have a lower priority than the threads that handle requests. With 5, the kernel let a
# worker finish its time slice of some milliseconds before a thread that had just received a request.
NICENESS = 15


def main() -> None:
    """Fork for each message on the socket, until it is closed or there was no worker for IDLE_S."""
    link, woken = socket.socket(fileno=int(sys.argv[1])), _wake_at_ends()
    Image.init()  # imports all decoders
    os.nice(NICENESS)  # after the imports, because the client waits only START_TIMEOUT_S for the first answer
    gc.freeze()  # Otherwise each worker's garbage collector would copy the memory that all workers share.
    workers: dict[int, socket.socket] = {}  # by process id
    poll = select.poll()
    poll.register(link, select.POLLIN)
    poll.register(woken, select.POLLIN)
    while True:
        ready = {number for number, _ in poll.poll(IDLE_S * 1000)}
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(workers, poll)
        for pid, connection in workers.items():
            if connection.fileno() in ready:  # The client has closed its end, so nobody needs the result.
                os.kill(pid, signal.SIGKILL)
                poll.unregister(connection)
        if link.fileno() in ready:
            message, descriptors = _receive(link, 1)
            if not message:
                return
            connection = socket.socket(fileno=descriptors[0])
            pid = _fork(connection, [link, *workers.values()])
            workers[pid] = connection
            poll.register(connection, 0)  # only reports that the other end is closed
            with suppress(OSError):
                connection.send(FORKED)
        elif not ready and not workers:
            return


def _fork(connection: socket.socket, others: Sequence[socket.socket]) -> int:
    pid = os.fork()
    if pid == 0:
        for other in others:
            other.close()
        _serve(connection)
    return pid


def _wake_at_ends() -> int:
    """Return a pipe that becomes readable when a fork ends."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _tell_ends(workers: dict[int, socket.socket], poll: select.poll) -> None:
    """Close the sockets of workers that have ended. If the image ended a worker, say how."""
    while workers:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        with workers.pop(pid) as connection, suppress(OSError, KeyError):
            if os.WIFSIGNALED(status) and (error := _ERRORS_OF_SIGNALS.get(os.WTERMSIG(status))):
                _tell(connection, {"error": error})
            poll.unregister(connection)


def _tell(connection: socket.socket, told: Mapping[str, object]) -> None:
    connection.sendall(json.dumps(told).encode() + END)


def _receive(link: socket.socket, amount: int) -> tuple[bytes, list[int]]:
    message, descriptors = b"", list[int]()
    while len(message) < amount:
        part, received, _, _ = socket.recv_fds(link, amount - len(message), 2)
        descriptors.extend(received)
        if not part:
            return b"", descriptors
        message += part
    return message, descriptors


def _serve(connection: socket.socket) -> NoReturn:
    """Work as a worker, until an image can't be transformed or no job has arrived for WORKER_IDLE_S."""
    _bound()
    try:
        for _ in range(MAX_JOBS):
            if not select.select([connection], [], [], WORKER_IDLE_S)[0]:
                break
            message, descriptors = _receive(connection, JOB_BYTES)
            if not message:
                break
            connection.send(STARTED)
            _bound_job()
            told = _work(message, *descriptors)
            _tell(connection, told)
            if "width" not in told or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MAX_REUSED_KB:
                break
    finally:
        os._exit(0)


def _work(message: bytes, source: int, target: int) -> Mapping[str, object]:
    try:
        with open(source, "rb") as image, open(target, "wb") as result:
            job = json.loads(message)
            fields: dict[str, Any] = job["wanted"]
            # JSON has lists instead of tuples.
            tuples = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
            wanted = Transformation(**fields | tuples)
            image.seek(0)
            made = transform(image, result, wanted, job["format"], job["max_pixels"], job["rivals"])
        return {"width": made.size.width, "height": made.size.height, "format": made.format}
    except MemoryError:
        return {"error": "takes too much memory to decode"}
    except Exception as error:  # Pillow may raise any exception for a damaged file.
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            return {"error": _TOO_LARGE}
        if isinstance(error, OSError) and error.errno is not None:
            return {"errno": error.errno}
        if isinstance(error, UnusableImageError):
            return {"error": str(error)}
        return {"error": "is damaged, or is not an image in a supported format"}


def _bound() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent()
    for limit, amount in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, MAX_RESULT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (amount, amount))


def _bound_job() -> None:
    most = math.ceil(time.process_time()) + MAX_CPU_S
    with suppress(OSError, ValueError):
        # By default, SIGXCPU kills the process.
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main()
