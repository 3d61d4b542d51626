"""The last known state of a site's repository."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from server.errors import GitBusyError, GitError, GitTimeoutError
from server.paths import cache_folder
from server.storage.files import FileMark, file_mark_of
from server.storage.git.index import is_own_lock
from server.storage.git.log import read_commits
from server.storage.git.repository import git_folder, git_folder_id_of, git_lock, head_cache_key, is_git_busy
from server.storage.git.times import CommitTimes, log_unknown_changes, read_times, with_commit_times
from server.storage.git.trouble import AffectedTask, trouble_log
from server.storage.git.uncommitted import changed_paths

POLL_INTERVAL_S = 0.01  # interval between checks of git's lock file


@dataclass(frozen=True, slots=True)
class GitState:
    """The state of a repository.

    `folder` is the path of `.git`, or None if the site is not in a repository. `git_folder_id` changes when
    `.git` is replaced. `head` is None if a git command failed.
    """

    folder: Path | None = None
    git_folder_id: object = None
    head: object = None
    index: FileMark | None = None
    committed: CommitTimes = field(default_factory=CommitTimes)


@dataclass(frozen=True, slots=True)
class GitChange:
    """The difference between two states of a repository.

    The files in `forgotten` no longer have commit times.
    """

    after: GitState  # without commit times
    commit: str
    times: Mapping[str, tuple[int, int]]
    forgotten: frozenset[str]
    changed: frozenset[str]  # files that now differ from the last commit
    unchanged: frozenset[str]


def git_moved(root: Path, before: GitState) -> bool:
    if before.folder is None:
        return head_moved(root, before)
    return head_moved(root, before) or file_mark_of(before.folder / "index") != before.index


def head_moved(root: Path, before: GitState) -> bool:
    git_folder_id, folder = git_folder_id_of(root), before.folder
    if git_folder_id != before.git_folder_id or folder is None:
        return git_folder_id is not None or before.git_folder_id is not None
    return head_cache_key(folder) != before.head


def read_git_state(root: Path, before: GitState) -> GitState:
    """Read the current state of the repository.

    If nothing has changed, return `before` itself.
    """
    git_folder_id = git_folder_id_of(root)
    folder = before.folder if git_folder_id == before.git_folder_id else None
    # Also read the folder again if it was None, because a new .git may have been incomplete.
    if git_folder_id is not None and folder is None:
        folder = _folder(root)
    if folder is None:
        return before if git_folder_id == before.git_folder_id else GitState(git_folder_id=git_folder_id)
    head, index = head_cache_key(folder), file_mark_of(folder / "index")
    if head is not None and (folder, head) == (before.folder, before.head):
        return before if index == before.index else replace(before, index=index, git_folder_id=git_folder_id)
    try:
        committed = _read_times(root, before.committed)
    except GitError as error:
        trouble_log(root).report(
            AffectedTask.TIMES,
            str(error),
            "the commit times of files are unknown",
        )
        committed = before.committed
        if not isinstance(error, GitTimeoutError):
            head = None
    if trouble_log(root).is_affected(AffectedTask.CHANGED):
        head = None
    return GitState(folder, git_folder_id, head, index, committed)


def _read_times(root: Path, before: CommitTimes) -> CommitTimes:
    # Retry once, because `git gc` may have deleted a pack file that git was about to read.
    try:
        return read_times(root, cache_folder(root), before)
    except GitTimeoutError:
        raise
    except GitError:
        return read_times(root, cache_folder(root), before)


def _folder(root: Path) -> Path | None:
    try:
        return git_folder(root)
    except GitError as error:
        trouble_log(root).report(
            AffectedTask.REPOSITORY, str(error), "can't tell whether the site is in a repository"
        )
        return None


def with_checked_paths(root: Path, state: GitState, paths: Iterable[str]) -> GitState:
    """Ask git which of the `paths` differ from the last commit, and return the updated state."""
    known = {path for path in paths if path in state.committed.times}
    if state.folder is None or not known:
        return state
    try:
        differing: frozenset[str] | set[str] = changed_paths(root, known, cache_folder(root))
    except GitError as error:  # On failure, assume that all of them differ.
        log_unknown_changes(root, error)
        differing = known
        if trouble_log(root).is_affected(AffectedTask.CHANGED):
            state = replace(state, head=None)
    else:
        trouble_log(root).resolve(AffectedTask.CHANGED, AffectedTask.REPOSITORY)
    changed = (state.committed.changed - known) | differing
    if changed == state.committed.changed:
        return state
    return replace(state, committed=replace(state.committed, changed=changed))


def with_written(state: GitState, paths: Iterable[str]) -> GitState:
    written = {path for path in paths if path in state.committed.times} - state.committed.changed
    if not written:
        return state
    return replace(state, committed=replace(state.committed, changed=state.committed.changed | written))


def with_commit(
    root: Path,
    state: GitState,
    commit: str,
    committed_at: int,
    files: Mapping[str, bool],
    *,
    may_rename: bool,
) -> GitState:
    """Return the state after this server has made a commit.

    `committed_at` is in seconds since 1970. `files` maps each path to True if the file on disk has the
    content that was committed. If `may_rename` is set, git is asked whether files were renamed. Raises
    GitError if a git command fails.
    """
    assert state.folder is not None
    before = state.committed
    if may_rename:
        times = with_commit_times(before.times, read_commits(root, [commit], limit=1))
    else:
        known = {path: before.times.get(path, (committed_at, committed_at)) for path in files}
        times = {
            **before.times,
            **{path: (min(a, committed_at), max(b, committed_at)) for path, (a, b) in known.items()},
        }
    changed = (before.changed - files.keys()) | {path for path, same in files.items() if not same}
    head, index = head_cache_key(state.folder), file_mark_of(state.folder / "index")
    return replace(state, head=head, index=index, committed=CommitTimes(commit, times, changed))


def with_commits_since(
    root: Path, state: GitState, commit: str, files: Mapping[str, bool]
) -> GitState | None:
    """Return the state after commits by other people, up to and including `commit`.

    Return None if one of them is a merge, or if the first one does not follow the last known commit. `files`
    has the same meaning as in `with_commit`. Raises GitError if a git command fails.
    """
    assert state.folder is not None
    before = state.committed
    since = read_commits(root, [commit, f"^{before.commit}"])
    if not since or since[-1].parents != (before.commit,) or any(len(one.parents) != 1 for one in since):
        return None
    times = with_commit_times(before.times, since)
    changed = (before.changed - files.keys()) | {path for path, same in files.items() if not same}
    head, index = head_cache_key(state.folder), file_mark_of(state.folder / "index")
    return replace(state, head=head, index=index, committed=CommitTimes(commit, times, changed))


def paths_with_new_times(before: CommitTimes, after: CommitTimes, paths: Iterable[str]) -> set[str]:
    return {
        path
        for path in paths
        if after.times.get(path) != before.times.get(path)
        or (path in after.changed) != (path in before.changed)
    }


def git_change(before: GitState, after: GitState) -> GitChange | None:
    """Return the difference between two states, or None if they are equal."""
    old, new = before.committed, after.committed
    plain = replace(after, committed=CommitTimes())
    same_times = new.times is old.times or new.times == old.times
    if plain == replace(before, committed=CommitTimes()) and (new.commit, new.changed) == (
        old.commit,
        old.changed,
    ):
        return None
    times = {} if same_times else {p: t for p, t in new.times.items() if old.times.get(p) != t}
    return GitChange(
        plain,
        new.commit,
        times,
        frozenset() if same_times else frozenset(old.times.keys() - new.times.keys()),
        new.changed - old.changed,
        old.changed - new.changed,
    )


def apply_git(before: GitState, change: GitChange) -> GitState:
    times = before.committed.times
    if change.times or change.forgotten:
        kept = {path: at for path, at in times.items() if path not in change.forgotten}
        times = {**kept, **change.times}
    changed = (before.committed.changed - change.unchanged) | change.changed
    return replace(change.after, committed=CommitTimes(change.commit, times, changed))


def with_shared_paths(state: GitState, paths: Iterable[str]) -> GitState:
    """Return an equal state in which the paths are the same string objects as in `paths`."""
    # This saves 15 MB of memory for 150,000 files.
    own = {path: path for path in paths}
    times = {own.get(path, path): at for path, at in state.committed.times.items()}
    return replace(state, committed=replace(state.committed, times=times))


def git_marks(state: GitState) -> tuple[FileMark | None, object, FileMark | None]:
    """Return values by which changes to git's lock, HEAD and index can be detected.

    When a git command writes files, at least one of the values changes.
    """
    if state.folder is None:
        return None, None, None
    return git_lock(state.folder), head_cache_key(state.folder), file_mark_of(state.folder / "index")


def git_guard(state: GitState) -> Callable[[], None]:
    """Return a function that raises GitBusyError if git may have changed files since this call."""
    folder = state.folder
    if folder is None:
        return lambda: None
    index = folder / "index"
    before, lock_before = file_mark_of(index), git_lock(folder)

    def check() -> None:
        lock = git_lock(folder)
        is_new = lock is not None and lock != lock_before and not is_own_lock(folder)
        if is_new or is_git_busy(lock) or file_mark_of(index) != before:
            raise GitBusyError()

    return check


def wait_for_git(state: GitState, deadline: float) -> None:
    """Wait until no git command is writing files, or until `deadline` on the monotonic clock."""
    folder = state.folder
    while folder is not None and is_git_busy(git_lock(folder)) and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL_S)


def log_writes_resumed(root: Path, state: GitState) -> None:
    trouble, folder = trouble_log(root), state.folder
    if trouble.is_affected(AffectedTask.WRITES) and not (folder and git_lock(folder)):
        trouble.resolve(AffectedTask.WRITES)
