"""Tests of deliveries to a real receiver: in order, signed, retried as planned, without losses or
duplicates.
"""

import base64
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from server.config.model import DEFAULTS, Settings
from server.config.webhooks import Webhook
from server.database.engine import Connection
from server.database.sqlite import Sqlite
from server.errors import SetupError
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.webhooks import delivery_table, queue
from server.events.webhooks.delivery_table import Delivery, WebhookStatus
from server.events.webhooks.delivery_worker import MAX_ATTEMPTS_PER_WEBHOOK, Deliverer, Pace
from server.events.webhooks.secret_files import rotate, secrets_of
from server.jobs.job import Clock, Timing
from server.jobs.runner import Runner
from tests.postgres import IN_BOTH_DATABASES
from tests.receivers import Received, Receiver, receiving, status
from tests.waiting import until

UID = "api::article.article"
FAST = Pace(backoffs_s=(0.05, 0.1, 0.15))


def render(event: Event, drafts: bool) -> bytes:
    if event.document_id == "bad":
        raise ValueError("it is bad")
    return f'{{"event": "{event.kind}", "seq": {event.seq}, "id": "{event.document_id}"}}'.encode()


def update(document_id: str = "a", **said: str) -> Event:
    return Event("entry.update", UID, document_id, "en", "published", ("title",), **said)


class Site:
    """An event log with webhooks and their delivery worker, which tests start and stop."""

    def __init__(self, root: Path, *webhooks: Webhook, accounts: str = "") -> None:
        self.root, self.log = root, EventDatabase(root, accounts)
        allowed = ("127.0.0.1",)
        self.settings = replace(DEFAULTS, webhooks=webhooks, webhooks_allow=allowed, accounts=accounts)

    @property
    def settings(self) -> Settings:
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._settings = settings
        self.change(lambda c: self._store_webhooks(c))

    def _store_webhooks(self, connection: Connection) -> None:
        # As the recorder does.
        last = connection.execute("SELECT last FROM log").fetchone()[0]
        queue.update_webhooks(connection, self._settings.webhooks, lambda: last)

    def record(self, *events: Event) -> None:
        with self.log.writing() as transaction:
            transaction.append(replace(event, at="2026-11-22T12:00:00.000Z") for event in events)

    @contextmanager
    def delivering(self, pace: Pace = FAST, clock: Clock | None = None) -> Iterator[Deliverer]:
        deliverer = Deliverer(self.root, lambda: self.settings, render, Timing(), pace)
        runner, others = Runner([deliverer], clock), set(threading.enumerate())
        runner.start()
        try:
            until(lambda: self.names == {w.name for w in self.settings.webhooks if w.enabled}, 20)
            yield deliverer
        finally:
            runner.stop()
            left = set(threading.enumerate()) - others
            assert not [thread for thread in left if thread.name == deliverer.name]

    def query(self, work: Callable[[Connection], object]) -> object:
        return self.log.query(work)

    @property
    def names(self) -> set[str]:
        found = self.query(lambda c: c.execute("SELECT name FROM webhooks").fetchall())
        assert isinstance(found, list)
        return {name for (name,) in found}

    def listed(self, name: str = "build") -> list[Delivery]:
        found = self.query(lambda c: delivery_table.newest(c, [name], 20_000))
        assert isinstance(found, list)
        return found

    def states(self, name: str = "build") -> list[str]:
        return [delivery.state for delivery in self.listed(name)]

    def standing(self, name: str = "build") -> WebhookStatus:
        found = self.query(lambda c: delivery_table.webhook_status(c, name))
        assert isinstance(found, WebhookStatus)
        return found

    def change(self, work: Callable[[Connection], object]) -> None:
        with self.log.writing() as transaction:
            work(transaction.connection)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def site(tmp_path: Path, receiver: Receiver, accounts: str) -> Site:
    return Site(tmp_path, Webhook("build", receiver.url), accounts=accounts)


class WrongClock(Clock):
    """A clock that is a number of seconds ahead."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s, self.reads = ahead_s, 0

    def time(self) -> float:
        self.reads += 1
        return super().time() + self.ahead_s


def seqs(receiver: Receiver) -> list[int]:
    return [received.data["seq"] for received in receiver.received]


@IN_BOTH_DATABASES
def test_an_event_is_sent_once_with_the_headers_of_both_conventions(site: Site, receiver: Receiver) -> None:
    site.settings = replace(
        site.settings, webhooks=(Webhook("build", receiver.url, headers={"Authorization": "Bearer x"}),)
    )
    with site.delivering():
        site.record(update())
        (received,) = receiver.until(1)
        until(lambda: site.states() == ["delivered"], 20)
        time.sleep(0.3)
    assert len(receiver.received) == 1
    assert received.body == render(replace(update(), seq=1), True)
    assert received.headers["x-strapi-event"] == "entry.update"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["authorization"] == "Bearer x"
    assert received.id.startswith("msg_")
    assert abs(int(received.headers["webhook-timestamp"]) - time.time()) < 10


def verify(secret: str, received: Received) -> object:
    return Verifier(secret).verify(received.body, dict(received.headers))


def test_the_library_of_standard_webhooks_verifies_what_is_sent(site: Site, receiver: Receiver) -> None:
    with site.delivering():
        site.record(update())
        receiver.until(1)
        before = secrets_of(site.root, site.settings.webhooks[0])[0]
        made = rotate(site.root, site.settings.webhooks[0])
        site.record(update())
        first, second = receiver.until(2)
    assert verify(before, first)
    with pytest.raises(WebhookVerificationError):
        verify(made, first)
    assert verify(before, second)  # while keys are rotated, both keys sign
    assert verify(made, second)
    with pytest.raises(WebhookVerificationError):
        verify("whsec_" + base64.b64encode(b"x" * 32).decode(), second)
    file = site.root / ".bifolio/webhooks/build.secret"
    assert file.stat().st_mode & 0o777 == 0o600
    day = 24 * 3600
    assert secrets_of(site.root, site.settings.webhooks[0], time.time() + day - 60) == (made, before)
    assert secrets_of(site.root, site.settings.webhooks[0], time.time() + day + 60) == (made,)


def test_a_secret_of_the_settings_signs(
    site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ["whsec_" + base64.b64encode(byte * 32).decode() for byte in (b"a", b"b")]
    monkeypatch.setenv("SECRET", secrets[1])
    webhook = Webhook("build", receiver.url, secrets=(secrets[0], "env:SECRET"))
    site.settings = replace(site.settings, webhooks=(webhook,))
    with site.delivering():
        site.record(update())
        (received,) = receiver.until(1)
    assert all(verify(secret, received) for secret in secrets)
    with pytest.raises(SetupError, match="can't be rotated"):
        rotate(site.root, webhook)


def test_a_damaged_secret_sends_nothing_and_is_told(site: Site, receiver: Receiver) -> None:
    secrets_of(site.root, site.settings.webhooks[0])
    (site.root / ".bifolio/webhooks/build.secret").write_text("nothing\n")
    with site.delivering():
        site.record(update())
        until(lambda: site.states() == ["failed"], 20)
    assert "build.secret: can't be used: it is damaged" in site.listed()[0].error
    assert receiver.received == []


def test_a_new_webhook_is_told_of_nothing_that_was_before(site: Site, receiver: Receiver) -> None:
    site.record(update(), update())
    site.settings = replace(site.settings, webhooks=(Webhook("new", receiver.url),))
    with site.delivering():
        site.record(update())
        receiver.until(1)
    assert seqs(receiver) == [3]


@IN_BOTH_DATABASES
def test_what_fails_is_tried_again_as_the_same_bytes_and_then_given_up(
    site: Site, receiver: Receiver
) -> None:
    receiver.answer = status(500, body="no")
    with site.delivering():
        site.record(update())
        tries = receiver.until(4)
        until(lambda: site.states() == ["failed"], 20)
        time.sleep(0.3)
    assert len(receiver.received) == 4
    assert len({(one.id, one.body) for one in tries}) == 1
    waits = [b.at - a.at for a, b in itertools.pairwise(tries)]
    assert all(wait >= step for wait, step in zip(waits, FAST.backoffs_s, strict=True))
    (given_up,) = site.listed()
    assert (given_up.status, given_up.error, given_up.attempts, given_up.body) == (
        500,
        "500 Said: no",
        4,
        None,
    )


@pytest.mark.parametrize("code", [301, 302, 307, 400, 404])
def test_whatever_is_no_success_is_tried_again(site: Site, receiver: Receiver, code: int) -> None:
    receiver.answer = status(code, f"Location: {receiver.url}/other")
    with site.delivering():
        site.record(update())
        receiver.until(2)
        receiver.answer = status(204)
        until(lambda: site.states() == ["delivered"], 20)
    assert {one.path for one in receiver.received} == {"/hook"}


def test_retry_after_is_obeyed_and_takes_no_step(site: Site, receiver: Receiver) -> None:
    receiver.answer = status(503, "Retry-After: 1")
    with site.delivering(replace(FAST, backoffs_s=(60.0,))):
        site.record(update())
        first, second = receiver.until(2, 20)
        receiver.answer = status(200)
        _, _, third = receiver.until(3, 20)
    assert 0.9 < second.at - first.at < 15
    assert 0.9 < third.at - second.at < 15


@IN_BOTH_DATABASES
def test_410_disables_until_somebody_enables_it_or_changes_its_settings(
    site: Site, receiver: Receiver
) -> None:
    receiver.answer = status(410)
    with site.delivering():
        site.record(update("a"), update("a"), update("a"))
        until(lambda: site.standing().disabled is not None, 20)
        receiver.answer = status(200)
        site.record(update("b"))
        time.sleep(0.3)
        assert site.states() == ["failed", "failed", "failed"]
        site.change(lambda c: queue.enable(c, "build", 4))
        site.record(update("c"))
        receiver.until(2)
        assert seqs(receiver) == [1, 5]
        receiver.answer = status(410)
        site.record(update("d"))
        until(lambda: site.standing().disabled is not None, 20)
        receiver.answer = status(200)
        site.settings = replace(site.settings, webhooks=(Webhook("build", receiver.url + "/new"),))
        until(lambda: site.standing().disabled is None, 20)
        site.record(update("e"))
        receiver.until(4)
    assert receiver.received[-1].path == "/hook/new"


@IN_BOTH_DATABASES
def test_the_events_of_a_document_wait_for_each_other_and_those_of_others_do_not(
    site: Site, receiver: Receiver
) -> None:
    refused = threading.Event()

    def answer(connection: object, received: Received) -> None:
        fails = received.data["id"] == "a" and not refused.is_set()
        (status(500) if fails else status(200))(connection, received)  # type: ignore[arg-type]

    receiver.answer = answer
    with site.delivering(replace(FAST, backoffs_s=(0.3,) * 20)):
        site.record(update("a"), update("b"), update("a"), update("b"), update("a"))
        until(lambda: {1, 2, 4} <= set(seqs(receiver)), 20)
        assert set(seqs(receiver)) == {1, 2, 4}
        refused.set()
        until(lambda: site.states() == ["delivered"] * 5, 20)
    after = [seq for seq in seqs(receiver) if seq in (3, 5)]
    assert after == [3, 5]
    assert seqs(receiver).index(2) < seqs(receiver).index(4)


def test_at_most_five_at_once_to_one_receiver(site: Site, receiver: Receiver) -> None:
    def slow(connection: object, received: Received) -> None:
        time.sleep(0.1)
        status(200)(connection, received)  # type: ignore[arg-type]

    receiver.answer = slow
    with site.delivering():
        site.record(*(update(f"d{i}") for i in range(30)))
        receiver.until(30)
        until(lambda: site.states() == ["delivered"] * 30, 20)
    assert receiver.most_at_once == MAX_ATTEMPTS_PER_WEBHOOK


def test_receivers_that_hang_hold_up_no_other(tmp_path: Path, receiver: Receiver) -> None:
    with receiving() as hanging:
        hanging.answer = lambda connection, received: connection.recv(1)  # hangs until the client gives up
        site = Site(tmp_path, Webhook("hangs", hanging.url), Webhook("build", receiver.url))
        with site.delivering(replace(FAST, backoffs_s=(0.1,) * 40, timeout_s=1.0)):
            site.record(*(update(f"d{i}") for i in range(40)))
            began = time.monotonic()
            receiver.until(40)
            assert time.monotonic() - began < 20
        assert hanging.most_at_once <= MAX_ATTEMPTS_PER_WEBHOOK


def test_seven_receivers_that_hang_hold_up_none_of_eight_others(tmp_path: Path, receiver: Receiver) -> None:
    let_go = threading.Event()
    with receiving() as hanging:
        hanging.answer = lambda connection, received: let_go.wait()  # type: ignore[assignment]
        hung = [Webhook(f"hangs{i}", hanging.url) for i in range(7)]
        site = Site(tmp_path, *hung, *(Webhook(f"build{i}", receiver.url) for i in range(8)))
        with site.delivering(replace(FAST, timeout_s=60)):
            site.record(*(update(f"d{i}") for i in range(5)))
            receiver.until(8 * 5)
            until(lambda: hanging.at_once >= len(hung))
            assert not [name for name in site.names if "delivered" in site.states(name) and "hangs" in name]
            let_go.set()


def test_a_burst_is_one_call_when_it_has_ended(site: Site, receiver: Receiver) -> None:
    webhook = Webhook("build", receiver.url, debounce=timedelta(seconds=1))
    site.settings = replace(site.settings, webhooks=(webhook,))
    with site.delivering():
        for i in range(4):
            site.record(*(update(f"d{n}") for n in range(i * 1000, i * 1000 + 1000)))
            time.sleep(0.1)
        (received,) = receiver.until(1)
        time.sleep(1.3)
        assert len(receiver.received) == 1
        (delivery,) = site.listed()
        site.record(update("later"))
        receiver.until(2)
    assert received.headers["x-strapi-event"] == "site.update"
    assert delivery.event.counts == {UID: {"published": {"entry.update": 4000}}}
    assert (delivery.first_event, delivery.last_event) == (1, 4000)


@IN_BOTH_DATABASES
def test_a_burst_that_does_not_end_is_told_of_all_the_same(
    site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MAX_BURST_DEBOUNCES", 2)
    webhook = Webhook("build", receiver.url, debounce=timedelta(seconds=0.4))
    site.settings = replace(site.settings, webhooks=(webhook,))
    with site.delivering():
        deadline = time.monotonic() + 10
        while not receiver.received and time.monotonic() < deadline:
            site.record(update())
            time.sleep(0.1)
    assert receiver.received


@IN_BOTH_DATABASES
def test_what_waits_is_sent_by_the_next_process(site: Site, receiver: Receiver) -> None:
    receiver.answer = status(500)
    with site.delivering(replace(FAST, backoffs_s=(0.2,) * 30)):
        site.record(update("a"), update("b"))
        receiver.until(2)
    site.record(update("c"))
    receiver.answer = status(200)
    before = {one.data["seq"]: (one.id, one.body) for one in receiver.received}
    sent = len(receiver.received)
    with site.delivering():
        until(lambda: site.states() == ["delivered"] * 3, 20)
    later = receiver.received[sent:]
    assert sorted(one.data["seq"] for one in later) == [1, 2, 3]
    assert {one.data["seq"]: (one.id, one.body) for one in later if one.data["seq"] < 3} == before


@IN_BOTH_DATABASES
def test_the_oldest_are_given_up_where_too_many_wait(
    site: Site, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queue, "MAX_QUEUED_DELIVERIES", 10)
    receiver.answer = status(500)
    with site.delivering(replace(FAST, backoffs_s=(60.0,))):
        site.record(*(update(f"d{i}") for i in range(12)))
        until(lambda: len(site.listed()) == 12, 20)
        assert site.standing().waiting == 10
        assert [one.error for one in site.listed()[:2]] == [
            "given up: more than 10 deliveries were waiting"
        ] * 2
    assert "webhook build: too many deliveries are queued; the 2 oldest were discarded" in caplog.text


@IN_BOTH_DATABASES
def test_what_is_done_is_kept_for_a_while(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_table, "MAX_DONE_DELIVERIES", 3)
    with site.delivering():
        site.record(*(update(f"d{i}") for i in range(6)))
        until(lambda: site.states() == ["delivered"] * 6, 20)
    site.change(lambda c: delivery_table.forget(c, time.time()))
    assert [one.event.document_id for one in site.listed()] == ["d3", "d4", "d5"]
    site.change(lambda c: delivery_table.forget(c, time.time() + 8 * 86_400))
    assert site.listed() == []


@IN_BOTH_DATABASES
def test_of_a_webhook_that_is_gone_or_off_nothing_waits(site: Site, receiver: Receiver) -> None:
    receiver.answer = status(500)
    with site.delivering(replace(FAST, backoffs_s=(60.0,))):
        site.record(update())
        receiver.until(1)
        until(lambda: site.listed()[0].status == 500, 20)
        webhook = site.settings.webhooks[0]
        site.settings = replace(site.settings, webhooks=(replace(webhook, enabled=False),))
        until(lambda: site.listed() == [], 20)
        site.record(update())
        site.settings = replace(site.settings, webhooks=(webhook,))
        until(lambda: site.names == {"build"}, 20)
        receiver.answer = status(200)
        site.record(update())
        receiver.until(2)
    assert seqs(receiver) == [1, 3]


def test_a_clock_that_is_put_back_delays_no_try_beyond_its_step(site: Site, receiver: Receiver) -> None:
    clock = WrongClock(0.0)
    receiver.answer = status(500)
    with site.delivering(replace(FAST, backoffs_s=(1.0,) * 9), clock):
        site.record(update())
        receiver.until(1)
        until(lambda: site.listed()[0].status == 500, 20)
        clock.ahead_s = -7200.0
        receiver.until(2, 20)
        clock.ahead_s = 7200.0
        receiver.until(3, 20)


def test_a_clock_that_is_put_back_delays_nothing_that_is_behind_another_event(
    site: Site, receiver: Receiver
) -> None:
    clock = WrongClock(7200.0)
    receiver.answer = status(500)
    with site.delivering(replace(FAST, backoffs_s=(0.5,) * 30), clock):
        site.record(update(), update())
        receiver.until(1)
        until(lambda: site.states() == ["waiting", "behind"], 20)
        clock.ahead_s = 0.0
        receiver.until(len(receiver.received) + 2, 20)
        receiver.answer = status(200)
        until(lambda: site.states() == ["delivered", "delivered"], 20)


def test_after_a_clock_that_was_put_back_while_nothing_ran(site: Site, receiver: Receiver) -> None:
    receiver.answer = status(500)
    with site.delivering(replace(FAST, backoffs_s=(0.5,) * 9), WrongClock(7200.0)):
        site.record(update())
        receiver.until(1)
        until(lambda: site.listed()[0].status == 500, 20)
    with site.delivering(replace(FAST, backoffs_s=(0.5,) * 9)):
        receiver.until(2, 20)


@pytest.mark.parametrize("accounts", ["postgres"], indirect=True)
def test_a_machine_that_goes_on_for_one_whose_clock_was_ahead_waits_no_longer(
    site: Site, receiver: Receiver
) -> None:
    receiver.answer, pace, clock = status(500), replace(FAST, backoffs_s=(0.5,) * 9), WrongClock(0.0)
    (site.root / "other").mkdir()
    other = Site(site.root / "other", *site.settings.webhooks, accounts=site.settings.accounts)
    deliverer = Deliverer(site.root, lambda: site.settings, render, Timing(), pace)
    ahead = Runner([deliverer], WrongClock(7200.0))
    ahead.start()
    try:
        until(lambda: site.names == {"build"}, 20)
        site.record(update())
        receiver.until(1)
        until(lambda: site.listed()[0].status == 500, 20)
        with other.delivering(pace, clock):
            until(lambda: clock.reads > 1, 20)
            ahead.stop()
            receiver.until(len(receiver.received) + 1, 20)
    finally:
        ahead.stop()


def test_a_full_disk_stops_nothing_for_good_and_sends_nothing_again_and_again(
    site: Site, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    with site.delivering() as deliverer:
        site.record(update("a"))
        receiver.until(1)
        until(lambda: site.states() == ["delivered"], 20)
        # To SQLite, a database with a size limit looks like a database on a full disk.
        engine = deliverer._database._engine
        assert isinstance(engine, Sqlite)
        with engine._pool.lend(1) as connection:
            pass
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        site.change(lambda c: c.execute("CREATE TABLE IF NOT EXISTS filler (b)"))
        connection.execute(f"PRAGMA max_page_count={pages}")
        site.record(*(update(f"b{i}", actor="x" * 9000) for i in range(5)))
        until(lambda: "webhooks wait until it is available again" in caplog.text, 20)
        time.sleep(1)
        connection.execute("PRAGMA max_page_count=1000000")
        until(lambda: site.states() == ["delivered"] * 6, 20)
    assert caplog.text.count("webhooks wait") == 1
    assert len(receiver.received) == 6


def test_what_has_no_body_holds_up_nothing(
    site: Site, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    with site.delivering():
        site.record(update("bad"), update("a"), update("bad"))
        receiver.until(1)
        until(lambda: site.states() == ["failed", "delivered", "failed"], 20)
    assert site.listed()[0].error == "the body could not be created; see the server's log"
    assert "ValueError: it is bad" in caplog.text


@IN_BOTH_DATABASES
def test_what_was_told_is_told_again_under_the_same_id(site: Site, receiver: Receiver) -> None:
    receiver.answer = status(500)
    with site.delivering(replace(FAST, backoffs_s=())):
        site.record(update("a"), update("b"))
        until(lambda: site.states() == ["failed"] * 2, 20)
        receiver.answer = status(200)
        first = site.listed()[0]
        site.change(lambda c: queue.replay_one(c, "build", first.id, time.time()))
        until(lambda: site.states() == ["delivered", "failed"], 20)
        assert receiver.received[-1].id == first.id
        webhook, events = site.settings.webhooks[0], site.log.read(0, 100)
        site.change(lambda c: queue.requeue_since(c, webhook, events, 0, time.time()))
        until(lambda: site.states() == ["delivered"] * 2 and len(receiver.received) == 5, 20)
    assert {one.id for one in receiver.received} == {one.id for one in site.listed()}


@IN_BOTH_DATABASES
def test_what_was_before_a_webhook_can_be_told(site: Site, receiver: Receiver) -> None:
    webhook = site.settings.webhooks[0]
    site.settings = replace(site.settings, webhooks=())
    site.record(update("a"), update("b"), update("c"))
    site.settings = replace(site.settings, webhooks=(webhook,))
    with site.delivering():
        events = site.log.read(1, 100)
        site.change(lambda c: queue.requeue_since(c, webhook, events, 1, time.time()))
        receiver.until(2)
        until(lambda: site.states() == ["delivered"] * 2, 20)
    assert sorted(seqs(receiver)) == [2, 3]
