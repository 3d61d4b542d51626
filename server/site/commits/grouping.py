"""Grouping of queued writes into commits."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from server.site.commits.contents import content_digest
from server.site.commits.message import combine_messages, with_trailers
from server.storage.git.commit_queue import PendingWrite
from server.storage.git.own_commits import OwnVersion
from server.storage.git.written import KnownVersions


@dataclass(slots=True)
class Group:
    """Writes by one author that are combined into one commit."""

    writes: list[PendingWrite] = field(default_factory=list)

    @property
    def last(self) -> PendingWrite:
        return self.writes[-1]

    @property
    def files(self) -> dict[str, bytes | Path | None]:
        return {path: content for write in self.writes for path, content in write.files.items()}

    @property
    def last_by_path(self) -> dict[str, PendingWrite]:
        return {path: write for write in self.writes for path in write.files}

    def later_writes(
        self, pending: Iterable[PendingWrite], extra_paths: Collection[str] = ()
    ) -> Iterator[tuple[str, PendingWrite]]:
        last = {**dict.fromkeys(extra_paths, self.last), **self.last_by_path}
        for write in pending:
            for path in write.files.keys() & last.keys():
                if write.name > last[path].name:
                    yield path, write

    def known_versions(
        self, pending: Iterable[PendingWrite], own_versions: Mapping[str, Collection[OwnVersion]]
    ) -> dict[str, KnownVersions]:
        """Map the path of each file in this group to all versions of the file that Bifolio knows.

        This group replaced or wrote these versions, or later writes in `pending` wrote them. `own_versions`
        come from writes that are no longer in the queue.
        """
        digests = defaultdict[str, set[str | None]](set)
        for write in self.writes:
            for path, content in write.files.items():
                digests[path].add(write.replaced.get(path))
                if content is not None:
                    digests[path].add(content_digest(content))
        later, last = defaultdict[str, set[str | None]](set), self.last_by_path
        for path, write in self.later_writes(pending):
            later[path].add(content_digest(write.files[path]))
        return {
            path: KnownVersions(
                write.base, _known(digests[path]), _known(later[path]), own_versions.get(path, ()), write.name
            )
            for path, write in last.items()
        }

    @property
    def message(self) -> str:
        message = combine_messages([write.message for write in self.writes])
        return with_trailers(message, self.last.actor, (name for w in self.writes for name in w.documents))


def _known(digests: Iterable[str | None]) -> set[str]:
    return {digest for digest in digests if digest is not None}


def due_groups(pending: list[PendingWrite], delay: timedelta, now: float) -> list[Group]:
    """Group the pending writes, and return the groups that must be committed now, in order.

    A group waits until its author has written nothing for the time `delay`, and until earlier groups with the
    same files are committed. Each merge, and each write whose commit was requested, is a group of its own
    that ignores `delay`.
    """
    groups: list[Group] = []
    for write in pending:
        group = Group() if not delay or write.alone else _find_group(groups, write)
        if not group.writes:
            groups.append(group)
        group.writes.append(write)
    last = {_author(write): write.at for write in pending}
    ready: list[Group] = []
    waiting: set[str] = set()
    for group in groups:
        waited_s = now - last[_author(group.last)]
        # A negative time means that the clock was set back.
        is_due = group.last.alone or not 0 <= waited_s < delay.total_seconds()
        if is_due and waiting.isdisjoint(group.files):
            ready.append(group)
        else:
            waiting.update(group.files)
    return ready


def _find_group(groups: list[Group], write: PendingWrite) -> Group:
    for group in reversed(groups):
        if _author(group.last) == _author(write) and not group.last.alone:
            return group
        if not write.files.keys().isdisjoint(group.files):
            break
    return Group()


def _author(write: PendingWrite) -> tuple[str, str, str]:
    return write.actor, write.author, write.email
