"""The parse cache: what was read from each file, kept in .quire/cache/ so that a start need not parse.

An entry is used as long as its file has the signature that it was read with (or the same bytes, where
the signature can't be trusted) and nothing else that its reading depended on has changed. Damaged
entries and those of another version are ignored. Loading the cache never runs code from it.
"""

import fcntl
import io
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

from xxhash import xxh3_128_digest

from server import __version__
from server.documents.document import DOCUMENT_ID, Document
from server.documents.values import Component
from server.problems import Problem
from server.schema.model import Type
from server.storage.files import digest_of
from server.storage.store import Entry

_FORMAT = 3
_CHECKSUM = 16  # bytes of the checksum before each block, which only finds what is damaged
# The only classes that a cache may name; all of them just hold values.
_CLASSES = {(c.__module__, c.__qualname__): c for c in (Component, Decimal, Problem)}
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
    """Some entries as a block of the cache."""
    rows = []
    for one in kept:
        entry = one.entry
        found = entry.document
        held = None if found is None else (found.type, found.row, found.status)
        more = (entry.problems, entry.digest, entry.derived, entry.beside)
        rows.append((entry.path, entry.signature, held, more, one.at))
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(rows)
    return out.getvalue()


def unpack(block: bytes, types: Mapping[str, Type], ids: dict[str, str]) -> Iterator[CachedEntry]:
    """The entries of a block. Raises ValueError for what `pack` did not write.

    `ids` are the documentIds so far: those that many documents refer to are one object in all of them,
    where each would have its own, a fifth of all memory that documents take beside their texts.
    """
    targets = {uid: _targets(type_) for uid, type_ in types.items()}
    try:
        for path, signature, held, more, at in _Unpickler(block, types).load():
            document = None
            if held is not None:
                type_, row, status = held
                document = Document(type_, _with_shared(row, targets[type_.uid], ids), status, path)
            yield CachedEntry(Entry(path, signature, document, *more), at)
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError("not a block of the cache") from error


def framed(block: bytes) -> bytes:
    """A block with its length before it, so that several can be joined."""
    return len(block).to_bytes(8, "big") + block


def blocks_in(joined: bytes | bytearray) -> Iterator[bytes]:
    """The blocks that were framed and joined."""
    file = io.BytesIO(joined)
    while length := file.read(8):
        yield file.read(int.from_bytes(length, "big"))


def _targets(type_: Type) -> tuple[int, ...]:
    """The positions in a row of what refers to one kind of documents or to files."""
    attributes = type_.attributes.values()
    return tuple(type_.position[a.name] for a in attributes if a.has_targets and not a.morph)


def _with_shared(row: tuple[Any, ...], targets: tuple[int, ...], ids: dict[str, str]) -> tuple[Any, ...]:
    values, share = list(row), ids.setdefault
    values[DOCUMENT_ID] = share(row[DOCUMENT_ID], row[DOCUMENT_ID])
    for at in targets:
        values[at] = tuple([share(target, target) for target in row[at]])
    return tuple(values)


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        return obj.uid if isinstance(obj, Type) else None


NOTHING = pack(())  # the block of no entries


class _Unpickler(pickle.Unpickler):
    def __init__(self, block: bytes, types: Mapping[str, Type]) -> None:
        super().__init__(io.BytesIO(block))
        self.persistent_load = types.__getitem__  # type: ignore[method-assign]

    def find_class(self, module: str, name: str) -> Any:
        found = _CLASSES.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong in the cache")
        return found


class ParseCache:
    """The cache of one site: blocks in a file; entries of a later block replace those of an earlier one.

    `shape` is everything beside a file that its entry depends on.
    """

    def __init__(self, path: Path, shape: object) -> None:
        self.path = path
        self._head = b"quire parse cache %d %s\n" % (_FORMAT, _fingerprint(shape))
        self._length = 0

    def load(self, types: Mapping[str, Type]) -> dict[str, CachedEntry]:
        """The entries by path, up to the first block that is damaged."""
        found: dict[str, CachedEntry] = {}
        ids: dict[str, str] = {}
        try:
            with self.path.open("rb") as file:
                if file.read(len(self._head)) != self._head:
                    return {}
                self._length = len(self._head)
                while (block := _read_block(file)) is not None:
                    found.update((kept.entry.path, kept) for kept in unpack(block, types, ids))
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
