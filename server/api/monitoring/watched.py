"""What all workers of a server have in common that is looked at from outside."""

from dataclasses import dataclass, field
from pathlib import Path

from server.api.monitoring.request_counts import RequestCounts
from server.auth.database.notices import Notices
from server.events.presence.table import PresenceTable
from server.events.recorder import Recorder
from server.events.stream_counts import StreamCounts
from server.jobs.table import JobTable


@dataclass(frozen=True, slots=True)
class Watched:
    """What records the events of a site, the counts of its requests and streams, who is where, and its jobs.

    `notices` are those of each process: it starts them for itself.
    """

    recorder: Recorder
    counts: RequestCounts = field(default_factory=RequestCounts)
    streams: StreamCounts = field(default_factory=StreamCounts)
    presence: PresenceTable = field(default_factory=PresenceTable)
    notices: Notices = field(default_factory=lambda: Notices(""))
    jobs: JobTable = field(default_factory=JobTable)

    @classmethod
    def alone(cls, root: Path, accounts: str) -> "Watched":
        """What there is of the site at `root` where one process alone answers."""
        return cls(Recorder(root, accounts=accounts))
