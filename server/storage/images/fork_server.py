"""Server process that forks decoders, the processes that transform images."""

import errno
import gc
import hashlib
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
from io import BufferedIOBase
from typing import IO, Any, NoReturn

from PIL import AvifImagePlugin, Image

from server.config.transformation import Transformation
from server.storage.helper_processes import end_with_parent
from server.storage.images.errors import UntransformableError
from server.storage.images.kinds import TransformedImage
from server.storage.images.limits import MAX_RESULT_BYTES
from server.storage.images.priority import lower_priority
from server.storage.images.processes import END, FORKED, JOB_BYTES, STARTED
from server.storage.images.transform import transform

IDLE_S = 60.0  # Without a decoder for this long, the process exits.
DECODER_IDLE_S = 10.0  # Without a job for this long, a decoder exits and frees its memory.
MAX_JOBS = 100  # for each decoder
# A decoder that has used more memory is not reused: its freed memory may be too fragmented for the next large
# image, and is not available to other processes.
MAX_REUSED_KB = 250_000
MAX_CPU_S = 20  # limit on processor time for each image
MAX_MEMORY_BYTES = 1024 * 1024 * 1024  # limit on the address space of each decoder
_TOO_LARGE = (
    f"gives a result of more than {MAX_RESULT_BYTES // 1_000_000} MB; "
    "request a smaller width, a lower quality or another format"
)
# Error message for each signal that can end a decoder. SIGKILL is missing, because others send it, too.
_SIGNAL_ERRORS: Mapping[int, str] = {
    signal.SIGXCPU: "takes too much time to decode",
    # Some encoders crash if they get no memory.
    **dict.fromkeys((signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT), "can't be decoded or encoded"),
}


def main() -> None:
    """Fork a decoder for each message from the client.

    Exit when the socket is closed, or if there are no messages and no decoders for IDLE_S.
    """
    server_socket, exit_pipe = socket.socket(fileno=int(sys.argv[1])), _child_exit_pipe()
    Image.init()  # imports Pillow's plugins
    lower_priority()  # after the imports, because the client waits only START_TIMEOUT_S for the first reply
    gc.freeze()  # Otherwise each decoder's garbage collector would copy the memory that all decoders share.
    decoders: dict[int, socket.socket] = {}  # by process id
    poll = select.poll()
    poll.register(server_socket, select.POLLIN)
    poll.register(exit_pipe, select.POLLIN)
    while True:
        ready = {number for number, _ in poll.poll(IDLE_S * 1000)}
        if exit_pipe in ready:
            os.read(exit_pipe, 4096)
            _reap_decoders(decoders, poll)
        for pid, connection in decoders.items():
            if connection.fileno() in ready:  # The client has closed its end, so nobody needs the result.
                os.kill(pid, signal.SIGKILL)
                poll.unregister(connection)
        if server_socket.fileno() in ready:
            message, descriptors = _receive(server_socket, 1)
            if not message:
                return
            connection = socket.socket(fileno=descriptors[0])
            pid = _fork(connection, [server_socket, *decoders.values()])
            decoders[pid] = connection
            poll.register(connection, 0)  # only reports that the other end is closed
            with suppress(OSError):
                connection.send(FORKED)
        elif not ready and not decoders:
            return


def _fork(connection: socket.socket, others: Sequence[socket.socket]) -> int:
    pid = os.fork()
    if pid == 0:
        for other in others:
            other.close()
        _serve(connection)
    return pid


def _child_exit_pipe() -> int:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _reap_decoders(decoders: dict[int, socket.socket], poll: select.poll) -> None:
    while decoders:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        with decoders.pop(pid) as connection, suppress(OSError, KeyError):
            if os.WIFSIGNALED(status) and (error := _SIGNAL_ERRORS.get(os.WTERMSIG(status))):
                _send_reply(connection, {"error": error})
            poll.unregister(connection)


def _send_reply(connection: socket.socket, reply: Mapping[str, object]) -> None:
    connection.sendall(json.dumps(reply).encode() + END)


def _receive(server_socket: socket.socket, amount: int) -> tuple[bytes, list[int]]:
    message, descriptors = b"", list[int]()
    while len(message) < amount:
        part, received, _, _ = socket.recv_fds(server_socket, amount - len(message), 2)
        descriptors.extend(received)
        if not part:
            return b"", descriptors
        message += part
    return message, descriptors


def _serve(connection: socket.socket) -> NoReturn:
    """Transform images until the process has been idle for DECODER_IDLE_S or can't be reused. Then exit."""
    _limit_process()
    try:
        for _ in range(MAX_JOBS):
            if not select.select([connection], [], [], DECODER_IDLE_S)[0]:
                break
            message, descriptors = _receive(connection, JOB_BYTES)
            if not message:
                break
            connection.send(STARTED)
            _limit_cpu_time()
            reply = _work(message, *descriptors)
            _send_reply(connection, reply)
            if "width" not in reply or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MAX_REUSED_KB:
                break
    finally:
        os._exit(0)


def _work(message: bytes, source: int, target: int) -> Mapping[str, object]:
    """Transform the open file `source` into `target`, and return the reply for the client.

    Unless the reply reports a system error, it includes the digest of the source.
    """
    with open(source, "rb") as image:
        try:
            with open(target, "w+b") as result:
                made = _transform(json.loads(message), image, result)
                digest = _digest_of(result)
            size = {"width": made.size.width, "height": made.size.height}
            return {**size, "format": made.format, "digest": digest, "source_digest": _digest_of(image)}
        except Exception as error:  # Pillow may raise any exception for a damaged file.
            if isinstance(error, OSError) and error.errno not in (None, errno.EFBIG):
                return {"errno": error.errno}
            return {"error": _reason(error), "source_digest": _digest_of(image)}


def _transform(job: Mapping[str, Any], image: IO[bytes], result: IO[bytes]) -> TransformedImage:
    fields: dict[str, Any] = job["transformation"]
    # JSON has lists instead of tuples.
    tuples = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    transformation = Transformation(**fields | tuples)
    image.seek(0)
    AvifImagePlugin.DEFAULT_MAX_THREADS = job["avif_threads"]
    alternatives = job["alternative_formats"]
    return transform(image, result, transformation, job["format"], job["max_pixels"], alternatives)


def _reason(error: Exception) -> str:
    """Describe an error as a phrase without a subject, such as "is damaged"."""
    if isinstance(error, MemoryError):
        return "takes too much memory to decode"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return _TOO_LARGE
    if isinstance(error, UntransformableError):
        return str(error)
    return "is damaged, or is not an image in a supported format"


def _digest_of(file: BufferedIOBase) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _limit_process() -> None:
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


def _limit_cpu_time() -> None:
    max_cpu_s = math.ceil(time.process_time()) + MAX_CPU_S
    with suppress(OSError, ValueError):
        # By default, SIGXCPU kills the process.
        resource.setrlimit(resource.RLIMIT_CPU, (max_cpu_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    main()
