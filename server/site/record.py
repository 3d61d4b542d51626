"""A record: everything that one look at a site's files, or one write, came to (docs/architecture.md).

It holds what was read, not where to read it, so that every worker that applies it comes to the same
state, whatever has become of the files since.
"""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

from server.problems import Problem
from server.schema.model import BUILT_IN, Schema, Type
from server.site.configure import Configuration
from server.site.git_state import GitChange
from server.storage.entry import Entry
from server.storage.parse_cache import CachedEntry, blocks_in, frame, pack_in_blocks, unpack


@dataclass(frozen=True, slots=True)
class Record:
    """What differs from the record before: entries by path, None for a file that is gone.

    A `whole` record differs in everything: its entries are all that there are. `unsettled` are paths
    whose file may change again under the signature that it was read with, `folders` the problems of
    folders and links, `links` says where links lead, `writes` how many writes there had been. Without a
    configuration or git, those are as they were. `packed` has the entries as bytes, where other processes
    have read and packed them; of a path that it has twice, the last one counts, and none where `entries`
    says that the file is gone.
    """

    entries: Mapping[str, Entry | None] = field(default_factory=dict)
    configuration: Configuration | None = None
    git: GitChange | None = None
    folders: tuple[Problem, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    unsettled: frozenset[str] = frozenset()
    writes: int = 0
    whole: bool = False
    number: int = 0
    packed: bytes | bytearray = b""


def encode(record: Record) -> bytes:
    """A record as bytes. The types of its documents are named, unless the record itself brings them."""
    configuration = record.configuration
    if configuration and not record.whole:
        configuration = replace(configuration, schema=Schema({}))
    gone = [path for path, entry in record.entries.items() if entry is None]
    out = BytesIO()
    plain = replace(record, entries={}, packed=b"", configuration=configuration)
    _Pickler(out, protocol=5).dump((plain, gone))
    if record.packed:
        out.write(record.packed)
    else:  # block by block, since all together take as much memory as the site
        for block in pack_in_blocks(CachedEntry(entry, 0) for entry in record.entries.values() if entry):
            out.write(frame(block))
    return out.getvalue()


def decode(data: bytes, schema: Schema) -> Record:
    """The record that some bytes are, for one whose state has a schema so far."""
    file = BytesIO(data)
    plain, gone = _Unpickler(file).load()
    configuration = plain.configuration
    if plain.whole:
        schema = configuration.schema
    elif configuration:
        configuration = replace(configuration, schema=schema)
    unpacked = (kept for block in blocks_in(file) for kept in unpack(block, schema.types))
    found: dict[str, Entry | None] = {kept.entry.path: kept.entry for kept in unpacked}
    found.update(dict.fromkeys(gone))
    made: Record = replace(plain, entries=found, configuration=configuration)
    return made


class _Pickler(pickle.Pickler):
    """Names the types that every process has, so that they stay the ones that are compared by identity."""

    def persistent_id(self, obj: Any) -> str | None:
        return obj.uid if isinstance(obj, Type) and BUILT_IN.get(obj.uid) is obj else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: str) -> Type:
        return BUILT_IN[name]
