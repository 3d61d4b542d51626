"""Tests of the event log: one event for each change to published content, whatever caused the change."""

import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.documents.timestamps import from_seconds
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.recorder import Recorder
from server.events.recorder_job import RecordEvents
from server.events.webhooks.queue import cursors
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.site.site import Site
from tests.conftest import MakeApi, MakeSite
from tests.git import commit_all, git
from tests.postgres import IN_BOTH_DATABASES
from tests.sites import STRING, collection, component, load, relation, with_accounts

NOTES = collection("note", {"title": "string", "secret": {**STRING, "private": True}}, drafts=True)
TAGS = collection("tag", {"name": "string"})
FILES = {
    **NOTES,
    **TAGS,
    "content/notes/one.json": '{"title": "One"}',
    "content/notes/two.draft.json": '{"title": "Two"}',
    "content/tags/red.json": '{"name": "Red"}',
}
Said = tuple[str, str, str, tuple[str, ...] | None]


@pytest.fixture
def make_site(tmp_path: Path, accounts: str) -> MakeSite:
    """Return a function that creates a site with an event log in SQLite or PostgreSQL, depending on the
    parameter.
    """
    return lambda files: load(tmp_path, with_accounts(files, accounts))


def recorded(site: Site) -> EventDatabase:
    """Start recording a site's changes, and return its log."""
    recorder = Recorder(site.root, site.replaced, accounts_url=site.state.settings.accounts)
    site.observe(recorder)
    site.record()
    return recorder.database


def said(events: list[Event]) -> list[Said]:
    return [(event.kind, event.document_id, event.status, event.changed) for event in events]


def all_of(database: EventDatabase) -> list[Event]:
    return database.read(0, 10_000)


EDITS: list[tuple[str, dict[str, str | None], list[Said]]] = [
    ("nothing", {}, []),
    ("the same in other words", {"content/notes/one.json": '{ "title": "One" }'}, []),
    (
        "a published document",
        {"content/notes/one.json": '{"title": "Uno"}'},
        [("entry.update", "one", "published", ("title",)), ("entry.publish", "one", "published", ("title",))],
    ),
    (
        "a draft",
        {"content/notes/two.draft.json": '{"title": "Dos"}'},
        [("entry.update", "two", "draft", ("title",))],
    ),
    (
        "a draft of what is published",
        {"content/notes/one.draft.json": '{"title": "Uno"}'},
        [("entry.update", "one", "draft", ("title",))],
    ),
    (
        "a draft that says the same as what is published",
        {"content/notes/one.draft.json": '{"title": "One"}'},
        [],
    ),
    (
        "a draft that is published",
        {"content/notes/two.draft.json": None, "content/notes/two.json": '{"title": "Two"}'},
        [("entry.publish", "two", "published", ("title",))],
    ),
    (
        "what is published that is a draft again",
        {"content/notes/one.json": None, "content/notes/one.draft.json": '{"title": "One"}'},
        [("entry.unpublish", "one", "published", ())],
    ),
    (
        "a draft that is given up",
        {"content/notes/two.draft.json": None},
        [("entry.delete", "two", "draft", ())],
    ),
    (
        "a new document",
        {"content/notes/new.json": '{"title": "New"}'},
        [("entry.create", "new", "published", ("title",)), ("entry.publish", "new", "published", ("title",))],
    ),
    (
        "a new draft",
        {"content/notes/new.draft.json": '{"title": "New"}'},
        [("entry.create", "new", "draft", ("title",))],
    ),
    (
        "what nobody is shown",
        {"content/notes/one.json": '{"title": "One", "secret": "S"}'},
        [("entry.update", "one", "published", ()), ("entry.publish", "one", "published", ())],
    ),
    (
        "an attribute that is gone",
        {"content/notes/one.json": "{}"},
        [("entry.update", "one", "published", ("title",)), ("entry.publish", "one", "published", ("title",))],
    ),
    (
        "a type without drafts",
        {"content/tags/red.json": '{"name": "Rot"}', "content/tags/blue.json": '{"name": "Blue"}'},
        [("entry.create", "blue", "published", ("name",)), ("entry.update", "red", "published", ("name",))],
    ),
    ("a file that breaks, whose last version is served", {"content/notes/one.json": "{"}, []),
    ("a media file", {"content/uploads/a.txt": "A"}, [("media.create", "a.txt", "", None)]),
    (
        "a document that moved to another file",
        {
            "content/notes/one.json": None,
            "content/notes/in/one.json": '{"documentId": "one", "title": "One"}',
        },
        [],
    ),
]


def edit(root: Path, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        if text is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)


@pytest.mark.parametrize(("files", "expected"), [pytest.param(*e[1:], id=e[0]) for e in EDITS])
@pytest.mark.parametrize(
    ("accounts", "down"),
    [("sqlite", False), ("sqlite", True), ("postgres", True)],
    indirect=["accounts"],
    ids=["served", "down", "down-postgres"],
)
def test_an_edit_has_its_events(
    make_site: MakeSite, files: dict[str, str | None], expected: list[Said], down: bool
) -> None:
    site = make_site(FILES)
    database = recorded(site)
    edit(site.root, files)
    if down:
        broken = any(text == "{" for text in files.values())
        expected = [("entry.delete", "one", "published", ())] if broken else expected
        site = Site(site.root)
        site.load()
        database = recorded(site)
    else:
        site.refresh()
    found = said(all_of(database))
    if expected and expected[0][3] is None:  # The attributes of files are not compared here.
        found = [(*each[:3], None) for each in found]
    assert found == expected
    assert all(event.source == "file" for event in all_of(database))
    site.record()
    assert len(all_of(database)) == len(found)


@IN_BOTH_DATABASES
def test_two_servers_of_a_site_record_a_change_once(make_site: MakeSite) -> None:
    site = make_site(FILES)
    database = recorded(site)
    other = Site(site.root)
    other.load()
    recorded(other)
    for number in range(4):
        edit(site.root, {"content/tags/red.json": json.dumps({"name": f"Red {number}"})})
        for one in (site, other) if number % 2 else (other, site):
            one.refresh()
    assert said(all_of(database)) == [("entry.update", "red", "published", ("name",))] * 4


def test_what_came_with_a_commit_says_so(make_site: MakeSite) -> None:
    site = make_site(FILES)
    commit_all(site.root)
    edit(site.root, {"content/tags/red.json": '{"name": "Rot"}'})
    git(site.root, "commit", "-qam", "second")
    second = git(site.root, "rev-parse", "HEAD").strip()
    git(site.root, "reset", "-q", "--hard", "HEAD~1")
    site.refresh()
    database = recorded(site)
    git(site.root, "reset", "-q", "--hard", second)
    edit(site.root, {"content/notes/one.json": '{"title": "By hand"}'})
    site.refresh()
    assert {(e.document_id, e.source, e.commit) for e in all_of(database)} == {
        ("red", "git", second),
        ("one", "file", ""),
    }
    count = len(all_of(database))
    git(site.root, "commit", "-qam", "third")  # this commit changes nothing that is served
    site.refresh()
    assert len(all_of(database)) == count


def test_content_types_that_change(make_site: MakeSite) -> None:
    site = make_site({**FILES, **component("shared.seo", {"title": STRING})})
    database = recorded(site)
    edit(
        site.root,
        {**collection("note", {"title": "text"}, drafts=True), **collection("extra", {"a": "string"})},
    )
    edit(site.root, component("shared.seo", {"title": {"type": "text"}}))
    site.refresh()
    assert [(event.kind, event.uid, event.model, event.tags) for event in all_of(database)] == [
        ("schema.update", "api::extra.extra", "extra", ("extra", "_site")),
        ("schema.update", "api::note.note", "note", ("note", "_site")),
        ("schema.update", "shared.seo", "shared.seo", ("_site",)),
    ]


def test_many_changes_at_once_are_one_event(make_site: MakeSite) -> None:
    site = make_site({**FILES, "site.yaml": "events: {bulk: 3}\n"})
    database = recorded(site)
    edit(site.root, {f"content/tags/t{number}.json": '{"name": "T"}' for number in range(3)})
    site.refresh()
    assert [event.kind for event in all_of(database)] == ["entry.create"] * 3
    edit(site.root, {f"content/tags/t{number}.json": None for number in range(3)})
    edit(site.root, {"content/notes/two.draft.json": '{"title": "Dos"}'})
    site.refresh()
    last = all_of(database)[-1]
    assert (last.kind, last.tags) == ("site.update", ("note", "tag", "_site"))
    assert last.counts == {
        "api::note.note": {"draft": {"entry.update": 1}},
        "api::tag.tag": {"published": {"entry.delete": 3}},
    }


@IN_BOTH_DATABASES
def test_old_events_are_forgotten(make_site: MakeSite) -> None:
    site = make_site({**FILES, "site.yaml": "events: {keep: 2}\n"})
    database = recorded(site)
    for number in range(5):
        edit(site.root, {"content/tags/red.json": json.dumps({"name": str(number)})})
        site.refresh()
    recorded(site)
    assert [event.seq for event in all_of(database)] == [4, 5]
    assert (database.bounds().first, database.bounds().last) == (4, 5)


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "removed": remove,
    "damaged": lambda path: path.write_bytes(b"no database" * 1000),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_log_that_is_gone_begins_anew(make_site: MakeSite, damage: Callable[[Path], Any]) -> None:
    site = make_site(FILES)
    database = recorded(site)
    edit(site.root, {"content/tags/red.json": '{"name": "Rot"}'})
    site.refresh()
    before = database.bounds()
    database.close()
    damage(database.path)
    for name in ("A", "B", "C"):
        edit(site.root, {"content/tags/red.json": json.dumps({"name": name})})
        site.refresh()
    after = database.bounds()
    assert after.id != before.id
    assert said(all_of(database))[-1] == ("entry.update", "red", "published", ("name",))
    if damage is DAMAGES["damaged"]:
        assert after.first > before.last + 1  # so that positions in the old log are invalid


def test_a_change_that_can_not_be_recorded_is_recorded_later(make_site: MakeSite) -> None:
    site = make_site(FILES)
    database = recorded(site)
    with sqlite3.connect(database.path) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
    other.close()
    edit(site.root, {"content/tags/red.json": '{"name": "Rot"}'})
    site.refresh()
    assert site.state.snapshot.tables["api::tag.tag"].versions
    assert all_of(database) == []
    with sqlite3.connect(database.path) as other:
        other.execute("DROP TRIGGER full")
    other.close()
    site.record()
    [event] = all_of(database)
    assert (event.kind, event.document_id) == ("entry.update", "red")


ARTICLES = {**collection("article", {"title": "string", "tags": relation("manyToMany", "tag")}), **TAGS}


def test_a_write_through_the_api_says_who_made_it(make_api: MakeApi) -> None:
    api = make_api({**NOTES, **ARTICLES, "site.yaml": "git: {commit: each}\n"})
    commit_all(api.site.root)
    api.site.refresh()
    database = recorded(api.site)
    recorder = Recorder(api.site.root, accounts_url=api.site.state.settings.accounts)
    api.site.observe(recorder, recorder.committed)
    made = api.post("/api/notes", {"title": "One"})
    head = git(api.site.root, "rev-parse", "HEAD").strip()
    assert [(e.kind, e.actor, e.source, e.commit) for e in all_of(database)] == [
        (kind, "token:full", "api", head) for kind in ("entry.create", "entry.publish")
    ]
    assert all_of(database)[0].document_id == made.data["documentId"]


def test_what_is_unpublished_and_discarded(make_api: MakeApi) -> None:
    api = make_api({**FILES, "content/notes/one.draft.json": '{"title": "Uno"}'})
    database = recorded(api.site)
    assert api.ask("POST", "/api/notes/one/actions/discard").status == 200
    assert api.ask("POST", "/api/notes/one/actions/unpublish").status == 200
    events = all_of(database)
    assert said(events) == [
        ("entry.update", "one", "draft", ("title",)),
        ("entry.unpublish", "one", "published", ()),
    ]
    assert {(event.source, event.actor) for event in events} == {("api", "token:full")}


def test_a_relation_that_a_write_changes_in_another_file(make_api: MakeApi) -> None:
    api = make_api({**ARTICLES, "content/articles/a.json": "{}", "content/tags/red.json": '{"name": "Red"}'})
    database = recorded(api.site)
    api.put("/api/articles/a", {"tags": ["red"]})
    assert said(all_of(database)) == [("entry.update", "a", "published", ("tags",))]


@IN_BOTH_DATABASES
def test_a_server_that_has_not_seen_a_change_yet_does_not_record_the_reverse(make_site: MakeSite) -> None:
    ahead = make_site(FILES)
    database = recorded(ahead)
    behind = Site(ahead.root)
    behind.load()
    edit(ahead.root, {"content/tags/red.json": '{"name": "Rot"}', "content/tags/new.json": '{"name": "N"}'})
    edit(ahead.root, {"content/notes/two.draft.json": None, "content/uploads/b.txt": "b"})
    ahead.refresh()
    expected = said(all_of(database))
    recorded(behind)
    assert said(all_of(database)) == expected
    behind.refresh()
    assert said(all_of(database)) == expected


def test_a_server_with_content_types_that_others_have_changed_compares_later(make_site: MakeSite) -> None:
    ahead = make_site(FILES)
    database = recorded(ahead)
    behind = Site(ahead.root)
    behind.load()
    edit(ahead.root, dict(collection("note", {"title": "text"}, drafts=True)))
    ahead.refresh()
    recorder = Recorder(behind.root, accounts_url=behind.state.settings.accounts)
    behind.observe(recorder)
    behind.record()
    assert recorder.missed
    behind.refresh()
    behind.record()
    assert not recorder.missed
    assert [event.kind for event in all_of(database)] == ["schema.update"]


@IN_BOTH_DATABASES
def test_starts_leave_nothing_in_the_database(make_site: MakeSite) -> None:
    site = make_site(FILES)
    for _ in range(4):
        database = recorded(site)
    assert {name for (name,) in database.query(lambda c: c.execute("SELECT name FROM notes").fetchall())} == {
        "begun"
    }


@IN_BOTH_DATABASES
def test_what_differs_from_what_was_recorded_and_not_from_what_was_served(make_site: MakeSite) -> None:
    site = make_site(FILES)
    database = recorded(site)
    late = Recorder(site.root, accounts_url=site.state.settings.accounts)
    edit(site.root, {"content/notes/one.json": '{"title": "Uno", "secret": "S"}'})
    site.observe(lambda *_: None)
    site.refresh()  # this change is not recorded
    edit(site.root, {"content/notes/one.json": '{"title": "Un", "secret": "S"}'})
    site.observe(late)
    site.refresh()
    assert said(all_of(database)) == [
        ("entry.update", "one", "published", None),
        ("entry.publish", "one", "published", None),
    ]


def test_what_fails_is_tried_again_less_and_less_often(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Site) -> None:
        raise ValueError("something is broken")

    site = make_site(FILES)
    recorder = Recorder(site.root, site.replaced, accounts_url=site.state.settings.accounts)
    monkeypatch.setattr(Site, "record", fail)
    background = Runner([RecordEvents(site, recorder, Timing())])
    background.start()
    time.sleep(1.5)
    background.stop()
    assert 1 < len([line for line in caplog.messages if "can't be recorded" in line]) < 6


def starts(database: EventDatabase) -> dict[str, int]:
    """Map each webhook to the number of the event after which its deliveries start."""
    return database.query(cursors)


def save_webhooks(root: Path, settings: str, *names: str) -> None:
    lines = [f"  - {{name: {name}, url: https://hooks.example.org/}}\n" for name in names]
    (root / "site.yaml").write_text(f"{settings}webhooks:\n{''.join(lines)}" if names else settings)


@IN_BOTH_DATABASES
def test_a_webhook_starts_when_its_settings_were_saved_even_if_they_are_saved_again(
    make_site: MakeSite,
) -> None:
    site = make_site({**FILES, "site.yaml": "name: Harbour\n"})
    settings, database, now = (site.root / "site.yaml").read_text(), recorded(site), time.time()
    for number in range(2):
        edit(site.root, {f"content/tags/t{number}.json": '{"name": "T"}'})
        site.refresh()
    with database.writing() as transaction:
        transaction.connection.execute("UPDATE events SET at = ? WHERE seq = 1", (from_seconds(now - 20),))
    save_webhooks(site.root, settings, "one")
    os.utime(site.root / "site.yaml", (now - 10, now - 10))
    site.refresh()
    assert starts(database) == {"one": 1}
    edit(site.root, {"content/tags/t2.json": '{"name": "T"}'})
    site.refresh()
    save_webhooks(site.root, settings + "# again\n", "one", "two")
    site.refresh()
    assert starts(database) == {"one": 1, "two": 3}


def test_webhooks_that_changed_while_nothing_was_recorded_are_stored_later(make_site: MakeSite) -> None:
    site = make_site(FILES)
    database = recorded(site)
    save_webhooks(site.root, "", "one")
    site.refresh()
    site.observe(lambda *_: None)
    save_webhooks(site.root, "", "two")
    edit(site.root, {"content/tags/blue.json": '{"name": "Blue"}'})
    site.refresh()
    assert starts(database) == {"one": 0}
    late = Site(site.root)
    late.load()
    recorded(late)
    assert (len(all_of(database)), starts(database)) == (1, {"two": 0})
