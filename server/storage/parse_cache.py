"""The parse cache: what was read from each file, kept in .bifolio/cache/ so that a start need not parse.

An entry is used as long as its file has the signature that it was read with (or the same bytes, where
the signature can't be trusted) and nothing else that its reading depended on has changed. Damaged
entries and those of another version are ignored. Loading the cache never runs code from it.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

from xxhash import xxh3_128_digest

from server import __version__
from server.documents.document import Document, rows_of
from server.documents.packed_rows import PackedRows, dump, load, pack_rows, widen
from server.schema.model import Type
from server.storage.entry import Entry
from server.storage.file_lock import FileLock
from server.storage.files import digest_of, last_change

_FORMAT_VERSION = 8
_STAMP_PREFIX = bytes(8)  # Begins the block that names the schema of the blocks behind it.
BLOCK_ENTRIES = 250  # Entries that are read at a time.
_CHECKSUM_BYTES = 16  # Before each block; it finds damage, not forgery.
# A file that changed so shortly before it was read may change again and keep its signature.
RACY_WINDOW_NS = 2_000_000_000


# Of a type: a digest of what is said of it as a whole, and one of each attribute, in order.
Form = tuple[bytes, dict[str, bytes]]
# Under what entries were read: a digest of all that this depends on beside the file, and types by uid.
Stamp = tuple[bytes, dict[str, Form]]


@dataclass(frozen=True, slots=True)
class Usable:
    """What can be used of entries that were read under another schema.

    `added` has the types, by uid, whose documents are as they were but for values that all of them have now:
    by their positions in a row. `claimant` gives the uid of the type whose document a path is; it is None
    where the schema is the same, and entries with problems can be used as well.
    """

    added: Mapping[str, Mapping[int, Any]]
    claimant: Callable[[str], str | None] | None = None

    def admits(self, entry: Entry, uid: str) -> bool:
        """Whether an entry with a document of such a type can be used."""
        return self.claimant is None or (not entry.problems and self.claimant(entry.path) == uid)


@dataclass(frozen=True, slots=True)
class CachedEntry:
    """The entry of one file, and when it was read (nanoseconds since 1970)."""

    entry: Entry
    at: int

    @property
    def settled(self) -> bool:
        """Whether the same signature means the same content."""
        signature = self.entry.signature
        return signature is not None and last_change(signature) + RACY_WINDOW_NS < self.at


def pack(kept: Iterable[CachedEntry]) -> bytes:
    """Some entries as a block of the cache: what is needed of each at once, and the rows of all behind it."""
    without: list[Any] = []
    groups: dict[str, list[tuple[CachedEntry, Document]]] = defaultdict(list)
    for one in kept:
        document = one.entry.document
        if document is None:
            without.append(_facts(one))
        else:
            groups[document.type.uid].append((one, document))
    rows: list[bytes | memoryview] = []
    packed = []
    for uid, group in groups.items():
        documents = [document for _, document in group]
        as_they_are = rows_of(documents)  # To read them, only to pack them again, takes long.
        of_rows, data = (
            as_they_are.packed()
            if as_they_are
            else pack_rows(documents[0].type, [document.read_row() for document in documents])
        )
        packed.append(
            (uid, [(*_facts(one), d.status, d.key, _other_path(one, d)) for one, d in group], of_rows)
        )
        rows.extend(data)
    [facts] = dump([(without, packed)])
    return b"".join((len(facts).to_bytes(8, "big"), facts, *rows))


def _facts(one: CachedEntry) -> tuple[Any, ...]:
    entry = one.entry
    return (entry.path, entry.signature, (entry.problems, entry.digest, entry.derived, entry.beside), one.at)


def _other_path(one: CachedEntry, document: Document) -> str:
    """The path of a document that is not that of its entry, as of a media file in a bucket; else ""."""
    return "" if document.path == one.entry.path else document.path


def pack_in_blocks(kept: Iterable[CachedEntry]) -> Iterator[bytes]:
    """Entries in blocks, so that what is needed to read one is small, and leaves no gaps between what stays.

    Those whose rows are packed together stay together.
    """
    for packed, group in groupby(kept, key=lambda one: one.entry.document and one.entry.document.packed):
        if packed:
            yield pack(group)
        else:
            yield from iter(lambda: pack(islice(group, BLOCK_ENTRIES)), EMPTY_BLOCK)  # noqa: B023


def unpack(block: bytes, types: Mapping[str, Type]) -> Iterator[CachedEntry]:
    """The entries of a block. Raises ValueError for what `pack` did not write."""
    return (one for one in _unpack(block, types) if one)


def _unpack(
    block: bytes, types: Mapping[str, Type], usable: Usable | None = None
) -> Iterator[CachedEntry | None]:
    """The entries of a block; None for each that is not `usable`, where it was read under another schema."""
    try:
        begin = 8 + int.from_bytes(block[:8], "big")
        data = memoryview(block)
        without, groups = load(data[8:begin], types)
        data = data[begin:]
        for path, signature, more, at in without:
            yield CachedEntry(Entry(path, signature, None, *more), at)
        for uid, facts, of_rows in groups:
            added = usable.added.get(uid) if usable else {}
            if added is None:
                data = PackedRows.read(of_rows, data, types)[1]
                yield from [None] * len(facts)
                continue
            type_ = types[uid]
            rows, data = PackedRows.read(widen(of_rows, added, len(type_.columns)), data, types)
            for i, (path, signature, more, at, status, key, other) in enumerate(facts):
                document = Document.unread(type_, key, status, other or path, rows, i)
                entry = Entry(path, signature, document, *more)
                yield CachedEntry(entry, at) if usable is None or usable.admits(entry, uid) else None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("not a block of the cache") from error


def frame(block: bytes) -> bytes:
    """A block with its length before it, so that several can be joined."""
    return len(block).to_bytes(8, "big") + block


def blocks_in(file: BinaryIO) -> Iterator[bytes]:
    """The framed blocks that follow in a file."""
    while length := file.read(8):
        yield file.read(int.from_bytes(length, "big"))


EMPTY_BLOCK = pack(())


class ParseCache:
    """The cache of one site: blocks in a file; entries of a later block replace those of an earlier one.

    Before blocks stands the stamp of what they were read under; `usable` says what that means now.
    """

    def __init__(self, path: Path, stamp: Stamp, usable: Callable[[Stamp], Usable]) -> None:
        self.path, self._stamp, self._usable = path, stamp, usable
        self._head = b"bifolio parse cache %d %s\n" % (_FORMAT_VERSION, _fingerprint())
        self._length = 0
        self._last: Stamp | None = None  # the stamp of the last block in the file
        self.unused = 0  # entries in the file that were read under another schema, and can't be used

    @property
    def size(self) -> int:
        """The bytes of its file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def load(self, types: Mapping[str, Type]) -> dict[str, CachedEntry]:
        """The entries by path, up to the first block that is damaged."""
        found: dict[str, CachedEntry] = {}
        usable: Usable | None = None
        try:
            with self.path.open("rb") as file:
                if file.read(len(self._head)) != self._head:
                    return {}
                self._length = len(self._head)
                while (block := _read_block(file)) is not None:
                    if block.startswith(_STAMP_PREFIX):
                        self._last, usable = self._stamp_in(block)
                    else:
                        entries = [*_unpack(block, types, usable)]
                        found.update((kept.entry.path, kept) for kept in entries if kept)
                        self.unused += entries.count(None)
                    self._length = file.tell()
        except (OSError, ValueError):
            pass  # What follows is read from the files, and written behind what could be read here.
        return found

    def add(self, blocks: list[bytes]) -> None:
        """Append blocks behind those that are there."""
        if self._last != self._stamp:
            blocks = [_STAMP_PREFIX + dump([self._stamp])[0], *blocks]
        data = b"".join(len(block).to_bytes(8, "big") + xxh3_128_digest(block) + block for block in blocks)
        try:
            with FileLock(self.path.with_suffix(".lock")).held() as is_held:
                if is_held:  # Otherwise another process writes it.
                    self._write(data)
                    self._last = self._stamp
        except OSError:
            pass  # The disk refuses: the next start parses again.

    def _write(self, data: bytes) -> None:
        if self._length:
            with self.path.open("r+b") as file:
                file.truncate(self._length)
                file.seek(self._length)
                file.write(data)
            self._length += len(data)
            return
        temporary = self.path.with_suffix(".new")
        temporary.write_bytes(self._head + data)
        temporary.replace(self.path)
        self._length = len(self._head) + len(data)

    def replace(self, blocks: list[bytes]) -> None:
        """Replace the whole cache by some blocks."""
        self._length, self._last = 0, None
        self.add(blocks)

    def _stamp_in(self, block: bytes) -> tuple[Stamp, Usable]:
        """A stamp, and what can be used behind it. Raises ValueError for what `add` did not write."""
        try:
            stamp: Stamp = load(block[len(_STAMP_PREFIX) :], {})
            return stamp, self._usable(stamp)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError("not a stamp of the cache") from error


def _read_block(file: BinaryIO) -> bytes | None:
    """The next block of a cache; None at its end, and where it is damaged."""
    length = int.from_bytes(file.read(8), "big")
    checksum = file.read(_CHECKSUM_BYTES)
    block = file.read(min(length, os.fstat(file.fileno()).st_size))
    return block if len(block) == length and xxh3_128_digest(block) == checksum else None


# Saves 5 ms of each load after the first.
@cache
def _fingerprint() -> bytes:
    """Return a digest of what all entries depend on: the code of Bifolio, the version of Python.

    It takes 13 ms, and describes the code that this process runs: files that are replaced later don't count.
    """
    package = Path(__file__).parent.parent
    code = sorted((str(p), p.stat().st_mtime_ns) for p in package.rglob("*.py"))
    told = repr((__version__, sys.version_info[:2], code))
    return digest_of(told.encode(errors="surrogatepass")).hex().encode()
