"""Record of the new timestamps that files get when this server commits them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from server.site.contents import Contents
from server.site.git_state import git_marks, git_moved, head_moved, with_commit
from server.site.record import Record
from server.site.rescan import SchemaPending, rescan_all, rescan_committed
from server.storage.git.commit import NewCommit
from server.storage.git.repository import Tree, is_git_busy
from server.storage.git.written import is_on_disk


def record_of_commit(
    contents: Contents, new: NewCommit, commit: str, changed: Tree, move_head: Callable[[], None]
) -> Record | None:
    """Move the branch to a commit, and return a record with the new timestamps of the files.

    Return None if there is nothing to record, or if the next refresh must check all files. `move_head` moves
    the branch and releases git's index lock. The caller must hold this lock and the write lock.
    """
    before = contents.git
    is_current = before.head is not None and not head_moved(contents.root, before)
    has_moved = git_moved(contents.root, before)  # for example, by `git status`, which updates the index
    move_head()
    if not is_current:  # Another program has committed, and this commit is not served yet.
        return _rescan(contents)
    files = {path: is_on_disk(contents.root / path, new.files[path]) for path in changed}
    renames = len({staged is None for staged in changed.values()}) == 2
    git = with_commit(contents.root, before, commit, new.commit_time, files, may_rename=renames)
    if has_moved:  # Keep the old index state, so that the next rescan finds the other program's change.
        git = replace(git, index=before.index)
    return rescan_committed(contents, git, files.keys())


def _rescan(contents: Contents) -> Record | None:
    # `move_head` has released git's index lock. If a git command has run since then, return None, so that the
    # next refresh reads everything.
    before = git_marks(contents.git)
    if is_git_busy(before[0]):
        return None
    with suppress(SchemaPending):
        record = rescan_all(contents, (), contents.write_counter)
        if git_marks(contents.git) == before:
            return record
    return None
