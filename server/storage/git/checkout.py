"""A commit checked out in a folder of its own, with all of its history."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.errors import StorageError
from server.storage.git.command import filter_names, git


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
