"""Delivers what webhooks are to be told: one process of a server does, and when it ends another goes on.

The job takes events into the queue, renders bodies and notes what came of tries; each try is a thread of
its own, of which there are a few at once. Before a try, its body is noted; after it, what came of it: so
every try sends the same bytes under the same id, and a delivery that nobody knows the end of is sent again.
"""

import logging
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from server.config.model import Settings
from server.config.webhooks import Webhook, resolve_environment
from server.database.engine import Connection
from server.documents.document import DRAFT
from server.errors import ApiError, BusyError, SetupError, StorageError
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.tables import DELIVERED, FAILED
from server.events.webhooks.delivery_table import (
    Delivery,
    begin,
    finish,
    first_due,
    forget,
    next_due,
    note,
    shorten,
    try_again,
)
from server.events.webhooks.http_client import TIMEOUT_S, Outcome, brief, post
from server.events.webhooks.queue import adopt, cursors, disable, enqueue
from server.events.webhooks.retry_policy import BACKOFFS_S, next_try
from server.events.webhooks.secret_files import secrets_of
from server.jobs.job import Backoff, Clock, Job, JobContext, JobFailedError, Timing
from server.paths import SETTINGS, state_folder
from server.storage.file_lock import FileLock

log = logging.getLogger("bifolio")

MAX_ATTEMPTS_PER_WEBHOOK = 5  # at once; one for a webhook whose last try failed
MAX_CONCURRENT_ATTEMPTS = 40  # Of all webhooks; each has a thread.
MAX_FAILING_ATTEMPTS = 20  # of these, for webhooks whose last try failed; the rest is for the others
BATCH_EVENTS = 500  # Events that one transaction takes into the queue.
SWEEP_INTERVAL_S = 600.0  # Between two removals of old deliveries.
STOP_TIMEOUT_S = 4.0  # How long tries may go on when the worker stops.
COMMIT_TIMEOUT_S = 2.0  # How long a delivery waits for the commit of its write.
SAME_MOMENT_S = 60.0  # how long a server may take to read a site.yaml that adds a webhook
MAX_EVENTS_OF_A_MOMENT = 1000  # events that a new webhook is told of at most, of those before it was read
GONE_STATUS = 410  # A receiver that sends this status wants no further deliveries.
_MIN_CLOCK_JUMP_S = 1.0  # A clock that differs by more was set to another time.

Render = Callable[[Event, bool], bytes]  # of an event, and whether drafts are told as well


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how long a delivery is tried."""

    steps: Sequence[float] = BACKOFFS_S
    timeout: float = TIMEOUT_S


@dataclass(frozen=True, slots=True)
class _Try:
    """A delivery that is being sent, and where."""

    delivery: Delivery
    webhook: Webhook


class Deliverer(Job):
    """Delivers for the site at `root`, as its `settings` are at each time; `render` makes a body.

    How far each webhook has come is in the database of events, and so outlasts a kill.
    """

    name = "deliver"
    failure = "webhooks could not be looked after"

    def __init__(
        self,
        root: Path,
        settings: Callable[[], Settings],
        render: Render,
        timing: Timing,
        pace: Pace | None = None,
    ) -> None:
        self._root, self._settings, self._render = root, settings, render
        self._timing, self._pace = timing, pace or Pace()
        self.backoff = Backoff(timing.deliver_retry_s, timing.deliver_retry_s)
        self._clock, self._lock = Clock(), FileLock(state_folder(root) / "webhooks" / "lock")
        self._wake: Callable[[], None] = lambda: None
        self._database = EventDatabase(root, settings().accounts)
        self._busy: dict[int, _Try] = {}  # by number of the delivery
        self._finished: queue.SimpleQueue[tuple[_Try, Outcome]] = queue.SimpleQueue()
        self._outcomes: list[tuple[_Try, Outcome]] = []  # not noted yet
        self._failing: set[str] = set()  # webhooks whose last try failed: they get one at a time
        self._seen: tuple[object, ...] = ()  # settings and log when they were last looked at
        self._next: float | None = 0.0  # when something is due
        self._offset = 0.0  # of the clock from the one that only moves on, when deliveries were adjusted
        self._forgotten = 0.0
        self._told: set[str] = set()

    def start(self, context: JobContext) -> None:
        """Be woken by tries that end."""
        self._clock, self._wake = context.clock, context.wake

    def run(self, context: JobContext) -> float:
        """Note what came of tries, and begin those that are due.

        Of several servers of a site, one alone delivers at a time.
        """
        if not self._acquire_lock():
            return self._timing.deliver_lock_s
        self._collect()
        try:
            self._turn()
        except (StorageError, BusyError) as error:
            self._tell_trouble(error)
            raise JobFailedError(error.message) from error
        self._told.discard("trouble")
        return self._timing.deliver_s

    def _acquire_lock(self) -> bool:
        """Take the lock of the process that delivers; return False if another has it, or the disk refuses."""
        try:
            self._lock.path.parent.mkdir(mode=0o700, exist_ok=True)
            return self._lock.acquire()
        except OSError:
            return False

    def close(self) -> None:
        """Wait for the tries that have begun, unless they take too long, and note what came of them."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self._busy and time.monotonic() < deadline:
            self._collect(0.05)
        try:
            if self._outcomes:
                self._note_outcomes()
        except (StorageError, BusyError) as error:
            self._tell_trouble(error)
        finally:
            self._database.close()
            self._lock.release()

    def _tell_trouble(self, error: ApiError) -> None:
        """Say once that the disk, or another process, refuses."""
        self._tell("trouble", f"{error.message}; webhooks wait until it can be used again")

    def _tell(self, what: str, line: str) -> None:
        if what not in self._told:
            self._told.add(what)
            log.warning("%s", line)

    def _collect(self, seconds: float = 0.0) -> None:
        """Take what came of tries, waiting some seconds for the first of them."""
        try:
            found = self._finished.get(timeout=seconds) if seconds else self._finished.get_nowait()
            while True:
                self._outcomes.append(found)
                self._busy.pop(found[0].delivery.number, None)
                found = self._finished.get_nowait()
        except queue.Empty:
            pass

    def _turn(self) -> None:
        """Note what came of tries, take events into the queue, and begin the tries that are due."""
        settings, at = self._settings(), self._clock.time()
        jumped = self._has_jumped(at)
        if not settings.webhooks and not self._seen and not self._outcomes:
            return
        if not self._database.leads():  # Another machine delivers, by a clock of its own.
            self._seen, self._offset = (), 0.0
            return
        seen = (settings, self._database.mark())
        if (
            seen == self._seen
            and not self._outcomes
            and not jumped
            and (self._next is None or self._next > at)
        ):
            return
        webhooks = {webhook.name: webhook for webhook in self._usable(settings)}
        more = self._take(settings, webhooks, at, jumped=jumped)
        self._offset = at - self._clock.monotonic()
        chosen = self._choose(webhooks, at)
        self._send(chosen, webhooks, settings, at)
        self._look_ahead(webhooks)
        self._seen = () if more else seen

    def _has_jumped(self, at: float) -> bool:
        """Return whether deliveries were timed by another clock, or by this one before it was set."""
        return abs(at - self._clock.monotonic() - self._offset) > _MIN_CLOCK_JUMP_S

    def _usable(self, settings: Settings) -> Iterator[Webhook]:
        """The webhooks that are switched on, with their values of the environment."""
        for webhook in settings.webhooks:
            if webhook.enabled:
                try:
                    yield resolve_environment(webhook, os.environ)
                except SetupError as error:
                    self._tell(str(error), f"{error}; until then webhook {webhook.name} waits")

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._database.writing() as transaction:
            yield transaction.connection

    def _take(self, settings: Settings, webhooks: Mapping[str, Webhook], at: float, *, jumped: bool) -> bool:
        """Note outcomes and settings, and take events into the queue; whether there are more."""
        with self._writing() as connection:
            self._note(connection)
            adopt(connection, settings.webhooks, lambda: _last_before(connection, self._root, at))
            known = {name: at for name, at in cursors(connection).items() if name in webhooks}
            if jumped:
                shorten(connection, at)
            if abs(at - self._forgotten) > SWEEP_INTERVAL_S:
                forget(connection, at)
        self._outcomes.clear()
        self._forgotten = at if abs(at - self._forgotten) > SWEEP_INTERVAL_S else self._forgotten
        events = self._database.read(min(known.values()), BATCH_EVENTS) if known else []
        if not events:
            return False
        with self._writing() as connection:
            for name in cursors(connection).keys() & known.keys():
                new = [event for event in events if event.seq > known[name]]
                surplus = enqueue(connection, webhooks[name], new, at)
                if surplus:
                    log.warning(
                        "webhook %s: too many deliveries wait; the %d oldest are given up", name, surplus
                    )
        return len(events) == BATCH_EVENTS

    def _note_outcomes(self) -> None:
        with self._writing() as connection:
            self._note(connection)
        self._outcomes.clear()

    def _note(self, connection: Connection) -> None:
        """Note what came of tries."""
        at = self._clock.time()
        for done, outcome in self._outcomes:
            delivery = done.delivery
            self._note_failing(delivery.webhook, outcome)
            note(connection, delivery, outcome.status, outcome.error)
            if outcome.succeeded:
                finish(connection, delivery, DELIVERED)
                continue
            again = next_try(self._pace.steps, delivery.step, delivery.tries + 1, outcome.retry_after)
            if outcome.status == GONE_STATUS:
                finish(connection, delivery, FAILED)
                disable(connection, delivery.webhook, at, f"given up: {outcome.error}")
                log.warning(
                    "webhook %s answered 410 and is disabled (bifolio webhook enable)", delivery.webhook
                )
            elif again is None:
                finish(connection, delivery, FAILED)
                what = brief(outcome.error)
                log.warning("webhook %s: %s is given up: %s", delivery.webhook, delivery.id, what)
            else:
                try_again(connection, delivery, at, *again)

    def _note_failing(self, name: str, outcome: Outcome) -> None:
        if outcome.succeeded:
            self._failing.discard(name)
        elif name not in self._failing:
            self._failing.add(name)
            log.warning("webhook %s: %s", name, brief(outcome.error))

    def _room(self, name: str) -> int:
        """Return how many more tries a webhook may start now. Receivers that hang must not delay others."""
        tries = Counter(one.delivery.webhook for one in self._busy.values())
        room = MAX_CONCURRENT_ATTEMPTS - tries.total()
        if name in self._failing:
            return min(1 - tries[name], room, MAX_FAILING_ATTEMPTS - self._failing_in(tries))
        return min(MAX_ATTEMPTS_PER_WEBHOOK - tries[name], room)

    def _failing_in(self, tries: Counter[str]) -> int:
        return sum(tries[name] for name in self._failing)

    def _choose(self, webhooks: Mapping[str, Webhook], at: float) -> list[Delivery]:
        """The deliveries that are tried now: of each webhook in turn, so that none waits for a slow one."""
        rooms = {name: self._room(name) for name in webhooks}
        waiting = self._database.query(
            lambda c: {n: next_due(c, n, at, room, self._busy) for n, room in rooms.items() if room > 0}
        )
        tries = Counter(one.delivery.webhook for one in self._busy.values())
        chosen: list[Delivery] = []
        while tries.total() < MAX_CONCURRENT_ATTEMPTS:
            full = self._failing_in(tries) >= MAX_FAILING_ATTEMPTS
            names = [n for n, due in waiting.items() if due and not (full and n in self._failing)]
            if not names:
                break
            name = min(names, key=lambda n: tries[n])
            chosen.append(waiting[name].pop(0))
            tries[name] += 1
        return chosen

    def _send(
        self, chosen: Sequence[Delivery], webhooks: Mapping[str, Webhook], settings: Settings, at: float
    ) -> None:
        """Note the bodies of deliveries, and try them; those that wait for a commit, a little later."""
        if not chosen:
            return
        made = [(one, self._body(one, webhooks[one.webhook], settings, at)) for one in chosen]
        with self._writing() as connection:
            for delivery, body in made:
                if body:
                    begin(connection, delivery, body, at)
                elif body is None:
                    try_again(connection, delivery, at, self._timing.deliver_s, delivery.step)
                else:
                    note(connection, delivery, 0, "its body could not be made; the server's log says why")
                    finish(connection, delivery, FAILED)
        for delivery, body in made:
            if body:
                one = _Try(delivery, webhooks[delivery.webhook])
                self._busy[delivery.number] = one
                work = (one, body, settings.webhooks_allow)
                threading.Thread(target=self._post, args=work, name="webhook", daemon=True).start()

    def _body(self, delivery: Delivery, webhook: Webhook, settings: Settings, at: float) -> bytes | None:
        """What a delivery sends, as noted before or made now. None where it is to wait for a commit,
        and empty where it can't be made.
        """
        if delivery.body:
            return delivery.body
        event = self._newest(delivery)
        if _awaits_commit(delivery, event, settings, at):
            return None
        try:
            return self._render(event, not webhook.status or DRAFT in webhook.status)
        except BusyError:
            raise
        except Exception:
            log.exception("webhook %s: the body of %s could not be made", delivery.webhook, delivery.id)
            return b""

    def _newest(self, delivery: Delivery) -> Event:
        """The event of a delivery, with the commit that it may have got since."""
        event = delivery.event
        if event.write and not event.commit and event.counts is None:
            found = self._database.read(delivery.first - 1, 1)
            if found and found[0].seq == delivery.first:
                return found[0]
        return event

    def _post(self, one: _Try, body: bytes, allowed: Sequence[str]) -> None:
        """Try one delivery; it raises nothing."""
        delivery = one.delivery
        try:
            at = self._clock.time()
            secrets = secrets_of(self._root, one.webhook, at)
            kind, timeout = delivery.event.kind, self._pace.timeout
            outcome = post(one.webhook, secrets, delivery.id, kind, body, at, allowed, timeout)
        except SetupError as error:
            outcome = Outcome(0, str(error))
        except Exception:
            log.exception("webhook %s: %s could not be sent", delivery.webhook, delivery.id)
            outcome = Outcome(0, "it could not be sent; the server's log says why")
        self._finished.put((one, outcome))
        self._wake()

    def _look_ahead(self, webhooks: Mapping[str, Webhook]) -> None:
        """Find out when the next delivery is due of a webhook that may have another try."""
        names = [name for name in webhooks if self._room(name) > 0]
        due = self._database.query(lambda c: [first_due(c, name, self._busy) for name in names])
        self._next = min((at for at in due if at is not None), default=None)


def _awaits_commit(delivery: Delivery, event: Event, settings: Settings, at: float) -> bool:
    """Whether what a delivery tells of is about to be in a commit, which its body is to name."""
    uncommitted = settings.git.commit == timedelta() and event.write != "" and event.commit == ""
    return uncommitted and 0 <= at - delivery.made < COMMIT_TIMEOUT_S


def _last_before(connection: Connection, root: Path, at: float) -> int:
    """Return the number of the last event before site.yaml was written, where a webhook is new.

    An edit of the same moment may be in the log before a server has read the settings. Of a site.yaml that
    was written long before they were read, only the events of the last moment count.
    """
    number: int = connection.execute("SELECT last FROM log").fetchone()[0]
    with suppress(OSError):
        written = max(os.stat(root / SETTINGS).st_mtime, at - SAME_MOMENT_S)
        since = datetime.fromtimestamp(written, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        latest = "SELECT seq, at FROM events ORDER BY seq DESC LIMIT ?"
        for seq, made in connection.execute(latest, (MAX_EVENTS_OF_A_MOMENT,)).fetchall():
            if made < since:
                break
            number = seq - 1
    return number
