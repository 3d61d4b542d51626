"""Tests that the docs contain everything in the code's tables, which docs/tables.py renders."""

import json
import re
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
import yaml

from docs.examples import with_answers
from docs.tables import with_tables
from server.config.model import KEYS
from server.config.sections import PREVIEW_KEYS, TYPE_KEYS
from server.problems import RULES
from server.query.operators import LOGIC, OPERATORS
from server.query.parse import PUBLICATION_FILTERS
from server.schema.model import ATTRIBUTE_TYPES
from server.tools.init.starter import starter_files

DOCS = Path(__file__).parent.parent / "docs"
PREVIEW = DOCS.parent / "server/api/studio/page/preview"
MESSAGES = re.compile(r'''(?:type(?:: | === )|send\()"((?:strapi|preview)[A-Z]\w+)"''')
NAMED = {
    "querying.md": [*OPERATORS, *LOGIC, *PUBLICATION_FILTERS],
    "settings.md": list(KEYS),
    "static.md": list(TYPE_KEYS),
    "preview.md": [
        *PREVIEW_KEYS,
        *{name for path in PREVIEW.glob("*.js") for name in MESSAGES.findall(path.read_text("utf-8"))},
    ],
    "modelling.md": list(ATTRIBUTE_TYPES),
    "check.md": list(RULES),
}


@pytest.mark.parametrize("page", NAMED)
def test_a_page_names_everything(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [name for name in NAMED[page] if f"`{name}`" not in text] == []


def asked(page: str) -> list[tuple[str, str]]:
    """Return the commands in a page's examples, each with its output. `python -m docs` keeps them
    up to date.
    """
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", "".join(blocks), re.MULTILINE)


@pytest.mark.parametrize("operator", [*OPERATORS, *LOGIC])
def test_every_operator_has_a_request_that_finds_something(operator: str) -> None:
    answers = [a for command, a in asked("querying.md") if f"[{operator}]" in command and "curl" in command]
    assert any(json.loads(answer).get("data") for answer in answers if answer.startswith('{"data":['))


@pytest.mark.parametrize("name", PUBLICATION_FILTERS)
def test_every_publication_filter_has_a_request(name: str) -> None:
    answers = [answer for command, answer in asked("querying.md") if f"publicationFilter={name}" in command]
    assert any(json.loads(answer)["data"] is not None for answer in answers)


def promises() -> list[str]:
    """Return the tests that SECURITY.md names."""
    text = (DOCS.parent / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!promise|---).*\|$", text, re.MULTILINE)
    named = re.findall(r"`(tests/[^`]*)`", "\n".join(rows))
    assert len(named) == len(rows) > 10
    return named


@pytest.mark.parametrize("test", promises())
def test_a_promise_is_held_by_a_test(test: str) -> None:
    path, _, name = test.partition("::")
    assert f"\ndef {name}(" in (DOCS.parent / path).read_text(encoding="utf-8")


EXCERPT = re.compile(r"^<!-- from (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def excerpts() -> list[tuple[str, str]]:
    """Return the files that docs/frontends.md and docs/images.md quote, each with the quoted text."""
    pages = (DOCS / "frontends.md", DOCS / "images.md")
    return [found for page in pages for found in EXCERPT.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("path", "quoted"), excerpts())
def test_an_excerpt_is_what_the_example_says(path: str, quoted: str) -> None:
    assert quoted in (DOCS.parent / path).read_text(encoding="utf-8")


def test_every_example_is_quoted() -> None:
    quoted = {path.split("/")[1] for path, _ in excerpts() if path.startswith("examples/")}
    assert quoted == {path.name for path in (DOCS.parent / "examples").iterdir() if path.is_dir()}


LINK = re.compile(r"\]\((?!https?:|#)([^)\s#]+)")


def pages() -> list[Path]:
    """Return the paths of all documentation pages."""
    root = DOCS.parent
    return [
        page for folder in (".", "docs", "examples", "examples/*") for page in root.glob(f"{folder}/*.md")
    ]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS.parent).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    links = LINK.findall(re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))
    assert [link for link in links if not (page.parent / link).exists()] == []


FRAGMENT = re.compile(r"\]\((?!https?:)([^)\s#]*)#([^)\s]+)\)")


def headings(page: Path) -> set[str]:
    """Return the URL fragments that GitHub generates for a page's headings."""
    found: Counter[str] = Counter()
    fragments = set()
    for heading in re.findall(r"^#+ (.*)$", without_blocks(page), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        fragment = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        fragments.add(f"{fragment}-{found[fragment]}" if found[fragment] else fragment)
        found[fragment] += 1
    return fragments


def without_blocks(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS.parent).as_posix())
def test_links_lead_to_headings(page: Path) -> None:
    links = FRAGMENT.findall(without_blocks(page))
    assert [
        f"{path}#{fragment}"
        for path, fragment in links
        if fragment not in headings((page.parent / path) if path else page)
    ] == []


def test_the_index_lists_every_page() -> None:
    listed = set(LINK.findall((DOCS / "README.md").read_text(encoding="utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= listed


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS.parent).as_posix())
def test_tables_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text  # If this fails, run `python -m docs --write PAGE` to update the tables.


# The widgets that docs/editors.md configures for each attribute type.
WIDGETS = {
    "string": {"string"},
    "uid": {"string"},
    "text": {"text"},
    "richtext": {"markdown"},
    "date": {"datetime"},
    "enumeration": {"select"},
    "media": {"image", "file"},
    "relation": {"relation"},
}


def written_by(page: str, path: str) -> str:
    """Return the text that a page's commands write to a file."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^cat > {re.escape(path)} <<'END'\n(.*?)^END$", text, re.MULTILINE | re.DOTALL)
    assert found, path
    return found[1]


def test_the_editors_configuration_fits_the_content_types() -> None:
    files = starter_files("Journal", ("en",), example=True)
    schemas = {name: json.loads(files[f"content-types/{name}.json"]) for name in ("author", "home")}
    schemas["article"] = json.loads(written_by("editors.md", "content-types/article.json"))
    plurals = {schema["info"]["pluralName"]: schema for schema in schemas.values()}
    for entry in yaml.safe_load(written_by("editors.md", "admin/config.yml"))["collections"]:
        for form in entry.get("files", [entry]):
            folder = form.get("folder")
            schema = plurals[folder.removeprefix("content/")] if folder else schemas[form["name"]]
            attributes, keys = schema["attributes"], schema["options"].get("draftWhen", {})
            for field in form["fields"]:
                if field["name"] in keys:
                    assert field["widget"] == "boolean"
                    continue
                attribute = attributes[field["name"]]
                assert field["widget"] in WIDGETS[attribute["type"]], field
                assert field.get("options") == attribute.get("enum"), field
                assert field.get("required", True) or not attribute.get("required"), field


def test_no_two_pages_make_a_token_of_the_same_name() -> None:
    pages = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
    made = [
        set(re.findall(r"bifolio token create ([a-z]+)", page.read_text(encoding="utf-8"))) for page in pages
    ]
    assert [name for name, count in Counter(chain(*made)).items() if count > 1] == []


WRITES = re.compile(
    r"^\$ (?:sed -i|printf|mv|cp|rm|git (?!status)).*\n\$ (?:curl|python3 build)", re.MULTILINE
)
STARTS = re.compile(r"^\$ .*[^&]&\n(?!\$ until curl )", re.MULTILINE)


@pytest.mark.parametrize(
    "page", sorted([*DOCS.glob("*.md"), DOCS.parent / "README.md"]), ids=lambda p: p.name
)
def test_a_block_that_is_pasted_waits_for_what_it_started_and_changed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [
        found[0] for found in WRITES.finditer(text) if not any(w in found[0] for w in ("sleep 1", "../"))
    ] == []
    assert STARTS.findall(text) == []


def test_no_page_has_the_key_of_a_studio(tmp_path: Path) -> None:
    """Pages that are regenerated from the output of commands must not contain a key, either."""
    page = "<!-- in an empty folder -->\n```console\n$ echo 'http://localhost/studio?key={} to edit'\n{}```\n"
    printed = "http://localhost/studio?key=… to edit\n"
    answered = with_answers(DOCS.parent, page.format("4f-Ag_x", ""), tmp_path)
    assert answered == page.format("4f-Ag_x", printed)
    for path in (*DOCS.glob("*.md"), DOCS.parent / "README.md"):
        assert not re.search(r"studio\?key=[\w-]", path.read_text(encoding="utf-8")), path


def test_a_command_that_never_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs.examples.MAX_PAGE_S", 1)
    page = "<!-- in an empty folder -->\n```console\n$ echo one\none\n$ until false; do sleep .1; done\n```\n"
    with pytest.raises(SystemExit, match=r"^still waiting after 1 s: until false"):
        with_answers(DOCS.parent, page, tmp_path)
