"""The SQL tables of the accounts database."""

import secrets

from server.auth.user import name_key
from server.database.engine import Connection

# `logins`: logins that can be renewed (setting `auth.refresh`).
# `attempts`: counts of login attempts, and known network addresses and devices. Times are Unix times.
# `last_uses`: when tokens and users were last active.
# `site`: one row with the random id of this database. Users' JSON Web Tokens contain it as their issuer.
# `session_keys`: one row with a digest of the signing key that the most recently started server uses.
# `versions`: the number of changes to a table. Each write increments this number first, which makes other
# writes wait.
SCHEMA = """
CREATE TABLE IF NOT EXISTS tokens (
    hash VARCHAR(64) NOT NULL PRIMARY KEY, name VARCHAR(200) NOT NULL UNIQUE, kind VARCHAR(20) NOT NULL,
    permissions TEXT NOT NULL, created_at VARCHAR(24) NOT NULL, expires_at VARCHAR(24)
);
CREATE TABLE IF NOT EXISTS users (
    id INTEGER PRIMARY KEY AUTOINCREMENT, document_id VARCHAR(24) NOT NULL UNIQUE,
    username VARCHAR(200) NOT NULL UNIQUE, email VARCHAR(320) NOT NULL UNIQUE, password VARCHAR(200),
    provider VARCHAR(40) NOT NULL, confirmed BOOLEAN NOT NULL, blocked BOOLEAN NOT NULL,
    role VARCHAR(100) NOT NULL, sessions INTEGER NOT NULL, reset_hash VARCHAR(64), confirm_hash VARCHAR(64),
    created_at VARCHAR(24) NOT NULL, updated_at VARCHAR(24) NOT NULL
);
CREATE TABLE IF NOT EXISTS logins (
    id VARCHAR(32) NOT NULL PRIMARY KEY, user_id INTEGER NOT NULL, sessions INTEGER NOT NULL,
    turn INTEGER NOT NULL, device_id VARCHAR(200), device_name VARCHAR(200), began_at VARCHAR(24) NOT NULL,
    renewed_at VARCHAR(24) NOT NULL, expires_at VARCHAR(24) NOT NULL, ends_at VARCHAR(24) NOT NULL
);
CREATE TABLE IF NOT EXISTS attempts (
    key VARCHAR(64) NOT NULL PRIMARY KEY, until FLOAT NOT NULL, known_until FLOAT NOT NULL
);
CREATE TABLE IF NOT EXISTS last_uses (key VARCHAR(220) NOT NULL PRIMARY KEY, used_at VARCHAR(24) NOT NULL);
CREATE TABLE IF NOT EXISTS site (row INTEGER NOT NULL PRIMARY KEY, id VARCHAR(32) NOT NULL);
CREATE TABLE IF NOT EXISTS session_keys (row INTEGER NOT NULL PRIMARY KEY, mark VARCHAR(64) NOT NULL);
CREATE TABLE IF NOT EXISTS versions (name VARCHAR(40) NOT NULL PRIMARY KEY, number INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS ix_logins_user_id ON logins (user_id);
CREATE INDEX IF NOT EXISTS ix_attempts_until ON attempts (until);
CREATE UNIQUE INDEX IF NOT EXISTS users_name_key ON users (name_key);
CREATE INDEX IF NOT EXISTS users_version ON users (version);
CREATE INDEX IF NOT EXISTS tokens_branch_only ON tokens (branch_only);
CREATE INDEX IF NOT EXISTS tokens_maker ON tokens (maker)
"""
# Columns that were added after the first release, by table. `migrate_tables` adds them to both old and new
# tables. Each column has an index, because `migrate_tables` is called only if a table or an index is missing.
ADDED_COLUMNS = {
    "users": {"name_key": "VARCHAR(200)", "version": "INTEGER NOT NULL DEFAULT 0"},
    "tokens": {"branch_only": "BOOLEAN NOT NULL DEFAULT FALSE", "maker": "VARCHAR(220)"},
}


def migrate_tables(connection: Connection) -> None:
    """Add missing columns to the tables, and insert the initial rows if they are missing."""
    for table, columns in ADDED_COLUMNS.items():
        there = {column[0] for column in connection.execute(f"SELECT * FROM {table} LIMIT 0").description}
        for name, kind in columns.items():
            if name not in there:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
    if connection.execute("SELECT name FROM versions").fetchone() is None:
        connection.execute("INSERT INTO versions (name, number) VALUES ('users', 1)")
    if connection.execute("SELECT id FROM site").fetchone() is None:
        connection.execute("INSERT INTO site (row, id) VALUES (1, ?)", (secrets.token_hex(16),))
    _fill_keys(connection)


def _fill_keys(connection: Connection) -> None:
    # If user names look alike, only the oldest of these users gets the name key.
    rows = connection.execute("SELECT id, username FROM users WHERE name_key IS NULL ORDER BY id").fetchall()
    for user_id, username in rows:
        key = name_key(username)[:200]
        if connection.execute("SELECT id FROM users WHERE name_key = ?", (key,)).fetchone() is None:
            connection.execute("UPDATE users SET name_key = ? WHERE id = ?", (key, user_id))
