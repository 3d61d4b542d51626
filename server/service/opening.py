"""Opening a site for a server, command or test."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import cached_property, partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import cast

from server.database.address import is_postgres
from server.database.notices import COMMITS, Notices
from server.database.queue import PushTurnQueue
from server.errors import ApiError
from server.events.recorder import Recorder
from server.history.past import PastStates
from server.jobs.job import Timing
from server.site.change import Change
from server.site.loading import Progress
from server.site.parts import Arbiter, SiteConnections
from server.site.site import Site
from server.storage.helper_processes import end_with_parent

log = logging.getLogger("bifolio")

# The server starts after this time, even if the files have not been compared with the event log yet.
RECORD_TIMEOUT_S = 10.0
# called with each change and its duration in seconds
ReportOf = Callable[[Site, Change, float], None]


class Mode(Enum):
    """The purpose for which a site is opened.

    - `READ`: every write raises ReadOnlySiteError.
    - `COMMAND`: the site can be opened while a server is running.
    - `SERVER`: for a server, which forks workers.
    """

    READ = auto()
    COMMAND = auto()
    SERVER = auto()


class OpenSite:
    """A loaded site, and the services that use it."""

    def __init__(
        self,
        root: Path,
        mode: Mode,
        report: ReportOf | None,
        request_reload: Callable[[], None] | None,
        timing: Timing,
        is_next_generation: bool = False,
    ) -> None:
        self.mode, self.timing = mode, timing
        report_change = partial(self._report, report) if report else None
        make_arbiter = None if mode is Mode.READ else self._make_arbiter
        self.site = Site(
            root, SiteConnections(make_arbiter, report_change, request_reload, is_next_generation)
        )

    @cached_property
    def past(self) -> PastStates:
        return PastStates(self.site)

    @cached_property
    def recorder(self) -> Recorder:
        """The recorder that writes changes to the event log. All workers of a server share it."""
        accounts, is_server = self.site.state.settings.accounts, self.mode is Mode.SERVER
        return Recorder(self.site.root, self.site.replaced, accounts_url=accounts, is_server=is_server)

    @cached_property
    def notices(self) -> Notices:
        return Notices(self.site.state.settings.accounts)

    def _report(self, report: ReportOf, change: Change, seconds: float) -> None:
        try:
            report(self.site, change, seconds)
        except Exception:  # The change has been made, so the request that made it must not fail.
            log.exception("a change could not be reported")

    def record_events(self) -> None:
        self.site.observe(self.recorder, self.recorder.committed)

    @contextmanager
    def recording_changes(self) -> Iterator[None]:
        """Context manager: log file changes that were made before the server started, in a separate process.

        On exit, it waits for the process for at most RECORD_TIMEOUT_S seconds.
        """
        if self.mode is not Mode.SERVER or is_postgres(self.site.state.settings.accounts):
            yield
            return
        process = get_context("fork").Process(target=self._record)
        process.start()
        try:
            yield
            process.join(RECORD_TIMEOUT_S)
        finally:
            process.kill()  # If the process has not finished, a worker does its work later.
            process.join(RECORD_TIMEOUT_S)

    def _record(self) -> None:
        end_with_parent()
        with suppress(ApiError, OSError):  # After a failure, a worker tries again and logs the error.
            self.site.record()

    def _make_arbiter(self) -> Arbiter:
        takeover = import_module("server.history.remote.apply_commits").Takeover(self.past)
        # A command doesn't notify other machines, because it might be unable to connect to PostgreSQL. This
        # is safe: If two writes conflict, the git remote rejects one of them.
        is_server = self.mode is Mode.SERVER
        notify = partial(self.notices.notify, COMMITS) if is_server else _ignore_notice
        queue = PushTurnQueue(self.site.state.settings.accounts if is_server else "")
        arbiter = import_module("server.history.remote.push_before_serving").Arbiter
        return cast(Arbiter, arbiter(takeover, notify, queue))


def open_site(
    root: Path,
    mode: Mode,
    *,
    progress: Progress | None = None,
    cores: int = 1,
    nice: int = 0,
    report: ReportOf | None = None,
    request_reload: Callable[[], None] | None = None,
    records: bool | None = None,
    is_next_generation: bool = False,
    timing: Timing | None = None,
) -> OpenSite:
    """Open and load a site. Raises SetupError.

    `report` is called after each write by this process, and `request_reload` if a large site needs new
    workers. `records` determines whether changes are recorded in the event log. By default, servers record
    them, and commands do so if the log is a file. `is_next_generation` must be set if
    `Site.start_new_generation` will be called.
    """
    opened = OpenSite(root, mode, report, request_reload, timing or Timing(), is_next_generation)
    site = opened.site
    site.load(progress, cores, nice)
    if records is None:
        is_file = not is_postgres(site.state.settings.accounts)
        records = mode is Mode.SERVER or (mode is Mode.COMMAND and is_file)
    if records:
        opened.record_events()
    return opened


def _ignore_notice(_: str) -> None:
    """Do nothing: other machines learn about a command's changes by polling git."""
