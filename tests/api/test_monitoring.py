"""Tests of the health checks, metrics and request log for operators."""

import json
import logging
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server.api.monitoring.request_counts import ANSWERING_NS, BUCKET_BOUNDS_S, RequestCounts
from server.api.monitoring.request_log import JsonHandler, log_request, request_id
from server.api.operations.table import OPERATIONS, ROUTES, route_of
from tests.conftest import MakeApi
from tests.servers import free_port, get, start, stop, wait, workers
from tests.sites import STRING, Api, collection, documents, write
from tests.waiting import until

FILES = {
    **collection("note", {"text": STRING}, drafts=True),
    **documents("notes", a={"text": "x"}, b={"text": "y"}),
    "content/notes/c.draft.json": '{"text": "z"}',
    "site.yaml": "roles: {public: {note: [find], metrics: [read]}}\nsearch: {index: false}\n",
}
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    """Parse a page of metrics as Prometheus does. Return the values by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def metrics(api: Api) -> Samples:
    answer = api.get("/metrics", "public")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    return samples(answer.body.decode())


def test_metrics_are_for_those_who_are_granted_them(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": "roles: {public: {note: [find]}}\n"})
    assert api.get("/metrics", "public").status == 403
    assert api.get("/metrics").status == 200


def test_metrics_say_what_there_is_and_what_is_wrong_with_it(make_api: MakeApi) -> None:
    api = make_api(FILES)
    found = metrics(api)
    labels = (("locale", "en"), ("status", "published"), ("type", "note"))
    assert found["bifolio_documents", labels] == 2
    assert found["bifolio_problems", (("severity", "error"),)] == 0
    (api.site.root / "content/notes/d.json").write_text("{")
    api.site.refresh()
    assert metrics(api)["bifolio_problems", (("severity", "error"),)] == 1


def test_ready_tells_of_accounts_that_are_away_and_is_still_ready_to_serve(make_api: MakeApi) -> None:
    api = make_api(FILES)
    whole = {
        "content": "ready",
        "accounts": "ready",
        "events": "ready",
        "media": "ready",
        "remote": None,
        "push": None,
        "commitsWaiting": 0,
        "deliveriesWaiting": 0,
    }
    assert api.get("/_health/ready", "public").body == {"data": whole}
    api.accounts.close()
    (api.site.root / ".bifolio/accounts.db").write_bytes(b"no database at all" * 1000)
    answer = api.get("/_health/ready", "public")
    assert (answer.status, answer.body["data"]["accounts"]) == (200, "away")


def test_ready_tells_of_a_log_of_events_that_can_not_be_read(make_api: MakeApi) -> None:
    api = make_api(FILES)
    (api.site.root / ".bifolio").mkdir(exist_ok=True)
    (api.site.root / ".bifolio/events.db").write_bytes(b"no database at all" * 1000)
    assert api.get("/_health/ready", "public").body["data"]["events"] == "behind"


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", "start"),
        ("/api/articles", "content"),
        ("/api/articles/a/b/c", "content"),
        ("/api/upload/files/7", "media"),
        ("/api/auth/local", "users"),
        ("/uploads/a.png", "files"),
        ("/history/api/x", "history"),
        ("/_health/ready", "health"),
        ("/.env", "other"),
        ("*", "other"),
        ("", "other"),
    ],
)
def test_a_path_is_counted_as_its_route(path: str, route: str) -> None:
    assert ROUTES[route_of(path)] == route


def test_every_operation_is_counted_by_a_name() -> None:
    assert {o.id for o in OPERATIONS if ROUTES[route_of(o.path)] == "other"} == set()


def test_a_server_answers_requests_for_a_moment_after_each_response(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = RequestCounts()
    counts.register_worker(1)
    counts.count("/uploads/a.png", "GET", 200, 0.003)
    assert not counts.has_recent_requests()
    counts.count("/api/notes", "GET", 200, 0.003)
    now = time.monotonic_ns()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)
    assert counts.has_recent_requests()
    monkeypatch.setattr(time, "monotonic_ns", lambda: now + ANSWERING_NS)
    assert not counts.has_recent_requests()


def test_counts_of_all_workers_are_one_and_outlast_them() -> None:
    counts = RequestCounts()

    def work(number: int) -> None:
        counts.register_worker(number)
        for _ in range(number):
            counts.count("/api/notes", "GET", 200, 0.003)
        counts.count("/events", "GET", 200, None)
        counts.count("/x", "BREW", 418, 99.0)

    for number in (1, 2):
        process = multiprocessing.get_context("fork").Process(target=work, args=(number,))
        process.start()
        process.join()
    assert dict(counted(counts)) == {
        ("content", "GET", 200): 3,
        ("events", "GET", 200): 2,
        ("other", "other", 0): 2,
    }
    durations = {found.route: found for found in counts.durations()}
    assert set(durations) == {"content", "other"}, "a stream takes as long as it is read"
    assert durations["content"].counts[BUCKET_BOUNDS_S.index(0.005)] == 3
    assert math.isclose(durations["content"].seconds, 0.009, rel_tol=0.01)
    assert durations["other"].counts[-1] == 2
    assert list(counts.workers()) == []


def counted(counts: RequestCounts) -> Iterator[tuple[tuple[str, str, int], int]]:
    return ((found[:3], found[3]) for found in counts.request_counts())


def test_an_id_of_a_request_is_kept_where_it_can_be_printed() -> None:
    assert request_id("trace-1.a_B") == "trace-1.a_B"
    for bad in ("", "a b", "a\n", "x" * 65, "é"):
        made = request_id(bad)
        assert made != bad
        assert len(made) == 32


def test_what_is_logged_is_one_line_of_json(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("of line 7\nand 8")
    except ValueError:
        record = logging.LogRecord("bifolio", logging.ERROR, "", 0, "it %s", ("broke",), None)
        record.exc_info = sys.exc_info()
    JsonHandler().handle(record)
    (line,) = capfd.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["level"], told["event"], told["message"]) == ("error", "log", "it broke")
    assert "of line 7" in told["exception"]


COMMIT = (("job", "commit"),)


def lines(log: Path, event: str) -> list[dict[str, Any]]:
    told = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in told if line["event"] == event]


def test_a_server_counts_and_logs_the_requests_of_all_its_workers(tmp_path: Path) -> None:
    free = free_port()
    root, log = tmp_path / "site", tmp_path / "log"
    write(root, FILES)
    with log.open("wb") as out:
        process = start(root, free, "--workers=2", "--log", "json", output=out)
    try:
        wait(process, free)
        until(lambda: lines(log, "ready") != [])
        for _ in range(20):
            assert get(free, "/api/notes?sort=text")[0] == 200
        assert get(free, "/studio?key=secret")[0] == 200
        assert get(free, "/api/notes?sort=nothing")[0] == 400
        # A worker counts a request after sending the response, so a worker that is killed in between does
        # not count it.
        seconds = "bifolio_request_seconds_count", (("route", "content"),)
        until(lambda: samples(get(free, "/metrics")[1].decode()).get(seconds) == 21)
        victim = min(workers(process.pid))
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in workers(process.pid) and len(workers(process.pid)) == 2)
        killed_at, ran = time.time(), "bifolio_job_run_timestamp_seconds"
        # The current leader runs the jobs. It may be a different worker than before.
        until(lambda: samples(get(free, "/metrics")[1].decode()).get((ran, COMMIT), 0.0) > killed_at)
        found = samples(get(free, "/metrics")[1].decode())
        assert found["bifolio_job_up", COMMIT] == 1
        assert found["bifolio_job_due_timestamp_seconds", COMMIT] > killed_at
        assert count_of(found, "content", "200") == 20
        assert count_of(found, "content", "400") == 1
        assert found["bifolio_request_seconds_count", (("route", "content"),)] == 21
        assert found["bifolio_workers", ()] == 2
        told = lines(log, "request")
        asked = [line for line in told if line["path"] == "/api/notes" and line["status"] == 200]
        assert len(asked) == 20
        assert asked[0]["query"] == "sort=text"
        assert len({line["request"] for line in told}) == len(told)
        assert "secret" not in log.read_text()
        (root / "content/notes/e.json").write_text("{")
        until(lambda: lines(log, "problem") != [])
        assert lines(log, "problem")[0]["path"] == "content/notes/e.json"
        assert lines(log, "ready")[0]["url"] == f"http://127.0.0.1:{free}/"
    finally:
        stop(process)


def count_of(found: Samples, route: str, status: str) -> float:
    return found["bifolio_requests_total", (("method", "GET"), ("route", route), ("status", status))]


SECRET_QUERIES = (
    *(
        f"sort=title&{name}=walrus&page=2"
        for name in (
            "password", "newPassword", "currentPassword", "passwordConfirmation", "PASSWORD", "new_password",
            "api_key", "apiKey", "api-key", "apikey", "key", "secret", "client_secret", "jwt",
            "authorization", "access_token", "accessToken", "refreshToken", "resetPasswordToken", "token",
            "id_token", "resetToken", "code", "confirmation", "user[password]", "%70assword", "new%50assword",
            "user%5Bpassword%5D",
        )
    ),
    "sort=title&password%3Dwalrus&page=2",
    "sort=title;password=walrus&page=2",
    "sort=title&password=a%26walrus=b&page=2",
)  # fmt: skip


def logged_query(capfd: pytest.CaptureFixture[str], query: str) -> str:
    environ = {"PATH_INFO": "/api/notes", "QUERY_STRING": query, "REQUEST_METHOD": "GET"}
    log_request(environ, "1", 200, time.perf_counter())
    shown: str = json.loads(capfd.readouterr().out)["query"]
    return shown


@pytest.mark.parametrize("query", SECRET_QUERIES)
def test_the_log_shows_no_secret_of_a_query(capfd: pytest.CaptureFixture[str], query: str) -> None:
    shown = logged_query(capfd, query)
    assert "walrus" not in shown
    assert shown.startswith("sort=title")
    assert shown.endswith("page=2")


@pytest.mark.parametrize(
    "query",
    ["filters[code][$eq]=GB&sort=keyword", "monkey=1&tokens=2", "=", "a&&b=", "filters[$and][0][key][$in]=k"],
)
def test_the_log_shows_all_other_parameters(capfd: pytest.CaptureFixture[str], query: str) -> None:
    assert logged_query(capfd, query) == query
