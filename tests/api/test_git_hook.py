"""Tests of `POST /git/hook`: after a request with a git hosting service's signature, the server fetches
immediately.
"""

import hmac
import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from server.api.routes.git_hook import SECRET
from server.history.remote.wakeup import WakeupPipe
from tests.conftest import MakeApi
from tests.git import commit_all
from tests.sites import Answer, Api

WORD = "a secret of both"
COMMIT = "1" * 40
PUSH = {"ref": "refs/heads/main", "after": COMMIT}
BITBUCKET = {"push": {"changes": [{"new": {"type": "branch", "name": "main", "target": {"hash": COMMIT}}}]}}


def digest(body: bytes, secret: str = WORD) -> str:
    return hmac.new(secret.encode(), body, "sha256").hexdigest()


@pytest.fixture
def api(make_api: MakeApi, monkeypatch: pytest.MonkeyPatch) -> Api:
    monkeypatch.setenv(SECRET, WORD)
    api = make_api({"site.yaml": "git: {remote: origin, follow: 1h}\n"})
    commit_all(api.root)
    return api


@pytest.fixture
def pipe(api: Api) -> Iterator[WakeupPipe]:
    made = WakeupPipe(api.root)
    yield made
    made.close()


def woken(pipe: WakeupPipe) -> bool:
    return pipe.wait_for_wakeup()


def send(api: Api, body: bytes, headers: dict[str, str], kind: str = "application/json") -> Answer:
    return api.ask("POST", "/git/hook", "public", data=body, headers={"Content-Type": kind, **headers})


@pytest.mark.parametrize(
    "header",
    ["X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Hub-Signature", "X-Gitlab-Token"],
)
def test_a_push_that_is_signed_wakes_who_follows(api: Api, pipe: WakeupPipe, header: str) -> None:
    body = json.dumps(BITBUCKET if header == "X-Hub-Signature" else PUSH).encode()
    prefix = "sha256=" if "Hub" in header else ""
    signed = WORD if header == "X-Gitlab-Token" else prefix + digest(body)
    assert send(api, body, {header: signed}).status == 202
    assert woken(pipe)
    assert send(api, body, {header: signed}).status == 202  # Two notifications cause two fetches.
    wrong = "wrong" if header == "X-Gitlab-Token" else prefix + digest(body, "wrong")
    assert woken(pipe)
    refused = send(api, body, {header: wrong})
    assert (refused.status, refused.error["message"]) == (
        401,
        f"The signature in {header} does not match this server's secret",
    )
    assert not woken(pipe)


def test_the_form_that_github_can_send(api: Api, pipe: WakeupPipe) -> None:
    body = urlencode({"payload": json.dumps(PUSH)}).encode()
    headers = {"X-Hub-Signature-256": f"sha256={digest(body)}", "X-Hub-Signature": "sha1=older"}
    assert send(api, body, headers, "application/x-www-form-urlencoded").status == 202
    assert woken(pipe)


@pytest.mark.parametrize(
    "told",
    [
        {"zen": "Keep it simple."},
        {**PUSH, "ref": "refs/heads/other"},
        {"ref": "refs/tags/main"},
        [],
        {"push": {"changes": [None]}},
    ],
)
def test_what_is_about_something_else_does_nothing(api: Api, pipe: WakeupPipe, told: Any) -> None:
    body = json.dumps(told).encode()
    assert send(api, body, {"X-Hub-Signature-256": f"sha256={digest(body)}"}).status == 204
    assert not woken(pipe)


def test_what_is_refused(api: Api, pipe: WakeupPipe, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(PUSH).encode()
    assert send(api, body, {}).status == 401
    assert send(api, body, {"X-Hub-Signature-256": digest(body)}).status == 401
    assert send(api, b"{", {"X-Gitlab-Token": WORD}).status == 400
    assert send(api, b"[" * 100_000, {"X-Gitlab-Token": WORD}).status == 400
    assert send(api, b" " * 1_000_001, {"X-Gitlab-Token": WORD}).status == 413
    monkeypatch.delenv(SECRET)
    off = send(api, body, {"X-Gitlab-Token": ""})
    assert (off.status, SECRET in off.error["message"]) == (404, True)
    assert not woken(pipe)


def test_nobody_is_woken_where_nobody_follows(api: Api) -> None:
    body = json.dumps(PUSH).encode()
    assert send(api, body, {"X-Gitlab-Token": WORD}).status == 202
    assert not os.path.lexists(api.root / ".bifolio/following.pipe")


def test_a_file_in_the_place_of_the_pipe_is_not_written_to(api: Api) -> None:
    place = Path(api.root, ".bifolio/following.pipe")
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    body = json.dumps(PUSH).encode()
    assert send(api, body, {"X-Gitlab-Token": WORD}).status == 202
    assert place.read_text() == "mine"


def test_who_has_many_files_open_is_woken_as_well(api: Api) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard) if hard > 0 else 4096, hard))
    others = [os.dup(0) for _ in range(1024)]
    made = WakeupPipe(api.root)
    try:
        assert not woken(made)
        body = json.dumps(PUSH).encode()
        assert send(api, body, {"X-Gitlab-Token": WORD}).status == 202
        assert woken(made)
    finally:
        made.close()
        for other in others:
            os.close(other)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
