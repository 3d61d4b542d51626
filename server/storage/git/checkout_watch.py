"""Detection of git checkouts that run while Bifolio moves a branch."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from server.errors import GitBusyError
from server.storage.files import FileMark, file_mark_of
from server.storage.git.branches import move_branch, worktree_of
from server.storage.git.command import MAX_PATH_ARGUMENTS, git
from server.storage.git.index import is_own_lock
from server.storage.git.repository import full_path, git_lock, is_git_busy, location, prefix_of

# `git checkout` does the following, and nothing prevents the branch from moving meanwhile:
#
#   1. It reads the commit of the branch.
#   2. It creates index.lock, and writes the files of this commit.
#   3. It renames index.lock to index.
#   4. It sets HEAD to the branch, whatever commit the branch has by now.
#
# If the branch moves between 1 and 4, the files lack the new commit, and the next `git commit -a` reverts it.
# A check before the move can't see a checkout that is at 1, so these checks follow the move:
#
#   - between 1 and 2: Wait for CHECKOUT_START_S, which is many times what git needs.
#   - between 2 and 3: Wait until index.lock is gone.
#   - between 3 and 4: If the index is new, wait until it is older than CHECKOUT_END_S.
#   - after 4: HEAD names the branch. If the index has the old files, move the branch back.
CHECKOUT_START_S, CHECKOUT_END_S = 0.1, 0.3
_MAX_NEW_INDEX_S = 1.0  # Other commands may keep writing the index.
CHECKOUT_TIMEOUT_S = 5.0
_POLL_INTERVAL_S = 0.005


@dataclass(frozen=True, slots=True)
class BranchMove:
    """Description of a branch's move from the commit `before` to `commit`.

    `paths` are the files that differ between these commits.
    """

    name: str
    commit: str
    before: str
    paths: Collection[str]


class BranchMover:
    """Helper that moves a branch while git commands may be checking it out.

    Create it before the move, because it records the state of git's index. Then call `move`, followed by
    `confirm_or_revert`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = {folder: _index(folder) for folder in _git_folders(root)}
        self._moved_at = 0.0

    def move(self, move: BranchMove, reason: str) -> bool:
        """Move a branch. Return False if it is checked out or another process has moved it.

        Raises GitBusyError if another git command takes too long, or GitError if git fails.
        """
        self._wait()
        if worktree_of(self._root, move.name):
            return False
        moved = move_branch(self._root, move.name, move.commit, move.before, reason)
        self._moved_at = time.monotonic()
        return moved

    def confirm_or_revert(self, move: BranchMove) -> bool:
        """Return True if the branch can stay at the new commit.

        If a checkout of the old commit ran during the move, return False, and move the branch back unless it
        has newer commits. Raises GitBusyError if another git command takes too long, or GitError.
        """
        try:
            self._wait_for_checkouts()
        except GitBusyError:
            self._take_back(move)
            raise
        worktree = worktree_of(self._root, move.name)
        if not worktree or self._has_checked_out(Path(worktree), move):
            return True
        self._take_back(move)
        return False

    def _wait_for_checkouts(self) -> None:
        _wait_until(lambda: time.monotonic() - self._moved_at >= CHECKOUT_START_S)
        self._wait()
        _wait_until(lambda: not self._has_new_index(), _MAX_NEW_INDEX_S)

    def _wait(self) -> None:
        """Wait until no git command is changing files. Raises GitBusyError if this takes too long."""
        _wait_until(lambda: not self._is_locked())
        if self._is_locked():
            raise GitBusyError("A git command is changing files, and has locked the index; try again")

    def _is_locked(self) -> bool:
        locks = [git_lock(folder) for folder in _git_folders(self._root) if not is_own_lock(folder)]
        return any(lock and (is_git_busy(lock) or _is_new(lock)) for lock in locks)

    def _has_new_index(self) -> bool:
        marks = [(_index(folder), self._before.get(folder)) for folder in _git_folders(self._root)]
        return any(mark and mark != before and _is_new(mark) for mark, before in marks)

    def _has_checked_out(self, worktree: Path, move: BranchMove) -> bool:
        prefix, few = prefix_of(self._root), len(move.paths) <= MAX_PATH_ARGUMENTS
        paths = [full_path(prefix, path) for path in move.paths] if few else []
        command = ("diff-index", "--cached", "--quiet", move.commit, "--", *paths)
        return git(worktree, *command) is not None

    def _take_back(self, move: BranchMove) -> None:
        move_branch(self._root, move.name, move.before, move.commit, "take back a write")


def _git_folders(root: Path) -> list[Path]:
    place = location(root)
    return [place.common, *place.common.glob("worktrees/*")] if place else []


def _index(folder: Path) -> FileMark | None:
    return file_mark_of(folder / "index")


def _is_new(mark: FileMark) -> bool:
    return abs(time.time() - mark[0] / 1e9) < CHECKOUT_END_S


def _wait_until(is_done: Callable[[], bool], timeout_s: float = CHECKOUT_TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_done() and time.monotonic() < deadline:
        time.sleep(_POLL_INTERVAL_S)
