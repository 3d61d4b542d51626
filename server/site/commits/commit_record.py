"""What a commit of this server changes of what the site shows: the timestamps of the files in it."""

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
    """What it comes to that the branch moves to a commit, which `move_head` lets it do; None for nothing.

    Call it under the write lock, with the index locked.
    """
    before = contents.git
    followed = before.head is not None and not head_moved(contents.root, before)
    looked_at = git_moved(contents.root, before)  # as by `git status`, which notes in the index what it saw
    move_head()
    if not followed:  # Others have committed before, which is not shown yet either.
        return rescan_all(contents, (), contents.writes)
    files = {path: is_on_disk(contents.root / path, new.files[path]) for path in changed}
    renames = len({staged is None for staged in changed.values()}) == 2
    git = with_commit(contents.root, before, commit, new.committed, files, renames=renames)
    if looked_at:  # A look is due, which finds out what else the index says.
        git = replace(git, index=before.index)
    return rescan_committed(contents, git, files.keys())
