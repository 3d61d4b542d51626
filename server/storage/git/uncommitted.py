"""Which files differ from the last commit."""

import logging
import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from server.errors import GitSlowError
from server.storage.git.command import filter_names, git, git_as_owner
from server.storage.git.log import FileChange

log = logging.getLogger("quire")

# A diff runs nothing: no program that compares or converts, and no git of its own in a submodule.
_PLAIN = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
_MOST_ARGUMENTS = 200  # paths on a command line; of more, git is asked about all


def changed_paths(root: Path, paths: Collection[str] | None = None) -> frozenset[str]:
    """The paths whose file differs from the last commit, among `paths` or among all.

    There are none where the index can't be copied: git has none, or there is no room for temporary files. Nor
    where git takes too long.
    """
    if paths is not None and not paths:
        return frozenset()
    try:
        return _changed(root, paths)
    except GitSlowError as error:
        log.warning("%s: which files are not committed is not known: %s", root, error)
        return frozenset()


def _changed(root: Path, paths: Collection[str] | None) -> frozenset[str]:
    some = ["--", *paths] if paths is not None and len(paths) <= _MOST_ARGUMENTS else []
    arguments = ("diff", *_PLAIN, "--name-only", "--no-renames", "--relative", "-z", "HEAD", *some)
    filters = filter_names(root)
    if filters is None:
        return frozenset()
    place = git(root, "rev-parse", "--git-path", "index")
    try:
        with tempfile.TemporaryDirectory(prefix="quire-") as folder:
            # git writes what it learns of the files into the index: into a copy, which nobody else locks.
            copy = Path(shutil.copy2(root / (place or "").rstrip("\n"), Path(folder) / "index"))
            found = git(root, *arguments, index=copy, filters=filters)
    except OSError:
        return frozenset()
    changed = frozenset((found or "").split("\0")) - {""}
    return changed if paths is None else changed & frozenset(paths)


def uncommitted_paths(root: Path, paths: Collection[str]) -> frozenset[str]:
    """Those of some paths at which there is something, in the index or on disk, that is in no commit.

    The filters of the repository work, as they do for its owner. Raises CommitError where git can't tell.
    """
    prefix = os.fsdecode(git_as_owner(root, "rev-parse", "--show-prefix")).removesuffix("\n")
    options = (
        "--porcelain",
        "-z",
        "--no-renames",
        "--ignore-submodules=all",
        "--untracked-files=all",
        "--ignored",
    )
    printed = os.fsdecode(git_as_owner(root, "status", *options, "--", *paths))
    found = {line[3:].removeprefix(prefix) for line in printed.split("\0") if line}
    folders = tuple(path for path in found if path.endswith("/"))  # all of which is ignored
    inside = {p for p in paths if p.startswith(folders) and os.path.lexists(root / p)}
    return frozenset(inside | (found & set(paths)))


def staged_renames(root: Path) -> list[FileChange]:
    """The renames that the next commit will have, such as those of `git mv`."""
    arguments = ("diff", *_PLAIN, "--cached", "-M", "--diff-filter=R", "--name-status", "-z", "--relative")
    words = (git(root, *arguments, "HEAD") or "").split("\0")
    found = zip(words[0::3], words[1::3], words[2::3], strict=False)
    return [FileChange("R", path, before, int(status[1:])) for status, before, path in found]
