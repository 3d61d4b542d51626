"""Writes that the git remote must accept before they are served."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from server.database.queue import PushTurnQueue
from server.errors import (
    BusyError,
    CommitError,
    ConflictError,
    RemoteAccessError,
    RemoteError,
    RemoteMergeError,
    RemoteMovedError,
    RemoteRefusedError,
    RemoteTimeoutError,
)
from server.history.merging.merge import CommitToServe, serve_commit
from server.history.remote.apply_commits import Takeover
from server.history.remote.last_integrated import ref_name, set_last_commit
from server.history.remote.push_queue import PushQueue
from server.history.remote.pushed_write import (
    WRITE_TIMEOUT_S,
    ChainedWrite,
    WriteAttempt,
    prepare_or_refuse,
    take_over_until,
)
from server.history.remote.pushing import (
    LOST_RESPONSE_TIMEOUT_S,
    MIN_TIMEOUT_S,
    PushBase,
    Pusher,
    PushFairness,
)
from server.site.commits.commit_first import create_unpublished_commit
from server.site.commits.message import Authorship, PreparedMerge
from server.site.replica import State
from server.site.writing.preparing import Prepare, Request, Result
from server.site.writing.speculative_writes import WriteChain, rebase_writes
from server.storage.changeset import Changeset
from server.storage.git.commit import PreparedCommit
from server.storage.git.refs import head_commit

log = logging.getLogger("bifolio")

Contents = Mapping[str, bytes | Path | None]
RETRY_TIMEOUT_S = 10.0  # how long a push is retried if other machines push first
BATCH_WRITES = 16  # limit for the writes in one push


class Arbiter:
    """Writer that serves each write only after the git remote has accepted it.

    Threads and processes may use it at the same time.
    """

    def __init__(
        self,
        takeover: Takeover,
        notify: Callable[[str], None] = lambda _: None,
        queue: PushTurnQueue | None = None,
    ) -> None:
        # After each push, `notify` is called with the last pushed commit.
        self.takeover, self.site, self.root = takeover, takeover.site, takeover.root
        self._notify = notify
        self._pusher = Pusher(takeover)
        self._line = PushQueue[WriteAttempt[Any, Any]]()
        self._queue, self._fairness = queue or PushTurnQueue(), PushFairness()
        self._logged_reason = ""  # why the remote is unavailable, as last logged

    def write(
        self, authorship: Authorship, prepare: Prepare[Request, Result], request: Request
    ) -> tuple[State, Result, str]:
        """Write like `Site.write`, but serve the result only after the commit has been pushed.

        Raises RemoteError if the push fails, ConcurrentChangeError if another commit has changed the same
        files, or BusyError on timeout.
        """
        attempt = WriteAttempt(self.site, authorship, prepare, request)
        attempt.begin()
        self._line.wait_in_line(attempt, partial(self._lead, attempt))
        return attempt.answer()

    # --- group pushes ----------------------------------------------------------------------------------

    def _lead(self, oldest: "WriteAttempt[Any, Any]") -> None:
        while not oldest.is_over:
            group: list[WriteAttempt[Any, Any]] = []
            time.sleep(min(self._fairness.remaining_s, oldest.remaining_s))
            try:
                with self._exclusive(oldest.remaining_s) as waited:
                    group += self._line.take(BATCH_WRITES)
                    self._push_group(group, must_fetch=waited)
            except (RemoteMovedError, BusyError) as error:  # The oldest write has timed out.
                (group or [oldest])[0].fail(error)
            except Exception as error:
                for attempt in group or [oldest]:
                    attempt.fail(error)
            finally:
                self._line.put_back(group)

    def _push_group(self, group: "list[WriteAttempt[Any, Any]]", *, must_fetch: bool) -> None:
        """Push a group of writes, and then serve them.

        Writes that must wait for another push are moved from `group` back to the queue. Raises RemoteError if
        the push fails.
        """
        first, began = group[0], time.monotonic()
        if (
            first.remaining_s < MIN_TIMEOUT_S + LOST_RESPONSE_TIMEOUT_S
        ):  # The remaining time would be too short for a push and for checking its result.
            raise BusyError()
        push_base, until = (
            self._pusher.merge_remote(must_fetch=must_fetch, timeout_s=first.remaining_s),
            first.since + RETRY_TIMEOUT_S,
        )
        has_fetched = must_fetch
        while links := self._prepare(push_base, group):
            commit = next((link.prepared.commit for link in reversed(links) if link.prepared.commit), "")
            try:
                if commit:
                    self._pusher.push(push_base, commit, first.remaining_s)
                elif not has_fetched:  # Without a push, only a fetch can find newer commits.
                    has_fetched, before = True, push_base
                    push_base = self._pusher.merge_remote(must_fetch=True, timeout_s=first.remaining_s)
                    if push_base != before:
                        continue
            except RemoteRefusedError:
                self._keep(group, links[:1])  # Push one write at a time to find out which one is rejected.
                if len(links) == 1:
                    raise
            except RemoteMovedError:
                self._fairness.record_other_machine()
                if time.monotonic() > until:
                    raise
                push_base = self._pusher.merge_remote(must_fetch=True, timeout_s=first.remaining_s)
                has_fetched = True
            except RemoteError:  # The remote may have accepted the writes.
                self._keep(group, links)
                raise
            else:
                self._serve(push_base, links)
                # `leave` lets the next machine continue. If it did so before the writes are served here, it
                # would record their events without their author.
                self._queue.leave()
                if commit:
                    self._notify(commit)
                if not self._queue.is_shared:
                    self._fairness.record_push(time.monotonic() - began)
                return

    def _keep(self, group: "list[WriteAttempt[Any, Any]]", links: "list[ChainedWrite]") -> None:
        # The other writes must wait.
        kept = [link.attempt for link in links]
        self._line.put_back(attempt for attempt in group if attempt not in kept)
        group[:] = kept

    def _prepare(self, push_base: PushBase, group: "list[WriteAttempt[Any, Any]]") -> "list[ChainedWrite]":
        """Prepare a chain of writes that are pushed together, each with its own commit.

        If a write can't be prepared, the chain ends before it, and the write waits for the next push. But if
        it is the first write in the chain, it fails.
        """
        links: list[ChainedWrite] = []
        chain = WriteChain(self.root, self.site.current().snapshot)
        head = push_base.head
        for attempt in group:
            if attempt.is_over:
                continue
            if self.site.state.snapshot is not chain.base_snapshot and links:
                break
            try:
                made = attempt.run(partial(attempt.commit, head, chain if links else None))
                if attempt.writes and not made.commit:  # git ignores all files in this write.
                    if links:
                        break
                    attempt.end_with(attempt.run(attempt.write_locally))
                    continue
            except Exception as error:
                if links:
                    break
                attempt.fail(error)
                continue
            links.append(ChainedWrite(attempt, made, head))
            head = made.commit or head
            if not self._extend_chain(chain, attempt, made):
                break
        return links

    def _extend_chain(
        self, chain: WriteChain, attempt: "WriteAttempt[Any, Any]", prepared_commit: PreparedCommit
    ) -> bool:
        # Return False if the next write can't be prepared on top of this one.
        if self.site.state.snapshot is not chain.base_snapshot or (
            attempt.writes and prepared_commit.changed_files is None
        ):
            return False
        return self.site.committer.extend_chain(chain, attempt.writes)

    def _serve(self, push_base: PushBase, links: "list[ChainedWrite]") -> None:
        written: dict[str, bytes | None] = {}
        for link in links:
            attempt, made = link.attempt, link.prepared
            try:
                if made.commit:
                    at = replace(push_base, head=link.head)
                    attempt.run(partial(self._put_in_place, at, made, attempt, dict(written)))
                attempt.end_with(
                    (self.site.state_after(attempt.writes, attempt.state), attempt.result, made.commit)
                )
            except Exception as error:
                attempt.fail(error)
            written.update((write.path, write.data) for write in attempt.writes)

    def commit(
        self, contents: Callable[[], Contents], message: str, documents: list[str], authorship: Authorship
    ) -> str:
        """Commit files like `Committer.commit_files`, if the remote accepts the commit.

        `contents` returns the files. It is called again if another machine pushes first.
        """

        def make(push_base: PushBase) -> PreparedCommit:
            return create_unpublished_commit(
                self.site, contents(), message, documents, authorship, push_base.head
            )

        with self._exclusive():
            push_base, made = self._push_new_commit(make)
            commit = made.commit
            if commit:
                self.site.committer.commit_merge(
                    PreparedMerge(push_base.head, commit, commit, only_if_ready=True), authorship
                )
                set_last_commit(self.root, push_base.branch, commit)
                self.site.refresh()
                self._notify(commit)
            return commit

    @contextmanager
    def _exclusive(self, timeout_s: float = WRITE_TIMEOUT_S) -> Iterator[bool]:
        """Context manager: block other pushes and merges.

        Yields True if this machine had to wait for another machine. In this case, the caller must fetch.
        """
        try:
            with self.takeover.exclusive(timeout_s), self._queue.turn(timeout_s) as waited:
                yield waited
            self._logged_reason = ""
        except (RemoteTimeoutError, RemoteAccessError, RemoteMergeError) as error:
            if error.message != self._logged_reason:
                self._logged_reason = error.message
                log.warning("writes are rejected for now: %s", error.message)
            # The message can contain URLs and file names, so callers get it only if it is harmless.
            hidden = error.details or not isinstance(error, RemoteMergeError)
            raise type(error)("" if hidden else error.message) from error

    def _push_new_commit(
        self, create_commit: Callable[[PushBase], PreparedCommit]
    ) -> tuple[PushBase, PreparedCommit]:
        push_base, until = self._pusher.merge_remote(), time.monotonic() + RETRY_TIMEOUT_S
        while (made := prepare_or_refuse(partial(create_commit, push_base))).commit:
            try:
                self._pusher.push(push_base, made.commit)
                break
            except RemoteMovedError:
                if time.monotonic() > until:
                    raise
            push_base = self._pusher.merge_remote(must_fetch=True)
        return push_base, made

    @contextmanager
    def checkout_permission(self, base: str, commit: str) -> Iterator[bool]:
        """Context manager: push `commit`, and yield True if the block may check it out.

        Yields False if the branch has moved on from `base`, the parent of `commit`, or if another machine
        pushes first. Raises RemoteError if the push fails.
        """
        with self._exclusive():
            push_base = self._pusher.merge_remote(commit=commit)
            agreed = push_base.head == base
            if agreed:
                try:
                    self._pusher.push(push_base, commit)
                except RemoteMovedError:
                    self._pusher.merge_remote(must_fetch=True)
                    agreed = False
            yield agreed
            if agreed:
                set_last_commit(self.root, push_base.branch, commit)
                self._notify(commit)

    def _put_in_place(
        self,
        push_base: PushBase,
        prepared: PreparedCommit,
        attempt: "WriteAttempt[Any, Any]",
        earlier_contents: Mapping[str, bytes | None],
    ) -> None:
        """Serve a write that the remote has accepted. Raises NotServedError if local edits conflict with it.

        `earlier_contents` contains the files, by path, that earlier writes in the same chain have written.
        """
        commit, names, by = prepared.commit, {ref_name(push_base.branch): prepared.commit}, attempt.by
        joined = PreparedMerge(
            push_base.head,
            commit,
            commit,
            only_if_ready=True,
            changed_files=prepared.changed_files,
            committed_at=prepared.created_at,
            other_refs=names,
        )
        changeset, by = Changeset(self.root), replace(by, mentioned_documents=None)
        try:
            changeset.repeat(rebase_writes(self.root, attempt.writes, earlier_contents))
            if head_commit(self.root) != push_base.head:
                raise CommitError("another process has committed in the meantime")
            serve_commit(self.site, CommitToServe(joined, changeset, lambda _: None), by)
            set_last_commit(self.root, push_base.branch, commit)
        except (BusyError, CommitError, ConflictError):  # Files have been edited or committed since.
            read_by_path = {
                write.path: write.read for write in attempt.writes if write.path not in earlier_contents
            }
            local_edits = {path: data for path, data in read_by_path.items() if data is not None}
            take_over = partial(self.takeover.take_over_locked, commit, push_base.branch, by, local_edits)
            take_over_until(take_over, attempt.until)
