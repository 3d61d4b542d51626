"""Tests of `GET /events`: callers see only the changes that they have permission to see."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from server.documents.timestamps import now
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.recorder import Recorder
from tests.conftest import MakeApi, MakeSite
from tests.postgres import IN_BOTH_DATABASES
from tests.sites import STRING, Api, collection, component, load, make, relation, with_accounts, write

FILES = {
    **collection(
        "note",
        {"title": "string", "text": "string", "secret": {**STRING, "private": True}},
        drafts=True,
        localized=True,
    ),
    **collection("dossier", {"title": "string"}),
    "content/uploads/a.txt": "a",
    "site.yaml": "locales: {available: [en, fr]}\nevents: {bulk: 5}\nroles: {public: {note: [find]}}\n",
}


@pytest.fixture
def make_site(tmp_path: Path, accounts: str) -> MakeSite:
    """Return a function that creates a site with an event log in SQLite or PostgreSQL, depending on the
    parameter.
    """
    return lambda files: load(tmp_path, with_accounts(files, accounts))


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A site whose changes are recorded."""
    made = make_api(FILES)
    recorder = Recorder(made.root, accounts_url=made.site.state.settings.accounts)
    made.site.observe(recorder)
    made.site.record()
    return made


def told(api: Api, query: str = "", who: str = "full") -> list[tuple[str, str, str | None]]:
    found = api.get(f"/events?{query}", who).body["data"]
    return [(event["event"], event["documentId"] or "", event["status"]) for event in found]


def make_all(api: Api) -> Mapping[str, str]:
    """Create a published note, a draft and a dossier, and return their ids."""
    note = api.post("/api/notes", {"title": "One"}).data["documentId"]
    draft = api.post("/api/notes?status=draft", {"title": "Two"}).data["documentId"]
    dossier = api.post("/api/dossiers", {"title": "D"}).data["documentId"]
    return {"note": note, "draft": draft, "dossier": dossier}


def test_everybody_is_told_what_they_may_see(api: Api) -> None:
    api.token("editor", may=["note.find", "note.readDraft"])
    api.token("nobody", may=["note.create"])
    ids = make_all(api)
    api.put("/api/notes/" + ids["note"], {"secret": "S"})
    api.ask("DELETE", "/api/notes/" + ids["draft"])
    api.ask("DELETE", "/api/notes/" + ids["note"])
    published = [(f"entry.{what}", ids["note"], "published") for what in ("create", "publish")]
    assert told(api, who="public")[:2] == published
    assert {event[1] for event in told(api, who="public")} == {ids["note"]}
    deleted = [(f"entry.{what}", ids["note"], "published") for what in ("unpublish", "delete")]
    assert told(api, who="public")[2:] == deleted
    assert ("entry.create", ids["draft"], "draft") in told(api, who="editor")
    assert ("entry.delete", ids["draft"], "draft") in told(api, who="editor")
    assert len(told(api, who="public")) == 4  # the change to a private attribute is not shown
    assert ("entry.update", ids["note"], "published") not in told(api, who="editor")
    assert {event[1] for event in told(api)} == set(ids.values())
    assert api.get("/events", "nobody").status == 403
    assert "S" not in [name for event in api.get("/events").body["data"] for name in event["changed"]]


DRAFT = {
    "content/notes/a.en.draft.json": '{"title": "hidden"}',
    "content/notes/b.en.draft.json": '{"title": "B"}',
}


@pytest.mark.parametrize("bulk", [1, 5])
@pytest.mark.parametrize("query", ["", "events=entry.create", "events=entry.unpublish,entry.delete"])
def test_events_do_not_tell_whether_there_is_a_hidden_draft(tmp_path: Path, bulk: int, query: str) -> None:
    settings = {"site.yaml": str(FILES["site.yaml"]).replace("bulk: 5", f"bulk: {bulk}")}
    seen: list[Any] = []
    log: list[Any] = []
    for name, drafts in (("without", {}), ("with", DRAFT)):
        api = make(tmp_path / name, {**FILES, **settings, **drafts})
        api.site.observe(Recorder(api.root, accounts_url=api.site.state.settings.accounts))
        api.site.record()
        for text in ('{"title": "A"}', '{"title": "B"}', None):
            for document in "ab":
                path = f"content/notes/{document}.en.json"
                write(api.root, {path: text}) if text else (api.root / path).unlink()
            api.site.refresh()
            api.site.record()
        events = api.get(f"/events?{query}", "public").body["data"]
        seen.append([{**event, "createdAt": "", "seq": 0} for event in events])
        database = EventDatabase(api.root)
        log.append([(e["event"], e.get("counts")) for e in api.get("/events").body["data"]])
        log.append([(event.kind, event.counts) for event in database.read(0, 100)])
        database.close()
    assert seen[0] == seen[1]
    assert log[0] == [(kind, counts and {"note": counts["api::note.note"]}) for kind, counts in log[1]]
    assert log[0] != log[2]
    assert "public." not in str(log)
    if bulk == 1:
        counts = [event["counts"]["note"]["published"] for event in seen[0]]
        shown = {kind for count in counts for kind in count}
        assert query or counts == [APPEARED, {"entry.publish": 2}, DISAPPEARED]
    else:
        shown = {event["event"] for event in seen[0]}
    assert query or shown == {*APPEARED, *DISAPPEARED}


APPEARED = {"entry.create": 2, "entry.publish": 2}
DISAPPEARED = {"entry.delete": 2, "entry.unpublish": 2}


def test_relations_to_what_may_not_be_found_are_not_named_as_changed(make_api: MakeApi) -> None:
    note = collection("note", {"title": STRING, "file": relation("manyToOne", "dossier")})
    api = make_api({**FILES, **note})
    api.site.observe(Recorder(api.root, accounts_url=api.site.state.settings.accounts))
    api.site.record()
    dossier = api.post("/api/dossiers", {"title": "D"}).data["documentId"]
    id_ = api.post("/api/notes", {"title": "One"}).data["documentId"]
    api.put(f"/api/notes/{id_}", {"title": "Two", "file": dossier})

    def changed(who: str) -> list[str]:
        return list(api.get("/events", who).body["data"][-1]["changed"])

    assert changed("full") == ["title", "file"]
    assert changed("public") == ["title"]


@pytest.mark.parametrize("drafts", [False, True])
def test_a_change_that_nobody_is_shown_is_no_event(make_api: MakeApi, drafts: bool) -> None:
    private = {**STRING, "private": True}
    inner = {"type": "component", "component": "x.inner", "repeatable": True}
    note = {
        "title": STRING,
        "safe": {"type": "component", "component": "x.safe"},
        "zone": {"type": "dynamiczone", "components": ["x.safe"]},
        "file": relation("manyToOne", "dossier"),
        "by": {"type": "relation", "relation": "manyToOne", "target": "plugin::users-permissions.user"},
    }
    files = {
        **FILES,
        **collection("note", note, drafts=drafts),
        **component("x.safe", {"open": STRING, "code": private, "inner": inner}),
        **component("x.inner", {"open": STRING, "key": {"type": "password"}, "code": private}),
    }
    api = make_api(files)
    api.site.observe(Recorder(api.root, accounts_url=api.site.state.settings.accounts))
    api.site.record()
    api.post("/api/dossiers", {"title": "D"})

    def safe(code: str, opened: str = "o") -> dict[str, Any]:
        return {"open": "o", "code": code, "inner": [{"open": opened, "key": code, "code": code}]}

    def write(value: dict[str, Any], file: str = "") -> list[tuple[str, list[str]]]:
        last = api.get("/events").body["meta"]["last"]
        text = {"title": "N", "safe": value, "zone": [{"__component": "x.safe", **value}]}
        (api.root / "content/notes").mkdir(exist_ok=True)
        (api.root / "content/notes/n.json").write_text(
            json.dumps({**text, **({"file": file} if file else {})})
        )
        api.site.refresh()
        found = api.get(f"/events?since={last}", "public").body["data"]
        return [(event["event"], event["changed"]) for event in found]

    kinds = ["entry.publish" if drafts else "entry.update"]
    write(safe("1"))
    assert write(safe("2")) == []
    assert write(safe("3", "p")) == [(kind, ["safe", "zone"]) for kind in kinds]
    dossier = api.get("/api/dossiers").ids[0]
    assert write(safe("3", "p"), dossier) == []
    assert write(safe("3", "q")) == [(kind, ["safe", "zone"]) for kind in kinds]


def test_a_change_of_targets_is_told_to_those_who_may_find_them(make_api: MakeApi) -> None:
    morph = {"type": "relation", "relation": "morphToMany"}
    files = {
        **FILES,
        **collection("tag", {"name": STRING}),
        **collection("note", {"about": morph, "box": {"type": "component", "component": "x.box"}}),
        **component("x.box", {"text": STRING, "about": morph, "file": relation("manyToOne", "dossier")}),
    }
    api = make_api(files)
    api.token("reader", may=["note.find", "tag.find"])
    api.site.observe(Recorder(api.root, accounts_url=api.site.state.settings.accounts))
    api.site.record()
    (api.root / "content/notes").mkdir(exist_ok=True)

    def put(about: str, inside: str = "", file: str = "", text: str = "t") -> list[list[str]]:
        def targets(letters: str) -> list[dict[str, str]]:
            uids = {"d": "api::dossier.dossier", "t": "api::tag.tag"}
            return [{"__type": uids[letter], "documentId": letter} for letter in letters]

        last = api.get("/events").body["meta"]["last"]
        box = {"text": text, "about": targets(inside), **({"file": file} if file else {})}
        (api.root / "content/notes/n.json").write_text(json.dumps({"about": targets(about), "box": box}))
        api.site.refresh()
        found = {who: api.get(f"/events?since={last}", who).body["data"] for who in ("reader", "full")}
        assert len(found["full"]) == 1
        return [event["changed"] for event in found["reader"]]

    put("d")
    assert put("") == put("d") == []
    assert put("dt") == [["about"]]
    assert put("t") == []
    assert put("t", "d") == put("t", "d", "d") == put("t", "d") == put("t", "d", "d") == []
    assert put("t", "d", "d", "u") == [["box"]]
    assert put("td", "dt", "d", "u") == [["box"]]
    assert put("t", "dt", "", "v") == [["box"]]


def test_names_that_are_or_were_hidden_are_not_told_after_a_change_of_the_schema(make_api: MakeApi) -> None:
    hidden = {
        "secret": {**STRING, "private": True},
        "pin": {"type": "password"},
        "file": relation("manyToOne", "dossier"),
        "about": {"type": "relation", "relation": "morphToOne"},
    }
    about = {"__type": "api::dossier.dossier", "documentId": "d"}
    full = {"title": "One", "secret": "S", "pin": "P", "file": "d", "about": about, "bygone": "B"}
    before = {"title": STRING, "bygone": STRING, **hidden}
    api = make_api({**FILES, **collection("note", before), "content/notes/n.json": json.dumps(full)})
    api.token("finder", may=["note.find", "dossier.find"])
    api.site.observe(Recorder(api.root, accounts_url=api.site.state.settings.accounts))
    api.site.record()

    def changed(who: str) -> list[list[str]]:
        events = api.get("/events?types=note&events=entry.update", who).body["data"]
        return [event["changed"] for event in events]

    def change(attributes: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        write(api.root, {**collection("note", attributes), "content/notes/n.json": json.dumps(values)})
        api.site.refresh()

    # The schema's attributes and the document's values are removed in the same change.
    change({"title": STRING}, {"title": "One"})
    assert (changed("public"), changed("finder")) == ([["bygone"]], [["bygone", "file", "about"]])
    change(before, full)
    change({**before, "secret": STRING, "pin": STRING}, {**full, "title": "2", "secret": "T", "pin": "Q"})
    assert changed("public")[-1] == ["title"]  # The previous values were private.
    change({**before, "secret": STRING, "pin": STRING}, {**full, "title": "3", "secret": "U", "pin": "R"})
    assert changed("public")[-1] == ["title", "secret", "pin"]
    change(before, {**full, "title": "4", "secret": "V", "pin": "S"})
    assert changed("public")[-2:] == [["title"], ["title"]]  # This also applies to the earlier event.


def test_a_relation_stays_hidden_in_earlier_events_when_it_is_removed(make_api: MakeApi) -> None:
    note = {"title": STRING, "file": relation("manyToOne", "dossier")}
    api = make_api({**FILES, **collection("note", note), "content/notes/n.json": '{"title": "One"}'})
    api.site.observe(Recorder(api.root, accounts_url=api.site.state.settings.accounts))
    api.site.record()
    write(api.root, {"content/notes/n.json": '{"title": "Two", "file": "d"}'})
    api.site.refresh()
    write(api.root, collection("note", {"title": STRING}))
    api.site.refresh()
    (event,) = api.get("/events?events=entry.update", "public").body["data"]
    assert event["changed"] == ["title"]


def test_who_made_a_change_is_told_to_those_who_may_read_the_history(api: Api) -> None:
    make_all(api)
    api.token("historian", may=["note.find", "history.read"])
    [event] = api.get("/events?limit=1", "historian").body["data"]
    assert (event["actor"], event["source"]) == ("token:full", "api")
    [event] = api.get("/events?limit=1", "public").body["data"]
    assert (event["actor"], event["commit"]) == (None, None)


@IN_BOTH_DATABASES
def test_a_reader_goes_on_where_it_was(api: Api) -> None:
    make_all(api)
    seen, since, more = list[Any](), 0, True
    while more:
        body = api.get(f"/events?since={since}&limit=2").body
        seen.extend(event["seq"] for event in body["data"])
        since, more = body["meta"]["last"], body["meta"]["more"]
    assert seen == [1, 2, 3, 4]
    api.ask("DELETE", "/api/dossiers/" + make_all(api)["dossier"])
    hidden = api.get("/events?since=4", "public").body
    assert (
        hidden["meta"]["last"] == api.get("/events?since=4").body["meta"]["last"]
    )  # after the events that the caller has no permission to see


SELECTIONS: Mapping[str, list[str]] = {
    "types=dossier": ["entry.create"],
    "types=note&status=draft": ["entry.create"],
    "events=entry.publish": ["entry.publish"],
    "events=entry.*&types=dossier,note": ["entry.create", "entry.publish", "entry.create", "entry.create"],
    "types[]=dossier&types[]=upload": ["entry.create"],
    "locales=fr": [],
    "events=media.*": [],
}


@IN_BOTH_DATABASES
def test_the_newest_events_can_be_asked_for(api: Api) -> None:
    make_all(api)
    events = api.get("/events").body["data"]
    assert api.get("/events?newest=2").body["data"] == events[-2:]
    assert api.get("/events?newest=1000").body["data"] == events
    last = events[-1]["seq"]
    assert api.get(f"/events?newest=3&since={last - 1}").body["data"] == events[-1:]
    assert api.get("/events?newest=no").status == 400


def test_some_events_can_be_asked_for(api: Api) -> None:
    make_all(api)
    assert {query: [event[0] for event in told(api, query)] for query in SELECTIONS} == SELECTIONS


WRONG = {
    "types=dossiers": 'contains the unknown value "dossiers": did you mean "dossier"?',
    "events=entry.made": "entry.made",
    "status=modified": "modified",
    "since=x": "since",
    "since=-1": "since",
    "limit=1001": "1,000",
    "limit=" + "9" * 5000: "limit",
    "kind=x": "kind",
    "sinse=1": 'Unknown parameter "sinse": did you mean "since"?',
    "types[a]=note": "types",
}


def test_what_can_not_be_asked_for(api: Api) -> None:
    answers = {query: api.get(f"/events?{query}") for query in WRONG}
    messages = {query: answer.error["message"] for query, answer in answers.items()}
    assert {query: answer.status for query, answer in answers.items()} == dict.fromkeys(WRONG, 400)
    assert [messages[query] for query in WRONG if WRONG[query] not in messages[query]] == []


def test_which_types_there_are_is_not_told(api: Api) -> None:
    assert api.get("/events?types=dossier", "public").status == 400
    assert "dossier" not in api.get("/events?types=dossie", "public").error["message"].replace('dossie"', "")


def test_numbers_of_another_log_are_gone(api: Api) -> None:
    make_all(api)
    answer = api.get("/events?since=1000")
    assert (answer.status, answer.error["name"]) == (410, "GoneError")
    assert answer.error["details"] == {"first": 1, "last": 4}


def test_many_changes_are_counted_for_those_who_see_them(api: Api) -> None:
    for number in range(6):
        (api.root / "content/dossiers").mkdir(exist_ok=True)
        (api.root / f"content/dossiers/{number}.json").write_text('{"title": "D"}')
    (api.root / "content/notes").mkdir(exist_ok=True)
    (api.root / "content/notes/n.json").write_text('{"title": "N"}')
    (api.root / "content/notes/d.draft.json").write_text('{"title": "D"}')
    api.site.refresh()
    [event] = api.get("/events").body["data"]
    assert (event["event"], event["tags"]) == ("site.update", ["dossier", "note", "_site"])
    assert event["counts"]["dossier"] == {"published": {"entry.create": 6}}
    [event] = api.get("/events", "public").body["data"]
    assert event["counts"] == {"note": {"published": {"entry.create": 1, "entry.publish": 1}}}
    assert event["tags"] == ["note", "_site"]


def test_many_changes_of_what_is_private_are_told_to_nobody(api: Api) -> None:
    notes = [api.post("/api/notes", {"title": f"N{number}"}).data["documentId"] for number in range(7)]
    last = api.get("/events").body["meta"]["last"]
    paths = [path for path in (api.root / "content/notes").iterdir() if path.is_file()]
    for path in paths:
        path.write_text(path.read_text().replace("title:", "secret: S\ntitle:"))
    api.site.refresh()
    api.token("editor", may=["note.find", "note.readDraft", "history.read"])
    assert api.get(f"/api/notes/{notes[0]}").data["title"]
    for who in ("public", "editor"):
        assert told(api, f"since={last}", who) == []
    [event] = api.get(f"/events?since={last}").body["data"]
    assert event["counts"] == {"note": {"published": {"entry.publish": 7, "entry.update": 7}}}
    for path in paths[1:]:
        path.write_text(path.read_text().replace("secret: S", "secret: T"))
    paths[0].write_text(paths[0].read_text().replace("title: ", "title: New "))
    api.site.refresh()
    [event] = api.get(f"/events?since={last}", "public").body["data"]
    assert event["counts"] == {"note": {"published": {"entry.publish": 1}}}


def test_what_changes_in_a_draft_is_not_told_with_what_is_published(api: Api) -> None:
    def edit(published: str, draft: str, who: str) -> list[tuple[str, str, list[str]]]:
        last = api.get("/events").body["meta"]["last"]
        (api.root / "content/notes").mkdir(exist_ok=True)
        (api.root / "content/notes/n.json").write_text(published)
        (api.root / "content/notes/n.draft.json").write_text(draft)
        api.site.refresh()
        found = api.get(f"/events?since={last}", who).body["data"]
        return [(event["event"], event["status"], event["changed"]) for event in found]

    api.token("editor", may=["note.find", "note.readDraft"])
    made = edit('{"title": "A"}', '{"title": "A", "text": "T"}', "public")
    assert made == [("entry.create", "published", ["title"]), ("entry.publish", "published", ["title"])]
    changed = edit('{"title": "B"}', '{"title": "B", "text": "U"}', "public")
    assert changed == [("entry.publish", "published", ["title"])]
    changed = edit('{"title": "C"}', '{"title": "D", "text": "V"}', "editor")
    assert changed[0] == ("entry.update", "draft", ["title", "text"])
    assert edit('{"title": "C", "secret": "S"}', '{"title": "E", "text": "V"}', "public") == []
    both = edit('{"title": "F"}', '{"title": "G", "text": "V"}', "public")
    assert both == [("entry.publish", "published", ["title"])]
    both = edit('{"title": "H"}', '{"title": "I", "text": "V"}', "editor")
    assert both == [("entry.update", "published", ["title"]), ("entry.publish", "published", ["title"])]


@IN_BOTH_DATABASES
def test_to_look_for_events_costs_steps_also_where_there_are_none(api: Api) -> None:
    (api.root / "site.yaml").write_text(api.read("site.yaml") + "api: {limits: {steps: 600}}\n")
    api.site.refresh()
    one = Event("entry.update", "api::dossier.dossier", "d", "en", "published", ("title",), at=now())
    with EventDatabase(api.root, api.site.state.settings.accounts).writing() as transaction:
        transaction.append([one] * 700)
    assert api.get("/events?since=0", "public").error["details"] == {"limit": "steps"}
    assert told(api, "since=500", "public") == []
