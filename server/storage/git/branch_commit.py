"""Makes a commit of some files on top of another one, from contents that are given.

Neither a working tree nor an index is touched, and no hook or filter of the repository runs. Nothing leads to
the new commit until a branch is moved to it.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from server.errors import ConflictError, StorageError
from server.storage.git.command import git
from server.storage.git.commit import Person, quoted

_FILE = "100644"
_LINKS = {"120000": "is a link", "160000": "is a repository of its own"}


@dataclass(frozen=True, slots=True)
class Signed:
    """The message of a commit, and who it is by."""

    message: str
    author: Person
    committer: Person


def make_commit(root: Path, parents: tuple[str, ...], files: Mapping[str, bytes | None], by: Signed) -> str:
    """Make a commit; its id. `files` are by path relative to the site, None where one is gone.

    Everything else is as in the first parent. Raises ConflictError for a file that is or is behind a link,
    StorageError where git can't make it.
    """
    modes = _modes(root, parents[0], files)
    prefix = (git(root, "rev-parse", "--show-prefix") or "").removesuffix("\n")
    now = f"{int(time.time())} +0000"
    lines = [b"commit refs/quire/next", b"mark :1", f"author {by.author.ident} {now}".encode()]
    lines += [f"committer {by.committer.ident} {now}".encode(), _data(by.message.encode())]
    lines += [f"{word} {id_}".encode() for word, id_ in zip(("from", "merge"), parents, strict=False)]
    for path, data in files.items():
        name = quoted(os.fsencode(prefix + path))
        if data is None:
            lines.append(b"D " + name)
        else:
            lines += [b"M %b inline %b" % (modes.get(path, _FILE).encode(), name), _data(data)]
    # The name that fast-import needs is not to be left.
    nothing = "0" * len(parents[0])
    lines += [b"", b"get-mark :1", f"reset refs/quire/next\nfrom {nothing}\n".encode(), b"done\n"]
    given = b"\n".join(lines).decode(errors="surrogateescape")
    options = ("--quiet", "--done", "--force", "--cat-blob-fd=1", "--date-format=raw")
    made = (git(root, "fast-import", *options, given=given) or "").strip()
    if not made:
        raise StorageError("git could not write the commit")
    return made


def _modes(root: Path, commit: str, files: Mapping[str, bytes | None]) -> dict[str, str]:
    """The modes of those files that a commit has."""
    folders = {str(folder) for path in files for folder in PurePosixPath(path).parents} - {"."}
    printed = git(root, "ls-tree", "-z", commit, "--", *sorted({*folders, *files})) or ""
    found = {}
    for line in filter(None, printed.split("\0")):
        about, _, path = line.partition("\t")
        mode = about.split()[0]
        if mode in _LINKS:
            raise ConflictError(f"{path} {_LINKS[mode]}; change it in a checkout of the branch")
        if path in files and mode.startswith("100"):
            found[path] = mode
    return found


def _data(content: bytes) -> bytes:
    return b"data %d\n%b" % (len(content), content)
