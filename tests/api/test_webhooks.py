"""Tests of webhook requests, also with real servers: each change is sent once, even if processes
are killed.
"""

import json
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.api.webhooks import body_of
from server.events.database import EventDatabase
from server.events.recorder import Recorder
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.receivers import Receiver, receiving, status
from tests.servers import free_port, start, stop, wait, workers
from tests.sites import STRING, Api, collection, component, documents, relation, translated, write
from tests.waiting import until

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
FILES: dict[str, str | bytes] = {
    **collection("author", {"name": STRING, "articles": relation("oneToMany", "article", mappedBy="author")}),
    **collection(
        "article",
        {
            "title": translated(STRING),
            "secret": {**STRING, "private": True},
            "key": {"type": "password"},
            "author": relation("manyToOne", "author", inversedBy="articles"),
            "owner": {
                "type": "relation",
                "relation": "manyToOne",
                "target": "plugin::users-permissions.user",
            },
            "cover": {"type": "media"},
            "seo": {"type": "component", "component": "shared.seo"},
            "parts": {"type": "dynamiczone", "components": ["shared.seo", "shared.quote"]},
        },
        drafts=True,
        localized=True,
    ),
    **component(
        "shared.seo", {"title": STRING, "image": {"type": "media"}, "by": relation("oneToOne", "author")}
    ),
    **component("shared.quote", {"text": STRING}),
    **documents("authors", ann={"name": "Ann"}),
    "content/uploads/a.png": PNG,
    "site.yaml": "locales: {available: [en, fr]}\nevents: {bulk: 20}\n",
}
ARTICLE = {
    "title": "One",
    "secret": "S",
    "key": "hush",
    "author": "ann",
    "seo": {"title": "Seo", "by": "ann"},
    "parts": [{"__component": "shared.quote", "text": "Q"}, {"__component": "shared.seo", "by": "ann"}],
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    """A site whose changes are recorded."""
    made = make_api(FILES)
    made.site.observe(Recorder(made.root))
    made.site.record()
    return made


def bodies(api: Api, since: int = 0) -> list[dict[str, Any]]:
    """Return the request bodies that a webhook receives for all events after the event with the number
    `since`.
    """
    events = EventDatabase(api.root).read(since, 100)
    return [json.loads(body_of(api.site.state, event)) for event in events]


def test_an_entry_has_its_relations_media_and_components_but_nothing_private(api: Api) -> None:
    cover = api.get("/api/upload/files").body[0]["id"]
    made = api.post("/api/articles", {**ARTICLE, "cover": cover}).data
    created, published = bodies(api)
    assert list(published) == ["event", "createdAt", "model", "uid", "entry", "bifolio"]
    assert (created["event"], published["event"]) == ("entry.create", "entry.publish")
    assert (published["model"], published["uid"]) == ("article", "api::article.article")
    entry = published["entry"]
    assert entry["documentId"] == made["documentId"]
    assert entry["title"] == "One"
    assert entry["publishedAt"]
    assert entry["author"]["name"] == "Ann"
    assert entry["cover"]["url"].startswith("/uploads/")
    assert entry["seo"]["by"]["name"] == "Ann"
    assert entry["seo"]["image"] is None
    assert entry["parts"][0] == {"id": entry["parts"][0]["id"], "text": "Q", "__component": "shared.quote"}
    assert entry["parts"][1]["by"]["name"] == "Ann"
    assert entry["localizations"] == []
    assert not {"secret", "key", "owner"} & entry.keys()
    assert "hush" not in json.dumps(published)
    assert published["bifolio"] == {
        "seq": 2,
        "documentId": made["documentId"],
        "locale": "en",
        "status": "published",
        "changed": published["bifolio"]["changed"],
        "actor": published["bifolio"]["actor"],
        "source": "api",
        "commit": None,
        "tags": ["article", f"article:{made['documentId']}"],
    }
    assert "title" in published["bifolio"]["changed"]
    assert not {"secret", "key"} & set(published["bifolio"]["changed"])


def test_an_event_has_the_version_that_it_is_about(api: Api) -> None:
    where = "/api/articles/" + api.post("/api/articles", {"title": "One"}).data["documentId"]
    api.put(f"{where}?status=draft", {"title": "Two"})
    api.put(f"{where}?locale=fr", {"title": "Un"})
    draft, created, published = bodies(api, 2)
    assert (draft["bifolio"]["status"], draft["entry"]["title"]) == ("draft", "Two")
    assert draft["entry"]["publishedAt"] is None
    assert [b["entry"]["locale"] for b in (created, published)] == ["fr", "fr"]
    api.ask("DELETE", f"{where}?locale=*")
    gone = bodies(api, 5)
    assert {(b["event"], b["entry"]["locale"]) for b in gone} == {
        ("entry.delete", "en"),
        ("entry.delete", "fr"),
    }
    for body in (*gone, *bodies(api)):  # for deleted documents, only the ids are sent
        expected = {"id", "documentId", "locale"}
        if body["entry"]["locale"] == "en":
            assert body["entry"].keys() == expected


def test_a_media_file_is_under_media(api: Api) -> None:
    write(api.root, {"content/uploads/b.png": PNG})
    api.site.refresh()
    (body,) = bodies(api)
    assert list(body) == ["event", "createdAt", "media", "bifolio"]
    assert (body["event"], body["media"]["name"], body["media"]["ext"]) == ("media.create", "b.png", ".png")
    (api.root / "content/uploads/b.png").unlink()
    api.site.refresh()
    assert bodies(api)[1]["media"].keys() == {"id", "documentId"}


def test_the_schema_and_the_whole_site(api: Api) -> None:
    write(api.root, collection("tag", {"name": STRING}))
    api.site.refresh()
    write(api.root, documents("tags", **{f"t{i}": {"name": "T"} for i in range(30)}))
    api.site.refresh()
    schema, many = bodies(api)
    assert list(schema) == ["event", "createdAt", "model", "uid", "bifolio"]
    assert (schema["event"], schema["model"]) == ("schema.update", "tag")
    assert list(many) == ["event", "createdAt", "bifolio"]
    assert many["bifolio"]["counts"] == {"tag": {"published": {"entry.create": 30}}}
    assert many["bifolio"]["tags"] == ["tag", "_site"]


def test_an_entry_that_would_be_too_large_is_not_populated(api: Api) -> None:
    write(api.root, {"site.yaml": "api: {limits: {steps: 50}}\nevents: {bulk: 20}\n"})
    write(api.root, documents("articles", **{f"a{i}": {"title": "T", "author": "ann"} for i in range(80)}))
    api.site.refresh()
    write(api.root, documents("authors", ann={"name": "Anna"}))
    api.site.refresh()
    entry = bodies(api)[-1]["entry"]
    assert entry["name"] == "Anna"
    assert "articles" not in entry


# --- real servers ----------------------------------------------------------------------------------

SERVED = {
    **collection("note", {"title": STRING}),
    "site.yaml": """search: {index: false}
roles: {public: {note: [create, update]}}
webhooks_allow: 127.0.0.1
webhooks:
  - {name: all, url: env:HOOK}
""",
}


class Server:
    """A running server with two workers, whose site has a webhook."""

    def __init__(self, root: Path, hook: str, *options: str, first: str = "") -> None:
        self.root, self.port, self.options = root, free_port(), options
        self.first = f"{first}\nimport os; os.environ.update({{'HOOK': {hook!r}}})"
        self.log = root.parent / "log"
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = start(
                self.root, self.port, "--workers=2", *self.options, output=out, first=self.first
            )
        wait(self.process, self.port)

    def until_it_delivers(self) -> None:
        """Wait until the server has registered the webhook, so that the webhook receives all later events."""
        known = "SELECT count(*) FROM webhooks WHERE name = 'all'"
        database = EventDatabase(self.root)
        until(lambda: database.query(lambda c: c.execute(known).fetchone()[0] > 0))
        database.close()

    def write(self, name: str, title: str = "T") -> None:
        write(self.root, {f"content/notes/{name}.json": json.dumps({"title": title})})


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def server(tmp_path: Path, receiver: Receiver) -> Iterator[Server]:
    root = tmp_path / "site"
    write(root, SERVED)
    running = Server(root, receiver.url)
    running.until_it_delivers()
    yield running
    stop(running.process)


def told(receiver: Receiver) -> list[str]:
    """Return the documents in all requests, sorted. Each delivery counts once."""
    return sorted({one.id: one.data["bifolio"]["documentId"] or "" for one in receiver.received}.values())


def test_an_edit_reaches_the_receiver_as_it_is_served(server: Server, receiver: Receiver) -> None:
    for title in ("One", "Two", "Three"):
        server.write("a", title)
        count = len(receiver.received)
        received = receiver.until(count + 1)[-1]
        assert received.data["entry"]["title"] == title
    assert [one.data["event"] for one in receiver.received] == [
        "entry.create",
        "entry.update",
        "entry.update",
    ]


@pytest.mark.parametrize(("status", "title"), [("published", None), ("draft, published", "Not for readers")])
def test_drafts_are_told_to_receivers_that_ask_for_them(
    tmp_path: Path, receiver: Receiver, status: str, title: str | None
) -> None:
    root = tmp_path / "site"
    settings = SERVED["site.yaml"].replace("env:HOOK", f"env:HOOK, status: [{status}]")
    write(root, {**collection("note", {"title": STRING}, drafts=True), "site.yaml": settings})
    write(root, {"content/notes/a.json": '{"title": "Out"}'})
    write(root, {"content/notes/a.draft.json": '{"title": "Not for readers"}'})
    running = Server(root, receiver.url)
    try:
        running.until_it_delivers()
        (root / "content/notes/a.json").unlink()
        received = receiver.until(1)[0].data
    finally:
        stop(running.process)
    assert received["event"] == "entry.unpublish"
    assert received["entry"].get("title") == title
    assert received["entry"]["documentId"] == "a"


def test_nothing_is_lost_when_a_worker_is_killed_or_the_server_restarted(
    server: Server, receiver: Receiver
) -> None:
    receiver.answer = status(503, "Retry-After: 1")
    names = []
    for i in range(3):
        for worker in sorted(workers(server.process.pid)):
            names.append(f"n{len(names):02}")
            server.write(names[-1])
            os.kill(worker, signal.SIGKILL)
            time.sleep(0.4)
        names.append(f"n{len(names):02}")
        server.write(names[-1])
        if i == 1:
            stop(server.process)
            names.append(f"n{len(names):02}")
            server.write(names[-1])
            server.start()
    receiver.answer = status(200)
    until(lambda: told(receiver) == names)


def test_a_checkout_of_thousands_of_files_is_one_call(tmp_path: Path, receiver: Receiver) -> None:
    root = tmp_path / "site"
    text = SERVED["site.yaml"].replace("url: env:HOOK}", "url: env:HOOK, debounce: 1s}")
    write(root, {**SERVED, "site.yaml": text})
    commit_all(root)
    git(root, "checkout", "-qb", "many")
    write(root, {f"content/notes/n{i}.json": '{"title": "T"}' for i in range(4000)})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "many")
    git(root, "checkout", "-q", "main")
    running = Server(root, receiver.url)
    try:
        running.until_it_delivers()
        git(root, "checkout", "-q", "many")
        receiver.until(1, 60)
        time.sleep(1.5)
        (received,) = receiver.received
        assert received.data["event"] == "site.update"
        assert received.data["bifolio"]["counts"] == {"note": {"published": {"entry.create": 4000}}}
    finally:
        stop(running.process)


def test_a_webhook_can_be_added_while_the_server_runs(tmp_path: Path, receiver: Receiver) -> None:
    root = tmp_path / "site"
    write(root, {**SERVED, "site.yaml": "search: {index: false}\n"})
    running = Server(root, receiver.url)
    try:
        write(root, {"site.yaml": SERVED["site.yaml"]})
        running.until_it_delivers()
        running.write("a")
        assert receiver.until(1)[0].data["bifolio"]["documentId"] == "a"
        broken = SERVED["site.yaml"].replace("env:HOOK", "env:NOT_SET")
        write(root, {"site.yaml": broken})
        until(
            lambda: (
                'site.yaml:5: the environment variable NOT_SET, which the webhook "all" uses, is not set'
                in running.log.read_text()
            )
        )
        running.write("b")
        assert receiver.until(2)[1].data["bifolio"]["documentId"] == "b"
    finally:
        stop(running.process)


def test_the_next_generation_of_workers_goes_on(tmp_path: Path, receiver: Receiver) -> None:
    root = tmp_path / "site"
    write(root, {**SERVED, **documents("notes", **{f"old{i}": {"title": "T"} for i in range(5)})})
    running = Server(
        root, receiver.url, first="import server.site.site; server.site.site.MAX_LOCAL_FILES = 3"
    )
    try:
        running.until_it_delivers()
        before = workers(running.process.pid)
        names = [f"n{i}" for i in range(6)]
        for name in names[:2]:
            running.write(name)
        write(root, collection("note", {"title": STRING, "text": STRING}))
        for name in names[2:4]:
            running.write(name)
            time.sleep(0.2)
        until(lambda: not before & workers(running.process.pid))
        for name in names[4:]:
            running.write(name)
        until(lambda: set(told(receiver)) >= set(names))
        assert sorted(name for name in told(receiver) if name) == names
    finally:
        stop(running.process)


def test_of_two_servers_of_a_site_one_delivers(server: Server, receiver: Receiver) -> None:
    other = Server(server.root, receiver.url)
    try:
        time.sleep(1)  # Each server compares the files with the log once, soon after it has started.
        for i in range(5):
            server.write(f"n{i}")
        receiver.until(5)
        time.sleep(1)
        assert len(receiver.received) == 5
        stop(server.process)
        other.write("later")
        receiver.until(6)
    finally:
        stop(other.process)


def test_what_is_committed_at_once_names_its_commit(tmp_path: Path, receiver: Receiver) -> None:
    root = tmp_path / "site"
    write(root, {**SERVED, "site.yaml": SERVED["site.yaml"] + "git: {commit: each}\n"})
    commit_all(root)
    running = Server(root, receiver.url)
    try:
        running.until_it_delivers()
        commits = []
        for i in range(8):
            time.sleep(0.03 * i)  # at different moments between two checks of the queue
            body = json.dumps({"data": {"title": f"T{i}"}}).encode()
            head = {"Content-Type": "application/json"}
            asked = urllib.request.Request(f"http://127.0.0.1:{running.port}/api/notes", body, head)
            with urllib.request.urlopen(asked, timeout=10) as answer:
                commits.append(answer.headers["Bifolio-Commit"])
        receiver.until(8)
    finally:
        stop(running.process)
    assert all(commits)
    assert sorted(one.data["bifolio"]["commit"] or "" for one in receiver.received) == sorted(commits)


def test_a_server_of_a_past_state_leaves_webhooks_to_others(tmp_path: Path, receiver: Receiver) -> None:
    root = tmp_path / "site"
    write(root, SERVED)
    commit_all(root)
    past = Server(root, receiver.url, "--at", "HEAD")
    try:
        time.sleep(1.5)  # Otherwise, the server would begin deliveries soon after its start.
        assert not (root / ".bifolio/webhooks/lock").exists()
        present = Server(root, receiver.url)
        try:
            present.until_it_delivers()
            present.write("a")
            assert receiver.until(1)[0].data["entry"]["title"] == "T"
        finally:
            stop(present.process)
    finally:
        stop(past.process)


def test_a_server_does_not_start_without_a_variable(tmp_path: Path) -> None:
    write(tmp_path, SERVED)
    process = start(tmp_path, free_port(), output=subprocess.PIPE)
    _, output = process.communicate(timeout=20)
    what = (
        'the environment variable HOOK, which the webhook "all" uses, is not set. '
        'Set the variable, or disable the webhook with "enabled: false".'
    )
    assert output.strip() == f"bifolio: site.yaml:5: {what}"
    assert process.returncode == 1


def test_writes_are_told_in_the_order_of_each_document(server: Server, receiver: Receiver) -> None:
    def slow(connection: Any, received: Any) -> None:
        time.sleep(0.02)
        status(200)(connection, received)

    receiver.answer = slow

    def work(name: str) -> None:
        for i in range(8):
            server.write(name, f"T{i}")
            time.sleep(0.25)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: all(_titles(receiver, name)[-1:] == ["T7"] for name in "abc"))
    for name in "abc":
        seqs = [
            one.data["bifolio"]["seq"] for one in receiver.received if one.data["entry"]["documentId"] == name
        ]
        assert seqs == sorted(seqs)
        titles = _titles(receiver, name)
        assert titles == sorted(titles)


def _titles(receiver: Receiver, name: str) -> list[str]:
    entries = [one.data["entry"] for one in receiver.received]
    return [entry["title"] for entry in entries if entry["documentId"] == name]
