"""A zygote for servers: one process that has imported the server, and is forked for each server in a test.

The tests start some 450 servers. A server that is started as a command responds after 0.8 s, of which
importing its modules takes 0.6 s. A fork of the zygote responds after 0.1 s. Each pytest process has one
zygote, which starts with the first server.

A fork gets its own arguments, environment, umask, output and session, as the command would. There are two
differences: modules were imported before the environment was set, and all forks of a zygote have the same
hash seed. `servers.start(..., real=True)` starts the actual command.

The zygote has no threads. It ends when its pytest process ends, and kills the servers that are still running.
"""

import atexit
import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from server.jobs.job import Timing

ROOT = Path(__file__).parent.parent
MAX_MESSAGE_BYTES = 200_000
MAX_WAIT_S = 86_400.0
MODULES = (  # modules that a server imports for its start, its first response and its background work
    "server.commands.cli",
    "server.commands.serve",
    "server.api.app",
    "server.api.limiting.limiter",
    "server.api.webhooks",
    "server.auth.directory",
    "server.documents.email",
    "server.history.remote.following",
    "server.history.remote.push_after_serving",
    "server.schema.patterns",
)
PROGRAM = """
import sys
from tests.zygote import become_server, run_and_exit
first, timing = become_server(int(sys.argv[1]))
exec(first)
from server.commands.cli import main
run_and_exit(lambda: main(obj=timing))
"""


class ForkedServer(subprocess.Popen[str]):
    """A process that was forked from a zygote. It is used like a Popen object with text pipes."""

    def __init__(
        self, zygote: "Zygote", pid: int, args: Sequence[str], pipes: Sequence[IO[str] | None]
    ) -> None:
        # Popen.__init__ would execute a program. All methods that read its attributes are overridden here.
        self.args, self.pid, self.returncode = args, pid, None
        self.stdin = None
        self.stdout, self.stderr = pipes
        self._zygote, self._pidfd = zygote, os.pidfd_open(pid)
        self._read: dict[IO[str], bytes] = {pipe: b"" for pipe in pipes if pipe}

    def poll(self) -> int | None:
        """Return the exit status as Popen does, or None while the process is running."""
        if self.returncode is None and (status := self._zygote.reap(self.pid)) is not None:
            self.returncode = os.waitstatus_to_exitcode(status)
            os.close(self._pidfd)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status. Raises TimeoutExpired after `timeout` seconds."""
        if self.poll() is None:
            ended = select.poll()
            ended.register(self._pidfd, select.POLLIN)
            if not ended.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.poll()
        return self.returncode

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[str, str]:
        """Read both pipes to the end, then wait. Raises TimeoutExpired after `timeout` seconds."""
        deadline = time.monotonic() + (timeout or MAX_WAIT_S)
        with selectors.DefaultSelector() as selector:
            for pipe in self._read:
                if not pipe.closed:
                    selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(max(0, deadline - time.monotonic())):
                    self._receive(selector, key.fileobj)
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(max(0, deadline - time.monotonic()))
        out, err = (pipe and self._read[pipe].decode() for pipe in (self.stdout, self.stderr))
        return out, err  # type: ignore[return-value]  # None without a pipe, as of Popen

    def _receive(self, selector: selectors.BaseSelector, pipe: Any) -> None:
        if part := os.read(pipe.fileno(), 65_536):
            self._read[pipe] += part
        else:
            selector.unregister(pipe)
            pipe.close()

    def send_signal(self, number: int) -> None:
        """Send a signal if the process is still running."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._pidfd, number)

    def __exit__(self, *_: object) -> None:
        for pipe in self._read:
            pipe.close()
        self.wait()

    def __del__(self) -> None:
        """Do nothing. The zygote kills processes that are still running when it ends."""


class Zygote:
    """The zygote of this process. It accepts two requests: to fork, and to reap a fork that has ended."""

    def __init__(self) -> None:
        self.owner, self._lock = os.getpid(), threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def close(self) -> None:
        """End the zygote and the servers that are still running."""
        if os.getpid() == self.owner:
            self._socket.close()
            self._process.wait()

    def fork(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        first: str,
        output: IO[bytes] | int,
        timing: Timing,
    ) -> ForkedServer:
        """Run `bifolio` with the given arguments in a fork, after the Python code `first`."""
        streams = [_stream(output), _stream(output)]
        told = {"arguments": arguments, "environment": dict(environment), "first": first, "umask": _umask()}
        told["timing"] = asdict(timing)
        try:
            pid = self._request(told, [theirs for theirs, _ in streams])
        finally:
            for theirs, _ in streams:
                os.close(theirs)
        return ForkedServer(self, pid, ["bifolio", *arguments], [pipe for _, pipe in streams])

    def reap(self, pid: int) -> int | None:
        """Return the wait status of a fork that has ended, or None while it is running."""
        status: int | None = self._request({"reap": pid}, [])
        return status

    def _request(self, told: Mapping[str, Any], descriptors: list[int]) -> Any:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(told).encode()], descriptors)
            answer = self._socket.recv(MAX_MESSAGE_BYTES)
        assert answer, "the zygote has ended"
        return json.loads(answer)


def _stream(output: IO[bytes] | int) -> tuple[int, IO[str] | None]:
    """Return a descriptor that a fork writes to. For `subprocess.PIPE`, also return the reading end."""
    if output == subprocess.PIPE:
        reader, writer = os.pipe()
        return writer, open(reader, encoding="utf-8")
    if output == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR), None
    return os.dup(output if isinstance(output, int) else output.fileno()), None


def _umask() -> int:
    """Return this process's umask. It is read from /proc, because setting it would affect other threads that
    create files.
    """
    return int(Path("/proc/self/status").read_text().partition("Umask:")[2].split()[0], 8)


_made: list[Zygote] = []


def zygote() -> Zygote:
    """Return the zygote of this process. The first call starts it."""
    if not _made or _made[0].owner != os.getpid():
        _made[:] = [Zygote()]
    return _made[0]


# --- code that runs in the zygote -----------------------------------------------------------------


def become_server(descriptor: int) -> tuple[str, Timing]:
    """Handle requests on a socket. In each fork, return the Python code to run first and the timing of jobs.

    The zygote itself exits here when the other side closes the socket.
    """
    for module in MODULES:
        import_module(module)
    gc.collect()
    gc.freeze()  # Otherwise the garbage collector of each fork would copy the memory that all forks share.
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads can't be forked"
    running: set[int] = set()
    with socket.socket(fileno=descriptor) as asked:
        while True:
            message, descriptors, _, _ = socket.recv_fds(asked, MAX_MESSAGE_BYTES, 2)
            if not message:
                break
            told = json.loads(message)
            if "reap" in told:
                pid, status = os.waitpid(told["reap"], os.WNOHANG)
                running.discard(pid)
                asked.send(json.dumps(status if pid else None).encode())
                continue
            pid = os.fork()
            if not pid:
                _take_on(told, descriptors)
                asked.send(json.dumps(os.getpid()).encode())
                return str(told["first"]), Timing(**told["timing"])
            running.add(pid)
            for one in descriptors:
                os.close(one)
    for pid in running:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    sys.exit()


def _take_on(told: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    """Set a fork's session, umask, output, arguments and environment as the command would have them."""
    os.setsid()
    os.umask(told["umask"])
    for number, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    sys.argv[1:] = told["arguments"]
    os.environ.clear()
    os.environ.update(told["environment"])
    time.tzset()


def run_and_exit(command: Callable[[], None]) -> None:
    """Run a command, and end the process with its exit status.

    Python's own exit would free all modules one by one, and copy the memory that the forks share.
    """
    status = 1
    try:
        command()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # These two calls do what Python does first at its own exit.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(status)
