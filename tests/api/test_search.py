"""Tests of `GET /search` with and without an index: the hits for each caller, and how they are shown."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.search.sync import Sync
from server.site.site import Site
from tests.conftest import MakeApi
from tests.sites import (
    STRING,
    Answer,
    Api,
    Files,
    collection,
    component,
    documents,
    load,
    relation,
    translated,
)
from tests.waiting import computing_less_than

TEXT, RICH = {"type": "text"}, {"type": "richtext"}
SEO = {"type": "component", "component": "shared.seo", "repeatable": False}
ZONE = {"type": "dynamiczone", "components": ["shared.quote", "shared.seo"]}
LOCALIZED = {
    "title": translated(STRING),
    "slug": {"type": "uid", "targetField": "title"},
    "summary": translated(TEXT),
    "body": translated(RICH),
    "blocks": {"type": "blocks"},
    "tags": {"type": "json"},
    "secret": {"type": "string", "private": True},
    "lock": {"type": "password"},
    "seo": SEO,
    "sections": ZONE,
    "author": relation("manyToOne", "author"),
}
BLOCKS = [{"type": "paragraph", "children": [{"type": "text", "text": "a bronze bell"}]}]
FILES = {
    "site.yaml": """
locales: {default: en, available: [en, fr]}
roles:
  public: {article: [find], author: [find]}
  authenticated: {article: [find, readDraft]}
""",
    **component("shared.seo", {"metaTitle": STRING, "note": {"type": "string", "private": True}}),
    **component("shared.quote", {"text": TEXT, "by": STRING}),
    **collection("article", LOCALIZED, drafts=True, localized=True),
    **collection("author", {"name": STRING, "bio": TEXT}),
    **collection("memo", {"title": STRING}),
    **documents(
        "articles",
        tides={
            "title": "Reading tide tables",
            "slug": "tides",
            "summary": "How the harbour keeper reads them",
            "body": "Two **tides** a day. A [gauge](http://example.org/gannet) shows slack water.",
            "secret": "smuggler",
            "lock": "smuggler",
            "author": "nell",
        },
        harbour={
            "title": "The harbour",
            "body": "Slack tides are rare here; the water is never slack.\n\n" + "The quay. " * 300,
            "seo": {"metaTitle": "Anchorage", "note": "smuggler"},
            "sections": [{"__component": "shared.quote", "text": "Mind the shoal", "by": "Bo Hansen"}],
            "blocks": BLOCKS,
            "tags": ["moorings", 3],
        },
        boat={"title": "A boat", "body": "It floats."},
    ),
    "content/articles/tides.fr.json": json.dumps(
        {"title": "Lire les marées", "body": "Deux marées par jour, à l'étale. Publiée."}
    ),
    "content/articles/boat.draft.json": json.dumps({"title": "A boat", "body": "It sinks slowly."}),
    "content/articles/wreck.draft.json": json.dumps({"title": "The wreck"}),
    **documents("authors", nell={"name": "Nell Tide", "bio": "Keeps the light <b>burning</b> & bright"}),
    **documents("memos", one={"title": "Tide memo"}),
}


def indexed_site(root: Path, files: Files) -> Site:
    """Return a site whose search index is complete."""
    site = load(root, files)
    runner = Runner([sync := Sync(site, Timing())])
    runner.start()
    assert sync.done.wait(30)
    runner.stop()
    return site


@pytest.fixture(scope="module", params=["index", "scan"])
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    root = tmp_path_factory.mktemp("site")
    api = Api.of(indexed_site(root, FILES) if request.param == "index" else load(root, FILES))
    api.token("reader", may=["article.find", "article.readDraft", "author.find"])
    api.token("drafts", may=["article.readDraft"])
    assert indexed(api) == (request.param == "index")
    yield api
    api.accounts.close()


def search(api: Api, q: str, who: str = "public", **params: Any) -> Answer:
    query = "&".join(f"{name}={quote(str(value))}" for name, value in {"q": q, **params}.items())
    return api.get(f"/search?{query}", who)


def indexed(api: Api) -> bool:
    """Return whether the search uses its index. Without the index, a search reads every document's file."""
    used: bool = search(api, "tide").body["meta"]["index"]["used"]
    return used


def found(api: Api, q: str, who: str = "public", **params: Any) -> list[str]:
    """Return the document ids of the hits. The locale is appended unless it is the default locale."""
    data = search(api, q, who, **params).data
    return [d["documentId"] + ("" if d["locale"] == "en" else f".{d['locale']}") for d in data]


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("shoal", ["harbour"]),  # in a dynamic zone
        ("hansen", ["harbour"]),
        ("anchorage", ["harbour"]),  # in a component
        ("bronze bell", ["harbour"]),  # in blocks
        ("moorings", ["harbour"]),  # in a list in a JSON attribute
        ("gauge", ["tides"]),
        ("burning", ["nell"]),
        ("float", ["boat"]),
        ("FLOATS", ["boat"]),
        ("flo", ["boat"]),  # an incomplete word, while the user is typing
        ("flo*", ["boat"]),
        ("marees", ["tides.fr"]),
        ("Marée", ["tides.fr"]),
        ("publiee ", ["tides.fr"]),
        ('"slack water"', ["tides"]),
        ('"water slack"', []),
        ('"two tides"', ["tides"]),
        ("title:harbour", ["harbour"]),
        ("sections:shoal", ["harbour"]),
        ("summary:shoal", []),
        ("slack -gauge", ["harbour"]),
        ('harbour -"slack tides"', ["tides"]),
        ("smuggler", []),  # occurs only in private attributes and passwords
        ("wreck", []),  # occurs only in a draft
        ("sinks", []),
        ("memo", []),  # occurs in a content type that the public has no permission to find
        ("xyzzy", []),
        ("", []),
        ("???", []),
    ],
)
def test_what_is_found(api: Api, q: str, expected: list[str]) -> None:
    assert found(api, q) == expected


def test_where_nothing_has_all_words_some_are_enough(api: Api) -> None:
    assert set(found(api, "flo* rare ")) == {"boat", "harbour"}


def test_the_address_of_a_link_is_searched_without_an_index_alone(api: Api) -> None:
    assert found(api, "gannet") == ([] if indexed(api) else ["tides"])


def test_a_title_counts_for_more_than_a_body(api: Api) -> None:
    assert found(api, "harbour") == ["harbour", "tides"]
    assert found(api, "tide")[:2] in (["tides", "nell"], ["nell", "tides"])


def test_a_hit_says_what_it_is(api: Api) -> None:
    hit = search(api, "marées").data[0]
    assert hit | {"score": 0, "highlights": 0} == {
        "id": hit["id"],
        "documentId": "tides",
        "type": "article",
        "locale": "fr",
        "status": "published",
        "title": "Lire les marées",
        "href": "/api/articles/tides?locale=fr",
        "score": 0,
        "highlights": 0,
    }
    assert api.get(hit["href"]).data["id"] == hit["id"]
    assert hit["score"] > 0


def test_matches_are_marked_and_everything_else_is_escaped(api: Api) -> None:
    assert search(api, "tide slack", type="article", locale="en").data[0]["highlights"]
    hit = search(api, "light bright", type="author").data[0]
    assert hit["highlights"] == {
        "bio": ["Keeps the <mark>light</mark> &lt;b&gt;burning&lt;/b&gt; &amp; <mark>bright</mark>"]
    }
    body = search(api, "gauge").data[0]["highlights"]["body"]
    assert body == ["Two tides a day. A <mark>gauge</mark> shows slack water."]


def test_facets_say_what_another_choice_would_find(api: Api) -> None:
    meta = search(api, "tide", type="author").body["meta"]
    assert {f["value"]: f["count"] for f in meta["facets"]["type"]} == {"article": 2, "author": 1}
    assert meta["facets"]["locale"] == [{"value": "en", "count": 1}]
    assert meta["pagination"]["total"] == 1
    meta = search(api, "lire tables", locale="fr").body["meta"]
    assert {f["value"]: f["count"] for f in meta["facets"]["locale"]} == {"en": 1, "fr": 1}
    assert meta["pagination"]["total"] == 1


@pytest.mark.parametrize("newest", ["zebra", "yak", "ant"])
def test_facets_are_sorted_by_count_and_then_by_value(tmp_path: Path, newest: str) -> None:
    """The index contains the newest documents first."""
    locales = "locales: {default: en, available: [en, de, fr]}\n"
    files: Files = {"site.yaml": locales + "roles: {public: {ant: [find], yak: [find], zebra: [find]}}\n"}
    for singular in ("zebra", "yak", "ant"):
        year = 2026 if singular == newest else 2020
        files |= collection(singular, {"title": STRING}, localized=True)
        files |= {
            f"content/{singular}s/one{locale}.json": json.dumps(
                {"title": "Tide", "updatedAt": f"{year}-01-0{day}"}
            )
            for day, locale in enumerate(("", ".de", ".fr"), 1)
        }
    files["content/zebras/two.json"] = json.dumps({"title": "Tide", "updatedAt": "2001-01-01"})
    api = Api.of(indexed_site(tmp_path, files))
    assert indexed(api)
    facets = search(api, "tide").body["meta"]["facets"]
    assert [facet["value"] for facet in facets["type"]] == ["zebra", "ant", "yak"]
    assert [facet["value"] for facet in facets["locale"]] == ["en", "de", "fr"]
    api.accounts.close()


def test_types_and_locales_narrow(api: Api) -> None:
    assert found(api, "tide", type="author") == ["nell"]
    assert found(api, "tide", type="authors") == ["nell"]
    assert set(found(api, "tide", type="author,article")) == {"nell", "tides", "harbour"}
    assert found(api, "marées", locale="en") == []
    assert found(api, "tide", locale="fr") == ["nell"]  # authors are not localized
    assert found(api, "marées", locale="*") == ["tides.fr"]


def test_pages(api: Api) -> None:
    everything = found(api, "the", limit=25)
    pages = [found(api, "the", limit=1, page=page)[0] for page in range(1, len(everything) + 1)]
    assert pages == everything
    answer = search(api, "the", limit=2, page=2)
    count = len(everything)
    assert answer.body["meta"]["pagination"] == {
        "page": 2,
        "pageSize": 2,
        "pageCount": -(-count // 2),
        "total": count,
    }
    assert found(api, "the", limit=2, page=99) == []


def test_drafts_are_for_those_who_may_read_them(api: Api) -> None:
    assert search(api, "sinks", status="draft").status == 403
    assert search(api, "sinks", status="draft").error["details"] == {}
    api.token("blind", may=["article.find"])
    refused = search(api, "sinks", "blind", status="draft").error
    assert refused["details"] == {"permission": "article.readDraft"}
    assert found(api, "sinks", "reader", status="draft") == ["boat"]
    assert found(api, "floats", "reader", status="draft") == []
    assert found(api, "wreck", "reader", status="draft") == ["wreck"]
    # published without changes, so there is no draft
    assert found(api, "gauge", "reader", status="draft") == ["tides"]
    assert found(api, "wreck", "reader") == []
    hit = search(api, "wreck", "reader", status="draft").data[0]
    assert (hit["status"], hit["href"]) == ("draft", "/api/articles/wreck?status=draft")


def test_only_what_the_caller_may_find_is_searched(api: Api) -> None:
    hidden = search(api, "memo", type="memo").error
    assert (hidden["status"], hidden["message"]) == (400, 'Invalid type: unknown content type "memo"')
    assert search(api, "memo", type="meno").error["message"] == 'Invalid type: unknown content type "meno"'
    assert 'did you mean "memo"?' in search(api, "memo", "full", type="meno").error["message"]
    assert found(api, "memo", "full") == ["one"]
    assert search(api, "memo", "drafts").status == 403
    assert search(api, "memo", "wrong").status == 401


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "Invalid q"),
        ("q=a&q=b", "Invalid q"),
        ("q=" + "a" * 501, "Invalid q"),
        ("q=-tide", "Invalid q"),
        ("q=a&limit=x", "Invalid limit"),
        ("q=a&limit=0", "Invalid limit"),
        ("q=a&page=-1", "Invalid page"),
        ("q=a&page=9999999", "Invalid page"),
        ("q=a&type=articel", 'Invalid type: unknown content type "articel"; did you mean "article"?'),
        ("q=a&type[x]=y", "Invalid type"),
        ("q=a&locale=de", "Invalid locale"),
        ("q=a&locale=../", "Invalid locale"),
        ("q=a&status=live", "Invalid status"),
        ("q=a&prefix=perhaps", "Invalid prefix"),
        ("q=%ff", "not UTF-8"),
    ],
)
def test_what_can_not_be_meant_is_refused(api: Api, query: str, message: str) -> None:
    answer = api.get(f"/search?{query}")
    assert answer.status == 400
    assert message in answer.error["message"]


def test_other_methods_are_refused_in_the_envelope(api: Api) -> None:
    assert api.ask("POST", "/search").error["name"] == "MethodNotAllowedError"
    assert api.ask("HEAD", "/search?q=a").status == 200


@pytest.mark.parametrize(
    ("q", "meant"),
    [
        ("harbuor", "harbour"),
        ('title:"reading tidd" ', 'title:"reading tide" '),
        ("harbour", None),
        ("qqqqqq", None),
    ],
)
def test_a_typo_is_noticed_by_the_index_which_knows_all_words(api: Api, q: str, meant: str | None) -> None:
    assert search(api, q).body["meta"]["didYouMean"] == (meant if indexed(api) else None)


def test_a_typo_is_never_corrected_with_a_word_of_a_hidden_type(api: Api) -> None:
    assert search(api, "memmo").body["meta"]["didYouMean"] is None
    assert search(api, "smugler").body["meta"]["didYouMean"] is None
    assert search(api, "sinkss").body["meta"]["didYouMean"] is None  # occurs only in a draft


@pytest.mark.parametrize("word", ["wreck", "wrecks", "xyzzy"])
def test_a_hidden_word_is_as_unknown_as_one_that_nothing_has(api: Api, word: str) -> None:
    meant = search(api, f"{word} tidex ").body["meta"]["didYouMean"]
    assert meant == (f"{word} tide " if indexed(api) else None)


def test_weights_of_the_site_count(make_api: MakeApi) -> None:
    files = {
        **FILES,
        "site.yaml": FILES["site.yaml"]
        + "search: {weights: {body: 90, article.summary: 0, author.bio: 0}}\n",
    }
    api = make_api(files)
    assert found(api, "keeper", "full") == []
    assert found(api, "bright", "full") == []
    assert found(api, "slack", "full")


@pytest.mark.parametrize("weight", ["-1", "101", "many", "[1]", "true"])
def test_a_weight_is_a_number(tmp_path: Path, weight: str) -> None:
    with pytest.raises(Exception, match=r"site\.yaml:1:\d+: search.weights.title must be a number"):
        load(tmp_path, {"site.yaml": f"search: {{weights: {{title: {weight}}}}}\n"})


def test_how_large_the_index_is_is_told_to_whoever_may_read_all_of_it(api: Api) -> None:
    for who in ("public", "reader"):
        index = search(api, "tide", who).body["meta"]["index"]
        assert (index["documents"], index["pending"]) == (None, None)
    index = search(api, "tide", "full").body["meta"]["index"]
    assert (index["documents"] > 0) == index["used"]


def test_words_are_marked_in_long_texts_for_a_while(make_api: MakeApi) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"{a}{b}{c}{d}ing" for a in letters for b in letters for c in "aeiou" for d in letters][:20_000]
    made = {
        f"n{n}": {"title": "Found", "body": "found " + " ".join(w + "s" * n for w in words)} for n in range(7)
    }
    files = {
        "site.yaml": "roles: {public: {note: [find]}}\n",
        **collection("note", {"title": STRING, "body": RICH}),
    }
    api = make_api({**files, **documents("notes", **made)})
    with computing_less_than(8):
        answer = search(api, "found " + " ".join(f"{letter}q" for letter in letters))
    marked = [bool(hit["highlights"]) for hit in answer.data]
    assert len(marked) == 7
    assert marked[0]
    assert not marked[-1]


WORDS = (
    "lantern",
    "lamplight",
    "lantern fog",
    "lan",
    "lanterm",
    "fog lantern",
    "+fog lantern",
    "body:lantern",
)


def twin(root: Path, *hidden: str) -> Api:
    """Return a site with an index. The texts in `hidden` occur only in drafts, a hidden content type and
    deleted documents.
    """
    shown = {f"a{n}": {"title": "A lantern", "body": "It burns in fog. " * n} for n in range(1, 13)}
    memos = {f"m{n}": {"title": text} for n, text in enumerate(hidden)}
    gone = {f"g{n}": {"title": text, "body": text} for n, text in enumerate(hidden)}
    drafts = {
        f"content/articles/d{n}.draft.json": json.dumps({"title": text, "body": text})
        for n, text in enumerate(hidden)
    }
    site = load(
        root,
        {
            **{path: text for path, text in FILES.items() if not path.startswith("content/")},
            **documents("articles", **shown, **gone),
            **documents("memos", **memos),
            **drafts,
        },
    )
    sync = Sync(site, Timing())
    for turn in range(2):
        runner = Runner([sync])
        runner.start()
        assert sync.done.wait(30)
        runner.stop()
        if turn == 0:
            for name in gone:
                (root / f"content/articles/{name}.json").unlink()
            site.refresh()
            sync = Sync(site, Timing())
    return Api.of(site)


def test_no_score_and_no_order_depends_on_what_the_caller_may_not_see(tmp_path: Path) -> None:
    one = twin(tmp_path / "one", "Nothing else")
    other = twin(tmp_path / "other", *["A lantern in the lamplight, lanterns and lanes"] * 30)
    assert indexed(one)
    assert indexed(other)
    for q in WORDS:
        assert search(one, q).raw == search(other, q).raw, q
    for api in (one, other):
        api.accounts.close()
