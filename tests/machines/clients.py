"""Clients that write to and read from the machines, and the record of all their requests and responses."""

import itertools
import json
import random
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.git import git
from tests.machines.cluster import COUNTERS, EDITED, NAMES, Cluster, Machine

LONGEST_S = 60.0
# The first value of the counters. It is so large that git's history can be searched for it.
FIRST_NUMBER = 10_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A machine's response to a request. The status is 0 if there was no response."""

    status: int
    body: Any
    commit: str
    raw: bytes = b""
    retry: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A write: its token (a text that no other write contains), its document, and when it was sent and
    answered.
    """

    machine: str
    kind: str
    token: str
    document: str
    began: float
    ended: float
    answer: Answer


@dataclass(slots=True)
class Record:
    """A record of what all clients have sent and received."""

    seed: int
    writes: list[Write] = field(default_factory=list)
    reads: dict[str, list[tuple[float, float, str]]] = field(default_factory=dict)
    after: list[tuple[str, str, Answer]] = field(default_factory=list)  # machine, requested commit, response
    violations: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    began: float = field(default_factory=time.monotonic)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(FIRST_NUMBER))

    def token(self) -> str:
        """Return a text that no other write contains."""
        return f"w{next(self._numbers)}y"

    def add(self, write: Write) -> None:
        with self.lock:
            self.writes.append(write)

    def violated(self, what: str) -> None:
        """Record that an invariant was violated."""
        with self.lock:
            self.violations.append(f"{time.monotonic() - self.began:6.1f} s  {what}")


def ask(machine: Machine, method: str, path: str, body: bytes | Any = None, **headers: str) -> Answer:
    """Send a request to a machine on a new connection, and return the response."""
    connection = HTTPConnection("127.0.0.1", machine.port, timeout=LONGEST_S)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None and not isinstance(body, bytes):
        body, named["Content-Type"] = json.dumps(body).encode(), "application/json"
    try:
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        raw = answer.read()
        told = json.loads(raw) if raw and "json" in answer.headers.get("Content-Type", "") else None
        # "; changed" means uncommitted changes.
        commit = answer.headers.get("Bifolio-Commit", "").partition(";")[0]
        return Answer(answer.status, told, commit, raw, answer.headers.get("Retry-After"))
    except TimeoutError:
        return Answer(-1, None, "")
    except (OSError, HTTPException, ValueError):
        return Answer(0, None, "")
    finally:
        connection.close()


@dataclass(slots=True)
class Writer:
    """A client that sends random writes to one machine.

    With `apart`, no two machines write to the same document, because with `git.push: after` a person would
    have to resolve the conflicts.
    """

    cluster: Cluster
    machine: Machine
    record: Record
    random: random.Random
    apart: bool = False
    made: list[str] = field(default_factory=list)  # documents that this writer has created

    def run(self, stopped: threading.Event) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (14, self.create), (34, self.update), (5, self.delete), (8, self.take_code), (8, self.page),
            (9, self.count), (4, self.upload), (6, self.board), (8, self.hand), (8, self.after),
        ]  # fmt: skip
        shared = (self.take_code, self.count, self.board)
        alone = not self.apart or self.machine is self.cluster.machines[0]
        chosen = [
            action for weight, action in actions if alone or action not in shared for _ in range(weight)
        ]
        while not stopped.is_set():
            self.random.choice(chosen)()
            time.sleep(self.random.random() * 0.1)

    def write(self, kind: str, token: str, document: str, method: str, path: str, body: Any) -> Answer:
        """Send a write, either with a token or without credentials, and record its result."""
        public = path.startswith("/api/notes") and self.random.random() < 0.5
        headers = {} if public else {"Authorization": f"Bearer {self.cluster.token}"}
        if isinstance(body, tuple):
            body, headers["Content_Type"] = body
        if method == "PUT" and self.random.random() < 0.3:
            headers["Prefer"] = "merge"
        began = time.monotonic()
        answer = ask(self.machine, method, path, body, **headers)
        write = Write(self.machine.name, kind, token, document, began, time.monotonic(), answer)
        self.record.add(write)
        if (answer.status >= 500 and answer.status != 503) or answer.status == -1:
            self.record.violated(
                f"{self.machine.name}: {method} {path} was answered {answer.status} {answer.body}"
            )
        if answer.status in (0, 503):
            time.sleep(0.2)
        return answer

    def create(self, code: str | None = None) -> None:
        token = self.record.token()
        data = {"title": token, "text": "-", "code": code or f"own-{token}"}
        answer = self.write("create", token, "", "POST", "/api/notes", {"data": data})
        if answer.status == 201:
            with self.record.lock:
                self.record.notes.append(answer.body["data"]["documentId"])
            self.made.append(answer.body["data"]["documentId"])

    def take_code(self) -> None:
        """Try to create a note with a code that another client may be creating at the same time."""
        self.create(f"code-{self.random.randrange(40)}")

    def update(self) -> None:
        if note := self._note():
            token, name = self.record.token(), self.random.choice(("title", "text"))
            self.write(name, token, note, "PUT", f"/api/notes/{note}", {"data": {name: token}})

    def delete(self) -> None:
        if note := self._note():
            answer = self.write("delete", "", note, "DELETE", f"/api/notes/{note}", None)
            with self.record.lock:
                if answer.status == 204 and note in self.record.notes:
                    self.record.notes.remove(note)

    def page(self) -> None:
        """Create a draft, or publish, unpublish or change an existing page."""
        token = self.record.token()
        page = self._one_of(self.record.pages)
        if not page or self.random.random() < 0.3:
            made = self.write(
                "page", token, "", "POST", "/api/pages?status=draft", {"data": {"title": token}}
            )
            if made.status == 201:
                with self.record.lock:
                    self.record.pages.append(made.body["data"]["documentId"])
                self.made.append(made.body["data"]["documentId"])
        elif self.random.random() < 0.3:
            self.write("unpublish", "", page, "POST", f"/api/pages/{page}/actions/unpublish", {"data": {}})
        else:
            status = self.random.choice(("", "?status=draft"))
            kind = "draft" if status else "publish"
            self.write(kind, token, page, "PUT", f"/api/pages/{page}{status}", {"data": {"title": token}})

    def count(self) -> None:
        """Set all counters to the same number in one batch."""
        token = self.record.token()
        body = {"data": {"n": int(token[1:-1])}}
        operations = [{"method": "PUT", "path": f"/api/counters/{name}", "body": body} for name in COUNTERS]
        self.write("count", token, "c", "POST", "/batch", {"operations": operations})

    def upload(self) -> None:
        token = self.record.token()
        head = f'Content-Disposition: form-data; name="files"; filename="{token}.txt"'
        part = f"--b\r\n{head}\r\n\r\n{token}\r\n--b--\r\n"
        body = (part.encode(), "multipart/form-data; boundary=b")
        self.write("upload", token, "", "POST", "/api/upload", body)

    def board(self) -> None:
        token, name = self.record.token(), self.random.choice(("title", "text"))
        self.write("board", token, "board", "PUT", "/api/board", {"data": {name: token}})

    def hand(self) -> None:
        """Change an attribute of a document while another attribute is being edited by hand, on a machine or
        in the editor's clone.
        """
        token = self.record.token()
        names = (self.machine.name,) if self.apart else (*NAMES, *EDITED)
        document = self.random.choice(names)
        self.write("hand", token, document, "PUT", f"/api/hands/{document}", {"data": {"b": token}})

    def after(self) -> None:
        """Write to this machine, then read the document from another machine with `Bifolio-After`."""
        if not (note := self._note()):
            return
        token = self.record.token()
        answer = self.write("title", token, note, "PUT", f"/api/notes/{note}", {"data": {"title": token}})
        if answer.status == 200 and answer.commit:
            other = self.random.choice([m for m in self.cluster.machines if m is not self.machine])
            told = ask(other, "GET", f"/api/notes/{note}", Bifolio_After=answer.commit)
            with self.record.lock:
                self.record.after.append((other.name, answer.commit, told))

    def _note(self) -> str:
        return self._one_of(self.record.notes)

    def _one_of(self, documents: list[str]) -> str:
        """Return one of the few latest documents, so that clients often write to the same one. Return "" if
        there is none.
        """
        with self.record.lock:
            recent = [name for name in documents if not self.apart or name in self.made][-12:]
        return self.random.choice(recent) if recent else ""


@dataclass(slots=True)
class Reader:
    """A client that reads from one machine and checks that each response is consistent."""

    machine: Machine
    record: Record

    def run(self, stopped: threading.Event) -> None:
        seen = self.record.reads.setdefault(self.machine.name, [])
        while not stopped.is_set():
            began = time.monotonic()
            answer = ask(self.machine, "GET", "/api/counters?fields=n&pagination[pageSize]=100")
            if answer.status == 200:
                numbers = {document["n"] for document in answer.body["data"]}
                if len(numbers) != 1 or len(answer.body["data"]) != len(COUNTERS):
                    self.record.violated(f"{self.machine.name}: a reader saw counters at {sorted(numbers)}")
                seen.append((began, time.monotonic(), answer.commit))
            elif answer.status:
                self.record.violated(
                    f"{self.machine.name}: a read was answered {answer.status} {answer.raw[:200]!r}"
                )
            answer = ask(self.machine, "GET", "/api/notes?fields=code&sort=id:desc&pagination[pageSize]=100")
            if answer.status == 200:
                codes = [document["code"] for document in answer.body["data"]]
                if twice := {code for code in codes if codes.count(code) > 1}:
                    self.record.violated(f"{self.machine.name}: a reader saw the codes {twice} twice")
            time.sleep(0.05)


@dataclass(slots=True)
class Editor:
    """A person who commits and pushes from a clone, and who edits files on the machines without
    committing.
    """

    cluster: Cluster
    record: Record
    random: random.Random
    # By machine: the value that was edited there and is not committed.
    left: dict[str, str] = field(default_factory=dict)

    def run(self, stopped: threading.Event) -> None:
        while not stopped.wait(0.5 + self.random.random()):
            if self.random.random() < 0.3:
                self.edit(self.random.choice(self.cluster.machines))
            else:
                self.push()

    def edit(self, machine: Machine) -> None:
        """Edit a file in the clone that a machine serves."""
        token = self.record.token()
        path = machine.root / f"content/hands/{machine.name}.json"
        _set(path, "a", token)
        self.left[machine.name] = token

    def push(self) -> None:
        """Fetch, change a file, commit and push. Do nothing if the push fails."""
        token, name = self.record.token(), self.random.choice(EDITED)
        began = time.monotonic()
        try:
            git(self.cluster.editor, "fetch", "-q")
            git(self.cluster.editor, "reset", "-q", "--hard", "origin/main")
            _set(self.cluster.editor / f"content/hands/{name}.json", "a", token)
            git(self.cluster.editor, "commit", "-qam", f"Edit {name}")
            git(self.cluster.editor, "push", "-q", "origin", "HEAD:main")
        except subprocess.CalledProcessError:  # Another client was faster, or the remote is down.
            return
        answer = Answer(200, None, "")
        self.record.add(Write("editor", "editor", token, name, began, time.monotonic(), answer))


def _set(path: Path, name: str, value: str) -> None:
    data = json.loads(path.read_text())
    data[name] = value
    path.write_text(json.dumps(data, indent=2) + "\n")
