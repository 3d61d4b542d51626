"""The parse cache: what was read from each file, kept in .quire/cache/ so that a start need not parse.

An entry is used as long as its file has the signature that it was read with (or the same bytes, where
the signature can't be trusted) and nothing else that its reading depended on has changed. Damaged
entries and those of another version are ignored. Loading the cache never runs code from it.
"""

import fcntl
import io
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from xxhash import xxh3_128_digest

from server import __version__
from server.documents.document import Document, rows_of
from server.documents.packed_rows import PackedRows, dump, load, pack_rows
from server.schema.model import Type
from server.storage.files import digest_of
from server.storage.store import Entry

_FORMAT = 4
_CHECKSUM = 16  # bytes of the checksum before each block, which only finds what is damaged
# A file that changed so shortly before it was read may change again and keep its signature.
RACY_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class CachedEntry:
    """The entry of one file, and when it was read (nanoseconds since 1970)."""

    entry: Entry
    at: int

    @property
    def settled(self) -> bool:
        """Whether the same signature means the same content."""
        return self.entry.signature is not None and self.entry.signature[0] + RACY_NS < self.at


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
        packed.append((uid, [(*_facts(one), d.status, d.key) for one, d in group], of_rows))
        rows.extend(data)
    [facts] = dump([(without, packed)])
    return b"".join((len(facts).to_bytes(8, "big"), facts, *rows))


def _facts(one: CachedEntry) -> tuple[Any, ...]:
    entry = one.entry
    return (entry.path, entry.signature, (entry.problems, entry.digest, entry.derived, entry.beside), one.at)


def unpack(block: bytes, types: Mapping[str, Type]) -> Iterator[CachedEntry]:
    """The entries of a block. Raises ValueError for what `pack` did not write."""
    try:
        begin = 8 + int.from_bytes(block[:8], "big")
        data = memoryview(block)
        without, groups = load(data[8:begin], types)
        data = data[begin:]
        for path, signature, more, at in without:
            yield CachedEntry(Entry(path, signature, None, *more), at)
        for uid, facts, of_rows in groups:
            rows, data = PackedRows.read(of_rows, data, types)
            type_ = types[uid]
            for i, (path, signature, more, at, status, key) in enumerate(facts):
                document = Document.unread(type_, key, status, path, rows, i)
                yield CachedEntry(Entry(path, signature, document, *more), at)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("not a block of the cache") from error


def framed(block: bytes) -> bytes:
    """A block with its length before it, so that several can be joined."""
    return len(block).to_bytes(8, "big") + block


def blocks_in(joined: bytes | bytearray) -> Iterator[bytes]:
    """The blocks that were framed and joined."""
    file = io.BytesIO(joined)
    while length := file.read(8):
        yield file.read(int.from_bytes(length, "big"))


NOTHING = pack(())  # the block of no entries


class ParseCache:
    """The cache of one site: blocks in a file; entries of a later block replace those of an earlier one.

    `shape` is everything beside a file that its entry depends on.
    """

    def __init__(self, path: Path, shape: object) -> None:
        self.path = path
        self._head = b"quire parse cache %d %s\n" % (_FORMAT, _fingerprint(shape))
        self._length = 0

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
        try:
            with self.path.open("rb") as file:
                if file.read(len(self._head)) != self._head:
                    return {}
                self._length = len(self._head)
                while (block := _read_block(file)) is not None:
                    found.update((kept.entry.path, kept) for kept in unpack(block, types))
                    self._length = file.tell()
        except (OSError, ValueError):
            pass  # What follows is read from the files, and written behind what could be read here.
        return found

    def add(self, blocks: list[bytes]) -> None:
        """Append blocks behind those that are there."""
        data = b"".join(len(block).to_bytes(8, "big") + xxh3_128_digest(block) + block for block in blocks)
        try:
            with self.path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # Closing the file releases it.
                self._write(data)
        except OSError:
            pass  # Another process writes it, or the disk refuses: the next start parses again.

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
        self._length = 0
        self.add(blocks)


def _read_block(file: BinaryIO) -> bytes | None:
    """The next block of a cache; None at its end, and where it is damaged."""
    length = int.from_bytes(file.read(8), "big")
    checksum = file.read(_CHECKSUM)
    block = file.read(min(length, os.fstat(file.fileno()).st_size))
    return block if len(block) == length and xxh3_128_digest(block) == checksum else None


def _fingerprint(shape: object) -> bytes:
    """A digest of what all entries depend on: `shape`, the code of Quire, the version of Python."""
    package = Path(__file__).parent.parent
    code = sorted((str(p), p.stat().st_mtime_ns) for p in package.rglob("*.py"))
    told = repr((shape, __version__, sys.version_info[:2], code))
    return digest_of(told.encode(errors="surrogatepass")).hex().encode()
