"""Tests of the invisible marks in responses, which tell a preview where each text comes from
(docs/preview.md).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.api.source_maps import DIGITS, HEADER, encode_mark
from tests.clients.source_maps.site import FILES, POPULATE
from tests.sites import Answer, Api, bracketed, make, write

MARKS = {HEADER: "true"}
RELATED = "/api/posts/a?populate[author][populate]=seo"


def split(text: str) -> tuple[str, str]:
    """Return a text without its mark, and the query string in the mark. The query string is empty if there is
    no mark.
    """
    plain = text.rstrip(DIGITS)
    mark = text[len(plain) :]
    if not mark:
        return plain, ""
    assert mark.startswith(DIGITS[0] * 4)
    codes = [mark[at : at + 4] for at in range(4, len(mark), 4)]
    told = "".join(chr(int("".join(str(DIGITS.index(digit)) for digit in code), 4)) for code in codes)
    return plain, json.loads(told)["strapiSource"]


def sources(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each marked string in a JSON value, and the source in its mark."""
    if isinstance(value, str) and split(value)[1]:
        yield at, split(value)[1]
    elif isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from sources(inner, f"{at}.{name}".lstrip("."))


def plain(value: Any) -> Any:
    """Return a JSON value without marks."""
    return json.loads("".join(c for c in json.dumps(value, ensure_ascii=False) if c not in DIGITS))


def ask(api: Api, path: str, who: str = "full", **headers: str) -> Answer:
    return api.get(path, who, headers={**MARKS, **headers})


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(
    st.dictionaries(st.sampled_from(["documentId", "type", "path", "locale"]), NAMES, min_size=1), st.text()
)
def test_a_mark_is_read_back_as_it_was_written(source: dict[str, str], text: str) -> None:
    text = text.rstrip(DIGITS)
    found, told = split(text + encode_mark(source))
    assert found == text
    assert parse_qsl(told, strict_parsing=True, encoding="utf-8") == list(source.items())


def test_a_mark_is_what_the_reference_makes_of_the_same_source() -> None:
    source = {"documentId": "a b", "type": "string", "path": "zone.0.title", "model": "", "locale": "en"}
    mark = encode_mark(source)
    assert mark[:24] == "\u200b" * 4 + "\u200c\ufeff\u200d\ufeff" + "\u200b\u200d\u200b\u200d" + (
        "\u200c\ufeff\u200b\ufeff" "\u200c\ufeff\u200c\u200b" "\u200c\ufeff\u200b\u200d"
    )  # fmt: skip
    assert split(mark)[1] == "documentId=a+b&type=string&path=zone.0.title&locale=en"


def test_texts_say_where_they_come_from(api: Api) -> None:
    answer = ask(api, "/api/posts/a?" + bracketed({"populate": POPULATE}))
    told = dict(sources(answer.data))
    head, tail = "documentId=a&type=", "&model=api%3A%3Apost.post&kind=collectionType&locale=en"
    for name in ("string", "text", "richtext", "email", "biginteger", "date", "time", "datetime", "json"):
        assert told.pop(name) == f"{head}{name}&path={name}{tail}"
    assert told["kind"] == f"{head}enumeration&path=kind{tail}"
    inner = "&model=shared.seo&locale=en"
    assert told["seo.title"] == f"{head}string&path=seo.title{inner}"
    assert told["many.1.title"] == f"{head}string&path=many.1.title{inner}"
    assert told["zone.0.title"] == f"{head}string&path=zone.0.title{inner}"
    assert told["zone.1.seo.title"] == f"{head}string&path=zone.1.seo.title{inner}"
    block = f"{head}blocks&path=blocks{tail}&fieldPath=blocks"
    assert {at for at in told if at.startswith("blocks.")} == {
        "blocks.0.children.0.text", "blocks.1.children.0.children.0.text", "blocks.3.children.0.text",
        "blocks.4.children.0.children.0.text", "blocks.4.children.1.children.0.children.0.text",
        "blocks.5.image.alternativeText",
    }  # fmt: skip
    assert {source for at, source in told.items() if at.startswith("blocks.")} == {block}
    file = "&model=plugin%3A%3Aupload.file&kind=collectionType&locale=en"
    assert told["cover.alternativeText"] == f"{head}text&path=cover.alternativeText{file}"
    assert told["pictures.1.name"] == f"{head}string&path=pictures.name{file}"
    assert told["zone.0.cover.name"] == f"{head}string&path=zone.0.cover.name{file}"
    names = {at.rpartition(".")[2] for at in told}
    assert not names & {
        "id",
        "documentId",
        "locale",
        "slug",
        "createdAt",
        "publishedAt",
        "url",
        "mime",
        "hash",
    }


def test_answers_are_the_same_but_for_their_marks(api: Api) -> None:
    for path in ("/api/posts", "/api/posts/a", "/api/posts?status=draft&locale=fr", "/api/home"):
        shown = path + ("&" if "?" in path else "?") + bracketed({"populate": "*"})
        answer = ask(api, shown)
        assert plain(answer.body) == api.get(shown).body
        assert list(sources(answer.data)), path
    number = b'"number":1.10000000000000000001,'  # which no float can represent exactly
    assert number in api.get("/api/posts/a").raw
    assert number in ask(api, "/api/posts/a").raw


def test_documents_of_relations_are_their_own_source(api: Api) -> None:
    told = dict(sources(ask(api, RELATED).data["author"]))
    name, title = "documentId=ann&type=string&path=name", "documentId=ann&type=string&path=seo.title"
    assert told == {
        "name": f"{name}&model=api%3A%3Aauthor.author&kind=collectionType&locale=en",
        "seo.title": f"{title}&model=shared.seo&locale=en",
    }


def test_only_those_who_see_drafts_are_shown_marks(api: Api) -> None:
    api.token("reader", "read-only")
    api.token("other", may=["post.find", "post.findOne", "author.find", "author.readDraft"])
    unmarked = api.get(RELATED, "public")
    assert list(sources(ask(api, RELATED, "reader").data))
    for who in ("other", "public"):
        answer = ask(api, RELATED, who)
        assert list(sources(answer.data)) == []
        assert "no-store" not in answer.headers["Cache-Control"]
    assert ask(api, RELATED, "public").raw == unmarked.raw


@pytest.mark.parametrize("headers", [{HEADER: "false"}, {HEADER: "1"}, {"Strapi-Response-Format": "v4"}])
def test_there_are_no_marks_where_they_are_not_asked_for(api: Api, headers: dict[str, str]) -> None:
    answer = ask(api, "/api/posts/a", **headers)
    assert list(sources(answer.body)) == []
    assert "no-store" not in answer.headers["Cache-Control"]


def test_answers_with_marks_are_not_kept_anywhere(api: Api) -> None:
    for _ in range(2):
        before, marked, after = api.get(RELATED), ask(api, RELATED), api.get(RELATED)
        assert marked.headers["Cache-Control"] == "no-store"
        assert HEADER in marked.headers["Vary"]
        assert HEADER in before.headers["Vary"]
        assert before.raw == after.raw != marked.raw
    assert ask(api, RELATED, **{"If-None-Match": before.headers["ETag"]}).status == 200


def test_attributes_that_pages_use_as_addresses_can_be_left_without_marks(tmp_path: Path) -> None:
    unmarked = "{url: /x, unmarked: [string, many.title, zone.text, cover, seo.cover.name]}"
    settings = f"preview: {{post: {unmarked}, author: {{url: /x, unmarked: name}}}}\n"
    api = make(tmp_path, {**FILES, "site.yaml": settings + str(FILES["site.yaml"])})
    told = dict(sources(ask(api, "/api/posts/a?" + bracketed({"populate": POPULATE})).data))
    left = {
        "string",
        "many.0.title",
        "many.1.title",
        "zone.1.text",
        "cover.name",
        "author.name",
        "seo.cover.name",
    }
    assert not left & set(told)
    assert {"text", "zone.0.title", "zone.0.cover.name", "author.seo.title", "seo.pictures.0.name"} <= set(
        told
    )


ADDRESSES = ["https://example.org/a", "/a/b", "#part", "mailto:ann@example.org", "/"]


@pytest.mark.parametrize("text", [*ADDRESSES, "http is a protocol", "and/or", "# Heading"])
def test_what_is_an_address_has_no_mark(api: Api, text: str) -> None:
    write(api.root, {"content/posts/c.json": json.dumps({"string": text})})
    api.site.refresh()
    marked = ask(api, "/api/posts/c?fields=string").data["string"]
    assert split(marked)[0] == text
    assert (marked == text) == (text in ADDRESSES)


def test_marks_count_for_the_size_of_an_answer(tmp_path: Path) -> None:
    settings = "api: {limits: {size: 20 kB}}\n"
    api = make(tmp_path, {**FILES, "site.yaml": settings + str(FILES["site.yaml"])})
    path = "/api/posts/a?" + bracketed({"populate": POPULATE})
    assert api.get(path).status == 200
    assert ask(api, path).error["details"] == {"limit": "size"}
    assert ask(api, "/api/posts/a?fields=string").status == 200
