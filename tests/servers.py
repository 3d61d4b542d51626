"""Real servers of sites: each a process of its own, on a port of 127.0.0.1 that nobody else has."""

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
    """A port that can be listened on, below those that the system gives to clients.

    It stays this process's until it ends, for servers that are killed and started again: other runs of
    tests on this machine are given others.
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
    """A file with a byte for each port, which is locked by whoever has the port; locks end with a process."""
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
    """Run `bifolio serve` in a session of its own; it may not yet listen when this returns.

    The process is forked from the zygote. If `real`, or if the command `inside` is to run it, the command
    itself is started. `first` is Python that runs before, and `timing` has the pauses of jobs.
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


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kill a server with its workers, as a power cut does.

    Returns when all have ended, and have let go of the port: the threads of a killed worker may have it for
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
    """Whether a server can listen on a port: processes that were killed keep it until they have ended."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def children(pid: int) -> set[int]:
    """Return the living processes that a process has started, by /proc; none if it has ended itself."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {int(child) for child in listed if is_alive(int(child))}


def workers(pid: int) -> set[int]:
    """Return the processes that answer requests for a server.

    What else a generation starts differs: git has another command line, and the forks that read files or
    report the start have two threads at most.
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
    """Whether a process runs, by /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
