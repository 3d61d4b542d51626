"""Tests that acknowledged writes are in the event log exactly once, despite killed workers, restarts and
edits.
"""

import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from subprocess import DEVNULL

import pytest

from server.config.reader import read_settings
from server.events.database import EventDatabase
from server.events.recorder import Recorder
from server.site.site import Site
from tests.postgres import IN_BOTH_DATABASES
from tests.servers import free_port, serving, start, stop, wait, workers
from tests.sites import collection, with_accounts, write
from tests.torture import LONG, SEED
from tests.waiting import until

SECONDS = 30.0 if LONG else 3.0
FILES = {
    **collection("note", {"title": "string"}),
    **collection("tag", {"name": "string"}),
    "content/tags/red.json": '{"name": "Red"}',
    "site.yaml": "roles: {public: {note: [find, create, update, delete]}}\n",
}
KINDS = {"POST": "entry.create", "PUT": "entry.update", "DELETE": "entry.delete"}
ORDER = list(KINDS.values())
BEFORE = {"red"}


@dataclass
class Writer:
    """A client that creates, changes and deletes documents, and stores the responses."""

    ports: list[int]
    random: Random
    # id, method, and whether a response arrived
    done: list[tuple[str, str, bool]] = field(default_factory=list)
    number: int = 0

    def run(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            made = self.ask("POST", "/api/notes")
            if made:
                for _ in range(self.random.randint(0, 4)):
                    self.ask("PUT", f"/api/notes/{made}", made)
                self.ask("DELETE", f"/api/notes/{made}", made)

    def ask(self, method: str, path: str, document: str = "") -> str:
        """Repeat a write until the server accepts it. Return the document's id, or an empty string if the
        outcome is unknown.
        """
        self.number += 1
        body = json.dumps({"data": {"title": f"{id(self)} {self.number}"}})
        connection = HTTPConnection("127.0.0.1", self.random.choice(self.ports), timeout=20)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = json.loads(answer.read() or b"null")
        except (OSError, HTTPException):
            self.done.append((document, method, False))
            time.sleep(0.02)
            return ""
        finally:
            connection.close()
        if answer.status >= 300:
            assert answer.status in (404, 503), said  # 404: a request without a response deleted the document
            return ""
        document = document or said["data"]["documentId"]
        self.done.append((document, method, True))
        return document


def edit(root: Path, stopped: threading.Event) -> None:
    """Write, replace and delete files, as a text editor does."""
    number, random = 0, Random(SEED)
    while not stopped.wait(0.02):
        number += 1
        path = root / f"content/tags/t{random.randrange(4)}.json"
        if random.random() < 0.2:
            path.unlink(missing_ok=True)
        else:
            path.with_name(f".{number}").write_text(json.dumps({"name": str(number)}))
            path.with_name(f".{number}").replace(path)


@contextmanager
def busy(root: Path, ports: list[int], count: int = 3) -> Iterator[list[Writer]]:
    """Context manager: run clients and an editor in threads."""
    stopped, found = threading.Event(), [Writer(ports, Random(SEED + n)) for n in range(count)]
    threads = [threading.Thread(target=writer.run, args=(stopped,)) for writer in found]
    threads.append(threading.Thread(target=edit, args=(root, stopped)))
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def check(root: Path, writers: list[Writer]) -> None:
    """Compare the log with the responses and the final state."""
    site = Site(root)
    site.load()
    recorder = Recorder(root, accounts_url=site.state.settings.accounts)
    site.observe(recorder)
    site.record()
    there = {entry.document.document_id for entry in site.basis()[3].values() if entry.document}
    events = recorder.database.read(0, 1_000_000)
    numbers = [event.seq for event in recorder.database.read(0, 1_000_000, with_public=True)]
    recorder.database.close()
    assert numbers == list(range(1, len(numbers) + 1))
    kinds = defaultdict[str, list[str]](list)
    for event in events:
        if event.document_id:
            kinds[event.document_id].append(event.kind)
    for document, found in kinds.items():
        alive = document in BEFORE
        for kind in found:
            assert alive == (kind != "entry.create"), (document, found)
            alive = kind != "entry.delete"
        assert alive == (document in there), (document, found)
    assert is_any_answered(writers)
    for writer in writers:
        _check_answers(writer, kinds)


def is_any_answered(writers: list[Writer]) -> bool:
    """Return whether any client's write was acknowledged."""
    return any(answered for writer in writers for _, _, answered in list(writer.done))


def _check_answers(writer: Writer, kinds: dict[str, list[str]]) -> None:
    """Require the events of acknowledged writes in order. Writes with an unknown outcome may or may not have
    events.
    """
    done = defaultdict[str, list[tuple[str, bool]]](list)
    for document, method, answered in writer.done:
        if document:
            done[document].append((KINDS[method], answered))
    for document, told in done.items():
        found = kinds[document]
        assert found == sorted(found, key=ORDER.index), (document, told, found)
        for kind in ORDER:
            answers = [answered for each, answered in told if each == kind]
            assert sum(answers) <= found.count(kind) <= len(answers), (document, told, found)


def until_recording(root: Path) -> None:
    """Wait until a server has started the log."""
    database = EventDatabase(root, read_settings(root).accounts)
    until(lambda: database.query(lambda c: c.execute("SELECT count(*) FROM notes").fetchone()[0]) > 0)
    database.close()


def schema_updates(root: Path) -> int:
    """Return the number of schema.update events."""
    database = EventDatabase(root, read_settings(root).accounts)
    events = database.read(0, 1_000_000)
    database.close()
    return sum(event.kind == "schema.update" for event in events)


@pytest.fixture
def root(tmp_path: Path, accounts: str) -> Path:
    write(tmp_path, with_accounts(FILES, accounts))
    return tmp_path


@IN_BOTH_DATABASES
def test_workers_that_are_killed_while_clients_write(root: Path) -> None:
    port, random = free_port(), Random(SEED)
    process = start(root, port, "--workers=2", "--quiet", output=DEVNULL)
    try:
        wait(process, port)
        until_recording(root)
        with busy(root, [port]) as writers:
            end, again = time.monotonic() + SECONDS, time.monotonic() + SECONDS / 2
            while time.monotonic() < end:
                time.sleep(random.uniform(0.1, 0.5))
                with suppress(ProcessLookupError):
                    os.kill(random.choice(sorted(workers(process.pid)) or [2**22 + 1]), signal.SIGKILL)
                if again and time.monotonic() > again:
                    again = 0.0
                    stop(process)
                    process = start(root, port, "--workers=2", "--quiet", output=DEVNULL)
                    wait(process, port)
            until(lambda: is_any_answered(writers))  # even if no worker has lived long enough so far
    finally:
        stop(process)
    check(root, writers)


@IN_BOTH_DATABASES
def test_two_servers_of_a_site(root: Path) -> None:
    ports = [free_port(), free_port()]
    with serving(root, ports[0], "--workers=2", output=DEVNULL):
        until_recording(root)
        with serving(root, ports[1], "--workers=1", output=DEVNULL), busy(root, ports) as writers:
            time.sleep(SECONDS)
    check(root, writers)


def test_workers_that_are_replaced_while_clients_write(root: Path) -> None:
    port, text = free_port(), FILES["content-types/tag.json"]
    # With this limit, the site counts as large, so another process loads the new schema.
    large = "import server.site.site as site; site.MAX_LOCAL_FILES = 1"
    process = start(root, port, "--workers=2", "--quiet", output=DEVNULL, first=large)
    try:
        wait(process, port)
        until_recording(root)
        before = workers(process.pid)
        with busy(root, [port]) as writers:
            for number in range(3):
                path = root / "content-types/tag.json"
                path.with_name(".new").write_text(
                    text.replace('"name": {', f'"extra{number}": {{"type": "text"}}, "name": {{')
                )
                path.with_name(".new").replace(path)
                until(lambda number=number: schema_updates(root) == number + 1)
                time.sleep(SECONDS / 10)
        until(lambda: not before & workers(process.pid))
    finally:
        stop(process)
    check(root, writers)
    assert schema_updates(root) == 3
