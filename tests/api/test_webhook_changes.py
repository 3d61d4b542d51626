"""Tests of creating, changing and deleting webhooks over the API."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from server.api.webhooks import body_of
from server.events.model import Event
from server.events.recorder import Recorder
from server.events.webhooks.delivery_worker import Deliverer, Pace
from server.events.webhooks.secret_files import secrets_of
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.site.change import Origin
from server.site.contents import Contents
from server.site.record import Record
from tests.git import commit_all, git
from tests.receivers import Receiver, receiving
from tests.sites import STRING, Answer, Api, collection, make, opened, write
from tests.waiting import until

SITE = """\
# Ours.
name: Harbour  # the town
webhooks_allow: 127.0.0.1
webhooks:
  # Builds the site.
  - name: build  # at night
    url: https://build.example.org/hunter2?key=hunter2
    headers: {Authorization: Bearer squeamish, X-From: harbour}
    events: [entry.*]  # no media
  # Clears the cache.
  - name: cache
    url: env:CACHE_HOOK
    enabled: false
locales: {default: en, available: [en, fr]}
"""
HIDDEN = ("hunter2", "squeamish")
CONTENT = ("note.find", "note.readDraft", "upload.find", "history.read")
FILES = {**collection("note", {"title": STRING}, drafts=True), "site.yaml": SITE}
URL = "https://hooks.example.org/in"
NO_VARIABLES = "environment variables can't be used over the API; write env:NAME into site.yaml instead"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    api.token("admin", may=("webhook.read", "webhook.write", *CONTENT))
    return api


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def send(
    api: Api, method: str, path: str, data: Any = None, who: str = "admin", if_match: str = "*"
) -> Answer:
    body = {} if data is None else {"json": {"data": data}}
    return api.ask(method, path, who, headers={"If-Match": if_match}, **body)


def tag(api: Api) -> str:
    return str(api.get("/webhooks", "admin").headers["ETag"])


def named(api: Api, name: str) -> dict[str, Any]:
    [found] = [row for row in api.get("/webhooks", "admin").data if row["name"] == name]
    return dict(found)


def test_a_created_webhook_is_added_at_the_end_and_its_secret_is_shown_once(api: Api) -> None:
    data = {
        "name": "deploy",
        "url": URL,
        "events": ["entry.*", "media.create"],
        "types": ["note", "upload"],
        "locales": ["fr"],
        "status": ["published"],
        "debounce": 10,
        "headers": {"X-Key": "swordfish: #1", "X-No": "null"},
        "enabled": True,
    }
    answer = api.post("/webhooks", data, "admin")
    assert (answer.status, answer.headers["Cache-Control"]) == (201, "no-store")
    new = """\
  - name: deploy
    url: https://hooks.example.org/in
    events:
    - entry.*
    - media.create
    types:
    - note
    - upload
    locales:
    - fr
    status:
    - published
    debounce: 10s
    headers:
      X-Key: 'swordfish: #1'
      X-No: 'null'
"""
    assert api.read("site.yaml") == SITE.replace("locales: {default", f"{new}locales: {{default")
    row = answer.data
    assert row == named(api, "deploy")
    assert (row["url"], row["headers"]) == ("https://hooks.example.org/…", ["X-Key", "X-No"])
    assert (row["debounce"], row["secretIn"], row["enabled"]) == (10.0, "generated", True)
    webhook = api.site.state.settings.webhooks[-1]
    assert webhook.headers == {"X-Key": "swordfish: #1", "X-No": "null"}
    assert secrets_of(api.root, webhook) == (answer.body["meta"]["secret"],)
    later = api.get("/webhooks").text
    assert answer.body["meta"]["secret"] not in later
    assert "swordfish" not in later + answer.text
    assert opened(api.root).state.settings.webhooks[-1] == webhook  # after a restart


def test_a_changed_webhook_keeps_all_other_lines(api: Api) -> None:
    first = tag(api)
    data = {"name": "build", "events": ["entry.*"], "debounce": "30s", "headers": {"X-From": None}}
    answer = send(api, "PUT", "/webhooks/build", data, if_match=first)
    assert answer.status == 200
    changed = SITE.replace(", X-From: harbour", "").replace("# no media\n", "# no media\n    debounce: 30s\n")
    assert api.read("site.yaml") == changed
    assert (answer.data["debounce"], answer.data["headers"]) == (30.0, ["Authorization"])
    assert not any(secret in answer.text for secret in HIDDEN)
    assert answer.headers["ETag"] != first
    last = {"debounce": 0, "enabled": False, "events": []}
    assert send(api, "PUT", "/webhooks/build", last, if_match=answer.headers["ETag"]).status == 200
    assert "    enabled: false\n  # Clears" in api.read("site.yaml")
    assert (named(api, "build")["enabled"], named(api, "build")["events"]) == (False, [])
    send(api, "PUT", "/webhooks/build", {"enabled": True})
    assert api.site.state.settings.webhooks[0].enabled


def test_a_deleted_webhook_leaves_the_others(api: Api) -> None:
    assert send(api, "DELETE", "/webhooks/build").status == 204
    gone = SITE[SITE.index("  - name: build") : SITE.index("  # Clears")]
    assert api.read("site.yaml") == SITE.replace(gone, "")
    assert [row["name"] for row in api.get("/webhooks").data] == ["cache"]
    assert send(api, "DELETE", "/webhooks/cache").status == 204
    assert "webhooks:" not in api.read("site.yaml")
    missing = send(api, "DELETE", "/webhooks/cache")
    assert (missing.status, missing.error["message"]) == (
        404,
        "Webhook not found; the webhooks in site.yaml are: none",
    )


def test_a_webhook_is_written_into_any_style_of_file(tmp_path: Path) -> None:
    for i, text in enumerate(
        ("", "webhooks:\n", "{name: a, webhooks: [{name: b, url: 'https://b.org'}]}\n", "\ufeffname: a\r\n")
    ):
        api = make(tmp_path / str(i), {**FILES, "site.yaml": text})
        assert api.post("/webhooks", {"name": "new", "url": URL}).status == 201, text
        assert api.site.state.settings.webhooks[-1].url == URL
        assert send(api, "DELETE", "/webhooks/new", who="full").status == 204


def test_a_dry_run_writes_nothing_and_hides_secrets(api: Api) -> None:
    headers = {"Authorization": "Bearer mine", "X-From": None, "X-To": "town"}
    data = {"url": "https://build.example.org/mine", "headers": headers}
    answer = send(api, "PUT", "/webhooks/build?dryRun=true", data)
    assert answer.data["files"] == [
        {
            "path": "site.yaml",
            "action": "update",
            "lines": [
                "@@ -7,2 +7,2 @@",
                "-    url: https://build.example.org/…",
                "-    headers: {Authorization: (hidden), X-From: (hidden)}",
                "+    url: https://build.example.org/mine",
                "+    headers: {Authorization: Bearer mine, X-To: town}",
            ],
        }
    ]
    created = send(api, "POST", "/webhooks?dryRun=true", {"name": "new", "url": URL})
    assert (created.status, created.data["files"][0]["lines"][1:]) == (
        200,
        ["+  - name: new", f"+    url: {URL}"],
    )
    deleted = send(api, "DELETE", "/webhooks/build?dryRun=true")
    assert "-    url: https://build.example.org/…" in deleted.data["files"][0]["lines"]
    assert "-    events: [entry.*]  # (hidden)" in deleted.data["files"][0]["lines"]
    assert not any(comment in deleted.text for comment in ("no media", "at night", "Builds"))
    assert not any(secret in answer.text + deleted.text for secret in HIDDEN)
    assert api.read("site.yaml") == SITE
    same = {"url": "https://build.example.org/hunter2?key=hunter2", "enabled": True}
    assert send(api, "PUT", "/webhooks/build?dryRun=true", same).data == {"files": []}


def test_two_people_do_not_overwrite_each_other(api: Api) -> None:
    first = tag(api)
    assert send(api, "PUT", "/webhooks/build", {"debounce": "5s"}, if_match=first).status == 200
    for method, path, data in (
        ("PUT", "/webhooks/build", {"debounce": "6s"}),
        ("DELETE", "/webhooks/build", None),
        ("POST", "/webhooks", {"name": "new", "url": URL}),
    ):
        answer = send(api, method, path, data, if_match=first)
        assert (answer.status, answer.error["message"]) == (412, "site.yaml has changed since you read it")
    assert api.put("/webhooks/build", {"debounce": "6s"}, "admin").status == 400  # without If-Match
    again = api.post("/webhooks", {"name": "build", "url": URL}, "admin")
    assert (again.status, again.error["message"]) == (409, 'There is already a webhook named "build"')
    # The list does not contain the edit yet, so a client must not overwrite it.
    write(api.root, {"site.yaml": SITE.replace("https://build", "https://other")})
    assert send(api, "DELETE", "/webhooks/build", if_match=tag(api)).status == 412
    api.site.refresh()
    assert send(api, "DELETE", "/webhooks/build", if_match=tag(api)).status == 204


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        ({"url": "ftp://a.org"}, "url", "url must begin with https:// or http://"),
        ({"url": "https://user:secret@a.org"}, "url", "url must not contain a user name"),
        ({"url": ""}, "url", "url is missing"),
        ({"url": "https://["}, "url", "url is not a valid URL"),
        ({"url": "https://build.example.org/…"}, "url", "url contains characters that must be percent"),
        ({"events": ["entry.creat"]}, "events", 'unknown event "entry.creat". Did you mean "entry.create"?'),
        ({"types": ["not"]}, "types", 'unknown content type "not". Did you mean "note"?'),
        ({"types": ["zzzz"]}, "types", "Use one of note, upload"),
        ({"locales": ["de"]}, "locales", 'unknown locale "de" in the webhook "build". Use one of en, fr'),
        ({"status": ["drafts"]}, "status", '"status" must be "published" or "draft"'),
        ({"debounce": "soon"}, "debounce", "debounce must be a duration"),
        ({"debounce": "2h"}, "debounce", "debounce must not be longer than one hour"),
        ({"debounce": "10s\n"}, "debounce", 'debounce must be a duration such as "10s"'),
        ({"debounce": 1.5}, "debounce", 'debounce must be a duration (found "1.5")'),
        ({"debounce": -1}, "debounce", 'debounce must be a duration such as "10s"'),
        ({"headers": {"Host": "a"}}, "headers.Host", 'the header "Host" is listed twice, or is one that'),
        ({"headers": {"a b": "c"}}, "headers.a b", 'invalid header name "a b"'),
        (
            {"headers": {"X": 5}},
            "headers.X",
            "headers.X must be a string of at most 2,000 characters, or null",
        ),
        ({"headers": {"X": "env:A"}}, "headers.X", NO_VARIABLES),
        ({"headers": {"X": "a\nb"}}, "headers.X", "headers.X contains characters that are not allowed"),
        ({"headers": ["X"]}, "headers", "headers must be an object of strings"),
        ({"enabled": "yes"}, "enabled", "enabled must be true or false"),
        ({"name": "other"}, "name", "name can't be set over the API: a webhook can't be renamed"),
        ({"secret": "whsec_a"}, "secret", "secret can't be set over the API: Bifolio generates the secret"),
        ({"event": []}, "event", 'unknown key "event" in a webhook. Did you mean "events"?'),
    ],
)
def test_an_invalid_value_names_the_key(api: Api, data: dict[str, Any], path: str, message: str) -> None:
    answer = send(api, "PUT", "/webhooks/build", data)
    assert (answer.status, answer.error["details"]["errors"][0]["path"]) == (400, path.split("."))
    assert message in answer.error["message"]
    assert api.read("site.yaml") == SITE


@pytest.mark.parametrize(
    "data", [None, [], {}, "x", {"name": "a"}, {"url": URL}, {"name": "a b", "url": URL}]
)
def test_an_invalid_webhook_is_not_created(api: Api, data: object) -> None:
    assert api.post("/webhooks", data, "admin").status == 400
    assert api.read("site.yaml") == SITE


def test_a_past_state_is_not_changed(api: Api) -> None:
    for method, path in (("POST", "/webhooks"), ("PUT", "/webhooks/build"), ("DELETE", "/webhooks/build")):
        answer = send(api, method, f"{path}?at=HEAD", {"name": "new", "url": URL})
        assert (answer.status, "can only be used in reads" in answer.error["message"]) == (400, True)
    assert api.read("site.yaml") == SITE


@pytest.mark.parametrize("kind", ["value", "merge"])
def test_a_webhook_with_an_anchor_is_deleted(api: Api, kind: str) -> None:
    second = "  - <<: *a\n    name: b\n" if kind == "merge" else "  - {name: b, url: *u}\n"
    text = f"webhooks:\n  - &a\n    name: a\n    url: &u {URL}\n    headers: {{X: y}}\n{second}"
    write(api.root, {"site.yaml": text})
    api.site.refresh()
    [_, kept] = api.site.state.settings.webhooks
    assert send(api, "DELETE", "/webhooks/a").status == 204
    assert api.site.state.settings.webhooks == (kept,)


def test_a_broken_file_is_not_changed(api: Api) -> None:
    write(api.root, {"site.yaml": SITE.replace("env:CACHE_HOOK", "https://hunter2@a.org")})
    answer = send(api, "DELETE", "/webhooks/build")
    assert (answer.status, answer.error["message"].endswith("fix the file first")) == (409, True)
    assert "hunter2" not in answer.text


def test_only_callers_who_may_read_all_content_create_or_change_webhooks(api: Api) -> None:
    requests: tuple[tuple[str, str, Any], ...] = (
        ("POST", "/webhooks", {"name": "new", "url": URL}),
        ("PUT", "/webhooks/build", {"url": URL, "headers": None}),
    )
    may = ("webhook.read", "webhook.write", *CONTENT)
    for missing in may:
        api.token(f"without {missing}", may=(one for one in may if one != missing))
        for method, path, data in requests:
            for query in ("", "?dryRun=true"):
                answer = send(api, method, path + query, data, f"without {missing}")
                assert (answer.status, "files" in answer.text) == (403, False), missing
    for who, expected in (("without webhook.write", 403), ("without note.find", 204)):
        assert send(api, "DELETE", "/webhooks/cache", who=who).status == expected, who
    assert "url: https://build.example.org" in api.read("site.yaml")
    assert "hooks.example.org" not in api.read("site.yaml")


def test_readers_get_no_tag_that_depends_on_hidden_lines(api: Api) -> None:
    api.token("reader", may=("webhook.read",))
    before = api.get("/webhooks", "reader").headers["ETag"]
    write(api.root, {"site.yaml": SITE.replace("# Ours.", "# Theirs.")})
    assert api.get("/webhooks", "reader").headers["ETag"] == before


def test_a_webhook_over_the_api_sends_no_secrets_of_the_server(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BILLING_KEY", "hunter2")
    write(api.root, {"site.yaml": SITE.replace("Bearer squeamish", "env:BILLING_KEY")})
    api.site.refresh()
    # The response does not tell whether the webhook already uses a variable.
    for name in ("BILLING_KEY", "ANOTHER_KEY"):
        for key in ("Authorization", "X"):
            sent = {"headers": {key: f"env:{name}", "X-From": "a"}}
            for data in (sent, {"url": "https://evil.org/", **sent}):
                for query in ("", "?dryRun=true"):
                    answer = send(api, "PUT", f"/webhooks/build{query}", data)
                    assert (answer.status, answer.error["message"]) == (400, NO_VARIABLES), data
    for url in ("env:CACHE_HOOK", "env:BILLING_KEY"):
        answer = send(api, "PUT", "/webhooks/cache?dryRun=true", {"url": url})
        assert (answer.status, answer.error["message"]) == (400, NO_VARIABLES), url
    assert send(api, "PUT", "/webhooks/build", {"events": ["media.*"]}).status == 200
    assert api.site.state.settings.webhooks[0].headers["Authorization"] == "env:BILLING_KEY"
    for url in (
        "https://evil.org/",
        "http://build.example.org/",
        "https://build.example.org:444/",
        "https://build.example.org/mine",
    ):
        for headers in ({}, {"headers": {}}, {"headers": {"X-From": "a"}}):
            answer = send(api, "PUT", "/webhooks/build", {"url": url, **headers})
            assert (answer.status, answer.error["details"]["errors"][0]["path"]) == (400, ["headers"])
    new = {"Authorization": "Bearer mine", "X-From": None}
    assert send(api, "PUT", "/webhooks/build", {"url": "https://new.org/", "headers": new}).status == 200
    assert api.site.state.settings.webhooks[0].headers == {"Authorization": "Bearer mine"}


def test_the_name_of_a_variable_is_not_shown(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CACHE_HOOK", raising=False)
    for value in (None, "ftp://hunter2"):
        if value:
            monkeypatch.setenv("CACHE_HOOK", value)
        for query in ("", "?dryRun=true"):
            answer = send(api, "PUT", f"/webhooks/cache{query}", {"enabled": True})
            assert answer.status == 400
            assert "an environment variable that a webhook uses is not set" in answer.error["message"]
            assert not any(hidden in answer.text for hidden in ("CACHE_HOOK", "hunter2"))


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[::1]", "localhost", "[::ffff:7f00:1]"])
def test_a_private_address_needs_webhooks_allow(api: Api, host: str) -> None:
    answer = send(api, "PUT", "/webhooks/build", {"url": f"http://{host}/", "headers": None})
    assert (answer.status, ":80 to webhooks_allow" in answer.error["message"]) == (400, True)


def test_a_private_address_needs_its_port_or_a_webhook_in_the_file(api: Api) -> None:
    named = "webhooks_allow: [127.0.0.1, '[::1]:81', build.internal, 'other.internal:82']"
    text = SITE.replace("webhooks_allow: 127.0.0.1", named).replace("env:CACHE_HOOK", "http://127.0.0.1:83/a")
    write(api.root, {"site.yaml": text})
    api.site.refresh()
    hosts = {
        "127.0.0.1": False,
        "127.0.0.1:82": False,
        "127.0.0.1:83": True,
        "[::1]": False,
        "[::1]:81": True,
        "[::1]:83": False,
        "build.internal": False,
        "build.internal:83": False,
        "OTHER.internal:82": True,
        "a.public.example": True,
    }
    for host, allowed in hosts.items():
        data = {"name": "new", "url": f"http://{host}/b"}
        answer = send(api, "POST", "/webhooks?dryRun=true", data)
        assert answer.status == (200 if allowed else 400), host
        if not allowed:
            assert "to webhooks_allow in site.yaml" in answer.error["message"]


def test_a_webhook_with_a_former_name_gets_another_secret(api: Api) -> None:
    made = [api.post("/webhooks", {"name": "again", "url": URL}).body["meta"]["secret"]]
    send(api, "DELETE", "/webhooks/again")
    made.append(api.post("/webhooks", {"name": "again", "url": URL}).body["meta"]["secret"])
    assert made[0] != made[1]
    assert secrets_of(api.root, api.site.state.settings.webhooks[-1], time.time()) == (made[1],)


def test_the_secret_of_a_webhook_is_replaced_and_deleted_under_the_write_lock(api: Api) -> None:
    file, found = api.root / ".bifolio/webhooks/again.secret", list[str]()

    def observe(contents: Contents, record: Record, origin: Origin) -> None:
        found.append(file.read_text().strip() if file.exists() else "")

    api.site.observe(observe)
    made = []
    for _ in range(2):
        made.append(api.post("/webhooks", {"name": "again", "url": URL}).body["meta"]["secret"])
        assert send(api, "DELETE", "/webhooks/again").status == 204
    assert found == [made[0], "", made[1], ""]


def test_if_the_secret_cant_be_stored_nothing_is_changed(api: Api) -> None:
    create_webhook = {"name": "new", "url": URL}
    folder, before = api.root / ".bifolio/webhooks", api.read("site.yaml")
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("")
    answer = api.post("/webhooks", create_webhook)
    assert (answer.status, answer.error["name"]) == (507, "InsufficientStorageError")
    assert answer.error["message"] == ".bifolio/webhooks/new.secret can't be written: File exists"
    assert api.read("site.yaml") == before
    assert api.ask("POST", "/webhooks/build/secret").status == 409
    folder.unlink()
    assert api.post("/webhooks", create_webhook).status == 201


def test_a_write_that_fails_keeps_the_secret_of_a_former_webhook(api: Api) -> None:
    kept = api.root / ".bifolio/webhooks/former.secret"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("whsec_" + "a" * 32 + "\n")
    data, journal = {"name": "former", "url": URL}, api.root / ".bifolio/journal"
    shutil.rmtree(journal, ignore_errors=True)
    journal.write_text("")
    assert api.post("/webhooks", data).status == 507
    assert [path.name for path in kept.parent.iterdir() if path.name != "lock"] == ["former.secret"]
    assert kept.read_text() == "whsec_" + "a" * 32 + "\n"


def test_nothing_depends_on_the_lock_of_rotations_of_earlier_versions(api: Api) -> None:
    (api.root / ".bifolio/rotation-lock").mkdir()
    assert api.post("/webhooks", {"name": "new", "url": URL}).body["meta"]["secret"]
    assert api.ask("POST", "/webhooks/new/secret").status == 201
    assert send(api, "DELETE", "/webhooks/new", who="full").status == 204


def test_a_request_that_was_about_to_be_sent_creates_no_secret_for_a_deleted_webhook(
    api: Api, receiver: Receiver, job: Deliverer
) -> None:
    create_webhook(api, receiver)

    def render(event: Event, drafts: bool) -> bytes:
        send(api, "DELETE", "/webhooks/here")
        return b"{}"

    api.post("/api/notes?status=draft", {"title": "One"})
    settings = api.site.state.settings
    runner = Runner(
        [Deliverer(api.root, lambda: settings, render, Timing(), Pace(backoffs_s=(), timeout_s=2))]
    )
    runner.start()
    try:
        until(lambda: "here" not in api.read("site.yaml"))
    finally:
        runner.stop()
    assert receiver.received == []
    assert not (api.root / ".bifolio/webhooks/here.secret").exists()


def test_a_created_webhook_is_shown_even_if_git_takes_it_back_at_once(api: Api) -> None:
    before = api.read("site.yaml")

    def take_back(contents: Contents, record: Record, origin: Origin) -> None:
        if record.configuration and origin.source == "api":
            write(api.root, {"site.yaml": before})

    api.site.observe(take_back)
    made = api.post("/webhooks", {"name": "new", "url": URL})
    assert (made.status, made.data["name"], made.body["meta"]["secret"][:6]) == (201, "new", "whsec_")
    assert [webhook.name for webhook in api.site.state.settings.webhooks] == ["build", "cache"]


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_dry_run_that_deletes_the_last_webhook_shows_no_comments(api: Api, indent: str) -> None:
    text = f"webhooks:\n  - {{name: a, url: {URL}}}\n{indent}# https://x.example.org/hunter2\n"
    write(api.root, {"site.yaml": text})
    api.site.refresh()
    answer = send(api, "DELETE", "/webhooks/a?dryRun=true")
    assert (answer.status, "hunter2" in answer.text, "-webhooks:" in answer.text) == (200, False, True)


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_dry_run_that_creates_the_first_webhook_shows_no_comments(api: Api, end: str) -> None:
    write(api.root, {"site.yaml": f"name: Pier # hunter2\n# hunter2{end}"})
    api.site.refresh()
    answer = send(api, "POST", "/webhooks?dryRun=true", {"name": "new", "url": URL})
    assert (answer.status, "hunter2" in answer.text, "+webhooks:" in answer.text) == (200, False, True)


def test_a_change_is_one_commit(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "site.yaml": SITE + "git: {commit: each}\n", ".gitignore": ".bifolio/\n"})
    commit_all(tmp_path)
    api = make(tmp_path, {})
    for method, path, data, message in (
        ("POST", "/webhooks", {"name": "new", "url": URL}, "Create the webhook new"),
        ("PUT", "/webhooks/new", {"enabled": False}, "Change the webhook new"),
        ("DELETE", "/webhooks/new", None, "Delete the webhook new"),
    ):
        answer = send(api, method, path, data, "full")
        assert answer.headers["Bifolio-Commit"] == git(tmp_path, "rev-parse", "HEAD").strip()
        shown = git(tmp_path, "show", "--name-only", "--format=%an|%s", "HEAD").split()
        assert (" ".join(shown[:-1]), shown[-1]) == (f"full|{message}", "site.yaml")


@pytest.fixture
def job(api: Api) -> Deliverer:
    """The job that delivers the events of `api`, each at most once. Changes are recorded from now on."""
    api.site.observe(Recorder(api.root))
    api.site.record()
    return Deliverer(
        api.root,
        lambda: api.site.state.settings,
        lambda event, drafts: body_of(api.site.state, event),
        Timing(),
        Pace(backoffs_s=(), timeout_s=2),
    )


def create_webhook(api: Api, receiver: Receiver, name: str = "here") -> Answer:
    """Create a webhook that is sent to `receiver`."""
    address = f"127.0.0.1:{receiver.port}"
    write(
        api.root, {"site.yaml": api.read("site.yaml").replace("allow: 127.0.0.1\n", f"allow: '{address}'\n")}
    )
    api.site.refresh()
    data = {"name": name, "url": f"http://{address}/{name}", "headers": {"X-Key": "a"}}
    return api.post("/webhooks", data, "admin")


def test_what_a_created_webhook_reports_is_sent_and_signed(
    api: Api, receiver: Receiver, job: Deliverer
) -> None:
    made, runner = create_webhook(api, receiver), Runner([job])
    runner.run_due()
    api.post("/api/notes", {"title": "One"})
    runner.start()
    try:
        received = receiver.until(1)[0]
    finally:
        runner.stop()
    assert (received.data["event"], received.headers["x-key"]) == ("entry.create", "a")
    assert Verifier(made.body["meta"]["secret"]).verify(received.body, dict(received.headers))


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_created_webhook_misses_nothing_if_site_yaml_is_saved_again(
    api: Api, receiver: Receiver, job: Deliverer, by_hand: bool
) -> None:
    api.post("/api/notes", {"title": "Before"})
    create_webhook(api, receiver)
    api.post("/api/notes", {"title": "After"})
    if by_hand:
        write(api.root, {"site.yaml": api.read("site.yaml") + "# again\n"})
        api.site.refresh()
    else:
        send(api, "PUT", "/settings", {"name": "Port"}, "full")
    runner = Runner([job])
    runner.start()
    try:
        titles = [received.data["entry"]["title"] for received in receiver.until(1)]
    finally:
        runner.stop()
    assert set(titles) == {"After"}  # one or both of its events, create and publish
