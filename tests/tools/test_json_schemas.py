"""`bifolio schema --json-schema`: the generated schemas accept what `bifolio check` accepts."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from server.commands.cli import main
from server.formats.json import json_text
from server.formats.tree import SyntaxProblem
from server.formats.yaml.writer import yaml_mapping
from server.schema.model import ATTRIBUTE_TYPES
from server.storage.files import walk
from tests.examples import examples
from tests.sites import Files, collection, component, relation, schema, write
from tests.tools.schema_verdicts import Verdicts, is_finite

ROOT = Path(__file__).parents[2]

# --- a site with everything -----------------------------------------------------------------------

LIMITS: Mapping[str, Mapping[str, Any]] = {
    "string": {"minLength": 2, "maxLength": 5, "regex": "^[^x]+$"},
    "uid": {"maxLength": 5},
    "email": {"minLength": 6},
    "integer": {"min": 1, "max": 60},
    "biginteger": {"min": "-9007199254740993", "max": "9007199254740993"},
    "float": {"min": 0.5, "max": 99.5},
    "decimal": {"max": 10},
}
NEEDS: Mapping[str, Mapping[str, Any]] = {
    "enumeration": {"enum": ["red", "1", "1.5", "true", "no", "a b"]},
    "component": {"component": "part.leaf"},
    "dynamiczone": {"components": ["part.leaf", "part.branch"]},
}


def _of_each_type() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ATTRIBUTE_TYPES.keys() - {"relation"}:
        plain = {"type": name, **NEEDS.get(name, {})}
        found[name] = plain
        found[f"required-{name}"] = {**plain, "required": True}
        found[f"limited-{name}"] = {**plain, **LIMITS.get(name, {})}
        found[f"limited-required-{name}"] = {**plain, **LIMITS.get(name, {}), "required": True}
    return {name: found[name] for name in sorted(found)}


RELATIONS: Mapping[str, Any] = {
    "one": relation("manyToOne", "note"),
    "many": relation("manyToMany", "note", required=True),
    "owner": relation("oneToMany", "leaf", mappedBy="tree"),
    "about": {"type": "relation", "relation": "morphToOne"},
    "items": {"type": "component", "component": "part.leaf", "repeatable": True, "min": 2, "max": 3},
    "pictures": {"type": "media", "multiple": True, "required": True},
    "class": {"type": "string", "default": "x"},
    "__proto__": {"type": "boolean", "required": True, "default": True},
}
LEAF = {
    "word": {"type": "string", "required": True, "maxLength": 3},
    "more": {"type": "component", "component": "part.branch"},
}
NEEDED = {"required": True}
PAGE = {"title": {"type": "string", **NEEDED}, "body": "richtext"}
POST = {"date": {"type": "date", **NEEDED}, "slug": "uid", "extra": "json"}
ONE_LEAF = {"type": "component", "component": "part.leaf"}
SITE: Files = {
    **collection("note", _of_each_type()),
    **collection("tree", RELATIONS, drafts=True),
    **collection("leaf", {"tree": relation("manyToOne", "tree", inversedBy="owner")}),
    **collection("page", PAGE, drafts=True, draftWhen={"draft": True}),
    **collection("post", POST, fileName="{date}-{slug}", otherKeys="extra"),
    **collection("guide", {"title": "string"}, files="guides/{name}.md"),
    "content-types/home.json": schema("home", {"hero": {**ONE_LEAF, **NEEDED}}, single=True),
    **component("part.leaf", LEAF),
    **component("part.branch", {"leaves": {**ONE_LEAF, "repeatable": True}}),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    root = tmp_path_factory.mktemp("site")
    write(root, SITE)
    return Verdicts(root)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["schema", *arguments], catch_exceptions=False)


# --- what check accepts is valid ------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.integers(-2, 100),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.text("0123456789-+.:TZ e_\x1f٣", max_size=12),
    st.sampled_from(["", "red", "1", "1.5", "yes", "NO", "true", "a b", "🦊", "🦊🦊"]),
    st.sampled_from(["ab", "note", "a/b", "x@y.zz"]),
    st.sampled_from(["2024-02-29", "2024-1-5 10:20", "10:20", "10:20:30.5"]),
    st.sampled_from(["1700000000000", "0x1F", "1e3", " 7 "]),
    st.dates().map(str),
    st.datetimes().map(str),
)  # fmt: skip
REFERENCES = st.fixed_dictionaries(
    {"documentId": st.sampled_from(["a", "1", 1])},
    optional={"__type": st.just("api::note.note"), "more": SCALARS},
)
COMPONENTS = st.fixed_dictionaries(
    {},
    optional={
        "__component": st.sampled_from(["part.leaf", "part.branch", "part.root"]),
        "word": SCALARS,
        "leaves": st.lists(st.fixed_dictionaries({"word": SCALARS}), max_size=2),
        "id": SCALARS,
    },
)
LEAVES = st.one_of(SCALARS, REFERENCES, COMPONENTS)
VALUES = st.one_of(LEAVES, st.lists(LEAVES, max_size=4))


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Return the path of a document without its extension, and its values."""
    names = {
        "notes/a": [*_of_each_type(), "documentId", "createdAt"],
        "trees/a": [*RELATIONS, "publishedAt"],
        "trees/a.draft": [*RELATIONS, "publishedAt", "other"],
        "pages/a": ["title", "draft", "body"],
        "posts/a": ["date", "slug", "extra", "other"],
        "posts/2024-01-31-a": ["date", "slug", "extra", "other"],
        "home": ["hero"],
    }
    path = draw(st.sampled_from(sorted(names)))
    return path, draw(st.dictionaries(st.sampled_from(names[path]), VALUES, max_size=6))


def in_yaml(values: Mapping[str, Any], quoted: bool) -> str:
    """Write values as YAML, either as Bifolio does or without quotes where people would leave them out."""
    if quoted:
        return yaml_mapping(dict(values)) if values else "{}\n"
    return json.dumps(values, ensure_ascii=False).replace('"', "") + "\n"


@settings(max_examples=examples(1500), deadline=None)
@given(document=documents(), ending=st.sampled_from([".json", ".yaml", ".md"]), quoted=st.booleans())
def test_what_check_accepts_is_valid(
    verdicts: Verdicts, document: tuple[str, dict[str, Any]], ending: str, quoted: bool
) -> None:
    path, values = f"content/{document[0]}{ending}", complete(verdicts, *document)
    text = json_text(values) if ending == ".json" else in_yaml(values, quoted)
    text = f"---\n{text}---\n" if ending == ".md" else text
    try:
        wrong, errors = verdicts.check(path, text), verdicts.validate(path, text)
    except (SyntaxProblem, ValueError):
        return
    assert wrong or not errors, f"{path} is accepted, but: {errors}\n{text}"


def complete(verdicts: Verdicts, path: str, values: dict[str, Any]) -> dict[str, Any]:
    """Add the required values, so that the document has only the problems of the values that it was given."""
    sample: dict[str, Any] = {
        "string": "abc", "text": "abc", "richtext": "abc", "password": "abc", "uid": "abc",
        "email": "ab@cd.ef", "enumeration": "red", "integer": 5, "biginteger": 5, "float": 5, "decimal": 5,
        "date": "2024-02-29", "time": "10:20", "datetime": "2024-02-29", "timestamp": "2024-02-29",
        "boolean": True, "json": 1, "array": [], "blocks": [], "media": "a.png", "relation": "a",
        "component": {"word": "a"}, "dynamiczone": [{"__component": "part.leaf", "word": "a"}],
    }  # fmt: skip
    attributes = verdicts.type_of(f"content/{path}.yaml").attributes.values()
    return {**{a.name: sample[a.type] for a in attributes if a.required}, **values}


def test_all_documents_of_the_own_site_are_valid(tmp_path: Path) -> None:
    for folder in ("content", "content-types"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "site.yaml", tmp_path)
    found = Verdicts(tmp_path)
    layout = found.store.layout
    paths = [path for path in sorted(walk(tmp_path, layout.roots).files) if layout.claim(path)]
    documents = [path for path in paths if not path.startswith("content/uploads/")]
    assert len(documents) > 40
    for path in documents:
        text = (tmp_path / path).read_text()
        assert (found.check(path, text), found.validate(path, text)) == ([], []), path


# --- what breaks a rule is refused ----------------------------------------------------------------

REFUSED: Mapping[str, tuple[Any, ...]] = {
    "string": ([], {}),
    "limited-string": ("a", "abcdef", "axb"),
    "limited-uid": ("a b", "abcdef"),
    "limited-email": ("ab", "a@b", ""),
    "required-text": (None,),
    "enumeration": ("blue", "RED", 2, []),
    "required-enumeration": ("", None),
    "integer": ("ten", 1.5, True, []),
    "limited-integer": (0, 61),
    "limited-biginteger": (9007199254740995,),
    "limited-float": (0.1, 100),
    "decimal": ("ten",),
    "boolean": ("perhaps", 5),
    "required-boolean": ("", None),
    "date": ("2024-13-01", "1 May 2024", 20240501),
    "time": ("25:00", "10"),
    "datetime": ("2024-02-01T25:00", "today"),
    "array": ({}, "a"),
    "blocks": ([1], "a"),
    "required-json": (None,),
    "media": (["a.png", "b.png"], {"documentId": "a"}),
    "required-media": ([], [None], "", None),
    "component": ([], "a", {"word": None}, {"word": "abcd"}, {"world": "a"}, {}),
    "dynamiczone": ({}, [{}], [{"__component": "part.root"}], [{"__component": "part.leaf"}], [None]),
    "required-dynamiczone": ([],),
    "documentId": ("a/b", ""),
    "createdAt": ("yesterday", True),
    "unknown": (1, None),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("ending", [".json", ".yaml", ".md"])
def test_what_breaks_a_rule_is_refused(verdicts: Verdicts, name: str, ending: str) -> None:
    for value in REFUSED[name]:
        refuse(verdicts, f"content/notes/a{ending}", {name: value})


def refuse(verdicts: Verdicts, path: str, values: dict[str, Any]) -> None:
    """Require that Bifolio and the JSON Schema both refuse a value, and nothing else."""
    whole = complete(verdicts, path.removeprefix("content/").rpartition(".")[0], {})
    for given_values, is_refused in ((whole, False), ({**whole, **values}, True)):
        text = json_text(given_values) if path.endswith(".json") else yaml_mapping(given_values)
        text = f"---\n{text}---\n" if path.endswith(".md") else text
        assert bool(verdicts.check(path, text)) is is_refused, (given_values, verdicts.check(path, text))
        assert bool(verdicts.validate(path, text)) is is_refused, (values, verdicts.validate(path, text))


def test_a_missing_value_is_refused_unless_it_can_come_from_elsewhere(verdicts: Verdicts) -> None:
    assert verdicts.validate("content/notes/a.yaml", "string: a\n")
    assert verdicts.validate("content/trees/a.yaml", "many: [a]\n")
    assert not verdicts.validate("content/trees/a.yaml", "many: [a]\npictures: [a.png]\n")  # the default
    assert not verdicts.validate("content/posts/2024-01-31-a.md", "---\nother: 1\n---\n")  # the file's name
    assert not verdicts.validate("content/home.yaml", "hero: {word: abc}\n")
    assert verdicts.validate("content/home.yaml", "# nothing\n")


def test_drafts_may_lack_and_break_what_published_documents_may_not(verdicts: Verdicts) -> None:
    for draft in ("content/trees/a.draft.yaml", "content/pages/a.draft.yaml"):
        assert not verdicts.validate(draft, "{}\n")
        assert verdicts.validate(draft, "nothing: 1\n")
    assert verdicts.validate("content/trees/a.yaml", "items: [{word: a}]\nmany: a\npictures: a\n")
    assert not verdicts.validate("content/trees/a.draft.yaml", "items: [{word: abcdef}]\n")
    assert verdicts.validate("content/pages/a.yaml", "draft: false\n")
    assert not verdicts.validate("content/pages/a.yaml", "draft: true\n")
    assert not verdicts.validate("content/pages/a.md", "---\ndraft: 'TRUE'\n---\n")


def test_relations(verdicts: Verdicts) -> None:
    whole = "many: [a, guides/b, {documentId: c}, null]\npictures: a.png\n"
    assert not verdicts.validate("content/trees/a.yaml", whole)
    refused = (
        "one: [a, b]",
        "owner: a",
        "about: a",
        "about: {documentId: a}",
        "one: {id: 1}",
        "many: {a: 1}",
    )
    for line in refused:
        path = "content/trees/a.draft.yaml"
        assert verdicts.check(path, line), line
        assert verdicts.validate(path, line), line
    assert not verdicts.validate(
        "content/trees/a.draft.yaml", "about: {__type: api::note.note, documentId: 5}\n"
    )


# --- output ---------------------------------------------------------------------------------------


def test_the_schemas_are_valid_and_explain_each_key(verdicts: Verdicts) -> None:
    for path, text in verdicts.texts.items():
        made = json.loads(text)
        Draft202012Validator.check_schema(made)
        assert is_finite(made)
        for name, value in made.get("properties", {}).items():
            assert value["description"], (path, name)
    page = json.loads(verdicts.texts["yaml/tree.json"])
    assert page["properties"]["class"]["default"] == "x"


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    write(tmp_path / "one", SITE)
    write(tmp_path / "two", dict(reversed(SITE.items())))
    assert Verdicts(tmp_path / "one").texts == Verdicts(tmp_path / "two").texts


# --- the command ----------------------------------------------------------------------------------


def test_the_folder_is_kept_up_to_date(tmp_path: Path) -> None:
    write(tmp_path, {**collection("note", {"title": "string"}), **collection("page", {}, drafts=True)})
    options = ("--site", str(tmp_path), "--json-schema", str(tmp_path / "schemas"))
    missing = run(*options, "--check")
    assert missing.exit_code == 1
    assert "the file does not exist. Run `bifolio schema --json-schema " in missing.stderr
    assert "wrote 9 of 9 JSON Schemas" in run(*options).stdout
    assert "is up to date" in run(*options).stdout
    assert run(*options, "--check").exit_code == 0
    (tmp_path / "content-types" / "page.json").unlink()
    write(tmp_path, {"schemas/yaml/mine.json": "{}"})
    assert "is left over: this file is no longer generated" in run(*options, "--check").stderr
    assert "wrote 0 of 3 JSON Schemas" in (told := run(*options).stdout)
    assert "deleted 6" in told
    assert (tmp_path / "schemas" / "yaml" / "mine.json").read_text() == "{}"
    write(tmp_path, collection("note", {"name": "string"}))
    assert "is out of date" in run(*options, "--check").stderr


def test_what_can_not_be_done_is_one_line(tmp_path: Path) -> None:
    write(tmp_path, {**SITE, "schemas": "a file"})
    refused = run("--site", str(tmp_path), "--json-schema", str(tmp_path / "schemas" / "x"))
    assert refused.exit_code == 1
    assert len(refused.stderr.splitlines()) == 1
