"""Tests of SQLite files: created, deleted and damaged files, and simultaneous writes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from server.database.engine import DatabaseFailure, Tables
from server.database.file import private_file
from server.database.sqlite import ChangeDetector, Sqlite
from tests.small_disk import fill, mounted

SCHEMA = """
CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY);
CREATE INDEX IF NOT EXISTS words_by_length ON words (length(word))
"""


class RefusedError(Exception):
    """The error that the tables in these tests raise."""


def make_engine(root: Path, *, disposable: bool = False) -> Sqlite:
    def refuse(trouble: DatabaseFailure) -> Exception:
        return RefusedError("duplicate" if trouble.is_duplicate else trouble.reason)

    tables = Tables(SCHEMA, lambda c: c.execute("INSERT INTO words VALUES ('first')") and None, refuse)
    return Sqlite(partial(private_file, root, "words.db"), tables, 2, (lambda: None) if disposable else None)


def put(engine: Sqlite, word: str) -> None:
    with engine.writing() as connection:
        connection.execute("INSERT INTO words VALUES (?)", (word,))


def put_both(engine: Sqlite, one: str, other: str) -> None:
    with engine.writing() as connection:
        connection.executemany("INSERT INTO words VALUES (?)", [(one,), (other,)])


def words(engine: Sqlite) -> set[str]:
    with engine.reading() as connection:
        return {word for (word,) in connection.execute("SELECT word FROM words")}


def test_a_transaction_is_done_or_not_done(tmp_path: Path) -> None:
    engine, other = make_engine(tmp_path), make_engine(tmp_path)
    put(engine, "kept")
    with pytest.raises(RefusedError, match="duplicate"):
        put_both(engine, "lost", "kept")
    assert words(engine) == words(other) == {"first", "kept"}


def test_it_waits_for_others_as_long_as_it_is_told(tmp_path: Path) -> None:
    engine, other = make_engine(tmp_path), make_engine(tmp_path)
    with other.writing():
        assert words(engine) == {"first"}  # Readers don't wait for writers.
        with pytest.raises(RefusedError, match="locked"), engine.writing(0.01):
            pass
    put(engine, "now")


def test_a_backup_in_its_place_has_a_log_of_writes_again(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    put(engine, "one")
    with engine.reading() as connection:
        connection.execute("ROLLBACK")
        connection.execute(f"VACUUM INTO '{tmp_path}/backup'")
        connection.execute("BEGIN")
    engine.close()
    (tmp_path / "backup").replace(tmp_path / ".bifolio/words.db")
    put(engine, "two")
    with closing(sqlite3.connect(tmp_path / ".bifolio/words.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert words(engine) == {"first", "one", "two"}


@pytest.mark.parametrize("damage", ["removed", "damaged", "other"])
def test_a_file_that_may_be_is_made_anew(tmp_path: Path, damage: str) -> None:
    engine, path = make_engine(tmp_path, disposable=True), tmp_path / ".bifolio/words.db"
    put(engine, "one")
    if damage == "removed":
        for beside in path.parent.glob("words.db*"):
            beside.unlink()
    else:
        engine.close()
        if damage == "damaged":
            path.write_bytes(b"no database" * 1000)
        else:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("ALTER TABLE words RENAME COLUMN word TO other")
        with pytest.raises(RefusedError):
            words(engine)
        assert path.with_name("words.db.damaged").exists()
    assert words(engine) == {"first"}


def test_another_file_in_its_place_is_told(tmp_path: Path) -> None:
    engine = make_engine(tmp_path)
    put(engine, "one")
    assert engine.is_current()
    for beside in (tmp_path / ".bifolio").glob("words.db*"):
        beside.unlink()
    assert not engine.is_current()
    assert words(make_engine(tmp_path)) == {"first"}
    assert not engine.is_current()


def test_a_watch_tells_of_what_anybody_writes(tmp_path: Path) -> None:
    engine, other = make_engine(tmp_path), make_engine(tmp_path)
    watch = ChangeDetector(engine)
    assert [watch.has_changed(), watch.has_changed()] == [True, False]
    for writer in (engine, other):
        put(writer, str(id(writer)))
        assert [watch.has_changed(), watch.has_changed()] == [True, False]
    watch.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    with mounted(tmp_path / "disk", "256k") as folder:
        yield folder


@pytest.mark.parametrize("left_by", ["close", "kill", "another process"])
def test_a_full_disk_keeps_nobody_from_reading(small_disk: Path, left_by: str) -> None:
    first = make_engine(small_disk)
    put(first, "kept")
    (database,) = small_disk.rglob("words.db")
    if left_by == "close":
        first.close()
    elif left_by == "kill":  # As after a restart of the machine, the log is kept, but its index is lost.
        log = database.with_name("words.db-wal")
        data = log.read_bytes()
        first.close()
        log.write_bytes(data)
    filler = small_disk / "filler"
    fill(filler)
    engine = make_engine(small_disk)
    for _ in range(3):
        assert words(engine) == {"first", "kept"}
    with pytest.raises(RefusedError, match=r"full|readonly"):
        put(engine, "more" * 1000)
    filler.unlink()
    put(engine, "later")
    assert words(engine) == words(make_engine(small_disk)) == {"first", "kept", "later"}
