"""Tests of cache tags: a response has the tag of everything that can change the response."""

import json
import random
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.events.recorder import Recorder
from server.query.queryable_attributes import target_of, targets_of
from server.schema.model import SITE_TAG, UPLOAD, Attribute, Schema, Type
from tests.conftest import MakeApi
from tests.examples import examples
from tests.sites import Answer, Api, bracketed, collection, component, make, relation, schema, translated

STRING = {"type": "string"}
MEDIA = {"type": "media", "multiple": False}
SCHEMAS = {
    **collection(
        "article",
        {
            "title": translated(STRING),
            "author": relation("manyToOne", "author", inversedBy="articles"),
            "tags": relation("manyToMany", "tag", inversedBy="articles"),
            "related": relation("oneToMany", "article"),
            "about": {"type": "relation", "relation": "morphToOne"},
            "cover": MEDIA,
            "card": {"type": "component", "component": "shared.card"},
            "blocks": {"type": "dynamiczone", "components": ["shared.card", "shared.quote"]},
        },
        drafts=True,
        localized=True,
    ),
    **collection(
        "author",
        {
            "name": "string",
            "articles": relation("oneToMany", "article", mappedBy="author"),
            "told": relation("morphMany", "article", morphBy="about"),
            "portrait": MEDIA,
        },
    ),
    **collection("tag", {"name": "string", "articles": relation("manyToMany", "article", mappedBy="tags")}),
    "content-types/home.json": schema(
        "home", {"title": "string", "featured": relation("oneToMany", "article")}, single=True
    ),
    **component("shared.card", {"label": STRING, "author": relation("manyToOne", "author"), "image": MEDIA}),
    **component("shared.quote", {"text": STRING, "sources": relation("oneToMany", "tag")}),
}
SITE_YAML = """
locales: {available: [en, de]}
api: {cache_tags: true, populate_with_pagination: allow}
roles: {public: {article: [find, findOne], author: [find, findOne], home: [find], upload: [find, findOne]}}
"""


def tags(answer: Answer) -> set[str]:
    """Return a response's cache tags, except the tag that all responses have."""
    assert answer.status == 200, answer.body
    found = set(answer.headers["Cache-Tag"].split(", "))
    assert SITE_TAG in found
    return found - {SITE_TAG}


# --- tags of responses ----------------------------------------------------------------------------

FILES = {
    **SCHEMAS,
    "site.yaml": SITE_YAML,
    "content/articles/a.json": json.dumps(
        {"title": "A", "author": "ida", "tags": ["fog", "none"], "cover": "a.txt", "card": {"author": "nell"}}
    ),
    "content/articles/a.de.json": '{"title": "Ah", "author": "nell"}',
    "content/articles/b.json": '{"title": "B"}',
    "content/articles/secret.draft.json": '{"title": "Secret"}',
    "content/authors/ida.json": '{"name": "Ida", "portrait": "ida.txt"}',
    "content/authors/nell.json": '{"name": "Nell"}',
    "content/tags/fog.json": '{"name": "Fog"}',
    "content/tags/grün.json": '{"name": "Grün"}',
    "content/home.json": '{"title": "Home", "featured": ["a", "secret"]}',
    "content/uploads/a.txt": "a",
    "content/uploads/ida.txt": "ida",
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return make(tmp_path_factory.mktemp("tags"), FILES)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/articles", {"article"}),
        ("/api/articles?fields=title", {"article"}),
        ("/api/articles?populate=author.portrait", {"article", "author", "upload"}),
        ("/api/articles?filters[author][name]=Ida", {"article", "author"}),
        ("/api/articles?filters[tags][$null]=true", {"article", "tag"}),
        ("/api/articles?sort=card.author.name", {"article", "author"}),
        ("/api/articles/a", {"article:a"}),
        ("/api/articles/a?populate=localizations", {"article:a"}),
        ("/api/articles/a?populate[localizations][populate]=author", {"article:a", "author:nell"}),
        ("/api/articles/a?populate=author", {"article:a", "author:ida"}),
        ("/api/articles/a?populate=author.portrait", {"article:a", "author:ida", "upload:ida.txt"}),
        ("/api/articles/a?populate=cover", {"article:a", "upload:a.txt"}),
        ("/api/articles/a?populate=card.author", {"article:a", "author:nell"}),
        ("/api/articles/a?populate=author.articles", {"article", "author:ida"}),
        ("/api/articles/a?populate=tags", {"article:a", "tag"}),  # One of the related tags does not exist.
        (
            "/api/articles/a?populate[author][filters][articles][title]=A",
            {"article", "author:ida"},
        ),
        ("/api/articles/b?populate=author", {"article:b"}),
        ("/api/tags/gr%C3%BCn", {"tag:gr%C3%BCn"}),
        ("/api/authors/ida?populate=articles", {"article", "author:ida"}),
        ("/api/authors/ida?populate[told][count]=true", {"article", "author:ida"}),
        ("/api/home", {"home"}),
        ("/api/home?populate=featured&status=draft", {"home", "article:a", "article:secret"}),
        ("/api/home?populate=featured", {"home", "article"}),
        ("/api/upload/files", {"upload"}),
        ("/api/upload/files/page?populate=related", {"upload", "article", "author"}),
        ("/api/upload/files/a.txt", {"upload:a.txt"}),
        ("/uploads/a.txt", {"upload:a.txt"}),
        ("/search?q=fog", {"article", "author", "home", "tag"}),
    ],
)
def test_an_answer_names_what_it_was_made_of(api: Api, path: str, expected: set[str]) -> None:
    assert tags(api.get(path)) == expected


def test_no_tag_tells_the_id_of_what_may_not_be_seen(api: Api) -> None:
    assert tags(api.get("/api/home?populate=featured", "public")) == {"home", "article"}
    assert tags(api.get("/api/articles/a?populate=tags", "public")) == {"article:a"}
    assert tags(api.get("/search?q=fog", "public")) == {"article", "author", "home"}


def test_no_tag_names_a_type_that_may_not_be_seen(make_api: MakeApi) -> None:
    """The content of the type `tag` is hidden from the public."""
    more = (
        "urls: {article: 'https://example.org/{title}', tag: 'https://example.org/tags/{name}'}\n"
        "feeds: {all: {type: article}}\nllms: {enabled: true}\n"
    )
    api = make_api({**FILES, "site.yaml": SITE_YAML + more})
    for path in ("/feeds/all.json", "/sitemap.xml", "/llms.txt"):
        for who in ("public", "full"):
            assert tags(api.get(path, who)) == {"article", "author", "home"}, path
    api.token("media", may=["upload.find", "upload.findOne", "upload.destroy", "article.find"])
    for path in ("/api/upload/files/page?unused=true", "/api/upload/files/a.txt/usage"):
        answer = api.get(path, "media")
        assert tags(answer) == {"article", "upload"}, path
        # Hidden documents can change the response too, so shared caches must not keep it.
        assert answer.headers["Cache-Control"] == "private, no-cache"
        assert tags(api.get(path)) == {"article", "author", "home", "tag", "upload"}


@pytest.mark.parametrize("path", ["/api/articles", "/api/articles/a?populate=*", "/uploads/a.txt"])
def test_what_is_known_already_is_answered_with_the_tags(api: Api, path: str) -> None:
    first = api.get(path)
    again = api.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert again.status == 304
    assert again.headers["Cache-Tag"] == first.headers["Cache-Tag"]
    assert "Cache-Tag" in first.headers["Access-Control-Expose-Headers"]


@pytest.mark.parametrize("path", ["/api/articles/none", "/api/i18n/locales", "/openapi.json", "/"])
def test_what_is_not_made_of_content_has_no_tags(api: Api, path: str) -> None:
    assert "Cache-Tag" not in api.get(path).headers


def test_a_document_of_very_many_others_has_the_tags_of_types(make_api: MakeApi) -> None:
    names = [f"{i:04}-{'x' * 20}" for i in range(200)]
    many = {
        **FILES,
        **{f"content/tags/{name}.json": "{}" for name in names},
        "content/articles/many.json": json.dumps({"author": "ida", "tags": names}),
    }
    api = make_api(many)
    assert tags(api.get("/api/articles/many?populate=tags,author")) == {"article", "author", "tag"}
    assert tags(api.get("/api/articles/many?populate=author")) == {"article:many", "author:ida"}


def test_answers_have_no_tags_unless_the_site_asks_for_them(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": "roles: {public: {article: [find]}}\n"})
    for path in ("/api/articles", "/api/articles/a", "/uploads/a.txt", "/api/upload/files", "/search?q=a"):
        assert "Cache-Tag" not in api.get(path).headers


# --- every change has a tag -----------------------------------------------------------------------

IDS = {"article": ["a", "b", "c"], "author": ["ida", "nell"], "tag": ["fog", "rain"], "home": ["home"]}
NAMES = ["a.txt", "ida.txt"]
DATES = dict.fromkeys(("createdAt", "updatedAt"), "2026-01-01T00:00:00Z")
TIMESTAMPS = re.compile(rb'"(?:created|updated|published)At":"[^"]*"')


class Chance:
    """Generator of random documents, changes and queries. The same seed generates the same sequence."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def is_so(self, likely: float = 0.5) -> bool:
        """Return True with the given probability."""
        return self.random.random() < likely

    def some(self, values: list[Any]) -> list[Any]:
        """Return a random selection of the values in random order."""
        return self.random.sample(values, self.random.randint(0, len(values)))

    def maybe(self, value: Any) -> Any:
        """Return the value or None, each with a probability of one half."""
        return value if self.is_so() else None

    # Documents

    def file(self) -> tuple[str, str | None]:
        """Return a random path and the file's new content, or None if the file is to be deleted."""
        kind = self.pick(["article", "article", "article", "author", "tag", "home", "upload"])
        if kind == "upload":
            return f"content/uploads/{self.pick(NAMES)}", self.maybe(self.word() * self.pick([1, 2000]))
        name = self.pick(IDS[kind])
        if kind == "article":
            ending = self.pick(["", "", ".de", ".draft", ".de.draft"])
            return f"content/articles/{name}{ending}.json", self.maybe(json.dumps(self.article()))
        if kind == "home":
            text = json.dumps({**DATES, "title": self.word(), "featured": self.some(IDS["article"])})
            return "content/home.json", self.maybe(text)
        made = {**DATES, "name": self.word(), "portrait": self.maybe(self.pick(NAMES))}
        return f"content/{kind}s/{name}.json", self.maybe(json.dumps(made))

    def schema(self) -> tuple[str, str]:
        """Return the schema of authors with or without the attribute `portrait`."""
        path = "content-types/author.json"
        described = json.loads(SCHEMAS[path])
        if self.is_so():
            del described["attributes"]["portrait"]
        return path, json.dumps(described)

    def word(self) -> str:
        return self.pick(["Ebb", "Fog", "Gull"])

    def card(self) -> dict[str, Any]:
        author, image = self.maybe(self.pick(IDS["author"])), self.maybe(self.pick(NAMES))
        return {"label": self.word(), "author": author, "image": image}

    def article(self) -> dict[str, Any]:
        about = self.pick(["author", "tag", "article"])
        quote = {"__component": "shared.quote", "text": self.word(), "sources": self.some(IDS["tag"])}
        return {
            **DATES,
            "title": self.word(),
            "author": self.maybe(self.pick(IDS["author"])),
            "tags": self.some(IDS["tag"]),
            "related": self.some(IDS["article"]),
            "about": self.maybe({"__type": f"api::{about}.{about}", "documentId": self.pick(IDS[about])}),
            "cover": self.maybe(self.pick(NAMES)),
            "card": self.maybe(self.card()),
            "blocks": self.some([{"__component": "shared.card", **self.card()}, quote]),
        }

    # Queries

    def query(self, schema: Schema) -> tuple[str, str, dict[str, str]]:
        """Return a path with a query string, the name of the caller, and the request headers."""
        kind = self.pick(["article", "article", "author", "tag", "home", "upload"])
        type_ = schema.types[UPLOAD if kind == "upload" else f"api::{kind}.{kind}"]
        path = {"home": "/api/home", "upload": "/api/upload/files"}.get(kind, f"/api/{kind}s")
        if kind != "home" and self.is_so():
            path += "/" + self.pick(IDS.get(kind, NAMES))
        params = self.selection(schema, type_, 3)
        if self.is_so(0.3):
            params["locale"] = self.pick(["de", "*"])
        if self.is_so(0.3):
            params["status"] = "draft"
        who = self.pick(["full", "full", "public"])
        headers = {"Strapi-Response-Format": "v4"} if self.is_so(0.2) else {}
        return f"{path}?{bracketed(params)}", who, headers

    def selection(self, schema: Schema, type_: Type, levels: int) -> dict[str, Any]:
        """Return random parameters for one level of a query: filters, sort key and populate."""
        found: dict[str, Any] = {}
        if self.is_so(0.3):
            found["filters"] = self.filter(schema, type_, 2)
        if self.is_so(0.2):
            found["sort"] = self.path(schema, type_, 2)
        if levels and type_.populatable and self.is_so(0.8):
            names = self.random.sample(
                type_.populatable, min(self.pick([0, 1, 1, 1, 3]), len(type_.populatable))
            )
            found["populate"] = {n: self.node(schema, type_.attributes.get(n), levels) for n in names} or "*"
        return found

    def node(self, schema: Schema, attribute: Attribute | None, levels: int) -> Any:
        """Return a random populate value for one attribute."""
        if attribute is None or self.is_so(0.2):
            return "true"
        if attribute.type == "dynamiczone" or attribute.polymorphic:
            inner = {t.uid: self.selection(schema, t, levels - 1) for t in targets_of(schema, attribute)}
            return {"on": {uid: selection or "true" for uid, selection in inner.items()}}
        target = target_of(schema, attribute)
        if target is None or self.is_so(0.1):
            return {"count": "true"}
        return self.selection(schema, target, levels - 1) or "true"

    def further(self, schema: Schema, type_: Type) -> list[tuple[str, Type]]:
        """Return the names and target types of all attributes that refer to another type."""
        found = ((n, target_of(schema, a)) for n, a in type_.attributes.items() if a.type != "dynamiczone")
        return [(name, target) for name, target in found if target is not None]

    def filter(self, schema: Schema, type_: Type, levels: int) -> dict[str, Any]:
        """Return a filter on a value of the type itself or on a related document."""
        further = self.further(schema, type_)
        if levels and further and self.is_so(0.7):
            name, target = self.pick(further)
            if self.is_so(0.3):
                return {name: {"$null": self.pick(["true", "false"])}}
            return {name: self.filter(schema, target, levels - 1)}
        return {self.text(type_): {self.pick(["$eq", "$ne", "$gt"]): self.word()}}

    def path(self, schema: Schema, type_: Type, levels: int) -> str:
        """Return a random sort key."""
        further = self.further(schema, type_)
        if levels and further and self.is_so(0.7):
            name, target = self.pick(further)
            return f"{name}.{self.path(schema, target, levels - 1)}"
        return self.text(type_)

    def text(self, type_: Type) -> str:
        """Return the name of a type's first string or text attribute."""
        return next(name for name, a in type_.attributes.items() if a.type in ("string", "text"))


def put(root: Path, path: str, text: str | None) -> None:
    """Write a file if its content has changed, or delete the file if the text is None."""
    file = root / path
    if text is None:
        file.unlink(missing_ok=True)
    elif not file.is_file() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def changed(api: Api, since: int) -> set[str]:
    """Return the tags of all events after the event with the number `since`."""
    return {tag for event in api.get(f"/events?since={since}&limit=1000").data for tag in event["tags"]}


def ask(api: Api, queries: list[tuple[str, str, Mapping[str, str]]]) -> list[Answer]:
    return [api.get(path, who, headers=headers) for path, who, headers in queries]


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Api:
    """A site whose changes are recorded. If more than three documents change at once, they share
    one event.
    """
    settings_of_events = f"{SITE_YAML}events: {{bulk: 3}}\n"
    api = make(tmp_path_factory.mktemp("changing"), {**SCHEMAS, "site.yaml": settings_of_events})
    api.site.observe(Recorder(api.root))
    api.site.record()
    return api


@given(st.integers(0, 2**32))
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_change_has_a_tag_of_every_answer_that_it_changes(changing: Api, seed: int) -> None:
    """If a change alters a response, one of the change's events must have one of the response's tags."""
    api, chance = changing, Chance(seed)
    shutil.rmtree(api.root / "content", ignore_errors=True)
    put(api.root, "content-types/author.json", SCHEMAS["content-types/author.json"])
    for _ in range(10):
        put(api.root, *chance.file())
    api.site.refresh()
    queries = [chance.query(api.site.state.schema) for _ in range(20)]
    for _ in range(3):
        last, first = api.get("/events").body["meta"]["last"], ask(api, queries)
        for _ in range(chance.pick([1, 1, 1, 2, 8])):
            put(api.root, *(chance.file() if chance.is_so(0.95) else chance.schema()))
        api.site.refresh()
        of_change = changed(api, last)
        for query, old, new in zip(queries, first, ask(api, queries), strict=True):
            if old.status == 200 and (new.status, shown(new)) != (old.status, shown(old)):
                assert {*tags(old), SITE_TAG} & of_change, (query, tags(old), of_change)


def shown(answer: Answer) -> bytes:
    """Return the response body without timestamps, which can change although the rest of a file has not
    changed.
    """
    return TIMESTAMPS.sub(b"", answer.raw)
