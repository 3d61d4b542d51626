"""Loader for a site's files. It uses several cores and a cache."""

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from server.documents.document import Document
from server.documents.path_rules import Layout
from server.formats.tree import SyntaxProblem
from server.paths import cache_folder
from server.site.changed_files import find_changed_files, find_unsettled
from server.site.configure import Configuration
from server.site.contents import Contents
from server.site.git_state import GitState, read_git_state
from server.site.reuse import reuse_rule, stamp_of
from server.storage.entry import Entry
from server.storage.files import FileListing, Signature, digest_of, walk
from server.storage.helper_processes import end_with_parent
from server.storage.images.cache import ImageCache
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.parse_cache import (
    BLOCK_ENTRIES,
    EMPTY_BLOCK,
    ParseCache,
    frame,
    pack,
    pack_in_blocks,
    unpack,
)
from server.storage.read import read_bytes
from server.storage.store import Store

# arguments: the number of files read so far, and the total number
Progress = Callable[[int, int], None]
# Reads the files in lists of paths. For each list, it yields two blocks of entries: those for the parse
# cache, and those that can't be cached.
Readers = Callable[[list[list[str]]], Iterable[tuple[bytes, bytes]]]

NICENESS = 5  # niceness of processes that read files while the server is running
MIN_PARALLEL_FILES = 1000  # When a site is loaded, fewer files than this are read by a single process.
MIN_FILES_FOR_READERS = 4000  # While a site is served, more processes are not worthwhile for fewer files.
MAX_REPLACED_DOCUMENTS = 10_000  # limit on documents reported as changed while no server ran
# A block of this size is returned to the operating system when it is freed.
LARGE_BLOCK_BYTES = 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # parameters of mallopt in malloc.h
# If the cache is larger, one core lists the files while another loads the cache.
MIN_PARALLEL_CACHE_BYTES = 30_000_000


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Context manager: disable garbage collection, which could stop all threads for up to a second."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


def release_free_memory() -> None:
    with suppress(AttributeError, OSError):  # only in glibc
        ctypes.CDLL(None).malloc_trim(0)


def return_large_blocks() -> None:
    """Configure the allocator to return large blocks to the operating system when they are freed.

    Otherwise, a server under load needs twice as much memory.
    """
    with suppress(AttributeError, OSError):  # only in glibc
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, 8 * LARGE_BLOCK_BYTES)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_contents(
    root: Path,
    image_cache: ImageCache,
    configuration: Configuration,
    progress: Progress | None = None,
    cores: int = 1,
    *,
    can_fork: bool = True,
    nice: int = 0,
    packed_entries: bytearray | None = None,
    on_cached: Callable[[Contents], object] | None = None,
    replaced_documents: list[Document] | None = None,
) -> Contents:
    """Load all files of a site, using up to `cores` CPU cores.

    `can_fork` must be False if this process has other threads. `nice` lowers the priority of the processes
    that read files. Serialized entries are added to `packed_entries`, and old versions of changed documents
    to `replaced_documents`. If the cache is large, `on_cached` is called with the cached contents before
    changed files are read.
    """
    began = time.time_ns()
    folder = cache_folder(root)
    roots = Layout(configuration.schema, configuration.settings).roots
    cache = _cache(folder / "documents", configuration) if folder else None
    apart = can_fork and cores > 1 and cache is not None and cache.size > MIN_PARALLEL_CACHE_BYTES
    with _listing_files(root, roots, use_process=apart) as walked, ThreadPoolExecutor(1) as beside:
        # Run git while the cache is loaded and the files are listed.
        git_future = beside.submit(read_git_state, root, GitState())
        kept = cache.load(configuration.schema.types) if cache else {}
        if on_cached and apart and kept:
            before = Contents.of(root, image_cache, configuration, git_future.result())
            before.entries = kept
            on_cached(before)
        listing = walked()
        git = git_future.result()
    contents = Contents.of(root, image_cache, configuration, git)
    contents.folder_problems, contents.links = tuple(listing.problems), listing.links
    readers = partial(_read_in_processes, nice=nice) if can_fork else _read_in_new_processes
    begin = partial(readers, contents.store, cores) if cores > 1 else None
    contents.entries = _read_all(contents.store, listing, cache, kept, progress, begin, packed_entries)
    if replaced_documents is not None:
        replaced_documents.extend(islice(_replaced_documents(kept, contents.entries), MAX_REPLACED_DOCUMENTS))
    contents.unsettled = find_unsettled(contents.entries.values(), began)
    # With `clean_check`, workers need not compare all entries. Cached entries have already been compared with
    # the listing.
    if contents.entries == kept and kept.keys() == listing.files.keys():
        contents.clean_check = (contents.apply_counter, listing.digest())
    else:
        find_changed_files(contents, (), listing)
    return contents


def _cache(path: Path, configuration: Configuration) -> ParseCache:
    return ParseCache(path, stamp_of(configuration), partial(reuse_rule, configuration))


@contextmanager
def _listing_files(
    root: Path, folders: tuple[str, ...], *, use_process: bool
) -> Iterator[Callable[[], FileListing]]:
    if not use_process:
        yield lambda: walk(root, folders)
        return
    with multiprocessing.get_context("fork").Pool(1, _end_silently) as pool:
        yield pool.apply_async(walk, (root, folders)).get


def _replaced_documents(kept: Mapping[str, Entry], entries: Mapping[str, Entry]) -> Iterator[Document]:
    for path, old in kept.items():
        document, entry = old.document, entries.get(path)
        if document is not None and (entry is None or entry.document is not document):
            yield document


def _read_all(
    store: Store,
    listing: FileListing,
    cache: ParseCache | None,
    kept: Mapping[str, Entry],
    progress: Progress | None,
    readers: Readers | None,
    packed: bytearray | None,
) -> dict[str, Entry]:
    exists = listing.files.__contains__
    owners = {store.owning_file(p, exists) if p.endswith(SIDECAR_SUFFIX) else p for p in listing.files}
    used, missing = _split_cached(store, kept, owners, listing.files)
    entries = {entry.path: entry for entry in used}
    if cache and len(kept) + cache.unused - len(used) > (len(used) + len(missing)) // 2:
        cache.replace([*pack_in_blocks(used)])
    elif cache and (renewed := [entry for entry in used if entry is not kept[entry.path]]):
        cache.add([pack(renewed)])
    if packed is not None:
        for part in pack_in_blocks(used):
            packed += frame(part)
    done = len(used)
    for block, read in _read(store, missing, readers if len(missing) >= MIN_PARALLEL_FILES else None):
        entries.update((entry.path, entry) for entry in read)
        # Written block by block, because all blocks together use as much memory as the site.
        if cache and block != EMPTY_BLOCK:
            cache.add([block])
        if packed is not None:
            others = pack(entry for entry in read if not _is_cacheable(entry))
            packed += frame(block) + frame(others)
        done += BLOCK_ENTRIES
        if progress:
            progress(min(done, len(owners)), len(owners))
    if progress:
        progress(len(owners), len(owners))
    return entries


def _split_cached(
    store: Store,
    cached_entries: Mapping[str, Entry],
    paths: set[str],
    signatures: Mapping[str, Signature],
) -> tuple[list[Entry], list[str]]:
    used: list[Entry] = []
    for path, known in cached_entries.items():
        one = _valid_entry(store, known, path, signatures[path]) if path in paths else None
        if one is not None:
            used.append(one)
    return used, sorted(paths.difference(entry.path for entry in used))


def _valid_entry(store: Store, entry: Entry, path: str, signature: Signature) -> Entry | None:
    if entry.derived and store.derived_timestamps(path, signature[0] / 1e9) != entry.derived:
        return None
    if entry.signature == signature and entry.is_settled:
        return entry
    try:
        data, signature = read_bytes(store.root, path)
    except (OSError, SyntaxProblem):
        return None
    same = digest_of(data) == entry.digest
    return entry._replace(signature=signature, read_at_ns=time.time_ns()) if same else None


def _read(store: Store, paths: list[str], readers: Readers | None) -> Iterator[tuple[bytes, list[Entry]]]:
    media = [path for path in paths if upload_path(path)]
    documents = [path for path in paths if not upload_path(path)]
    parts = [documents[i : i + BLOCK_ENTRIES] for i in range(0, len(documents), BLOCK_ENTRIES)]
    yield _read_part(store, media)
    if readers is None:
        yield from (_read_part(store, part) for part in parts)
        return
    types = store.schema.types
    for block, others in readers(parts):
        yield block, [entry for part in (block, others) for entry in unpack(part, types)]


def _read_in_processes(
    store: Store, cores: int, parts: list[list[str]], nice: int
) -> Iterator[tuple[bytes, bytes]]:
    # Forked processes inherit the store, so only paths are sent to them.
    with multiprocessing.get_context("fork").Pool(cores, _begin_reader, (store, nice)) as pool:
        yield from pool.imap_unordered(_read_in_child, parts)


def _read_in_new_processes(store: Store, cores: int, parts: list[list[str]]) -> Iterator[tuple[bytes, bytes]]:
    sent = copy(store)
    sent.image_cache = None  # The image cache is not needed, because media files are read in this process.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, context, _begin_reader, (sent, NICENESS)) as pool:
        yield from pool.map(_read_in_child, parts)


def read_many(store: Store, paths: Iterable[str]) -> dict[str, Entry | None]:
    """Read files, and map each path to its entry, or to None if it has no entry.

    Many files are read on several cores, even if this process has other threads.
    """
    sorted_paths = sorted(paths)
    entries_by_path: dict[str, Entry | None] = dict.fromkeys(sorted_paths)
    if len(sorted_paths) < MIN_FILES_FOR_READERS or cores() == 1:
        entries_by_path.update((path, store.read(path)) for path in sorted_paths)
        return entries_by_path
    with paused_garbage_collection():
        for _, entries in _read(store, sorted_paths, partial(_read_in_new_processes, store, cores())):
            entries_by_path.update((entry.path, entry) for entry in entries)
    return entries_by_path


def _read_part(store: Store, paths: list[str]) -> tuple[bytes, list[Entry]]:
    at = time.time_ns()
    entries = [entry for path in paths if (entry := store.read(path)) is not None]
    return pack(e._replace(read_at_ns=at) for e in entries if _is_cacheable(e)), entries


def _is_cacheable(entry: Entry) -> bool:
    # Media files have no digest. They can't be cached, because variants of images may be created later.
    return entry.document is not None and bool(entry.digest)


_store: Any = None


def _begin_reader(store: Store, nice: int = 0) -> None:
    global _store
    _store = store
    os.nice(nice)
    _end_silently()


def _end_silently() -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _read_in_child(paths: list[str]) -> tuple[bytes, bytes]:
    block, entries = _read_part(_store, paths)
    return block, pack(entry for entry in entries if not _is_cacheable(entry))
