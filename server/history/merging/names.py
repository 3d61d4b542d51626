"""Check for paths in commits that must not be written to disk, such as `.GIT/config`."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from server.paths import STATE_FOLDER
from server.storage.git.repository import prefix_of

# HFS+ ignores these characters in names, and NTFS ignores these suffixes.
_IGNORED_CHARS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_IGNORED_END = re.compile(r"[ .]*([:\\].*)?$", re.DOTALL)
_REPOSITORY_NAMES = (".git", "git~1")
_MAX_NAME_BYTES = 255  # the limit in most file systems


def find_forbidden_path(root: Path, paths: Iterable[str]) -> tuple[str, str]:
    """Return the first path that must not be written to disk, and the reason.

    Returns two empty strings if all paths may be written.
    """
    prefix = prefix_of(root)
    reserved = ((path, reason) for path in sorted(paths) if (reason := _reserved_reason(path, prefix)))
    return next(reserved, ("", ""))


def _reserved_reason(path: str, prefix: str) -> str:
    parts = (path.removeprefix("../") if prefix else path).split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "is not a valid file path"
    if any(len(os.fsencode(part)) > _MAX_NAME_BYTES for part in parts):
        return f"has a name of more than {_MAX_NAME_BYTES} bytes"
    if any(_plain(part) in _REPOSITORY_NAMES for part in parts):
        return "would be inside a .git folder"
    return "is reserved for the server" if _plain(path.split("/")[0]) == STATE_FOLDER else ""


def _plain(part: str) -> str:
    # Some file systems treat such names as equal.
    return _IGNORED_END.sub("", _IGNORED_CHARS.sub("", part)).casefold()
