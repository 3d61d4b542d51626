"""Uncommitted changes to files."""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from server.errors import CommitError, GitError
from server.storage.files import file_mark_of
from server.storage.git.checkout import folders_above, is_identical_on_disk
from server.storage.git.command import filter_names, git_as_owner, git_or_fail
from server.storage.git.log import FileChange
from server.storage.git.refs import head_commit
from server.storage.git.repository import GitFile, Repository, git_folder, prefix_of, repository_of

# These options keep a diff from running external diff programs, text converters, or git in submodules.
_DIFF_OPTIONS = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
STATUS_OPTIONS = (  # options for `git status` to list everything that is not committed
    "--porcelain",
    "-z",
    "--no-renames",
    "--ignore-submodules=all",
    "--untracked-files=all",
    "--ignored",
)
INDEX_PREFIX = "git-index"  # file name prefix of cached indexes
_MAX_NEW_FILES = 20_000  # At most this many untracked files are listed.
_MAX_PATH_ARGUMENTS = 200  # If there are more paths, git compares all files.


def changed_paths(
    root: Path, paths: Collection[str] | None = None, cache: Path | None = None
) -> frozenset[str]:
    """Return which of the `paths` (by default, all tracked files) differ from the last commit.

    Git filters do not run. The result is empty if there is no commit or index, or if a filter can't be
    disabled. Raises GitError if git fails.
    """
    if paths is not None and not paths:
        return frozenset()
    listed = ["--", *paths] if paths is not None and len(paths) <= _MAX_PATH_ARGUMENTS else []
    arguments = ("diff", *_DIFF_OPTIONS, "--name-only", "--no-renames", "--relative", "-z", "HEAD", *listed)
    place = git_folder(root)
    if place is None or not (place / "index").exists() or not head_commit(root):
        return frozenset()
    index = place / "index"
    cached = _cached_index(index, cache)
    try:
        output = _run_on_index(root, arguments, cached if cached and cached.exists() else index, cached)
    except GitError:
        if cached is None or not cached.exists():
            raise
        cached.unlink(missing_ok=True)  # Try again without the cached index, which may be damaged.
        output = _run_on_index(root, arguments, index, cached)
    changed = frozenset(output.split("\0")) - {""}
    return changed if paths is None else changed & frozenset(paths)


def paths_not_in_commit(root: Path, paths: Collection[str]) -> frozenset[str]:
    """Return which of the `paths` are not in the last commit, or differ from it on disk. Raises GitError."""
    if not paths or git_folder(root) is None or not head_commit(root):
        return frozenset(paths)
    folders = sorted({f"{path.rpartition('/')[0]}/" for path in paths if "/" in path})
    listed = ["--", *folders] if folders and len(folders) <= _MAX_PATH_ARGUMENTS else []
    committed = git_or_fail(root, "ls-tree", "-r", "-z", "--name-only", "HEAD", *listed).split("\0")
    return (frozenset(paths) - frozenset(committed)) | changed_paths(root, paths)


def _cached_index(index: Path, cache: Path | None) -> Path | None:
    # After a site has been copied, the times of all files differ from those in the index, so git would read
    # every file each time. A cached index avoids that. It is safe in any working tree, because git rereads
    # files whose times differ from those in the index.
    mark = file_mark_of(index)
    if cache is None or mark is None:
        return None
    return cache / "-".join((INDEX_PREFIX, *map(str, mark)))


def _run_on_index(root: Path, arguments: Collection[str], index: Path, cached: Path | None) -> str:
    filters = filter_names(root)
    if filters is None:
        return ""
    try:
        with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
            # git writes to the index it uses. No other process locks the copy.
            copy = Path(shutil.copy2(index, Path(folder) / "index"))
            before = file_mark_of(copy)
            output = git_or_fail(root, *arguments, index=copy, filters=filters)
            if cached and file_mark_of(copy) != before:
                _keep(copy, cached)
    except OSError as error:
        raise GitError(f"the git index can't be copied: {error.strerror}") from error
    return output


def _keep(index: Path, cached: Path) -> None:
    temporary = cached.with_name(f"{cached.name}.{os.getpid()}")
    try:
        shutil.copy2(index, temporary)
        temporary.replace(cached)
    except OSError:
        temporary.unlink(missing_ok=True)
    for other in cached.parent.glob(f"{INDEX_PREFIX}-*"):
        if other != cached:
            other.unlink(missing_ok=True)


def uncommitted_changes(root: Path, paths: Collection[str], cache: Path | None = None) -> list[FileChange]:
    """Return the uncommitted changes at or below `paths`, sorted by path.

    Untracked files are included, but not ignored files. Raises CommitError or GitError if git fails.
    """
    filters = filter_names(root)
    place = git_folder(root)
    if filters is None or not place:
        raise CommitError("git can't list uncommitted changes")
    index = place / "index"
    cached = _cached_index(index, cache)
    source = cached if cached and cached.exists() else index
    try:
        with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
            copy = Path(shutil.copy2(source, Path(folder) / "index"))
            listed = ("ls-files", "--others", "--exclude-standard", "-z", "--", *paths)
            untracked = git_or_fail(root, *listed, index=copy, filters=filters)
            new = [path for path in untracked.split("\0") if path and not path.endswith("/")][:_MAX_NEW_FILES]
            # New files are marked in the copied index, so that one diff covers all files.
            if new:
                added = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
                git_or_fail(root, *added, index=copy, filters=filters, stdin="\0".join(new))
            command = ("diff", *_DIFF_OPTIONS, "-M", "-l400", "--name-status", "--relative", "-z", "HEAD")
            output = git_or_fail(root, *command, "--", *paths, index=copy, filters=filters)
    except OSError as error:
        raise CommitError(f"git can't list uncommitted changes: {error.strerror}") from error
    return sorted(_changes_in(output), key=lambda change: change.path)


def _changes_in(output: str) -> Iterator[FileChange]:
    words = iter(output.split("\0"))
    for status in words:
        if status.startswith("R"):
            before = next(words)
            yield FileChange("R", next(words), before, int(status[1:] or 0))
        elif status:
            yield FileChange(status[0], next(words))


def uncommitted_paths(root: Path, paths: Collection[str]) -> frozenset[str]:
    """Return which of the `paths` differ from the last commit, on disk or in the index.

    This runs git's filters. Raises CommitError if git fails.
    """
    prefix = prefix_of(root)
    output = os.fsdecode(git_as_owner(root, "status", *STATUS_OPTIONS, "--", *paths))
    changed = {line[3:].removeprefix(prefix) for line in output.split("\0") if line}
    folders = tuple(path for path in changed if path.endswith("/"))  # These folders are ignored entirely.
    inside = {p for p in paths if p.startswith(folders) and os.path.lexists(root / p)}
    return frozenset(inside | (changed & set(paths)) | hidden_edits(repository_of(root), paths))


def hidden_edits(repository: Repository, paths: Collection[str]) -> set[str]:
    """Return which of the `paths` have edits that `--assume-unchanged` or `--skip-worktree` hides from git.

    Raises CommitError if git fails.
    """
    full = {repository.full(path): path for path in paths}
    output = os.fsdecode(git_as_owner(repository.top, "ls-files", "-v", "-s", "-z"))
    edited = set()
    for line in output.split("\0"):
        about, _, name = line.partition("\t")
        if name not in full or not (about[0] == "S" or about[0].islower()):
            continue
        _, mode, id_, _ = about.split()
        # A missing file is outside the sparse checkout, so it has no edits to lose.
        is_there = os.path.lexists(repository.top / name)
        if is_there and not is_identical_on_disk(repository, full[name], GitFile(mode, id_)):
            edited.add(full[name])
    return edited


def staged_files_in_the_way(repository: Repository, paths: Iterable[str]) -> set[str]:
    """Return newly staged files that prevent `paths` from being written.

    For example, a file `a` blocks `a/b`.
    """
    command = ("diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=A", "-z", "HEAD", "--")
    output = os.fsdecode(git_as_owner(repository.top, *command))
    new_paths = set(map(repository.full, paths))
    above = {folder for path in new_paths for folder in folders_above(path)}
    blocking = (
        path
        for path in output.split("\0")
        if path not in new_paths and (path in above or not new_paths.isdisjoint(folders_above(path)))
    )
    prefix = repository.prefix
    return {path.removeprefix(prefix) if path.startswith(prefix) else f"../{path}" for path in blocking}


def staged_renames(root: Path) -> list[FileChange]:
    arguments = ("diff", *_DIFF_OPTIONS, "--cached", "-M", "--diff-filter=R", "--name-status")
    words = git_or_fail(root, *arguments, "-z", "--relative", "HEAD").split("\0")
    renames = zip(words[0::3], words[1::3], words[2::3], strict=False)
    return [FileChange("R", path, before, int(status[1:])) for status, before, path in renames]
