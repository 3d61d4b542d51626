"""Documents and lists as Markdown over HTTP: negotiation, caches and permissions."""

from itertools import permutations
from pathlib import Path

import frontmatter  # type: ignore[import-untyped]
import pytest

from server.api.accept import prefers_markdown
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.service.public_site.sites import FILES, SECRETS
from tests.sites import Api, make, schema, write

MARKDOWN = {"Accept": "text/markdown"}
KIND = "text/markdown; charset=utf-8"
JSON = "application/json; charset=utf-8"


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(
        {
            **FILES,
            "content-types/home.json": schema("home", {"title": "string"}, single=True),
            "content/home.yaml": "title: Start\n",
            "content-types/hide.json": schema("hide", {"title": "string"}),
            "content/hides/h.yaml": "title: hidden words\n",
            "site.yaml": FILES["site.yaml"].replace("public:\n", "public:\n    home: [find]\n"),
        }
    )


@pytest.mark.parametrize(
    ("accept", "markdown"),
    [
        ("text/markdown", True),
        ("Text/Markdown", True),
        ("text/markdown; charset=utf-8", True),
        ("text/markdown, */*", True),
        ("text/markdown, text/html, */*", True),
        ("text/markdown;q=0.5", True),
        ("text/markdown, application/json;q=0.9", True),
        ("text/markdown ; q=0.9 , application/json ;q=0.8", True),
        ("", False),
        ("*/*", False),
        ("text/*", False),
        ("application/json", False),
        ("application/json, text/plain, */*", False),
        ("text/markdown, application/json", False),
        ("application/json, text/markdown;q=0.9", False),
        ("text/markdown;q=0.5, */*;q=0.8", False),
        ("text/markdown;q=0.5, application/*", False),
        ("text/markdown;q=0", False),
        ("text/markdown;q=0, */*;q=0", False),
        ("text/markdown;q=nan", False),
        ("text/markdown;q=2", False),
        ("text/markdownx", False),
        ("x/text/markdown", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", False),
    ],
)
def test_markdown_is_sent_to_who_prefers_it(api: Api, accept: str, markdown: bool) -> None:
    assert prefers_markdown(accept) is markdown
    answer = api.get("/api/articles/fog", "public", headers={"Accept": accept})
    assert answer.status == 200
    assert answer.headers["Content-Type"] == (KIND if markdown else JSON)
    assert "Accept" in answer.headers["Vary"].split(", ")


def test_the_cache_never_mixes_markdown_with_json(api: Api) -> None:
    asked = {
        "json": ("/api/articles/fog", {}),
        "markdown": ("/api/articles/fog", MARKDOWN),
        "address": ("/api/articles/fog.md", {}),
        "list": ("/api/articles", {}),
        "list as markdown": ("/api/articles", MARKDOWN),
    }
    fresh = {name: api.get(path, "public", headers=headers) for name, (path, headers) in asked.items()}
    assert fresh["markdown"].raw == fresh["address"].raw
    for order in permutations(asked):
        for name in order:
            path, headers = asked[name]
            again = api.get(path, "public", headers=headers)
            assert (again.raw, again.headers["ETag"]) == (fresh[name].raw, fresh[name].headers["ETag"])
            assert again.headers["Content-Type"] == (JSON if name in ("json", "list") else KIND)


def test_each_representation_has_its_own_entity_tag(api: Api) -> None:
    json, markdown = (api.get("/api/articles/fog", headers=headers) for headers in ({}, MARKDOWN))
    assert json.headers["ETag"] != markdown.headers["ETag"]
    for shown, headers in ((json, {}), (markdown, MARKDOWN)):
        for known, status in ((json, 304), (markdown, 304)):
            tag = {"If-None-Match": known.headers["ETag"]}
            expected = status if known is shown else 200
            assert api.get("/api/articles/fog", headers={**headers, **tag}).status == expected
    head = api.ask("HEAD", "/api/articles/fog", headers=MARKDOWN)
    assert (head.raw, head.headers["Content-Type"]) == (b"", KIND)
    assert head.headers["Content-Length"] == str(len(markdown.raw))
    # The tag names the version, so that a client can change what it has read.
    changed = {"title": "Changed"}
    match = {"If-Match": markdown.headers["ETag"]}
    assert api.put("/api/articles/fog", changed, headers=match).status == 200
    assert api.put("/api/articles/fog", changed, headers=match).status == 412


def test_an_address_with_md_is_always_markdown(api: Api) -> None:
    for path in (
        "/api/articles/fog.md",
        "/api/articles.md",
        "/api/home.md",
        "/api/articles/fog.md?locale=fr",
    ):
        answer = api.get(path, "public", headers={"Accept": "application/json"})
        assert (answer.status, answer.headers["Content-Type"]) == (200, KIND), path
    assert "title: Start\n" in api.get("/api/home.md", "public").raw.decode()
    for path in ("/api/articles/.md", "/api/articles/nope.md", "/api/nope.md", "/api/article.md", "/home.md"):
        assert api.get(path, "public").status == 404, path
    for method in ("PUT", "POST", "DELETE"):
        assert api.ask(method, "/api/home.md", json={"data": {"title": "x"}}).status in (404, 405)
    assert "title: Start\n" in api.get("/api/home.md", "public").raw.decode()


def test_a_document_whose_id_ends_in_md_is_found_first(make_api: MakeApi) -> None:
    api = make_api(
        {
            "site.yaml": "roles: {public: {note: [find, findOne]}}\n",
            "content-types/note.json": schema("note", {"title": "string"}),
            "content/notes/a.json": '{"title": "A"}',
            "content/notes/x.json": '{"title": "B", "documentId": "a.md"}',
        }
    )
    found = {path: api.get(path, "public") for path in ("/api/notes/a.md", "/api/notes/a.md.md")}
    assert found["/api/notes/a.md"].data["title"] == "B"
    assert b"title: B\n" in found["/api/notes/a.md.md"].raw
    assert b"title: A\n" in api.get("/api/notes/a", "public", headers=MARKDOWN).raw


def test_a_list_has_links_with_summaries_and_the_next_page(api: Api) -> None:
    first = api.get(
        "/api/articles?sort=title&pagination[pageSize]=1", "public", headers=MARKDOWN
    ).raw.decode()
    assert first.split("\n") == [
        "# Article",
        "",
        "- [Ferry](/api/articles/ferry.md)",
        "",
        "[Next page (2 of 3, 3 documents)]"
        "(/api/articles.md?sort=title&pagination[pageSize]=1&pagination[page]=2)",
        "",
    ]
    path = first.rpartition("](")[2].rstrip(")\n")
    second = rb"- [Fog & \<script>alert(1)\</script> ball](/api/articles/fog.md): It is thick." + b"\n"
    assert second in api.get(path, "public").raw
    french = api.get("/api/articles.md?locale=fr", "public").raw
    assert b"- [Brume](/api/articles/fog.md?locale=fr)\n" in french
    assert b"No documents." in api.get("/api/articles.md?filters[slug]=nope", "public").raw


def test_only_what_the_caller_may_read_is_there(api: Api) -> None:
    paths = [
        *("/api/articles/fog", "/api/articles", "/api/articles/fog?populate=*", "/api/articles?populate=*"),
        *("/api/articles/fog?status=published", "/api/articles/fog?locale=fr", "/api/pages", "/api/authors"),
    ]
    for path in paths:
        answer = api.get(path, "public", headers=MARKDOWN)
        assert answer.status == 200, path
        assert not [word for word in SECRETS if word in answer.raw.decode()], path
    refused = {
        "/api/articles/new": 404,
        "/api/articles/new.md": 404,
        "/api/articles/fog?status=draft": 403,
        "/api/articles.md?status=draft": 403,
        "/api/memos/plan": 403,
        "/api/memos/plan.md": 403,
        "/api/memos.md": 403,
        "/api/hides/h.md": 403,
        "/api/authors/ann": 403,
        "/api/authors/nope.md": 403,
        "/api/articles/fog?populate=nope": 400,
        "/api/articles/fog?fields=note": 400,
        "/api/articles.md?filters[note]=x": 400,
    }
    for path, status in refused.items():
        answer = api.get(path, "public", headers=MARKDOWN)
        assert (answer.status, answer.headers["Content-Type"]) == (status, JSON), path
        assert not [word for word in SECRETS if word in answer.raw.decode()], path
    # A link leads nowhere if the caller may not request the document by itself.
    public, full = (
        frontmatter.loads(api.get("/api/articles/fog.md", who).raw.decode()) for who in ("public", "full")
    )
    assert (public["author"], full["author"]) == ("Ann O'Hara", "[Ann O'Hara](/api/authors/ann.md)")
    assert full["source"] == "[hidden words](/api/memos/plan.md)"
    draft = frontmatter.loads(api.get("/api/articles/fog.md?status=draft").raw.decode())
    assert draft["title"] == "Draft words"


@pytest.fixture
def with_history(tmp_path: Path) -> Api:
    """The site in a git repository with one commit."""
    write(tmp_path, FILES)
    commit_all(tmp_path)
    return make(tmp_path, {})


def test_markdown_of_a_past_commit_and_in_the_older_format(with_history: Api) -> None:
    api = with_history
    commit = git(api.root, "rev-parse", "HEAD").strip()
    assert api.put("/api/articles/plain", {"title": "Changed"}).status == 200
    path = f"/api/articles/plain?at={commit}"
    for headers in (MARKDOWN, {**MARKDOWN, "Strapi-Response-Format": "v4"}):
        assert b"title: Changed\n" in api.get("/api/articles/plain", headers=headers).raw
        past = api.get(path, headers=headers)
        assert past.headers["Bifolio-Commit"] == commit
        assert b"title: Without a slug\n" in past.raw
    assert api.get(path).data["title"] == "Without a slug"


def test_a_renamed_document_is_found_by_its_former_address(with_history: Api) -> None:
    api = with_history
    folder = api.root / "content/articles"
    (folder / "plain.json").rename(folder / "other.json")
    commit_all(api.root)
    api.site.refresh(["content/articles/plain.json", "content/articles/other.json"])
    for path in ("/api/articles/plain", "/api/articles/plain.md"):
        answer = api.get(path, "public", headers=MARKDOWN)
        assert (answer.status, answer.error["details"].get("renamedTo")) == (404, "other"), path


def test_limits_apply_to_markdown(make_api: MakeApi) -> None:
    api = make_api(
        {
            "site.yaml": "roles: {public: {note: [find, findOne]}}\n",
            "content-types/note.json": schema("note", {"title": "string", "extra": "json"}),
            "content/notes/a.json": f'{{"title": "A", "extra": [{",".join(["1"] * 150_000)}]}}',
            "content/notes/b.json": f'{{"title": "B", "extra": [{",".join(["1"] * 3000)}]}}',
        }
    )
    # As YAML, this many values would take more processor time than a request may have.
    assert api.get("/api/notes/a", "public").status == 200
    answer = api.get("/api/notes/a", "public", headers=MARKDOWN)
    assert (answer.status, answer.error["details"]) == (400, {"limit": "steps"})
    assert api.get("/api/notes/a?fields=title", "public", headers=MARKDOWN).status == 200
    assert api.get("/api/notes/b", "public", headers=MARKDOWN).status == 200
