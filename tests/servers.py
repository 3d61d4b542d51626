"""Real servers of sites: each a process of its own, on a port of 127.0.0.1 that nobody else has."""

import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent
START_S = 30.0


def free_port() -> int:
    """A port that can be listened on, below those that the system gives to clients."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def start(
    root: Path,
    port: int,
    *options: str,
    output: IO[bytes] | int = subprocess.PIPE,
    first: str = "",
    inside: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """The process of `quire serve`, in a session of its own; it may not have begun to listen.

    `first` is Python that it runs before, to wait less long for something, say; `inside` the beginning of
    a command that runs it.
    """
    code = f"{first}\nfrom server.commands.cli import main\nmain()"
    command = [
        *inside,
        sys.executable,
        "-c",
        code,
        "serve",
        "--site",
        str(root),
        "--port",
        str(port),
        *options,
    ]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=output, stderr=output, text=True, start_new_session=True
    )


def get(port: int, path: str) -> tuple[int, bytes]:
    """The status and body of a GET."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def wait(process: subprocess.Popen[str], port: int) -> None:
    """Wait until a server answers. Raises AssertionError with its output where it does not."""
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            assert get(port, "/_health")[0] == 204
        except (OSError, HTTPException):
            time.sleep(0.03)
        else:
            return
    process.kill()
    raise AssertionError(f"the server did not start: {process.communicate()}")


def stop(process: subprocess.Popen[str]) -> None:
    """End a server as a system does, and wait until it has ended."""
    process.terminate()
    process.communicate(timeout=20)


@contextmanager
def serving(
    root: Path, port: int, *options: str, output: IO[bytes] | int = subprocess.PIPE, first: str = ""
) -> Iterator[str]:
    """The address of a running server of a site; see `start`."""
    process = start(root, port, *options, output=output, first=first)
    try:
        wait(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def children(pid: int) -> set[int]:
    """The processes that a process has started and that are alive; it asks /proc."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(child) for child in listed if is_alive(int(child))}


def workers(pid: int) -> set[int]:
    """The processes that answer for a server that runs as one process and those below it.

    Programs that a server runs, such as git, are not among them.
    """
    forked = {child for generation in children(pid) for child in children(generation)}
    return {child for child in forked if _command(child) == _command(pid)}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def is_alive(pid: int) -> bool:
    """Whether a process runs, by /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
