"""The two servers side by side: both get every request, and both go back to the same state."""

import http.client
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.differential.granting import grants, our_token, site_yaml, their_tokens
from bench.differential.model import LOCALES, Model
from bench.differential.request import PUBLIC, Answer, Request, encode, fill, target
from bench.host import HOST
from bench.peer.strapi import make_project, strapi, token
from bench.serving import quire

_TIMEOUT = 60
_PLAIN = "/?=&[]$*,.:%+"  # what a path with a query says as it is
_RESET = {
    "kind": "singleType",
    "info": {"singularName": "reset", "pluralName": "resets", "displayName": "Reset"},
    "attributes": {"number": {"type": "integer"}},
}


@dataclass
class Server:
    """One of the two: where it listens, its tokens, and what it calls the things that are referred to."""

    name: str
    port: int
    tokens: dict[str, str]
    names: dict[str, Any] = field(default_factory=dict)
    connection: http.client.HTTPConnection | None = None

    def ask(self, request: Request) -> Answer:
        """The answer to a request; status 0 where there is none."""
        body, headers = encode(request, fill(request.body, self.names, self._get))
        if request.who != PUBLIC:
            known = self.tokens.get(request.who) or self.names.get(request.who, request.who)
            headers["Authorization"] = f"Bearer {known}"
        return self._send(request.method, target(request, self.names), body, headers)

    def _get(self, path: str) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens['full']}"}
        return self._send("GET", quote(path, _PLAIN), None, headers).body

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        for _ in range(2):  # a server may have closed a connection that was kept
            if self.connection is None:
                self.connection = http.client.HTTPConnection(HOST, self.port, timeout=_TIMEOUT)
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
                return Answer(answer.status, _parsed(answer.read()))
            except (OSError, http.client.HTTPException) as error:
                self.connection.close()
                self.connection, problem = None, error
        return Answer(0, f"no answer: {problem}")


def _parsed(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")[:500]


class Pair:
    """Both servers of one site. `keep` takes the state that every `reset` goes back to.

    Going back, neither is started anew: rows are put back below Strapi, and files below Quire, which
    takes notice of them. It has when it shows the number of the reset, which is written last. Users
    are not part of the state that is kept: they are deleted.
    """

    def __init__(self, packages: Path, types: Path, model: Model, folder: Path) -> None:
        self._packages, self._folder = packages, folder
        self._grants = grants(model, folder.name)
        self._project = packages / "projects" / f"differential-{folder.name}-{os.getpid()}"
        self._root = folder / "site"
        (self._root / "content" / "uploads").mkdir(parents=True)
        shutil.copytree(types, self._root / "content-types")
        (self._root / "content-types" / "reset.json").write_text(json.dumps(_RESET))
        (self._root / "site.yaml").write_text(site_yaml(model))
        make_project(self._project, types)
        self._stack, self._resets = ExitStack(), 0
        self._stack.callback(shutil.rmtree, self._project, ignore_errors=True)
        self._kept: tuple[dict[str, Any], dict[str, Any]] = ({}, {})

    def start(self) -> None:
        """Start both."""
        tokens = {"PEER_TOKENS": their_tokens(self._grants)}
        serving = self._stack.enter_context(strapi(self._packages, self._project, LOCALES[1:], tokens))
        theirs = json.loads((self._project / "tokens.json").read_bytes())
        self.theirs = Server("Strapi", serving.port, {"full": token(self._project), **theirs})
        made = {"full": our_token(self._root, "full", "full-access", [])}
        made["read-only"] = our_token(self._root, "read-only", "read-only", [])
        for name, permissions in self._grants.items():
            made[name] = our_token(self._root, name, "custom", permissions)
        serving = self._stack.enter_context(quire(self._root, 1))
        self.ours = Server("Quire", serving.port, made)
        self._learn_roles()

    def _learn_roles(self) -> None:
        for server in (self.theirs, self.ours):
            answer = server.ask(Request("GET", "/api/users-permissions/roles"))
            server.names |= {f"role:{role['type']}": role["id"] for role in answer.body["roles"]}

    def stop(self) -> None:
        """Stop both."""
        self._stack.close()

    def ask(self, request: Request) -> tuple[Answer, Answer]:
        """What Strapi and what Quire answers."""
        return self.theirs.ask(request), self.ours.ask(request)

    def keep(self) -> None:
        """Remember the state that both are in now."""
        for live, kept in self._folders():
            shutil.copytree(live, kept)
        with _opened(self._project / "data.db") as database, _opened(self._folder / "kept.db") as copy:
            database.backup(copy)
        self._kept = (dict(self.theirs.names), dict(self.ours.names))

    def reset(self) -> None:
        """Bring both back to the state that was kept."""
        for live, kept in self._folders():
            _put_back(live, kept)
        restore(self._project / "data.db", self._folder / "kept.db")
        for user in self.ours.ask(Request("GET", "/api/users")).body:
            self.ours.ask(Request("DELETE", f"/api/users/{user['id']}"))
        self.theirs.names, self.ours.names = dict(self._kept[0]), dict(self._kept[1])
        self._resets += 1
        (self._root / "content" / "reset.yaml").write_text(f"number: {self._resets}\n")
        deadline = time.monotonic() + _TIMEOUT
        while (self.ours.ask(Request("GET", "/api/reset")).data or {}).get("number") != self._resets:
            if time.monotonic() > deadline:
                raise RuntimeError("Quire does not take notice of its files")
            time.sleep(0.01)

    def _folders(self) -> list[tuple[Path, Path]]:
        """The folders that make up the state of both, and where they are kept."""
        live = (self._project / "public" / "uploads", self._root / "content")
        return [(folder, self._folder / f"kept-{folder.name}") for folder in live]


def _put_back(live: Path, kept: Path) -> None:
    """Make the files of a folder those that were kept; those that are the same stay untouched."""
    there = {path.relative_to(kept) for path in kept.rglob("*") if path.is_file()}
    for path in [path for path in live.rglob("*") if path.is_file()]:
        if path.relative_to(live) not in there:
            path.unlink()
    for name in there:
        content = (kept / name).read_bytes()
        if not (live / name).exists() or (live / name).read_bytes() != content:
            (live / name).parent.mkdir(parents=True, exist_ok=True)
            (live / name).write_bytes(content)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def restore(database: Path, kept: Path) -> None:
    """Put the rows of a kept database back into one that a server has open."""
    with _opened(database) as live:
        live.execute("PRAGMA foreign_keys = OFF")
        live.execute("ATTACH ? AS kept", (str(kept),))
        live.execute("BEGIN IMMEDIATE")
        tables = live.execute("SELECT name FROM kept.sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            live.execute(f'DELETE FROM main."{table}"')
            live.execute(f'INSERT INTO main."{table}" SELECT * FROM kept."{table}"')
        live.execute("COMMIT")
