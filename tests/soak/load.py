"""Load for a soak test: writers, people who edit files or use git, readers, event streams, and a webhook
receiver.
"""

import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.api.test_event_streams import Reader as StreamReader
from tests.git import git
from tests.machines.clients import Answer, Editor, Record, Write, Writer, ask
from tests.machines.cluster import Machine
from tests.receivers import OK, Received, status
from tests.soak.ledger import LOST, READS, STALE, TORN, Ledger
from tests.soak.model import GONE, Model

MAX_NOTES = 40  # for each writer; limited so that measurements of memory are comparable
LONGEST_PAUSE_S = 0.3
TURN_S = 1.0  # how long a receiver rejects deliveries, and then how long it accepts them
HANDS = 4  # the number of files that the editor on each machine saves
MADE = (200, 201, 204)
REFUSED = (503, 507)


@dataclass(slots=True)
class SoakRecord(Record):
    """A record of what clients have observed. Violations are reported to the ledger."""

    ledger: Ledger = field(default_factory=lambda: Ledger(0))
    is_disk_full: bool = False  # whether the disk is full in this round

    def violated(self, what: str) -> None:
        """Report a violation that a client observed."""
        if " was answered 507 " in what and self.is_disk_full:
            return
        promise = TORN if "a reader saw" in what else READS if ": a read was" in what else LOST
        self.ledger.violated(promise, what)


@dataclass(slots=True)
class SoakWriter(Writer):
    """A client that writes to its own documents, and updates the model of the expected documents."""

    model: Model = field(default_factory=Model)
    ledger: Ledger = field(default_factory=lambda: Ledger(0))
    paused: threading.Event = field(default_factory=threading.Event)

    def run(self, stopped: threading.Event) -> None:
        """Send random writes."""
        actions: list[tuple[int, Callable[[], None]]] = [
            (14, self.create), (40, self.update), (6, self.delete), (14, self.page), (8, self.read_own),
            (3, self.upload), (6, self.hand), (3, self.use_branch),
        ]  # fmt: skip
        if len(self.cluster.machines) > 1:
            actions.append((6, self.after))
        if self.machine is self.cluster.machines[0]:
            actions += [(6, self.take_code), (6, self.count), (4, self.board)]
        weights = [weight for weight, _ in actions]
        while not stopped.is_set():
            [(_, action)] = self.random.choices(actions, weights)
            if not self.paused.is_set():
                action()
            time.sleep(self.random.random() * LONGEST_PAUSE_S)

    def write(self, kind: str, token: str, document: str, method: str, path: str, body: Any) -> Answer:
        """Send a write, and update the model according to the response."""
        answer = Writer.write(self, kind, token, document, method, path, body)
        at = time.monotonic()
        if answer.status in MADE:
            self._acknowledge(kind, token, document, answer, at)
        elif _is_unknown(answer):
            self._doubt(kind, token, document)
        elif answer.status == 404 and document in self.record.notes:
            with self.record.lock:  # The earlier deletion, to which there was no response, was applied.
                self.record.notes.remove(document)
        return answer

    def _acknowledge(self, kind: str, token: str, document: str, answer: Answer, at: float) -> None:
        model, data = self.model, (answer.body or {}) if kind != "upload" else {}
        data = data.get("data") or {}
        if kind in ("create", "title", "text"):
            model.acknowledge("notes", data["documentId"], data, at)
        elif kind == "delete":
            model.acknowledge("notes", document, GONE, at)
        elif kind == "page":
            model.acknowledge("pages?status=draft", data["documentId"], {"title": token}, at)
            model.acknowledge("pages", data["documentId"], GONE, at)
        elif kind in ("draft", "publish"):
            model.acknowledge("pages?status=draft", document, {"title": token}, at)
            if kind == "publish":
                model.acknowledge("pages", document, data, at)
        elif kind == "unpublish":
            model.acknowledge("pages", document, GONE, at)

    def _doubt(self, kind: str, token: str, document: str) -> None:
        if kind in ("title", "text"):
            self.model.doubt("notes", document, {kind: token})
        elif kind == "delete":
            self.model.doubt("notes", document, None)
        elif kind in ("draft", "publish"):
            self.model.doubt("pages?status=draft", document, {"title": token})
            if kind == "publish":
                self.model.doubt("pages", document, {"title": token})
        elif kind == "unpublish":
            self.model.doubt("pages", document, None)

    def create(self, code: str | None = None) -> None:
        """Create a note, or delete one if there are already enough."""
        with self.record.lock:
            count = sum(name in self.made for name in self.record.notes)
        if count > MAX_NOTES:
            self.delete()
        else:
            Writer.create(self, code)

    def read_own(self) -> None:
        """Write a note, and read it on another connection. The result must be the state in the response."""
        if not (note := self._note()):
            return
        token = self.record.token()
        data = {"data": {"text": token}}
        answer = self.write("text", token, note, "PUT", f"/api/notes/{note}", data)
        if answer.status != 200:
            return
        seen = ask(self.machine, "GET", f"/api/notes/{note}")
        if seen.status in (200, 404) and (seen.body or {}).get("data") != answer.body["data"]:
            told = f"{seen.status} {seen.raw[:300]!r}"
            self.ledger.violated(
                STALE, f"{self.machine.name}: {note} was answered {told}, after {answer.raw[:300]!r}"
            )

    def use_branch(self) -> None:
        """Change a note on a branch, merge it, and delete the branch."""
        note = self._note()
        if not note or len(self.model.of("notes")[note].states) != 1:
            return
        token, token_headers = self.record.token(), {"Authorization": f"Bearer {self.cluster.token}"}
        name, began = f"b-{token}", time.monotonic()

        def send(method: str, path: str, body: Any = None) -> Answer:
            return ask(self.machine, method, path, body, **token_headers)

        if send("POST", "/branches", {"name": name}).status != 201:
            return
        data = {"data": {"title": token}}
        if send("PUT", f"/api/notes/{note}?branch={name}", data).status == 200:
            merged = send("POST", f"/branches/{name}/merge", {})
            self.record.add(Write(self.machine.name, "merge", token, note, began, time.monotonic(), merged))
            if merged.status == 200:
                [state] = self.model.of("notes")[note].states
                kept = {key: value for key, value in state.items() if key != "updatedAt"}
                self.model.acknowledge("notes", note, {**kept, "title": token}, time.monotonic())
            elif _is_unknown(merged):
                self.model.doubt("notes", note, {"title": token})
        send("DELETE", f"/branches/{name}")


def _is_unknown(answer: Answer) -> bool:
    """Whether a response leaves open whether the write was applied."""
    error = (answer.body or {}).get("error", {}) if isinstance(answer.body, dict) else {}
    if answer.status == 503:
        return "did not confirm the push" in str(error.get("message"))
    return answer.status <= 0 or (answer.status >= 500 and answer.status not in REFUSED)


# --- people who use an editor and git ----------------------------------------------------------------


def _write_over(path: Path, text: str) -> None:
    with path.open("r+") as file:
        file.write(text)
        file.truncate()


def _rename_over(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.editing")
    temporary.write_text(text)
    temporary.replace(path)


def _truncate(path: Path, text: str) -> None:
    path.write_text(text)


def _append(path: Path, text: str) -> None:
    """Append to a file the part of a text that the file does not contain yet."""
    before = path.read_text()
    if not text.startswith(before):
        path.write_text(text)
    else:
        with path.open("a") as file:
            file.write(text[len(before) :])


SAVES = (_write_over, _rename_over, _truncate, _append)


def hand_files(names: list[str]) -> dict[str, str]:
    """Return the files that are edited by hand, with their initial texts."""
    return {
        f"content/hands/s-{name}-{number}.yaml": "a: begin\n" for name in names for number in range(HANDS)
    }


@dataclass(slots=True)
class HandEditor:
    """A person who saves files in a machine's folder and uses git there.

    With `commits`, the person commits the edits from time to time. Otherwise, they stay uncommitted until
    `tidy` is called.
    """

    machine: Machine
    random: random.Random
    record: Record
    commits: bool
    saved: dict[str, str] = field(default_factory=dict)  # saved texts by path
    times: dict[str, float] = field(default_factory=dict)
    number: int = 0

    def run(self, stopped: threading.Event) -> None:
        """Save files, and sometimes use git."""
        while not stopped.wait(0.1 + self.random.random() * 0.5):
            # The disk may be full, or git may be locked.
            with suppress(OSError, subprocess.CalledProcessError):
                chance = self.random.random()
                if chance < 0.80 or not self.commits:
                    self.save(self.random.randrange(HANDS))
                elif chance < 0.90:
                    self.commit()
                elif chance < 0.95:
                    self.reset(self.random.randrange(HANDS))
                else:
                    self.use_worktree()

    def _path(self, number: int) -> str:
        return f"content/hands/s-{self.machine.name}-{number}.yaml"

    def save(self, number: int) -> None:
        """Save a file: in place, by renaming, after truncating it, or by appending. Each file is always saved
        in the same way.
        """
        path = self._path(number)
        before = self.saved.get(path, "")
        text = f"a: {self.record.token()}\n"
        if SAVES[number] is _append and before.count("\n") == 1:
            text = f"{before}b: {self.record.token()}\n"
        self.saved[path], self.times[path] = text, time.monotonic()
        try:
            SAVES[number](self.machine.root / path, text)
        except OSError:
            if before and SAVES[number] is _rename_over:  # the previous text is still there
                self.saved[path] = before
            raise

    def commit(self) -> None:
        git(self.machine.root, "add", "content/hands")
        git(self.machine.root, "commit", "-qm", "Edit by hand", "--", "content/hands")

    def reset(self, number: int) -> None:
        """Discard the person's own edits to a file."""
        path = self._path(number)
        text = git(self.machine.root, "show", f"HEAD:{path}")
        git(self.machine.root, "checkout", "-q", "HEAD", "--", path)
        self.saved[path] = text

    def use_worktree(self) -> None:
        """Commit to a branch that is not served, using a linked worktree."""
        self.number += 1
        folder, name = self.machine.root.parent / f"side-{self.machine.name}", f"side-{self.number}"
        try:
            git(self.machine.root, "worktree", "add", "-q", "-f", "-b", name, str(folder), "HEAD")
            (folder / "content/board.json").write_text('{"title": "not served"}\n')
            git(folder, "commit", "-qam", "Not served")
        finally:
            with suppress(subprocess.CalledProcessError):
                git(self.machine.root, "worktree", "remove", "--force", str(folder))
                git(self.machine.root, "branch", "-D", name)

    def finish(self) -> None:
        """Retry saves that failed because the disk was full."""
        for path, text in self.saved.items():
            if (self.machine.root / path).read_text() in ("", text[: len(text) // 2]):
                (self.machine.root / path).write_text(text)


@dataclass(slots=True)
class Pusher(Editor):
    """A person who pulls, commits and pushes in another clone."""

    def run(self, stopped: threading.Event) -> None:
        while not stopped.wait(0.5 + self.random.random() * 1.5):
            self.push()


# --- readers --------------------------------------------------------------------------------------


@dataclass(slots=True)
class KeepingReader:
    """A client that uses a persistent connection, entity tags and HEAD requests."""

    machine: Machine
    record: Record
    random: random.Random

    def run(self, stopped: threading.Event) -> None:
        """Read until stopped. If the connection is closed, reconnect."""
        while not stopped.wait(0.05):
            with suppress(OSError, HTTPException):
                connection = HTTPConnection("127.0.0.1", self.machine.port, timeout=30)
                try:
                    self._read(connection, stopped)
                finally:
                    connection.close()

    def _read(self, connection: HTTPConnection, stopped: threading.Event) -> None:
        tag, path = "", "/api/notes?pagination[pageSize]=20&sort=updatedAt:desc"
        while not stopped.wait(0.05):
            headers = {"Accept-Encoding": "gzip"} | ({"If-None-Match": tag} if tag else {})
            connection.request(self.random.choice(("GET", "GET", "HEAD")), path, headers=headers)
            answer = connection.getresponse()
            answer.read()
            tag = answer.headers.get("ETag", "")
            if answer.status not in (200, 304):
                self.record.violated(f"{self.machine.name}: a read was answered {answer.status}")


@dataclass(slots=True)
class Stream:
    """A client of the event stream on one machine. It reconnects with `Last-Event-ID`."""

    machine: Machine
    token: str
    ledger: Ledger
    events: list[dict[str, Any]] = field(default_factory=list)
    last: str = ""

    def run(self, stopped: threading.Event) -> None:
        while not stopped.wait(0.2):
            with suppress(OSError, HTTPException, ValueError):
                headers = {"Last_Event_ID": self.last} if self.last else {}
                with StreamReader(self.machine.port, "/events", self.token, **headers) as reader:
                    self._listen(reader, stopped)

    def _listen(self, reader: StreamReader, stopped: threading.Event) -> None:
        if reader.answer.status != 200:
            return
        for id_, name, data in reader:
            if stopped.is_set():
                return
            self.last = id_ or self.last
            if name == "restart":
                self.ledger.violated(
                    "events", f"{self.machine.name}: a stream was restarted after {self.last}"
                )
            elif name not in ("welcome", "goaway"):
                self.events.append(data)


@dataclass(slots=True)
class Hook:
    """A webhook receiver that often fails and asks for a retry after a second.

    It rejects all deliveries for one second, then accepts most deliveries for one second, and so on.
    """

    random: random.Random
    taken: list[dict[str, Any]] = field(default_factory=list)  # the bodies of accepted deliveries
    failed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, connection: socket.socket, received: Received) -> None:
        """Respond to a delivery."""
        with self.lock:
            chance = self.random.random()
        if time.monotonic() % (2 * TURN_S) < TURN_S or chance < 0.03:
            self.failed += 1
            status(503, "Retry-After: 1")(connection, received)
            return
        if chance > 0.98:
            time.sleep(0.5)
        with self.lock:
            self.taken.append(received.data["bifolio"] | {"model": received.data.get("model")})
        connection.sendall(OK)
