"""Data that was read and is sent back unchanged: populated relations, components with their ids, and
media.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import INTEGER, STRING, Api, collection, component, documents, make, relation, schema

PNG = b"\x89PNG\r\n\x1a\n"
SET_BY_THE_SERVER = ("id", "documentId", "createdAt", "updatedAt")
PAGE = {
    "title": STRING,
    "author": relation("manyToOne", "author", inversedBy="pages"),
    "tags": relation("manyToMany", "tag"),
    "about": {"type": "relation", "relation": "morphToMany"},
    "cover": {"type": "media"},
    "pictures": {"type": "media", "multiple": True},
    "seo": {"type": "component", "component": "x.seo"},
    "parts": {"type": "component", "component": "x.part", "repeatable": True},
    "zone": {"type": "dynamiczone", "components": ["x.part", "x.quote"]},
}
FILES: Mapping[str, Any] = {
    **collection("page", PAGE, drafts=True, localized=True),
    **collection("author", {"name": STRING, "pages": relation("oneToMany", "page", mappedBy="author")}),
    **collection("tag", {"name": STRING}),
    **component(
        "x.seo",
        {
            "text": {**STRING, "required": True},
            "rank": INTEGER,
            "links": {"type": "component", "component": "x.part", "repeatable": True},
        },
    ),
    **component(
        "x.part",
        {
            "label": {**STRING, "required": True},
            "level": {"type": "integer", "default": 1},
            "tag": relation("manyToOne", "tag"),
            "picture": {"type": "media"},
        },
    ),
    **component("x.quote", {"text": STRING}),
    **documents("authors", ann={"name": "Ann"}, ben={"name": "Ben"}),
    **documents("tags", red={"name": "red"}, blue={"name": "blue"}, green={"name": "green"}),
    "site.yaml": "locales: {default: en, available: [en, fr]}\n",
    "content/pages/one.md": """---
title: One  # a comment
author: ann
tags: [red, blue]
about:
  - {__type: api::tag.tag, documentId: red}
cover: a.png
pictures: [a.png, b.png]
seo:
  text: S
  rank: 4  # why four
  links:
    - label: first
    - label: second
parts:
  - label: p0
    level: 3
    tag: red
    picture: a.png
  - label: p1
    note: no schema knows this
  - label: p2
zone:
  - __component: x.part
    label: z0
  - __component: x.quote
    text: z1
---
""",
    "content/pages/one.fr.md": "---\ntitle: Un\n---\n",
    "content/uploads/a.png": PNG,
    "content/uploads/b.png": PNG + b"b",
    "content/uploads/c.png": PNG + b"c",
}
ALL = "populate[seo][populate]=*&populate[parts][populate]=*&populate[zone][populate]=*&" + "&".join(
    f"populate[{name}]=true" for name in ("author", "tags", "about", "cover", "pictures")
)
URL = f"/api/pages/one?{ALL}"


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(dict(FILES))


def page(api: Api, name: str = "one.md") -> str:
    return (api.site.root / "content/pages" / name).read_text()


def read(api: Api, status: str = "draft") -> dict[str, Any]:
    """Return the document as a client reads it before changing it."""
    data = api.get(f"{URL}&status={status}").data
    return {name: value for name, value in data.items() if name not in SET_BY_THE_SERVER}


def parts(api: Api) -> list[tuple[Any, Any]]:
    return [(part["label"], part["level"]) for part in read(api)["parts"]]


# --- everything at once --------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["draft", "published"])
def test_an_answer_that_is_sent_back_as_it_is_writes_nothing(api: Api, status: str) -> None:
    before = page(api)
    answer = api.put(URL, read(api, status))
    assert answer.status == 200, answer.body
    assert page(api) == before


def test_one_change_in_an_answer_that_is_sent_back_is_the_only_one(api: Api) -> None:
    data = read(api)
    data["parts"][1]["label"] = "changed"
    before = page(api)
    assert api.put(URL, data).status == 200
    changed = [line for line in page(api).splitlines() if line not in before.splitlines()]
    assert [line for line in changed if "At: " not in line] == ["  - label: changed"]


# --- relations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "tags"),
    [
        (lambda red, blue, green: [green, red], ["green", "red"]),
        (lambda red, blue, green: green, ["green"]),
        (lambda red, blue, green: {"set": [green]}, ["green"]),
        (lambda red, blue, green: {"connect": [green]}, ["red", "blue", "green"]),
        (lambda red, blue, green: {"connect": green, "disconnect": [red]}, ["blue", "green"]),
        (lambda red, blue, green: {"disconnect": [blue]}, ["red"]),
        (lambda red, blue, green: [{"id": green["id"]}, red["id"]], ["green", "red"]),
        (lambda red, blue, green: {"disconnect": [{"id": red["id"]}]}, ["blue"]),
        (
            lambda red, blue, green: {"connect": [{**green, "position": {"before": blue}}]},
            ["red", "green", "blue"],
        ),
        (lambda red, blue, green: {}, ["red", "blue"]),
        (lambda red, blue, green: [], []),
    ],
)
def test_relations_as_they_were_populated(api: Api, change: Any, tags: list[str]) -> None:
    found = [api.get(f"/api/tags/{name}").data for name in ("red", "blue", "green")]
    answer = api.put(URL, {"tags": change(*found)})
    assert [tag["documentId"] for tag in answer.data["tags"]] == tags


@pytest.mark.parametrize("item", [{"name": "red"}, {"id": 5}, 5, {"documentId": 7}, True])
def test_what_names_no_document_is_refused(api: Api, item: Any) -> None:
    before = page(api)
    for value in ([item], {"connect": [item]}, {"set": item}):
        error = api.put(URL, {"tags": value}).error
        assert (error["status"], error["name"]) == (400, "ValidationError")
    assert page(api) == before


# --- components ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["status", "position", "__type", "nope"])
def test_a_target_may_say_what_documents_say_and_below_an_operation_anything(api: Api, key: str) -> None:
    target = {"documentId": "green", "createdBy": None, "localizations": []}
    assert api.put("/api/pages/one", {"tags": [target]}).status == 200
    error = api.put("/api/pages/one", {"tags": [{**target, key: 1}]}).error
    assert (error["message"], error["details"]["path"]) == (f"Invalid key {key} at tags", "tags")
    value = {"start": True} if key == "position" else 1
    assert api.put("/api/pages/one", {"tags": {"connect": [{**target, key: value}]}}).status == 200


@pytest.mark.parametrize(("name", "value"), [("tag", {"nope": []}), ("picture", [{"id": 1, "nope": 1}])])
def test_the_path_of_a_key_leaves_out_places_in_lists(api: Api, name: str, value: Any) -> None:
    error = api.put("/api/pages/one", {"parts": [{"label": "x", name: value}]}).error
    assert (error["message"], error["details"]["path"]) == (
        f"Invalid key nope at parts.{name}",
        f"parts.{name}",
    )


def test_what_a_component_with_its_id_does_not_name_stays(api: Api) -> None:
    seo = read(api)["seo"]
    assert api.put(URL, {"seo": {"id": seo["id"], "rank": 5}}).data["seo"]["text"] == "S"
    assert "rank: 5  # why four" in page(api)
    cleared = api.put(URL, {"seo": {"id": seo["id"], "rank": None}}).data["seo"]
    assert (cleared["text"], cleared["rank"], len(cleared["links"])) == ("S", None, 2)


def test_nested_components_are_found_by_their_ids_too(api: Api) -> None:
    seo = read(api)["seo"]
    first, second = seo["links"]
    links = [{"id": second["id"]}, {"id": first["id"], "label": "FIRST"}, {"label": "third"}]
    answer = api.put(URL, {"seo": {"id": seo["id"], "links": links}}).data["seo"]
    assert [link["label"] for link in answer["links"]] == ["second", "FIRST", "third"]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ([2, 1, 0], [("p2", 1), ("p1", 1), ("p0", 3)]),
        ([2, 0], [("p2", 1), ("p0", 3)]),
        ([1], [("p1", 1)]),
        ([0, None, 2], [("p0", 3), ("new", 1), ("p2", 1)]),
        ([0, 0], [("p0", 3)]),
    ],
)
def test_lists_are_swapped_shortened_and_added_to(api: Api, order: list[int | None], wanted: Any) -> None:
    held = read(api)["parts"]
    sent = [{"label": "new"} if i is None else {"id": held[i]["id"]} for i in order]
    assert api.put(URL, {"parts": sent}).status == 200
    assert parts(api) == wanted


def test_entries_of_a_zone_by_their_ids(api: Api) -> None:
    part, quote = read(api)["zone"]
    sent = [
        {"__component": "x.quote", "id": quote["id"]},
        {"__component": "x.part", "id": part["id"], "level": 7},
        {"__component": "x.quote", "text": "new"},
    ]
    zone = api.put(URL, {"zone": sent}).data["zone"]
    assert [(e.get("text"), e.get("label"), e.get("level")) for e in zone] == [
        ("z1", None, None),
        (None, "z0", 7),
        ("new", None, None),
    ]


def test_without_its_id_a_component_is_new(api: Api) -> None:
    error = api.put(URL, {"seo": {"rank": 5}}).error
    assert error["details"]["errors"][0]["path"] == ["seo", "text"]
    assert api.put(URL, {"seo": {"text": "T"}}).data["seo"]["rank"] is None


def test_an_id_that_the_attribute_does_not_hold_is_refused(api: Api) -> None:
    data, before = read(api), page(api)
    part, quote = data["zone"]
    for change in (
        {"parts": [{"id": 1}]},
        {"parts": [{"id": part["id"]}]},
        {"seo": {"id": data["parts"][0]["id"]}},
        {"zone": [{"__component": "x.part", "id": quote["id"], "label": "x"}]},
        {"seo": {"id": data["seo"]["id"], "links": [{"id": data["seo"]["id"]}]}},
    ):
        error = api.put(URL, change).error
        assert (error["status"], error["name"]) == (400, "ApplicationError")
        assert "not related to the entity" in error["message"]
    assert page(api) == before


def test_in_a_new_document_and_a_new_locale_ids_mean_nothing(api: Api) -> None:
    data = read(api)
    made = api.post(
        "/api/pages?populate=*", {"title": "Two", "seo": data["seo"], "parts": data["parts"]}
    ).data
    assert [part["label"] for part in made["parts"]] == ["p0", "p1", "p2"]
    path = f"/api/pages/{made['documentId']}?locale=fr&populate=*"
    assert api.put(path, {"title": "Deux", "parts": made["parts"][:1]}).data["parts"][0]["label"] == "p0"


def test_a_draft_is_changed_by_the_ids_that_it_shows(api: Api) -> None:
    held = read(api)["parts"]
    path = f"{URL}&status=draft"
    assert api.put(path, {"parts": [{"id": held[2]["id"], "level": 9}]}).status == 200
    assert parts(api) == [("p2", 9)]
    assert [p["label"] for p in read(api, "published")["parts"]] == ["p0", "p1", "p2"]
    shown = read(api)["parts"][0]["id"]
    assert api.put(URL, {"parts": [{"id": shown}]}).data["parts"][0]["level"] == 9


def test_relations_and_media_of_a_component_stay_and_change(api: Api) -> None:
    held = read(api)["parts"][0]
    tag = api.get("/api/tags/blue").data
    answer = api.put(URL, {"parts": [{"id": held["id"], "tag": {"connect": [tag]}}]}).data["parts"][0]
    assert (answer["tag"]["name"], answer["picture"]["name"]) == ("blue", "a.png")
    answer = api.put(URL, {"parts": [{"id": answer["id"], "picture": {"disconnect": [answer["picture"]]}}]})
    assert (answer.data["parts"][0]["tag"]["name"], answer.data["parts"][0]["picture"]) == ("blue", None)


# --- media ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["id", "documentId", "object", "whole"])
@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda a, b, c: {"connect": [c]}, ["a.png", "b.png", "c.png"]),
        (lambda a, b, c: {"connect": a}, ["b.png", "a.png"]),
        (lambda a, b, c: {"disconnect": [a]}, ["b.png"]),
        (lambda a, b, c: {"connect": [c], "disconnect": [a, b]}, ["c.png"]),
        (lambda a, b, c: {"set": [c, a]}, ["c.png", "a.png"]),
        (lambda a, b, c: [b], ["b.png"]),
        (lambda a, b, c: c, ["c.png"]),
        (lambda a, b, c: {}, []),
        (lambda a, b, c: None, []),
    ],
)
def test_several_files(api: Api, change: Any, names: list[str], form: str) -> None:
    answer = api.put(URL, {"pictures": change(*files(api, form))})
    assert [file["name"] for file in answer.data["pictures"] or ()] == names


@pytest.mark.parametrize("form", ["id", "documentId", "object", "whole"])
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda a, b, c: b, "b.png"),
        (lambda a, b, c: [b, c], "b.png"),
        (lambda a, b, c: {"set": [c]}, "c.png"),
        (lambda a, b, c: {"disconnect": [a]}, None),
        (lambda a, b, c: {"disconnect": [b]}, "a.png"),
        (lambda a, b, c: {"disconnect": [a], "connect": [b]}, "b.png"),
        (lambda a, b, c: {"connect": [b]}, "a.png"),  # a to-one relation keeps its first target, as in Strapi
        (lambda a, b, c: {}, None),
        (lambda a, b, c: None, None),
    ],
)
def test_one_file(api: Api, change: Any, name: str | None, form: str) -> None:
    cover = api.put(URL, {"cover": change(*files(api, form))}).data["cover"]
    assert (cover and cover["name"]) == name


def files(api: Api, form: str) -> list[Any]:
    """Return the three files in one of the forms in which a request body may name them."""
    found = sorted(api.get("/api/upload/files").body, key=lambda file: str(file["name"]))
    forms = {
        "id": lambda file: file["id"],
        "documentId": lambda file: file["documentId"],
        "object": lambda file: {"id": file["id"]},
        "whole": lambda file: file,
    }
    return [forms[form](file) for file in found]


def test_files_that_are_not_there(api: Api) -> None:
    before = page(api)
    for value in ([5], {"connect": [5]}, {"set": ["x"]}, {"id": 5}):
        assert api.put(URL, {"pictures": value}).error["details"]["errors"][0]["path"] == ["pictures"]
    error = api.put(URL, {"pictures": {"zzz": [5]}}).error
    assert error["message"] == "Invalid key zzz at pictures"
    assert api.put(URL, {"pictures": {"disconnect": [5]}}).status == 200
    assert page(api) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", 'title = "One" # kept\r\n\r\n[other]\r\nx = 1\r\n'),
        ("a.md", "---\ntitle: One # kept\n---\n\nText\n"),
        ("a.yaml", "title: One # kept\n"),
        ("a.json", '{ "title": "One" }\n'),
    ],
)
def test_a_byte_order_mark_stays(tmp_path: Path, name: str, text: str) -> None:
    path = f"content/notes/{name}"
    data = b"\xef\xbb\xbf" + text.encode()
    api = make(
        tmp_path,
        {"content-types/note.json": schema("note", {"title": "string", "body": "richtext"}), path: data},
    )
    assert api.put("/api/notes/a", {"title": "Two"}).status == 200
    written = (tmp_path / path).read_bytes()
    assert written.startswith(data[: data.index(b"One")] + b"Two")
    assert written.count(b"\xef\xbb\xbf") == 1


@pytest.mark.parametrize("drafts", [False, True])
@pytest.mark.parametrize(
    "written", ["2024-05-01T10:00:00+02:00", "2024-05-01", "'2024-05-01 08:00'", "2024-05-01T08:00:00Z"]
)
def test_a_timestamp_stays_as_it_is_written(tmp_path: Path, written: str, drafts: bool) -> None:
    path = tmp_path / "content/notes/a.md"
    text = f"---\ntitle: One\ncreatedAt: {written} # then\n---\n"
    type_ = schema("note", {"title": "string", "at": "datetime"}, drafts=drafts)
    api = make(tmp_path, {"content-types/note.json": type_, "content/notes/a.md": text})
    before = api.get("/api/notes/a").data["createdAt"]
    assert api.put("/api/notes/a", {"title": "Two"}).data["createdAt"] == before
    assert f"createdAt: {written} # then\n" in path.read_text()
    if drafts:
        assert api.put("/api/notes/a?status=draft", {"title": "Three"}).data["createdAt"] == before
        assert f"createdAt: {written} # then\n" in path.with_name("a.draft.md").read_text()
        assert api.put("/api/notes/a", {"title": "Four"}).data["createdAt"] == before
        assert f"createdAt: {written} # then\n" in path.read_text()


DANGLING = """title: x
author: nobody
tags:
  - red
  - missing
cover: lost.png
pictures:
  - lost.png
seo:
  author: nobody
"""


def test_what_points_to_nothing_stays_in_the_file_when_what_was_read_is_sent_back(tmp_path: Path) -> None:
    attributes = {
        "title": STRING,
        "author": relation("manyToOne", "tag"),
        "tags": relation("manyToMany", "tag"),
        "cover": {"type": "media"},
        "pictures": {"type": "media", "multiple": True},
        "seo": {"type": "component", "component": "x.by"},
    }
    files = {
        **collection("note", attributes),
        **collection("tag", {"name": STRING}),
        **component("x.by", {"author": relation("oneToOne", "tag")}),
        "content/tags/red.yaml": "name: Red\n",
        "content/tags/blue.yaml": "name: Blue\n",
        "content/notes/one.yaml": DANGLING,
    }
    api = make(tmp_path, files)
    read = api.get("/api/notes/one?populate[seo][populate]=*&populate[tags]=*&populate[author]=*").data
    assert ([tag["documentId"] for tag in read["tags"]], read["author"]) == (["red"], None)
    read |= {"cover": None, "pictures": None}
    sent = {name: value for name, value in read.items() if name in attributes}
    assert api.put("/api/notes/one", sent).status == 200
    assert api.read("content/notes/one.yaml") == DANGLING
    assert api.put("/api/notes/one", {**sent, "title": "y"}).status == 200
    assert api.read("content/notes/one.yaml").startswith(DANGLING.replace("x", "'y'", 1))
    assert api.put("/api/notes/one", {"tags": ["red", "blue"]}).status == 200
    assert "tags:\n  - red\n  - blue\n" in api.read("content/notes/one.yaml")


@pytest.mark.parametrize("fields", ["documentId", "title", "title,locale", ""])
def test_relations_in_all_locales_are_kept_when_they_are_sent_back(make_api: MakeApi, fields: str) -> None:
    page = "---\ntitle: T\nauthor: ann\n---\n"
    api = make_api({**FILES, "content/pages/two.md": page, "content/pages/two.fr.md": page})
    query = f"populate[pages][fields]={fields}" if fields else "populate=pages"
    pages = api.get(f"/api/authors/ann?{query}").data["pages"]
    assert [page["documentId"] for page in pages].count("two") == 2
    api.put("/api/authors/ann", {"pages": pages})
    for path in ("two.md", "two.fr.md"):
        assert "author: ann" in api.read(f"content/pages/{path}")
