"""Opening a site for a server, a command or a test.

Only `open_site` creates a site that can be written. This ensures that all writes use the git remote, the
settings for commits, and the event log.
"""

from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from functools import cached_property, partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import cast

from server.database.address import is_postgres
from server.database.notices import COMMITS, Notices
from server.database.queue import Queue
from server.errors import ApiError
from server.events.recorder import Recorder
from server.history.past import PastStates
from server.jobs.job import Timing
from server.site.change import Change
from server.site.loading import Progress, end_with_parent
from server.site.parts import Arbiter, Parts
from server.site.site import Site

# The start of a server waits at most this long for the comparison with the event log.
RECORD_TIMEOUT_S = 10.0
# called with each change, and the number of seconds that it took
ReportOf = Callable[[Site, Change, float], None]


class Mode(Enum):
    """Purpose for which a site is opened.

    - READ: only for reading. A write raises ReadOnlySiteError.
    - COMMAND: for reading and writing by a command. A server for the same site may be running at the same
      time.
    - SERVER: for reading and writing by the workers that this process forks.
    """

    READ = auto()
    COMMAND = auto()
    SERVER = auto()


class OpenSite:
    """A site that has been loaded, together with the services that it uses. It is created by `open_site`."""

    def __init__(
        self,
        root: Path,
        mode: Mode,
        report: ReportOf | None,
        request_reload: Callable[[], None] | None,
        timing: Timing,
    ) -> None:
        self.mode, self.timing = mode, timing
        report_change = partial(self._report, report) if report else None
        make_arbiter = None if mode is Mode.READ else self._make_arbiter
        self.site = Site(root, Parts(make_arbiter, report_change, request_reload))

    @cached_property
    def past(self) -> PastStates:
        """The states of the site at its past commits."""
        return PastStates(self.site)

    @cached_property
    def recorder(self) -> Recorder:
        """The object that records changes in the event log. All workers of a server share it."""
        accounts, served = self.site.state.settings.accounts, self.mode is Mode.SERVER
        return Recorder(self.site.root, self.site.replaced, accounts=accounts, served=served)

    @cached_property
    def notices(self) -> Notices:
        """The object that notifies other machines about changes. Nothing is sent until a worker starts this
        object.
        """
        return Notices(self.site.state.settings.accounts)

    def _report(self, report: ReportOf, change: Change, seconds: float) -> None:
        report(self.site, change, seconds)

    def record_events(self) -> None:
        """Start recording all changes to the site in the event log."""
        self.site.observe(self.recorder, self.recorder.committed)

    def record_before_fork(self) -> None:
        """Compare all files with the event log, and log the differences, before workers are forked.

        This runs in a process of its own, because it copies the memory that contains all entries, and because
        a database connection can't be used after a fork. If the log is in PostgreSQL, a worker does it
        instead, because a slow network must not delay the start.
        """
        if self.mode is Mode.SERVER and not is_postgres(self.site.state.settings.accounts):
            process = get_context("fork").Process(target=self._record)
            process.start()
            process.join(RECORD_TIMEOUT_S)
            process.kill()  # If it is still running, a worker does its work.
            process.join(RECORD_TIMEOUT_S)

    def _record(self) -> None:
        end_with_parent()
        with suppress(ApiError, OSError):  # Then a worker does it, and logs the error.
            self.site.record()

    def _make_arbiter(self) -> Arbiter:
        """Return the arbiter, which pushes writes to the git remote before they take effect. Its module is
        imported only when the first write needs it.
        """
        takeover = import_module("server.history.remote.takeover").Takeover(self.past)
        # A command doesn't notify other machines, because it may be unable to connect to PostgreSQL. Notices
        # are not needed to detect conflicts: if two writes conflict, the git remote rejects one of them.
        is_server = self.mode is Mode.SERVER
        notify = partial(self.notices.notify, COMMITS) if is_server else _ignore
        queue = Queue(self.site.state.settings.accounts if is_server else "")
        return cast(Arbiter, import_module("server.history.remote.arbiter").Arbiter(takeover, notify, queue))


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
    timing: Timing | None = None,
) -> OpenSite:
    """Open and load the site in the folder `root`. Raises SetupError if the site's settings or schemas are
    invalid.

    - `progress`, `cores` and `nice` are passed to `Site.load`.
    - `report` is called after each write by this process.
    - `request_reload` is called after a schema change in a large site. It makes the supervisor start new
      workers.
    - `records`: whether changes are recorded in the event log. If this is None, a server records changes. A
      command records its changes only if the event log is a file; otherwise, a server records them when it
      detects them.
    - `timing`: the intervals between runs of a server's jobs
    """
    opened = OpenSite(root, mode, report, request_reload, timing or Timing())
    site = opened.site
    site.load(progress, cores, nice)
    if records is None:
        is_file = not is_postgres(site.state.settings.accounts)
        records = mode is Mode.SERVER or (mode is Mode.COMMAND and is_file)
    if records:
        opened.record_events()
    return opened


def _ignore(_: str) -> None:
    """Do nothing. A command uses this function instead of notifying other machines, which then find its
    changes by polling the git remote.
    """
