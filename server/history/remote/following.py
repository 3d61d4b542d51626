"""Follows the remote: asks it now and then, and at once when woken, and takes over what it has.

One process of all servers of a site does, which the kernel chooses by a lock. What goes wrong is said once in
the log, with when it began, and once when it is over; meanwhile it is tried again, less often each time.
"""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

from server.config.model import Settings
from server.errors import ApiError, CommitError, GitSlowError, NotTakenOverError, RemoteError
from server.history.past import PastStates
from server.history.remote.known import known_commit
from server.history.remote.standing import (
    AWAY,
    BEHIND,
    CURRENT,
    Standing,
    forget_standing,
    read_standing,
    write_standing,
)
from server.history.remote.takeover import Taken, Takeover
from server.history.remote.waking import Pipe
from server.paths import state_folder
from server.storage.git.command import git
from server.storage.git.refs import checked_out, head_commit, is_ancestor
from server.storage.git.remote import fetch

log = logging.getLogger("quire")

_LOCK = "following.lock"  # in .quire/
LOOK_S = 1.0  # between two looks whether there is something to follow, or whether nobody else does
LONGEST_S = 60.0  # between two tries while the remote is away
AGAIN_S = 10.0  # until what is in the way is tried again while nothing has changed
REST_S = 0.5  # at most, that it rests after it has asked: as long as that took
NOTED_S = 10.0  # how often it is noted that the remote was asked, while nothing changes


class Follower:
    """Follows the remote of a site, in one thread."""

    def __init__(self, past: PastStates, takeover: Takeover | None = None) -> None:
        self.past, self.site, self.root = past, past.site, past.site.root
        self._takeover = takeover or Takeover(past)
        self._standing = Standing()
        self._noted: Standing | None = None  # as all processes can read it
        self._away_since = 0.0  # since when the remote has not answered, by the monotonic clock
        self._stuck: object = None  # what there was when something was in the way
        self._stuck_until = 0.0

    def run(self, stop: Event) -> None:
        """Follow until it is over."""
        while not stop.is_set():
            try:
                with _leading(self.root, stop) as leads:
                    if leads:
                        self._follow(stop)
            except Exception:
                log.exception("the git remote could not be followed; that is tried again")
            stop.wait(LOOK_S)

    def _follow(self, stop: Event) -> None:
        """Ask again and again, as the one process that does."""
        pipe = Pipe(self.root)
        try:
            self._standing = read_standing(self.root) or Standing()
            while not stop.is_set():
                settings = self.site.state.settings
                if settings.remote and settings.follow is not None:
                    began = time.monotonic()
                    self.ask(settings)
                    # Where commits come without a pause, it takes half of a processor, and some at once.
                    stop.wait(min(time.monotonic() - began, REST_S))
                    pipe.wait(self._pause(settings.follow.total_seconds()), stop.is_set)
                else:
                    forget_standing(self.root)
                    self._standing, self._noted = Standing(), None
                    pipe.wait(LOOK_S, stop.is_set)
        finally:
            pipe.close()

    def _pause(self, follow: float) -> float:
        """How long to wait: as long as the remote is away by now, however often it was asked meanwhile."""
        away = time.monotonic() - self._away_since if self._away_since else 0.0
        return max(follow, min(away, LONGEST_S))

    # --- one round -------------------------------------------------------------------------------------

    def ask(self, settings: Settings) -> Standing:
        """Ask the remote once, and take over what it has; how what is served stands to it then."""
        branch = settings.branch or checked_out(self.root)
        standing = Standing(
            CURRENT, settings.remote, branch, self._standing.commit, asked=self._standing.asked
        )
        try:
            if not branch:
                raise NotTakenOverError("No branch is checked out")
            known, theirs = known_commit(self.root, branch), fetch(self.root, settings.remote, branch)
            standing = replace(standing, commit=theirs, asked=time.time())
            self._away_since = 0.0
            if not theirs:
                raise NotTakenOverError(f'The remote has no branch "{branch}"')
            self._take_over(settings, branch, known, theirs)
        except RemoteError as error:
            self._away_since = self._away_since or time.monotonic()
            standing = replace(standing, state=AWAY, reason=error.message)
        except NotTakenOverError as error:
            files = tuple(error.details.get("files", ()))
            behind = self._behind(standing.commit)
            standing = replace(standing, state=BEHIND, commits=behind, reason=error.message, files=files)
        except (ApiError, CommitError, GitSlowError, OSError) as error:
            standing = replace(
                standing, state=BEHIND, commits=self._behind(standing.commit), reason=str(error)
            )
        self._tell(standing)
        return self._standing

    def _take_over(self, settings: Settings, branch: str, known: str, theirs: str) -> None:
        """Take a commit over, unless nothing has changed since it could not be."""
        head = head_commit(self.root)
        if theirs == head == known and checked_out(self.root) == branch:
            return
        there = (theirs, head, self.site.applied, self.site.git.index)
        if there == self._stuck and time.monotonic() < self._stuck_until:
            raise NotTakenOverError(self._standing.reason, {"files": self._standing.files})
        try:
            with self._takeover.alone():
                if known_commit(self.root, branch) != known:  # Another process has been faster.
                    known, theirs = known_commit(self.root, branch), fetch(self.root, settings.remote, branch)
                if known and not is_ancestor(self.root, known, theirs):
                    theirs = self._confirmed(settings.remote, branch, theirs)
                self._report(settings.remote, branch, self._takeover.take_over_alone(theirs, branch))
            self._stuck = None
        except NotTakenOverError:
            self._stuck, self._stuck_until = there, time.monotonic() + AGAIN_S
            raise

    def _confirmed(self, remote: str, branch: str, theirs: str) -> str:
        """A commit of a remote whose history was rewritten, asked for again: it is rare, and goes back."""
        again = fetch(self.root, remote, branch)
        if again != theirs:
            raise NotTakenOverError("The remote says one time this and one time that; it is asked again")
        return theirs

    def _behind(self, theirs: str) -> int:
        """How many commits of the remote what is served has not."""
        if not theirs:
            return 0
        with suppress(GitSlowError):
            return int(git(self.root, "rev-list", "--count", f"HEAD..{theirs}", "--") or 0)
        return 0

    # --- what is said ----------------------------------------------------------------------------------

    def _report(self, remote: str, branch: str, taken: Taken) -> None:
        if taken.kept:
            log.warning(
                "the history of %s/%s was rewritten: %s is served now, and what was is kept as %s",
                *(remote, branch, taken.commit[:10], taken.kept),
            )

    def _tell(self, standing: Standing) -> None:
        """Note how things stand; in the log, where that is new."""
        before = self._standing
        if standing.state != CURRENT:
            since = before.since if before.state != CURRENT and before.since else time.time()
            standing = replace(standing, since=since)
        said = standing.state == before.state and AWAY in (standing.state, before.state)
        if not said and (standing.state, standing.reason) != (before.state, before.reason):
            self._log(before, standing)
        self._standing = standing
        noted = self._noted
        same = noted is not None and replace(noted, asked=standing.asked) == standing
        if noted is None or not same or standing.asked - noted.asked > NOTED_S:
            write_standing(self.root, standing)
            self._noted = standing

    def _log(self, before: Standing, standing: Standing) -> None:
        name = f"{standing.remote}/{standing.branch}"
        if standing.state == CURRENT:
            log.info("%s is followed again, after %s", name, _span(time.time() - before.since))
        elif standing.state == AWAY:
            log.warning("%s can't be followed: %s", name, standing.reason)
        else:
            log.warning("what %s has is not taken over: %s", name, standing.reason)


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


@contextmanager
def _leading(root: Path, stop: Event) -> Iterator[bool]:
    """Be the one process that follows, if no other does; whether it is."""
    lock = os.open(state_folder(root) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield not stop.is_set()
    finally:
        os.close(lock)
