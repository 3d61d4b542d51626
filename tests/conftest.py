"""Fixtures: a site of real files in a temporary folder, and the app that serves it."""

import gc
import subprocess
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from argon2 import PasswordHasher

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
    """Hash passwords with the least work there is, since hundreds of tests have users."""
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", cheap)
        patch.setattr(passwords, "_NOBODY", cheap.hash("nobody"))
        yield


@pytest.fixture
def real_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords as a site does."""
    for name, value in REAL.items():
        monkeypatch.setattr(passwords, name, value)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of modules that start processes, which `make test-quick` leaves out."""
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
    """Keep the garbage collector from looking at modules and tests, which stay until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def unfrozen() -> Iterator[None]:
    """Let the garbage collector find the sites of tests that have ended.

    A server has only one site, and freezes it. To unfreeze all after each module took 0.8 s each time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def collected() -> Iterator[None]:
    """Free the sites of a module's tests, with what they have open."""
    yield
    gc.collect()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped in CI has failed."""
    report = yield
    if IN_CI and report.skipped and isinstance(report.longrepr, tuple):
        report.outcome, report.longrepr = "failed", f"nothing may be skipped in CI: {report.longrepr[2]}"
    return report


MakeSite = Callable[[Files], Site]
MakeApi = Callable[[Files], Api]


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A PostgreSQL server."""
    with postgres() as running:
        yield running


@pytest.fixture(scope="session")
def s3_running() -> Iterator[S3]:
    """An S3 server."""
    with s3_server() as running:
        yield running


@pytest.fixture
def s3(s3_running: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """An S3 server with an empty bucket, and credentials for it in the environment."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    s3_running.empty()
    return s3_running


def has_tables(log: EventDatabase) -> bool:
    """Make the tables of a log; False while its database does not answer in time."""
    try:
        log.bounds()
    except LogUnavailableError:
        return False
    return True


@pytest.fixture
def accounts(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return `accounts` of `site.yaml`: "" for SQLite; with `IN_BOTH_DATABASES` PostgreSQL as well."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return ""
    running: Postgres = request.getfixturevalue("database")
    running.empty()
    log = EventDatabase(tmp_path, running.url)
    until(lambda: has_tables(log))  # for which a change of content would not wait on a busy machine
    log.close()
    return running.url


@pytest.fixture
def make_site(tmp_path: Path) -> MakeSite:
    """Makes a site of files, by path, and loads it."""

    return lambda files: load(tmp_path, files)


@pytest.fixture
def make_api(make_site: MakeSite) -> Iterator[MakeApi]:
    """Makes a site of files and the app that serves it."""
    made: list[Api] = []

    def make(files: Files) -> Api:
        made.append(Api.of(make_site(files)))
        return made[-1]

    yield make
    for api in made:
        api.accounts.close()
