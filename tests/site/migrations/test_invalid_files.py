"""Tests for invalid files in migrations/: each is reported with its position, and nothing crashes."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from server.errors import SetupError, ValidationError
from server.site.migrations.draft import Draft
from server.site.migrations.migration import read_migration
from server.site.migrations.plan import ARGUMENTS, OPERATIONS
from server.write.context import Context
from tests.failures import require_all
from tests.sites import STRING, collection, component, opened, write, write_to

PATH = "migrations/0001-x.yaml"
INVALID = [
    ("operation: [a]\n", ':1:1: unknown operation "a list". Use one of rename, '),
    ("- a\n", ':1: unknown operation "a list". Use one of rename, '),
    ("operation: rename\n", ':1:12: "rename" must have the key "attribute". Add attribute, '),
    (
        "operation: wrap\ntype: tag\nattributes: 5\ncomponent: a.b\n",
        ':3:13: "attributes" must be a list of names (found "5"). Correct attributes, ',
    ),
    ("operation: drop\nattribute: {a: b}\n", ':2:1: "attribute" must be text (found a mapping). Correct '),
    ("operation: drop\nattribute: tag.a\nto: b\n", ':3:5: unknown key "to". Use attribute.'),
    ("operation: [\n", ":2:1: invalid YAML: "),
    (
        'operation: wrap\ntype: tag\nattributes: [name]\ncomponent: "a.\\0b"\n',
        ':4:12: "component" must be CATEGORY.NAME, such as shared.seo (found ',
    ),
    (
        "operation: wrap\ntype: tag\nattributes: [name]\ncomponent: a.../../victim\n",
        ':4:12: "component" must be CATEGORY.NAME, such as shared.seo (found "a.../../victim"). Correct ',
    ),
]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    root = tmp_path / "one/site"
    block = {"type": "component", "component": "page.block"}
    write(
        root,
        {**collection("tag", {"name": STRING, "block": block}), **component("page.block", {"a": STRING})},
    )
    write(tmp_path, {"victim.json": "mine", "one/victim.json": "mine"})
    return root


def everything(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder by path, without the state of sites."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".bifolio" not in path.parts)
    return {str(path): path.read_bytes() for path in paths}


@pytest.mark.parametrize(("text", "message"), INVALID)
def test_an_invalid_file_is_reported(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, {**collection("tag", {"name": STRING}), PATH: text})
    for command in (["check"], ["migrate", "list"], ["migrate", "apply"]):
        done = CliRunner().invoke(main, command, env={"BIFOLIO_SITE": str(tmp_path)})
        assert isinstance(done.exception, SystemExit | None), command
        assert PATH + message in done.output, command


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (["rename-type", "tag", "../../x"], "to"),
        (["rename-type", "tag", "x", "--plural", "../../../y"], "plural"),
        (["rename-component", "page.block", "a.../../x"], "to"),
        (["wrap", "tag.name", "--component", "a.../../../victim"], "component"),
        (["wrap", "tag.name", "--component", "a.b/victim"], "component"),
        (["wrap", "tag.name", "--component", "..victim"], "component"),
        (["wrap", "tag.name", "--component", "a.b c"], "component"),
        (["wrap", "tag.name", "--component", f"a.{'b' * 300}"], "component"),
        (["wrap", "tag.name", "--component", "a.b", "--as", "../c"], "as"),
        (["wrap", "name", "--component", "a.b"], "attributes"),
        (["rename", "tag.name", "../name"], "to"),
        (["move", "tag.name", "../tag"], "to"),
        (["set-locale", "../en"], "locale"),
        (["retype", "tag.name", "../text"], "type"),
        (["unwrap", "tag.block/.."], "attribute"),
        (["drop", "../tag.name"], "attribute"),
    ],
)
def test_no_name_in_a_command_is_a_path(site: Path, command: list[str], argument: str) -> None:
    before = everything(site.parent)
    done = CliRunner().invoke(main, ["migrate", *command, "--write"], env={"BIFOLIO_SITE": str(site)})
    assert done.exit_code == 1, done.output
    assert done.output.startswith(f"bifolio: {argument} must ")
    assert everything(site.parent) == before


# For each operation, the arguments of a migration that is valid.
VALID: dict[str, dict[str, Any]] = {
    "rename": {"attribute": "tag.name", "to": "title"},
    "retype": {"attribute": "tag.name", "type": "text", "from": "string"},
    "wrap": {"type": "tag", "attributes": ["name"], "component": "page.look", "as": "look"},
    "unwrap": {"attribute": "tag.block"},
    "move": {"attribute": "tag.name", "to": "page.block", "via": "block"},
    "rename-component": {"component": "page.block", "to": "page.part"},
    "rename-type": {"type": "tag", "to": "label", "plural": "labels", "from-plural": "tags"},
    "set-locale": {"locale": "fr"},
    "split": {"attribute": "tag.name", "file": "names.py", "code": "\0"},
    "script": {"type": "tag", "file": "names.py", "code": "../\n" * 1000},
    "drop": {"attribute": "tag.name"},
}


def test_every_name_in_a_migration_file_is_checked_with_its_position() -> None:
    require_all(_check_name, ((name, key) for name in OPERATIONS for key in VALID[name] if key != "code"))
    assert VALID.keys() == OPERATIONS.keys()


def _check_name(operation: str, key: str) -> None:
    assert OPERATIONS[operation].arguments.all.keys() == VALID[operation].keys()
    valid = {"operation": operation, **VALID[operation]}
    assert read_migration(PATH, json.dumps(valid), ARGUMENTS).arguments == VALID[operation]
    for wrong in ("../x", "a.../../x", "/a.b", "a\\b.c", "a.\0b", "a.b\n", "", f"a.{'b' * 300}"):
        lines = [json.dumps({name: value})[1:-1] for name, value in valid.items() if name != key]
        value = [wrong] if isinstance(VALID[operation][key], list) else wrong
        text = ",\n".join(["{" + lines[0], *lines[1:], f"{json.dumps(key)}: {json.dumps(value)}" + "}"])
        with pytest.raises(
            SetupError, match=rf'(?s)^{PATH}:{len(lines) + 1}:[0-9]+: "{key}" must .*Correct'
        ) as error:
            read_migration(PATH, text, ARGUMENTS)
        assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("content-types/../../other.json", "is outside the site's folder"),
        ("content-types/tag.json/x.json", "can't be written: "),
    ],
)
def test_a_draft_never_writes_outside_its_temporary_folder(
    site: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    folder = site.parent / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def prepare(_: None, context: Context) -> None:
        draft = Draft(context)
        draft.put(path, "{}")
        draft.configuration()

    with pytest.raises(ValidationError, match=rf"^The schema would become invalid: {path}: {message}"):
        write_to(opened(site), prepare, None)
    assert list(folder.iterdir()) == []
    assert not (site.parent / "other.json").exists()
