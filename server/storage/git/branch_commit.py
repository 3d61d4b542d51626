"""Commits to branches that are not checked out, without running hooks."""

import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from server.errors import ConflictError, StorageError
from server.storage.files import below_file
from server.storage.git.checkout import folders_above
from server.storage.git.command import MAX_PATH_ARGUMENTS, filter_names, git_or_fail
from server.storage.git.commit import Person, quote_path
from server.storage.git.full_disk import write_objects
from server.storage.git.repository import GitFile, full_path, prefix_of

_FILE_MODE, _FOLDER_MODE = "100644", "040000"
# If the git attribute `filter` has one of these values, no filter applies.
_NO_FILTER_VALUES = ("unspecified", "unset", "set")
_LINK_MODES = {"120000": "is a symbolic link", "160000": "is a separate repository"}


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Message, author and committer of a new commit."""

    message: str
    author: Person
    committer: Person


def make_commit(
    root: Path,
    parents: tuple[str, ...],
    files: Mapping[str, bytes | Path | GitFile | None],
    metadata: CommitMetadata,
) -> str:
    """Create a commit that no branch points to, and return its id.

    `files` maps each path to its new bytes, a file to copy, a blob in git, or None to delete the file. Raises
    ConflictError if a path can't be written, or GitError or StorageError if git fails.
    """
    # Paths outside the site begin with `../`.
    _refuse_filtered(root, parents[0], [path for path, data in files.items() if isinstance(data, Path)])
    linked = {path for path, data in files.items() if isinstance(data, GitFile) and data.mode in _LINK_MODES}
    deleted = {path for path, data in files.items() if data is None}
    modes = _modes(root, parents[0], files.keys() - linked, deleted)
    full = partial(full_path, prefix_of(root))
    now = f"{int(time.time())} +0000"
    lines = [b"commit refs/bifolio/next", b"mark :1", f"author {metadata.author.ident} {now}".encode()]
    lines += [f"committer {metadata.committer.ident} {now}".encode(), _data(metadata.message.encode())]
    lines += [f"{word} {id_}".encode() for word, id_ in zip(("from", "merge"), parents, strict=False)]
    # Deletions come first, because a folder may take the place of a deleted file.
    for path, data in sorted(files.items(), key=lambda item: item[1] is not None):
        name = quote_path(os.fsencode(full(path)))
        mode = modes.get(path, _FILE_MODE).encode()
        if data is None:
            lines.append(b"D " + name)
        elif isinstance(data, Path):
            lines.append(b"M %b %b %b" % (mode, _object(root, data), name))
        elif isinstance(data, GitFile):
            lines.append(b"M %b %b %b" % (data.mode.encode(), data.id.encode(), name))
        else:
            lines += [b"M %b inline %b" % (mode, name), _data(data)]
    # an id of zeros; setting the temporary ref that fast-import needs to this id deletes the ref
    nothing = "0" * len(parents[0])
    lines += [b"", b"get-mark :1", f"reset refs/bifolio/next\nfrom {nothing}\n".encode(), b"done\n"]
    stdin = b"\n".join(lines).decode(errors="surrogateescape")
    options = ("--quiet", "--done", "--force", "--cat-blob-fd=1", "--date-format=raw")
    commit = (write_objects(root, "fast-import", *options, stdin=stdin) or "").strip()
    if not commit:
        raise StorageError("git can't create the commit")
    return commit


def _object(root: Path, file: Path) -> bytes:
    id_ = (write_objects(root, "hash-object", "-w", "--no-filters", "--", str(file)) or "").strip()
    if not id_:
        raise StorageError("git can't write the file")
    return id_.encode()


def _refuse_filtered(root: Path, commit: str, paths: list[str]) -> None:
    if not paths or filter_names(root) == ():
        return
    with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
        index = Path(folder, "index")
        git_or_fail(root, "read-tree", commit, index=index)
        stdin = "".join(f"{path}\0" for path in paths)
        command = ("check-attr", "-z", "--cached", "--stdin", "filter")
        output = git_or_fail(root, *command, stdin=stdin, index=index)
    words = output.split("\0")
    for path, value in zip(words[0::3], words[2::3], strict=False):
        if value not in _NO_FILTER_VALUES:
            raise ConflictError(
                f'{path} requires the git filter "{value}", which does not run when Bifolio writes to a '
                "branch that is not checked out; check out the branch, and add the file there"
            )


def _modes(root: Path, commit: str, files: Iterable[str], deleted: Set[str]) -> dict[str, str]:
    files = {path for path in files if not path.startswith("../")}
    folders, needed = _folders_of(files), _folders_of(files - deleted) - deleted
    requested = folders | files
    # If there are too many paths for a command line, list all files.
    few = len(requested) <= MAX_PATH_ARGUMENTS
    named = (commit, "--", *sorted(requested)) if few else ("-r", commit)
    output = git_or_fail(root, "ls-tree", "-t", "-z", *named)
    modes = {}
    for line in filter(None, output.split("\0")):
        about, _, path = line.partition("\t")
        mode = about.split()[0]
        if path not in requested:
            continue
        if mode in _LINK_MODES:
            raise ConflictError(
                f"{path} {_LINK_MODES[mode]}; check out the branch, and change the path there"
            )
        if mode == _FOLDER_MODE and path in files - deleted:
            _require_empty(root, commit, path, deleted)
        elif mode != _FOLDER_MODE and path in needed:
            raise below_file(next(below for below in files - deleted if below.startswith(f"{path}/")))
        elif mode.startswith("100") and path in files:
            modes[path] = mode
    return modes


def _folders_of(files: Iterable[str]) -> set[str]:
    return {folder for path in files for folder in folders_above(path)}


def _require_empty(root: Path, commit: str, folder: str, deleted: Set[str]) -> None:
    output = git_or_fail(root, "ls-tree", "-r", "-z", "--name-only", commit, "--", f"{folder}/")
    for path in filter(None, output.split("\0")):
        if path not in deleted:
            raise ConflictError(
                f"The file {folder} can't be created, because it is a folder that contains {path}; move "
                "that file first"
            )


def _data(content: bytes) -> bytes:
    return b"data %d\n%b" % (len(content), content)
