"""Detection of changed files."""

import time
from collections.abc import Collection, Iterable, Mapping

from server.errors import ConflictError
from server.formats.tree import SyntaxProblem
from server.problems import Problem
from server.site.contents import Contents
from server.site.writing.speculative_writes import WriteChain
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.files import (
    FileListing,
    Signature,
    digest_of,
    is_ignored,
    is_skipped,
    mtime_ns,
    needs_full_walk,
    signature_of,
    walk,
    with_aliases,
)
from server.storage.intent import Write
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.read import read_bytes

MAX_STAT_PATHS = 200  # Above this, listing all folders is faster.
# A second change within this time may leave the signature unchanged.
RACY_WINDOW_NS = 50_000_000


def list_if_needed(contents: Contents, hints: Collection[str] | None) -> FileListing | None:
    """List the files in all content folders, or return None if checking the files in `hints` is enough."""
    if not (
        hints is None
        or len(hints) > MAX_STAT_PATHS
        or needs_full_walk(contents.root, _content_paths(hints), contents.folder_problems)
    ):
        return None
    root, roots = contents.root, contents.store.layout.roots
    if contents.clean_check and contents.clean_check[0] == contents.apply_counter:
        summary = walk(root, roots, is_summary=True)
        if (contents.apply_counter, summary.digest()) == contents.clean_check:
            return summary
    return walk(root, roots)


def find_changed_files(
    contents: Contents, hints: Collection[str], listing: FileListing | None
) -> tuple[set[str], tuple[Problem, ...], Mapping[str, str]]:
    """Return the changed files, the problems with folders and links, and the target of each link, by path.

    If `listing` is None, only the files in `hints` are checked. Media files in `hints` always count as
    changed.
    """
    hinted = _content_paths(hints)
    media = {hint for hint in hinted if upload_path(hint) and hint in contents.entries}
    if listing is None:
        paths = set[str]()
        for hint in hinted:
            inside = walk(contents.root, [hint]) if (contents.root / hint).is_dir() else FileListing()
            if inside.problems or inside.links:
                return find_changed_files(contents, hints, walk(contents.root, contents.store.layout.roots))
            paths |= {path for each in (hint, *inside.files) for path in (each, _beside(each))}
            if hint not in contents.entries and not _is_new(contents, hint):
                paths |= {path for path in list(contents.entries) if path.startswith(hint + "/")}
        differing = {path for path in with_aliases(paths, contents.links) if _differs(contents, path)}
        return media | differing, contents.folder_problems, contents.links
    return media | _differing(contents, listing), tuple(listing.problems), listing.links


def _differing(contents: Contents, listing: FileListing) -> set[str]:
    # A full comparison takes as long as listing the folders, and makes a forked process copy the memory of
    # all entries. Skip it if nothing has changed since an earlier comparison found no difference.
    state = (contents.apply_counter, listing.digest())
    unread = tuple(f"{folder}/" for folder in listing.unreadable_folders)
    if state == contents.clean_check:
        settling = {path for path in list(contents.unsettled) if not path.startswith(unread)}
        return {
            path for path in settling if _differs(contents, path, None if listing.is_summary else listing)
        }
    if listing.is_summary:  # Files or entries have changed since the last full comparison.
        listing = walk(contents.root, contents.store.layout.roots)
        state = (contents.apply_counter, listing.digest())
        unread = tuple(f"{folder}/" for folder in listing.unreadable_folders)
    entries = dict(contents.entries)
    if unread:
        entries = {path: entry for path, entry in entries.items() if not path.startswith(unread)}
    # Exclude unchanged entries (usually nearly all) from the slower check below.
    same = {
        path for path, entry in entries.items() if listing.files.get(path) == entry.signature and entry.digest
    }
    candidates = (entries.keys() | listing.files.keys()) - (same - contents.unsettled)
    differing = {path for path in candidates if _differs(contents, path, listing)}
    if not differing:
        contents.clean_check = state
    return differing


def has_own_entry(contents: Contents, path: str) -> bool:
    """Return True if a file has its own entry. A media file's description has none."""
    return contents.store.owning_file(path, lambda other: (contents.root / other).is_file()) == path


def _is_new(contents: Contents, path: str) -> bool:
    return contents.store.claimed(path) and (contents.root / path).is_file()


def find_unsettled(entries: Iterable[Entry], read_at_ns: int) -> set[str]:
    """Return the paths of files that might change again without getting a new signature.

    `read_at_ns` is the time at which the files were read, in nanoseconds since 1970.
    """
    # The same test as in `is_settled`, but without a function call for each of up to hundreds of thousands of
    # files.
    since = read_at_ns - RACY_WINDOW_NS
    return {e.path for e in entries if (s := e.signature) and (s[0] >= since or s[3] >= since)}


def _content_paths(hints: Iterable[str]) -> set[str]:
    return {path for path in hints if not any(map(is_ignored, path.split("/")))}


def _beside(path: str) -> str:
    if not upload_path(path):
        return path
    return path.removesuffix(SIDECAR_SUFFIX) if path.endswith(SIDECAR_SUFFIX) else path + SIDECAR_SUFFIX


def _differs(contents: Contents, path: str, listing: FileListing | None = None) -> bool:
    if has_changed(contents, path, listing):
        return True
    entry = contents.entries.get(path)
    if entry is None or path not in contents.unsettled:
        return False
    return not _has_same_bytes(contents, entry, entry.signature)


def has_changed(contents: Contents, path: str, listing: FileListing | None = None) -> bool:
    """Return True if a file has changed. A media file also counts as changed if its description has.

    The current signature is taken from `listing` or, if this is None, from disk.
    """
    entry = contents.entries.get(path)
    now = _signature(contents, path, listing)
    if entry is None:
        return now is not None and contents.store.claimed(path) and has_own_entry(contents, path)
    if now is None or now != entry.signature:
        return True
    return bool(upload_path(path)) and (
        _signature(contents, path + SIDECAR_SUFFIX, listing) != entry.beside
        or not has_own_entry(contents, path)
    )


def _signature(contents: Contents, path: str, listing: FileListing | None) -> Signature | None:
    return listing.files.get(path) if listing else signature_of(contents.root / path)


def _has_same_bytes(contents: Contents, entry: Entry, current: Signature | None) -> bool:
    if not entry.digest:
        return False  # Media files have no digest, so they are always read again.
    at = time.time_ns()
    try:
        data, read = read_bytes(contents.root, entry.path)
    except (OSError, SyntaxProblem):
        return False
    if read != current or digest_of(data) != entry.digest:
        return False
    if is_settled(current, at):
        contents.unsettled.discard(entry.path)
    return True


def is_settled(signature: Signature, time_ns: int) -> bool:
    """Return True if any change made after `time_ns` would change the file's signature.

    `time_ns` is in nanoseconds since 1970.
    """
    return mtime_ns(signature) + RACY_WINDOW_NS < time_ns


def checked_writes(contents: Contents, changeset: Changeset, chain: WriteChain | None = None) -> list[Write]:
    """Return the writes of a changeset, after checking that they conflict with no other changes.

    Raises ConflictError if another program changed a file that the changeset writes or relies on. Files
    changed by the writes in `chain` are not checked.
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
    """Return True if a write is based on a different version of its file than the one being served."""
    if not contents.store.claimed(write.path) or is_skipped(write.path):
        return False
    if contents.store.owning_file(write.path, lambda path: (contents.root / path).is_file()) != write.path:
        return False
    entry = contents.entries.get(write.path)
    known = entry.signature if entry else None
    if write.before == known:
        return False
    if not (entry and known and write.before and entry.digest) or write.before[:3] != known[:3]:
        return True
    # Only the ctime differs, for example because a hard link was created. Compare the content that the write
    # has read (or, if unknown, the content on disk) with the content that is being served.
    if write.read is None:
        return _has_other_bytes(contents, write, entry)
    return digest_of(write.read) != entry.digest


def _has_other_bytes(contents: Contents, write: Write, entry: Entry) -> bool:
    try:
        data, signature = read_bytes(contents.root, write.path)
    except (OSError, SyntaxProblem):
        return True
    return signature != write.before or digest_of(data) != entry.digest
