"""A PostgreSQL server for tests, if PostgreSQL is installed."""

import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.servers import children

BINARIES = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
# For tests of statements that behave differently in the two databases: sort order, claims and stored
# values.
IN_BOTH_DATABASES = pytest.mark.parametrize("accounts", ["sqlite", "postgres"], indirect=True)


@dataclass(frozen=True)
class Postgres:
    """A running server, whose files are in a folder."""

    folder: Path
    url: str
    pg_ctl: Path
    user: str | None

    def control(self, action: str, *options: str) -> None:
        command = [str(self.pg_ctl), action, "-D", str(self.folder / "data"), *options]
        subprocess.run(command, check=True, cwd=self.folder, user=self.user, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        """Start the server on a socket in its folder."""
        listen = f"-F -k {self.folder} -c listen_addresses="  # -F: no fsync, because no machine fails here
        self.control("start", "-o", listen, "-l", str(self.folder / "log"), "-w")

    def empty(self) -> None:
        """Delete all tables and close connections that are still open."""
        others = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bifolio' AND pid != %s"
        )
        with psycopg.connect(self.url) as connection:
            connection.execute(others, (connection.info.backend_pid,))
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    def start_again(self) -> None:
        """Restart the server, which closes all connections."""
        self.control("stop", "-m", "fast")
        self.start()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Context manager: pause all server processes. Their connections stay open."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        processes = [first, *children(first)]
        _send(processes, signal.SIGSTOP)
        try:
            yield
        finally:
            _send(processes, signal.SIGCONT)


def _send(processes: list[int], number: int) -> None:
    """Send a signal to processes. Ignore those that have ended, such as the process of a closed
    connection.
    """
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Context manager: run a server. Skip the test if PostgreSQL is not installed."""
    initdb = BINARIES[-1] if BINARIES else shutil.which("initdb")
    if not initdb:
        pytest.skip("there is no PostgreSQL server on this machine")
    # PostgreSQL does not run as root, so root starts it as the user that the package has created.
    user = "postgres" if os.getuid() == 0 else None
    if user and user not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("there is no user postgres to run a server as")
    folder = Path(tempfile.mkdtemp(prefix="bifolio-pg-"))
    data = folder / "data"
    if user:
        shutil.chown(folder, user)
    initialize = [initdb, "-D", str(data), "-A", "trust", "-U", "bifolio", "--no-sync"]
    subprocess.run(initialize, check=True, capture_output=True, cwd=folder, user=user)
    url = f"postgresql://bifolio@/postgres?host={folder}"
    running = Postgres(folder, url, Path(initdb).parent / "pg_ctl", user)
    running.start()
    try:
        yield running
    finally:
        running.control("stop", "-m", "immediate")
        shutil.rmtree(folder, ignore_errors=True)
