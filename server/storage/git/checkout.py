"""A commit checked out in a folder of its own, with all of its history; and some files of one."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from server.errors import CommitError, StorageError
from server.storage.git.command import filter_names, git, git_as_owner
from server.storage.git.repository import Staged, prefix_of


@contextmanager
def checked_out(root: Path, commit: str) -> Iterator[Path]:
    """The folder of the site at `root` in a temporary clone that has a commit checked out.

    The clone shares the objects of the repository, to which nothing is written. Raises StorageError.
    """
    with tempfile.TemporaryDirectory(prefix="quire-") as folder:
        try:
            site = _check_out(root, commit, Path(folder).resolve() / "clone")
        except OSError as error:
            raise StorageError(f"The commit can't be checked out: {error.strerror}") from error
        yield site


def write_files(root: Path, files: Mapping[str, Staged], folder: Path) -> dict[str, Path]:
    """Write files that git has into a folder, as a checkout would: with the filters of the repository.

    Returns where each is, by its path relative to the site. Raises StorageError.
    """
    prefix = prefix_of(root)
    entries = [
        b"%b %b\t%b\0" % (f.mode.encode(), f.id.encode(), os.fsencode(prefix + p)) for p, f in files.items()
    ]
    environment = {"GIT_INDEX_FILE": str(folder / "index")}
    try:
        git_as_owner(
            root, "update-index", "-z", "--index-info", given=b"".join(entries), environment=environment
        )
        command = ("checkout-index", "--all", "--quiet", f"--prefix={folder}/files/")
        git_as_owner(root, *command, environment=environment)
    except CommitError as error:
        said = str(error).replace(f"{folder}/files/", "")  # The name is another each time.
        raise StorageError(f"The files of the branch can't be written: {said}") from error
    return {path: folder / "files" / (prefix + path) for path in files}


def _check_out(root: Path, commit: str, clone: Path) -> Path:
    said = _run(root, "rev-parse", "--show-prefix", "--show-object-format", "--git-path", "objects")
    prefix, kind, objects = said.split("\n")[:3]
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
    filters = filter_names(clone) or ()
    if git(clone, "checkout-index", "-u", "-q", "-z", "--stdin", given=files, filters=filters) is None:
        raise StorageError("The commit can't be checked out: some of its files can't be written")
    (clone / prefix).mkdir(parents=True, exist_ok=True)
    return clone / prefix


def _run(folder: Path, *arguments: str) -> str:
    printed = git(folder, *arguments)
    if printed is None:
        raise StorageError(f"The commit can't be checked out: git {arguments[0]} failed")
    return printed
