"""The tables of the accounts database."""

from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, String, Table, Text

metadata = MetaData()
tokens_table = Table(
    "tokens",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("kind", String(20), nullable=False),
    Column("permissions", Text, nullable=False, default=""),
    Column("created_at", String(24), nullable=False),
    Column("expires_at", String(24)),
)

users_table = Table(
    "users",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("document_id", String(24), nullable=False, unique=True),
    Column("username", String(200), nullable=False, unique=True),
    Column("email", String(320), nullable=False, unique=True),
    Column("password", String(200)),
    Column("provider", String(40), nullable=False, default="local"),
    Column("confirmed", Boolean, nullable=False, default=True),
    Column("blocked", Boolean, nullable=False, default=False),
    Column("role", String(100), nullable=False, default="authenticated"),
    Column("sessions", Integer, nullable=False, default=0),
    Column("reset_hash", String(64)),
    Column("confirm_hash", String(64)),
    Column("created_at", String(24), nullable=False),
    Column("updated_at", String(24), nullable=False),
    # The columns below came later: `opening` adds them to a database that was made without them.
    Column("name_key", String(200)),
    Column("version", Integer, nullable=False, server_default="0"),
    sqlite_autoincrement=True,
)
LATER = ("name_key", "version")
indexes = (
    Index("users_name_key", users_table.c.name_key, unique=True),
    Index("users_version", users_table.c.version),
)

# The logins that can be renewed, where `auth.refresh` is set: one row each, deleted when it ends.
logins_table = Table(
    "logins",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("user_id", Integer, nullable=False, index=True),
    Column("sessions", Integer, nullable=False),  # that of the user: a changed password ends the login
    Column("turn", Integer, nullable=False),  # how often it was renewed
    Column("device_id", String(200)),
    Column("device_name", String(200)),
    Column("began_at", String(24), nullable=False),
    Column("renewed_at", String(24), nullable=False),
    Column("expires_at", String(24), nullable=False),
    Column("ends_at", String(24), nullable=False),
)

# What was tried too often, or from where an account was logged in to: times in seconds since 1970.
attempts_table = Table(
    "attempts",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("until", Float, nullable=False, index=True),
    Column("known_until", Float, nullable=False),
)

# What tells this database from all others, in one row: tokens of users are good for its users alone.
site_table = Table(
    "site",
    metadata,
    Column("row", Integer, primary_key=True),
    Column("id", String(32), nullable=False),
)

# What tells the key of sessions from others, of the server that opened the accounts last, in one row: nobody
# can sign with it.
keys_table = Table(
    "session_keys",
    metadata,
    Column("row", Integer, primary_key=True),
    Column("mark", String(64), nullable=False),
)

# How often the rows of a table were changed; whoever changes one counts first, and so is alone.
versions_table = Table(
    "versions",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("number", Integer, nullable=False),
)
