"""Opening of a site for a server, a command or a test.

A writable site is created only by `open_site`. This guarantees that every write uses the git remote, the
commit settings and the event log.
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import cast

from server.database.address import is_postgres
from server.database.notices import COMMITS, Notices
from server.database.queue import Queue
from server.events.recorder import Recorder
from server.history.past import PastStates
from server.jobs.job import Timing
from server.site.change import Change
from server.site.loading import Progress
from server.site.site import Parts, Site
from server.site.writing.preparing import Arbiter

ReportOf = Callable[[Site, Change, float], None]  # called with each change and its duration in seconds


class Mode(Enum):
    """Ways to use an open site.

    - READ: only reads. A write raises ReadOnlySiteError.
    - COMMAND: a command reads and writes. A server for the same site may be running at the same time.
    - SERVER: this process forks workers, which read and write.
    """

    READ = auto()
    COMMAND = auto()
    SERVER = auto()


class OpenSite:
    """A loaded site, together with the services that it uses. Call `open_site` to create one."""

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
        """Past states of the site, at its commits."""
        return PastStates(self.site)

    @cached_property
    def recorder(self) -> Recorder:
        """Recorder for the event log. All workers of a server share it."""
        accounts, served = self.site.state.settings.accounts, self.mode is Mode.SERVER
        return Recorder(self.site.root, self.site.replaced, accounts=accounts, served=served)

    @cached_property
    def notices(self) -> Notices:
        """Notifier that informs other machines about changes. It sends nothing until
        a worker has started it.
        """
        return Notices(self.site.state.settings.accounts)

    def _report(self, report: ReportOf, change: Change, seconds: float) -> None:
        report(self.site, change, seconds)

    def record_events(self) -> None:
        """Record all changes to the site from now on in its event log."""
        self.site.observe(self.recorder, self.recorder.committed)

    def _make_arbiter(self) -> Arbiter:
        """Create the arbiter, which pushes to the git remote. Its modules are imported only when the first
        write needs them.
        """
        takeover = import_module("server.history.remote.takeover").Takeover(self.past)
        # Commands send no notifications through PostgreSQL, because they may have no connection to it. The
        # remote rejects conflicting writes anyway.
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
    """Open and load the site in the folder `root`. Raises SetupError if its configuration is invalid.

    - `progress`, `cores` and `nice` are passed to `Site.load`.
    - `report` is called after each write by this process.
    - `request_reload` is called after a schema change on a large site. It tells the supervisor to start new
      workers.
    - `records`: whether to record changes in the event log. By default, a server records them. A command
      records them only if the log is a file; otherwise, the server records them at its next scan.
    - `timing`: the intervals at which a server's jobs run.
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
    """Do nothing. Used if no notifications are sent; other machines then find
    changes by polling the remote.
    """
