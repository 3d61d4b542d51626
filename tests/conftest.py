"""Fixtures for all tests: a site of real files in a temporary folder, and the app that serves it."""

import gc
import subprocess
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from argon2 import PasswordHasher

from server.api.wsgi_server import GC_THRESHOLDS
from server.auth import passwords
from server.errors import LogUnavailableError
from server.events.database import EventDatabase
from server.site.site import Site
from tests.buckets import KEYS, S3, s3_server
from tests.ci import IN_CI
from tests.examples import load_profile
from tests.postgres import Postgres, postgres
from tests.signals import restore_in_children
from tests.sites import Api, Files, load
from tests.waiting import until

load_profile()
restore_in_children()

REAL = {name: getattr(passwords, name) for name in ("_HASHER", "_NOBODY")}


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hash passwords with minimal cost, because hundreds of tests create users."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", cheap)
        patch.setattr(passwords, "_NOBODY", cheap.hash("nobody"))
        yield


@pytest.fixture
def real_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords with the parameters that a real site uses."""
    for name, value in REAL.items():
        monkeypatch.setattr(passwords, name, value)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests in modules that start processes. `make test-quick` leaves them out."""
    for item in items:
        if isinstance(item, pytest.Function) and _starts_processes(item.module):
            item.add_marker("process")


@cache
def _starts_processes(module: ModuleType) -> bool:
    imported = vars(module).values()
    return any(
        value is subprocess or getattr(value, "__module__", "") in ("subprocess", "tests.servers")
        for value in imported
    )


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, because they stay in memory until the end.

    From then on, collect as rarely as a server does, which saves a tenth of the processor time of tests that
    call the app in their own process.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


@pytest.fixture(scope="session", autouse=True)
def unfrozen() -> Iterator[None]:
    """Disable `gc.freeze`, so that the garbage collector can free the sites of finished tests.

    A server calls `gc.freeze` because it has only one site. Unfreezing all objects after each module took 0.8
    s each time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Free the sites of a module's tests and everything that they have open."""
    yield
    gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a skipped test as failed in CI."""
    report = yield
    if IN_CI and report.skipped and isinstance(report.longrepr, tuple):
        report.outcome, report.longrepr = "failed", f"nothing may be skipped in CI: {report.longrepr[2]}"
    return report


MakeSite = Callable[[Files], Site]
MakeApi = Callable[[Files], Api]


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A running PostgreSQL server."""
    with postgres() as running:
        yield running


@pytest.fixture(scope="session")
def s3_running() -> Iterator[S3]:
    """A running S3 server."""
    with s3_server() as running:
        yield running


@pytest.fixture
def s3(s3_running: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """An S3 server with an empty bucket, and its credentials in the environment."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    s3_running.empty()
    return s3_running


def has_tables(log: EventDatabase) -> bool:
    """Create the tables of an event log. Return False if the database does not respond in time."""
    try:
        log.bounds()
    except LogUnavailableError:
        return False
    return True


@pytest.fixture
def accounts(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The value of `accounts` in `site.yaml`. It is "" for SQLite. Tests with `IN_BOTH_DATABASES` also run
    with PostgreSQL.
    """
    if getattr(request, "param", "sqlite") == "sqlite":
        return ""
    running: Postgres = request.getfixturevalue("database")
    running.empty()
    log = EventDatabase(tmp_path, running.url)
    until(lambda: has_tables(log))  # on a busy machine, a write would not wait for the tables to be created
    log.close()
    return running.url


@pytest.fixture
def make_site(tmp_path: Path) -> MakeSite:
    """Return a function that writes files, given by path, and loads the site."""

    return lambda files: load(tmp_path, files)


@pytest.fixture
def make_api(make_site: MakeSite) -> Iterator[MakeApi]:
    """Return a function that writes a site's files and returns the app that serves the site."""
    made: list[Api] = []

    def make(files: Files) -> Api:
        made.append(Api.of(make_site(files)))
        return made[-1]

    yield make
    for api in made:
        api.accounts.close()
