"""Tests of `bifolio key rotate`: existing logins stay valid until the grace period ends."""

import stat
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from server.api.app import create_app
from server.auth.accounts import Accounts
from server.auth.session_key import (
    KEY_FILE,
    KEY_VARIABLE,
    PREVIOUS_KEY_FILE,
    PREVIOUS_KEY_VARIABLE,
    previous_key,
    session_key,
)
from server.auth.users import Users
from server.commands.cli import main
from tests.sites import STRING, Api, collection, make, opened

SITE = "roles: {public: {auth: [callback]}, authenticated: {user: [me]}}\n"
SECRETS = {KEY_VARIABLE: "n" * 32, PREVIOUS_KEY_VARIABLE: "p" * 32}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, {**collection("note", {"text": STRING}), "site.yaml": SITE})
    Users(api.accounts).create("ann", "ann@x.org", "secret12", role="authenticated", confirmed=True)
    return api


def login(api: Api) -> str:
    form = {"identifier": "ann", "password": "secret12"}
    return str(api.ask("POST", "/api/auth/local", "public", json=form).body["jwt"])


def rotate(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["key", "rotate", "--site", str(root), *options])


def restarted(root: Path) -> Api:
    """Return the app of a newly started server for the site."""
    site, accounts = opened(root), Accounts(root)
    app = create_app(site, accounts)
    return Api(site, app, accounts, app.test_client())


def me(root: Path, token: str) -> int:
    """Return the status with which a newly started server responds to a user's token."""
    return restarted(root).get("/api/users/me", token).status


def test_logins_of_before_are_taken_until_the_grace_period_ends(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, old = login(api), session_key(api.root)
    answer = rotate(api.root, "--grace", "12h")
    assert answer.output.startswith("created a new key; existing sessions stay valid for 12h. Restart the ")
    assert session_key(api.root) != old
    server = restarted(api.root)
    after = login(server)
    assert [server.get("/api/users/me", token).status for token in (before, after)] == [200, 200]
    now = time.time()
    monkeypatch.setattr("server.auth.session_key.time.time", lambda: now + 12 * 3600 + 2)
    assert [server.get("/api/users/me", token).status for token in (before, after)] == [401, 200]
    assert previous_key(api.root) is None


def test_only_the_last_key_of_before_is_taken(api: Api) -> None:
    token = login(api)
    rotate(api.root)
    assert me(api.root, token) == 200
    rotate(api.root)
    assert me(api.root, token) == 401


def test_without_grace_all_logins_end(api: Api) -> None:
    token = login(api)
    assert rotate(api.root, "--grace", "0").output.startswith("created a new key; all existing sessions end.")
    assert me(api.root, token) == 401


def test_nobody_else_can_read_the_keys(api: Api) -> None:
    rotate(api.root)
    modes = [
        stat.S_IMODE((api.root / ".bifolio" / name).stat().st_mode) for name in (KEY_FILE, PREVIOUS_KEY_FILE)
    ]
    assert modes == [0o600, 0o600]


def test_a_damaged_key_of_before_ends_its_logins_alone(api: Api) -> None:
    token = login(api)
    rotate(api.root)
    for text in ("", "short 99999999999", "x" * 64, "x" * 64 + " soon"):
        (api.root / ".bifolio" / PREVIOUS_KEY_FILE).write_text(text)
        assert me(api.root, token) == 401
        assert me(api.root, login(restarted(api.root))) == 200


def test_keys_of_the_environment(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, SECRETS[PREVIOUS_KEY_VARIABLE])
    token = login(restarted(api.root))
    refused = rotate(api.root)
    assert refused.exit_code == 1
    assert refused.output.startswith(f"bifolio: {KEY_VARIABLE}: contains this site's key")
    assert PREVIOUS_KEY_VARIABLE in refused.output
    monkeypatch.setenv(KEY_VARIABLE, SECRETS[KEY_VARIABLE])
    assert me(api.root, token) == 401
    monkeypatch.setenv(PREVIOUS_KEY_VARIABLE, SECRETS[PREVIOUS_KEY_VARIABLE])
    assert me(api.root, token) == 200


@pytest.mark.parametrize("grace", ["soon", "-1d", ""])
def test_a_grace_period_that_is_no_length_of_time(api: Api, grace: str) -> None:
    before = session_key(api.root)
    answer: Any = rotate(api.root, "--grace", grace)
    assert answer.exit_code == 1
    assert (
        answer.output
        == f'bifolio: --grace: must be a duration (found "{grace}"). Write a duration such as 1d, 12h or 0.\n'
    )
    assert session_key(api.root) == before
