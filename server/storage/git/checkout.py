"""Checkout of whole commits into temporary clones, and of individual files."""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from server.errors import CommitError, GitError, GitTimeoutError, StorageError
from server.storage.git.command import filter_names, git_as_owner, git_or_fail
from server.storage.git.repository import GitFile, Repository, Tree, prefix_of, repository_of
from server.storage.temporary import temporary_folder

_LINK_MODE = "120000"
_SUBMODULE_MODE = "160000"


@contextmanager
def temporary_checkout(root: Path, commit: str) -> Iterator[Path]:
    """Check out a commit in a temporary clone, and yield the site's folder in that clone.

    Raises StorageError if this fails.
    """
    with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
        try:
            site = _check_out(root, commit, Path(folder).resolve() / "clone")
        except OSError as error:
            raise StorageError(f"The commit can't be checked out: {error.strerror}") from error
        yield site


def write_files(root: Path, files: Mapping[str, GitFile], folder: Path) -> dict[str, Path]:
    """Export files from git to `folder`, applying git's filters, and return their new paths.

    Raises StorageError if this fails.
    """
    prefix = prefix_of(root)
    entries = [
        b"%b %b\t%b\0" % (f.mode.encode(), f.id.encode(), os.fsencode(prefix + p)) for p, f in files.items()
    ]
    environment = {"GIT_INDEX_FILE": str(folder / "index")}
    try:
        git_as_owner(
            root, "update-index", "-z", "--index-info", stdin=b"".join(entries), environment=environment
        )
        command = ("checkout-index", "--all", "--quiet", f"--prefix={folder}/files/")
        git_as_owner(root, *command, environment=environment)
    except CommitError as error:
        reason = str(error).replace(f"{folder}/files/", "")  # Omit the temporary folder from the message.
        raise StorageError(f"The files of the branch can't be written: {reason}") from error
    return {path: folder / "files" / (prefix + path) for path in files}


def check_out(root: Path, commit: str, paths: Collection[str]) -> None:
    """Replace files, except submodules, with their versions in a commit.

    Files that the commit does not contain are deleted. Raises CommitError if git fails, or OSError.
    """
    if paths:
        repository = repository_of(root)
        _put(repository, repository.versions(commit, paths))


def finish_checkout(root: Path, paths: Collection[str], before: str, after: str, *, revert: bool) -> bool:
    """Finish an interrupted checkout from the commit `before` to `after` or, if `revert` is set, undo it.

    Files that were edited after the interruption are kept. Return True if files have changed. Raises
    CommitError if git fails, or OSError if a file can't be written.
    """
    repository = repository_of(root)
    if repository.head() != before:
        return False
    old, new = (repository.versions(commit, paths) for commit in (before, after))
    now, target = (new, old) if revert else (old, new)
    remaining = {
        path: file for path, file in target.items() if not is_identical_on_disk(repository, path, file)
    }
    for path in list(remaining):
        is_there = os.path.lexists(repository.top / repository.full(path))
        if is_there and not is_identical_on_disk(repository, path, now[path]):
            del remaining[path]
    if not remaining or blocking_files(repository, remaining):
        return False
    _put(repository, remaining)
    return True


def is_identical_on_disk(repository: Repository, path: str, file: GitFile | None) -> bool:
    """Return True if the file on disk equals `file`, or if neither exists.

    Raises CommitError if git fails.
    """
    full = repository.full(path)
    place = repository.top / full
    if file is None:  # A folder at this path is allowed, because it may contain other new files.
        return not _is_file(place)
    if not os.path.lexists(place):
        return False
    if file.mode == _SUBMODULE_MODE:
        return place.is_dir()
    if place.is_symlink() or file.mode == _LINK_MODE:
        target = os.fsencode(os.readlink(place)) if place.is_symlink() else None
        return file.mode == _LINK_MODE and target is not None and _hash(repository, target) == file.id
    if not place.is_file() or bool(place.stat().st_mode & 0o100) != (file.mode == "100755"):
        return False
    command = ("hash-object", f"--path={full}", "--", str(place))
    return git_as_owner(repository.top, *command).decode().strip() == file.id


def blocking_files(repository: Repository, files: Tree) -> set[str]:
    """Return existing files that prevent `files` from being written. For example, a file `a` blocks `a/b`."""
    blocking = set[str]()
    for path in (path for path, file in files.items() if file and file.mode != _SUBMODULE_MODE):
        place = repository.root / path
        if place.is_dir() and not place.is_symlink():
            below = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
            blocking.update(os.path.relpath(one, repository.root) for one in below)
        above = (repository.root / one for one in folders_above(path))
        blocking.update(str(one.relative_to(repository.root)) for one in above if _is_file(one))
    return {path for path in blocking if path not in files or files[path]}


def folders_above(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)) if parts[length - 1] != "..")


def _check_out(root: Path, commit: str, clone: Path) -> Path:
    output = _run(root, "rev-parse", "--show-prefix", "--show-object-format", "--git-path", "objects")
    prefix, kind, objects = output.split("\n")[:3]
    shallow = root / _run(root, "rev-parse", "--git-path", "shallow").rstrip("\n")
    clone.mkdir()
    _run(clone, "init", "--quiet", "--template=", f"--object-format={kind}")
    lent = clone / ".git/objects/info/alternates"
    lent.parent.mkdir(exist_ok=True)
    lent.write_text(f"{(root / objects).resolve()}\n", encoding="utf-8", errors="surrogateescape")
    if shallow.exists():
        shutil.copy(shallow, clone / ".git/shallow")
    _run(clone, "update-ref", "--no-deref", "HEAD", commit)
    _run(clone, "read-tree", "HEAD")
    inside = ("--", prefix) if prefix else ()
    files = _run(clone, "ls-files", "-z", *inside)
    filters = filter_names(clone)
    if filters is None:
        raise StorageError("The commit can't be checked out, because this would require running a git filter")
    _run(clone, "checkout-index", "-u", "-q", "-z", "--stdin", stdin=files, filters=filters)
    (clone / prefix).mkdir(parents=True, exist_ok=True)
    return clone / prefix


def _run(folder: Path, *arguments: str, stdin: str = "", filters: Iterable[str] = ()) -> str:
    try:
        return git_or_fail(folder, *arguments, stdin=stdin, filters=filters)
    except GitTimeoutError:
        raise
    except GitError as error:
        raise StorageError(f"The commit can't be checked out: {error.message}") from error


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _hash(repository: Repository, data: bytes) -> str:
    return git_as_owner(repository.top, "hash-object", "--stdin", stdin=data).decode().strip()


def _put(repository: Repository, files: Tree) -> None:
    for path, file in files.items():
        place = repository.top / repository.full(path)
        if file is None and _is_file(place):
            place.unlink()
    entries = b"".join(
        b"%b %b\t%b\0" % (file.mode.encode(), file.id.encode(), os.fsencode(repository.full(path)))
        for path, file in files.items()
        if file and file.mode != _SUBMODULE_MODE
    )
    if not entries:
        return
    with temporary_folder(repository.root, "checkout-") as folder:
        environment = {"GIT_INDEX_FILE": f"{folder}/index"}
        set_up = ("update-index", "-z", "--index-info")
        git_as_owner(repository.top, *set_up, stdin=entries, environment=environment)
        write = ("checkout-index", "--all", "--force", "--quiet")
        git_as_owner(repository.top, *write, environment=environment)
