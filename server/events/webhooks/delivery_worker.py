"""Background job that delivers events to webhooks. Each attempt runs in its own thread."""

import logging
import os
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from server.config.model import Settings
from server.config.webhooks import Webhook, resolve_environment
from server.database.engine import Connection
from server.documents.document import DRAFT
from server.errors import ApiError, BusyError, SetupError, StorageError
from server.events.database import EventDatabase, Transaction
from server.events.model import Event
from server.events.tables import DELIVERED, FAILED
from server.events.webhooks.delivery_table import (
    Delivery,
    begin,
    correct_due_times,
    finish,
    first_due,
    forget,
    keep_exchange,
    next_due,
    note,
    try_again,
)
from server.events.webhooks.http_client import TIMEOUT_S, Outcome, brief, post
from server.events.webhooks.queue import cursors, disable, enqueue, update_webhooks
from server.events.webhooks.retry_policy import BACKOFFS_S, next_attempt
from server.events.webhooks.secret_files import secrets_of
from server.jobs.job import Backoff, Clock, Job, JobContext, JobFailedError, Timing
from server.paths import state_folder
from server.storage.file_lock import FileLock

log = logging.getLogger("bifolio")

MAX_ATTEMPTS_PER_WEBHOOK = 5  # at a time; only one if the last attempt failed
MAX_CONCURRENT_ATTEMPTS = 40  # for all webhooks together, because each attempt uses a thread
MAX_FAILING_ATTEMPTS = 20  # at a time, to webhooks whose last attempt failed
BATCH_EVENTS = 500  # queued per transaction
SWEEP_INTERVAL_S = 600.0  # between deletions of old deliveries
STOP_TIMEOUT_S = 4.0  # for running attempts
COMMIT_TIMEOUT_S = 2.0  # how long to wait until a delivery's write is committed
GONE_STATUS = 410  # disables the webhook
_MIN_CLOCK_JUMP_S = 1.0  # if `_offset` changes by more than this, the clock was set

Render = Callable[[Event, bool], bytes]  # (event, whether to include drafts)


@dataclass(frozen=True, slots=True)
class Pace:
    """The delays between the attempts of a delivery, and the timeout of each attempt."""

    backoffs_s: Sequence[float] = BACKOFFS_S
    timeout_s: float = TIMEOUT_S


@dataclass(frozen=True, slots=True)
class _Attempt:
    delivery: Delivery
    webhook: Webhook
    secrets: Sequence[str] = ()
    problem: str = ""  # why the secrets can't be used


class Deliverer(Job):
    """Job that delivers events to a site's webhooks."""

    name = "deliver"
    failure = "webhooks could not be processed"

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
        self._in_progress: dict[int, _Attempt] = {}  # by delivery number
        self._finished: queue.SimpleQueue[tuple[_Attempt, Outcome]] = queue.SimpleQueue()
        self._outcomes: list[tuple[_Attempt, Outcome]] = []  # finished, but not stored yet
        self._failing: set[str] = set()  # webhooks whose last attempt failed
        self._last_state: tuple[object, ...] = ()  # settings and the log's mark at the last run
        self._known: list[str] | None = None  # names of the webhooks at the last run
        self._next_due: float | None = 0.0  # time of the next delivery
        self._offset = 0.0  # wall clock minus monotonic clock, at the last run
        self._swept_at = 0.0
        self._warned: set[str] = set()

    def start(self, context: JobContext) -> None:
        self._clock, self._wake = context.clock, context.wake

    def run(self, context: JobContext) -> float:
        """Store the outcomes of finished attempts, and start the deliveries that are due.

        Returns the seconds until the next run. Does nothing if another server of the same site delivers the
        webhooks.
        """
        if not self._acquire_lock():
            return self._timing.deliver_lock_s
        self._collect()
        try:
            self._deliver()
        except (StorageError, BusyError) as error:
            self._log_error(error)
            raise JobFailedError(error.message) from error
        self._warned.discard("trouble")
        return self._timing.deliver_s

    def _acquire_lock(self) -> bool:
        try:
            self._lock.path.parent.mkdir(mode=0o700, exist_ok=True)
            return self._lock.acquire()
        except OSError:
            return False

    def close(self) -> None:
        """Wait up to STOP_TIMEOUT_S seconds for attempts in progress, and store their outcomes."""
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self._in_progress and time.monotonic() < deadline:
            self._collect(0.05)
        try:
            if self._outcomes:
                self._flush_outcomes()
        except (StorageError, BusyError) as error:
            self._log_error(error)
        finally:
            self._database.close()
            self._lock.release()

    def _log_error(self, error: ApiError) -> None:
        self._warn_once("trouble", f"{error.message}; webhooks wait until it is available again")

    def _warn_once(self, key: str, line: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            log.warning("%s", line)

    def _collect(self, seconds: float = 0.0) -> None:
        try:
            found = self._finished.get(timeout=seconds) if seconds else self._finished.get_nowait()
            while True:
                self._outcomes.append(found)
                self._in_progress.pop(found[0].delivery.number, None)
                found = self._finished.get_nowait()
        except queue.Empty:
            pass

    def _deliver(self) -> None:
        settings, at = self._settings(), self._clock.time()
        jumped = self._clock_was_set(at)
        if not settings.webhooks and not self._last_state and not self._outcomes:
            return
        if not self._database.is_deliverer():  # Another machine delivers, and computes the due times.
            self._last_state, self._offset, self._known = (), 0.0, None
            return
        state = (settings, self._database.external_write_counter())
        if (
            state == self._last_state
            and not self._outcomes
            and not jumped
            and (self._next_due is None or self._next_due > at)
        ):
            return
        webhooks = {webhook.name: webhook for webhook in self._configured_webhooks(settings)}
        more = self._queue_events(settings, webhooks, at, jumped=jumped)
        self._offset = at - self._clock.monotonic()
        chosen = self._choose(webhooks, at)
        self._send(chosen, webhooks, settings, at)
        self._find_next_due(webhooks)
        self._last_state = () if more else state

    def _clock_was_set(self, now: float) -> bool:
        # If the offset has changed, the clock was set, or another machine computed the stored due times.
        return abs(now - self._clock.monotonic() - self._offset) > _MIN_CLOCK_JUMP_S

    def _configured_webhooks(self, settings: Settings) -> Iterator[Webhook]:
        for webhook in settings.webhooks:
            if webhook.enabled:
                try:
                    yield resolve_environment(webhook, os.environ)
                except SetupError as error:
                    self._warn_once(str(error), f"{error}; until then webhook {webhook.name} waits")

    def _delete_former(self, transaction: Transaction, webhooks: Sequence[Webhook]) -> None:
        # The recorder stores webhooks. But only the machine that delivers them knows which ones are gone.
        # A webhook that this process does not know yet may be new, and still missing from its settings.
        if transaction.is_shared:
            last = transaction.bounds().last
            update_webhooks(transaction.connection, webhooks, lambda: last, self._known)
            self._known = [webhook.name for webhook in webhooks]

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._database.writing() as transaction:
            yield transaction.connection

    def _queue_events(
        self, settings: Settings, webhooks: Mapping[str, Webhook], now: float, *, jumped: bool
    ) -> bool:
        # Returns whether more events remain.
        with self._database.writing() as transaction:
            connection = transaction.connection
            self._store_outcomes(connection)
            self._delete_former(transaction, settings.webhooks)
            known = {name: position for name, position in cursors(connection).items() if name in webhooks}
            if jumped:
                correct_due_times(connection, now)
            if abs(now - self._swept_at) > SWEEP_INTERVAL_S:
                forget(connection, now)
        self._outcomes.clear()
        self._swept_at = now if abs(now - self._swept_at) > SWEEP_INTERVAL_S else self._swept_at
        events = self._database.read(min(known.values()), BATCH_EVENTS) if known else []
        if not events:
            return False
        with self._writing() as connection:
            for name in cursors(connection).keys() & known.keys():
                new = [event for event in events if event.seq > known[name]]
                surplus = enqueue(connection, webhooks[name], new, now)
                if surplus:
                    log.warning(
                        "webhook %s: too many deliveries are queued; the %d oldest were discarded",
                        name,
                        surplus,
                    )
        return len(events) == BATCH_EVENTS

    def _flush_outcomes(self) -> None:
        with self._writing() as connection:
            self._store_outcomes(connection)
        self._outcomes.clear()

    def _store_outcomes(self, connection: Connection) -> None:
        at = self._clock.time()
        for attempt, outcome in self._outcomes:
            delivery = attempt.delivery
            self._track_failure(delivery.webhook, outcome)
            note(connection, delivery, outcome.status, outcome.error)
            keep_exchange(connection, delivery, outcome.response, outcome.seconds)
            if outcome.succeeded:
                finish(connection, delivery, DELIVERED)
                continue
            again = next_attempt(
                self._pace.backoffs_s, delivery.backoff_step, delivery.attempts + 1, outcome.retry_after
            )
            if outcome.status == GONE_STATUS:
                finish(connection, delivery, FAILED)
                disable(connection, delivery.webhook, at, f"given up: {outcome.error}")
                log.warning(
                    "webhook %s responded with 410 and was disabled (to re-enable it: bifolio webhook "
                    "enable)",
                    delivery.webhook,
                )
            elif again is None:
                finish(connection, delivery, FAILED)
                reason = brief(outcome.error)
                log.warning("webhook %s: gave up on %s: %s", delivery.webhook, delivery.id, reason)
            else:
                try_again(connection, delivery, at, *again)

    def _track_failure(self, name: str, outcome: Outcome) -> None:
        if outcome.succeeded:
            self._failing.discard(name)
        elif name not in self._failing:
            self._failing.add(name)
            log.warning("webhook %s: %s", name, brief(outcome.error))

    def _room(self, name: str) -> int:
        tries = Counter(one.delivery.webhook for one in self._in_progress.values())
        room = MAX_CONCURRENT_ATTEMPTS - tries.total()
        if name in self._failing:
            return min(1 - tries[name], room, MAX_FAILING_ATTEMPTS - self._failing_in(tries))
        return min(MAX_ATTEMPTS_PER_WEBHOOK - tries[name], room)

    def _failing_in(self, tries: Counter[str]) -> int:
        return sum(tries[name] for name in self._failing)

    def _choose(self, webhooks: Mapping[str, Webhook], now: float) -> list[Delivery]:
        # Webhooks with the fewest running attempts come first.
        rooms = {name: self._room(name) for name in webhooks}
        waiting = self._database.query(
            lambda c: {
                n: next_due(c, n, now, room, self._in_progress) for n, room in rooms.items() if room > 0
            }
        )
        tries = Counter(one.delivery.webhook for one in self._in_progress.values())
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
        self, chosen: Sequence[Delivery], webhooks: Mapping[str, Webhook], settings: Settings, now: float
    ) -> None:
        # A delivery that must wait for a commit is postponed.
        if not chosen:
            return
        bodies = [
            (attempt, self._body(attempt, webhooks[attempt.webhook], settings, now)) for attempt in chosen
        ]
        attempts: list[tuple[_Attempt, bytes]] = []
        with self._writing() as connection:
            for delivery, body in bodies:
                if body:
                    # A request that deletes a webhook deletes the deliveries first, and then the secret.
                    if begin(connection, delivery, body, now):
                        attempts.append((self._attempt(delivery, webhooks[delivery.webhook], now), body))
                elif body is None:
                    try_again(connection, delivery, now, self._timing.deliver_s, delivery.backoff_step)
                else:
                    note(connection, delivery, 0, "the body could not be created; see the server's log")
                    finish(connection, delivery, FAILED)
        for attempt, body in attempts:
            self._in_progress[attempt.delivery.number] = attempt
            work = (attempt, body, settings.webhooks_allow)
            threading.Thread(target=self._post, args=work, name="webhook", daemon=True).start()

    def _attempt(self, delivery: Delivery, webhook: Webhook, now: float) -> _Attempt:
        try:
            return _Attempt(delivery, webhook, secrets_of(self._root, webhook, now))
        except (SetupError, StorageError) as error:
            return _Attempt(delivery, webhook, problem=str(error))

    def _body(self, delivery: Delivery, webhook: Webhook, settings: Settings, now: float) -> bytes | None:
        # Returns None if the delivery must wait for a commit, or b"" if the body can't be rendered.
        if delivery.body:
            return delivery.body
        event = self._newest(delivery)
        if _awaits_commit(delivery, event, settings, now):
            return None
        try:
            return self._render(event, not webhook.status or DRAFT in webhook.status)
        except BusyError:
            raise
        except Exception:
            log.exception("webhook %s: the body of %s can't be created", delivery.webhook, delivery.id)
            return b""

    def _newest(self, delivery: Delivery) -> Event:
        event = delivery.event
        if event.write and not event.commit and event.counts is None:
            found = self._database.read(delivery.first_event - 1, 1)
            if found and found[0].seq == delivery.first_event:
                return found[0]
        return event

    def _post(self, attempt: _Attempt, body: bytes, allowed: Sequence[str]) -> None:
        # An attempt must always report its outcome.
        delivery = attempt.delivery
        try:
            at, kind, timeout = self._clock.time(), delivery.event.kind, self._pace.timeout_s
            outcome = (
                Outcome(0, attempt.problem)
                if attempt.problem
                else post(attempt.webhook, attempt.secrets, delivery.id, kind, body, at, allowed, timeout)
            )
        except Exception:
            log.exception("webhook %s: %s can't be sent", delivery.webhook, delivery.id)
            outcome = Outcome(0, "it could not be sent; see the server's log")
        self._finished.put((attempt, outcome))
        self._wake()

    def _find_next_due(self, webhooks: Mapping[str, Webhook]) -> None:
        names = [name for name in webhooks if self._room(name) > 0]
        due = self._database.query(lambda c: [first_due(c, name, self._in_progress) for name in names])
        self._next_due = min((at for at in due if at is not None), default=None)


def _awaits_commit(delivery: Delivery, event: Event, settings: Settings, now: float) -> bool:
    # Once the write is committed, the body can contain the commit's id.
    uncommitted = settings.git.commit == timedelta() and event.write != "" and event.commit == ""
    return uncommitted and 0 <= now - delivery.created_at < COMMIT_TIMEOUT_S
