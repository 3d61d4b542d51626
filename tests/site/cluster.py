"""The workers of a server without HTTP: forked processes that share a change log.

As in a real server, they are forked from a process that has loaded the site. Each worker records its state
continuously, so that a test can check every state from which a response could have been sent.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from server.auth.permissions import Actor
from server.documents.values import Component
from server.errors import ApiError
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.site.background.jobs import FollowLog
from server.site.change_log import ChangeLog
from server.site.replica import State
from server.site.site import Site
from server.site.watch import Watcher
from server.write import prepare
from server.write.request import Address, WriteRequest
from tests.sites import opened, write_to

FORK = get_context("forkserver")
FORK.set_forkserver_preload(["tests.site.cluster"])
TIMING = replace(Timing(), patrol_s=2.0, max_notification_delay_s=1.0)
TOUCHING = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.chmod", "os.rmdir")

Shown = dict[str, Any]  # a state as plain values
Pipes = dict[int, tuple[int, Connection]]  # by worker: its process id, and the connection to it


@dataclass(frozen=True)
class Sample:
    """A state of one worker, and the number of records that the worker had applied."""

    number: int
    shown: Shown


class Cluster:
    """The workers of a server of the site at `root`. The first worker watches the files."""

    def __init__(self, root: Path, workers: int, segment: int = 1 << 20) -> None:
        self.root = root
        self._pipe, other = FORK.Pipe()
        self._process = FORK.Process(target=_serve, args=(other, root, workers, segment))
        self._process.start()
        other.close()
        self.workers = list(range(workers))
        self._next = workers
        self._ask("ready")

    def show(self, worker: int) -> Shown:
        """Return the state from which a worker would send its next response."""
        return self._ask("show", worker)

    def number(self, worker: int) -> int:
        """Return how many records a worker has applied."""
        return self._ask("number", worker)

    def write(self, worker: int, name: str, data: dict[str, Any]) -> bool:
        """Let a worker write to a note. Return False if the worker rejected the write or died."""
        return bool(self._ask("write", worker, name, data))

    def write_and_die(self, worker: int, name: str, data: dict[str, Any], at: int) -> None:
        """Let a worker write to a note, and kill it at its file operation number `at`, or after the write."""
        self._ask("die", worker, name, data, at)
        self._gone(worker)

    def kill(self, worker: int) -> None:
        self._ask("kill", worker)
        self._gone(worker)

    def samples(self, worker: int) -> list[Sample]:
        """Return the distinct states that a worker has had, in order."""
        return list(self._ask("samples", worker))

    def warnings(self, worker: int) -> list[str]:
        """Return the log output of a worker."""
        return list(self._ask("warnings", worker))

    def close(self) -> None:
        self._pipe.send(("stop",))
        self._process.join(10)
        self._pipe.close()

    def _gone(self, worker: int) -> None:
        self.workers.remove(worker)
        self.workers.append(self._next)
        self._ask("add", self._next)
        self._next += 1

    def _ask(self, *what: Any) -> Any:
        self._pipe.send(what)
        if not self._pipe.poll(30):
            raise AssertionError(f"no answer to {what}")
        answer = self._pipe.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def show(state: State) -> Shown:
    """Return the settings and documents of a state as plain values."""
    documents = {
        f"{key[0]} {key[1]} {key[2]}": _plain(document.row[2:])
        for table in state.snapshot.tables.values()
        for key, document in table.versions.items()
    }
    columns = {type_.uid: list(type_.columns) for type_ in state.schema.content_types}
    return {
        "name": state.settings.name,
        "roles": {name: sorted(may) for name, may in state.settings.roles.items()},
        "columns": columns,
        **documents,
    }


def _plain(value: Any) -> Any:
    """Return a row's value without component types, because these are compared by identity."""
    if isinstance(value, Component):
        return (value.type.uid, *_plain(value.row))
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


# --- the process that workers are forked from --------------------------------------------------


def _serve(pipe: Connection, root: Path, workers: int, segment: int) -> None:
    site = opened(root)
    log = ChangeLog(segment)
    site.share(log)
    pipes: Pipes = {}

    def fork(worker: int) -> None:
        ours, theirs = FORK.Pipe()
        pid = os.fork()
        if not pid:
            ours.close()
            try:
                _work(site, log, theirs)
            finally:
                os._exit(0)
        theirs.close()
        pipes[worker] = pid, ours

    for worker in range(workers):
        fork(worker)
    while (asked := pipe.recv())[0] != "stop":
        pipe.send(_answer(asked, pipes, fork))
    for pid, _ in pipes.values():
        _end(pid)


def _answer(asked: tuple[Any, ...], pipes: Pipes, fork: Callable[[int], None]) -> Any:
    what, *arguments = asked
    if what == "ready":
        return [_ask(ours, ("number",)) for _, ours in pipes.values()]
    worker = arguments[0]
    if what == "add":
        fork(worker)
        return _ask(pipes[worker][1], ("number",))
    pid, ours = pipes[worker]
    if what == "kill":
        _end(pid)
        del pipes[worker]
        return None
    answer = _ask(ours, (what, *arguments[1:]))
    if what == "die":
        _end(pid)
        del pipes[worker]
    return answer


def _ask(pipe: Connection, what: tuple[Any, ...]) -> Any:
    try:
        pipe.send(what)
        return pipe.recv()
    except (EOFError, OSError):
        return None


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


# --- a worker ----------------------------------------------------------------------------------


def _work(site: Site, log: ChangeLog, pipe: Connection) -> None:
    samples: list[Sample] = []
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("bifolio").addHandler(handler)
    site.catch_up()
    site.recover()
    Runner([FollowLog(site, TIMING)]).start()
    threading.Thread(target=_lead, args=(site, log), daemon=True).start()
    threading.Thread(target=_sample, args=(site, samples), daemon=True).start()
    answers: dict[str, Callable[..., Any]] = {
        "show": lambda: show(site.current()),
        "number": lambda: site._replica.contents.last_record,
        "samples": lambda: list(samples),
        "warnings": lambda: list(warnings),
        "write": lambda name, data: _write(site, name, data),
        "die": lambda name, data, at: _write_and_die(site, name, data, at),
    }
    while True:
        what, *arguments = pipe.recv()
        pipe.send(answers[what](*arguments))


def _lead(site: Site, log: ChangeLog) -> None:
    log.wait_for_leadership()
    Runner([Watcher(site, TIMING)]).start()


def _sample(site: Site, samples: list[Sample]) -> None:
    """Record every state with its record number. The state is obtained as a request would."""
    last: State | None = None
    while True:
        replica = site._replica
        with replica._lock:
            replica.current()
            number, state = replica.contents.last_record, replica.state
        if state is not last:
            samples.append(Sample(number, show(state)))
            last = state
        time.sleep(0.002)


def _write(site: Site, name: str, data: dict[str, Any]) -> bool:
    type_ = site.current().schema.types["api::note.note"]
    request = WriteRequest(Address(type_, name, "en", draft=False), Actor("test", everything=True), data)
    try:
        write_to(site, prepare.update, request)
    except ApiError:
        return False
    return True


def _write_and_die(site: Site, name: str, data: dict[str, Any], at: int) -> None:
    seen = 0
    thread = threading.get_ident()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        ours = event in TOUCHING and threading.get_ident() == thread
        if ours and (".bifolio/journal" in str(arguments) or "/content" in str(arguments)):
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    _write(site, name, data)
    os.kill(os.getpid(), signal.SIGKILL)
