"""Which files of a site are no longer as they were read.

Nothing is read but signatures, and the bytes of files that may have changed under the same one.
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

MAX_STAT_PATHS = 200  # More changed paths are found by listing all folders.
RACY_WINDOW_NS = 50_000_000  # A file that changed so shortly before it was read may change again unnoticed.


def walk_for(contents: Contents, hints: Collection[str] | None) -> Walk | None:
    """A walk of all folders, where only that can tell what has become of the paths hinted at."""
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
    """The paths whose file is not as it was read, of those hinted at or, after a walk, of all.

    A media file that is hinted at is one of them anyhow: the formats of a picture may be made now.
    Returns the problems of folders and links as well, and where links lead, as they are now.
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
    """The paths whose file is not as it was read, of all.

    To compare all entries takes as long as the walk, and in a forked process a copy of the memory that they
    are in. So they are compared only where the walk found anything else than when all were the same.
    """
    seen = (contents.applied, found.digest())
    unread = tuple(f"{folder}/" for folder in found.unread)
    if seen == contents.seen:
        settling = {path for path in list(contents.unsettled) if not path.startswith(unread)}
        return {path for path in settling if _differs(contents, path, found)}
    entries = dict(contents.entries)
    if unread:
        entries = {path: entry for path, entry in entries.items() if not path.startswith(unread)}
    # Nearly all of them are as they were: what is sure of a document's file alone is told in one step.
    same = {
        path for path, entry in entries.items() if found.files.get(path) == entry.signature and entry.digest
    }
    left = (entries.keys() | found.files.keys()) - (same - contents.unsettled)
    differing = {path for path in left if _differs(contents, path, found)}
    if not differing:
        contents.seen = seen
    return differing


def is_own(contents: Contents, path: str) -> bool:
    """Whether a path has an entry of its own, and is not the description of the file beside it."""
    return contents.store.owner(path, lambda other: (contents.root / other).is_file()) == path


def _is_new(contents: Contents, path: str) -> bool:
    """Whether there is a file at a path that has no entry, and it will have one."""
    return contents.store.claimed(path) and (contents.root / path).is_file()


def unsettled(entries: Iterable[Entry], at: int) -> set[str]:
    """The paths of entries whose file may change again under its signature, looked at since a time in ns."""
    return {e.path for e in entries if e.signature and not is_settled(e.signature, at)}


def _content_paths(hints: Iterable[str]) -> set[str]:
    """The paths of some that can be content at all."""
    return {hint for hint in hints if not any(map(ignored, hint.split("/")))}


def _beside(path: str) -> str:
    """A media file's description, or the file that a description describes; other paths themselves."""
    if not upload_path(path):
        return path
    return path.removesuffix(SIDECAR_SUFFIX) if path.endswith(SIDECAR_SUFFIX) else path + SIDECAR_SUFFIX


def _differs(contents: Contents, path: str, found: Walk | None = None) -> bool:
    """Whether a file, or the description beside it, is not as it was read."""
    if has_changed(contents, path, found):
        return True
    entry = contents.entries.get(path)
    if entry is None or path not in contents.unsettled:
        return False
    return not _settle(contents, entry, entry.signature)


def has_changed(contents: Contents, path: str, found: Walk | None = None) -> bool:
    """Whether a file, or the description beside it, has another signature than when it was read."""
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
    """Whether an unsettled file has the bytes that it was read with; it is settled when that will stay so."""
    if not entry.digest:
        return False  # a media file, which is looked at again in whole
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
    """Whether a file that was looked at at a time in ns could not change after it under its signature."""
    return last_change(signature) + RACY_WINDOW_NS < at


def writes_of(contents: Contents, changeset: Changeset, chain: Chain | None = None) -> list[Write]:
    """The writes of a change. Raises ConflictError where it began with a file that is not as it was read.

    What a file is to be after a `chain` of others is only known to that.
    """
    writes = changeset.writes()
    known = (write for write in writes if not (chain and chain.changes(write.path)))
    stale = {write.path for write in known if is_stale(contents, write)}
    if stale:
        raise ConflictError(f"{min(stale)} was changed meanwhile; try again")
    return writes


def is_stale(contents: Contents, write: Write) -> bool:
    """Whether a file is not as the index knows it, which has none of descriptions and of other files."""
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
    # Linked, or put back by a write that failed: its bytes tell. Of a file that is replaced as a whole, those
    # on disk: a commit that was taken over left it with another ctime when its other link was removed.
    if write.read is None:
        return _has_other_bytes(contents, write, entry)
    return digest_of(write.read) != entry.digest


def _has_other_bytes(contents: Contents, write: Write, entry: Entry) -> bool:
    """Whether the file of a write has other bytes than its entry, or was changed since the write began."""
    try:
        data, now = read_bytes(contents.root, write.path)
    except (OSError, SyntaxProblem):
        return True
    return now != write.before or digest_of(data) != entry.digest
