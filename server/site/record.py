"""Records of the changes to a site."""

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
from server.storage.parse_cache import blocks_in, frame, pack_in_blocks, unpack


@dataclass(frozen=True, slots=True)
class Record:
    """The changes to a site since the previous record.

    In `entries`, deleted files map to None. If `is_complete` is set, this is a full record: it contains all
    entries of the site, not only changes. `unsettled` files might change again without getting a new
    signature. `packed` is empty or contains all entries in serialized form.
    """

    entries: Mapping[str, Entry | None] = field(default_factory=dict)
    configuration: Configuration | None = None
    git: GitChange | None = None
    folder_problems: tuple[Problem, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    unsettled: frozenset[str] = frozenset()
    write_counter: int = 0
    is_complete: bool = False
    number: int = 0
    packed: bytes | bytearray = b""


def encode(record: Record) -> bytes:
    """Serialize a record. A full record includes the schema."""
    out = BytesIO()
    out.write(encode_header(record))
    if record.packed:
        out.write(record.packed)
    else:  # Written block by block, because all blocks together use as much memory as the site.
        for block in pack_in_blocks(entry for entry in record.entries.values() if entry):
            out.write(frame(block))
    return out.getvalue()


def encode_header(record: Record) -> bytes:
    """Serialize a record without its entries. The caller must append the framed blocks of the entries."""
    configuration = record.configuration
    if configuration and not record.is_complete:
        configuration = replace(configuration, schema=Schema({}))
    gone = [path for path, entry in record.entries.items() if entry is None]
    out = BytesIO()
    header = replace(record, entries={}, packed=b"", configuration=configuration)
    _Pickler(out, protocol=5).dump((header, gone))
    return out.getvalue()


def decode(data: bytes, schema: Schema) -> Record:
    """Deserialize a record. `schema` is the schema of the state to which the record is applied."""
    file = BytesIO(data)
    header, gone = pickle.load(file)
    configuration = header.configuration
    if header.is_complete:
        schema = configuration.schema
    elif configuration:
        configuration = replace(configuration, schema=schema)
    unpacked = (entry for block in blocks_in(file) for entry in unpack(block, schema.types))
    entries: dict[str, Entry | None] = {entry.path: entry for entry in unpacked}
    entries.update(dict.fromkeys(gone))
    record: Record = replace(header, entries=entries, configuration=configuration)
    return record


def _built_in_type(uid: str) -> Type:
    return BUILT_IN[uid]


class _Pickler(pickle.Pickler):
    # Store built-in content types by name, so that unpickling returns the same objects. Other code compares
    # them by identity.
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Type) and BUILT_IN.get(obj.uid) is obj:
            return _built_in_type, (obj.uid,)
        return NotImplemented
