"""Supervisor that forks workers and replaces those that exit. If it exits, its workers exit, too."""

import logging
import math
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from server.api.serving.heartbeats import INTERVAL_S, TIMEOUT_S, Heartbeats
from server.storage.helper_processes import end_helpers

log = logging.getLogger("bifolio")

# Pauses before a worker is replaced, by the number of consecutive early exits.
BACKOFFS_S = (0, 1, 2, 4, 8, 16, 30)
MIN_UPTIME_S = 60.0  # A worker that runs for less time than this has exited early.
SHUTDOWN_TIMEOUT_S = 600.0  # Maximum time for workers to finish their open requests.
STOP_TIMEOUT_S = 4.0  # Maximum time for open requests after SIGTERM.
END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
IGNORED_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)


@dataclass(slots=True)
class _Slot:
    """Slot for one worker.

    `started_or_due_at` is the time when the worker started or, if `pid` is 0, when the next one is due.
    """

    number: int
    pid: int = 0
    started_or_due_at: float = 0.0
    early_exits: int = 0  # consecutive early exits and failed starts
    is_hung: bool = False  # whether it was killed because its heartbeat stopped


class Supervisor:
    """Parent process of `count` workers.

    When a byte arrives through `control_pipe`, each worker calls `on_shutdown`, finishes its requests and
    exits. When the pipe is closed, the workers receive SIGTERM.
    """

    def __init__(
        self,
        count: int,
        work: Callable[[], None],
        control_pipe: int | None = None,
        on_shutdown: Callable[[], None] | None = None,
        heartbeat_timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._work, self._control_pipe, self._on_shutdown = work, control_pipe, on_shutdown
        self._heartbeats = Heartbeats(count, heartbeat_timeout_s)
        self._slots = [_Slot(number) for number in range(1, count + 1)]
        # Each byte in this pipe shuts down one worker. The pipe is closed when the supervisor exits.
        self._lifeline = os.pipe()

    def run(self) -> None:
        """Run workers until a signal arrives, then let them finish their requests."""
        control_pipe = () if self._control_pipe is None else (self._control_pipe,)
        with catch_signals(lambda: control_pipe) as arrived:
            while not any(number in END_SIGNALS for number in arrived(min(self._fork_due(), INTERVAL_S))):
                self._reap()
                self._kill_hung()
                if self._control_pipe is not None and _readable(self._control_pipe):
                    if os.read(self._control_pipe, 1):
                        self._shut_workers_down(arrived)
                    break
            self._signal(signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while self._running() and (left := deadline - time.monotonic()) > 0:
                if any(number in END_SIGNALS for number in arrived(left)):
                    break
                self._reap(is_stopping=True)
            self._signal(signal.SIGKILL)
            for slot in self._running():
                os.waitpid(slot.pid, 0)

    def _shut_workers_down(self, arrived: Callable[[float | None], bytes]) -> None:
        os.write(self._lifeline[1], b"." * len(self._running()))
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT_S
        while self._running() and (left := deadline - time.monotonic()) > 0:
            signals = arrived(min(left, INTERVAL_S))
            if any(number in END_SIGNALS for number in signals) or (
                self._control_pipe and _readable(self._control_pipe)
            ):
                return
            self._reap(is_stopping=True)
            self._kill_hung()

    def _fork_due(self) -> float:
        """Fork the workers that are due.

        Return the seconds until the next worker is due, or `inf` if all workers are running.
        """
        now = time.monotonic()
        missing = [slot for slot in self._slots if not slot.pid]
        for slot in missing:
            if slot.started_or_due_at <= now:
                self._start(slot, now)
        return min((slot.started_or_due_at - now for slot in missing if not slot.pid), default=math.inf)

    def _start(self, slot: _Slot, now: float) -> None:
        try:
            self._heartbeats.expect(slot.number, now)
            slot.pid, slot.started_or_due_at = self._fork(slot.number), now
        except OSError as error:
            slot.early_exits += 1
            pause = max(1, _pause(slot))
            slot.started_or_due_at = now + pause
            log.error("worker %d can't start: %s; retrying in %d s", slot.number, error.strerror, pause)

    def _kill_hung(self) -> None:
        now = time.monotonic()
        self._heartbeats.check(now)
        for slot in self._running():
            if self._heartbeats.is_hung(slot.number):
                slot.is_hung = True
                # A suspended worker could resume later and acknowledge a write that is based on an outdated
                # state.
                os.kill(slot.pid, signal.SIGKILL)
                self._heartbeats.expect(slot.number, now)

    def _fork(self, number: int) -> int:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # Signals are blocked until the worker has set its signal handlers.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
        try:
            pid = os.fork()
            if not pid:
                self._run_worker(before, number)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid

    def _run_worker(self, mask: set[int | signal.Signals], number: int) -> None:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for ending, action in (
                (signal.SIGCHLD, signal.SIG_DFL),
                (signal.SIGTERM, signal.SIG_DFL),
                # Ctrl-C sends SIGINT to all processes, but the supervisor ends the workers.
                (signal.SIGINT, signal.SIG_IGN),
                (signal.SIGHUP, signal.SIG_IGN),
            ):
                signal.signal(ending, action)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._heartbeats.start(number)
            os.close(self._lifeline[1])
            lifeline = self._lifeline[0]
            threading.Thread(
                target=_wait_for_shutdown, args=(lifeline, self._on_shutdown), daemon=True
            ).start()
            self._work()
            status = 0
        except BaseException:
            log.exception("a worker failed")
        finally:
            logging.disable()  # Jobs must not log that their helpers were killed.
            end_helpers()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            os._exit(status)

    def _reap(self, *, is_stopping: bool = False) -> None:
        multiprocessing.active_children()  # This reaps any other child processes.
        for slot in self._running():
            pid, status = os.waitpid(slot.pid, os.WNOHANG)
            if not pid:
                continue
            now = time.monotonic()
            slot.early_exits = slot.early_exits + 1 if now - slot.started_or_due_at < MIN_UPTIME_S else 1
            pause = _pause(slot)
            reason = "did not respond and was killed" if slot.is_hung else describe_exit(status)
            slot.pid, slot.started_or_due_at, slot.is_hung = 0, now + pause, False
            if not is_stopping:
                when = f"in {pause} s" if pause else "now"
                log.error("worker %d (process %d) %s; a new worker starts %s", slot.number, pid, reason, when)

    def _running(self) -> list[_Slot]:
        return [slot for slot in self._slots if slot.pid]

    def _signal(self, number: signal.Signals) -> None:
        for slot in self._running():
            os.kill(slot.pid, number)


def _pause(slot: _Slot) -> int:
    return BACKOFFS_S[min(slot.early_exits, len(BACKOFFS_S)) - 1]


def describe_exit(status: int) -> str:
    """Describe how a process ended, based on its status from `waitpid`."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (
        " (possibly because the system ran out of memory)" if name == "SIGKILL" else ""
    )


@contextmanager
def catch_signals(
    descriptors: Callable[[], Iterable[int]] = lambda: (),
) -> Iterator[Callable[[float | None], bytes]]:
    """Yield a function that waits for signals.

    The function takes a timeout in seconds, and returns the numbers of the signals that arrived. It returns
    early if a descriptor becomes readable. Signals that the process ignored before remain ignored.
    """
    reader, writer = os.pipe()
    for descriptor in (reader, writer):
        os.set_blocking(descriptor, False)
    wanted = [number for number in END_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.getsignal(number) for number in (*wanted, *IGNORED_SIGNALS, signal.SIGCHLD)}
    for number in before:
        signal.signal(number, signal.SIG_IGN if number in IGNORED_SIGNALS else _do_nothing)
    signal.set_wakeup_fd(writer)

    def arrived(seconds: float | None) -> bytes:
        select.select([reader, *descriptors()], [], [], seconds)
        try:
            return os.read(reader, 1024)
        except BlockingIOError:
            return b""

    try:
        yield arrived
    finally:
        signal.set_wakeup_fd(-1)
        for number, action in before.items():
            signal.signal(number, action)
        os.close(reader)
        os.close(writer)


# Python writes a signal's number to the wakeup file descriptor only if the signal has a handler.
def _do_nothing(*_: object) -> None:
    pass


def _readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _wait_for_shutdown(lifeline: int, on_shutdown: Callable[[], None] | None) -> None:
    """Wait until a byte arrives through the pipe, then call `on_shutdown`.

    End this worker when the pipe is closed.
    """
    if os.read(lifeline, 1) and on_shutdown:
        on_shutdown()
        closed = select.poll()
        # The remaining bytes are for other workers.
        closed.register(lifeline, 0)
        closed.poll()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(1)
