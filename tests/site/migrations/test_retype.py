"""Tests of the migration `retype`, and of the table of conversions."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.documents.readers import READERS
from server.errors import ValidationError
from server.formats.tree import Plain
from server.schema.model import Attribute
from server.service.opening import Mode, open_site
from server.site.migrations.conversions import CONVERSIONS, ConversionResult, convert_tree
from tests.site.migrations.helpers import apply, files, lacking, migrate
from tests.sites import STRING, collection, component, relation, write

ARTICLE = {
    "title": STRING,
    "pages": {"type": "string", "maxLength": 5, "default": "1"},
    "minutes": {"type": "integer", "min": 1},
    "day": {"type": "date"},
    "at": {"type": "datetime"},
    "colour": STRING,
    "summary": {"type": "text"},
    "text": {"type": "richtext"},
    "author": relation("manyToOne", "author", inversedBy="articles"),
    "cover": {"type": "media"},
    "seo": {"type": "component", "component": "shared.seo"},
}
FILES = {
    **collection("article", ARTICLE),
    **collection("author", {"articles": relation("oneToMany", "article", mappedBy="author")}),
    **component("shared.seo", {"title": STRING}),
    "content/authors/ann.yaml": "{}\n",
    "content/articles/a.md": (
        "---\npages: '12' # p\nminutes: 3\nday: 2024-01-02\nat: 2024-01-02T03:04:05Z\ncolour: red\n"
        "summary: s\nauthor: ann\nseo: {title: T}\n---\nBody\n"
    ),
    "content/articles/b.json": '{"pages": "7", "minutes": 5, "at": "2024-01-02", "colour": "blue"}',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def value(root: Path, name: str, document: str = "a") -> Any:
    state = open_site(root, Mode.READ).site.state
    [found] = state.snapshot.claims["api::article.article", document, "en", "published"]
    return found.get(name)


def attribute(root: Path, name: str) -> Any:
    return json.loads(files(root)["content-types/article.json"])["attributes"][name]


def test_text_that_reads_as_numbers_keeps_its_bytes(root: Path) -> None:
    before = files(root)
    plan = migrate(root, "retype", attribute="article.pages", type="integer")
    assert plan.steps[0].documents == ()
    assert {path for path, data in files(root).items() if before[path] != data} == {
        "content-types/article.json"
    }
    assert attribute(root, "pages") == {"type": "integer", "default": "1"}
    assert (value(root, "pages"), value(root, "pages", "b")) == (12, 7)


def test_numbers_become_text_where_a_file_cant_say_so_without_quotes(root: Path) -> None:
    migrate(root, "retype", attribute="article.minutes", type="string")
    assert b"minutes: 3\n" in files(root)["content/articles/a.md"]
    assert b'"minutes": "5"' in files(root)["content/articles/b.json"]
    assert (value(root, "minutes"), value(root, "minutes", "b")) == ("3", "5")
    assert attribute(root, "minutes") == {"type": "string"}


def test_dates_become_times_and_times_with_hours_are_refused(root: Path) -> None:
    migrate(root, "retype", attribute="article.day", type="datetime")
    assert value(root, "day") == "2024-01-02T00:00:00.000Z"
    assert b"day: 2024-01-02\n" in files(root)["content/articles/a.md"]
    with pytest.raises(ValidationError) as error:
        migrate(root, "retype", attribute="article.at", type="date")
    assert error.value.message.splitlines()[1:] == [
        '  content/articles/a.md:5:5: the value of "at" would not stay the same as date'
    ]
    migrate(root, "retype", lossy=True, attribute="article.at", type="date")
    assert value(root, "at") == "2024-01-02"


def test_values_that_cant_be_converted_are_named_and_removed_only_if_allowed(root: Path) -> None:
    with pytest.raises(ValidationError, match=r"a\.md:6:9: the value of \"colour\" can't be converted"):
        migrate(root, "retype", attribute="article.colour", type="integer")
    migrate(root, "retype", lossy=True, attribute="article.colour", type="integer")
    assert b"colour" not in files(root)["content/articles/a.md"]


def test_an_enumeration_gets_the_values_of_the_documents(root: Path) -> None:
    migrate(root, "retype", attribute="article.colour", type="enumeration")
    assert attribute(root, "colour") == {"type": "enumeration", "enum": ["blue", "red"]}
    assert value(root, "colour") == "red"


def test_a_new_richtext_attribute_does_not_become_the_body(root: Path) -> None:
    before = files(root)["content/articles/a.md"]
    migrate(root, "retype", attribute="article.summary", type="richtext")
    assert json.loads(files(root)["content-types/article.json"])["options"]["body"] == "text"
    assert (value(root, "summary"), value(root, "text")) == ("s", "Body")
    assert files(root)["content/articles/a.md"] == before
    migrate(root, "retype", attribute="article.text", type="text")
    assert (value(root, "summary"), value(root, "text")) == ("s", "Body")
    with pytest.raises(ValidationError, match="is the body of Markdown files"):
        migrate(root, "retype", attribute="article.text", type="json")


def test_relations_change_on_both_sides(root: Path) -> None:
    migrate(root, "retype", attribute="article.author", type="manyToMany")
    author = json.loads(files(root)["content-types/author.json"])["attributes"]["articles"]
    assert (attribute(root, "author")["relation"], author["relation"]) == ("manyToMany", "manyToMany")
    assert value(root, "author") == ("ann",)
    write(root, {"content/authors/bob.yaml": "{}\n", "content/articles/c.yaml": "author: [ann, bob]\n"})
    with pytest.raises(ValidationError, match=r"c\.yaml:1:1"):
        migrate(root, "retype", attribute="article.author", type="manyToOne")
    with pytest.raises(ValidationError, match=r"c\.yaml.*\"author\" refers to ann, as a does"):
        migrate(root, "retype", lossy=True, attribute="article.author", type="oneToMany")
    migrate(root, "retype", lossy=True, attribute="article.author", type="manyToOne")
    assert files(root)["content/articles/c.yaml"] == b"author: ann\n"


def test_components_become_lists_and_single_again(root: Path) -> None:
    migrate(root, "retype", attribute="article.seo", type="many")
    assert [found.values for found in value(root, "seo")] == [("T",)]
    migrate(root, "retype", attribute="article.seo", type="one")
    assert value(root, "seo").values == ("T",)
    migrate(root, "retype", attribute="article.cover", type="many")
    assert attribute(root, "cover") == {"type": "media", "multiple": True}


@pytest.mark.parametrize(
    ("name", "type_", "message"),
    [
        ("text", "integer", "is the body of Markdown files"),
        ("text", "blocks", "can't be converted from richtext to blocks; use one of"),
        ("author", "string", "can't be converted from manyToOne to string"),
        ("title", "intger", 'did you mean "integer"'),
        ("title", "string", "already has the type string"),
        ("seo", "manyToMany", "can't be converted from one to manyToMany; use one of many, one"),
    ],
)
def test_other_conversions_are_impossible(root: Path, name: str, type_: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        migrate(root, "retype", attribute=f"article.{name}", type=type_)


def test_late_documents_are_converted(root: Path) -> None:
    migrate(root, "retype", attribute="article.minutes", type="string")
    write(
        root, {"content/articles/late.json": '{"minutes": 9}', "content/articles/ok.json": '{"minutes": "x"}'}
    )
    assert lacking(root) == {"0001-retype-article-minutes": ("content/articles/late.json",)}
    apply(root)
    assert files(root)["content/articles/late.json"] == b'{"minutes": "9"}'


TREES = st.one_of(
    st.text(max_size=8),
    st.integers(-(10**9), 10**9),
    st.booleans(),
    st.dates().map(str),
    st.datetimes().map(lambda at: at.isoformat(timespec="milliseconds") + "Z"),
    st.floats(allow_nan=False, allow_infinity=False, width=16).map(lambda number: Plain(str(number))),
    st.sampled_from([Plain("true"), Plain("007"), Plain("yes"), Plain("1.50"), "1.50", "007", "2024-02-29"]),
    st.lists(st.one_of(st.text(max_size=3), st.integers(0, 3)), max_size=2),
)


def _as_in_file(tree: Any) -> Any:
    return Plain(format(tree, "f")) if isinstance(tree, Decimal) else tree


@given(TREES, st.sampled_from(sorted(CONVERSIONS)))
@example(False, ("boolean", "enumeration"))
def test_exact_conversions_can_be_undone(tree: Any, pair: tuple[str, str]) -> None:
    enum = tuple({str(tree), "a"})
    old, new = (Attribute("a", type_, enum=enum) for type_ in pair)
    try:
        value = READERS[old.type](tree, old)
        found = convert_tree(tree, old, new)
    except ValueError:
        return
    if found is None or not found.is_exact:
        return
    written = tree if found.is_unchanged else found.tree
    written = _as_in_file(written)
    READERS[new.type](written, new)
    if (new.type, old.type) in CONVERSIONS and not isinstance(value, float):
        back = convert_tree(written, new, old)
        assert isinstance(back, ConversionResult)
        restored = READERS[old.type](written if back.is_unchanged else _as_in_file(back.tree), old)
        assert restored == value or str(restored).rstrip("0.") == str(value).strip().rstrip("0.")


def test_a_draft_that_its_file_marks_is_not_published(tmp_path: Path) -> None:
    page = {"title": STRING, "hidden": {"type": "boolean"}}
    options = {"draftAndPublish": True, "draftWhen": {"hidden": True}}
    schema = json.loads(collection("page", page)["content-types/page.json"])
    schema["options"] = options
    write(tmp_path, {"content-types/page.json": json.dumps(schema)})
    write(
        tmp_path,
        {"content/pages/a.yaml": "title: A\nhidden: true\n", "content/pages/b.yaml": "hidden: false\n"},
    )
    before = files(tmp_path)
    message = r'content/pages/a\.yaml:2:9: "hidden" would no longer mark the document as a draft'
    with pytest.raises(ValidationError, match=message) as error:
        migrate(tmp_path, "retype", lossy=True, attribute="page.hidden", type="integer")
    assert len(error.value.message.splitlines()) == 2
    assert files(tmp_path) == before
    migrate(tmp_path, "retype", attribute="page.hidden", type="string")
    claims = open_site(tmp_path, Mode.READ).site.state.snapshot.claims
    assert {key[1:] for key in claims if key[0] == "api::page.page"} == {
        ("a", "en", "draft"),
        ("b", "en", "published"),
    }
