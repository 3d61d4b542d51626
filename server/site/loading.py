"""Reads all files of a site: from the parse cache what has not changed, the rest on all cores."""

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from server.documents.document import Document
from server.documents.path_rules import Layout
from server.formats.tree import SyntaxProblem
from server.paths import cache_folder
from server.site.changed_files import changed, unsettled
from server.site.configure import Configuration
from server.site.contents import Contents
from server.site.git_state import GitState, read_git_state
from server.site.reuse import stamp_of, usable
from server.storage.entry import Entry
from server.storage.files import Signature, Walk, digest_of, walk
from server.storage.images.cache import ImageCache
from server.storage.media import upload_path
from server.storage.parse_cache import (
    BLOCK_ENTRIES,
    EMPTY_BLOCK,
    CachedEntry,
    ParseCache,
    frame,
    pack,
    pack_in_blocks,
    unpack,
)
from server.storage.read import read_bytes
from server.storage.store import Store

Progress = Callable[[int, int], None]  # (files read, files in all)
# Reads lists of paths: for each, a block for the cache, and one of the entries that are never kept.
Readers = Callable[[list[list[str]]], Iterable[tuple[bytes, bytes]]]

PARENT_POLL_INTERVAL_S = 0.5  # A child process checks so often whether its parent has ended.
NICENESS = 5  # Readers beside a server give way to it.
MIN_PARALLEL_FILES = 1000  # Fewer files are read by one process.
MIN_FILES_FOR_READERS = 4000  # so many changed files are worth readers that are started for them
MAX_REPLACED_DOCUMENTS = 10_000  # Documents reported as changed while no server ran.
MIN_PARALLEL_CACHE_BYTES = 30_000_000  # While a larger cache is read, another core lists the files.


@contextmanager
def pause_collector() -> Iterator[None]:
    """Keep the garbage collector from looking at a growing site again and again; none of it is garbage.

    Each look would stop all threads, for a second where there are 50,000 documents.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


def give_back() -> None:
    """Let the system have the memory that was freed; the C library would keep it."""
    with suppress(AttributeError, OSError):  # there is no such function but in glibc
        ctypes.CDLL(None).malloc_trim(0)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_contents(
    root: Path,
    image_cache: ImageCache,
    configuration: Configuration,
    progress: Progress | None = None,
    cores: int = 1,
    *,
    alone: bool = True,
    nice: int = 0,
    packed: bytearray | None = None,
    cached: Callable[[Contents], object] | None = None,
    replaced: list[Document] | None = None,
) -> Contents:
    """The contents of the site at `root` under a configuration, on several cores.

    A process is `alone` where no thread but this one runs in it, so that it can be forked; then its readers
    have a priority that is by `nice` lower. To `packed`, where given, all entries are added in framed blocks.
    `cached` is given what a large cache has, while another core sees what has changed since.
    To `replaced`, where given, documents are added that the parse cache has and the files no longer say.
    """
    began = time.time_ns()
    folder = cache_folder(root)
    roots = Layout(configuration.schema, configuration.settings).roots
    cache = _cache(folder / "documents", configuration) if folder else None
    apart = alone and cores > 1 and cache is not None and cache.size > MIN_PARALLEL_CACHE_BYTES
    with _walking(root, roots, apart=apart) as walked, ThreadPoolExecutor(1) as beside:
        looking = beside.submit(read_git_state, root, GitState())  # whose processes are waited for meanwhile
        kept = cache.load(configuration.schema.types) if cache else {}
        if cached and apart and kept:
            before = Contents.of(root, image_cache, configuration, GitState())
            before.entries = {path: one.entry for path, one in kept.items()}
            cached(before)
        found = walked()
        git = looking.result()
    contents = Contents.of(root, image_cache, configuration, git)
    contents.folders, contents.links = tuple(found.problems), found.links
    readers = partial(_read_in_processes, nice=nice) if alone else _beside
    begin = partial(readers, contents.store, cores) if cores > 1 else None
    contents.entries = _read_all(contents.store, found, cache, kept, progress, begin, packed)
    if replaced is not None:
        replaced.extend(islice(_replaced_documents(kept, contents.entries), MAX_REPLACED_DOCUMENTS))
    contents.unsettled = unsettled(contents.entries.values(), began)
    changed(contents, (), found)  # Nothing, as a rule; then the workers need not compare all entries.
    return contents


def _cache(path: Path, configuration: Configuration) -> ParseCache:
    return ParseCache(path, stamp_of(configuration), partial(usable, configuration))


@contextmanager
def _walking(root: Path, folders: tuple[str, ...], *, apart: bool) -> Iterator[Callable[[], Walk]]:
    """What gives a walk of some folders: begun now in a forked process, where `apart`, or made when asked."""
    if not apart:
        yield lambda: walk(root, folders)
        return
    with multiprocessing.get_context("fork").Pool(1, _end_silently) as pool:
        yield pool.apply_async(walk, (root, folders)).get


def _replaced_documents(kept: Mapping[str, CachedEntry], entries: Mapping[str, Entry]) -> Iterator[Document]:
    """The documents of what is kept whose files are gone, or have been read anew."""
    for path, one in kept.items():
        document, entry = one.entry.document, entries.get(path)
        if document is not None and (entry is None or entry.document is not document):
            yield document


def _read_all(
    store: Store,
    found: Walk,
    cache: ParseCache | None,
    kept: Mapping[str, CachedEntry],
    progress: Progress | None,
    readers: Readers | None,
    packed: bytearray | None,
) -> dict[str, Entry]:
    """The entries of all files of a site; `kept` is what the cache has of them."""
    owners = {store.owner(path, found.files.__contains__) for path in found.files}
    used, left = _sift(store, kept, owners, found.files)
    entries = {one.entry.path: one.entry for one in used}
    if cache and len(kept) + cache.unused - len(used) > (len(used) + len(left)) // 2:
        cache.replace([*pack_in_blocks(used)])
    elif cache and (renewed := [one for one in used if one is not kept[one.entry.path]]):
        cache.add([pack(renewed)])
    if packed is not None:
        for part in pack_in_blocks(used):
            packed += frame(part)
    done = len(used)
    for block, read in _read(store, left, readers if len(left) >= MIN_PARALLEL_FILES else None):
        entries.update((entry.path, entry) for entry in read)
        # At once, since all blocks together take as much memory as the site.
        if cache and block != EMPTY_BLOCK:
            cache.add([block])
        if packed is not None:
            others = pack(CachedEntry(entry, 0) for entry in read if not _keepable(entry))
            packed += frame(block) + frame(others)
        done += BLOCK_ENTRIES
        if progress:
            progress(min(done, len(owners)), len(owners))
    if progress:
        progress(len(owners), len(owners))
    return entries


def _sift(
    store: Store, kept: Mapping[str, CachedEntry], paths: set[str], found: Mapping[str, Signature]
) -> tuple[list[CachedEntry], list[str]]:
    """What is kept of some files and still right, and the paths of those that must be read."""
    used: list[CachedEntry] = []
    for path, known in kept.items():
        one = _still_right(store, known, path, found[path]) if path in paths else None
        if one is not None:
            used.append(one)
    return used, sorted(paths.difference(one.entry.path for one in used))


def _still_right(store: Store, kept: CachedEntry, path: str, found: Signature) -> CachedEntry | None:
    """What is kept of a file, if that and what else it was made of are as they were."""
    entry = kept.entry
    if entry.derived and store.derived_timestamps(path, found[0] / 1e9) != entry.derived:
        return None
    if entry.signature == found and kept.settled:
        return kept
    try:
        data, found = read_bytes(store.root, path)
    except (OSError, SyntaxProblem):
        return None
    same = digest_of(data) == entry.digest
    return CachedEntry(replace(entry, signature=found), time.time_ns()) if same else None


def _read(store: Store, paths: list[str], readers: Readers | None) -> Iterator[tuple[bytes, list[Entry]]]:
    """Blocks for the cache, and the entries in them and of files that are never kept."""
    media = [path for path in paths if upload_path(path)]
    documents = [path for path in paths if not upload_path(path)]
    parts = [documents[i : i + BLOCK_ENTRIES] for i in range(0, len(documents), BLOCK_ENTRIES)]
    yield _read_part(store, media)
    if readers is None:
        yield from (_read_part(store, part) for part in parts)
        return
    types = store.schema.types
    for block, others in readers(parts):
        yield block, [kept.entry for part in (block, others) for kept in unpack(part, types)]


def _read_in_processes(
    store: Store, cores: int, parts: list[list[str]], nice: int
) -> Iterator[tuple[bytes, bytes]]:
    """Read parts in forked processes, which have the store as it is here: nothing is sent but paths."""
    with multiprocessing.get_context("fork").Pool(cores, _begin, (store, nice)) as pool:
        yield from pool.imap_unordered(_read_in_child, parts)


def _beside(store: Store, cores: int, parts: list[list[str]]) -> Iterator[tuple[bytes, bytes]]:
    """Read parts in new processes, which let those that answer requests go first."""
    sent = copy(store)
    sent.image_cache = None  # which is for media, read here
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, context, _begin, (sent, NICENESS)) as pool:
        yield from pool.map(_read_in_child, parts)


def read_many(store: Store, paths: Iterable[str]) -> dict[str, Entry | None]:
    """Read files that a process with threads knows to have changed; on several cores if they are many.

    Starting a reader takes 0.4 s of processor time, as much as reading 800 files.
    """
    wanted = sorted(paths)
    found: dict[str, Entry | None] = dict.fromkeys(wanted)
    if len(wanted) < MIN_FILES_FOR_READERS or cores() == 1:
        found.update((path, store.read(path)) for path in wanted)
        return found
    with pause_collector():
        for _, entries in _read(store, wanted, partial(_beside, store, cores())):
            found.update((entry.path, entry) for entry in entries)
    return found


def _read_part(store: Store, paths: list[str]) -> tuple[bytes, list[Entry]]:
    """The entries of some files, and a block of those that can be kept."""
    at = time.time_ns()
    entries = [entry for path in paths if (entry := store.read(path)) is not None]
    return pack(CachedEntry(e, at) for e in entries if _keepable(e)), entries


def _keepable(entry: Entry) -> bool:
    """Whether an entry depends on its file and timestamps alone, as that of a picture does not."""
    return entry.document is not None and bool(entry.digest)


_store: Any = None


def _begin(store: Store, nice: int = 0) -> None:
    """What a reader does first: it ends with the process that asked for it, without a word."""
    global _store
    _store = store
    os.nice(nice)
    _end_silently()


def _end_silently() -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def end_with_parent() -> None:
    """End this process soon after the one that started it, however that ended."""
    threading.Thread(target=_exit_after, args=(os.getppid(),), daemon=True).start()


def _exit_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_INTERVAL_S)
    os._exit(1)


def _read_in_child(paths: list[str]) -> tuple[bytes, bytes]:
    block, entries = _read_part(_store, paths)
    return block, pack(CachedEntry(entry, 0) for entry in entries if not _keepable(entry))
