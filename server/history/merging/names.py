"""Names that a commit can have and nothing may write: those git refuses, those of .bifolio/, those too long.

A tree can be made with any name in it, and is fetched as it is. Written, such a file would be in the
repository itself, or outside of it: on file systems that ignore case, or what is behind a name, too.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from server.paths import STATE_FOLDER
from server.storage.git.repository import prefix_of

# What HFS+ leaves out of a name, and what NTFS takes for the end of one.
_IGNORED_CHARS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_IGNORED_END = re.compile(r"[ .]*([:\\].*)?$", re.DOTALL)
_REPOSITORY_NAMES = (".git", "git~1")
_MAX_NAME_BYTES = 255  # What file systems allow.


def find_reserved(root: Path, paths: Iterable[str]) -> tuple[str, str]:
    """The first of some paths relative to the site at `root` that may not be written, and why; or "" twice.

    Those outside of the site begin with `../`, as `changed_files` has them.
    """
    prefix = prefix_of(root)
    found = ((path, why) for path in sorted(paths) if (why := _why(path, prefix)))
    return next(found, ("", ""))


def _why(path: str, prefix: str) -> str:
    parts = (path.removeprefix("../") if prefix else path).split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is no path of a file"
    if any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in parts):
        return f"has a name of more than {_MAX_NAME_BYTES} bytes"
    if any(_plain(part) in _REPOSITORY_NAMES for part in parts):
        return "would be in the repository itself"
    return "is the server's own" if _plain(path.split("/")[0]) == STATE_FOLDER else ""


def _plain(part: str) -> str:
    """A part of a path as file systems may understand it."""
    return _IGNORED_END.sub("", _IGNORED_CHARS.sub("", part)).casefold()
