"""Snapshots that are serialized for other processes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from server.documents.document import Document, in_packed_order
from server.index.snapshot import Snapshot, build
from server.schema.model import ACCOUNT_UIDS, Schema
from server.storage.entry import Entry
from server.storage.parse_cache import pack_in_blocks, unpack

Blocks = tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PackedSnapshot:
    """A serialized snapshot. If `users_version` is not None, `accounts` contains users and roles."""

    schema: Schema
    content: Blocks
    accounts: Blocks = ()
    users_version: int | None = None


def pack_snapshot(snapshot: Snapshot) -> PackedSnapshot:
    content = pack_documents(d for claiming in snapshot.claims.values() for d in claiming)
    if snapshot.users is None:
        return PackedSnapshot(snapshot.schema, content)
    people = pack_documents(d for uid in ACCOUNT_UIDS for d in snapshot.tables[uid].versions.values())
    return PackedSnapshot(snapshot.schema, content, people, snapshot.users)


def unpack_snapshot(packed: PackedSnapshot) -> tuple[Snapshot, Snapshot]:
    """Return two snapshots: one with only the content, and one with the content, the users and the roles.

    If no users are packed, both contain only content.
    """
    content = build(packed.schema, unpack_documents(packed.content, packed.schema))
    if packed.users_version is None:
        return content, content
    people = build(packed.schema, unpack_documents(packed.accounts, packed.schema))
    tables = {uid: people.tables[uid] for uid in ACCOUNT_UIDS}
    return content, content.with_users(tables, people.orders, packed.users_version)


def pack_documents(documents: Iterable[Document]) -> Blocks:
    entries = (Entry(d.path, None, d) for d in in_packed_order(documents))
    return tuple(pack_in_blocks(entries))


def unpack_documents(blocks: Blocks, schema: Schema) -> Iterator[Document]:
    for block in blocks:
        for entry in unpack(block, schema.types):
            if entry.document:
                yield entry.document
