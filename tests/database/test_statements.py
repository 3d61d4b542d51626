"""Tests of the translation of SQL statements for PostgreSQL."""

from server.database.statements import translate


def test_names_and_types_are_those_of_postgresql() -> None:
    statement = "INSERT INTO log (one) VALUES (?) ON CONFLICT (one) DO UPDATE SET last = ?"
    assert translate(statement, "event_") == (
        "INSERT INTO event_log (one) VALUES (%s) ON CONFLICT (one) DO UPDATE SET last = %s"
    )
    assert translate("CREATE INDEX IF NOT EXISTS a ON log (id)", "event_") == (
        "CREATE INDEX IF NOT EXISTS event_a ON event_log (id)"
    )
    assert translate("CREATE TABLE IF NOT EXISTS log (last INTEGER, at REAL, mark BLOB)", "") == (
        "CREATE TABLE IF NOT EXISTS log (last BIGINT, at DOUBLE PRECISION, mark BYTEA)"
    )
