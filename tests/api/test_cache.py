"""Kept answers: as fresh as the state, and never for somebody who may not see them."""

import gzip
import itertools
import resource
from hashlib import blake2b
from pathlib import Path

import brotli
import pytest

from server.api.cache import MAX_BYTES, answer_cache
from server.api.front import Front
from tests.making import Made, make, schema

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
def made(tmp_path: Path) -> Made:
    return make(tmp_path, FILES)


def identities(made: Made) -> dict[str, dict[str, str]]:
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
        found[name] = {"Authorization": f"Bearer {made.accounts.create_token(name, kind, permissions)}"}
    return found


def test_no_pair_of_identities_shares_what_one_may_not_see(made: Made) -> None:
    people = identities(made)
    fresh = {}
    for name, headers in people.items():
        for path in PATHS:
            made.site.state = type(made.site.state)(
                made.site.state.settings, made.site.state.schema, made.site.state.snapshot
            )  # a state of its own: nothing is kept
            answer = made.client.get(path, headers=headers)
            fresh[name, path] = (answer.status_code, answer.data)
    assert len({fresh[name, "/api/posts?populate=*"] for name in people}) > 2
    for (first, second), path in itertools.product(itertools.permutations(people, 2), PATHS):
        for name in (first, second, first):
            answer = made.client.get(path, headers=people[name])
            assert (answer.status_code, answer.data) == fresh[name, path], (first, second, path)


def test_a_change_is_seen_by_the_next_request(made: Made) -> None:
    first = made.client.get("/api/posts")
    assert made.client.get("/api/posts").data == first.data
    made.put("/api/posts/one", {"title": "Two"})
    second = made.client.get("/api/posts")
    assert second.json["data"][0]["title"] == "Two"
    assert second.headers["ETag"] != first.headers["ETag"]
    (made.root / "site.yaml").write_text("roles: {}\n")
    made.site.refresh()
    assert made.client.get("/api/posts").status_code == 403


def test_a_revoked_token_gets_nothing_that_was_kept(made: Made) -> None:
    token = made.accounts.create_token("short", "read-only")
    headers = {"Authorization": f"Bearer {token}"}
    assert made.client.get("/api/tags", headers=headers).status_code == 200
    made.accounts.revoke_token("short")
    assert made.client.get("/api/tags", headers=headers).status_code == 401


def test_what_has_not_changed_is_not_sent_again(made: Made) -> None:
    path = "/api/posts"
    tag = made.client.get(path).headers["ETag"]
    for wanted in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = made.client.get(path, headers={"If-None-Match": wanted})
        assert (answer.status_code, answer.data) == (304, b"")
        assert answer.headers["ETag"] == tag
    assert made.client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_answers_are_compressed_for_those_who_take_it(made: Made) -> None:
    path, reading = "/api/tags", {"Authorization": f"Bearer {made.token}"}
    plain = made.client.get(path, headers=reading)
    for accepted, encoding, decode in (
        ("gzip", "gzip", gzip.decompress),
        ("gzip, br", "br", brotli.decompress),
        ("br;q=0, gzip;q=0.5", "gzip", gzip.decompress),
    ):
        answer = made.client.get(path, headers={**reading, "Accept-Encoding": accepted})
        assert answer.headers["Content-Encoding"] == encoding
        assert decode(answer.data) == plain.data
        assert answer.headers["ETag"] != plain.headers["ETag"]
        again = {**reading, "Accept-Encoding": accepted, "If-None-Match": answer.headers["ETag"]}
        assert made.client.get(path, headers=again).status_code == 304
    assert "Accept-Encoding" in plain.headers["Vary"]
    assert "private" in plain.headers["Cache-Control"]
    assert "public" in made.client.get("/api/posts").headers["Cache-Control"]


def test_a_head_has_the_headers_of_a_get(made: Made) -> None:
    got, head = made.client.get("/api/posts"), made.client.head("/api/posts")
    assert head.data == b""
    assert {k: v for k, v in got.headers if k != "Date"} == {k: v for k, v in head.headers if k != "Date"}


def front(made: Made) -> Front:
    entrance = made.client.application.wsgi_app
    assert isinstance(entrance, Front)
    return entrance


def test_what_is_kept_has_a_limit(made: Made) -> None:
    front(made).cache = answer_cache(20_000)
    for i in range(50):
        assert made.client.get(f"/api/posts?nothing={i}").status_code == 200
    kept = front(made).cache.of(made.site.state)
    assert 0 < kept.bytes <= 20_000
    assert 5 < len(kept) < 50


def test_long_queries_take_no_more_than_the_limit(made: Made) -> None:
    """Of 96 MB that a stranger sends, nothing stays but answers."""
    before = resident()
    for i in range(3000):
        assert made.client.get(f"/api/posts?nothing={i}&{'x' * 32_000}").status_code == 200
    kept = front(made).cache.of(made.site.state)
    assert len(kept) == 3000
    assert kept.bytes < 8_000_000
    assert resident() - before < MAX_BYTES


def resident() -> int:
    """The bytes of memory that this process takes, where the system says so."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else 0


def test_long_questions_that_begin_alike_are_told_apart(made: Made) -> None:
    long = "x" * 300
    answers = {
        made.client.get(f"/api/posts?{long}&fields[0]={name}").data for name in ("title", "documentId")
    }
    assert len(answers) == 2
    digest = blake2b(f"{long}&fields[0]=title".encode(), digest_size=32).hexdigest()
    assert made.client.get(f"/api/posts?{digest}").data == made.client.get("/api/posts").data


def test_failures_and_odd_headers_are_not_kept(made: Made) -> None:
    for i in range(20):
        assert made.client.get(f"/api/posts?sort=none{i}").status_code == 400
        assert made.client.get(f"/api/posts/none{i}").status_code == 403
    kept = front(made).cache.of(made.site.state)
    assert len(kept) == 0
    for i in range(20):
        headers = {"Origin": f"https://{i}.org", "User-Agent": f"{i}", "Accept-Encoding": f"{i}"}
        assert made.client.get("/api/posts", headers=headers).status_code == 200
    assert len(kept) == 1


def test_a_new_state_lets_go_of_what_was_kept(made: Made) -> None:
    made.client.get("/api/posts")
    old = front(made).cache.of(made.site.state)
    assert len(old) == 1
    made.put("/api/posts/one", {"title": "Two"})
    made.client.get("/api/posts")
    assert front(made).cache.of(made.site.state) is not old
