"""Tests for invalid files in migrations/: each is reported with its position, and nothing crashes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from tests.sites import STRING, collection, write

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
    ("operation: [\n", ":2:1: not YAML: "),
]


@pytest.mark.parametrize(("text", "message"), INVALID)
def test_an_invalid_file_is_reported(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, {**collection("tag", {"name": STRING}), PATH: text})
    for command in (["check"], ["migrate", "list"], ["migrate", "apply"]):
        done = CliRunner().invoke(main, command, env={"BIFOLIO_SITE": str(tmp_path)})
        assert isinstance(done.exception, SystemExit | None), command
        assert PATH + message in done.output, command


@pytest.mark.parametrize("names", [["../../x"], ["x", "--plural", "../../../y"]])
def test_a_type_gets_no_name_that_is_a_path(tmp_path: Path, names: list[str]) -> None:
    write(tmp_path, collection("tag", {"name": STRING}))
    command = ["migrate", "rename-type", "tag", *names]
    done = CliRunner().invoke(main, command, env={"BIFOLIO_SITE": str(tmp_path)})
    assert done.exit_code == 1
    assert f'bifolio: "{names[-1]}" must be letters and digits' in done.output
