"""The times at which API tokens and users were last active.

Each time is accurate to NOTE_INTERVAL_S seconds.
"""

import os
import threading
from collections.abc import Mapping
from time import monotonic

from server.bounded import Cache, size_of
from server.database.engine import Engine
from server.documents.timestamps import now
from server.errors import ApiError

NOTE_INTERVAL_S = 300.0  # Minimum time between two notes of the same caller.
WRITE_DELAY_S = 2.0  # Delay of a write, so that several notes are written together.
MAX_NOTE_BYTES = 1024 * 1024  # enough for about 5,000 callers
_SAVE = (
    "INSERT INTO last_uses (key, used_at) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET used_at = excluded.used_at"
)


class LastUses:
    """The times at which callers were last active. Thread-safe.

    A background thread stores the times, so requests do not wait for the database.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # The cache saves a write to the database, and a commit to the disk, for each request.
        self._noted: Cache[str, tuple[float, str]] = Cache(MAX_NOTE_BYTES, lambda key, _: 150 + size_of(key))
        self._unsaved: dict[str, str] = {}
        self._lock = threading.Lock()
        self._writer: tuple[int, threading.Timer] | None = None  # (id of the process that started it, thread)

    def note_token(self, name: str) -> None:
        self._note(token_key(name))

    def note_user(self, user_id: int) -> None:
        self._note(user_key(user_id))

    def _note(self, key: str) -> None:
        noted = self._noted.get(key)
        if noted is not None and monotonic() - noted[0] < NOTE_INTERVAL_S:
            return
        at = now()
        self._noted.put(key, (monotonic(), at))
        with self._lock:
            self._unsaved[key] = at
            # Threads do not survive a fork.
            if self._writer is None or self._writer[0] != os.getpid():
                timer = threading.Timer(WRITE_DELAY_S, self.save)
                timer.daemon = True
                self._writer = (os.getpid(), timer)
                timer.start()

    def save(self) -> None:
        """Write unsaved times to the database. If this fails, the next call tries again."""
        with self._lock:
            self._writer = None
            rows = dict(self._unsaved)
            self._unsaved.clear()
        # A removed database must not be created again.
        if not rows or not self._engine.is_current():
            return
        try:
            with self._engine.writing() as connection:
                connection.executemany(_SAVE, list(rows.items()))
        except ApiError:
            with self._lock:
                self._unsaved = {**rows, **self._unsaved}

    def close(self) -> None:
        """Stop the background thread. Times that have not been stored are lost."""
        with self._lock:
            if self._writer is not None:
                self._writer[1].cancel()

    def all(self) -> Mapping[str, str]:
        with self._engine.reading() as connection:
            saved = dict(connection.execute("SELECT key, used_at FROM last_uses").fetchall())
        return {**saved, **{key: noted[1] for key, noted in self._noted.items()}}

    def forget(self, key: str) -> None:
        """Delete a caller's time, so that a new caller with the same name does not inherit it."""
        self._noted.remove(key)
        with self._lock:
            self._unsaved.pop(key, None)
        with self._engine.writing() as connection:
            connection.execute("DELETE FROM last_uses WHERE key = ?", (key,))


def token_key(name: str) -> str:
    return f"token {name}"


def user_key(user_id: int) -> str:
    return f"user {user_id}"
