"""Tests of `/webhooks`, with which callers watch, test and replay webhooks."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

from server.api.webhooks import body_of
from server.events.database import EventDatabase
from server.events.recorder import Recorder
from server.events.webhooks.delivery_table import (
    MAX_KEPT_BODY_BYTES,
    RETENTION_S,
    exchange_of,
    forget,
    newest,
)
from server.events.webhooks.delivery_worker import Deliverer, Pace
from server.events.webhooks.secret_files import secrets_of
from server.jobs.job import Timing
from server.jobs.runner import Runner
from tests.receivers import Receiver, receiving, status
from tests.sites import STRING, Answer, Api, collection, make, write
from tests.waiting import until

SECRET_PATH = "T0000000000000/B11111111111111111"
SECRETS = (SECRET_PATH.partition("/")[2], "hunter2-in-the-query", "Bearer squeamish", "squeamish")
READ = ("webhook.read", "webhook.send", "webhook.rotate")
CONTENT = ("note.find", "note.readDraft", "upload.find", "history.read")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def api(tmp_path: Path, receiver: Receiver) -> Api:
    """A site with webhooks, whose changes are recorded."""
    settings = f"""webhooks_allow: 127.0.0.1
webhooks:
  - name: build
    url: http://127.0.0.1:{receiver.port}/{SECRET_PATH}?key=hunter2-in-the-query
    headers: {{Authorization: Bearer squeamish}}
    events: [entry.*]
  - {{name: off, url: "env:NOT_SET", enabled: false}}
  - {{name: lacking, url: "env:NOT_SET"}}
"""
    note = collection("note", {"title": STRING, "text": {"type": "text"}}, drafts=True)
    made = make(tmp_path, {**note, "site.yaml": settings})
    made.site.observe(Recorder(made.root))
    made.site.record()
    made.token("watcher", may=READ)
    made.token("all", may=(*READ, *CONTENT))
    return made


@contextmanager
def delivering(api: Api) -> Iterator[None]:
    """Context manager: send queued deliveries, each at most once."""
    settings = api.site.state.settings
    pace = Pace(backoffs_s=(), timeout_s=2)
    job = Deliverer(
        api.root, lambda: settings, lambda event, drafts: body_of(api.site.state, event), Timing(), pace
    )
    runner = Runner([job])
    runner.start()
    try:
        database = EventDatabase(api.root)
        known = "SELECT count(*) FROM webhooks WHERE name = 'build'"
        until(lambda: database.query(lambda c: c.execute(known).fetchone()[0] > 0))
        database.close()
        yield
    finally:
        runner.stop()


def deliveries(api: Api, query: str = "", who: str = "all") -> Answer:
    return api.get(f"/webhooks/build/deliveries{query}", who)


def states(api: Api) -> list[str]:
    return [row["state"] for row in deliveries(api).data]


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_new_webhook_inherits_nothing_from_a_former_one(
    api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, by_hand: bool
) -> None:
    monkeypatch.setenv("NOT_SET", "https://hooks.example.org/")
    receiver.answer = status(410)
    with delivering(api):
        api.post("/api/notes", {"title": "One"})
        until(lambda: bool(api.get("/webhooks", "all").data[0]["disabledAt"]))
    secret, text = api.root / ".bifolio/webhooks/build.secret", api.read("site.yaml")
    assert (secret.exists(), len(deliveries(api).data) > 0) == (True, True)
    if by_hand:
        start, end = text.index("  - name: build"), text.index("  - {name: off")
        write(api.root, {"site.yaml": text[:start] + text[end:]})
        api.site.refresh()
    else:
        answer = api.ask("DELETE", "/webhooks/build", headers={"If-Match": "*"})
        assert (answer.status, secret.exists()) == (204, False)
    made = api.post("/webhooks", {"name": "build", "url": "https://hooks.example.org/"})
    assert (made.status, made.data["disabledAt"], made.data["last"]) == (201, None, None)
    assert deliveries(api).data == []


def test_names_differ_in_more_than_case(api: Api) -> None:
    answer = api.post("/webhooks", {"name": "Build", "url": "https://hooks.example.org/"})
    assert (answer.status, answer.error["message"]) == (409, 'There is already a webhook named "build"')


def test_webhooks_are_listed_without_secrets(api: Api, receiver: Receiver) -> None:
    build, off, lacking = api.get("/webhooks", "all").data
    assert build == {
        "name": "build",
        "url": f"http://127.0.0.1:{receiver.port}/…",
        "events": ["entry.*"],
        "types": [],
        "locales": [],
        "status": [],
        "debounce": 0.0,
        "headers": ["Authorization"],
        "enabled": True,
        "disabledAt": None,
        "problem": None,
        "waiting": 0,
        "last": None,
        "secretIn": "generated",
        "previousSecretUntil": None,
    }
    assert (off["url"], off["enabled"], off["problem"]) == ("env:NOT_SET", False, None)
    assert "an environment variable that a webhook uses is not set" in lacking["problem"]
    assert "NOT_SET" not in lacking["problem"]
    assert not any(secret in api.get("/webhooks").text for secret in SECRETS)


def test_a_test_shows_the_response_without_secrets(api: Api, receiver: Receiver) -> None:
    receiver.answer = status(400, body=f"Bad: Bearer squeamish /{SECRET_PATH}?key=hunter2-in-the-query")
    answer = api.ask("POST", "/webhooks/build/test", "watcher")
    assert (answer.data["succeeded"], answer.data["status"]) == (False, 400)
    assert answer.data["response"].startswith("Bad: •••")
    assert not any(secret in answer.text for secret in SECRETS)
    (received,) = receiver.received
    assert received.data["event"] == "trigger-test"
    assert Verifier(secrets_of(api.root, api.site.state.settings.webhooks[0])[0]).verify(
        received.body, dict(received.headers)
    )
    refused = api.ask("POST", "/webhooks/lacking/test").error["message"]
    assert "an environment variable that a webhook uses is not set" in refused
    assert "NOT_SET" not in refused
    assert api.ask("POST", "/webhooks/none/test").status == 404


def test_a_delivery_shows_its_request_and_response(api: Api, receiver: Receiver) -> None:
    receiver.answer = status(500, body="broken: squeamish\n\x00" + "x" * 9000)
    with delivering(api):
        api.post("/api/notes?status=draft", {"title": "One", "text": "é" * MAX_KEPT_BODY_BYTES})
        until(lambda: states(api) == ["failed"])
        (row,) = deliveries(api).data
        assert (row["status"], row["attempts"], row["nextAttemptAt"]) == (500, 1, None)
        assert row["event"]["event"] == "entry.create"
        found = api.get(f"/webhooks/build/deliveries/{row['id']}", "all")
        sent = receiver.received[0]
        request, response = found.data["request"], found.data["response"]
        assert request["size"] == len(sent.body)
        assert request["body"][:1000] == sent.body.decode()[:1000]
        assert request["headers"]["Authorization"] == request["headers"]["webhook-signature"][3:] == "•••"
        assert request["headers"]["webhook-id"] == sent.id
        assert response["body"].startswith("broken: •••\n")
        assert len(response["body"]) == 4000
        assert not any(secret in found.text for secret in SECRETS)
        receiver.answer = status(200, body="thanks")
        again = api.ask("POST", f"/webhooks/build/deliveries/{row['id']}/replay", "all")
        assert again.status == 200
        assert receiver.until(2)[1].id == sent.id
        until(lambda: states(api) == ["delivered"])
        shown = api.get(f"/webhooks/build/deliveries/{row['id']}", "all").data
        assert (shown["response"]["body"], shown["error"]) == ("thanks", None)
        assert api.get("/webhooks", "all").data[0]["last"]["id"] == row["id"]


def test_deliveries_are_listed_by_page_and_state(api: Api, receiver: Receiver) -> None:
    with delivering(api):
        for title in "abc":
            api.post("/api/notes?status=draft", {"title": title})
        until(lambda: states(api) == ["delivered"] * 3)
        first = deliveries(api, "?limit=2")
        assert [row["event"]["seq"] for row in first.data] == [3, 2]
        assert first.body["meta"] == {"more": True}
        rest = deliveries(api, f"?limit=2&before={first.data[-1]['number']}")
        assert [row["event"]["seq"] for row in rest.data] == [1]
        assert rest.body["meta"] == {"more": False}
        assert deliveries(api, "?state=failed").data == []
    assert deliveries(api, "?state=lost").status == 400
    assert api.get("/webhooks/none/deliveries", "all").status == 404
    assert api.get("/webhooks/build/deliveries/msg_none", "all").status == 404


def test_only_callers_who_may_read_all_content_see_deliveries(api: Api, receiver: Receiver) -> None:
    for missing in CONTENT:
        api.token(f"without {missing}", may=(*READ, *(one for one in CONTENT if one != missing)))
    with delivering(api):
        api.post("/api/notes?status=draft", {"title": "Not for all"})
        until(lambda: states(api) == ["delivered"])
        path = f"/webhooks/build/deliveries/{receiver.received[0].id}"
        for who in ("watcher", *(f"without {missing}" for missing in CONTENT)):
            answers = [api.get(path, who), deliveries(api, who=who), api.ask("POST", f"{path}/replay", who)]
            assert [answer.status for answer in answers] == [403] * 3, who
            row = api.get("/webhooks", who).data[0]
            assert (row["waiting"], row["last"]) == (None, None)


@pytest.mark.parametrize(
    ("method", "path", "action"),
    [
        ("GET", "/webhooks", "read"),
        ("GET", "/webhooks/build/deliveries", "read"),
        ("POST", "/webhooks/build/test", "send"),
        ("POST", "/webhooks/build/enable", "send"),
        ("POST", "/webhooks/build/deliveries/msg_none/replay", "send"),
        ("POST", "/webhooks/build/secret", "rotate"),
    ],
)
def test_each_request_needs_its_permission(
    api: Api, receiver: Receiver, method: str, path: str, action: str
) -> None:
    api.token("lacking", may=(*CONTENT, *(may for may in READ if may != f"webhook.{action}")))
    answer = api.ask(method, path, "lacking")
    assert answer.status == 403
    assert answer.error["details"] == {"permission": f"webhook.{action}"}
    assert receiver.received == []


def test_a_webhook_that_answered_410_is_enabled_again(api: Api, receiver: Receiver) -> None:
    receiver.answer = status(410)
    with delivering(api):
        api.post("/api/notes?status=draft", {"title": "a"})
        until(lambda: api.get("/webhooks", "all").data[0]["disabledAt"] is not None)
        replay = f"/webhooks/build/deliveries/{receiver.received[0].id}/replay"
        assert api.ask("POST", replay, "all").status == 409
        assert api.ask("POST", "/webhooks/build/enable", "watcher").data["disabledAt"] is None
        receiver.answer = status(200)
        assert api.ask("POST", replay, "all").status == 200
        receiver.until(2)


def test_a_rotated_secret_is_shown_once_and_both_sign(api: Api, receiver: Receiver) -> None:
    webhook = api.site.state.settings.webhooks[0]
    before = secrets_of(api.root, webhook)[0]
    answer = api.ask("POST", "/webhooks/build/secret", "watcher")
    assert (answer.status, answer.headers["Cache-Control"]) == (201, "no-store")
    made = answer.body["meta"]["secret"]
    assert secrets_of(api.root, webhook) == (made, before)
    assert answer.data["previousSecretUntil"] is not None
    assert made not in api.get("/webhooks").text
    # Otherwise the first secret would stop working.
    assert api.ask("POST", "/webhooks/build/secret").status == 409
    assert secrets_of(api.root, webhook) == (made, before)


def test_of_two_rotations_at_once_only_one_makes_a_secret(api: Api) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: api.ask("POST", "/webhooks/build/secret"), range(4)))
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
    (made,) = (answer.body["meta"]["secret"] for answer in answers if answer.status == 201)
    assert secrets_of(api.root, api.site.state.settings.webhooks[0])[0] == made


def test_a_secret_in_the_settings_is_not_rotated(api: Api) -> None:
    secret = f"whsec_{'A' * 40}"
    own = f"webhooks: [{{name: own, url: 'https://example.org', secret: {secret}}}]\n"
    write(api.root, {"site.yaml": own})
    api.site.refresh()
    assert api.ask("POST", "/webhooks/own/secret").status == 409
    assert api.get("/webhooks").data[0]["secretIn"] == "settings"
    assert secret not in api.get("/webhooks").text


def test_requests_are_forgotten_with_their_deliveries(api: Api, receiver: Receiver) -> None:
    with delivering(api):
        api.post("/api/notes?status=draft", {"title": "a"})
        until(lambda: states(api) == ["delivered"])
    database = EventDatabase(api.root)
    (delivery,) = database.query(lambda c: newest(c, ["build"], 9))
    assert database.query(lambda c: exchange_of(c, delivery))
    with database.writing() as transaction:
        forget(transaction.connection, delivery.created_at + RETENTION_S + 1)
    assert database.query(lambda c: exchange_of(c, delivery)) is None
    database.close()
