"""Tests of invalid tokens: forged, truncated, modified, from another site, or from a session that
has ended.
"""

import base64
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest

from server.auth.users import Users
from tests.sites import STRING, Answer, Api, collection, make, write

SITE = """
auth: {{refresh: {refresh}}}
roles:
  public: {{auth: [callback, refresh]}}
  authenticated: {{user: [me]}}
"""
AGES = int(time.time()) + 1_000_000  # long after the tests end
FORM = {"identifier": "ann", "password": "secret12"}


def site(root: Path, *, refresh: bool = False) -> Api:
    """Return a site with two users, ann and bob."""
    files = collection("note", {"text": STRING})
    api = make(root, {**files, "site.yaml": SITE.format(refresh=str(refresh).lower())})
    for name in ("ann", "bob"):
        Users(api.accounts).create(name, f"{name}@x.org", "secret12", role="authenticated", confirmed=True)
    return api


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = site(tmp_path)
    yield api
    api.accounts.close()


def login(api: Api, name: str = "ann") -> Any:
    return api.ask("POST", "/api/auth/local", "public", json={**FORM, "identifier": name}).body


def me(api: Api, token: str) -> Answer:
    return api.get("/api/users/me", token)


def parts_of(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return the header, claims and signature of a token."""
    header, claims, signature = token.split(".")
    read = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]
    return read[0], read[1], signature


def encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def test_a_token_that_was_changed_is_refused(api: Api) -> None:
    token, other = login(api)["jwt"], login(api, "bob")["jwt"]
    assert me(api, token).status == 200
    header, claims, signature = parts_of(token)
    swapped = [*token.split(".")[:2], other.split(".")[2]]
    changed = [
        token[:-1],
        token[: len(token) // 2] + "." + token[len(token) // 2 :],
        token[:-4] + ("AAAA" if not token.endswith("AAAA") else "BBBB"),
        ".".join(token.split(".")[:2]) + ".",
        ".".join(swapped),
        f"{encoded(header)}.{encoded({**claims, 'id': 2})}.{signature}",
        f"{encoded({**header, 'alg': 'none'})}.{encoded(claims)}.",
        f"{encoded({**header, 'alg': 'None'})}.{encoded(claims)}.{signature}",
        f"{encoded([])}.{encoded(claims)}.{signature}",
        f"{encoded(header)}.{encoded('x')}.{signature}",
        "a.b.c",
        "..",
        "\u00e9.b.c",
    ]
    for text in changed:
        assert me(api, text.encode().decode("latin-1")).status == 401, text


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"exp": "never"},
        {"iat": AGES},
        {"nbf": AGES},
        {"iss": "another site"},
        {"iss": None},
        {"iss": ["a"]},
        {"id": None},
        {"id": 99},
        {"id": -1},
        {"id": 2**70},
        {"id": "x"},
        {"id": [1]},
        {"s": 1},
        {"s": None},
        {"s": {}},
    ],
)
def test_a_token_with_other_claims_is_refused_whoever_signed_it(api: Api, changes: dict[str, Any]) -> None:
    claims = parts_of(login(api)["jwt"])[1]
    key = (api.root / ".bifolio/jwt.key").read_text()
    assert me(api, jwt.encode(claims, key, "HS256")).status == 200
    wrong = {name: value for name, value in {**claims, **changes}.items() if value is not None}
    made = f"{encoded({'alg': 'HS256', 'typ': 'JWT'})}.{encoded(wrong)}"
    signature = hmac.digest(key.encode(), made.encode(), "sha256")
    assert me(api, f"{made}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}").status == 401


def test_a_token_of_another_key_or_algorithm_is_refused(api: Api) -> None:
    claims = parts_of(login(api)["jwt"])[1]
    key = (api.root / ".bifolio/jwt.key").read_text()
    assert me(api, jwt.encode(claims, "another key that is long enough here", "HS256")).status == 401
    for algorithm in ("HS384", "HS512", "none"):
        signed = jwt.encode(claims, None if algorithm == "none" else key * 2, algorithm)
        assert me(api, signed).status == 401


@pytest.mark.parametrize("refresh", [False, True])
def test_a_token_of_another_site_is_refused(tmp_path: Path, refresh: bool) -> None:
    """Both sites have the same key, and a user with the same number and name."""
    first = site(tmp_path / "a", refresh=refresh)
    given = login(first)
    write(tmp_path / "b", {".bifolio/jwt.key": (first.root / ".bifolio/jwt.key").read_text()})
    second = site(tmp_path / "b", refresh=refresh)
    assert (me(first, given["jwt"]).status, me(second, given["jwt"]).status) == (200, 401)
    if refresh:
        for api, status in ((second, 401), (first, 200)):
            asked = api.ask(
                "POST", "/api/auth/refresh", "public", json={"refreshToken": given["refreshToken"]}
            )
            assert asked.status == status
    for api in (first, second):
        api.accounts.close()


def test_a_site_that_was_restored_knows_its_tokens(tmp_path: Path) -> None:
    api = site(tmp_path / "a")
    token = login(api)["jwt"]
    api.accounts.revoke_token("full")  # the tests' own token, which `make` creates again below
    api.accounts.close()
    (tmp_path / "a").rename(tmp_path / "b")
    again = make(tmp_path / "b", {})
    assert me(again, token).status == 200
    again.accounts.close()


def test_a_session_that_a_block_has_ended_is_not_revived(api: Api) -> None:
    token = login(api)["jwt"]
    for blocked in (True, False):
        assert api.ask("PUT", "/api/users/1", json={"blocked": blocked}).status == 200
        assert me(api, token).status == 401
    assert me(api, login(api)["jwt"]).status == 200
