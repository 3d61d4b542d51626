"""Detection of files that have changed since they were last read.

Normally, only the signatures are read. If a file may have changed without a new signature, its bytes are read
too.
"""

import time
from collections.abc import Collection, Iterable, Mapping

from server.errors import ConflictError
from server.formats.tree import SyntaxProblem
from server.problems import Problem
from server.site.contents import Contents
from server.site.writing.speculative_writes import Chain
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.files import (
    Signature,
    Walk,
    digest_of,
    ignored,
    is_skipped,
    last_change,
    needs_walk,
    same_files,
    signature_of,
    walk,
)
from server.storage.intent import Write
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.read import read_bytes

MAX_STAT_PATHS = 200  # With more paths, listing all folders is faster.
# Within this time after a change, a file can change again without a new signature.
RACY_WINDOW_NS = 50_000_000


def walk_for(contents: Contents, hints: Collection[str] | None) -> Walk | None:
    """Walk all folders if this is required to check the paths in `hints`. Otherwise return None."""
    if (
        hints is None
        or len(hints) > MAX_STAT_PATHS
        or needs_walk(contents.root, _content_paths(hints), contents.folders)
    ):
        return walk(contents.root, contents.store.layout.roots)
    return None


def changed(
    contents: Contents, hints: Collection[str], found: Walk | None
) -> tuple[set[str], tuple[Problem, ...], Mapping[str, str]]:
    """Return the paths of changed files. If `found` is a walk, check all files, or else the paths in `hints`.

    A media file in `hints` is always included, because its formats may have been created. Also returns the
    current problems in folders and links, and the links with their targets.
    """
    hinted = _content_paths(hints)
    media = {hint for hint in hinted if upload_path(hint) and hint in contents.entries}
    if found is None:
        paths = set[str]()
        for hint in hinted:
            inside = walk(contents.root, [hint]) if (contents.root / hint).is_dir() else Walk()
            if inside.problems or inside.links:
                return changed(contents, hints, walk(contents.root, contents.store.layout.roots))
            paths |= {path for each in (hint, *inside.files) for path in (each, _beside(each))}
            if hint not in contents.entries and not _is_new(contents, hint):
                paths |= {path for path in list(contents.entries) if path.startswith(hint + "/")}
        differing = {path for path in same_files(paths, contents.links) if _differs(contents, path)}
        return media | differing, contents.folders, contents.links
    return media | _differing(contents, found), tuple(found.problems), found.links


def _differing(contents: Contents, found: Walk) -> set[str]:
    """Return the paths of all changed files.

    Comparing all entries is as slow as the walk. It also makes a forked process copy the memory of the
    entries. Therefore it is skipped if an earlier comparison found no changes and the result of the walk has
    not changed since then.
    """
    state = (contents.applied, found.digest())
    unread = tuple(f"{folder}/" for folder in found.unread)
    if state == contents.seen:
        settling = {path for path in list(contents.unsettled) if not path.startswith(unread)}
        return {path for path in settling if _differs(contents, path, found)}
    entries = dict(contents.entries)
    if unread:
        entries = {path: entry for path, entry in entries.items() if not path.startswith(unread)}
    # Nearly all entries are unchanged. A fast comparison excludes them from the slower check.
    same = {
        path for path, entry in entries.items() if found.files.get(path) == entry.signature and entry.digest
    }
    candidates = (entries.keys() | found.files.keys()) - (same - contents.unsettled)
    differing = {path for path in candidates if _differs(contents, path, found)}
    if not differing:
        contents.seen = state
    return differing


def is_own(contents: Contents, path: str) -> bool:
    """Whether a path has an entry of its own. This is not the case for descriptions of media files."""
    return contents.store.owner(path, lambda other: (contents.root / other).is_file()) == path


def _is_new(contents: Contents, path: str) -> bool:
    return contents.store.claimed(path) and (contents.root / path).is_file()


def unsettled(entries: Iterable[Entry], at: int) -> set[str]:
    """Return the paths of entries whose files had changed just before they were read, at the time `at` (in
    ns).

    Such a file could change again and have the same signature.
    """
    return {e.path for e in entries if e.signature and not is_settled(e.signature, at)}


def _content_paths(hints: Iterable[str]) -> set[str]:
    return {path for path in hints if not any(map(ignored, path.split("/")))}


def _beside(path: str) -> str:
    """Return the path of a media file's description, or of the media file for a description.

    Other paths are returned unchanged.
    """
    if not upload_path(path):
        return path
    return path.removesuffix(SIDECAR_SUFFIX) if path.endswith(SIDECAR_SUFFIX) else path + SIDECAR_SUFFIX


def _differs(contents: Contents, path: str, found: Walk | None = None) -> bool:
    if has_changed(contents, path, found):
        return True
    entry = contents.entries.get(path)
    if entry is None or path not in contents.unsettled:
        return False
    return not _settle(contents, entry, entry.signature)


def has_changed(contents: Contents, path: str, found: Walk | None = None) -> bool:
    """Whether the signature of a file or of its description has changed since the file was read."""
    entry = contents.entries.get(path)
    now = _signature(contents, path, found)
    if entry is None:
        return now is not None and contents.store.claimed(path) and is_own(contents, path)
    if now is None or now != entry.signature:
        return True
    return bool(upload_path(path)) and (
        _signature(contents, path + SIDECAR_SUFFIX, found) != entry.beside or not is_own(contents, path)
    )


def _signature(contents: Contents, path: str, found: Walk | None) -> Signature | None:
    return found.files.get(path) if found else signature_of(contents.root / path)


def _settle(contents: Contents, entry: Entry, now: Signature | None) -> bool:
    """Whether a file still contains the bytes that were read, although its signature was too recent to trust.

    If the signature is now old enough to trust, the path is removed from the unsettled ones.
    """
    if not entry.digest:
        return False  # A media file is always read again.
    at = time.time_ns()
    try:
        data, read = read_bytes(contents.root, entry.path)
    except (OSError, SyntaxProblem):
        return False
    if read != now or digest_of(data) != entry.digest:
        return False
    if is_settled(now, at):
        contents.unsettled.discard(entry.path)
    return True


def is_settled(signature: Signature, at: int) -> bool:
    """Whether, at the time `at` (in ns), a signature is so old that any later change to the file will change
    it.
    """
    return last_change(signature) + RACY_WINDOW_NS < at


def writes_of(contents: Contents, changeset: Changeset, chain: Chain | None = None) -> list[Write]:
    """Return the writes in a changeset.

    Raises ConflictError if one of the files, or a file that the change relies on, has changed since it was
    read for the index. Files that were changed by writes in `chain` are not compared, because their new
    content is not on disk yet.
    """
    writes = changeset.writes()
    known = (
        write for write in (*writes, *changeset.relied_on()) if not (chain and chain.changes(write.path))
    )
    stale = {write.path for write in known if is_stale(contents, write)}
    if stale:
        raise ConflictError(f"{min(stale)} was changed during this write; try again")
    return writes


def is_stale(contents: Contents, write: Write) -> bool:
    """Whether a file differs from its entry.

    Returns False for files without an entry. These are descriptions and files that belong to no type.
    """
    if not contents.store.claimed(write.path) or is_skipped(write.path):
        return False
    if contents.store.owner(write.path, lambda path: (contents.root / path).is_file()) != write.path:
        return False
    entry = contents.entries.get(write.path)
    known = entry.signature if entry else None
    if write.before == known:
        return False
    if not (entry and known and write.before and entry.digest) or write.before[:3] != known[:3]:
        return True
    # Only the ctime differs: the file was linked, or restored by a failed write. Compare the bytes instead.
    # If the write has not read the file, compare the bytes on disk.
    if write.read is None:
        return _has_other_bytes(contents, write, entry)
    return digest_of(write.read) != entry.digest


def _has_other_bytes(contents: Contents, write: Write, entry: Entry) -> bool:
    """Whether a file's bytes differ from its entry, or the file has changed since the write began."""
    try:
        data, signature = read_bytes(contents.root, write.path)
    except (OSError, SyntaxProblem):
        return True
    return signature != write.before or digest_of(data) != entry.digest
