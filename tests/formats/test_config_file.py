"""Tests of reading configuration files, and of the line in error messages."""

from pathlib import Path

import pytest

from server.errors import SetupError
from server.formats.config_file import read_config_file

FILES = {
    "a.yaml": "top:\n  inner: 3\n  list: [x, yy]\n",
    "a.json": '{"top":\n  {"inner": 3,\n  "list": ["x", "yy"]}}\n',
}


@pytest.mark.parametrize("path", FILES)
def test_a_place_is_named_by_line_and_column(tmp_path: Path, path: str) -> None:
    (tmp_path / path).write_text(FILES[path])
    file = read_config_file(tmp_path, path)
    rows = FILES[path].split("\n")
    for at, text in (("list", 1), "yy"), (("inner",), "3"), (("inner", "deeper"), "3"):
        refused = file.refuse("is odd", "change it", "top", *at)
        assert rows[(refused.line or 0) - 1][(refused.column or 0) - 1 :].lstrip('"').startswith(text)
    refused = file.refuse_key("is odd", "change it", "top", "inner")
    assert rows[(refused.line or 0) - 1][(refused.column or 0) - 1 :].lstrip('"').startswith("inner")
    assert str(file.refuse("is odd", "change it")) == f"{path}:1:1: is odd. Change it."


@pytest.mark.parametrize("path", FILES)
def test_values_are_found_by_their_keys(tmp_path: Path, path: str) -> None:
    (tmp_path / path).write_text(FILES[path])
    file = read_config_file(tmp_path, path)
    assert file.get("top", "list") == ["x", "yy"]
    assert file.get("top", "list", "x") is None
    assert file.get("nothing", "at", "all") is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: [", "invalid YAML"),
        (b"\xff", "is not UTF-8"),
        (b"- a", "must be a mapping"),
        (None, "can't be read"),
    ],
)
def test_what_can_not_be_read_is_refused(tmp_path: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / "a.yaml").write_bytes(data)
    with pytest.raises(SetupError, match=message):
        read_config_file(tmp_path, "a.yaml")


def test_an_optional_file_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_config_file(tmp_path, "a.yaml", optional=True).data == {}
