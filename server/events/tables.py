"""SQL tables of the event log.

In `versions`, `types` and `notes`, each row belongs to one clone of the site or, if `clone` is `*`, to all
clones.
"""

# States of a delivery. A delivery that is behind waits for an earlier delivery for the same document.
GATHERING, BEHIND, WAITING, DELIVERED, FAILED = "gathering", "behind", "waiting", "delivered", "failed"
OPEN = f"state IN ('{GATHERING}', '{BEHIND}', '{WAITING}')"
TIMED = f"state IN ('{GATHERING}', '{WAITING}')"
DONE = f"state IN ('{DELIVERED}', '{FAILED}')"
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS log (
    one INTEGER PRIMARY KEY, id TEXT NOT NULL, last INTEGER NOT NULL, changes INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS notes (
    clone TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (clone, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, uid TEXT NOT NULL,
    document_id TEXT NOT NULL, locale TEXT NOT NULL, status TEXT NOT NULL, changed TEXT, actor TEXT NOT NULL,
    source TEXT NOT NULL, commit_id TEXT NOT NULL, write_name TEXT NOT NULL, counts TEXT,
    hidden INTEGER NOT NULL, paths TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS events_by_write ON events (write_name) WHERE write_name != '';
CREATE TABLE IF NOT EXISTS versions (
    clone TEXT NOT NULL, path TEXT NOT NULL, mark BLOB NOT NULL, uid TEXT NOT NULL,
    document_id TEXT NOT NULL, locale TEXT NOT NULL, status TEXT NOT NULL, PRIMARY KEY (clone, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS versions_by_key ON versions (clone, document_id);
CREATE TABLE IF NOT EXISTS types (
    clone TEXT NOT NULL, uid TEXT NOT NULL, shape TEXT NOT NULL, PRIMARY KEY (clone, uid)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS webhooks (
    name TEXT PRIMARY KEY, cursor INTEGER NOT NULL, settings TEXT NOT NULL, disabled REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT, webhook TEXT NOT NULL, id TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL, event TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    state TEXT NOT NULL, made REAL NOT NULL, due REAL NOT NULL, wait REAL NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, step INTEGER NOT NULL DEFAULT 0, body BLOB, tried REAL,
    status INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS deliveries_timed ON deliveries (webhook, due, number) WHERE {TIMED};
CREATE INDEX IF NOT EXISTS deliveries_open ON deliveries (webhook, document, number) WHERE {OPEN};
CREATE INDEX IF NOT EXISTS deliveries_done ON deliveries (webhook, number) WHERE {DONE};
CREATE INDEX IF NOT EXISTS deliveries_tried ON deliveries (webhook, tried);
CREATE TABLE IF NOT EXISTS exchanges (
    delivery INTEGER PRIMARY KEY, body BLOB NOT NULL, size INTEGER NOT NULL, response TEXT NOT NULL,
    seconds REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS commits (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS told (
    path TEXT PRIMARY KEY, clone TEXT NOT NULL, commit_id TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS told_open ON told (clone) WHERE commit_id = ''
"""
