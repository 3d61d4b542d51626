"""Callers who may write values that they may not read: the response to a write must not depend on these
values. Each request is sent to twin sites, which differ only in such values.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.sites import STRING, Answer, Api, collection, component, make, relation

Data = Mapping[str, Any]
PRIVATE = {**STRING, "private": True}
MORPH = {"type": "relation", "relation": "morphToMany"}
BOX = {"type": "component", "component": "x.box"}
REQUIRED = {**STRING, "required": True}
TYPES: Mapping[str, str] = {
    **component("x.inner", {"label": STRING, "code": PRIVATE}),
    **component(
        "x.box",
        {
            "label": REQUIRED,
            "code": PRIVATE,
            "tags": relation("manyToMany", "tag"),
            "ptags": relation("manyToMany", "tag", private=True),
            "pinner": {"type": "component", "component": "x.inner", "private": True},
        },
    ),
    **component("x.plain", {"label": STRING}),
    **component("x.link", {"label": STRING, "vault": relation("manyToOne", "vault")}),
    **collection("vault", {"title": STRING}),
    **collection(
        "tag",
        {
            "name": STRING,
            "posts": relation("manyToMany", "post", mappedBy="tags"),
            "parts": relation("manyToMany", "post", mappedBy="ptags", private=True),
        },
    ),
    **collection(
        "post",
        {
            "title": STRING,
            "lead": STRING,
            "secret": PRIVATE,
            "pin": {"type": "password"},
            "tags": relation("manyToMany", "tag", inversedBy="posts"),
            "ptags": relation("manyToMany", "tag", inversedBy="parts", private=True),
            "nexts": relation("manyToMany", "post"),
            "about": MORPH,
            "boxes": {**BOX, "repeatable": True},
            "plains": {"type": "component", "component": "x.plain", "repeatable": True},
            "links": {"type": "component", "component": "x.link", "repeatable": True},
            "pbox": {**BOX, "private": True},
            "pboxes": {**BOX, "repeatable": True, "private": True},
            "pzone": {"type": "dynamiczone", "components": ["x.box", "x.inner"], "private": True},
        },
        drafts=True,
    ),
}
TIMES = dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), "2024-02-29T10:20:30.000Z")
WRITER = [f"{name}.{action}" for name in ("tag", "post") for action in ("find", "findOne", "update")]
POST, DRAFT, TAG = "/api/posts/a?populate=*", "/api/posts/a?status=draft", "/api/tags/t2?populate=*"


def document(**values: object) -> str:
    return json.dumps({**values, **TIMES}, indent=1)


def files(other: bool) -> dict[str, str | bytes]:
    """Return the files of a twin site."""
    inner = {"label": "l", "code": "zwei" if other else "one"}
    ptags = ["t2"] if other else ["t1"]
    box = {"label": "l", "code": inner["code"], "tags": ["t1"], "ptags": ptags}
    private = {
        "secret": "zwei" if other else "one",
        "ptags": ptags,
        "about": [
            {"__type": "api::tag.tag", "documentId": "t1"},
            *([{"__type": "api::vault.vault", "documentId": "v1"}] if other else []),
        ],
        "boxes": [{**box, **({"pinner": inner} if other else {})}],
        "plains": [{"label": "l"}],
        "links": [{"label": "l", "vault": "v1" if other else "v0"}],
        "pbox": {**box, "tags": ptags} if other else None,
        "pboxes": [{**box, "tags": ptags}] * (3 if other else 1),
        "pzone": [{"__component": "x.inner" if other else "x.box", **inner}],
    }
    draft = {"tags": ["t2"] if other else ["t1"], "boxes": [{**box, "tags": ptags}] * (2 if other else 1)}
    return {
        **TYPES,
        **{f"content/tags/{t}.json": document(name=t) for t in ("t1", "t2", "t3")},
        **{f"content/vaults/{v}.json": document(title=v) for v in ("v0", *(["v1"] if other else []))},
        "content/posts/a.json": document(title="A", tags=["t1", "t2"], nexts=["b"], **private),
        "content/posts/a.draft.json": document(title="hidden", **{**private, **draft}),
        "content/posts/b.json": document(title="B", tags=["t1"], **private),
        "content/posts/c.json": document(title="C", tags=[], **private),
        "content/posts/c.draft.json": document(title="C", **{**private, "tags": ["t2"] if other else []}),
    }


@dataclass(frozen=True)
class Twins:
    """Two sites that differ only in values that "writer" may not read."""

    apis: tuple[Api, Api]

    def put(self, path: str, data: Data, who: str = "writer", **headers: str) -> Answer:
        """Send a request to both sites. The responses must be the same. Return the first one."""
        answers = [
            api.put(path, data, who, headers={n.replace("_", "-"): v for n, v in headers.items()})
            for api in self.apis
        ]
        first, second = (_plain(answer) for answer in answers)
        assert first == second
        assert "not connected" not in first
        return answers[0]


def _plain(answer: Answer) -> str:
    """Return a response without the time and the version, which identifies private values to writers."""
    text = re.sub(r"20(2[6-9]|[3-9]\d)-[\dT:.-]+Z", "<now>", answer.text)
    text = re.sub(r'"version":"[0-9a-f]{32}"', '"version":<version>', text)
    return f"{answer.status} {bool(answer.headers.get('ETag'))} {text}"


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    first, second = (make(tmp_path / str(other), files(other)) for other in (False, True))
    for api in (first, second):
        api.token("writer", may=WRITER)
        api.token("editor", may=[*WRITER, "post.readDraft", "source.read"])
    return Twins((first, second))


def place(target: str, other: str, **more: object) -> dict[str, Any]:
    return {"connect": [{"documentId": target, "position": {"after": other}, **more}]}


def stored(api: Api, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(api.read(f"content/{path}"))
    return found


# --- positions in relations -----------------------------------------------------------------------

_CYCLE = {
    "connect": [
        {"documentId": "t1", "position": {"after": "t2"}},
        {"documentId": "t2", "position": {"after": "t1"}},
    ]
}


@pytest.mark.parametrize("other", ["t1", "t2", "t3", "nope"])
@pytest.mark.parametrize(
    ("path", "name"),
    [(POST, "ptags"), (DRAFT, "ptags"), (DRAFT, "tags"), ("/api/posts/c?status=draft", "tags")],
)
def test_a_position_in_a_relation_that_one_may_not_read_tells_nothing(
    twins: Twins, path: str, name: str, other: str
) -> None:
    assert twins.put(path, {name: place("t3", other)}).status == (400 if other in ("t3", "nope") else 200)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (POST, {"ptags": _CYCLE}),
        (DRAFT, {"tags": _CYCLE}),
        (POST, {"pbox": {"label": "l", "tags": place("t3", "t1")}}),
        (POST, {"pboxes": [{"label": "l", "tags": place("t3", "t1"), "ptags": place("t3", "t2")}]}),
        (POST, {"pzone": [{"__component": "x.box", "label": "l", "tags": place("t3", "t1")}]}),
        (POST, {"boxes": [{"label": "l", "ptags": place("t3", "t1")}]}),
        (POST, {"tags": place("t3", "t1")}),  # The hidden draft of the second site lacks t1.
        (TAG, {"posts": place("b", "c")}),
        (TAG, {"parts": place("b", "a")}),
        (TAG, {"parts": place("c", "b")}),
    ],
)
def test_a_position_elsewhere_tells_nothing(twins: Twins, path: str, data: Data) -> None:
    assert twins.put(path, data).status == 200


def test_a_position_in_a_component_that_is_kept_tells_nothing(twins: Twins) -> None:
    first = twins.apis[0].get(POST, "writer").data["boxes"][0]["id"]
    for name, status in (("ptags", ""), ("ptags", "&status=draft"), ("tags", "&status=draft")):
        for other in ("t1", "t2"):
            data = {"boxes": [{"id": first, "label": "l", name: place("t3", other)}]}
            assert twins.put(POST + status, data).status == 200
    readable = {"boxes": [{"id": first, "label": "l", "tags": place("t3", "t1")}]}
    assert twins.put(POST, readable).status == 200


def test_a_neighbour_of_a_hidden_type_tells_nothing(twins: Twins) -> None:
    for other in ("v0", "v1", "nope", 5):
        neighbour = {"after": other, "__type": "api::vault.vault"}
        connect = [{"__type": "api::tag.tag", "documentId": "t3", "position": neighbour}]
        assert twins.put(POST, {"about": {"connect": connect}}).status == 400


def test_a_position_is_applied_if_the_neighbour_is_there_and_ignored_otherwise(twins: Twins) -> None:
    first, second = twins.apis
    twins.put(POST, {"ptags": {"connect": ["t3"]}})
    connect = [
        {"documentId": "t2", "position": {"before": "t1"}},
        {"documentId": "t1", "position": {"before": "t3"}},
    ]
    twins.put(POST, {"ptags": {"connect": connect}})
    assert stored(first, "posts/a.json")["ptags"] == ["t2", "t1", "t3"]
    assert stored(second, "posts/a.json")["ptags"] == ["t2", "t1", "t3"]
    twins.put(POST, {"ptags": ["t3"]})
    twins.put(POST, {"ptags": _CYCLE})
    assert stored(first, "posts/a.json")["ptags"] == ["t3", "t1", "t2"]


def test_who_may_read_the_relation_is_told(twins: Twins) -> None:
    [api, _] = twins.apis
    for who in ("editor", "full"):
        for path, data in (
            (POST, {"ptags": place("t3", "t2")}),
            (DRAFT, {"tags": place("t3", "t2")}),
            (TAG, {"posts": place("b", "c")}),
            (TAG, {"posts": {"connect": place("b", "c")["connect"] + place("c", "b")["connect"]}}),
        ):
            assert api.put(path, data, who).status == 400, (who, path, data)
    refused = api.put("/api/posts/b", {"tags": place("t3", "t2")}, "writer")
    assert "not connected" in refused.error["message"]


# --- ids of components ----------------------------------------------------------------------------


def ids(api: Api, name: str, status: str) -> list[int]:
    """Return the ids of the components in an attribute, as one can compute them."""
    type_ = api.site.state.schema.endpoints["posts"]
    found = api.site.state.snapshot.get(type_, "a", "en", status)
    assert found is not None
    value = found.get(name)
    return [one.id for one in (value if isinstance(value, tuple) else (value,)) if one is not None]


@pytest.mark.parametrize("status", ["published", "draft"])
@pytest.mark.parametrize("name", ["pbox", "pboxes", "pzone", "boxes"])
@pytest.mark.parametrize("label", [{"label": "new"}, {}])
def test_the_id_of_a_component_that_one_may_not_read_tells_nothing(
    twins: Twins, name: str, status: str, label: Data
) -> None:
    known = {one for api in twins.apis for one in ids(api, name, status)} | {17}
    if name == "boxes" and status == "published":
        return  # The writer may read it.
    for number in known:
        for uid in ("x.box", "x.inner") if name == "pzone" else ("x.box",):
            item: dict[str, Any] = {
                "id": number,
                **label,
                **({"__component": uid} if name == "pzone" else {}),
            }
            for data in [item] if name == "pbox" else [[item], [item, item]]:
                twins.put(f"/api/posts/a?status={status}", {name: data, "title": "x"})


def test_the_id_of_a_private_component_inside_another_tells_nothing(twins: Twins) -> None:
    [first, second] = twins.apis
    box = ids(first, "boxes", "published")
    type_ = second.site.state.schema.endpoints["posts"]
    found = second.site.state.snapshot.get(type_, "a", "en", "published")
    assert found is not None
    inner = next(value.id for value in found.get("boxes")[0].values if getattr(value, "id", None))
    for number in (inner, 17):
        data = {"boxes": [{"id": box[0], "label": "l", "pinner": {"id": number, "label": "new"}}]}
        assert twins.put(POST, data).status == 200


def test_an_unknown_id_is_a_new_component_and_a_known_one_of_a_draft_is_kept(twins: Twins) -> None:
    [api, _] = twins.apis
    [known] = ids(api, "boxes", "draft")
    assert (
        twins.put(DRAFT, {"boxes": [{"id": known, "label": "new"}, {"id": 17, "label": "17"}]}).status == 200
    )
    [kept, new] = stored(api, "posts/a.draft.json")["boxes"]
    assert (kept["label"], kept["code"], new["label"], new.get("code")) == ("new", "one", "17", None)


def test_who_may_read_the_components_is_told_of_an_unknown_id(twins: Twins) -> None:
    [api, _] = twins.apis
    for name in ("boxes", "pboxes"):
        refused = api.put(POST, {name: [{"id": 17, "label": "x"}]}, "editor")
        assert "not related to the entity" in refused.error["message"]
    refused = api.put(POST, {"boxes": [{"id": 17, "label": "x"}]}, "writer")
    assert "not related to the entity" in refused.error["message"]


# --- merges ---------------------------------------------------------------------------------------


def change(twins: Twins, path: str = "posts/b.json", **values: object) -> None:
    """Change a document by hand. The second site gets a different value for each private attribute."""
    for number, api in enumerate(twins.apis):
        edited = {**stored(api, path), **values}
        if number:
            edited |= {"secret": "other", "ptags": ["t3"], "pin": "other", "pboxes": []}
            edited["boxes"] = [{**box, "code": "other"} for box in edited["boxes"]]
            edited["links"] = [{**link, "vault": "v0"} for link in edited["links"]]
            edited["about"] = [*edited["about"][:1], {"__type": "api::vault.vault", "documentId": "v2"}]
        (api.root / "content" / path).write_text(json.dumps(edited, indent=1))
        api.site.refresh()


def merged(twins: Twins, path: str, tags: list[str], data: Data, prefer: str = "merge") -> list[Answer]:
    headers = [{"If-Match": tag, **({"Prefer": prefer} if prefer else {})} for tag in tags]
    return [
        api.put(path, data, "writer", headers=each) for api, each in zip(twins.apis, headers, strict=True)
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"secret": "guess"},
        {"secret": "one"},
        {"secret": "other"},
        {"title": "New", "secret": "zwei"},
        {"ptags": ["t3"]},
        {"ptags": {"connect": ["t3"]}},
        {"pin": "a password"},
        {"pboxes": []},
        {"boxes": []},
        {"boxes": [{"label": "l", "code": "other"}]},
        {"boxes": [{"label": "new"}]},
        {"links": []},
        {"links": [{"label": "new"}]},
        {"about": []},
        {"about": [{"__type": "api::tag.tag", "documentId": "t2"}]},
    ],
)
def test_what_one_may_not_read_is_not_merged(twins: Twins, data: Data) -> None:
    path = "/api/posts/b"
    tags = [api.get(path, "writer").headers["ETag"] for api in twins.apis]
    change(twins, lead="theirs")
    expected = merged(twins, path, tags, data, "")
    found = merged(twins, path, tags, data)
    assert [answer.status for answer in found] == [412, 412]
    assert [answer.text for answer in found] == [answer.text for answer in expected]
    assert len({_plain(answer) for answer in found}) == 1
    batch = {"method": "PUT", "path": path, "body": {"data": data}, "prefer": "merge"}
    for api, tag in zip(twins.apis, tags, strict=True):
        answer = api.ask("POST", "/batch", "writer", json={"operations": [{**batch, "ifMatch": tag}]})
        assert (answer.status, answer.error["details"].keys()) == (412, {"operation", "version"})


def test_what_one_may_read_is_merged_beside_it(twins: Twins) -> None:
    tags = [api.get("/api/posts/b", "writer").headers["ETag"] for api in twins.apis]
    change(twins, lead="theirs")
    for data in ({"title": "Ours"}, {"lead": "ours"}, {"plains": [{"label": "ours"}]}, {"tags": ["t3"]}):
        found = merged(twins, "/api/posts/b?fields=title,lead", tags, data)
        assert len({_plain(answer) for answer in found}) == 1
        assert found[0].status == (412 if "lead" in data else 200)


def test_a_draft_that_one_may_not_read_is_not_merged(twins: Twins) -> None:
    tags = [api.get("/api/posts/a?status=draft").headers["ETag"] for api in twins.apis]
    change(twins, "posts/a.draft.json", title="theirs")
    found = merged(twins, DRAFT, tags, {"lead": "ours"})
    assert len({_plain(answer) for answer in found}) == 1
    assert (found[0].status, found[0].error["details"]) == (412, {})


def test_private_values_are_merged_for_those_who_may_read_them(twins: Twins) -> None:
    [api, _] = twins.apis
    tag = api.get("/api/posts/b", "editor").headers["ETag"]
    change(twins, lead="theirs")
    headers = {"If-Match": tag, "Prefer": "merge"}
    assert api.put("/api/posts/b", {"secret": "ours"}, "editor", headers=headers).status == 200
