"""A server's condition: the status of its parts, and its pending work."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from server.api.identities import Identities
from server.database.file import database_file, is_usable_database
from server.documents.timestamps import from_seconds
from server.errors import ApiError, GitError, SetupError, StorageError
from server.events.recorder import Recorder
from server.events.webhooks.delivery_table import waiting
from server.history.remote.backlog import Backlog, backlog
from server.history.remote.remote_status import BEHIND as LAGGING
from server.history.remote.remote_status import RemoteStatus, read_remote_status
from server.site.site import Site
from server.storage.bucket.site_bucket import SiteBucket

AWAY_STATUS = "away"
READ_ONLY_STATUS = "read-only"
READY_STATUS = "ready"
BEHIND_STATUS = "behind"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server's status.

    - `accounts`, `events`, `media`: the status of the accounts database, the event log and the media bucket.
    - `commits`: the number of writes that have not been committed yet.
    - `last_event`: the number of the last event.
    - `deliveries`: the number of waiting deliveries for each webhook.
    - `remote`: None if the site does not fetch from a git remote.
    - `push`: None if the site does not push to a git remote.
    """

    accounts: str
    commits: int
    events: str
    last_event: int
    deliveries: Mapping[str, int]
    media: str
    remote: RemoteStatus | None
    push: Backlog | None

    @property
    def lag_s(self) -> float:
        behind = self.remote is not None and self.remote.state == LAGGING
        return max(time.time() - self.remote.since, 0.0) if self.remote and behind else 0.0

    def as_json(self, *, detailed: bool = False) -> Mapping[str, Any]:
        """Return the JSON for `/_health/ready`.

        If `detailed` is set, it also contains branches, commits, error messages and file paths.
        """
        return {
            "content": READY_STATUS,
            "accounts": self.accounts,
            "events": self.events,
            "media": self.media,
            "remote": self.remote and _remote(self.remote, detailed=detailed),
            "push": self.push and _push(self.push, detailed=detailed),
            "commitsWaiting": self.commits,
            "deliveriesWaiting": sum(self.deliveries.values()),
        }


def server_status(site: Site, identities: Identities, recorder: Recorder, bucket: SiteBucket) -> ServerStatus:
    """Return the server's status. The function may have to wait for a database server."""
    last, deliveries, missed = 0, dict[str, int](), recorder.missed
    try:
        last = recorder.database.bounds().last
        deliveries = recorder.database.query(waiting)
    except StorageError:
        missed = True
    return ServerStatus(
        accounts=_condition_of_accounts(site, identities),
        commits=site.committer.queue.waiting,
        events=BEHIND_STATUS if missed else READY_STATUS,
        last_event=last,
        deliveries=deliveries,
        media=READY_STATUS if bucket.is_ready(site.state.settings) else AWAY_STATUS,
        remote=read_remote_status(site.root) if site.state.settings.git.follow is not None else None,
        push=_backlog(site) if site.state.settings.git.push else None,
    )


def _backlog(site: Site) -> Backlog:
    try:
        return backlog(site.root, site.state.settings)
    except GitError as error:
        return Backlog(error=error.message)


def _remote(standing: RemoteStatus, *, detailed: bool) -> Mapping[str, Any]:
    since = from_seconds(standing.since) if standing.since else None
    told = {"state": standing.state, "behind": standing.commits, "since": since}
    if detailed:
        told |= {"branch": standing.branch, "commit": standing.commit}
        told |= {"reason": standing.reason, "files": list(standing.files)}
    return told


def _push(backlog: Backlog, *, detailed: bool) -> Mapping[str, Any]:
    told = {
        "commits": backlog.commit_count,
        "since": from_seconds(backlog.oldest_at) if backlog.oldest_at else None,
    }
    return {**told, "reason": backlog.error, "files": list(backlog.files)} if detailed else told


def _condition_of_accounts(site: Site, identities: Identities) -> str:
    if not site.state.settings.accounts:
        # If the site's folder is missing, don't create a file in its place.
        is_ready = False
        with suppress(SetupError):
            is_ready = not site.folder.is_gone() and is_usable_database(database_file(site.root))
        return READY_STATUS if is_ready else AWAY_STATUS
    with suppress(ApiError):
        identities.users.get(0)
        return READ_ONLY_STATUS if identities.is_database_read_only else READY_STATUS
    return AWAY_STATUS


def count_versions(site: Site) -> Iterator[tuple[str, str, str, int]]:
    """Yield the number of document versions for each content type, locale and status."""
    snapshot = site.state.snapshot
    for type_ in site.state.schema.content_types:
        counts: dict[tuple[str, str], int] = {}
        for _, locale, status in snapshot.tables[type_.uid].versions:
            counts[locale, status] = counts.get((locale, status), 0) + 1
        for (locale, status), count in sorted(counts.items()):
            yield type_.singular, locale, status, count


def count_problems(site: Site) -> Mapping[str, int]:
    """Return the number of problems by severity. Broken relations are not counted."""
    _, configuration, _, entries = site.basis()
    found = Counter(problem.severity for problem in configuration.problems)
    for entry in entries.values():
        if entry.problems:
            found.update(problem.severity for problem in entry.problems)
    return {severity: found[severity] for severity in ("error", "warning")}
