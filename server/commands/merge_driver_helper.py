"""Helper process that imports the merge driver once, and forks for each file."""

import gc
import os
import signal
import socket
import sys
from contextlib import suppress

from server.commands.merge_driver_run import run

IDLE_S = 5.0
READ_S = 5.0
_CHUNK_BYTES = 65536


def main(path: str, idle_s: float = IDLE_S) -> None:
    """Merge files for clients of the socket `path`. Exit after `idle_s` seconds without a client."""
    listener = _listen(path)
    if listener is None:
        return
    os.chdir("/")
    own = os.lstat(path).st_ino
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The kernel then reaps ended child processes.
    gc.freeze()
    listener.settimeout(idle_s)
    try:
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    _run_merge(connection)
    except TimeoutError:
        with suppress(OSError):
            if os.lstat(path).st_ino == own:  # Otherwise, the socket belongs to another helper.
                os.unlink(path)


def _listen(path: str) -> socket.socket | None:
    listener = socket.socket(socket.AF_UNIX)
    prepared = f"{path}.{os.getpid()}"
    try:
        listener.bind(prepared)
        listener.listen(16)
        # If another helper is running, it gets no more connections, and soon exits.
        os.replace(prepared, path)
    except OSError:
        with suppress(OSError):
            os.unlink(prepared)
        return None
    return listener


def _run_merge(connection: socket.socket) -> None:
    """Merge a file, send the exit status, and exit this forked process."""
    status = None
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        folder, arguments, variables = _read_request(connection)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(folder)
        status = run.main(arguments, prog_name="bifolio merge-driver run", standalone_mode=False)
    except SystemExit as end:
        status = end.code
    finally:
        # Without a status, the client merges the file itself.
        with suppress(OSError):
            if status in (0, 1):
                connection.sendall(bytes([status]))
        os._exit(0)


def _read_request(connection: socket.socket) -> tuple[str, list[str], dict[str, str]]:
    connection.settimeout(READ_S)
    data = b""
    while chunk := connection.recv(_CHUNK_BYTES):
        data += chunk
    folder, *words = os.fsdecode(data).split("\0")
    end = words.index("")
    pairs = (word.partition("=") for word in words[end + 1 :])
    return folder, words[:end], {name: value for name, _, value in pairs}


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
