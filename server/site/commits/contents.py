"""The new contents of written files, for a commit."""

from collections.abc import Iterable
from pathlib import Path

from server.storage.intent import Write


def contents_of(root: Path, writes: Iterable[Write]) -> dict[str, bytes | Path | None]:
    """Return the new content of each written file, by path relative to the site.

    A content is bytes, or the path of a file to copy, or None for a deletion.
    """
    return {_path(root, one): one.data if one.source is None else one.source for one in writes}


def _path(root: Path, write: Write) -> str:
    """Return the path of the file that a write changes, after following symbolic links."""
    path = root / write.path
    target = path.parent.resolve() / path.name if write.deletes else path.resolve()
    return target.relative_to(root).as_posix()
