"""The effect of this server's commits on the served state: timestamps of the committed files."""

from collections.abc import Callable
from dataclasses import replace

from server.site.contents import Contents
from server.site.git_state import git_moved, head_moved, with_commit
from server.site.record import Record
from server.site.rescan import rescan_all, rescan_committed
from server.storage.git.commit import NewCommit, is_on_disk
from server.storage.git.repository import Tree


def record_of_commit(
    contents: Contents, new: NewCommit, commit: str, changed: Tree, move_head: Callable[[], None]
) -> Record | None:
    """Move the branch to a commit with `move_head`, and return the record of it; None if nothing changes.

    Requires the write lock, with git's index locked.
    """
    before = contents.git
    is_current = before.head is not None and not head_moved(contents.root, before)
    has_moved = git_moved(contents.root, before)  # for example by `git status`, which updates the index
    move_head()
    if not is_current:  # Another program has committed before, which is not served yet, either.
        return rescan_all(contents, (), contents.writes)
    files = {path: is_on_disk(contents.root / path, new.files[path]) for path in changed}
    renames = len({staged is None for staged in changed.values()}) == 2
    git = with_commit(contents.root, before, commit, new.committed, files, renames=renames)
    if has_moved:  # The next rescan reads what else has changed in the index.
        git = replace(git, index=before.index)
    return rescan_committed(contents, git, files.keys())
