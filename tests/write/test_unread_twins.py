"""Small twin sites that differ only in content that the caller may not read: a write must have the same
visible results on both.
"""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, component, opened, relation, translated, write

Files = Mapping[str, str | bytes]
PRIVATE = {**STRING, "private": True}
TAGS = relation("manyToMany", "tag")
READ = ["post.find", "post.findOne", "tag.find", "tag.findOne"]
OLD = dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), "2024-02-29T10:20:30.000Z")
REPOSITORY = {".gitignore": ".bifolio/\n", "site.yaml": "git: {commit: each}\n"}
TAG: Files = collection("tag", {"name": STRING})


def document(**values: object) -> str:
    return json.dumps({**values, **OLD}, indent=1)


def posts(attributes: Mapping[str, Any], *, drafts: bool = False) -> Files:
    types = {**TAG, **collection("post", {"title": STRING, **attributes}, drafts=drafts)}
    return {**types, "content/tags/t.json": document(name="t")}


@pytest.fixture
def twins(tmp_path: Path) -> Callable[..., list[Api]]:
    """Return a function that makes two sites, whose files depend on a number, and a token "me". A site with a
    file `.gitignore` is a git repository.
    """

    def build(files: Callable[[int], Files], *may: str) -> list[Api]:
        apis = []
        for number in (0, 1):
            root = tmp_path / str(number)
            write(root, dict(files(number)))
            if (root / ".gitignore").exists():
                git(root, "init", "-q", "-b", "main")
                commit_all(root)
            api = Api.of(opened(root))
            apis.append(api)
            api.token("me", may=[*READ, *may])
        return apis

    return build


Build = Callable[..., list[Api]]


# --- errors ---------------------------------------------------------------------------------------


def test_an_error_quotes_no_stored_value_that_one_may_not_read(twins: Build) -> None:
    rule = {"regex": "^[a-z]+$"}

    def files(number: int) -> Files:
        draft = document(title="A", secret=f"SECRET{number}", name="SHOWN")
        types = posts({"secret": {**PRIVATE, **rule}, "name": {**STRING, **rule}}, drafts=True)
        return {**types, "content/posts/a.draft.json": draft}

    apis = twins(files, "post.update", "post.readDraft")
    refused = [api.put("/api/posts/a", {"title": "x"}, "me") for api in apis]
    assert refused[0].text == refused[1].text
    secret, name = refused[0].error["details"]["errors"]
    assert (secret["path"], name["path"], name["value"]) == (["secret"], ["name"], "SHOWN")
    assert "value" not in secret
    full = apis[0].put("/api/posts/a", {"title": "x"}).error["details"]["errors"][0]
    assert full["value"] == "SECRET0"


# --- writes that change nothing -------------------------------------------------------------------

BOX = {"box": {"type": "component", "component": "x.box", "repeatable": True}}
LINK = {"link": {"type": "component", "component": "x.link"}}
LINKS = {**component("x.link", {"label": STRING, "vault": relation("manyToOne", "vault")})}


def told(api: Api, path: str, data: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what the caller sees of a write, except for times."""
    answer = api.put(path, data, "me", headers={"Prefer": "undo"})
    moved = answer.data.get("updatedAt", "2026") > "2025"
    return answer.status, moved, "Bifolio-Undo" in answer.headers, "Bifolio-Commit" in answer.headers


def boxes(number: int) -> Files:
    post = document(title="A", box=[{"label": "l", **({"code": "x"} if number else {})}])
    types = {**component("x.box", {"label": STRING, "code": PRIVATE}), **posts(BOX)}
    return {**types, "content/posts/a.json": post}


def links(number: int) -> Files:
    post = document(title="A", link={"label": "l", **({"vault": "v"} if number else {})})
    vault = {**collection("vault", {"title": STRING}), "content/vaults/v.json": document(title="v")}
    return {**LINKS, **vault, **posts(LINK), "content/posts/a.json": post}


def tags(number: int) -> Files:
    post = document(title="A", tags=["t", *["d"] * number])
    drafts = {**collection("tag", {"name": STRING}, drafts=True), "content/tags/d.draft.json": document()}
    return {**posts({"tags": TAGS}), **drafts, "content/posts/a.json": post}


@pytest.mark.parametrize(
    ("files", "data"),
    [
        (boxes, {"box": [{"label": "l"}]}),
        (links, {"link": {"label": "l"}}),
        (tags, {"tags": {"disconnect": ["d"]}}),
    ],
)
def test_a_write_that_changes_nothing_tells_nothing(
    twins: Build, files: Callable[[int], Files], data: Mapping[str, Any]
) -> None:
    first, second = (told(api, "/api/posts/a", data) for api in twins(files, "post.update"))
    assert first == second
    assert first[:3] == (200, True, True)


def drafts(number: int) -> Files:
    types = {
        **collection("tag", {"name": STRING, "posts": relation("manyToMany", "post", mappedBy="tags")}),
        **collection(
            "post",
            {"title": STRING, "lead": STRING, "tags": relation("manyToMany", "tag", inversedBy="posts")},
            drafts=True,
        ),
    }
    draft = document(title=("other", "A")[number], tags=["t"] * number, lead="l")
    hidden = {
        "content/posts/a.draft.json": draft,
        **({"content/posts/b.draft.json": draft} if number else {}),
    }
    published = {f"content/posts/{name}.json": document(title="A") for name in "ab"}
    return {**types, "content/tags/t.json": document(name="t"), **published, **hidden, **REPOSITORY}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/api/posts/a?status=draft", {"title": "A"}),
        ("/api/posts/a", {"title": "A"}),
        ("/api/posts/b", {"title": "A"}),
        ("/api/tags/t", {"posts": {"disconnect": ["a"]}}),
    ],
)
def test_a_write_beside_a_draft_that_one_may_not_read_tells_nothing(
    twins: Build, path: str, data: Mapping[str, Any]
) -> None:
    may = "post.updateDraft" if "draft" in path else "post.update"
    first, second = (told(api, path, data) for api in twins(drafts, may, "tag.update"))
    assert first == second
    assert (first[0], first[1], first[3]) == (200, True, True)


def test_a_guess_in_one_locale_changes_the_other_whether_it_is_right_or_not(twins: Build) -> None:
    title = translated(STRING)

    def files(number: int) -> Files:
        secret = ("no", "guess")[number]
        types = collection("post", {"title": title, "secret": PRIVATE}, localized=True)
        posts = {f"content/posts/a.{name}.json": document(title=name, secret=secret) for name in ("en", "fr")}
        return {**types, **TAG, **posts, "site.yaml": "locales: {default: en, available: [en, fr, de]}\n"}

    for api in twins(files, "post.update"):
        for sent_in in ("en", "de"):  # The version in German is new.
            before = api.get("/api/posts/a?locale=fr", "me")
            assert api.put(f"/api/posts/a?locale={sent_in}", {"secret": "guess"}, "me").status == 200
            after = api.get("/api/posts/a?locale=fr", "me")
            assert before.headers["ETag"] != after.headers["ETag"]
            assert before.data["updatedAt"] < after.data["updatedAt"]
            assert api.get("/api/posts/a?locale=fr").data["title"] == "fr"


# --- drafts of another type -----------------------------------------------------------------------


def posted(kind: str) -> Callable[[int], Files]:
    """Return a function that returns a site whose posts refer to tags. All types have drafts."""
    to_many = kind == "manyToMany"
    back = {"manyToOne": "oneToMany"}.get(kind, kind)

    def post(tag: str | None = None) -> str:
        tags = [tag] if tag else []
        return document(title="A", tag=tags if to_many else tag)

    def files(number: int) -> Files:
        tag = {"name": STRING, "posts": relation(back, "post", mappedBy="tag")}
        hidden = {"content/posts/a.draft.json": post("t"), "content/posts/b.draft.json": post("other")}
        return {
            **collection("tag", tag, drafts=True),
            **collection("post", {"tag": relation(kind, "tag", inversedBy="posts")}, drafts=True),
            **{f"content/tags/{name}.json": document(name=name) for name in ("t", "other")},
            "content/tags/t.draft.json": document(name="draft"),
            "content/posts/a.json": post(),
            "content/posts/b.json": post("t"),
            **(hidden if number else {}),
            **REPOSITORY,
        }

    return files


NAMED: Mapping[str, Any] = {"a": None, "b": "t"}
TAG_WRITES: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
    # path, body, and afterwards the tag of each published post
    ("/api/tags/t", {"data": {}}, NAMED),
    ("/api/tags/t", {"data": {"name": "new"}}, NAMED),
    ("/api/tags/other", {"data": {}}, NAMED),
    ("/history/tags/t/restore", {"at": "main", "fields": ["name"]}, NAMED),
    ("/api/tags/t", {"data": {"posts": {"connect": ["b"]}}}, NAMED),
    ("/api/tags/t", {"data": {"posts": {"disconnect": ["a"]}}}, NAMED),
    ("/api/tags/t", {"data": {"posts": {"disconnect": ["b"]}}}, {"a": None, "b": None}),
    ("/api/tags/t", {"data": {"posts": ["b"]}}, NAMED),
    ("/api/tags/t", {"data": {"posts": ["a"]}}, {"a": "t", "b": None}),
]


@pytest.mark.parametrize("kind", ["manyToOne", "manyToMany", "oneToOne"])
@pytest.mark.parametrize(("path", "body", "tagged"), TAG_WRITES)
def test_what_only_a_hidden_draft_of_another_type_says_is_not_published(
    twins: Build, kind: str, path: str, body: Mapping[str, Any], tagged: Mapping[str, Any]
) -> None:
    method = "POST" if path.startswith("/history") else "PUT"
    may = ["tag.update", "tag.readDraft", "history.read", "history.restore"]
    for api in twins(posted(kind), *may):
        assert api.ask(method, path, "me", json=body).status == 200
        api.site.refresh()
        assert _tags(api) == tagged


def test_a_hidden_type_is_not_published_and_a_draft_that_one_may_read_is(twins: Build) -> None:
    _, api = twins(posted("manyToOne"))
    api.token("tagger", may=["tag.find", "tag.update", "tag.readDraft", "post.readDraft"])
    api.token("editor", may=["tag.find", "tag.update", "tag.readDraft", "post.find", "post.readDraft"])
    assert api.put("/api/tags/t", {}, "tagger").status == 200
    assert _tags(api) == NAMED
    assert api.put("/api/tags/t", {}, "editor").status == 200
    assert _tags(api) == {"a": "t", "b": None}


DISCONNECT = {"disconnect": ["a"]}


@pytest.mark.parametrize("who", ["me", "full"])
@pytest.mark.parametrize("kind", ["manyToOne", "manyToMany", "oneToOne"])
@pytest.mark.parametrize("data", [{"connect": ["b"], **DISCONNECT}, DISCONNECT, {"connect": ["b"]}])
def test_a_tag_without_drafts_is_removed_whatever_a_draft_says(
    twins: Build, who: str, kind: str, data: Mapping[str, Any]
) -> None:
    back = relation({"manyToOne": "oneToMany"}.get(kind, kind), "post", mappedBy="tag")

    def post(name: str) -> str:
        return document(title="A", tag=[name] if kind == "manyToMany" else name)

    def files(number: int) -> Files:
        return {
            **posted(kind)(0),
            **collection("tag", {"name": STRING, "posts": back}),
            "content/posts/a.json": post("t"),
            "content/posts/b.json": document(title="A"),
            **({"content/posts/a.draft.json": post("other")} if number else {}),
        }

    kept = "t" if kind != "oneToOne" and "disconnect" not in data else None
    added = "t" if "connect" in data else None
    told = []
    for api in twins(files, "tag.update", "source.read"):
        dry = api.put("/api/tags/t?dryRun=true", {"posts": data}, who)
        told.append([file["path"] for file in dry.body["data"]["files"]])
        assert api.put("/api/tags/t", {"posts": data}, who).status == 200
        assert _tags(api) == {"a": kept, "b": added}
    assert who == "full" or told[0] == told[1]


def _names(tags: Any) -> set[str]:
    return {tag["documentId"] for tag in (tags if isinstance(tags, list) else [tags]) if tag}


def _tags(api: Api) -> dict[str, Any]:
    posts = api.get("/api/posts?populate=tag").body["data"]
    return {post["documentId"]: next(iter(_names(post["tag"])), None) for post in posts}


# --- merges of branches ---------------------------------------------------------------------------


def test_a_merge_of_branches_tells_nothing_of_a_guess(twins: Build) -> None:
    def files(number: int) -> Files:
        attributes = {"secret": PRIVATE, "lead": STRING, **BOX}
        types = {**component("x.box", {"label": STRING, "code": PRIVATE}), **posts(attributes)}
        post = document(title="A", secret="old", box=[{"label": "l", "code": "old"}, {"label": "m"}])
        return {**types, "content/posts/a.json": post, **REPOSITORY}

    seen = []
    apis = twins(files, "post.update", *(f"branch.{verb}" for verb in ("find", "create", "update", "merge")))
    for number, api in enumerate(apis):
        code, secret = ("other", "guess")[number], ("other", "guess")[number]
        assert api.ask("POST", "/branches", "me", json={"name": "b"}).status == 201
        ours = {"secret": secret, "lead": "same", "box": [{"label": "l", "code": code}, {"label": "m"}]}
        assert api.put("/api/posts/a", ours).status == 200
        theirs = {"secret": "guess", "lead": "same", "box": [{"label": "l", "code": "guess"}, {"label": "m"}]}
        assert api.put("/api/posts/a?branch=b", theirs, "me").status == 200
        refused = api.ask("POST", "/branches/b/merge", "me", json={})
        [conflict] = refused.error["details"]["conflicts"]
        assert conflict["attributes"].keys() == {"secret", "box"}
        assert conflict["attributes"]["secret"] == {"paths": [["secret"]]}
        seen.append((refused.status, refused.text))
        choices = {"documents": {conflict["document"]: {"secret": "ours", "box": "theirs"}}}
        assert api.ask("POST", "/branches/b/merge", "me", json={"resolve": choices}).status == 200
        merged = json.loads(api.read("content/posts/a.json"))
        assert (merged["secret"], merged["box"][0]["code"], merged["lead"]) == (secret, "guess", "same")
    assert seen[0] == seen[1]
    assert seen[0][0] == 409


# --- uploads --------------------------------------------------------------------------------------


def test_an_upload_to_a_component_that_one_may_not_read_tells_nothing(twins: Build) -> None:
    picture = component("x.picture", {"label": STRING, "file": {"type": "media"}})
    outer = component("x.outer", {"label": STRING, "inner": {**_of("picture"), "private": True}})
    attributes = {
        "hidden": {**_of("picture"), "private": True},
        "outer": _of("outer"),
        "shown": _of("picture"),
    }

    def files(number: int) -> Files:
        one = [{"label": "l"}]
        many = one * (1 + number)
        published = document(title="A", hidden=many, outer=[{"label": "l", "inner": many}], shown=one)
        return {
            **picture,
            **outer,
            **posts(attributes, drafts=True),
            "content/posts/a.json": published,
            "content/posts/b.draft.json": document(title="B", shown=many),
        }

    apis = twins(files, "post.update", "upload.upload")
    second = apis[1].site.state
    type_ = second.schema.endpoints["posts"]
    found, draft = (
        second.snapshot.get(type_, name, "en", status)
        for name, status in (("a", "published"), ("b", "draft"))
    )
    assert found
    assert draft
    inner = next(value for value in found.get("outer")[0].values if isinstance(value, tuple))
    for hidden in (found.get("hidden"), inner, draft.get("shown")):
        for api in apis:
            assert _attach(api, hidden[1].id, "me").status == 403
        assert _attach(apis[1], hidden[1].id, "full").status == 201
    for api in apis:
        assert _attach(api, found.get("shown")[0].id, "me").status == 201


def _of(name: str) -> dict[str, Any]:
    return {"type": "component", "component": f"x.{name}", "repeatable": True}


def _attach(api: Api, number: int, who: str) -> Any:
    data: dict[str, Any] = {"ref": "x.picture", "refId": str(number), "field": "file"}
    data["files"] = [(io.BytesIO(b"text"), "new.txt")]
    return api.ask("POST", "/api/upload", who, data=data, content_type="multipart/form-data")
