"""The server with which Bifolio is compared: a running Strapi, or recorded responses."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from bench.differential.granting import Grants, their_tokens
from bench.differential.model import LOCALES
from bench.differential.servers import Server
from bench.peer.recording import Recording, playing
from bench.peer.strapi import make_project, strapi, token


class Peer(Protocol):
    """The server with which Bifolio is compared."""

    def start(self) -> Server:
        """Start the server."""

    def stop(self) -> None:
        """Stop the server."""

    def keep(self) -> None:
        """Save the current state."""

    def reset(self, case: str) -> None:
        """Restore the saved state. `case` is the number of the next conversation."""


class Strapi:
    """A running Strapi project, whose responses are recorded in `recording`."""

    def __init__(
        self, packages: Path, types: Path, grants: Grants, folder: Path, recording: Recording | None
    ) -> None:
        self._packages, self._folder, self._grants = packages, folder, grants
        self._project = packages / "projects" / f"differential-{folder.name}-{os.getpid()}"
        self._recording = recording
        make_project(self._project, types)
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self._project, ignore_errors=True)

    def start(self) -> Server:
        tokens = {"PEER_TOKENS": their_tokens(self._grants)}
        serving = self._stack.enter_context(strapi(self._packages, self._project, LOCALES[1:], tokens))
        theirs = json.loads((self._project / "tokens.json").read_bytes())
        known = {"full": token(self._project), **theirs}
        return Server("Strapi", serving.port, known, recording=self._recording)

    def stop(self) -> None:
        self._stack.close()

    def keep(self) -> None:
        shutil.copytree(self._uploads, self._kept)
        with _opened(self._project / "data.db") as database, _opened(self._folder / "kept.db") as copy:
            database.backup(copy)

    def reset(self, case: str) -> None:
        restore_files(self._uploads, self._kept)
        restore(self._project / "data.db", self._folder / "kept.db")
        if self._recording is not None:
            self._recording.begin(case)

    @property
    def _uploads(self) -> Path:
        return self._project / "public" / "uploads"

    @property
    def _kept(self) -> Path:
        return self._folder / "kept-uploads"


class Recorded:
    """Playback of recorded responses from a file."""

    def __init__(self, file: Path, grants: Grants) -> None:
        self._file, self._names = file, ("full", "read-only", *grants)
        self._stack = ExitStack()

    def start(self) -> Server:
        # The recording contains the names of tokens instead of the tokens.
        self._playing = self._stack.enter_context(playing(self._file))
        return Server("Strapi", self._playing.port, {name: name for name in self._names})

    def stop(self) -> None:
        self._stack.close()

    def keep(self) -> None:
        # Nothing to restore: each conversation has its own recorded responses.
        pass

    def reset(self, case: str) -> None:
        self._playing.begin(case)


def restore_files(live: Path, kept: Path) -> None:
    """Replace the files in a folder with a saved copy. Files that have not changed are left alone."""
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
    """Copy the rows of a saved database into one that a server has open."""
    with _opened(database) as live:
        live.execute("PRAGMA foreign_keys = OFF")
        live.execute("ATTACH ? AS kept", (str(kept),))
        live.execute("BEGIN IMMEDIATE")
        tables = live.execute("SELECT name FROM kept.sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            live.execute(f'DELETE FROM main."{table}"')
            live.execute(f'INSERT INTO main."{table}" SELECT * FROM kept."{table}"')
        live.execute("COMMIT")
