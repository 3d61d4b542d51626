"""Cache of parsed files, with their documents and problems, for a fast start."""

import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby, islice
from pathlib import Path
from typing import Any, BinaryIO

from xxhash import xxh3_128, xxh3_128_digest

from server import __version__
from server.documents.document import Document, packed_rows_of
from server.documents.packed_rows import PackedRows, add_columns, dump, dump_plain, load, pack_rows
from server.schema.model import Type
from server.storage.entry import Entry
from server.storage.file_lock import FileLock
from server.storage.files import digest_of

_FORMAT_VERSION = 10
_STAMP_PREFIX = bytes(8)  # The length of the metadata in a block that contains a stamp.
BLOCK_ENTRIES = 250
_CHECKSUM_BYTES = 16  # Size of the checksum before each block, which detects damage, not forgery.

# The form of a content type: a digest of its options, and a digest of each of its attributes, in order.
Form = tuple[bytes, dict[str, bytes]]
# What cached entries depend on besides their files: a digest of the settings and schemas, a digest of the
# rules that map paths to documents, and the form of each content type by uid.
Stamp = tuple[bytes, bytes, dict[str, Form]]
# The metadata of entries and the rows of their documents, both serialized. A stamp has no metadata.
Block = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class ReuseRule:
    """Rule that decides which entries of the cache are still valid with the current schema.

    `added` maps the uid of each reusable content type to the values of its new attributes, by position in the
    row. `type_uid_for` returns the uid of a path's content type. It is None if the content types of paths
    have not changed.
    """

    added: Mapping[str, Mapping[int, Any]]
    is_same_schema: bool = True
    type_uid_for: Callable[[str], str | None] | None = None

    def admits(self, entry: Entry, uid: str) -> bool:
        if self.is_same_schema:
            return True
        return not entry.problems and (self.type_uid_for is None or self.type_uid_for(entry.path) == uid)


def pack(entries: Iterable[Entry]) -> bytes:
    """Serialize entries as one block."""
    without: list[Any] = []
    groups: dict[str, list[tuple[Entry, Document]]] = defaultdict(list)
    for one in entries:
        document = one.document
        if document is None:
            without.append(_metadata(one))
        else:
            groups[document.type.uid].append((one, document))
    rows: list[bytes | memoryview] = []
    packed = []
    for uid, group in groups.items():
        documents = [document for _, document in group]
        as_they_are = packed_rows_of(documents)  # Reuse rows that are already packed.
        of_rows, data = (
            as_they_are.packed()
            if as_they_are
            else pack_rows(documents[0].type, [document.read_row() for document in documents])
        )
        packed.append(
            (uid, [(*_metadata(one), d.status, d.key, _other_path(one, d)) for one, d in group], of_rows)
        )
        rows.extend(data)
    [facts] = dump_plain([(without, packed)])
    return b"".join((len(facts).to_bytes(8, "big"), facts, *rows))


def _metadata(entry: Entry) -> tuple[Any, ...]:
    more = (entry.problems, entry.digest, entry.derived, entry.beside, entry.document_id)
    return (entry.path, entry.signature, more, entry.read_at_ns)


def _other_path(entry: Entry, document: Document) -> str:
    # For a media file in a bucket, the document's path differs from the entry's path.
    return "" if document.path == entry.path else document.path


def pack_in_blocks(entries: Iterable[Entry]) -> Iterator[bytes]:
    for packed, group in groupby(entries, key=lambda one: one.document and one.document.packed):
        if packed:
            yield pack(group)
        else:
            yield from iter(lambda: pack(islice(group, BLOCK_ENTRIES)), EMPTY_BLOCK)  # noqa: B023


def unpack(block: bytes, types: Mapping[str, Type]) -> Iterator[Entry]:
    begin = 8 + int.from_bytes(block[:8], "big")
    # Slices are copies, so the rows do not keep the metadata in memory.
    return (one for one in _unpack((block[8:begin], block[begin:]), types) if one)


def _unpack(
    block: Block, types: Mapping[str, Type], reuse_rule: ReuseRule | None = None
) -> Iterator[Entry | None]:
    """Deserialize the entries of a block. Yield None instead of each entry that `reuse_rule` rejects."""
    try:
        without, groups = load(block[0], types)
        data = memoryview(block[1])
        for path, signature, more, at in without:
            yield Entry._make((path, signature, None, *more, at))
        for uid, facts, of_rows in groups:
            added = reuse_rule.added.get(uid) if reuse_rule else {}
            if added is None:
                data = PackedRows.read(of_rows, data, types)[1]
                yield from [None] * len(facts)
                continue
            type_ = types[uid]
            rows, data = PackedRows.read(add_columns(of_rows, added, len(type_.columns)), data, types)
            admits = reuse_rule.admits if reuse_rule and not reuse_rule.is_same_schema else None
            last_at = 0  # Entries of a block were read at the same time, and share the number.
            for i, (path, signature, more, at, status, key, other) in enumerate(facts):
                document = Document.unread(type_, key, status, other or path, rows, i)
                if signature and signature[0] == signature[3]:
                    signature = (*signature[:3], signature[0])  # Sharing the number saves 48 bytes per file.
                last_at = last_at if at == last_at else at
                entry = Entry._make((path, signature, document, *more, last_at))
                yield entry if admits is None or admits(entry, uid) else None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("not a block of the cache") from error


def frame(block: bytes) -> bytes:
    return len(block).to_bytes(8, "big") + block


def blocks_in(file: BinaryIO) -> Iterator[bytes]:
    while length := file.read(8):
        yield file.read(int.from_bytes(length, "big"))


EMPTY_BLOCK = pack(())


class ParseCache:
    """Parse cache of a site. If a path has several entries, the last one is used."""

    def __init__(self, path: Path, stamp: Stamp, reuse_rule: Callable[[Stamp], ReuseRule]) -> None:
        self.path, self._stamp, self._usable = path, stamp, reuse_rule
        self._head = b"bifolio parse cache %d %s\n" % (_FORMAT_VERSION, _fingerprint())
        self._length = 0
        self._last: Stamp | None = None  # the stamp that applies to the last block in the file
        self.unused = 0  # entries in the file that are invalid under the current schema

    @property
    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def load(self, types: Mapping[str, Type]) -> dict[str, Entry]:
        """Return the valid entries by path. Entries after a damaged block are not read."""
        valid: dict[str, Entry] = {}
        reuse_rule: ReuseRule | None = None
        try:
            with self.path.open("rb") as file:
                if file.read(len(self._head)) != self._head:
                    return {}
                self._length = len(self._head)
                while (block := _read_block(file)) is not None:
                    if not block[0]:
                        self._last, reuse_rule = self._stamp_in(block[1])
                    else:
                        entries = [*_unpack(block, types, reuse_rule)]
                        valid.update((entry.path, entry) for entry in entries if entry)
                        self.unused += entries.count(None)
                    self._length = file.tell()
        except (OSError, ValueError):
            pass  # `add` overwrites the damaged part.
        return valid

    def add(self, blocks: list[bytes]) -> None:
        if self._last != self._stamp:
            blocks = [_STAMP_PREFIX + dump([self._stamp])[0], *blocks]
        data = b"".join(len(block).to_bytes(8, "big") + xxh3_128_digest(block) + block for block in blocks)
        try:
            with FileLock(self.path.with_suffix(".lock")).held() as is_held:
                if is_held:  # Otherwise another process is writing to the cache file.
                    self._write(data)
                    self._last = self._stamp
        except OSError:
            pass  # Ignore failures: without the cache, the next start parses the files.

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
        self._length, self._last = 0, None
        self.add(blocks)

    def _stamp_in(self, data: bytes) -> tuple[Stamp, ReuseRule]:
        try:
            stamp: Stamp = load(data, {})
            return stamp, self._usable(stamp)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError("not a stamp of the cache") from error


def _read_block(file: BinaryIO) -> Block | None:
    # The rows are read apart from the metadata, so that they do not keep it in memory.
    limit = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "big")
    checksum, head = file.read(_CHECKSUM_BYTES), file.read(8)
    metadata = file.read(min(int.from_bytes(head, "big"), limit))
    rows = file.read(max(0, min(length, limit) - len(head) - len(metadata)))
    digest = xxh3_128(head)
    digest.update(metadata)
    digest.update(rows)
    is_whole = len(head) + len(metadata) + len(rows) == length and digest.digest() == checksum
    return (metadata, rows) if is_whole else None


# The @cache saves 5 ms each time a site is loaded again.
@cache
def _fingerprint() -> bytes:
    package = Path(__file__).parent.parent
    code = sorted((str(p), p.stat().st_mtime_ns) for p in package.rglob("*.py"))
    text = repr((__version__, sys.version_info[:2], code))
    return digest_of(text.encode(errors="surrogatepass")).hex().encode()
