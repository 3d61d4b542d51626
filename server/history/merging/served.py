"""Puts a commit in the place of what is served: its files, the branch and the index, as one write.

The write is noted before, with its commit. Its files are put in place by the journal, and the branch and the
index move while the write lock is still held: the record that follows shows all of it, so that nobody is
answered from anything in between. A process that is killed over it leaves the rest to whoever has the lock of
the site, or commits, next.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from server.errors import CommitError
from server.site.commits.committing import LOCK_S, WAIT_S
from server.site.commits.message import Authorship, Joined
from server.site.site import Site
from server.storage.changeset import Changeset
from server.storage.git.commit import Person
from server.storage.git.index import LockedIndex, locked_index, remove_own_lock, wait_for_index
from server.storage.git.tree import changed_files
from server.write.context import Context


@dataclass(frozen=True, slots=True)
class Arrival:
    """A commit that is made, the files that it takes, and what raises where these do not fit any more."""

    joined: Joined
    changeset: Changeset
    require_fit: Callable[[Context], None]


def put_in_place(site: Site, arrival: Arrival, by: Authorship) -> str:
    """Put a commit in the place of what is served. Returns what the answer says of its commit.

    Raises CommitError while git is busy, ConflictError where somebody has changed a file meanwhile, and what
    `require_fit` and `Site.write_here` raise.
    """
    with _holding_off_others(site, arrival.joined) as index:
        committer = Person.of(site.state.settings.committer)
        move = partial(_move, index, arrival.joined, committer)
        joined = replace(arrival.joined, move=move, index=index.before)
        _, _, commit = site.write_here(replace(by, joined=lambda _: joined, describe=None), _put, arrival)
    return commit


def _put(arrival: Arrival, context: Context) -> None:
    arrival.require_fit(context)
    context.changeset.adopt(arrival.changeset)


@contextmanager
def _holding_off_others(site: Site, joined: Joined) -> Iterator[LockedIndex]:
    """Let nobody else commit here, and have the index ready."""
    with site.committer.queue.committing(WAIT_S) as alone:
        if not alone:
            raise CommitError("other commits take long")
        repository, _ = site.committer.repository()
        remove_own_lock(repository)
        repository.require_quiet()
        wait_for_index(repository, time.monotonic() + LOCK_S)
        changed = joined.changed
        if changed is None:
            found = changed_files(site.root, joined.base, joined.ready)
            changed = {path: after for path, (_, after) in found.items()}
        with locked_index(repository, changed) as index:
            yield index


def _move(index: LockedIndex, joined: Joined, committer: Person) -> bool:
    """Let the branch move; where it is somewhere else by now, that is left to who commits what was noted."""
    environment = committer.environment("COMMITTER", int(time.time()))
    try:
        index.move_head(joined.base, joined.ready, environment, joined.names)
    except CommitError:
        index.release()
        return False
    return True
