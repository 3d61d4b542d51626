"""Tests of `Prefer: merge`: a write based on an outdated version is merged with the changes made
since then.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.api.app import create_app
from server.write.precondition import use_key
from tests.examples import examples
from tests.git import commit_all, git
from tests.sites import (
    STRING,
    Answer,
    Api,
    collection,
    component,
    documents,
    make,
    opened,
    relation,
    translated,
)

TEXT = {"type": "text"}
QUOTE = component("shared.quote", {"text": STRING, "by": STRING, "tag": relation("manyToOne", "tag")})
FILES: dict[str, str | bytes] = {
    **QUOTE,
    **component("shared.note", {"words": TEXT, "kind": STRING}),
    **collection("tag", {"name": STRING}),
    **collection(
        "page",
        {
            "title": STRING,
            "count": {"type": "integer"},
            "body": {"type": "richtext"},
            "data": {"type": "json"},
            "secret": {"type": "string", "private": True},
            "tag": relation("manyToOne", "tag"),
            "tags": relation("manyToMany", "tag"),
            "seo": {"type": "component", "component": "shared.quote"},
            "quotes": {"type": "component", "component": "shared.quote", "repeatable": True},
            "zone": {"type": "dynamiczone", "components": ["shared.quote", "shared.note"]},
        },
    ),
    **collection("post", {"title": STRING, "body": TEXT, "lead": STRING}, drafts=True),
    **collection("place", {"name": translated(STRING), "code": STRING}, localized=True),
    **collection("home", {"title": STRING, "lead": STRING}, single=True),
    **documents("tags", **{name: {"name": name.upper()} for name in "abcdef"}),
    "content/pages/one.json": json.dumps(
        {
            "title": "One",
            "count": 1,
            "body": "first\n\nsecond\n\nthird\n",
            "data": {"x": 1},
            "secret": "hidden",
            "tag": "a",
            "tags": ["a", "b", "c"],
            "seo": {"text": "seo", "by": "ann"},
            "quotes": [{"text": "q0", "by": "ann"}, {"text": "q1", "by": "bob"}],
            "zone": [
                {"__component": "shared.quote", "text": "z0"},
                {"__component": "shared.note", "words": "a\nb\nc", "kind": "aside"},
            ],
        },
        indent=1,
    ),
    "content/pages/two.json": '{"title": "Two", "count": 1}',
    "content/posts/p.json": '{"title": "P", "body": "a\\n\\nb\\n\\nc", "lead": "lead"}',
    "content/places/x.json": '{"name": "X", "code": "1"}',
    "content/places/x.fr.json": '{"name": "Xf", "code": "1"}',
    "content/home.json": '{"title": "Home", "lead": "lead"}',
    "site.yaml": "locales: {default: en, available: [en, fr]}\n",
}
ONE = "/api/pages/one"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def tag_of(api: Api, path: str = ONE, who: str = "full") -> str:
    return str(api.get(path, who).headers["ETag"])


def merge(
    api: Api, tag: str, data: Mapping[str, Any], path: str = f"{ONE}?populate=*", **more: Any
) -> Answer:
    headers = {"If-Match": tag, "Prefer": more.pop("prefer", "merge")}
    return api.put(path, data, headers=headers, **more)


def edit(api: Api, path: str = "content/pages/one.json", **values: Any) -> None:
    """Change values in a document's file, as a text editor does."""
    tree = {**json.loads(api.read(path)), **values}
    (api.root / path).write_text(json.dumps(tree, indent=1))
    api.site.refresh()


def restarted(api: Api) -> Api:
    """Return the same site in a new server."""
    site = opened(api.root)
    app = create_app(site, api.accounts)
    return Api(site, app, api.accounts, app.test_client(), api.tokens)


def stored(api: Api, path: str = "content/pages/one.json") -> Any:
    return json.loads(api.read(path))


def test_a_write_is_merged_onto_what_others_wrote_and_edited(api: Api) -> None:
    tag = tag_of(api)
    assert api.put(ONE, {"title": "Two"}).status == 200
    edit(api, data={"x": 2})
    merged = merge(api, tag, {"count": 2})
    assert (merged.status, merged.headers["Preference-Applied"]) == (200, "merge")
    assert (merged.data["title"], merged.data["count"], merged.data["data"]) == ("Two", 2, {"x": 2})
    assert merged.headers["ETag"].partition(".")[0] == tag_of(api).partition(".")[0]
    assert stored(api)["title"] == "Two"


def test_an_edit_that_nobody_has_seen_yet_is_merged_as_well(api: Api) -> None:
    tag = tag_of(api)
    tree = {**stored(api), "title": "By hand"}
    (api.root / "content/pages/one.json").write_text(json.dumps(tree))
    merged = merge(api, tag, {"count": 2})
    assert (merged.data["title"], merged.data["count"]) == ("By hand", 2)


def test_without_the_preference_the_write_is_refused(api: Api) -> None:
    tag = tag_of(api)
    edit(api, title="Two")
    for headers in ({}, {"Prefer": "return=minimal"}, {"Prefer": "x=merge, merged"}):
        refused = api.put(ONE, {"count": 2}, headers={"If-Match": tag, **headers})
        assert refused.status == 412
        assert refused.error["message"] == "The document has changed; read it again"
    assert stored(api)["count"] == 1


@pytest.mark.parametrize(
    "prefer", ["merge", "MERGE", "merge, respond-async", 'return=minimal; a="x, y", merge;q=1', "merge=true"]
)
def test_the_preference_is_read_as_its_standard_says(api: Api, prefer: str) -> None:
    tag = tag_of(api)
    edit(api, title="Two")
    assert merge(api, tag, {"count": 2}, prefer=prefer).status == 200


def test_nothing_is_said_of_a_merge_that_was_not_needed(api: Api) -> None:
    written = merge(api, tag_of(api), {"count": 2})
    assert written.status == 200
    assert "Preference-Applied" not in written.headers
    assert api.put(ONE, {"count": 3}, headers={"Prefer": "merge"}).data["count"] == 3
    assert merge(api, "*", {"count": 4}).data["count"] == 4


def test_what_overlaps_is_refused_with_all_three_values(api: Api) -> None:
    tag = tag_of(api)
    edit(api, title="Theirs", data={"x": 2}, tags=["c"], body="other\n\nsecond\n\nthird\n")
    before = api.read("content/pages/one.json")
    refused = merge(api, tag, {"title": "Ours", "data": {"y": 1}, "count": 5, "body": "mine\n\nsecond\n"})
    assert (refused.status, refused.error["name"]) == (412, "PreconditionFailedError")
    assert "Preference-Applied" not in refused.headers
    details = refused.error["details"]
    assert details["version"] == tag_of(api).strip('"').partition(".")[0]
    first = "first\n\nsecond\n\nthird\n"
    theirs = "other\n\nsecond\n\nthird\n"
    assert details["conflicts"] == [
        {"attribute": "title", "paths": [["title"]], "base": "One", "ours": "Ours", "theirs": "Theirs"},
        {
            "attribute": "body",
            "paths": [["body"]],
            "base": first,
            "ours": "mine\n\nsecond\n",
            "theirs": theirs,
        },
        {"attribute": "data", "paths": [["data"]], "base": {"x": 1}, "ours": {"y": 1}, "theirs": {"x": 2}},
    ]
    assert api.read("content/pages/one.json") == before


def test_values_that_an_answer_has_no_room_for_are_left_out_of_a_conflict(tmp_path: Path) -> None:
    limited = f"{FILES['site.yaml']}api: {{limits: {{size: 20 kB}}}}\n"
    api = make(tmp_path, {**FILES, "site.yaml": limited})
    edit(api, title="Theirs", body="x" * 12_000)
    tag = tag_of(api)
    edit(api, title="Theirs", body="y" * 12_000)
    refused = merge(api, tag, {"body": "z" * 12_000})
    assert (refused.status, refused.error["name"]) == (412, "PreconditionFailedError")
    assert refused.error["details"]["conflicts"] == [{"attribute": "body", "tooLarge": True}]
    assert stored(api)["body"] == "y" * 12_000


def test_the_same_change_twice_is_no_conflict(api: Api) -> None:
    tag = tag_of(api)
    assert merge(api, tag, {"title": "Two", "tags": ["a"]}).status == 200
    again = merge(api, tag, {"title": "Two", "tags": ["a"]})
    assert (again.status, again.headers["Preference-Applied"]) == (200, "merge")


def test_texts_are_merged_by_line(api: Api) -> None:
    tag = tag_of(api)
    edit(api, body="first\n\nsecond\n\nTHIRD\n")
    merged = merge(api, tag, {"body": "FIRST\n\nsecond\n\nthird\n"})
    assert merged.data["body"] == "FIRST\n\nsecond\n\nTHIRD\n"


RELATIONS: list[tuple[Any, list[str], list[str]]] = [
    (["a", "b", "c", "d"], ["a", "b", "c", "e"], ["a", "b", "c", "e", "d"]),
    (["a", "c"], ["b", "c"], ["c"]),
    (["c", "b", "a"], ["a", "b", "c", "d"], ["c", "b", "a", "d"]),
    (["a", "b", "c", "d"], ["c", "b", "a"], ["c", "b", "a", "d"]),
    ({"connect": ["d"], "disconnect": ["a"]}, ["a", "c", "e"], ["c", "e", "d"]),
    ({"connect": [{"documentId": "d", "position": {"before": "b"}}]}, ["a", "c"], ["a", "d", "c"]),
    ({"set": [{"documentId": "f"}]}, ["a", "b", "c", "e"], ["e", "f"]),
]


@pytest.mark.parametrize(("ours", "theirs", "after"), RELATIONS)
def test_relations_are_merged_by_document(api: Api, ours: Any, theirs: list[str], after: list[str]) -> None:
    tag = tag_of(api)
    edit(api, tags=theirs)
    merged = merge(api, tag, {"tags": ours})
    assert [found["documentId"] for found in merged.data["tags"]] == after
    assert stored(api)["tags"] == after


def test_orders_that_differ_and_one_target_of_two_are_conflicts(api: Api) -> None:
    tag = tag_of(api)
    edit(api, tags=["b", "c", "a"], tag="b")
    refused = merge(api, tag, {"tags": ["c", "a", "b"], "tag": {"connect": ["c"]}})
    rows = refused.error["details"]["conflicts"]
    assert [row["attribute"] for row in rows] == ["tag", "tags"]
    assert [rows[0][side]["name"] for side in ("base", "ours", "theirs")] == ["A", "C", "B"]
    assert [found["name"] for found in rows[1]["theirs"]] == ["B", "C", "A"]


def test_components_are_merged_by_their_ids_place_and_kind(api: Api) -> None:
    first = api.get(f"{ONE}?populate=*")
    tag, data = first.headers["ETag"], first.data
    quotes = [{"text": "new", "by": "cy"}, {"text": "q0", "by": "zoe"}, {"text": "q1", "by": "bob"}]
    note = {"__component": "shared.note", "words": "A\nb\nc", "kind": "aside"}
    zone = [note, {"__component": "shared.quote", "text": "z0"}]
    edit(api, quotes=quotes, zone=zone, seo={"text": "seo", "by": "bob"})
    ids = [quote["id"] for quote in data["quotes"]]
    merged = merge(
        api,
        tag,
        {
            "quotes": [{"id": ids[1], "text": "Q1"}, {"id": ids[0]}, {"text": "last"}],
            "zone": [
                {"__component": "shared.quote", "text": "Z0"},
                {"__component": "shared.note", "words": "a\nb\nC", "kind": "aside"},
            ],
            "seo": {"id": data["seo"]["id"], "text": "SEO"},
        },
    )
    assert merged.status == 200, merged.text
    tree = stored(api)
    assert [(q["text"], q.get("by")) for q in tree["quotes"]] == [
        ("new", "cy"),
        ("Q1", "bob"),
        ("q0", "zoe"),
        ("last", None),
    ]
    assert [(e.get("words"), e.get("text")) for e in tree["zone"]] == [("A\nb\nC", None), (None, "Z0")]
    assert tree["seo"] == {"text": "SEO", "by": "bob"}


def test_conflicts_in_components_say_where(api: Api) -> None:
    first = api.get(f"{ONE}?populate=*")
    ids = [quote["id"] for quote in first.data["quotes"]]
    edit(api, quotes=[{"text": "q0", "by": "zoe", "tag": "a"}, {"text": "theirs", "by": "bob"}])
    refused = merge(api, first.headers["ETag"], {"quotes": [{"id": ids[1], "text": "ours"}]})
    [row] = refused.error["details"]["conflicts"]
    assert row["paths"] == [["quotes", "0"], ["quotes", "1", "text"]]
    assert [quote["text"] for quote in row["ours"]] == ["ours"]
    assert row["theirs"][0]["tag"]["name"] == "A"


def test_a_version_is_known_through_a_restart(api: Api) -> None:
    tag = tag_of(api)
    edit(api, title="Two")
    again = restarted(api)
    again.put(ONE, {"data": 3})
    merged = merge(again, tag, {"count": 9})
    assert (merged.data["title"], merged.data["count"], merged.data["data"]) == ("Two", 9, 3)


def test_a_change_while_no_server_ran_is_merged(api: Api) -> None:
    tag = tag_of(restarted(api))  # entity tag of the document when the server has just started
    (api.root / "content/pages/one.json").write_text(json.dumps({**stored(api), "title": "Two"}))
    again = restarted(api)
    assert merge(again, tag, {"count": 2}).data["title"] == "Two"
    tag = tag_of(again)  # entity tag of the document as the server has saved it
    (api.root / "content/pages/one.json").write_text(json.dumps({**stored(api), "title": "Three"}))
    merged = merge(restarted(api), tag, {"data": 3})
    assert (merged.data["title"], merged.data["count"], merged.data["data"]) == ("Three", 2, 3)


def test_a_version_that_is_not_known_is_refused_in_words(api: Api) -> None:
    edit(api, title="Two")
    for tag in ('"0"', '"0123456789abcdef0123456789abcdef.0"'):
        refused = merge(api, tag, {"count": 2})
        assert refused.status == 412
        assert "is no longer available" in refused.error["message"]
        assert refused.error["details"]["version"]
    assert stored(api)["count"] == 1


def test_versions_of_another_key_or_schema_are_not_known(api: Api) -> None:
    tag = tag_of(api)
    edit(api, title="Two")
    use_key("another")
    assert "no longer available" in merge(api, tag, {"count": 2}).error["message"]
    tag = tag_of(api)
    edit(api, title="Three")
    (api.root / "content-types/page.json").write_text(
        str(FILES["content-types/page.json"]).replace('"maxLength"', "").replace('"count"', '"counted"')
    )
    api.site.refresh()
    assert "no longer available" in merge(api, tag, {"title": "Four"}).error["message"]


def test_a_version_of_another_document_is_not_known(api: Api) -> None:
    tag = tag_of(api, "/api/tags/a")
    assert api.put("/api/tags/a", {"name": "changed"}).status == 200
    assert "no longer available" in merge(api, tag, {"name": "x"}, "/api/tags/b").error["message"]


def test_what_is_gone_is_not_made_again_and_a_deletion_stays_strict(api: Api) -> None:
    tag = tag_of(api)
    edit(api, title="Two")
    headers = {"If-Match": tag, "Prefer": "merge"}
    assert api.ask("DELETE", ONE, headers=headers).status == 412
    (api.root / "content/pages/one.json").unlink()
    api.site.refresh()
    refused = merge(api, tag, {"count": 2})
    assert (refused.status, refused.error["message"]) == (412, "The document no longer exists")


def test_a_pull_of_git_is_merged(api: Api) -> None:
    commit_all(api.root)
    git(api.root, "switch", "-qc", "other")
    edit(api, title="Pulled")
    git(api.root, "commit", "-qam", "second", at="2024-02-01T00:00:00Z")
    git(api.root, "switch", "-q", "main")
    api.site.refresh()
    tag = tag_of(api)
    assert api.get(ONE).data["title"] == "One"
    git(api.root, "merge", "-q", "--ff-only", "other")
    api.site.refresh()
    assert merge(api, tag, {"count": 2}).data["title"] == "Pulled"


def test_a_body_with_mistakes_is_told_of_them(api: Api) -> None:
    tag = tag_of(api)
    edit(api, count=7)
    refused = merge(api, tag, {"count": "many"})
    assert (refused.status, refused.error["details"]["errors"][0]["path"]) == (400, ["count"])


def test_a_single_type_is_merged(api: Api) -> None:
    tag = tag_of(api, "/api/home")
    edit(api, "content/home.json", title="House")
    merged = merge(api, tag, {"lead": "new"}, "/api/home")
    assert (merged.data["title"], merged.data["lead"]) == ("House", "new")


def test_what_locales_share_is_merged_in_each(api: Api) -> None:
    tag = tag_of(api, "/api/places/x?locale=fr")
    assert api.put("/api/places/x", {"code": "2", "name": "Y"}).status == 200
    merged = merge(api, tag, {"name": "Yf"}, "/api/places/x?locale=fr")
    assert (merged.data["name"], merged.data["code"]) == ("Yf", "2")
    refused = merge(api, tag, {"code": "3"}, "/api/places/x?locale=fr")
    assert [row["attribute"] for row in refused.error["details"]["conflicts"]] == ["code"]
    assert "no longer available" in merge(api, tag, {"name": "Z"}, "/api/places/x").error["message"]


# --- drafts --------------------------------------------------------------------------------------

POST = "/api/posts/p"
DRAFT = f"{POST}?status=draft"


def test_the_operations_of_a_batch_are_merged_each_by_itself(api: Api) -> None:
    tag, other = tag_of(api), tag_of(api, "/api/pages/two")
    edit(api, title="Two")
    put = {"method": "PUT", "path": ONE, "ifMatch": tag, "prefer": "merge"}
    operations = [
        {**put, "body": {"data": {"count": 2}}},
        {
            "method": "PUT",
            "path": "/api/pages/two",
            "ifMatch": other,
            "prefer": "merge",
            "body": {"data": {"count": 2}},
        },
        {**put, "body": {"data": {"data": {"x": 3}}}},
    ]
    first, untouched, last = api.ask("POST", "/batch", json={"operations": operations}).data
    assert (first["preferenceApplied"], last["preferenceApplied"]) == ("merge", "merge")
    assert "preferenceApplied" not in untouched
    assert [stored(api)[name] for name in ("title", "count", "data")] == ["Two", 2, {"x": 3}]


def test_a_conflict_in_a_batch_names_its_operation(api: Api) -> None:
    tag = tag_of(api)
    edit(api, title="Two")
    operations = [
        {"method": "PUT", "path": "/api/pages/two", "body": {"data": {"count": 2}}},
        {
            "method": "PUT",
            "path": ONE,
            "ifMatch": tag,
            "prefer": "merge",
            "body": {"data": {"title": "Mine"}},
        },
    ]
    error = api.ask("POST", "/batch", json={"operations": operations}).error
    assert (error["status"], error["details"]["operation"]) == (412, 1)
    assert [c["attribute"] for c in error["details"]["conflicts"]] == ["title"]
    assert stored(api, "content/pages/two.json")["count"] == 1


def test_operations_that_overlap_with_each_other_are_refused(api: Api) -> None:
    tag = tag_of(api)
    operations = [
        {"method": "PUT", "path": ONE, "ifMatch": tag, "prefer": "merge", "body": {"data": {"title": title}}}
        for title in ("Mine", "Yours")
    ]
    error = api.ask("POST", "/batch", json={"operations": operations}).error
    assert (error["status"], error["details"]["operation"]) == (412, 1)
    [conflict] = error["details"]["conflicts"]
    assert [conflict[side] for side in ("base", "ours", "theirs")] == ["One", "Yours", "Mine"]
    assert stored(api)["title"] == "One"


def test_a_draft_is_merged_from_what_was_published(api: Api) -> None:
    tag = tag_of(api, DRAFT)
    assert api.put(DRAFT, {"title": "Drafted"}).status == 200
    merged = merge(api, tag, {"lead": "new"}, DRAFT)
    assert (merged.data["title"], merged.data["lead"]) == ("Drafted", "new")
    again = merge(api, tag, {"body": "a\n\nb\n\nC"}, DRAFT)
    assert (again.data["title"], again.data["lead"], again.data["body"]) == ("Drafted", "new", "a\n\nb\n\nC")
    assert api.get(POST).data["title"] == "P"
    refused = merge(api, tag, {"title": "Other"}, DRAFT)
    assert refused.error["details"]["conflicts"][0]["theirs"] == "Drafted"


def test_publishing_merges_with_what_is_published_and_with_the_draft(api: Api) -> None:
    tag = tag_of(api, POST)
    assert api.put(DRAFT, {"title": "Drafted", "body": "a\n\nb\n\nC"}).status == 200
    edit(api, "content/posts/p.json", body="A\n\nb\n\nc")
    merged = merge(api, tag, {"lead": "new"}, POST)
    assert (merged.data["title"], merged.data["lead"]) == ("Drafted", "new")
    assert merged.data["body"] == "A\n\nb\n\nC"
    assert "posts/p.draft.json" not in api.files


def test_publishing_is_refused_where_the_draft_and_what_is_published_overlap(api: Api) -> None:
    tag = tag_of(api, POST)
    assert api.put(DRAFT, {"title": "Drafted"}).status == 200
    edit(api, "content/posts/p.json", title="By hand")
    [row] = merge(api, tag, {"lead": "new"}, POST).error["details"]["conflicts"]
    assert (row["attribute"], row["base"]) == ("title", "P")
    assert {row["ours"], row["theirs"]} == {"Drafted", "By hand"}


def test_the_tag_of_a_draft_does_not_publish(api: Api) -> None:
    tag = tag_of(api, DRAFT)
    assert api.put(DRAFT, {"title": "Drafted"}).status == 200
    assert "no longer available" in merge(api, tag, {"lead": "new"}, POST).error["message"]


# --- permissions of the writer --------------------------------------------------------------------


def test_private_values_are_merged_and_not_told(api: Api) -> None:
    tag = tag_of(api)
    edit(api, secret="theirs", title="Two")
    refused = merge(api, tag, {"secret": "ours", "title": "Three"})
    assert refused.error["details"]["conflicts"][-1] == {"attribute": "secret"}
    assert "theirs" not in refused.text.replace('"theirs":', "")
    merged = merge(api, tag, {"count": 3})
    assert stored(api)["secret"] == "theirs"
    assert "secret" not in merged.data


def test_relations_to_what_the_writer_may_not_find_are_not_told(api: Api) -> None:
    api.token("writer", may=["page.find", "page.findOne", "page.update"])
    first = api.get(f"{ONE}?populate=*", "writer")
    edit(api, tag="f", quotes=[{"text": "theirs", "by": "ann", "tag": "f"}, {"text": "q1", "by": "bob"}])
    data = {"quotes": [{"id": first.data["quotes"][0]["id"], "text": "ours"}]}
    for each in ({"tag": None}, data):  # not merged, because the merge would compare hidden relations
        refused = merge(api, first.headers["ETag"], each, who="writer")
        assert (refused.status, refused.error["details"].keys()) == (412, {"version"})
    shown = merge(api, first.headers["ETag"], {"tag": None}).error["details"]["conflicts"]
    assert [row["theirs"]["name"] for row in shown] == ["F"]


def test_who_may_not_read_drafts_is_not_told_by_merging_one(api: Api) -> None:
    api.token("writer", may=["post.find", "post.findOne", "post.update"])
    assert api.put(DRAFT, {"title": "Hidden"}).status == 200
    edit(api, "content/posts/p.json", lead="published")
    for tag in (tag_of(api, POST, "writer"), tag_of(api, DRAFT)):
        edit(api, "content/posts/p.draft.json", body="x")
        refused = merge(api, tag, {"title": "New"}, DRAFT, who="writer")
        assert (refused.status, refused.error["details"]) == (412, {})


def test_who_may_not_read_drafts_merges_with_what_is_published(api: Api) -> None:
    api.token("writer", may=["post.find", "post.findOne", "post.update"])
    tag = tag_of(api, POST, "writer")
    assert api.put(DRAFT, {"title": "Hidden"}).status == 200
    edit(api, "content/posts/p.json", lead="published")
    merged = merge(api, tag, {"body": "new"}, POST, who="writer")
    assert (merged.data["title"], merged.data["lead"], merged.data["body"]) == ("P", "published", "new")
    assert api.get(DRAFT).data["title"] == "Hidden"
    refused = merge(api, tag, {"lead": "mine"}, POST, who="writer")
    assert "Hidden" not in refused.text


# --- any two edits -------------------------------------------------------------------------------

WORDS = st.sampled_from(["", "one", "two\nlines", "- dash: x", "é", "true", "1.0"])
NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)
QUOTES = st.fixed_dictionaries({"text": WORDS, "by": WORDS})
EDITS: Mapping[str, st.SearchStrategy[Any]] = {
    "title": WORDS,
    "count": st.none() | st.integers(-5, 5),
    "body": WORDS,
    "data": st.none() | st.booleans() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)),
    "secret": WORDS,
    "tag": st.none() | st.sampled_from("abc"),
    "tags": NAMES,
    "seo": st.none() | QUOTES,
    "quotes": st.lists(QUOTES, max_size=3),
    "zone": st.lists(QUOTES.map(lambda quote: {"__component": "shared.quote", **quote}), max_size=3),
}


@st.composite
def two_edits(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Generate two edits that set different attributes."""
    sides = draw(st.fixed_dictionaries({name: st.sampled_from([0, 1, 2]) for name in EDITS}))
    one, two = ({name: draw(EDITS[name]) for name in EDITS if sides[name] == side} for side in (1, 2))
    return one, two


def same(shown: Any, wanted: Any) -> bool:
    """Return whether a response contains the written values. A populated relation matches the id that was
    written.
    """
    if isinstance(wanted, dict):
        return isinstance(shown, dict) and all(same(shown.get(key), wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(shown) == len(wanted) and all(map(same, shown, wanted))
    return bool(shown == wanted or (isinstance(shown, dict) and shown.get("documentId") == wanted))


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return make(tmp_path_factory.mktemp("site"), FILES)


@settings(max_examples=examples(30))
@given(two_edits(), st.tuples(st.booleans(), st.booleans()), st.booleans())
def test_two_edits_of_different_attributes_are_both_there(
    lasting: Api, edits: tuple[dict[str, Any], dict[str, Any]], by_hand: tuple[bool, bool], swapped: bool
) -> None:
    api, base = lasting, json.loads(FILES["content/pages/one.json"])
    edit(api, **base)
    tag = tag_of(api)
    both = list(zip(edits, by_hand, strict=True))
    for values, hand in reversed(both) if swapped else both:
        if hand:
            edit(api, **values)
        else:
            written = merge(api, tag, values)
            assert written.status == 200, written.text
    wanted = {**base, **edits[0], **edits[1]}
    secret = wanted.pop("secret")
    shown = api.get(f"{ONE}?populate=*").data
    assert {name: shown[name] for name in wanted if not same(shown[name], wanted[name])} == {}
    assert stored(api).get("secret") == secret
