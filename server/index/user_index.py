"""Index of users and roles, without secrets such as password hashes."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from server.auth.roles import document_id_of, roles_of
from server.auth.user import User
from server.config.model import FILE, Settings
from server.documents.document import Document, make_version
from server.documents.timestamps import from_seconds
from server.documents.values import empty_value
from server.index.orders import Orders
from server.index.snapshot import Snapshot, apply, build
from server.index.type_table import Table
from server.schema.model import ACCOUNT_UIDS, ROLE, USER, Schema, Type

if TYPE_CHECKING:
    from server.auth.users import Users


@dataclass(frozen=True, slots=True)
class UserTables:
    """Tables of users and roles, with their version number."""

    version: int = -1
    tables: Mapping[str, Table] = field(default_factory=dict)
    orders: Orders = field(default_factory=Orders)


NO_USERS = UserTables()


class UserIndex:
    """Thread-safe index of a site's users and roles."""

    def __init__(self, users: "Users", root: Path) -> None:
        self._users, self._root = users, root
        self._lock = threading.Lock()
        self._basis: tuple[Schema | None, Settings | None] = (None, None)
        self._snapshot: Snapshot | None = None  # only users and roles
        self._documents: dict[int, Document] = {}
        self._tables = NO_USERS
        self._joined: tuple[Snapshot | None, Snapshot | None] = (None, None)

    @property
    def version(self) -> int:
        return self._users.version

    def tables(self, schema: Schema, settings: Settings) -> UserTables:
        with self._lock:
            return self._current(schema, settings)

    def join(self, snapshot: Snapshot, settings: Settings) -> Snapshot:
        with self._lock:
            tables = self._current(snapshot.schema, settings)
            before, joined = self._joined
            if joined is None or before is not snapshot or joined.users != tables.version:
                joined = join(snapshot, tables)
                self._joined = (snapshot, joined)
            return joined

    def _current(self, schema: Schema, settings: Settings) -> UserTables:
        basis = self._basis
        if self._snapshot is None or basis[0] is not schema or basis[1] is not settings:
            self._build(schema, settings)
        elif self._users.version != self._tables.version:
            self._update(schema, settings)
        return self._tables

    def _build(self, schema: Schema, settings: Settings) -> None:
        changes = self._users.changes(0)
        documents = [_user_document(schema.types[USER], u, settings) for u in changes.users]
        self._documents = {document.id: document for document in documents}
        roles = _role_documents(schema.types[ROLE], settings, _modification_time(self._root / FILE))
        self._basis, self._joined = (schema, settings), (None, None)
        self._publish(build(schema, [*documents, *roles]), changes.version)

    def _update(self, schema: Schema, settings: Settings) -> None:
        changes = self._users.changes(self._tables.version)
        added = {u.id: _user_document(schema.types[USER], u, settings) for u in changes.users}
        removed = [self._documents[i] for i in added if i in self._documents]
        if self._snapshot is None or changes.count != len(self._documents) - len(removed) + len(added):
            self._build(schema, settings)
            return
        self._documents.update(added)
        self._publish(apply(self._snapshot, removed, added.values()), changes.version)

    def _publish(self, snapshot: Snapshot, version: int) -> None:
        self._snapshot = snapshot
        tables = {uid: snapshot.tables[uid] for uid in ACCOUNT_UIDS}
        self._tables = UserTables(version, tables, snapshot.orders)


def join(snapshot: Snapshot, users: UserTables) -> Snapshot:
    return snapshot.with_users(users.tables, users.orders, users.version) if users.tables else snapshot


def _user_document(type_: Type, user: User, settings: Settings) -> Document:
    values: dict[str, Any] = {
        "username": user.username,
        "email": user.email,
        "provider": user.provider,
        "confirmed": user.confirmed,
        "blocked": user.blocked,
        "role": (document_id_of(user.role),),
    }
    timestamps, path = (user.created_at, user.updated_at, user.created_at), f"user {user.id}"
    row, locale = _values(type_, values), settings.locales.default
    return make_version(type_, user.document_id, row, timestamps, locale, path, number=user.id)


def _role_documents(type_: Type, settings: Settings, timestamp: str) -> Iterable[Document]:
    timestamps, locale = (timestamp, timestamp, timestamp), settings.locales.default
    for role in roles_of(settings):
        row = _values(type_, {"name": role.name, "description": role.description, "type": role.type})
        yield make_version(
            type_, role.document_id, row, timestamps, locale, f"role {role.type}", number=role.id
        )


def _values(type_: Type, values: Mapping[str, Any]) -> list[Any]:
    # Attributes that are missing in `values`, such as secrets, are empty.
    return [values.get(name, empty_value(a)) for name, a in type_.attributes.items()]


def _modification_time(path: Path) -> str:
    # If the file is missing, return a fixed time, so that all processes have the same timestamp.
    try:
        return from_seconds(path.stat().st_mtime)
    except OSError:
        return from_seconds(0)
