"""Tests of cached responses: they are as fresh as the state, and never reach callers who may not
read them.
"""

import gzip
import itertools
import resource
from dataclasses import replace
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

import brotli
import pytest
from werkzeug.test import create_environ, run_wsgi_app

from server.api.entrance import Entrance
from server.api.response_cache import MAX_BYTES, make_response_cache
from tests.sites import Api, make, schema

POST = schema(
    "post",
    {
        "title": "string",
        "tag": {"type": "relation", "relation": "manyToOne", "target": "api::tag.tag"},
    },
    drafts=True,
)
FILES: dict[str, str | bytes] = {
    "content-types/post.json": POST,
    "content-types/tag.json": schema("tag", {"name": "string"}),
    "site.yaml": "roles:\n  public: {post: [find]}\n",
    "content/posts/one.md": "---\ntitle: One\ntag: a\n---\n",
    "content/posts/one.draft.md": "---\ntitle: Draft\ntag: a\n---\n",
    "content/tags/a.yaml": f"name: A{'a' * 2000}\n",
}
PATHS = ["/api/posts", "/api/posts?populate=*", "/api/posts/one", "/api/tags", "/api/posts?status=draft"]


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def identities(api: Api) -> dict[str, dict[str, str]]:
    kinds = {
        "everything": ("full-access", []),
        "reading": ("read-only", []),
        "posts": ("custom", ["post.find", "post.findOne"]),
        "drafts": ("custom", ["post.find", "post.readDraft"]),
        "tags": ("custom", ["tag.find"]),
        "both": ("custom", ["post.find", "tag.find"]),
    }
    found = {"nobody": {}, "wrong": {"Authorization": "Bearer nope"}}
    for name, (kind, permissions) in kinds.items():
        found[name] = {"Authorization": f"Bearer {api.accounts.create_token(name, kind, permissions)}"}
    return found


def test_no_pair_of_identities_shares_what_one_may_not_see(api: Api) -> None:
    people = identities(api)
    fresh = {}
    for name, headers in people.items():
        for path in PATHS:
            api.site._replica.state = replace(api.site.state)  # a new state, for which nothing is cached
            answer = api.get(path, "public", headers=headers)
            fresh[name, path] = (answer.status, answer.raw)
    assert len({fresh[name, "/api/posts?populate=*"] for name in people}) > 2
    for (first, second), path in itertools.product(itertools.permutations(people, 2), PATHS):
        for name in (first, second, first):
            answer = api.get(path, "public", headers=people[name])
            assert (answer.status, answer.raw) == fresh[name, path], (first, second, path)


def test_a_change_is_seen_by_the_next_request(api: Api) -> None:
    first = api.get("/api/posts", "public")
    assert api.get("/api/posts", "public").raw == first.raw
    assert api.put("/api/posts/one", {"title": "Two"}).status == 200
    second = api.get("/api/posts", "public")
    assert second.body["data"][0]["title"] == "Two"
    assert second.headers["ETag"] != first.headers["ETag"]
    (api.root / "site.yaml").write_text("roles: {}\n")
    api.site.refresh()
    assert api.get("/api/posts", "public").status == 403


def test_a_revoked_token_gets_nothing_that_was_kept(api: Api) -> None:
    token = api.accounts.create_token("short", "read-only")
    headers = {"Authorization": f"Bearer {token}"}
    assert api.get("/api/tags", "public", headers=headers).status == 200
    api.accounts.revoke_token("short")
    assert api.get("/api/tags", "public", headers=headers).status == 401


def test_what_has_not_changed_is_not_sent_again(api: Api) -> None:
    path = "/api/posts"
    tag = api.get(path, "public").headers["ETag"]
    for wanted in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = api.get(path, "public", headers={"If-None-Match": wanted})
        assert (answer.status, answer.raw) == (304, b"")
        assert answer.headers["ETag"] == tag
    assert api.get(path, "public", headers={"If-None-Match": '"other"'}).status == 200


def test_answers_are_compressed_for_those_who_take_it(api: Api) -> None:
    path, reading = "/api/tags", {"Authorization": f"Bearer {api.tokens['full']}"}
    plain = api.get(path, "public", headers=reading)
    for accepted, encoding, decode in (
        ("gzip", "gzip", gzip.decompress),
        ("gzip, br", "br", brotli.decompress),
        ("br;q=0, gzip;q=0.5", "gzip", gzip.decompress),
    ):
        answer = api.get(path, "public", headers={**reading, "Accept-Encoding": accepted})
        assert answer.headers["Content-Encoding"] == encoding
        assert decode(answer.raw) == plain.raw
        assert answer.headers["ETag"] != plain.headers["ETag"]
        again = {**reading, "Accept-Encoding": accepted, "If-None-Match": answer.headers["ETag"]}
        assert api.get(path, "public", headers=again).status == 304
    assert "Accept-Encoding" in plain.headers["Vary"]
    assert "private" in plain.headers["Cache-Control"]
    assert "public" in api.get("/api/posts", "public").headers["Cache-Control"]


def test_a_head_has_the_headers_of_a_get(api: Api) -> None:
    got, head = api.get("/api/posts", "public"), api.ask("HEAD", "/api/posts", "public")
    assert head.raw == b""
    assert {k: v for k, v in got.headers if k != "Date"} == {k: v for k, v in head.headers if k != "Date"}


def front(api: Api) -> Entrance:
    entrance = api.client.application.wsgi_app
    assert isinstance(entrance, Entrance)
    return entrance


def test_what_is_kept_has_a_limit(api: Api) -> None:
    front(api).cache = make_response_cache(20_000)
    for i in range(50):
        assert api.get(f"/api/posts?nothing={i}", "public").status == 200
    kept = front(api).cache.for_state(api.site.state)
    assert 0 < kept.bytes <= 20_000
    assert 5 < len(kept) < 50


def test_long_queries_take_no_more_than_the_limit(api: Api) -> None:
    """Send 96 MB of different queries: only the responses may remain in memory."""
    before, asked = resident(), create_environ("/api/posts")
    for i in range(3000):  # no test client, because it takes long to quote such long URLs
        query = {"QUERY_STRING": f"nothing={i}&{'x' * 32_000}", "wsgi.input": BytesIO()}
        assert run_wsgi_app(api.app, {**asked, **query})[1] == "200 OK"
    kept = front(api).cache.for_state(api.site.state)
    assert len(kept) == 3000
    assert kept.bytes < 8_000_000
    assert resident() - before < MAX_BYTES


def resident() -> int:
    """Return this process's resident memory in bytes, or 0 if the system does not report it."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else 0


def test_long_questions_that_begin_alike_are_told_apart(api: Api) -> None:
    long = "x" * 300
    answers = {
        api.get(f"/api/posts?{long}&fields[0]={name}", "public").raw for name in ("title", "documentId")
    }
    assert len(answers) == 2
    digest = blake2b(f"{long}&fields[0]=title".encode(), digest_size=32).hexdigest()
    assert api.get(f"/api/posts?{digest}", "public").raw == api.get("/api/posts", "public").raw


def test_failures_and_odd_headers_are_not_kept(api: Api) -> None:
    for i in range(20):
        assert api.get(f"/api/posts?sort=none{i}", "public").status == 400
        assert api.get(f"/api/posts/none{i}", "public").status == 403
    kept = front(api).cache.for_state(api.site.state)
    assert len(kept) == 0
    for i in range(20):
        headers = {"Origin": f"https://{i}.org", "User-Agent": f"{i}", "Accept-Encoding": f"{i}"}
        assert api.get("/api/posts", "public", headers=headers).status == 200
    assert len(kept) == 1


def test_a_new_state_lets_go_of_what_was_kept(api: Api) -> None:
    api.get("/api/posts", "public")
    old = front(api).cache.for_state(api.site.state)
    assert len(old) == 1
    assert api.put("/api/posts/one", {"title": "Two"}).status == 200
    api.get("/api/posts", "public")
    assert front(api).cache.for_state(api.site.state) is not old


@pytest.mark.parametrize("first", [("HEAD", {}), ("GET", {"If-None-Match": "*"})])
def test_a_large_answer_without_its_body_is_not_kept(
    tmp_path: Path, first: tuple[str, dict[str, str]]
) -> None:
    long = {f"content/posts/long{n}.md": f"---\ntitle: Long\n---\n{'word ' * 60_000}" for n in range(2)}
    post = schema("post", {"title": "string", "text": "richtext"})
    api = make(tmp_path, {**FILES, **long, "content-types/post.json": post})
    method, headers = first
    packed = {"Accept-Encoding": "gzip"}
    assert api.ask(method, "/api/posts", "public", headers={**packed, **headers}).raw == b""
    for _ in range(2):
        answer = api.get("/api/posts", "public", headers=packed)
        assert len(gzip.decompress(answer.raw)) > 500_000


@pytest.mark.parametrize("path", ["/api/notes/a", "/api/page"])
def test_a_tag_tells_readers_of_nothing_that_they_are_not_shown(tmp_path: Path, path: str) -> None:
    attributes = {
        "title": "string",
        "price": {"type": "string", "private": True},
        "rival": {"type": "relation", "relation": "manyToOne", "target": "api::tag.tag"},
    }
    files = {
        "site.yaml": "roles: {public: {note: [findOne], page: [find]}}\n",
        "content-types/note.json": schema("note", attributes),
        "content-types/page.json": schema("page", attributes, single=True),
        "content-types/tag.json": schema("tag", {"name": "string"}),
        "content/notes/a.json": '{"title": "A"}',
        "content/page.json": '{"title": "A"}',
        "content/tags/a.yaml": "name: A\n",
    }
    api = make(tmp_path, files)
    api.token("editor", may=["note.findOne", "note.update", "page.find", "page.update"])
    asked = f"{path}?fields=title&populate=rival"
    for change in ({"price": "7"}, {"rival": "a"}):
        before = {who: api.get(asked, who).headers["ETag"] for who in ("public", "editor")}
        assert api.put(path, change).status == 200
        known = {"If-None-Match": before["public"]}
        assert api.get(asked, "public", headers=known).status == 304
        now = api.get(asked, "editor").headers["ETag"]
        assert api.put(path, {"title": "B"}, "editor", headers={"If-Match": before["editor"]}).status == 412
        assert api.put(path, {"title": "A"}, "editor", headers={"If-Match": now}).status == 200
