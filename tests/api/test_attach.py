"""Tests of uploads that attach the files to an existing document without changing anything else in it."""

import io
from pathlib import Path
from typing import Any

import pytest

from tests.sites import Api, make, schema

MEDIA, MANY = {"type": "media"}, {"type": "media", "multiple": True}
FILES: dict[str, str | bytes] = {
    "content-types/components/parts/row.json": '{"attributes": {"label": {"type": "string"}, "pic": '
    '{"type": "media", "multiple": true}, "cell": {"type": "component", "component": "parts.cell"}}}',
    "content-types/components/parts/cell.json": '{"attributes": {"pic": {"type": "media"}}}',
    "content-types/post.json": schema(
        "post",
        {
            "title": "string",
            "cover": MEDIA,
            "pictures": MANY,
            "rows": {"type": "component", "component": "parts.row", "repeatable": True},
            "zone": {"type": "dynamiczone", "components": ["parts.cell"]},
        },
        drafts=True,
    ),
    "content-types/tour.json": schema(
        "tour",
        {
            "title": {"type": "string", "pluginOptions": {"i18n": {"localized": True}}},
            "map": {**MEDIA, "pluginOptions": {"i18n": {"localized": False}}},
            "views": {**MANY, "pluginOptions": {"i18n": {"localized": True}}},
            "row": {
                "type": "component",
                "component": "parts.row",
                "pluginOptions": {"i18n": {"localized": False}},
            },
        },
        drafts=True,
        localized=True,
    ),
    "site.yaml": "locales: {default: en, available: [en, fr]}\nroles: {public: {upload: [upload]}}\n",
    "content/uploads/old.txt": "old",
    "content/posts/one.md": "---\ntitle: One\npictures: [old.txt]\nupdatedAt: 2024-01-01\n---\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def attach(api: Api, ref: str, key: Any, field: str, *names: str, who: str = "full") -> Any:
    data: dict[str, Any] = {"ref": ref, "refId": str(key), "field": field}
    data["files"] = [(io.BytesIO(b"text"), name) for name in names or ("new.txt",)]
    return api.ask("POST", "/api/upload", who, data=data, content_type="multipart/form-data")


def held(api: Api, url: str, name: str = "pictures") -> Any:
    """Return the names of the files in a document's media attribute."""
    document = api.get(f"{url}{'&' if '?' in url else '?'}populate={name}").data
    found = document[name]
    return [file["name"] for file in found] if isinstance(found, list) else found and found["name"]


def test_files_go_behind_the_others_and_a_single_one_is_the_last(api: Api) -> None:
    assert attach(api, "api::post.post", "one", "pictures", "a.txt", "b.txt").status == 201
    attach(api, "api::post.post", "one", "pictures", "c.txt")
    assert held(api, "/api/posts/one") == ["old.txt", "a.txt", "b.txt", "c.txt"]
    attach(api, "api::post.post", "one", "cover", "a.txt", "b.txt")
    assert held(api, "/api/posts/one", "cover") == "b.txt"
    assert api.get("/api/posts/one").data["updatedAt"] == "2024-01-01T00:00:00.000Z"


@pytest.mark.parametrize("by", ["id", "documentId"])
def test_what_a_draft_says_stays_a_draft(api: Api, by: str) -> None:
    api.put("/api/posts/one?status=draft", {"title": "Changed", "pictures": []})
    key = api.get("/api/posts/one?status=draft").data[by]
    assert attach(api, "api::post.post", key, "pictures").status == 201
    assert held(api, "/api/posts/one") == ["old.txt", "new.txt"]
    assert held(api, "/api/posts/one?status=draft") == ["new.txt"]
    assert api.get("/api/posts/one").data["title"] == "One"
    assert api.get("/api/posts/one?status=draft").data["title"] == "Changed"


@pytest.mark.parametrize("by", ["id", "documentId"])
def test_a_document_that_was_never_published_stays_so(api: Api, by: str) -> None:
    draft = api.post("/api/posts?status=draft", {"title": "Secret"}).data
    attach(api, "api::post.post", draft[by], "cover")
    assert api.get(f"/api/posts/{draft['documentId']}").status == 404
    assert held(api, f"/api/posts/{draft['documentId']}?status=draft", "cover") == "new.txt"


def test_locales_have_their_own_files_or_share_them(api: Api) -> None:
    tour = api.post("/api/tours", {"title": "Tour", "row": {"label": "R"}}).data["documentId"]
    url = f"/api/tours/{tour}"
    french = api.put(f"{url}?locale=fr", {"title": "Visite"}).data["id"]
    api.put(f"{url}?locale=fr&status=draft", {"title": "Voyage"})
    attach(api, "api::tour.tour", french, "views", "f.txt")
    attach(api, "api::tour.tour", tour, "views", "e.txt")
    attach(api, "api::tour.tour", french, "map", "m.txt")
    row = api.get(f"{url}?populate=row").data["row"]["id"]
    attach(api, "parts.row", row, "pic", "r.txt")
    for locale, title, views in (("en", "Tour", ["e.txt"]), ("fr", "Visite", ["f.txt"])):
        for status in ("published", "draft"):
            version = f"{url}?locale={locale}&status={status}"
            assert held(api, version, "views") == views
            assert held(api, version, "map") == "m.txt"
            shown = api.get(f"{version}&populate[row][populate]=pic").data
            assert [file["name"] for file in shown["row"]["pic"]] == ["r.txt"]
            assert shown["title"] == ("Voyage" if (locale, status) == ("fr", "draft") else title)


def test_a_component_is_named_by_its_own_uid_and_number(api: Api) -> None:
    rows = [{"label": "A"}, {"label": "B", "cell": {}}]
    api.put("/api/posts/one", {"rows": rows, "zone": [{"__component": "parts.cell"}]})
    row = "populate[rows][populate][cell][populate]=*&populate[rows][populate][pic]=true"
    query = f"{row}&populate[zone][populate]=*"
    post = api.get(f"/api/posts/one?{query}").data
    attach(api, "parts.row", post["rows"][1]["id"], "pic", "a.txt", "b.txt")
    attach(api, "parts.cell", post["rows"][1]["cell"]["id"], "pic", "c.txt")
    attach(api, "parts.cell", post["zone"][0]["id"], "pic", "d.txt")
    first, second = api.get(f"/api/posts/one?{query}").data["rows"]
    assert (first["pic"], first["label"]) == ([], "A")
    assert [file["name"] for file in second["pic"]] == ["a.txt", "b.txt"]
    assert second["cell"]["pic"]["name"] == "c.txt"
    assert api.get(f"/api/posts/one?{query}").data["zone"][0]["pic"]["name"] == "d.txt"


@pytest.mark.parametrize(
    ("ref", "key", "field"),
    [
        ("api::post.post", "nobody", "cover"),
        ("api::post.post", "", "cover"),
        ("api::post.post", "one", "title"),
        ("api::post.post", "one", "nope"),
        ("api::nope.nope", "one", "cover"),
        ("parts.row", "12345", "pic"),
        ("plugin::upload.file", "old.txt", "related"),
    ],
)
def test_what_is_not_there_gets_no_files(api: Api, ref: str, key: str, field: str) -> None:
    before = api.files
    assert attach(api, ref, key, field).status == 400
    assert api.files == before


def test_who_may_upload_may_not_for_that_change_documents(api: Api) -> None:
    before = api.files
    assert attach(api, "api::post.post", "one", "cover", who="public").status == 403
    assert api.files == before


def test_nothing_is_told_of_what_may_not_be_updated(api: Api) -> None:
    api.token("posts", may=["upload.upload", "post.update"])
    (api.root / "content/tours").mkdir()
    (api.root / "content/tours/alps.draft.yaml").write_text("title: Alps\nrow: {label: x}\n")
    api.site.refresh()
    row = api.get("/api/tours/alps?status=draft&populate=row").data["row"]["id"]
    hidden = [
        ("api::tour.tour", "alps", "map"),
        ("api::tour.tour", "none", "map"),
        ("api::tour.tour", "alps", "none"),
        ("api::none.none", "alps", "map"),
        ("plugin::upload.file", "old.txt", "none"),
        ("parts.row", row, "pic"),
        ("parts.row", 1, "pic"),
        ("parts.row", row, "none"),
        ("parts.none", row, "pic"),
    ]
    for who, named in (
        ("posts", hidden),
        ("public", [*hidden, ("api::post.post", "one", "cover"), ("api::post.post", "none", "cover")]),
    ):
        told = {(answer.status, answer.raw) for ref in named for answer in [attach(api, *ref, who=who)]}
        assert [status for status, _ in told] == [403], told
    assert attach(api, "api::post.post", "none", "pictures", who="posts").status == 400
    assert attach(api, "api::post.post", "one", "pictures", who="posts").status == 201
    assert attach(api, "parts.row", row, "pic").status == 201
