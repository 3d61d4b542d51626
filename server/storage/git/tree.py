"""Files in git commits. The functions raise GitError."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import IO

from server.errors import GitError
from server.storage.git.command import git_bytes, git_bytes_or_fail, git_if_possible, git_or_fail
from server.storage.git.repository import GitFile, prefix_of
from server.storage.links import may_point_to

_FILE_MODES, _LINK_MODE = ("100644", "100755", "100664"), "120000"
MAX_LINKS = 8  # Longer chains of links are not followed.
# At most this many bytes are read into memory at a time, unless a single file is larger.
BATCH_BYTES = 32_000_000


@dataclass(frozen=True, slots=True)
class Blob:
    """The id of a git blob, and its size in bytes."""

    id: str
    size: int


def read_tree(root: Path, commit: str, paths: Iterable[str] = ()) -> dict[str, Blob]:
    """Return the files in a commit. If `paths` is given, return only files at or below these paths.

    Allowed symbolic links are replaced by the files that they point to. Other links are left out.
    """
    files: dict[str, Blob] = {}
    links: dict[str, Blob] = {}
    output = git_or_fail(root, "ls-tree", "-r", "-z", "--long", commit, "--", *paths)
    for line in output.split("\0"):
        about, _, path = line.partition("\t")
        if path:
            mode, _, id_, size = about.split()
            if mode in _FILE_MODES:
                # The size is "BAD" if the blob is missing.
                files[path] = Blob(id_, int(size) if size.isdigit() else 0)
            elif mode == _LINK_MODE:
                links[path] = Blob(id_, int(size))
    return {**files, **_behind_links(root, files, links)} if links else files


def read_blob_ids(root: Path, commit: str) -> dict[str, str]:
    """Return the blob ids of the files in a commit, by path. Symbolic links are left out."""
    output = git_or_fail(root, "ls-tree", "-r", "-z", commit)
    lines = (line.partition("\t") for line in output.split("\0"))
    parts = ((about.split(), path) for about, _, path in lines if path)
    return {path: id_ for (mode, _, id_), path in parts if mode in _FILE_MODES}


def _behind_links(root: Path, files: Mapping[str, Blob], links: Mapping[str, Blob]) -> dict[str, Blob]:
    ids = [blob.id for blob in links.values()]
    read = dict(zip(ids, read_blobs(root, ids), strict=True))
    targets = {
        path: normpath(join(dirname(path), (read[blob.id] or b"").decode(errors="surrogateescape")))
        for path, blob in links.items()
    }
    result: dict[str, Blob] = {}
    for path, target in targets.items():
        for _ in range(MAX_LINKS):
            if target not in targets:
                break
            target = targets[target]
        if target in targets or not may_point_to(path, target):
            continue
        if target in files:
            result[path] = files[target]
        inside = f"{target}/"
        below = {p.removeprefix(inside): blob for p, blob in files.items() if p.startswith(inside)}
        result.update((f"{path}/{rest}", blob) for rest, blob in below.items())
    return result


def read_blobs(root: Path, ids: Iterable[str]) -> Iterator[bytes | None]:
    """Yield the bytes of each blob, or None for a missing blob.

    An id can also be a name such as `COMMIT:./PATH`. It must not contain a newline.
    """
    requested = list(ids)
    if not requested:
        return
    stdin = "".join(f"{id_}\n" for id_ in requested)
    data = git_bytes_or_fail(root, "cat-file", "--batch", "--buffer", stdin=stdin)
    at = 0
    for _ in requested:
        end = data.find(b"\n", at)
        if end < 0:
            raise GitError("git cat-file failed: its output is incomplete")
        head = data[at:end].split()
        if len(head) != 3 or head[1] != b"blob":  # The line is "ID missing".
            at = end + 1
            yield None
            continue
        size = int(head[2])
        yield data[end + 1 : end + 1 + size]
        at = end + 1 + size + 1


def require_blob(data: bytes | None, path: str, blob: Blob) -> bytes:
    if data is None:
        raise GitError(
            f"git can't read {path} in that commit, because the object {blob.id} is missing or damaged"
        )
    return data


def write_blob(root: Path, data: bytes) -> str:
    return git_bytes_or_fail(root, "hash-object", "-w", "--stdin", stdin=data).decode().strip()


def copy_blob(root: Path, id_: str, into: IO[bytes]) -> bool:
    """Copy a blob to the file `into`. Return False if the blob is missing."""
    try:
        return git_bytes(root, "cat-file", "blob", id_, into=into) is not None
    except GitError:
        head = git_bytes_or_fail(root, "cat-file", "--batch-check", stdin=f"{id_}\n").split()
        if head[1:2] == [b"blob"]:
            raise
        return False


def read_named(root: Path, names: Iterable[str], max_bytes: int) -> Iterator[bytes | None]:
    """Yield the bytes of the files with these names, which have the form `COMMIT:./PATH` (without newlines).

    Yields None for each file that is missing or larger than `max_bytes`.
    """
    requested = list(names)
    if not requested:
        return
    stdin = "".join(f"{name}\n" for name in requested)
    lines = git_bytes_or_fail(root, "cat-file", "--batch-check", "--buffer", stdin=stdin).split(b"\n")
    heads = (line.split() for line in lines[: len(requested)])
    blobs = [Blob(h[0].decode(), int(h[2])) if len(h) == 3 and h[1] == b"blob" else None for h in heads]
    blobs += [None] * (len(requested) - len(blobs))
    for part in _parts([blob if blob and blob.size <= max_bytes else None for blob in blobs]):
        read = read_blobs(root, [blob.id for blob in part if blob])
        yield from (next(read) if blob else None for blob in part)


def _parts(blobs: Iterable[Blob | None]) -> Iterator[list[Blob | None]]:
    part: list[Blob | None] = []
    size = 0
    for blob in blobs:
        if part and blob and size + blob.size > BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(blob)
        size += blob.size if blob else 0
    if part:
        yield part


def changed_files(root: Path, one: str, other: str) -> dict[str, tuple[GitFile | None, GitFile | None]]:
    """Return both versions of each file that differs between two commits.

    The paths of files outside the site begin with `../`.
    """
    prefix = prefix_of(root)
    output = git_bytes_or_fail(root, "diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", one, other, "--")
    words = output.decode(errors="surrogateescape").split("\0")
    result = {}
    for about, path in zip(words[0::2], words[1::2], strict=False):
        modes = about.removeprefix(":").split()
        place = path.removeprefix(prefix) if path.startswith(prefix) else f"../{path}"
        result[place] = _staged_entry(modes[0], modes[2]), _staged_entry(modes[1], modes[3])
    return result


def paths_changed_by(root: Path, commits: Iterable[str]) -> set[str]:
    """Return the paths of the files that the commits change.

    For a merge commit, these are only the files that differ from their version in every parent.
    """
    options = ("--stdin", "-r", "-c", "-z", "--no-commit-id", "--name-only", "--no-renames", "--relative")
    output = git_or_fail(root, "diff-tree", *options, stdin="".join(f"{id_}\n" for id_ in commits))
    return set(output.split("\0")) - {""}


def _staged_entry(mode: str, id_: str) -> GitFile | None:
    return None if mode == "000000" else GitFile(mode, id_)


# --- merge file -----------------------------------------------------------------------------------

MERGE_TIMEOUT_S = 3.0  # git can take minutes to merge megabytes of similar lines.


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Merge two changed versions of `base` line by line. Return None if they conflict or can't be merged."""
    texts = (base, ours, theirs)
    windows = merge_flag(*("\r\n" in text for text in texts))
    base, ours, theirs = (text.replace("\r\n", "\n") for text in texts)
    if ours == base or theirs in (ours, base):
        merged: str | None = theirs if ours == base else ours
    else:
        merged = _merge_lines(base, ours, theirs)
    return merged.replace("\n", "\r\n") if merged is not None and windows else merged


def merge_flag(base: bool, ours: bool, theirs: bool) -> bool:
    return theirs if ours == base else ours


def _merge_lines(base: str, ours: str, theirs: str) -> str | None:
    ended = merge_flag(*(text.endswith("\n") for text in (base, ours, theirs)))
    with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
        try:
            for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
                body = text.removesuffix("\n")
                (Path(folder) / name).write_bytes(f"{body}\n".encode() if body else b"")
        except UnicodeEncodeError:  # The text contains half of a surrogate pair, which is possible in JSON.
            return None
        # The exit status is the number of conflicts. Failures are also treated as conflicts.
        command = ("merge-file", "--stdout", "--quiet", "ours", "base", "theirs")
        merged = git_if_possible(Path(folder), *command, seconds=MERGE_TIMEOUT_S)
    if merged is None:
        return None
    return merged.removesuffix("\n") + "\n" * ended
