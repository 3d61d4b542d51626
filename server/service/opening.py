"""Opens a site: the one place that assembles its parts, for servers, commands and tests alike.

A site that was made in any other way can't be written to. So every write asks the git remote that the
settings name, is committed as they say, and is recorded in the log of events, whoever makes it.
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import cast

from server.auth.database.file import is_postgres
from server.auth.database.notices import COMMITS, Notices
from server.auth.database.queue import Queue
from server.events.recorder import Recorder
from server.history.past import PastStates
from server.jobs.job import Timing
from server.site.change import Change
from server.site.loading import Progress
from server.site.parts import Parts
from server.site.site import Site
from server.site.writing.preparing import Arbiter

ReportOf = Callable[[Site, Change, float], None]  # what a change of a site came to, and in how many seconds


class Mode(Enum):
    """How a site is used once it is open.

    READ: it is only read; a write raises ReadOnlySiteError. COMMAND: a command writes, beside a server or
    without one. SERVER: the workers of a server, forked from the process that opens it, read and write.
    """

    READ = auto()
    COMMAND = auto()
    SERVER = auto()


class OpenSite:
    """A loaded site with what was assembled for it. `open_site` makes it."""

    def __init__(
        self,
        root: Path,
        mode: Mode,
        report: ReportOf | None,
        ask_for_next: Callable[[], None] | None,
        timing: Timing,
    ) -> None:
        self.mode, self.timing = mode, timing
        told = partial(self._report, report) if report else None
        make_arbiter = None if mode is Mode.READ else self._make_arbiter
        self.site = Site(root, Parts(make_arbiter, told, ask_for_next))

    @cached_property
    def past(self) -> PastStates:
        """The states of the site at its commits."""
        return PastStates(self.site)

    @cached_property
    def recorder(self) -> Recorder:
        """What records the events of the site, once it is loaded. A server's workers share it."""
        accounts, served = self.site.state.settings.accounts, self.mode is Mode.SERVER
        return Recorder(self.site.root, self.site.replaced, accounts=accounts, served=served)

    @cached_property
    def notices(self) -> Notices:
        """What tells other machines of changes. Each worker of a server starts it; else nobody is told."""
        return Notices(self.site.state.settings.accounts)

    def _report(self, report: ReportOf, change: Change, seconds: float) -> None:
        report(self.site, change, seconds)

    def record_events(self) -> None:
        """Record each change of the site from now on in its log of events."""
        self.site.observe(self.recorder, self.recorder.committed)

    def _make_arbiter(self) -> Arbiter:
        """See `Parts`. Merging is loaded by the first write that needs it, in the process that writes."""
        takeover = import_module("server.history.remote.takeover").Takeover(self.past)
        # A command has no part in what the machines tell one another in PostgreSQL: it may run where that
        # can't be reached, and the remote decides in any case.
        is_server = self.mode is Mode.SERVER
        tell = partial(self.notices.notify, COMMITS) if is_server else _tell_nobody
        queue = Queue(self.site.state.settings.accounts if is_server else "")
        return cast(Arbiter, import_module("server.history.remote.arbiter").Arbiter(takeover, tell, queue))


def open_site(
    root: Path,
    mode: Mode,
    *,
    progress: Progress | None = None,
    cores: int = 1,
    nice: int = 0,
    report: ReportOf | None = None,
    ask_for_next: Callable[[], None] | None = None,
    records: bool | None = None,
    timing: Timing | None = None,
) -> OpenSite:
    """Open the site at `root` and load it. Raises SetupError where its configuration is broken.

    `progress`, `cores` and `nice` are those of `Site.load`, `ask_for_next` that of `Parts`, and `report` is
    called after each write of this process. `records` says whether changes are recorded in the log of events:
    else a server's are, and a command's where the log is a file. What a command does not record there, the
    next look of a server records. `timing` has the pauses of a server's jobs.
    """
    opened = OpenSite(root, mode, report, ask_for_next, timing or Timing())
    site = opened.site
    site.load(progress, cores, nice)
    if records is None:
        is_file = not is_postgres(site.state.settings.accounts)
        records = mode is Mode.SERVER or (mode is Mode.COMMAND and is_file)
    if records:
        opened.record_events()
    return opened


def _tell_nobody(_: str) -> None:
    """Tell no other machine of a commit: each asks the remote by itself."""
