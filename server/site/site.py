"""The site: the one mutable thing. It holds the current state and lets files change it.

Whoever wants to read takes `site.current()` once and keeps it. Whatever changes the files, `refresh`
finds out what, and `write` knows; either makes one record of it, under the site's write lock, and
`replica` appends that to the log of all workers and shows the state that it comes to."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from server.config.sections import PUSH_BEFORE
from server.documents.document import Document
from server.errors import (
    ApiError,
    BifolioError,
    BusyError,
    CommitError,
    ConflictError,
    GitBusyError,
    StorageError,
    UnreadableRecordError,
)
from server.paths import STATE_FOLDER, state_folder
from server.problems import Problem
from server.site.change import FILES_ORIGIN, Change, Observe, Origin, Report, change_of, change_of_write
from server.site.change_log import ChangeLog
from server.site.changed_files import writes_of
from server.site.commits.committing import Committer
from server.site.commits.message import Authorship, Joined, keeping
from server.site.commits.reverted import is_as_written
from server.site.configure import Configuration, configure, first_configuration
from server.site.contents import Contents
from server.site.folder import SiteFolder
from server.site.git_state import GitState, git_guard, moving
from server.site.loading import Progress, give_back, load_contents, pause_collector
from server.site.problems import all_problems, problems_in_files
from server.site.record import Record
from server.site.replica import Overtaken, Prepared, Replica, State
from server.site.rescan import (
    Anew,
    read_anew,
    read_new_configuration,
    rescan_all,
    rescan_paths,
    rescan_written,
    seems_changed,
)
from server.site.writing.preparing import (
    Arbiter,
    Prepare,
    Request,
    Result,
    SpeculativeWrite,
    Wanted,
    prepare_on,
)
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.git.repository import git_lock, is_at_work
from server.storage.git.times import CommitTimes
from server.storage.git.trouble import Concern, trouble_log
from server.storage.images.cache import ImageCache
from server.storage.intent import Write
from server.storage.journal import Journal
from server.storage.media import media_key, upload_path
from server.storage.recent_versions import RecentVersions

# --- parts ----------------------------------------------------------------------------------------


class ReadOnlySiteError(BifolioError):
    """A write to a site that was opened for reading. It is a mistake of the program."""

    def __init__(self) -> None:
        super().__init__("this site was opened for reading only; open it with a mode that writes")


@dataclass(frozen=True, slots=True)
class Parts:
    """Collaborators of a site. A site without `make_arbiter` is read-only.

    - `make_arbiter` creates the object that pushes a write to the git remote before the write is applied. It
      is called at the first such write, in the process that writes.
    - `report` is called after each write of this process.
    - `request_reload` asks the supervisor for new workers after a schema change of a large site.
    """

    make_arbiter: Callable[[], Arbiter] | None = None
    report: Report | None = None
    request_reload: Callable[[], None] | None = None


# --- site -----------------------------------------------------------------------------------------

__all__ = ["Change", "Site", "State"]

log = logging.getLogger("bifolio")

MAX_ATTEMPTS = 4  # Attempts to prepare a write while another program changes its files.
GIT_TIMEOUT_S = 30.0  # How long a refresh waits for git commands at work.
WRITE_GIT_TIMEOUT_S = 15.0  # How long a write waits for them.
POLL_INTERVAL_S = 0.01
MAX_LOCAL_FILES = 5000  # A larger site is read anew by another process.
_READ_ONLY_PARTS = Parts()
_OVERTAKEN_MESSAGE = "Others changed the site each time that this write was ready; try again"


class Site:
    """One site, from its folder, with what `parts` let it do; `server.service.opening` assembles it.

    Make it, `load` it, then `refresh` it whenever files changed.
    """

    def __init__(self, root: Path, parts: Parts = _READ_ONLY_PARTS) -> None:
        self.root = root.resolve()
        self.folder = SiteFolder(self.root)
        self._parts = parts
        self.started = time.time()
        self.image_cache = ImageCache(self.root)
        self._journal = Journal(self.root, self.root / STATE_FOLDER)
        self._recent = RecentVersions(self.root)
        self._arbiter: Arbiter | None = None
        self._arbiter_lock = threading.Lock()
        self._committed: Callable[[str, str], None] | None = None
        self._loaded = False
        self.replaced: Mapping[str, Document] = {}  # what files held that had changed when this was loaded
        configuration = first_configuration(self.root)
        self._replica = Replica(Contents.of(self.root, self.image_cache, configuration, GitState()))
        self.committer = Committer(
            self.root, self._replica, self._append, self._locked, self._tell_committed, self._write_again
        )

    @property
    def state(self) -> State:
        """The state that this process shows."""
        return self._replica.state

    @property
    def applied(self) -> int:
        """A number that grows with every record, also with one that changes no document."""
        return self._contents.applied

    @property
    def git(self) -> GitState:
        """What git said of the site."""
        return self._contents.git

    def basis(self) -> tuple[State, Configuration, CommitTimes, dict[str, Entry]]:
        """The state, and what it was made of at the same time: configuration, times of commits, entries."""
        return self._replica.basis()

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that documents can be in, relative to the site."""
        return self._contents.store.layout.roots

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the site's files now, by path and line."""
        return all_problems(self._contents, self.state.snapshot)

    @property
    def problems_in_files(self) -> tuple[Problem, ...]:
        """The problems of single files, which are known already."""
        return tuple(problems_in_files(self._contents))

    def load(self, progress: Progress | None = None, cores: int = 1, nice: int = 0) -> None:
        """Read the whole site, on several cores. Raises SetupError for a broken site.yaml or schema.

        It reads without the lock, which would keep others from writing for long, and looks again
        where somebody wrote meanwhile. By `nice` the readers' priority is lower.
        """
        with suppress(OSError):
            state_folder(self.root)  # where the lock is, if the site can be written to
        writes, replaced = self._journal.lock.number, list[Document]()
        self.recover()
        with pause_collector():
            root, pictures, append = self.root, self.image_cache, self._replica.append
            show = lambda found: append(found.whole())  # noqa: E731
            contents = load_contents(
                root, pictures, configure(root), progress, cores, nice=nice, cached=show, replaced=replaced
            )
            contents.writes = writes
            append(contents.since(self._contents))
            if contents.seen:
                self._contents.seen = (self._contents.applied, contents.seen[1])
        give_back()
        self._loaded, self.replaced = True, {document.path: document for document in replaced}
        if replaced:
            with suppress(OSError, BusyError), self._journal.writing():
                self._recent.keep(replaced, self.state.schema)
        if self._journal.lock.number != writes:
            self.refresh()

    # --- changes -------------------------------------------------------------------------------

    def refresh(self, hints: Collection[str] | None = None) -> Change:
        """Take over what changed in the files; `hints` are paths that may have, None is all.

        It is one change, of everything that was found at once. While a git command is at work it
        waits, and what one has changed under its eyes it looks at again. Where a content type has changed,
        all documents are read before the lock is taken, and others write meanwhile: of a large site, by a
        process that replaces this one.
        """
        if not self.seems_changed(hints):
            return Change()
        deadline = time.monotonic() + GIT_TIMEOUT_S
        while True:
            self._wait_for_git(deadline)
            if self._leaves_all():
                return Change()
            anew = read_anew(self._contents)
            with self._locked():
                change = self._look(hints, anew, patient=time.monotonic() < deadline)
            if change is not None and (anew is None or change.reloaded):
                return change

    def _refresh_files(self, hints: Collection[str], deadline: float) -> None:
        """Take over what changed in some files, for a write; a new schema is left to `refresh`."""
        self._wait_for_git(deadline)
        with self._locked():
            self._look(hints, patient=True)

    def _look(
        self, hints: Collection[str] | None, anew: Anew | None = None, *, patient: bool
    ) -> Change | None:
        """Append what differs in the files; None for one who is patient and meets a git command at work."""
        contents = self._contents
        before = moving(contents.git)
        if patient and is_at_work(before[0]):
            return None
        try:
            self._write_again()
        except GitBusyError:
            if patient:
                return None
        except (ApiError, CommitError) as error:  # It is tried again before the write is committed.
            log.warning("%s: a write that git has reverted is not made again yet: %s", self.root, error)
        writes = self._journal.lock.number
        record = rescan_all(contents, None if writes != contents.writes else hints, writes, anew)
        if patient and moving(contents.git) != before:
            return None
        if record is None or self.folder.is_gone():  # It may have gone while it was looked at.
            return Change()
        change = change_of(contents, record)
        self._append(record)
        return change

    def seems_changed(self, hints: Collection[str] | None = None) -> bool:
        """Whether `refresh` would find something, as far as can be told without the write lock."""
        if self._replica.is_replaced:
            return False
        self.catch_up()
        contents = self._contents
        return self._journal.lock.number != contents.writes or seems_changed(contents, hints)

    def write(
        self, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Let `prepare` change files, in one step that is done or not done (docs/files.md): the only way.

        It is called with the request and a context to put the files into, and again with a new context
        where the site was changed by somebody else meanwhile: under the site's write lock if it takes so
        little time that others can wait for it. A git command at work is waited for: it would overwrite what
        is written after it has looked at a file. Where the settings say so, a git remote has to take the
        write first, and it is committed.

        Returns the state after it, what `prepare` returned, and its commit: "" for none, "pending" where
        that is made later. Raises BusyError where what takes long was overtaken each time, GitBusyError,
        RemoteError, ReadOnlySiteError, and what these raise.
        """
        arbiter = self.arbiter
        return (arbiter.write if arbiter else self.write_here)(by, prepare, request)

    @property
    def arbiter(self) -> Arbiter | None:
        """What asks the git remote before a write is made; None where the settings don't ask for that.

        Raises ReadOnlySiteError.
        """
        make = self._parts.make_arbiter
        if make is None:
            raise ReadOnlySiteError()
        if self.state.settings.git.push != PUSH_BEFORE:
            return None
        with self._arbiter_lock:
            if self._arbiter is None:
                self._arbiter = make()
            return self._arbiter

    def write_here(
        self, by: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """`write` without the git remote, which has taken it already. Only arbiters and merges call it."""
        if self._parts.make_arbiter is None:
            raise ReadOnlySiteError()
        state, result, pending = self._write(prepare, request, by)
        commit = self.committer.finish(pending, at_once=by.joined is not None)
        return (self.current() if commit else state), result, commit

    def _write(
        self, prepare: Prepare[Request, Result], request: Request, by: Authorship
    ) -> tuple[State, Result, str]:
        """See `write`; returns the name that the write has in the queue of the committer for its commit."""
        began = time.perf_counter()
        if self.folder.is_gone():
            raise StorageError("The site's folder is gone: nothing can be written")
        try:
            state_folder(self.root)
        except OSError as error:
            raise StorageError(f"The site can't be written to: {error.strerror}") from error

        def attempt(changeset: Changeset) -> tuple[tuple[Change, str], State, Result]:
            prepared = self._prepare((prepare, request), changeset)
            with self._locked():
                self._look_at_other_servers()
                if not prepared.state.shows_as_much_as(self.state):
                    if prepared.took_long:
                        raise Overtaken()
                    changeset.clear()
                    prepared = self._prepare((prepare, request), changeset)
                return self._commit(prepared, by), self.state, prepared.result

        (change, pending), state, result = self._try(attempt)
        self._note_end_of_git()
        if change and self._parts.report:
            self._parts.report(change, time.perf_counter() - began)
        return state, result, pending

    def preview(
        self, prepare: Prepare[Request, Result], request: Request, ahead: SpeculativeWrite | None = None
    ) -> tuple[list[Write], Result]:
        """The files that `write` would change now, and what `prepare` returns; it raises what that would."""
        ahead = ahead or SpeculativeWrite()

        def attempt(changeset: Changeset) -> tuple[list[Write], Result]:
            prepared = self._prepare((prepare, request), changeset, ahead)
            self._journal.check(writes := writes_of(self._contents, changeset, ahead.chain))
            return writes, prepared.result

        return self._try(attempt, ahead)

    def _try(self, attempt: Callable[[Changeset], Result], ahead: SpeculativeWrite | None = None) -> Result:
        """What an attempt at a change comes to, made again where somebody else has changed the site."""
        left, deadline = MAX_ATTEMPTS, time.monotonic() + WRITE_GIT_TIMEOUT_S
        while True:
            changeset = Changeset(self.root, ahead.chain if ahead else None)
            try:
                self.catch_up()
                return attempt(changeset)
            except GitBusyError:
                self._wait_for_git(deadline)
                if time.monotonic() > deadline:
                    reason = "a git command holds .git/index.lock"
                    trouble_log(self.root).tell(Concern.WRITES, reason, "writes are refused")
                    raise
            except Overtaken:
                left -= 1
                if not left:
                    raise BusyError(_OVERTAKEN_MESSAGE) from None
            except ConflictError:
                left -= 1
                if not left:
                    raise
                self._refresh_files(changeset.paths, deadline)

    def _prepare(
        self, wanted: Wanted[Request, Result], changeset: Changeset, ahead: SpeculativeWrite | None = None
    ) -> Prepared[Result]:
        """A change of the state that is shown now; nothing is written."""
        git, recent = self._contents.git.committed, partial(self._recent.find, self.state.schema)
        return prepare_on(self.state, git, recent, changeset, wanted, ahead or SpeculativeWrite())

    def _look_at_other_servers(self) -> None:
        """Take over what another server of the site has written, which has a log of its own."""
        if self._contents.writes != self._journal.lock.number and self._look(None, patient=True) is None:
            raise GitBusyError()

    def _commit(self, prepared: Prepared[Result], by: Authorship) -> tuple[Change, str]:
        """Write the files of a change, noted for its commit; call it under the lock."""
        contents, writes = self._contents, writes_of(self._contents, prepared.changeset)
        if not writes:
            return Change(), ""
        with self.committer.noting(writes, by, prepared.result) as pending, keeping(writes, by):
            self._journal.commit(writes, git_guard(contents.git))
        joined = by.joined(prepared.result) if by.joined else None
        record = self._rescan_written(writes, joined)
        change = change_of_write(contents, record, writes)
        self._append(record, by.origin(pending))
        return change, pending

    def _write_again(self) -> None:
        """Make writes again that git has reverted before they were committed; call it under the lock.

        Raises ApiError and CommitError.
        """
        contents, number = self._contents, self._journal.lock.number
        if writes := self.committer.reverted():
            self._journal.commit(writes, git_guard(contents.git))
            record = self._rescan_written(writes)
            # A look is still due where another server has written before.
            self._append(record if contents.writes == number else replace(record, writes=contents.writes))
            self.committer.tell_of_reverted(writes)

    def _rescan_written(self, writes: list[Write], joined: Joined | None = None) -> Record:
        """Read the files that were just written; write those again that git has reverted since."""
        for _ in range(MAX_ATTEMPTS):
            record = rescan_written(self._contents, writes, self._journal.lock.number, joined)
            if not self.committer.queue.waiting or is_as_written(self.root, writes):
                break
            # If git does not let us write now, the commit does it later, or the log says that it can't.
            with suppress(ApiError, CommitError):
                if not (again := self.committer.reverted()):
                    break
                self._journal.commit(again, git_guard(self._contents.git))
                self.committer.tell_of_reverted(again)
        return record

    def _append(self, record: Record, origin: Origin = FILES_ORIGIN) -> None:
        """Append a record, and keep the versions before and after it, which clients may have read."""
        self._recent.keep(self._replica.append(record, origin), self.state.schema)

    def scale(self, path: str) -> State:
        """Make the formats of a picture that shows none yet. Returns the state that shows them."""
        file = self.state.snapshot.media.get(media_key(path) or "")
        if file and self.image_cache.wanting(file) and self.image_cache.make(upload_path(path) or ""):
            with self._locked():
                self._replica.append(rescan_paths(self._contents, {path}))
        return self.state

    def unscaled(self) -> list[str]:
        """The paths of the pictures whose formats are still to be made, or to be shown."""
        return [file.path for file in self.state.snapshot.media.values() if self.image_cache.wanting(file)]

    def recover(self) -> int:
        """Finish or drop what a crash left of a write; returns how many files that changed."""
        self._journal.sweep()
        if self._journal.empty:
            return 0
        with self._journal.writing():
            done = self._journal.recover()
        if self._loaded:
            self.refresh()
        return done

    def observe(self, observe: Observe, committed: Callable[[str, str], None] | None = None) -> None:
        """Have each change recorded from now on. Call it once the site is loaded, before workers are forked.

        `committed` is told of the writes of this process that are in a commit, by their name in the queue.
        """
        self._replica.observe, self._committed = observe, committed

    def _tell_committed(self, write: str, commit: str) -> None:
        if self._committed is not None:
            self._committed(write, commit)

    def record(self) -> None:
        """Let what observes changes catch up with those that it was not told of."""
        with self._locked():
            self._replica.record()

    # --- other processes -----------------------------------------------------------------------

    def share(self, log: ChangeLog) -> None:
        """Show the same states as the processes that are forked from now on, by a log of all changes."""
        self._replica.share(log)

    def current(self) -> State:
        """The state, with everything in it that any process has answered to have written."""
        try:
            return self._replica.current()
        except UnreadableRecordError:
            self.catch_up()
            return self.state

    def catch_up(self) -> None:
        """Take over what other processes found or wrote.

        Where a record of theirs can't be applied, look at the files instead. Raises BusyError when the write
        lock is not free for that.
        """
        try:
            self._replica.catch_up()
        except UnreadableRecordError:
            with self._journal.writing():
                self._catch_up_locked()

    def _catch_up_locked(self) -> None:
        """`catch_up` for the holder of the write lock."""
        try:
            self._replica.catch_up()
        except UnreadableRecordError as error:
            self._look_instead(error)

    def _look_instead(self, error: UnreadableRecordError) -> None:
        """Take over from the files what records say that can't be applied. Call it under the write lock.

        What differs is appended for all workers, since it may include edits that no record has. Another
        worker that can't apply that record either looks as well, and lacks nothing then.
        """
        with suppress(OSError):  # A killed writer may have left half of a write.
            self._journal.recover()
        contents = self._contents
        record = rescan_all(contents, None, self._journal.lock.number, read_anew(contents))
        if record is not None:
            log.warning(
                "a change from another process can't be applied (%s); the files are read for it", error
            )
            self._append(record)
        self._replica.skip()
        # A look does not find the formats that were made of a picture: its file is as it was.
        scaled = rescan_paths(contents, self.unscaled())
        if scaled.entries:
            self._append(scaled)

    def follow(self) -> None:
        """Do the same, unless another process is about to take the place of this one. Sweeps the journal."""
        self._journal.sweep()
        if not self._replica.is_replaced:
            self.catch_up()

    def succeed(self, log: ChangeLog) -> Change:
        """Share a log with processes that this one replaces: what it has loaded is the next record there.

        They are then replaced by processes that are forked from this one. Returns what that changes for
        people who watch.
        """
        deadline = time.monotonic() + GIT_TIMEOUT_S
        while True:
            self.refresh()  # what takes long, before the lock is taken
            self._wait_for_git(deadline)
            with self._locked():
                looked = self._look(None, patient=time.monotonic() < deadline)
                if looked is not None and read_new_configuration(self._contents) is None:
                    return self._replica.succeed(log)

    def _leaves_all(self) -> bool:
        """Ask for processes that read a large site anew and replace this one, where that is to be done."""
        request_reload, large = self._parts.request_reload, len(self._contents.entries) >= MAX_LOCAL_FILES
        if (
            request_reload is None
            or not self._replica.is_shared
            or not large
            or read_new_configuration(self._contents) is None
        ):
            return False
        self._replica.leave_note()
        request_reload()
        return True

    @property
    def _contents(self) -> Contents:
        return self._replica.contents

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the write lock, up to date, with nothing left over of a write whose process was killed."""
        with self._journal.writing():
            self._catch_up_locked()
            with suppress(OSError):  # a site that can't be written to keeps what is left over
                self._journal.recover()
                if self.committer.settle():
                    self._journal.lock.count(self._journal.lock.number + 1)
            yield

    def _wait_for_git(self, deadline: float) -> None:
        while self._is_git_at_work() and time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)

    def _note_end_of_git(self) -> None:
        trouble, folder = trouble_log(self.root), self.git.folder
        if trouble.is_concerned(Concern.WRITES) and not (folder and git_lock(folder)):
            trouble.end(Concern.WRITES)

    def _is_git_at_work(self) -> bool:
        return self.git.folder is not None and is_at_work(git_lock(self.git.folder))
