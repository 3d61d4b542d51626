"""Notices between a site's machines, sent with PostgreSQL's LISTEN and NOTIFY."""

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

COMMITS = "commits"  # a new commit on the remote; the payload is its id
ACCOUNTS = "accounts"  # changed users, tokens or sessions
EVENTS = "events"  # new events; the payload is the number of the last event
# Multiple sites can use one database, in different schemas.
CHANNEL = "'bifolio_' || md5(current_schema())"
NOTIFY = f"SELECT pg_notify({CHANNEL}, %s)"  # The parameter is a result of `message`.
MAX_MESSAGE_BYTES = 7999
HEARTBEAT_INTERVAL_S = 5.0  # A connection that has been idle for this long is tested.
BACKOFFS_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # before each attempt to reconnect
MAX_QUEUED_NOTICES = 100  # while there is no connection


def message(topic: str, payload: str = "") -> str:
    text = f"{topic} {payload}"
    if len(text.encode()) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a notice has at most {MAX_MESSAGE_BYTES} bytes")
    return text


def notify(connection: Connection, topic: str, payload: str) -> None:
    """Send a notice when the transaction commits. Raises ValueError if the notice is too long."""
    connection.execute(NOTIFY.replace("%s", "?"), (message(topic, payload),))


class Notices:
    """Thread-safe sender and receiver of notices. Call `start` after forking."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._calls: dict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._lock = threading.Lock()
        self._waiting: dict[str, None] = {}  # messages to send, without duplicates
        self._stopping, self._connected = threading.Event(), False
        self._thread: threading.Thread | None = None

    @property
    def connected(self) -> bool:
        return self._connected

    def listen(self, topic: str, callback: Callable[[str], None]) -> None:
        """Register a function that is called with the payload of each notice on a topic. It must not block.

        It is also called with "" whenever a connection to the database is made, because notices may have been
        missed.
        """
        self._calls[topic].append(callback)

    def notify(self, topic: str, payload: str = "") -> None:
        """Queue a notice. If the queue is full, drop the oldest one."""
        text = message(topic, payload)
        with self._lock:
            if self._thread is None:
                return
            self._waiting.pop(text, None)
            self._waiting[text] = None
            while len(self._waiting) > MAX_QUEUED_NOTICES:
                del self._waiting[next(iter(self._waiting))]
            self._wake()

    def start(self) -> None:
        """Start the thread that sends and receives notices.

        Do nothing if the site does not use PostgreSQL.
        """
        if not is_postgres(self._url):
            return
        self._wake_sender, self._wake_receiver = socket.socketpair()
        for end in (self._wake_sender, self._wake_receiver):
            end.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send the queued notices if possible, and stop the thread."""
        self._stopping.set()
        with self._lock:
            thread = self._thread
            if thread is None:
                return
            self._wake()
        thread.join(timeout=5)

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # If the buffer is full, the thread will wake up anyway.
            self._wake_sender.send(b".")

    def _run(self) -> None:
        try:
            self._reconnect_forever()
        finally:
            with self._lock:
                self._thread = None
                self._wake_sender.close()
                self._wake_receiver.close()

    def _reconnect_forever(self) -> None:
        # For a series of failures, only the first failure and the recovery are logged.
        try:
            postgres: Any = import_module("server.database.postgres")  # a lazy import (docs/packages.py)
        except ImportError:  # The error is reported when the accounts are opened.
            return
        error_type, failures = postgres.BoundedConnection.Error, 0
        while not self._stopping.is_set():
            try:
                with postgres.connect_to(self._url) as connection:
                    self._begin(connection)
                    if failures:
                        log.info("notifications of changes on other machines work again")
                    failures = 0
                    self._serve(connection)
            except error_type as error:
                self._connected = False
                if not failures and not self._stopping.is_set():
                    line = (str(error) or type(error).__name__).splitlines()[0]
                    log.error("notifications of changes on other machines don't arrive: %s", line)
                self._stopping.wait(BACKOFFS_S[min(failures, len(BACKOFFS_S) - 1)])
                failures += 1

    def _begin(self, connection: Any) -> None:
        # Listeners are called because they may have missed notices.
        (channel,) = connection.execute(f"SELECT {CHANNEL}").fetchone()
        connection.add_notify_handler(lambda notice: self._handle(notice.payload))
        connection.execute(f'LISTEN "{channel}"')
        self._connected = True
        for topic in list(self._calls):
            self._call(topic, "")

    def _serve(self, connection: Any) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_receiver, selectors.EVENT_READ)
            while True:
                ending = self._stopping.is_set()
                self._send(connection)
                if ending:
                    return
                selector.select(HEARTBEAT_INTERVAL_S)
                with suppress(BlockingIOError):
                    self._wake_receiver.recv(1024)
                connection.execute("")  # receives notices, and fails if the connection is lost

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

    def _handle(self, text: str) -> None:
        topic, _, payload = text.partition(" ")
        self._call(topic, payload)

    def _call(self, topic: str, payload: str) -> None:
        for call in self._calls.get(topic, ()):
            try:
                call(payload)
            except Exception:
                log.exception("a notification about %s can't be processed", topic)
