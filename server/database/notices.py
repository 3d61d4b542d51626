"""Tells the servers of all machines that share a PostgreSQL what has changed, by its LISTEN and NOTIFY.

A notice has a topic and a payload. Each process of a server keeps one connection for them, in a thread of its
own. While it has none, it misses notices: so whoever listens is told when there is one again, as if by a
notice. Where the accounts are in no PostgreSQL, there are no other machines, and nothing is told.
"""

import logging
import selectors
import socket
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from server.database.address import is_postgres
from server.database.engine import Connection

log = logging.getLogger("bifolio")

COMMITS = "commits"  # that the branch at the git remote has moved; the payload is its commit
ACCOUNTS = "accounts"  # that users, tokens or logins have changed
EVENTS = "events"  # that events were recorded; the payload is the number of the last
# The channel of a site: several may be in one database, each in a schema of its own.
CHANNEL = "'bifolio_' || md5(current_schema())"
NOTIFY = f"SELECT pg_notify({CHANNEL}, %s)"  # with a `message`
MAX_MESSAGE_BYTES = 7999  # PostgreSQL's limit.
HEARTBEAT_INTERVAL_S = 5.0  # After so long without a notice, the connection is probed.
BACKOFFS_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # Before each attempt to reconnect.
MAX_QUEUED_NOTICES = 100  # Notices that are kept while there is no connection.


def message(topic: str, payload: str = "") -> str:
    """What is sent as a notice. Raises ValueError for one that is too long."""
    text = f"{topic} {payload}"
    if len(text.encode()) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a notice has at most {MAX_MESSAGE_BYTES} bytes")
    return text


def notify(connection: Connection, topic: str, payload: str) -> None:
    """Tell all processes that listen, once a transaction is done. Raises ValueError for what is too long."""
    connection.execute(NOTIFY.replace("%s", "?"), (message(topic, payload),))


class Notices:
    """The notices of the site whose accounts are at `url`, in one process. Safe to use from many threads.

    It may be made before a fork, and is started after it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._calls: dict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._lock = threading.Lock()
        self._waiting: dict[str, None] = {}  # messages to be sent, in order, each once
        self._stopping, self._connected = threading.Event(), False
        self._thread: threading.Thread | None = None

    @property
    def connected(self) -> bool:
        """Whether notices arrive now."""
        return self._connected

    def listen(self, topic: str, call: Callable[[str], None]) -> None:
        """Have a function called with the payload of each notice of a topic, those of this process included.

        It is called with "" as well whenever a connection was made, since notices may have been missed. The
        calls are made one after the other by a thread that listens: they must not wait for anything.
        """
        self._calls[topic].append(call)

    def notify(self, topic: str, payload: str = "") -> None:
        """Tell all processes that listen. It does not wait, and does not fail.

        Where there is no connection now, that is done once there is, for the newest notices.
        """
        text = message(topic, payload)
        with self._lock:
            if self._thread is None:
                return
            self._waiting.pop(text, None)
            self._waiting[text] = None
            while len(self._waiting) > MAX_QUEUED_NOTICES:
                del self._waiting[next(iter(self._waiting))]
            self._rouse()

    def start(self) -> None:
        """Begin to listen, and to send."""
        if not is_postgres(self._url):
            return
        self._rousing, self._roused = socket.socketpair()
        for end in (self._rousing, self._roused):
            end.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; notices that wait are sent if there is a connection."""
        self._stopping.set()
        with self._lock:
            thread = self._thread
            if thread is None:
                return
            self._rouse()
        thread.join(timeout=5)

    def _rouse(self) -> None:
        with suppress(BlockingIOError):  # Then enough is there to be read.
            self._rousing.send(b".")

    def _run(self) -> None:
        """Keep a connection until the end."""
        try:
            self._keep()
        finally:
            with self._lock:
                self._thread = None
                self._rousing.close()
                self._roused.close()

    def _keep(self) -> None:
        """Make connections, one after the other; that there is none is told, and that there is one again."""
        try:
            postgres: Any = import_module("server.database.postgres")  # docs/packages.py, LAZY
        except ImportError:  # There is no driver, as who opens the accounts says.
            return
        error_type, failures = postgres.BoundedConnection.Error, 0
        while not self._stopping.is_set():
            try:
                with postgres.connect_to(self._url) as connection:
                    self._begin(connection)
                    if failures:
                        log.info("this machine is notified of changes on other machines again")
                    failures = 0
                    self._serve(connection)
            except error_type as error:
                self._connected = False
                if not failures and not self._stopping.is_set():
                    line = (str(error) or type(error).__name__).splitlines()[0]
                    log.error("this machine is not notified of changes on other machines: %s", line)
                self._stopping.wait(BACKOFFS_S[min(failures, len(BACKOFFS_S) - 1)])
                failures += 1

    def _begin(self, connection: Any) -> None:
        """Listen on a new connection; then tell everybody, who may have missed something before."""
        (channel,) = connection.execute(f"SELECT {CHANNEL}").fetchone()
        connection.add_notify_handler(lambda notice: self._take(notice.payload))
        connection.execute(f'LISTEN "{channel}"')
        self._connected = True
        for topic in list(self._calls):
            self._call(topic, "")

    def _serve(self, connection: Any) -> None:
        """Take and send notices until the end. Raises psycopg.Error where the connection is lost."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._roused, selectors.EVENT_READ)
            while True:
                ending = self._stopping.is_set()
                self._send(connection)
                if ending:
                    return
                selector.select(HEARTBEAT_INTERVAL_S)
                with suppress(BlockingIOError):
                    self._roused.recv(1024)
                connection.execute("")  # What has arrived is taken with the answer, if there is one.

    def _send(self, connection: Any) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    return
                text = next(iter(self._waiting))
                del self._waiting[text]
            try:
                connection.execute(NOTIFY, (text,))
            except BaseException:
                with self._lock:
                    self._waiting = {text: None, **self._waiting}
                raise

    def _take(self, text: str) -> None:
        topic, _, payload = text.partition(" ")
        self._call(topic, payload)

    def _call(self, topic: str, payload: str) -> None:
        for call in self._calls.get(topic, ()):
            try:
                call(payload)
            except Exception:
                log.exception("a notice of %s could not be handled", topic)
