"""Asks the remote before a write is made: of two machines that change the same at once, it takes one.

A write is prepared on what is served, and made a commit that nothing leads to. Where the remote takes that,
it is taken over into what is served; so nobody is shown what is refused later. Where others were faster,
what they have pushed is taken over, and the write is prepared again, as a change of what it was first
prepared on.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from server.database.queue import Queue
from server.errors import (
    BusyError,
    CommitError,
    ConflictError,
    NotTakenOverError,
    RemoteAccessError,
    RemoteAwayError,
    RemoteError,
    RemoteMovedError,
    RemoteRefusedError,
)
from server.history.merging.merge import Arrival, put_in_place
from server.history.remote.attempt import WRITE_TIMEOUT_S, Attempt, Link, of_git, take_over_until
from server.history.remote.last_integrated import ref_name, remember
from server.history.remote.push_queue import PushQueue
from server.history.remote.pushing import LOST_RESPONSE_TIMEOUT_S, MIN_TIMEOUT_S, Level, Pusher, PushFairness
from server.history.remote.takeover import Takeover
from server.site.commits.commit_first import commit_ahead
from server.site.commits.message import Authorship, Joined
from server.site.replica import State
from server.site.writing.preparing import Prepare, Request, Result
from server.site.writing.speculative_writes import Chain, as_written
from server.storage.changeset import Changeset
from server.storage.git.commit import Made
from server.storage.git.refs import head_commit

log = logging.getLogger("bifolio")

Contents = Mapping[str, bytes | Path | None]
RETRY_TIMEOUT_S = 10.0  # A write whose push loses to others is pushed again for so long.
BATCH_WRITES = 16  # Writes that are pushed at once.


class Arbiter:
    """Makes the writes of a site that the remote takes. Safe to use from many threads and processes.

    Writes that come while one is pushed wait, and are pushed together: each is a commit of its own, prepared
    on what those before come to.
    """

    def __init__(
        self,
        takeover: Takeover,
        tell: Callable[[str], None] = lambda _: None,
        queue: Queue | None = None,
    ) -> None:
        """`tell` is told of each commit that the remote has got; machines wait for one another in `queue`."""
        self.takeover, self.site, self.root = takeover, takeover.site, takeover.root
        self._tell = tell
        self._pusher = Pusher(takeover)
        self._line = PushQueue[Attempt[Any, Any]]()
        self._queue, self._courtesy = queue or Queue(), PushFairness()
        self._said = ""  # in the log, of why the remote can't be asked

    def write(
        self, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """See `Site.write`. Nothing is written here that the remote has not taken.

        Raises RemoteError, OvertakenError where others have changed the same, and what `prepare` raises.
        """
        attempt = Attempt(self.site, by, prepare, request)
        attempt.begin()
        self._line.stand(attempt, partial(self._lead, attempt))
        return attempt.answer()

    # --- writes that are pushed together ---------------------------------------------------------------

    def _lead(self, first: "Attempt[Any, Any]") -> None:
        """Make the writes that wait, until the first is over."""
        while not first.is_over:
            group: list[Attempt[Any, Any]] = []
            time.sleep(min(self._courtesy.left, first.left))
            try:
                with self._alone(first.left) as waited:
                    group += self._line.take(BATCH_WRITES)
                    self._make(group, ask=waited)
            except (RemoteMovedError, BusyError) as error:  # It took too long for the first of them.
                (group or [first])[0].fail(error)
            except Exception as error:
                for attempt in group or [first]:
                    attempt.fail(error)
            finally:
                self._line.put_back(group)

    def _make(self, group: "list[Attempt[Any, Any]]", *, ask: bool) -> None:
        """Have the remote take some writes, those that are one chain, and make them; it is asked first.

        Raises RemoteError where it takes none of those that are left in the group then.
        """
        first, began = group[0], time.monotonic()
        if (
            first.left < MIN_TIMEOUT_S + LOST_RESPONSE_TIMEOUT_S
        ):  # A push that is cut off may be taken all the same.
            raise BusyError()
        level, until = self._pusher.level(ask=ask, seconds=first.left), first.since + RETRY_TIMEOUT_S
        while links := self._prepare(level, group):
            commit = next((link.made.commit for link in reversed(links) if link.made.commit), "")
            try:
                if commit:
                    self._pusher.push(level, commit, first.left)
            except RemoteRefusedError:
                self._keep(group, links[:1])  # Which of them it is, is seen when each is pushed by itself.
                if len(links) == 1:
                    raise
            except RemoteMovedError:
                self._courtesy.meet()
                if time.monotonic() > until:
                    raise
                level = self._pusher.level(ask=True, seconds=first.left)
            except RemoteError:  # Nobody knows of these whether it has taken them.
                self._keep(group, links)
                raise
            else:
                self._place(level, links)
                self._queue.leave()  # Not before: who is next would record the events, and not know whose.
                if commit:
                    self._tell(commit)
                if not self._queue.is_shared:
                    self._courtesy.pushed(time.monotonic() - began)
                return

    def _keep(self, group: "list[Attempt[Any, Any]]", links: "list[Link]") -> None:
        """Let the writes of some links stay in a group, and the others wait again."""
        kept = [link.attempt for link in links]
        self._line.put_back(attempt for attempt in group if attempt not in kept)
        group[:] = kept

    def _prepare(self, level: Level, group: "list[Attempt[Any, Any]]") -> "list[Link]":
        """Those of some writes that can be pushed together, the first among them, each with its commit.

        What can't be prepared on what is served is over; on others, it waits until those are made, or not.
        """
        links: list[Link] = []
        chain = Chain(self.root, self.site.current().snapshot)
        head = level.head
        for attempt in group:
            if attempt.is_over:
                continue
            if self.site.state.snapshot is not chain.begun and links:
                break
            try:
                made = attempt.run(partial(attempt.commit, head, chain if links else None))
                if attempt.writes and not made.commit:  # git ignores all of it.
                    if links:
                        break
                    attempt.end_with(attempt.run(attempt.write_here))
                    continue
            except Exception as error:
                if links:
                    break
                attempt.fail(error)
                continue
            links.append(Link(attempt, made, head))
            head = made.commit or head
            if not self._can_go_on(chain, attempt, made):
                break
        return links

    def _can_go_on(self, chain: Chain, attempt: "Attempt[Any, Any]", made: Made) -> bool:
        """Add a write to a chain; whether another can be prepared on it."""
        if self.site.state.snapshot is not chain.begun or (attempt.writes and made.changed is None):
            return False
        return self.site.committer.extend(chain, attempt.writes)

    def _place(self, level: Level, links: "list[Link]") -> None:
        """Make writes that the remote has taken."""
        written: dict[str, bytes | None] = {}
        for link in links:
            attempt, made = link.attempt, link.made
            try:
                if made.commit:
                    at = replace(level, head=link.head)
                    attempt.run(partial(self._put_in_place, at, made, attempt, dict(written)))
                attempt.end_with((self.site.current(), attempt.result, made.commit))
            except Exception as error:
                attempt.fail(error)
            written.update((write.path, write.data) for write in attempt.writes)

    def commit(
        self, contents: Callable[[], Contents], message: str, documents: list[str], by: Authorship
    ) -> str:
        """Commit files as they are, where the remote takes that; see `Committer.commit_files`.

        `contents` says what they are, and is asked again where others have changed some.
        """

        def make(level: Level) -> Made:
            return commit_ahead(self.site, contents(), message, documents, by, level.head)

        with self._alone():
            level, made = self._agree(make)
            commit = made.commit
            if commit:
                self.site.committer.join(Joined(level.head, commit, commit, exact=True), by)
                remember(self.root, level.branch, commit)
                self.site.refresh()
                self._tell(commit)
            return commit

    @contextmanager
    def _alone(self, seconds: float = WRITE_TIMEOUT_S) -> Iterator[bool]:
        """Be the only one that takes something over, for a request that waits so long for that.

        Gives whether another machine was before, so that the remote is to be asked.

        Why the remote can't be asked is for the log: addresses and names of files are not for all who write.
        """
        try:
            with self.takeover.alone(seconds), self._queue.turn(seconds) as waited:
                yield waited
            self._said = ""
        except (RemoteAwayError, RemoteAccessError, NotTakenOverError) as error:
            if error.message != self._said:
                self._said = error.message
                log.warning("writes are refused for now: %s", error.message)
            hidden = error.details or not isinstance(error, NotTakenOverError)
            raise type(error)("" if hidden else error.message) from error

    def _agree(self, make: Callable[[Level], Made]) -> tuple[Level, Made]:
        """A commit that the remote has taken, if there was one to push, and what it is on top of."""
        level, until = self._pusher.level(), time.monotonic() + RETRY_TIMEOUT_S
        while (made := of_git(partial(make, level))).commit:
            try:
                self._pusher.push(level, made.commit)
                break
            except RemoteMovedError:
                if time.monotonic() > until:
                    raise
            level = self._pusher.level(ask=True)
        return level, made

    @contextmanager
    def agreeing(self, base: str, commit: str) -> Iterator[bool]:
        """See `server.site.writing.preparing.agreeing`."""
        with self._alone():
            level = self._pusher.level(commit=commit)
            agreed = level.head == base
            if agreed:
                try:
                    self._pusher.push(level, commit)
                except RemoteMovedError:
                    self._pusher.level(ask=True)
                    agreed = False
            yield agreed
            if agreed:
                remember(self.root, level.branch, commit)
                self._tell(commit)

    def _put_in_place(
        self, level: Level, made: Made, attempt: "Attempt[Any, Any]", written: Mapping[str, bytes | None]
    ) -> None:
        """Make a write that the remote has taken; `written` is what others have that it was prepared on.

        Raises ConflictError where edits by hand are in its way.
        """
        commit, names, by = made.commit, {ref_name(level.branch): made.commit}, attempt.by
        joined = Joined(level.head, commit, commit, exact=True, changed=made.changed, at=made.at, names=names)
        changeset, by = Changeset(self.root), replace(by, addressed=None)
        try:
            changeset.repeat(as_written(self.root, attempt.writes, written))
            if head_commit(self.root) != level.head:
                raise CommitError("others have committed meanwhile")
            put_in_place(self.site, Arrival(joined, changeset, lambda _: None), by)
            remember(self.root, level.branch, commit)
        except (BusyError, CommitError, ConflictError):  # Somebody has edited a file meanwhile, or committed.
            read = {write.path: write.read for write in attempt.writes if write.path not in written}
            taken = {path: data for path, data in read.items() if data is not None}
            take = partial(self.takeover.take_over_alone, commit, level.branch, by, taken)
            take_over_until(take, attempt.until)
