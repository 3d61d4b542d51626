"""Tests of client addresses behind a proxy, and of what depends on them: rate limits and TLS."""

import pytest

from server.api.environ import apply_forwarded_headers
from tests.conftest import MakeApi
from tests.sites import STRING, Answer, Api, collection

FILES = collection("note", {"title": STRING})
LIMITED = "api: {rate_limit: 2 per minute%s}\nroles: {public: {note: [find]}}\n"


@pytest.mark.parametrize(
    ("trusted", "remote", "forwarded", "address"),
    [
        ((), "10.0.0.1", "1.1.1.1", "10.0.0.1"),
        (("10.0.0.2",), "10.0.0.1", "1.1.1.1", "10.0.0.1"),
        (("10.0.0.1",), "10.0.0.1", "1.1.1.1", "1.1.1.1"),
        (("10.0.0.0/8",), "10.0.0.1", "1.1.1.1", "1.1.1.1"),
        (("10.0.0.1",), "10.0.0.1", "6.6.6.6, 1.1.1.1", "1.1.1.1"),  # the client made up the first address
        (("10.0.0.1",), "10.0.0.1", "1.1.1.1, 10.0.0.2", "10.0.0.2"),
        (("10.0.0.0/8",), "10.0.0.1", "6.6.6.6,1.1.1.1 , 10.0.0.2", "1.1.1.1"),
        (("10.0.0.0/8",), "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        (("10.0.0.1",), "10.0.0.1", "", "10.0.0.1"),
        (("10.0.0.1",), "10.0.0.1", "1.1.1.1, nonsense", "10.0.0.1"),
        (("10.0.0.1",), "10.0.0.1", "a,,\x00", "10.0.0.1"),
        (("::1",), "::1", "2001:db8::7", "2001:db8::7"),
        (("127.0.0.1",), "::ffff:127.0.0.1", "1.1.1.1", "1.1.1.1"),
        (("10.0.0.1",), "", "1.1.1.1", ""),
        (("10.0.0.1",), "10.0.0.1", "6.6.6.6, 1.1.1.1:4711", "1.1.1.1"),
        (("10.0.0.0/8",), "10.0.0.1", "[2001:db8::7]:4711, 10.0.0.2:80", "2001:db8::7"),
        (("10.0.0.1",), "10.0.0.1", "[2001:db8::7]", "2001:db8::7"),
        (("10.0.0.1",), "10.0.0.1", "1.1.1.1, 2.2.2.2:nonsense", "10.0.0.1"),
        (("10.0.0.1",), "10.0.0.1", "1.1.1.1, [::1", "10.0.0.1"),
        (("10.0.0.1",), "10.0.0.1", "unknown", "10.0.0.1"),
    ],
)
def test_the_address_of_a_client(trusted: tuple[str, ...], remote: str, forwarded: str, address: str) -> None:
    environ = {"REMOTE_ADDR": remote, "HTTP_X_FORWARDED_FOR": forwarded, "wsgi.url_scheme": "http"}
    apply_forwarded_headers(environ, trusted)
    assert (environ["REMOTE_ADDR"], environ["wsgi.url_scheme"]) == (address, "http")


def test_the_header_forwarded_is_not_read() -> None:
    environ = {"REMOTE_ADDR": "10.0.0.1", "HTTP_FORWARDED": "for=1.1.1.1", "wsgi.url_scheme": "http"}
    apply_forwarded_headers(environ, ("10.0.0.1",))
    assert environ["REMOTE_ADDR"] == "10.0.0.1"


def asked(api: Api, forwarded: str, **headers: str) -> Answer:
    return api.get("/api/notes", "public", headers={"X-Forwarded-For": forwarded, **headers})


def test_clients_behind_a_trusted_proxy_are_limited_each_for_itself(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": LIMITED % ", trusted_proxies: 127.0.0.1"})
    assert [asked(api, "1.1.1.1").status for _ in range(3)] == [200, 200, 429]
    assert asked(api, "1.1.1.2").status == 200
    assert asked(api, "1.1.1.2, 1.1.1.1").status == 429


def test_nobody_else_is_believed_who_says_to_be_a_proxy(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": LIMITED % ", trusted_proxies: [10.0.0.1]"})
    assert [asked(api, f"1.1.1.{i}").status for i in range(3)] == [200, 200, 429]


@pytest.mark.parametrize(
    ("trusted", "proto", "told"),
    [
        ("127.0.0.1", "https", True),
        ("127.0.0.1", "http, https", True),
        ("127.0.0.1", "https, http", False),
        ("127.0.0.1", "http", False),
        ("10.0.0.1", "https", False),
    ],
)
def test_behind_tls_browsers_are_told_to_stay_there(
    make_api: MakeApi, trusted: str, proto: str, told: bool
) -> None:
    api = make_api({**FILES, "site.yaml": f"api: {{trusted_proxies: {trusted}}}\n"})
    for path in ("/api/notes", "/api/none", "/_health", "/openapi.json"):
        answer = api.get(path, "public", headers={"X-Forwarded-Proto": proto})
        assert ("Strict-Transport-Security" in answer.headers) is told, path
