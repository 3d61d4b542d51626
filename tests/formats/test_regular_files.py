"""Tests of reading files that may be hostile."""

import os
import re
from pathlib import Path

import pytest

from server.errors import SetupError
from server.formats.config_file import read_config_file
from server.formats.regular_files import read_regular_file
from server.tools.generated_files import read_file
from server.tools.merge_driver.install import is_config_missing


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").symlink_to("a")
    assert read_regular_file(tmp_path / "a", 3) == read_regular_file(tmp_path / "b", 3) == b"abc"


def test_devices_pipes_folders_and_large_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "device").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"abcd")
    for name in ("device", "pipe", "folder", "large", "missing"):
        with pytest.raises(OSError, match=r"\[Errno"):
            read_regular_file(tmp_path / name, 3)


@pytest.mark.parametrize("path", ["site.yaml", "content-types/z.json"])
def test_a_link_to_a_device_is_refused_as_configuration(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).symlink_to("/dev/zero")
    with pytest.raises(SetupError, match=re.escape("can't be read: not a regular file")):
        read_config_file(tmp_path, path)


def test_tools_do_not_read_devices(tmp_path: Path) -> None:
    (tmp_path / "out.ts").symlink_to("/dev/zero")
    with pytest.raises(SetupError, match="not a regular file"):
        read_file(tmp_path / "out.ts")
    (tmp_path / ".gitattributes").symlink_to("/dev/zero")
    assert not is_config_missing(tmp_path)
