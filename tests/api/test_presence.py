"""Tests of `/presence`, which shows who is viewing or editing a document, but only to editors of the same
content.
"""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from server.auth.permissions import Actor
from server.events import presence
from server.events.presence import Presence, PresenceSource, PresenceTable
from tests.api.test_event_streams import Reader
from tests.conftest import MakeApi
from tests.servers import free_port, serving
from tests.sites import STRING, Answer, Api, collection, component, relation, write

SECTIONS = {"type": "component", "component": "page.section", "repeatable": True}
ZONE = {"type": "dynamiczone", "components": ["page.section", "page.quote"]}
ATTRIBUTES = {
    "title": "string",
    "secret": {**STRING, "private": True},
    "author": relation("manyToOne", "author"),
    "sections": SECTIONS,
    "zone": ZONE,
}
FILES = {
    **collection("note", ATTRIBUTES, drafts=True, localized=True),
    **collection("author", {"name": "string"}),
    **collection("secret", {"title": "string"}, drafts=True),
    **component("page.section", {"heading": STRING}),
    **component("page.quote", {"words": STRING}),
    "content/notes/one.md": "---\ntitle: One\n---\n",
    "content/notes/two.draft.md": "---\ntitle: Two\n---\n",
    "content/authors/ann.md": "---\nname: Ann\n---\n",
    "content/secrets/one.md": "---\ntitle: One\n---\n",
    "site.yaml": "locales: {available: [en, fr]}\n"
    "roles: {public: {note: [find, findOne, readDraft, update]}}\n",
}
MAY: Mapping[str, list[str]] = {
    "ann": ["note.find", "note.readDraft", "note.updateDraft", "author.find", "author.update"],
    "ben": ["note.find", "note.update"],
    "eve": ["note.find", "note.readDraft"],
    "reader": ["note.find", "author.find"],
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    made = make_api(FILES)
    for name, may in MAY.items():
        made.token(name, may=may)
    return made


def be_at(api: Api, who: str, client: str = "tab1", **place: Any) -> Answer:
    body = {"type": "note", "documentId": "one", **place}
    return api.ask("PUT", f"/presence/{client}", who, json=body)


def names(answer: Answer) -> list[str]:
    return [person["name"] for person in answer.data["people"]]


def test_each_is_told_of_the_others_at_a_document(api: Api) -> None:
    first = be_at(api, "ann", field="title")
    assert first.body == {
        "data": {"type": "note", "documentId": "one", "people": []},
        "meta": {"expiresIn": 30},
    }
    ann = {"kind": "token", "name": "ann", "at": [{"locale": "en", "field": "title"}]}
    assert be_at(api, "ben").data["people"] == [ann]
    be_at(api, "ann", "tab2", locale="fr")
    assert names(be_at(api, "ben")) == ["ann"]  # a person with two tabs is listed once
    [there] = api.get("/presence?type=note&documentId=one", "ben").data
    assert there["people"][0]["at"] == [{"locale": "en", "field": "title"}, {"locale": "fr", "field": None}]
    assert api.get("/presence?documentId=two", "ben").data == []
    assert api.ask("DELETE", "/presence/tab1", "ann").status == 204
    assert api.ask("DELETE", "/presence/tab2", "ann").status == 204
    assert api.get("/presence", "ben").data == []


def test_nobody_else_ends_what_a_client_said(api: Api) -> None:
    be_at(api, "ann")
    assert api.ask("DELETE", "/presence/tab1", "ben").status == 204
    assert names(be_at(api, "ben")) == ["ann"]


def test_what_was_said_ends_by_itself(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "ENTRY_TTL_S", 0.05)
    be_at(api, "ann")
    time.sleep(0.06)
    assert names(be_at(api, "ben")) == []


def test_those_who_do_not_work_on_a_document_learn_nothing(api: Api) -> None:
    be_at(api, "ann")
    for who in ("public", "reader"):
        assert be_at(api, who).status == 403
        assert api.get("/presence", who).status == 403
        assert api.ask("DELETE", "/presence/tab1", who).status == 403
    headers = {"Accept": "text/event-stream"}
    for who in ("public", "reader"):
        assert api.get("/events?presence=note:one", who, headers=headers).status == 403
    assert be_at(api, "ben", documentId="none").status == 404
    of_another = be_at(api, "ben", type="secret")
    assert (of_another.status, of_another.error["message"]) == (
        400,
        'The content type "secret" in "type" does not exist',
    )
    be_at(api, "full", "a", type="secret")
    be_at(api, "full", "b", type="author", documentId="ann")
    assert [told["type"] for told in api.get("/presence", "ben").data] == ["note"]
    assert api.get("/presence?type=secret", "ben").status == 400


def test_who_may_not_read_drafts_does_not_learn_that_there_is_one(api: Api) -> None:
    assert be_at(api, "ann", documentId="two").status == 200
    hidden, missing = (be_at(api, "ben", documentId=name) for name in ("two", "none"))
    assert (hidden.status, hidden.body) == (404, missing.body)
    for query in ("", "?documentId=two", "?type=note&documentId=two"):
        assert api.get(f"/presence{query}", "ben").data == []
        assert api.get(f"/presence{query}", "eve").data[0]["documentId"] == "two"
    source = PresenceSource(PresenceTable(), lambda: api.site.state)
    there = {("note", "two"): [Presence("token:ann", "token", "ann", "note", "two", "en", None)]}
    ben, eve = (Actor(name, frozenset(MAY[name])) for name in ("ben", "eve"))
    assert b'"people":[]' in source.frame(ben, ("note", "two"), there)
    assert b'"name":"ann"' in source.frame(eve, ("note", "two"), there)


@pytest.mark.parametrize(
    "field", ["title", "secret", "sections", "sections.2.heading", "zone.0.words", "author"]
)
def test_a_field_is_told_by_its_path(api: Api, field: str) -> None:
    be_at(api, "ann", field=field)
    [person] = api.get("/presence", "full").data[0]["people"]
    assert person["at"] == [{"locale": "en", "field": field}]


@pytest.mark.parametrize(
    "field",
    [
        "",
        "none",
        "title.0",
        "sections.heading.x",
        "sections.0",
        "zone.1.none",
        "a." * 30,
        5,
        ["title"],
        "sections.²",
    ],
)
def test_what_is_no_field_is_refused(api: Api, field: Any) -> None:
    assert be_at(api, "ann", field=field).status == (400 if field != "sections.0" else 200)


def test_a_field_is_not_told_to_those_who_may_not_know_of_it(api: Api) -> None:
    be_at(api, "ann", field="author")
    assert be_at(api, "ben", field="author").status == 400  # The caller has no permission to find authors.
    [person] = be_at(api, "ben").data["people"]
    assert person["at"] == [{"locale": "en", "field": None}]
    be_at(api, "ann", field="secret")
    [person, _] = be_at(api, "eve").data["people"]
    # The field is private, and eve has only read permission.
    assert person["at"] == [{"locale": "en", "field": None}]


@pytest.mark.parametrize(
    ("client", "body"),
    [
        ("x" * 65, {"type": "note", "documentId": "one"}),
        ("a b", {"type": "note", "documentId": "one"}),
        ("tab", {"type": "note", "documentId": 1}),
        ("tab", {"type": "note", "documentId": "one", "locale": "xx"}),
        ("tab", {"type": "note", "documentId": "one", "locale": ["en"]}),
        ("tab", {"type": "note", "documentId": "one", "more": 1}),
        ("tab", {"type": ["note"], "documentId": "one"}),
        ("tab", []),
        ("tab", None),
    ],
)
def test_a_body_that_says_no_place_is_refused(api: Api, client: str, body: Any) -> None:
    refused = api.ask("PUT", f"/presence/{client}", "ann", json=body)
    assert refused.status == 400
    assert refused.error["name"] == "ValidationError"


def test_one_caller_can_not_take_all_the_room(api: Api) -> None:
    for number in range(presence.MAX_CLIENTS_PER_CALLER + 5):
        assert be_at(api, "ann", f"tab{number}", documentId="two" if number < 5 else "one").status == 200
    # the oldest entries were dropped
    assert [told["documentId"] for told in api.get("/presence", "ben").data] == ["one"]


def test_a_caller_that_says_too_much_is_refused(api: Api) -> None:
    answers = [be_at(api, "ann") for _ in range(presence.MAX_MESSAGES_PER_WINDOW + 1)]
    assert {answer.status for answer in answers[:-1]} == {200}
    assert (answers[-1].status, int(answers[-1].headers["Retry-After"]) <= 11) == (429, True)
    assert be_at(api, "ben").status == 200


def test_a_server_has_room_for_so_many(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "MAX_CLIENTS_PER_CALLER", presence.MAX_CLIENTS + 1)
    monkeypatch.setattr(presence, "MAX_MESSAGES_PER_WINDOW", 10_000)
    shared = presence.PresenceTable()
    for number in range(presence.MAX_CLIENTS):
        shared.put(f"tab{number}", presence.Presence("a", "user", "ann", "note", f"n{number}", "en", None))
    assert len(shared.all()) == presence.MAX_CLIENTS
    with pytest.raises(presence.BusyError):
        shared.put("more", presence.Presence("b", "user", "ben", "note", "one", "en", None))


def files_of(api: Api) -> list[Path]:
    """Return the site's files except the accounts database, in which tokens are looked up."""
    found = (path for path in api.root.rglob("*") if path.is_file())
    return [path for path in found if not path.name.startswith("accounts.db")]


def test_nothing_is_written(api: Api) -> None:
    api.get("/presence")  # creates the signing key of sessions
    before = {path: path.stat().st_mtime_ns for path in files_of(api)}
    be_at(api, "ann", field="title")
    api.ask("DELETE", "/presence/tab1", "ann")
    assert {path: path.stat().st_mtime_ns for path in files_of(api)} == before
    assert api.get("/events").body["meta"]["last"] == 0


def ask(port: int, token: str, method: str, path: str, body: Any = None) -> Any:
    """Send a request on a new connection, so that any worker may handle it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        raw = connection.getresponse().read()
        return json.loads(raw) if raw else None
    finally:
        connection.close()


def test_streams_of_all_workers_are_told_within_a_second(tmp_path: Path) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    accounts = Accounts(root)
    tokens = {name: accounts.create_token(name, "custom", may) for name, may in MAY.items()}
    accounts.close()
    with serving(root, port, "--workers=2"), ExitStack() as stack:
        path = "/events?types=note&presence=note:one"
        readers = [stack.enter_context(Reader(port, path, tokens["ben"])) for _ in range(6)]
        plain = stack.enter_context(Reader(port, "/events?types=note", tokens["ben"]))
        of_others = stack.enter_context(Reader(port, "/events?types=note&presence=note:two", tokens["ben"]))
        for reader in (*readers, plain, of_others):
            assert reader.next()[1] == "welcome"
        nobody = {"type": "note", "documentId": "one", "people": []}
        for reader in readers:
            assert reader.next()[1:] == ("presence", nobody)
        for field in ("title", "sections"):
            began = time.monotonic()
            place = {"type": "note", "documentId": "one", "field": field}
            ask(port, tokens["ann"], "PUT", "/presence/tab", place)
            ann = {"kind": "token", "name": "ann", "at": [{"locale": "en", "field": field}]}
            for reader in readers:
                assert reader.next()[1:] == ("presence", {**nobody, "people": [ann]})
            assert time.monotonic() - began < 5
        for _ in range(6):
            assert len(ask(port, tokens["ben"], "GET", "/presence")["data"]) == 1
        ask(port, tokens["ann"], "DELETE", "/presence/tab")
        for reader in readers:
            assert reader.next()[1:] == ("presence", nobody)
        note = {"data": {"title": "Another"}}
        ask(port, tokens["ben"], "PUT", "/api/notes/one", note)
        assert plain.next()[1] == "entry.publish"
        assert [of_others.next()[1] for _ in range(2)] == ["presence", "entry.publish"]
