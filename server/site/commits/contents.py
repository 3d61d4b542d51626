"""What the files of a write are to hold, as a commit of them takes it."""

from collections.abc import Iterable
from pathlib import Path

from server.storage.intent import Write


def contents_of(root: Path, writes: Iterable[Write]) -> dict[str, bytes | Path | None]:
    """By path relative to the site: bytes, the file that has them, or None for a file that is to be gone."""
    return {_path(root, one): one.data if one.source is None else one.source for one in writes}


def _path(root: Path, write: Write) -> str:
    """The path of the file that a write changes, where links lead to it."""
    path = root / write.path
    target = path.parent.resolve() / path.name if write.deletes else path.resolve()
    return target.relative_to(root).as_posix()
