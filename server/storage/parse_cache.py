"""The parse cache: what files came to, kept in .quire/cache/ so that the next start need not read them.

An entry is used while its file has the signature that it was read with, or, where that can't be
trusted, the same bytes; and while nothing else that its reading depended on has changed. What is
damaged, or from another version, is left aside and read anew. Nothing in the file is ever run.
"""

import fcntl
import io
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from server import __version__
from server.documents.document import Document
from server.documents.values import Component
from server.problems import Problem
from server.schema.model import Type
from server.storage.files import DIGEST, digest_of
from server.storage.store import Entry

_FORMAT = 1
# All that a cache may name: nothing here does more than hold values.
_CLASSES = {(c.__module__, c.__qualname__): c for c in (Component, Decimal, Problem)}
RACY_NS = 2_000_000_000  # a file changed so shortly before it was read may change again unnoticed


@dataclass(frozen=True, slots=True)
class Kept:
    """One file as it was read: its entry, and when that was (ns)."""

    entry: Entry
    at: int

    @property
    def settled(self) -> bool:
        """Whether the signature alone tells that the file is as it was."""
        return self.entry.signature is not None and self.entry.signature[0] + RACY_NS < self.at


def pack(kept: Iterable[Kept]) -> bytes:
    """Some entries as a block of the cache."""
    rows = []
    for one in kept:
        entry = one.entry
        found = entry.document
        held = None if found is None else (found.type, found.row, found.status)
        rows.append((entry.path, entry.signature, held, entry.problems, entry.digest, entry.derived, one.at))
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(rows)
    return out.getvalue()


def unpack(block: bytes, types: Mapping[str, Type]) -> Iterator[Kept]:
    """The entries of a block. Raises ValueError for what `pack` did not write."""
    try:
        for path, signature, held, problems, digest, derived, at in _Unpickler(block, types).load():
            document = None if held is None else Document(held[0], held[1], held[2], path)
            yield Kept(Entry(path, signature, document, problems, digest, derived), at)
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError("not a block of the cache") from error


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> str | None:
        return obj.uid if isinstance(obj, Type) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, block: bytes, types: Mapping[str, Type]) -> None:
        super().__init__(io.BytesIO(block))
        self.persistent_load = types.__getitem__  # type: ignore[method-assign]

    def find_class(self, module: str, name: str) -> Any:
        found = _CLASSES.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in the cache")
        return found


class ParseCache:
    """The cache of one site: blocks in a file, of which a later one replaces what an earlier one says."""

    def __init__(self, path: Path, shape: object) -> None:
        self.path = path
        self._head = b"quire parse cache %d %s\n" % (_FORMAT, _mark(shape))
        self._length = 0
        self._blocks = 0

    def load(self, types: Mapping[str, Type]) -> dict[str, Kept]:
        """Everything kept, by path; as far as the file is whole."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return {}
        found: dict[str, Kept] = {}
        at = len(self._head) if data.startswith(self._head) else 0
        while at and at < len(data):
            length = int.from_bytes(data[at : at + 8], "big")
            start = at + 8 + DIGEST
            block = data[start : start + length]
            if len(block) < length or digest_of(block) != data[at + 8 : start]:
                break
            try:
                found.update((kept.entry.path, kept) for kept in unpack(block, types))
            except ValueError:
                break
            at, self._blocks = start + length, self._blocks + 1
        self._length = at
        return found

    def add(self, blocks: list[bytes]) -> None:
        """Keep more blocks, after what `load` could read."""
        data = b"".join(len(block).to_bytes(8, "big") + digest_of(block) + block for block in blocks)
        try:
            with self.path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go of when it is closed
                self._write(data)
        except OSError:
            pass  # it is a cache, or another process is writing it

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
        """Keep these blocks and no others."""
        self._length = 0
        self.add(blocks)


def _mark(shape: object) -> bytes:
    """What all entries depend on: the site's schema and locales, this version of Quire and of Python."""
    package = Path(__file__).parent.parent
    code = sorted((str(p), p.stat().st_mtime_ns) for p in package.rglob("*.py"))
    told = repr((shape, __version__, sys.version_info[:2], code))
    return digest_of(told.encode(errors="surrogatepass")).hex().encode()
