"""`bifolio schema --vscode`: the entries in .vscode/settings.json, and what is kept of that file."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from server.commands.cli import main
from server.errors import SetupError
from server.formats.json import read_json
from server.schema.load import read_content_types
from server.schema.model import Schema
from server.tools.vscode_settings import merge_settings
from tests.sites import STRING, Files, collection, schema, write

SITE: Files = {
    **collection("note", {"title": STRING}, drafts=True),
    **collection("guide", {"title": STRING}, files=["docs/{name}.json", "docs/{name}.md", "docs/{name}.yml"]),
    "content-types/home.json": schema("home", {"title": STRING}, single=True),
}


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    root = tmp_path_factory.mktemp("site")
    write(root, SITE)
    return read_content_types(root)


def run(root: Path, *options: str) -> Result:
    arguments = ["schema", "--site", str(root), "--json-schema", str(root / "schemas"), "--vscode", *options]
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_each_schema_has_the_files_of_its_type(types: Schema) -> None:
    made = read_json(merge_settings(None, types, "schemas"))
    assert made["yaml.schemas"] == {
        "./schemas/yaml/guide.json": ["docs/**/*.yml"],
        "./schemas/yaml/home.json": [
            "content/home.yaml", "content/home.*.yaml", "content/home.yml", "content/home.*.yml",
        ],
        "./schemas/yaml/note.json": [
            "content/notes/**/*.yaml", "!content/notes/**/*.draft.yaml",
            "content/notes/**/*.yml", "!content/notes/**/*.draft.yml",
        ],
        "./schemas/yaml/note.draft.json": ["content/notes/**/*.draft.yaml", "content/notes/**/*.draft.yml"],
    }  # fmt: skip
    assert {row["url"]: row["fileMatch"] for row in made["json.schemas"]} == {
        "./schemas/json/guide.json": ["/docs/**/*.json"],
        "./schemas/json/home.json": ["/content/home.json", "/content/home.*.json"],
        "./schemas/json/note.json": ["/content/notes/**/*.json", "!/content/notes/**/*.draft.json"],
        "./schemas/json/note.draft.json": ["/content/notes/**/*.draft.json"],
    }


COMMENTED = """\
// For everyone who edits this site. { "not": "a key" }
{
    "editor.tabSize": 2, /* two, not four */
    "yaml.schemas": {"https://example.org/a.json": "*.a.yaml", "./schemas/yaml/old.json": "old.yaml"},
    "url": "http://example.org/*", // the last one
}
"""


def test_comments_and_other_entries_are_kept(types: Schema) -> None:
    merged = merge_settings(COMMENTED, types, "schemas")
    for line in ("// For everyone", "/* two, not four */", '"http://example.org/*", // the last one\n'):
        assert line in merged
    assert '"https://example.org/a.json": "*.a.yaml"' in merged
    assert "old.yaml" not in merged
    assert merge_settings(merged, types, "schemas") == merged
    assert merged.endswith("}\n")


def test_what_would_be_lost_is_refused(types: Schema) -> None:
    for text, message in {
        '{"yaml.schemas": {\n // mine\n "a": "b"}}': "yaml.schemas contains comments, which would be lost",
        '{"json.schemas": {}}': "json.schemas does not have the type that VS Code expects",
        "[]": "must contain an object",
        '{"a": }': "expected a value",
        '{"a": 1 /* open': "expected a comma or a closing bracket",
    }.items():
        with pytest.raises(SetupError, match=message) as refused:
            merge_settings(text, types, "schemas")
        assert refused.value.line


NEAR = st.sampled_from(["", " ", "\n", '// a " { ,\n', '/* b ] , " */', "\t"])
KEYS = st.sampled_from(['"a"', '"json.schemas"', '"yaml.schemas"', '"//"', '"b, /* }"'])


@given(parts=st.lists(st.tuples(KEYS, NEAR, NEAR), max_size=4, unique_by=lambda part: part[0]), comma=st.booleans(), last=NEAR)  # fmt: skip  # noqa: E501
def test_any_settings_are_merged_or_refused(
    types: Schema, parts: list[tuple[str, str, str]], comma: bool, last: str
) -> None:
    values = {'"json.schemas"': "[]", '"yaml.schemas"': "{}"}
    entries = [f"{before}{key}{after}: {values.get(key, '[1, 2]')}" for key, before, after in parts]
    text = f"{last}{{{','.join(entries)}{',' if comma and entries else ''}{last}}}{last}"
    merged = merge_settings(text, types, "schemas")
    assert merge_settings(merged, types, "schemas") == merged
    for piece in (*(before for _, before, _ in parts), last):
        assert piece.strip() in merged


def test_the_command_writes_and_checks_the_settings(tmp_path: Path) -> None:
    write(tmp_path, {**SITE, ".vscode/settings.json": '{"editor.tabSize": 2}\n'})
    assert "settings.json" in run(tmp_path).stdout
    assert run(tmp_path, "--check").exit_code == 0
    write(tmp_path, {".vscode/settings.json": "{ // nothing\n}"})
    assert ".vscode/settings.json:2: is out of date" in run(tmp_path, "--check").stderr
    assert run(tmp_path).exit_code == 0
    assert "// nothing" in (tmp_path / ".vscode/settings.json").read_text()
    broken = '{"a": [}'
    write(tmp_path, {".vscode/settings.json": broken})
    assert run(tmp_path).stderr.startswith("bifolio: .vscode/settings.json:1:8: ")
    assert (tmp_path / ".vscode/settings.json").read_text() == broken


def test_nothing_is_written_for_a_site_with_only_markdown(tmp_path: Path) -> None:
    write(tmp_path, collection("page", {"title": STRING}, files="notes/{name}.mdx"))
    done = run(tmp_path)
    assert (done.exit_code, "nothing to write" in done.stdout) == (0, True)
    assert not (tmp_path / ".vscode").exists()
    assert run(tmp_path, "--check").exit_code == 0
    write(tmp_path, {".vscode/settings.json": '{"editor.tabSize": 2}\n'})
    assert "is up to date" in run(tmp_path).stdout
