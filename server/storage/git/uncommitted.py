"""Which files differ from the last commit.

git compares a file with the index by its size and times, and reads it where these are others. In a site that
was copied they are, so that git would read all files again at each start: what it learns is kept in a cache.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from server.errors import CommitError, GitError
from server.storage.files import file_mark_of
from server.storage.git.checkout import folders_above, holds
from server.storage.git.command import filter_names, git_as_owner, git_or_fail
from server.storage.git.log import FileChange
from server.storage.git.refs import head_commit
from server.storage.git.repository import Repository, Staged, git_folder, prefix_of, repository_of

# A diff runs nothing: no program that compares or converts, and no git of its own in a submodule.
_DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
STATUS_OPTIONS = (  # options of `git status`, by which nothing that is in no commit stays unsaid
    "--porcelain",
    "-z",
    "--no-renames",
    "--ignore-submodules=all",
    "--untracked-files=all",
    "--ignored",
)
INDEX_PREFIX = "git-index"  # what the name of an index begins with that is kept
_MAX_NEW_FILES = 20_000  # Untracked files that are listed.
_MAX_PATH_ARGUMENTS = 200  # For more paths, git compares all files.


def changed_paths(
    root: Path, paths: Collection[str] | None = None, cache: Path | None = None
) -> frozenset[str]:
    """The paths whose file differs from the last commit, among `paths` or among all.

    There are none in a repository without a commit or an index, and if git has a filter whose name can't be
    overruled. What git learns of the files is kept in the folder `cache`. Raises GitError if it is not known:
    git fails, or takes too long, or the index can't be copied.
    """
    if paths is not None and not paths:
        return frozenset()
    some = ["--", *paths] if paths is not None and len(paths) <= _MAX_PATH_ARGUMENTS else []
    arguments = ("diff", *_DIFF_OPTIONS, "--name-only", "--no-renames", "--relative", "-z", "HEAD", *some)
    place = git_folder(root)
    if place is None or not (place / "index").exists() or not head_commit(root):
        return frozenset()
    index = place / "index"
    kept = _cached_index(index, cache)
    try:
        printed = _run_on_index(root, arguments, kept if kept and kept.exists() else index, kept)
    except GitError:
        if kept is None or not kept.exists():
            raise
        kept.unlink(missing_ok=True)  # It is a copy, which may be what is damaged.
        printed = _run_on_index(root, arguments, index, kept)
    changed = frozenset(printed.split("\0")) - {""}
    return changed if paths is None else changed & frozenset(paths)


def _cached_index(index: Path, cache: Path | None) -> Path | None:
    """The file that keeps what git has learned beside the index, while that stays as it is; None without one.

    It may be used wherever it is from: git believes an index of a file only where the times are the same.
    """
    mark = file_mark_of(index)
    if cache is None or mark is None:
        return None
    return cache / "-".join((INDEX_PREFIX, *map(str, mark)))


def _run_on_index(root: Path, arguments: Collection[str], index: Path, kept: Path | None) -> str:
    """What a git command prints that looks at an index. What git learns is kept. Raises GitError."""
    filters = filter_names(root)
    if filters is None:
        return ""
    try:
        with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
            # git writes what it learns of the files into the index: into a copy, which nobody else locks.
            copy = Path(shutil.copy2(index, Path(folder) / "index"))
            before = file_mark_of(copy)
            found = git_or_fail(root, *arguments, index=copy, filters=filters)
            if kept and file_mark_of(copy) != before:
                _keep(copy, kept)
    except OSError as error:
        raise GitError(f"the index of git can't be copied: {error.strerror}") from error
    return found


def _keep(index: Path, kept: Path) -> None:
    """Keep an index in place of any other, if there is room for it."""
    temporary = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        shutil.copy2(index, temporary)
        temporary.replace(kept)
    except OSError:
        temporary.unlink(missing_ok=True)
    for other in kept.parent.glob(f"{INDEX_PREFIX}-*"):
        if other != kept:
            other.unlink(missing_ok=True)


def uncommitted_changes(root: Path, paths: Collection[str], cache: Path | None = None) -> list[FileChange]:
    """How the files below some paths differ from the last commit, by path, also those that git has not got.

    What git ignores is none. A file in another place is renamed where most of it is the same. Raises
    CommitError where git can't tell, and GitError.
    """
    filters = filter_names(root)
    place = git_folder(root)
    if filters is None or not place:
        raise CommitError("git can't tell what is not committed")
    index = place / "index"
    kept = _cached_index(index, cache)
    source = kept if kept and kept.exists() else index
    try:
        with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
            copy = Path(shutil.copy2(source, Path(folder) / "index"))
            listed = ("ls-files", "--others", "--exclude-standard", "-z", "--", *paths)
            found = git_or_fail(root, *listed, index=copy, filters=filters)
            new = [path for path in found.split("\0") if path and not path.endswith("/")][:_MAX_NEW_FILES]
            # In the copy alone, git is told that they are to come, so that it looks at all in one way.
            if new:
                added = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
                git_or_fail(root, *added, index=copy, filters=filters, given="\0".join(new))
            asked = ("diff", *_DIFF_OPTIONS, "-M", "-l400", "--name-status", "--relative", "-z", "HEAD")
            printed = git_or_fail(root, *asked, "--", *paths, index=copy, filters=filters)
    except OSError as error:
        raise CommitError(f"git can't tell what is not committed: {error.strerror}") from error
    return sorted(_changes_in(printed), key=lambda change: change.path)


def _changes_in(printed: str) -> Iterator[FileChange]:
    """The changes that `git diff --name-status -z` prints."""
    words = iter(printed.split("\0"))
    for status in words:
        if status.startswith("R"):
            before = next(words)
            yield FileChange("R", next(words), before, int(status[1:] or 0))
        elif status:
            yield FileChange(status[0], next(words))


def uncommitted_paths(root: Path, paths: Collection[str]) -> frozenset[str]:
    """Those of some paths at which there is something, in the index or on disk, that is in no commit.

    The filters of the repository work, as they do for its owner. Raises CommitError where git can't tell.
    """
    prefix = prefix_of(root)
    printed = os.fsdecode(git_as_owner(root, "status", *STATUS_OPTIONS, "--", *paths))
    found = {line[3:].removeprefix(prefix) for line in printed.split("\0") if line}
    folders = tuple(path for path in found if path.endswith("/"))  # all of which is ignored
    inside = {p for p in paths if p.startswith(folders) and os.path.lexists(root / p)}
    return frozenset(inside | (found & set(paths)) | hidden_edits(repository_of(root), paths))


def hidden_edits(repository: Repository, paths: Collection[str]) -> set[str]:
    """Those of some paths whose file is edited, and that git has been told to take for unchanged.

    `git status` says nothing of them (`git update-index --assume-unchanged`, `--skip-worktree`). Raises
    CommitError.
    """
    full = {repository.full(path): path for path in paths}
    printed = os.fsdecode(git_as_owner(repository.top, "ls-files", "-v", "-s", "-z"))
    found = set()
    for line in printed.split("\0"):
        about, _, name = line.partition("\t")
        if name not in full or not (about[0] == "S" or about[0].islower()):
            continue
        _, mode, id_, _ = about.split()
        # One that is not there is left out of a sparse checkout, and nothing is lost with it.
        is_there = os.path.lexists(repository.top / name)
        if is_there and not holds(repository, full[name], Staged(mode, id_)):
            found.add(full[name])
    return found


def staged_in_place_of(repository: Repository, paths: Iterable[str]) -> set[str]:
    """The files that are staged alone, in no commit, and that the index can't have beside some that come.

    `paths` are where those come. What is in place of one is below it, or is a file where it needs a folder.
    """
    asked = ("diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=A", "-z", "HEAD", "--")
    printed = os.fsdecode(git_as_owner(repository.top, *asked))
    coming = set(map(repository.full, paths))
    above = {folder for path in coming for folder in folders_above(path)}
    found = (
        path
        for path in printed.split("\0")
        if path not in coming and (path in above or not coming.isdisjoint(folders_above(path)))
    )
    prefix = repository.prefix
    return {path.removeprefix(prefix) if path.startswith(prefix) else f"../{path}" for path in found}


def staged_renames(root: Path) -> list[FileChange]:
    """The renames that the next commit will have, such as those of `git mv`. Raises GitError."""
    arguments = ("diff", *_DIFF_OPTIONS, "--cached", "-M", "--diff-filter=R", "--name-status")
    words = git_or_fail(root, *arguments, "-z", "--relative", "HEAD").split("\0")
    found = zip(words[0::3], words[1::3], words[2::3], strict=False)
    return [FileChange("R", path, before, int(status[1:])) for status, before, path in found]
