"""Makes a commit of some files on top of another one, from contents that are given.

Neither a working tree nor an index is touched, and no hook or filter of the repository runs. Nothing leads to
the new commit until a branch is moved to it.
"""

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
from server.storage.git.command import MAX_PATH_ARGUMENTS, filter_names, git, git_or_fail
from server.storage.git.commit import Person, quote_path
from server.storage.git.repository import Staged, full_path, prefix_of

_FILE_MODE, _FOLDER_MODE = "100644", "040000"
_NO_FILTER_VALUES = ("unspecified", "unset", "set")  # values of the attribute that name no filter
_LINK_MODES = {"120000": "is a link", "160000": "is a repository of its own"}


@dataclass(frozen=True, slots=True)
class Signed:
    """The message of a commit, and who it is by."""

    message: str
    author: Person
    committer: Person


def make_commit(
    root: Path, parents: tuple[str, ...], files: Mapping[str, bytes | Path | Staged | None], by: Signed
) -> str:
    """Make a commit; its id. `files` are by path relative to the site, None where one is gone.

    Each is its bytes, a file that git reads them from, however many these are, or what git has already.
    Paths outside of the site begin with `../`. Everything else is as in the first parent. Raises
    ConflictError for a file that is or is behind a link, or would be below a file that stays, and for one
    given as a file that a filter of git is to change; StorageError where git can't make it, and GitError.
    """
    _refuse_filtered(root, parents[0], [path for path, data in files.items() if isinstance(data, Path)])
    odd = {path for path, data in files.items() if isinstance(data, Staged) and data.mode in _LINK_MODES}
    gone = {path for path, data in files.items() if data is None}
    modes = _modes(root, parents[0], files.keys() - odd, gone)
    full = partial(full_path, prefix_of(root))
    now = f"{int(time.time())} +0000"
    lines = [b"commit refs/bifolio/next", b"mark :1", f"author {by.author.ident} {now}".encode()]
    lines += [f"committer {by.committer.ident} {now}".encode(), _data(by.message.encode())]
    lines += [f"{word} {id_}".encode() for word, id_ in zip(("from", "merge"), parents, strict=False)]
    # What is gone comes first, since a folder may take the place of a file.
    for path, data in sorted(files.items(), key=lambda item: item[1] is not None):
        name = quote_path(os.fsencode(full(path)))
        mode = modes.get(path, _FILE_MODE).encode()
        if data is None:
            lines.append(b"D " + name)
        elif isinstance(data, Path):
            lines.append(b"M %b %b %b" % (mode, _object(root, data), name))
        elif isinstance(data, Staged):
            lines.append(b"M %b %b %b" % (data.mode.encode(), data.id.encode(), name))
        else:
            lines += [b"M %b inline %b" % (mode, name), _data(data)]
    # The name that fast-import needs is not to be left.
    nothing = "0" * len(parents[0])
    lines += [b"", b"get-mark :1", f"reset refs/bifolio/next\nfrom {nothing}\n".encode(), b"done\n"]
    given = b"\n".join(lines).decode(errors="surrogateescape")
    options = ("--quiet", "--done", "--force", "--cat-blob-fd=1", "--date-format=raw")
    made = (git(root, "fast-import", *options, given=given) or "").strip()
    if not made:
        raise StorageError("git could not write the commit")
    return made


def _object(root: Path, file: Path) -> bytes:
    """The id of what is in a file, which becomes an object of git."""
    made = (git(root, "hash-object", "-w", "--no-filters", "--", str(file)) or "").strip()
    if not made:
        raise StorageError("git could not write the file")
    return made.encode()


def _refuse_filtered(root: Path, commit: str, paths: list[str]) -> None:
    """Raise ConflictError for files that are to be kept in another form, as Git LFS does: no filter runs."""
    if not paths or filter_names(root) == ():
        return
    with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
        index = Path(folder, "index")
        git_or_fail(root, "read-tree", commit, index=index)
        given = "".join(f"{path}\0" for path in paths)
        asked = ("check-attr", "-z", "--cached", "--stdin", "filter")
        printed = git_or_fail(root, *asked, given=given, index=index)
    words = printed.split("\0")
    for path, value in zip(words[0::3], words[2::3], strict=False):
        if value not in _NO_FILTER_VALUES:
            raise ConflictError(
                f'git keeps {path} by the filter "{value}", which does not run here; '
                "add the file in a checkout of the branch"
            )


def _modes(root: Path, commit: str, files: Iterable[str], gone: Set[str]) -> dict[str, str]:
    """The modes of those files that a commit has. Raises ConflictError where one can't be written."""
    files = {path for path in files if not path.startswith("../")}
    folders, needed = _folders_of(files), _folders_of(files - gone) - gone
    asked = folders | files
    # A command line takes some paths; of more, git tells of all.
    few = len(asked) <= MAX_PATH_ARGUMENTS
    named = (commit, "--", *sorted(asked)) if few else ("-r", commit)
    printed = git_or_fail(root, "ls-tree", "-t", "-z", *named)
    found = {}
    for line in filter(None, printed.split("\0")):
        about, _, path = line.partition("\t")
        mode = about.split()[0]
        if path not in asked:
            continue
        if mode in _LINK_MODES:
            raise ConflictError(f"{path} {_LINK_MODES[mode]}; change it in a checkout of the branch")
        if mode == _FOLDER_MODE and path in files - gone:
            _require_empty(root, commit, path, gone)
        elif mode != _FOLDER_MODE and path in needed:
            raise below_file(next(below for below in files - gone if below.startswith(f"{path}/")))
        elif mode.startswith("100") and path in files:
            found[path] = mode
    return found


def _folders_of(files: Iterable[str]) -> set[str]:
    return {folder for path in files for folder in folders_above(path)}


def _require_empty(root: Path, commit: str, folder: str, gone: Set[str]) -> None:
    """Raise ConflictError where not all that a commit has in a folder is gone, and a file takes its place."""
    printed = git_or_fail(root, "ls-tree", "-r", "-z", "--name-only", commit, "--", f"{folder}/")
    for path in filter(None, printed.split("\0")):
        if path not in gone:
            raise ConflictError(f"{folder} would be a file, and a folder with {path} is there; move it first")


def _data(content: bytes) -> bytes:
    return b"data %d\n%b" % (len(content), content)
