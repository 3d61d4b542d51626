"""Tests of the event log with a full disk, a clock set back, a missing database, and bulk changes."""

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from server.documents import timestamps
from server.events import recorder as recorder_module
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.recorder import Recorder
from tests.conftest import MakeSite
from tests.events.test_recorder import FILES, all_of, edit, recorded, said
from tests.git import commit_all, git
from tests.servers import free_port, get, serving
from tests.torture import LONG
from tests.waiting import until

MANY = 10_000 if LONG else 2_000


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_branches_checked_out_back_and_forth(make_site: MakeSite) -> None:
    many = {f"content/tags/t{number}.json": '{"name": "Main"}' for number in range(500)}
    site = make_site({**FILES, **many, "site.yaml": "events: {bulk: 2000}\n"})
    commit_all(site.root)
    git(site.root, "checkout", "-qb", "other")
    edit(site.root, dict.fromkeys(list(many)[:250], '{"name": "Other"}'))
    edit(site.root, dict.fromkeys(list(many)[250:], None))
    git(site.root, "commit", "-qam", "other")
    git(site.root, "checkout", "-q", "main")
    site.refresh()
    database = recorded(site)
    for turn in range(4):
        git(site.root, "checkout", "-q", "other" if turn % 2 == 0 else "main")
        site.refresh()
    events = all_of(database)
    assert {event.source for event in events} == {"git"}
    for number in range(500):
        kinds = [event.kind for event in events if event.document_id == f"t{number}"]
        assert kinds == (["entry.update"] * 4 if number < 250 else ["entry.delete", "entry.create"] * 2)


def test_the_clock_decides_nothing(make_site: MakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    site = make_site({**FILES, "site.yaml": "events: {keep: 30d}\n"})
    database = recorded(site)
    for year in (2040, 2020, 2030):
        monkeypatch.setattr(recorder_module, "now", lambda year=year: f"{year}-01-01T00:00:00.000Z")
        edit(site.root, {"content/tags/red.json": json.dumps({"name": str(year)})})
        site.refresh()
    monkeypatch.undo()
    assert [(event.seq, event.at[:4]) for event in all_of(database)] == [
        (1, "2040"),
        (2, "2020"),
        (3, "2030"),
    ]
    recorded(site)
    assert database.bounds().last == 3
    edit(site.root, {"content/tags/red.json": '{"name": "Rot"}'})
    site.refresh()
    assert [event.seq for event in all_of(database)][-1] == 4
    assert timestamps.now() < "2040"


def test_a_database_that_takes_no_more_keeps_nobody_from_writing(tmp_path: Path) -> None:
    """A limit for file sizes simulates a full disk. It affects only the database, because the other files are
    small.
    """
    Path(tmp_path / "content/tags").mkdir(parents=True)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    script = """
import logging, resource, signal, sys, json
from pathlib import Path
from server.site.site import Site
from server.events.model import Event
from server.events.recorder import Recorder
logging.basicConfig()
logging.getLogger("bifolio").setLevel(logging.INFO)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
root = Path(sys.argv[1])
site = Site(root)
site.load()
recorder = Recorder(root)
site.observe(recorder)
site.record()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, hard))
for number in range(60):
    (root / f"content/tags/t{number}.json").write_text(json.dumps({"name": str(number)}))
    site.refresh()
    assert len(site.state.snapshot.tables["api::tag.tag"].versions) == 2 + number, number
missed = recorder.missed
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
site.record()
print(missed, recorder.missed)
print(json.dumps([event.document_id for event in recorder.database.read(0, 1000)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    missed, documents = done.stdout.splitlines()
    assert missed == "True False"
    assert sorted(json.loads(documents)) == sorted(f"t{number}" for number in range(60))
    wrong, well = done.stderr.splitlines()
    assert wrong.startswith("ERROR:bifolio:")
    assert well == "INFO:bifolio:the event log is up to date again"


def test_thousands_of_changes_at_once(make_site: MakeSite) -> None:
    site = make_site(FILES)
    database = recorded(site)
    edit(site.root, {f"content/tags/t{number}.json": '{"name": "T"}' for number in range(MANY)})
    site.refresh()
    [event] = all_of(database)
    assert event.counts == {"api::tag.tag": {"published": {"entry.create": MANY}}}
    assert len(database.read(0, 1, with_paths=True)[0].paths) == MANY


def test_the_database_does_not_grow_without_bound(make_site: MakeSite) -> None:
    site = make_site(FILES)
    database = recorded(site)
    event = Event("entry.update", "api::tag.tag", "red", "en", "published", ("name",), at=timestamps.now())
    sizes = []
    for _ in range(20):
        with database.writing() as transaction:
            transaction.append([event] * 3000)
            transaction.forget("", 5000)
        sizes.append(sum(path.stat().st_size for path in site.root.glob(".bifolio/events.db*")))
    assert (database.bounds().first, database.bounds().last) == (55_001, 60_000)
    assert max(sizes[10:]) <= max(sizes[:10]) * 1.05


@pytest.mark.parametrize("damage", ["removed", "damaged"])
def test_a_log_that_is_taken_away_from_a_server(tmp_path: Path, damage: str) -> None:
    for path, text in {**FILES, "site.yaml": "roles: {public: {tag: [find, update]}}\n"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    port = free_port()
    with serving(tmp_path, port, "--workers=2", output=subprocess.DEVNULL):
        database = EventDatabase(tmp_path)
        until(lambda: database.path.exists())

        def edit_and_wait(name: str) -> None:
            edit(tmp_path, {"content/tags/red.json": json.dumps({"name": name})})
            until(lambda: name.encode() in get(port, "/api/tags")[1])

        edit_and_wait("First")
        if damage == "removed":
            for path in tmp_path.glob(".bifolio/events.db*"):
                path.unlink()
        else:
            database.path.write_bytes(b"no database" * 5000)
        for name in ("Second", "Third", "Fourth"):
            edit_and_wait(name)
        assert get(port, "/events?since=0")[0] == 200
        until(lambda: said(all_of(database))[-1:] == [("entry.update", "red", "published", ("name",))])
        numbers = [event.seq for event in all_of(database)]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len(numbers) >= 2
        database.close()


def test_a_state_folder_that_is_none(make_site: MakeSite) -> None:
    site = make_site(FILES)
    recorder = Recorder(site.root)
    site.observe(recorder)
    (site.root / ".bifolio").rename(site.root / ".away")
    (site.root / ".bifolio").write_text("no folder")
    edit(site.root, {"content/tags/red.json": '{"name": "Rot"}'})
    site.refresh()
    assert recorder.missed
    (site.root / ".bifolio").unlink()
    (site.root / ".away").rename(site.root / ".bifolio")
    site.record()
    assert not recorder.missed


def test_a_database_that_another_program_has_locked(make_site: MakeSite) -> None:
    site = make_site(FILES)
    database = recorded(site)
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        for number in range(20):
            edit(site.root, {"content/tags/red.json": json.dumps({"name": str(number)})})
            site.refresh({"content/tags/red.json"})
        assert time.monotonic() - began < recorder_module.LOCK_TIMEOUT_S + 5
        assert all_of(database) == []
        other.execute("ROLLBACK")
    site.record()
    assert said(all_of(database)) == [("entry.update", "red", "published", None)]
