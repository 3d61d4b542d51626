"""Process that has imported Pillow, and forks for each image to transform.

    python -m server.storage.images.fork_server DESCRIPTOR

DESCRIPTOR is a Unix socket. Each message on it is a job of JOB_BYTES bytes of JSON, with three file
descriptors: the image, the file for the result, and a pipe for the answer, which is JSON, too.

Forking takes 3 ms; starting Python and importing Pillow takes 100 ms. Each fork has limits on memory,
processor time and elapsed time, so a malicious image ends only its own fork.
"""

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
MAX_RESULT_BYTES = 64 * 1024 * 1024
NICENESS = 5  # Forks have a lower priority than the threads that handle requests.


def main() -> None:
    """Fork for each job on the socket, until the socket is closed or no job has arrived for IDLE_S."""
    link = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Ended forks are removed at once.
    Image.init()  # imports all decoders
    while select.select([link], [], [], IDLE_S)[0]:
        message, descriptors = _receive(link)
        if not message:
            return
        if os.fork() == 0:
            link.close()
            _work(message, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


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
        if isinstance(error, OSError) and error.errno is not None:
            told = {"problem": os.strerror(error.errno)}
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
    for limit, most in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MAX_CPU_S),
        (resource.RLIMIT_FSIZE, MAX_RESULT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
    os.nice(NICENESS)


if __name__ == "__main__":
    main()
