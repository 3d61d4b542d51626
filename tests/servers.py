"""Real servers for tests: each is a separate process with its own port on 127.0.0.1."""

import fcntl
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import IO, cast

from server.jobs.job import Timing
from tests.waiting import until
from tests.zygote import zygote

ROOT = Path(__file__).parent.parent
START_S = 30.0
PORTS = range(20_000, 32_000)
_chosen: set[int] = set()
_choosing = threading.Lock()


def free_port() -> int:
    """Return a free port below the range that the operating system uses for client connections.

    The port stays reserved until this process ends, so that a killed server can be started again. Other test
    runs on this machine get different ports.
    """
    while True:
        port = secrets.choice(PORTS)
        with _choosing, socket.socket() as probe:
            if port in _chosen:
                continue
            try:
                fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _chosen.add(port)
        return port


@cache
def _locks() -> int:
    """Open the file that contains one byte per port. The process that uses a port locks its byte until the
    process ends.
    """
    path = Path(tempfile.gettempdir(), f"bifolio-test-ports-{os.getuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def start(
    root: Path,
    port: int,
    *options: str,
    output: IO[bytes] | int = subprocess.PIPE,
    first: str = "",
    inside: Sequence[str] = (),
    real: bool = False,
    environment: Mapping[str, str] | None = None,
    timing: Timing | None = None,
) -> subprocess.Popen[str]:
    """Run `bifolio serve` in its own session, without waiting until it listens.

    By default, the process is forked from the zygote. With `real`, or with a command `inside` that runs the
    server, the actual command is started. `first` is Python code that runs first. `timing` contains the
    intervals of background jobs.
    """
    timing = timing or Timing()
    arguments = ["serve", "--site", str(root), "--port", str(port), *options]
    environment = os.environ if environment is None else environment
    if not real and not inside:
        return zygote().fork(arguments, environment, first, output, timing)
    code = f"{first}\nfrom server.commands.cli import main\nfrom server.jobs.job import Timing\n"
    code += f"main(obj=Timing(**{asdict(timing)!r}))"
    return subprocess.Popen(
        [*inside, sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=output,
        stderr=output,
        text=True,
        start_new_session=True,
    )


def get(port: int, path: str) -> tuple[int, bytes]:
    """Send a GET request and return the status and body of the response."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def wait(process: subprocess.Popen[str], port: int) -> None:
    """Wait until a server responds. If it does not, raise AssertionError with its output."""
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
    """Terminate a server as the operating system does, and wait until it has ended."""
    process.terminate()
    process.communicate(timeout=20)


@contextmanager
def serving(
    root: Path, port: int, *options: str, output: IO[bytes] | int = subprocess.PIPE, first: str = ""
) -> Iterator[str]:
    """Context manager: run a server for a site, and yield its URL. See `start` for the parameters."""
    process = start(root, port, *options, output=output, first=first)
    try:
        wait(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kill a server and its workers, as a power failure does.

    Return when all have ended and the port is free. The threads of a killed worker can keep the port for
    longer than /proc shows the worker.
    """
    members = {process.pid, *children(process.pid)}
    members |= {forked for generation in members for forked in children(generation)}
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    until(lambda: not any(map(is_alive, members)))
    arguments = [str(one) for one in cast("list[str]", process.args)]
    port = int(arguments[arguments.index("--port") + 1])
    until(lambda: is_free(port))


def is_free(port: int) -> bool:
    """Return whether a server can listen on a port. Killed processes keep the port until they have ended."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def children(pid: int) -> set[int]:
    """Return the living child processes of a process from /proc, or an empty set if the process has ended."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {int(child) for child in listed if is_alive(int(child))}


def workers(pid: int) -> set[int]:
    """Return the processes that handle a server's requests.

    A generation also starts other processes, which this function excludes: git has a different command line,
    and forks that read files or report the start have at most two threads.
    """
    forked = {process for generation in children(pid) for process in children(generation)}
    return {one for one in forked if _command(one) == _command(pid) and _count_threads(one) > 2}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _count_threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def is_alive(pid: int) -> bool:
    """Return whether a process is running, according to /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
