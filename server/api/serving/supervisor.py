"""Supervisor that forks a server's workers, and replaces any that exit or hang.

If a worker repeatedly exits soon after starting, the pauses before replacements get longer. If the supervisor
ends, its workers end, too.
"""

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
RETIREMENT_TIMEOUT_S = 600.0  # Maximum time for retired workers to end.
STOP_TIMEOUT_S = 4.0  # Maximum time for open requests after SIGTERM.
END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
IGNORED_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)


@dataclass(slots=True)
class _Place:
    """Slot for a worker. `at` is when the worker was started or, if `pid` is 0, when to start a new one."""

    number: int
    pid: int = 0
    at: float = 0.0
    deaths: int = 0  # consecutive early exits and failed starts
    is_hung: bool = False  # whether it was killed because its heartbeat stopped


class Supervisor:
    """Parent process of `count` workers, which runs until it receives a signal.

    If a byte arrives in the `leash` pipe, the workers call `retire`, finish their open requests and end. If
    the pipe is closed, the workers get SIGTERM.
    """

    def __init__(
        self,
        count: int,
        work: Callable[[], None],
        leash: int | None = None,
        retire: Callable[[], None] | None = None,
        heartbeat_timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._work, self._leash, self._retire = work, leash, retire
        self._heartbeats = Heartbeats(count, heartbeat_timeout_s)
        self._places = [_Place(number) for number in range(1, count + 1)]
        # Each byte in this pipe retires one worker. The pipe is closed when the supervisor ends.
        self._lifeline = os.pipe()

    def run(self) -> None:
        """Run and replace workers until a signal arrives, then let them finish their open requests."""
        leash = () if self._leash is None else (self._leash,)
        with arriving_signals(lambda: leash) as arrived:
            while not any(number in END_SIGNALS for number in arrived(min(self._begin(), INTERVAL_S))):
                self._reap()
                self._kill_hung()
                if self._leash is not None and _readable(self._leash):
                    if os.read(self._leash, 1):
                        self._wait_for_retired(arrived)
                    break
            self._signal(signal.SIGTERM)
            deadline = time.monotonic() + STOP_TIMEOUT_S
            while self._living() and (left := deadline - time.monotonic()) > 0:
                if any(number in END_SIGNALS for number in arrived(left)):
                    break
                self._reap(ending=True)
            self._signal(signal.SIGKILL)
            for place in self._living():
                os.waitpid(place.pid, 0)

    def _wait_for_retired(self, arrived: Callable[[float | None], bytes]) -> None:
        os.write(self._lifeline[1], b"." * len(self._living()))
        deadline = time.monotonic() + RETIREMENT_TIMEOUT_S
        while self._living() and (left := deadline - time.monotonic()) > 0:
            signals = arrived(min(left, INTERVAL_S))
            if any(number in END_SIGNALS for number in signals) or (self._leash and _readable(self._leash)):
                return
            self._reap(ending=True)
            self._kill_hung()

    def _begin(self) -> float:
        """Fork workers that are due. Return the seconds until the next fork, or `inf` if all are running."""
        now = time.monotonic()
        missing = [place for place in self._places if not place.pid]
        for place in missing:
            if place.at <= now:
                self._start(place, now)
        return min((place.at - now for place in missing if not place.pid), default=math.inf)

    def _start(self, place: _Place, now: float) -> None:
        try:
            self._heartbeats.expect(place.number, now)
            place.pid, place.at = self._fork(place.number), now
        except OSError as error:
            place.deaths += 1
            pause = max(1, _pause(place))
            place.at = now + pause
            log.error("worker %d can't start: %s; retrying in %d s", place.number, error.strerror, pause)

    def _kill_hung(self) -> None:
        now = time.monotonic()
        self._heartbeats.check(now)
        for place in self._living():
            if self._heartbeats.is_hung(place.number):
                place.is_hung = True
                # A suspended worker could resume later and acknowledge a write that is based on an outdated
                # state.
                os.kill(place.pid, signal.SIGKILL)
                self._heartbeats.expect(place.number, now)

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
            threading.Thread(target=_heed, args=(lifeline, self._retire), daemon=True).start()
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

    def _reap(self, *, ending: bool = False) -> None:
        multiprocessing.active_children()  # This reaps any other child processes.
        for place in self._living():
            pid, status = os.waitpid(place.pid, os.WNOHANG)
            if not pid:
                continue
            now = time.monotonic()
            place.deaths = place.deaths + 1 if now - place.at < MIN_UPTIME_S else 1
            pause = _pause(place)
            reason = "did not respond and was killed" if place.is_hung else why(status)
            place.pid, place.at, place.is_hung = 0, now + pause, False
            if not ending:
                when = f"in {pause} s" if pause else "now"
                log.error(
                    "worker %d (process %d) %s; a new worker starts %s", place.number, pid, reason, when
                )

    def _living(self) -> list[_Place]:
        return [place for place in self._places if place.pid]

    def _signal(self, number: signal.Signals) -> None:
        for place in self._living():
            os.kill(place.pid, number)


def _pause(place: _Place) -> int:
    return BACKOFFS_S[min(place.deaths, len(BACKOFFS_S)) - 1]


def why(status: int) -> str:
    """Describe how a process ended, given its status from `waitpid`."""
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
def arriving_signals(
    beside: Callable[[], Iterable[int]] = lambda: (),
) -> Iterator[Callable[[float | None], bytes]]:
    """Context manager that catches signals, and yields a function that waits for signals.

    The function takes a timeout in seconds and returns the signal numbers. It also returns when a file
    descriptor in `beside` becomes readable. Signals that were already ignored, for example by nohup, stay
    ignored.
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
        select.select([reader, *beside()], [], [], seconds)
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


def _heed(lifeline: int, retire: Callable[[], None] | None) -> None:
    """Retire this worker when a byte arrives in the `lifeline` pipe, and end it when the pipe is closed."""
    if os.read(lifeline, 1) and retire:
        retire()
        closed = select.poll()
        # The remaining bytes are for other workers.
        closed.register(lifeline, 0)
        closed.poll()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(1)
