"""Tests of the event log in PostgreSQL: several machines with one log, and an unavailable database."""

import json
import subprocess
import sys
import time
from pathlib import Path
from subprocess import DEVNULL

import pytest

from server.config.webhooks import Webhook
from server.errors import LogUnavailableError
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.recorder import LOCK_TIMEOUT_S, Recorder
from server.site.site import Site
from tests.api.test_accounts_elsewhere import ask
from tests.api.test_event_streams import Reader
from tests.events.webhooks.test_delivery_worker import Site as Delivering
from tests.events.webhooks.test_delivery_worker import update
from tests.postgres import Postgres
from tests.receivers import receiving
from tests.servers import free_port, start, stop, wait
from tests.sites import collection, load, with_accounts, write
from tests.waiting import until

FILES = {**collection("tag", {"name": "string"}), "content/tags/red.json": '{"name": "Red"}'}
MANY = 60


@pytest.fixture
def url(database: Postgres) -> str:
    database.empty()
    return database.url


def recorded(site: Site, url: str) -> Recorder:
    recorder = Recorder(site.root, site.replaced, accounts_url=url)
    site.observe(recorder)
    site.record()
    return recorder


def save(root: Path, name: str, document: str = "red") -> None:
    (root / f"content/tags/{document}.json").write_text(json.dumps({"name": name}))


def test_machines_share_the_log_and_have_versions_of_their_own(url: str, tmp_path: Path) -> None:
    one, two = load(tmp_path / "one", FILES), load(tmp_path / "two", FILES)
    first, second = recorded(one, url), recorded(two, url)
    assert (tmp_path / "one/.bifolio/clone-id").read_text() != (
        tmp_path / "two/.bifolio/clone-id"
    ).read_text()
    save(one.root, "Rot")
    one.refresh()
    save(two.root, "Rouge")
    two.refresh()
    save(two.root, "Blue", "blue")
    two.refresh()
    assert first.database.bounds() == second.database.bounds()
    events = first.database.read(0, 100)
    assert events == second.database.read(0, 100)
    assert [(e.seq, e.kind, e.document_id) for e in events] == [
        (1, "entry.update", "red"),
        (2, "entry.update", "red"),
        (3, "entry.create", "blue"),
    ]
    again = load(one.root, {})
    assert recorded(again, url).database.bounds().last == 3


def test_numbers_are_in_the_order_in_which_events_are_seen(url: str, tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from server.events.database import EventDatabase
from server.events.model import Event
database = EventDatabase(Path(sys.argv[1]), sys.argv[2])
for number in range(int(sys.argv[3])):
    with database.writing() as transaction:
        transaction.append([Event("entry.update", "api::tag.tag", f"{number}", at="2026")] * 3)
"""
    reader = EventDatabase(tmp_path, url)
    command = [sys.executable, "-c", script, str(tmp_path), url, str(MANY)]
    writers = [subprocess.Popen(command) for _ in range(2)]
    seen: list[int] = []
    while True:
        ended = all(writer.poll() is not None for writer in writers)
        seen += [event.seq for event in reader.read(seen[-1] if seen else 0, 1000)]
        if ended:
            break
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen == list(range(1, 2 * 3 * MANY + 1))


@pytest.mark.parametrize("away", ["frozen", "stopped"])
def test_while_the_database_is_away_writing_goes_on(
    database: Postgres, url: str, tmp_path: Path, away: str
) -> None:
    settings = "roles: {public: {tag: [find, findOne, create, update]}}\n"
    write(tmp_path, with_accounts({**FILES, "site.yaml": settings}, url))
    port = free_port()
    process = start(tmp_path, port, "--workers=2", "--quiet", output=DEVNULL)
    try:
        wait(process, port)
        log = EventDatabase(tmp_path, url)
        until(lambda: log.query(lambda c: c.execute("SELECT count(*) FROM notes").fetchone()[0]) > 0)
        with Reader(port) as stream:
            assert stream.next()[1] == "welcome"
            assert ask(port, "POST", "/api/tags", {"data": {"name": "before"}})[0] == 201
            assert stream.next()[1] == "entry.create"
            if away == "frozen":
                with database.stopped():
                    waited = write_some(port)
            else:
                database.control("stop", "-m", "fast")
                try:
                    waited = write_some(port)
                finally:
                    database.start()
            slow = sum(seconds > LOCK_TIMEOUT_S for seconds in waited)  # one slow write for each worker
            assert slow < len(waited) / 2
            assert max(waited) < 10
            until(lambda: ask(port, "GET", "/events")[0] == 200, 20)
            told = [stream.next() for _ in waited]
        assert {name for _, name, _ in told} == {"entry.create"}
        assert sorted(data["seq"] for _, _, data in told) == list(range(2, len(waited) + 2))
        assert ask(port, "POST", "/api/tags", {"data": {"name": "after"}})[0] == 201
        until(lambda: log.bounds().last == len(waited) + 2)
    finally:
        stop(process)


def write_some(port: int) -> list[float]:
    """Create documents while the log can't be written. Return the duration of each write in seconds."""
    waited = []
    for number in range(12):
        began = time.monotonic()
        assert ask(port, "POST", "/api/tags", {"data": {"name": f"n{number}"}})[0] == 201
        waited.append(time.monotonic() - began)
        time.sleep(0.1)
    status, body, headers = ask(port, "GET", "/events")
    assert (status, json.loads(body)["error"]["name"]) == (503, "ServiceUnavailableError")
    assert headers["Retry-After"]
    return waited


def test_a_process_that_stands_still_in_a_transaction_holds_up_no_write(url: str, tmp_path: Path) -> None:
    site = load(tmp_path, FILES)
    recorder = recorded(site, url)
    other = EventDatabase(tmp_path / "other", url)
    (tmp_path / "other").mkdir()
    with other.writing():
        began = time.monotonic()
        for number in range(10):
            save(tmp_path, str(number))
            site.refresh({"content/tags/red.json"})
        assert time.monotonic() - began < 8 * LOCK_TIMEOUT_S
        assert recorder.missed
    until(lambda: is_recorded(site, recorder))
    [event] = recorder.database.read(0, 10)
    assert (event.kind, event.changed) == ("entry.update", None)


def test_a_database_that_was_never_there_is_told_in_a_line(tmp_path: Path) -> None:
    log = EventDatabase(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(LogUnavailableError, match="The event log can't be used") as caught:
        log.bounds()
    assert "\n" not in caught.value.message
    began = time.monotonic()
    with pytest.raises(LogUnavailableError):
        log.bounds()
    assert time.monotonic() - began < 1


def is_recorded(site: Site, recorder: Recorder) -> bool:
    """Try to record changes that were missed, and return whether all of them are recorded."""
    site.record()
    return not recorder.missed


def test_one_machine_alone_delivers_and_another_goes_on(database: Postgres, url: str, tmp_path: Path) -> None:
    with receiving() as receiver:
        hooks = Webhook("build", receiver.url)
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        sites = [Delivering(tmp_path / name, hooks, accounts=url) for name in ("one", "two")]
        with sites[0].delivering(), sites[1].delivering():
            sites[0].record(*(update(f"a{number}") for number in range(20)))
            receiver.until(20, 20)
            database.start_again()  # releases the lock of the delivering machine
            until(lambda: records(sites[1], update("b")), 20)
            receiver.until(21, 20)
        with sites[1].delivering():
            until(lambda: records(sites[1], update("c")), 20)
            receiver.until(22, 20)
            time.sleep(0.5)
        # If the database stopped before it had stored the last deliveries, they are repeated.
        assert {received.data["seq"] for received in receiver.received} == set(range(1, 23))


def records(site: Delivering, event: Event) -> bool:
    """Return whether an event can be recorded now."""
    try:
        site.record(event)
    except LogUnavailableError:
        return False
    return True
