"""Generations of workers. The workers of a generation share memory, because one process forks them all.

If all documents of a large site change, a new process loads the site and forks the next generation.
"""

import logging
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from server.api.serving.supervisor import (
    BACKOFFS_S,
    END_SIGNALS,
    MIN_UPTIME_S,
    STOP_TIMEOUT_S,
    catch_signals,
    describe_exit,
)
from server.api.serving.takeover import TakeoverListener

# The launcher does not load the site, because it could never free the memory again.
log = logging.getLogger("bifolio")

MARGIN_S = 2.0  # How much longer a generation may run than its workers.
_MESSAGE = struct.Struct("=cI")  # kind of message, and number of the generation
_RELOAD, _READY = b"w", b"a"
SHUT_DOWN = b"r"


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of workers, and its pipes to the launcher.

    When the launcher writes a byte to `control_pipe`, the generation finishes its requests and exits. When
    the pipe is closed, the generation exits within seconds.
    """

    number: int
    control_pipe: int
    status_pipe: int

    def report_ready(self) -> None:
        """Tell the launcher that a worker is ready. The launcher then ends the previous generation."""
        self._send(_READY)

    def request_reload(self) -> None:
        """Ask the launcher for a new generation. If one is already starting, the request has no effect."""
        self._send(_RELOAD)

    def _send(self, what: bytes) -> None:
        with suppress(OSError):  # The launcher may have exited.
            os.write(self.status_pipe, _MESSAGE.pack(what, self.number))


@dataclass(slots=True)
class _Process:
    number: int
    pid: int
    control_pipe: int
    began: float = field(default_factory=time.monotonic)


class Generations:
    """Launcher of generations. It runs until it receives a signal or another server takes over.

    - `serve`: a function that runs in a new process for each generation.
    - `on_exit`: a function that is called after a replaced generation has exited.
    - `renew`: a function that renews the lease on the site's folder. It returns the seconds until the next
      renewal.
    """

    def __init__(
        self,
        serve: Callable[[Generation], None],
        on_exit: Callable[[], None],
        takeovers: TakeoverListener,
        renew: Callable[[], float | None],
    ) -> None:
        self._serve, self._on_exit, self._takeovers, self._renew = serve, on_exit, takeovers, renew
        self._is_taken_over = False  # whether another server is taking over
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._current: _Process | None = None  # the generation that handles requests
        self._next: _Process | None = None  # the generation that is starting
        self._replaced: list[_Process] = []
        self._number = 0
        self._is_requested = True  # whether a generation was requested
        self._due = 0.0  # when the next generation may start
        self._failures = 0

    def run(self) -> int:
        """Run until a signal arrives or another server has taken over. Return the exit status."""
        with catch_signals(lambda: (self._read, *self._takeovers.descriptors)) as arrived:
            while True:
                wait = min((s for s in (self._fork_if_due(), self._renew()) if s is not None), default=None)
                if any(number in END_SIGNALS for number in arrived(wait)):
                    return self._stop_all(arrived)
                self._read_messages()
                if not self._is_taken_over and self._takeovers.handle_requests():
                    self._hand_over()
                status = self._reap()
                if status is not None:
                    return status
                if self._is_taken_over and not self._processes():
                    return 0

    def _fork_if_due(self) -> float | None:
        """Fork the next generation if one was requested and the pause after a failure is over.

        Return the remaining seconds of the pause, or None if no generation is waiting to be forked.
        """
        if not self._is_requested or self._next is not None or self._is_taken_over:
            return None
        left = self._due - time.monotonic()
        if left > 0:
            return left
        self._is_requested = False  # Requests for a new generation have no effect while one is starting.
        try:
            self._next = self._fork()
        except OSError as error:
            self._fail(f"can't start: {error.strerror}")
            return self._fork_if_due()
        return None

    def _fork(self) -> _Process:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._number += 1
        reader, writer = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
        try:
            pid = os.fork()
            if not pid:
                self._run_generation(Generation(self._number, reader, self._write), before, writer)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reader)
        return _Process(self._number, pid, writer)

    def _run_generation(
        self, generation: Generation, mask: set[int | signal.Signals], control_pipe: int
    ) -> None:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            # A terminal sends these signals to all processes, but only the launcher handles them, and it
            # stops the others.
            for number in (signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            # Without the default action, a SIGTERM that arrives before Python can run a handler would be
            # lost, and the parent would wait forever.
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self._takeovers.close()
            for descriptor in (
                control_pipe,
                self._read,
                *(process.control_pipe for process in self._processes()),
            ):
                os.close(descriptor)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._serve(generation)
            status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except BaseException:
            log.exception("the site can't be loaded")
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(status)

    def _read_messages(self) -> None:
        while True:
            try:
                message = os.read(self._read, _MESSAGE.size)
            except BlockingIOError:
                return
            what, number = _MESSAGE.unpack(message)
            if what == _RELOAD and self._current and number == self._current.number:
                self._is_requested = True
            elif what == _READY and self._next and number == self._next.number:
                if self._current:
                    os.write(self._current.control_pipe, SHUT_DOWN)
                    self._replaced.append(self._current)
                    self._failures = 0
                else:
                    self._takeovers.open()
                self._current, self._next, self._is_requested = self._next, None, False

    def _hand_over(self) -> None:
        self._is_taken_over = True
        self._takeovers.end()
        if self._next:
            os.kill(self._next.pid, signal.SIGTERM)
        if self._current:
            os.write(self._current.control_pipe, SHUT_DOWN)
            self._replaced.append(self._current)
            self._current = None

    def _reap(self) -> int | None:
        """Reap processes that have ended.

        If the first generation ended before it was ready, return its exit status.
        """
        for process in self._processes():
            pid, status = os.waitpid(process.pid, os.WNOHANG)
            if not pid:
                continue
            os.close(process.control_pipe)
            if process in self._replaced:
                self._replaced.remove(process)
                self._on_exit()
            elif process is self._next:
                self._next = None
                if process.number == 1:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 1
                if status or self._current is None:
                    self._fail(f"(process {pid}) {describe_exit(status)}")
            else:
                self._current = None
                early = time.monotonic() - process.began < MIN_UPTIME_S
                self._failures = self._failures if early else 0
                self._fail(f"(process {pid}) {describe_exit(status)}")
        return None

    def _fail(self, what: str) -> None:
        if self._is_taken_over:
            return
        self._failures += 1
        pause = BACKOFFS_S[min(self._failures, len(BACKOFFS_S) - 1)]
        log.error("the process that loads the site for the workers %s; a new one starts in %d s", what, pause)
        self._is_requested, self._due = True, time.monotonic() + pause

    def _processes(self) -> list[_Process]:
        return [*self._replaced, *(p for p in (self._current, self._next) if p is not None)]

    def _stop_all(self, wait_for_signals: Callable[[float | None], bytes]) -> int:
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S + MARGIN_S
        while self._processes() and (left := deadline - time.monotonic()) > 0:
            renewal = self._renew()
            if any(
                number in END_SIGNALS
                for number in wait_for_signals(left if renewal is None else min(left, renewal))
            ):
                self._signal(signal.SIGTERM)
            self._collect_exited()
        self._signal(signal.SIGKILL)
        return 0

    def _collect_exited(self) -> None:
        gone = [process for process in self._processes() if os.waitpid(process.pid, os.WNOHANG)[0]]
        self._replaced = [process for process in self._replaced if process not in gone]
        self._current = None if self._current in gone else self._current
        self._next = None if self._next in gone else self._next

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes():
            os.kill(process.pid, number)
