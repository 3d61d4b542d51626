"""Contents of files before and after writes."""

from collections.abc import Iterable
from pathlib import Path

from server.storage.files import digest_of
from server.storage.git.written import MISSING
from server.storage.intent import Write

MAX_DIGESTED_BYTES = 8 * 1024 * 1024  # larger files, such as videos, are not read


def new_contents(root: Path, writes: Iterable[Write]) -> dict[str, bytes | Path | None]:
    """Map the path of each written file to its new content.

    The content is bytes, the path of a file to copy, or None for a deleted file.
    """
    return {_path(root, one): one.data if one.source is None else one.source for one in writes}


def replaced_digests(root: Path, writes: Iterable[Write]) -> dict[str, str]:
    """Map the path of each written file to the digest of the content that is replaced.

    For a new file, the digest is MISSING. Unreadable and very large files are left out.
    """
    digests = {_path(root, write): _replaced_digest(root, write) for write in writes}
    return {path: digest for path, digest in digests.items() if digest is not None}


def _replaced_digest(root: Path, write: Write) -> str | None:
    if write.before is None:
        return MISSING
    return content_digest(root / write.path if write.read is None else write.read)


def content_digest(content: bytes | Path | None) -> str | None:
    """Return the digest of a file's content, or MISSING if `content` is None because the file is deleted.

    Return None if the content can't be read or is too large.
    """
    if content is None:
        return MISSING
    try:
        if isinstance(content, Path):
            if content.stat().st_size > MAX_DIGESTED_BYTES:
                return None
            content = content.read_bytes()
    except OSError:
        return None
    return digest_of(content).hex()


def _path(root: Path, write: Write) -> str:
    path = root / write.path
    target = path.parent.resolve() / path.name if write.deletes else path.resolve()
    return target.relative_to(root).as_posix()
