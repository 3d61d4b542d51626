"""The content types, settings and migrations that a branch has changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.config.settings_file import mask_settings_text
from server.errors import ConflictError
from server.formats.tree import SyntaxProblem
from server.history.differences import diff_lines
from server.paths import SETTINGS
from server.site.configure import is_configuration
from server.site.migrations.draft import MIGRATIONS
from server.storage.files import is_utf_8
from server.storage.git.repository import GitFile
from server.storage.git.tree import changed_files, read_blobs
from server.storage.read import decode

_MAX_FILE_BYTES = 200_000

Changed = Mapping[str, tuple[GitFile | None, GitFile | None]]


@dataclass(frozen=True, slots=True)
class ConfigurationChange:
    """A changed configuration file. `lines` is its diff, or None if the diff can't be shown."""

    path: str
    action: str
    lines: list[str] | None


def changed_configuration(root: Path, fork: str, head: str) -> Changed:
    if fork == head:
        return {}
    changed = changed_files(root, fork, head)
    return {path: changed[path] for path in sorted(changed) if _is_listed(path)}


def _is_listed(path: str) -> bool:
    return is_utf_8(path) and (is_configuration(path) or path.startswith(f"{MIGRATIONS}/"))


def diffs(root: Path, changed: Changed) -> Iterator[ConfigurationChange]:
    """Yield the diff of each changed file.

    In site.yaml, comments and values that can be secret are masked, and unchanged lines are left out.
    """
    files = [file for pair in changed.values() for file in pair if file]
    contents = read_blobs(root, [file.id for file in files])
    for path, (before, after) in changed.items():
        one, two = (next(contents) if file else b"" for file in (before, after))
        old, new = _lines(path, one), _lines(path, two)
        action = "create" if before is None else "delete" if after is None else "update"
        shown = None if old is None or new is None else diff_lines(old, new, 0 if path == SETTINGS else 3)
        yield ConfigurationChange(path, action, shown)


def _lines(path: str, data: bytes | None) -> list[str] | None:
    if data is None or len(data) > _MAX_FILE_BYTES:
        return None
    try:
        text = decode(data)
        return (mask_settings_text(text) if path == SETTINGS else text).splitlines()
    except (SyntaxProblem, ConflictError):  # Secrets can't be found in a file with a syntax error.
        return None
