"""Errors while reading schemas: if a folder can't be read, its content types are not treated as deleted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from server.errors import SetupError
from server.schema.load import read_content_types
from server.site.site import Site
from tests.sites import STRING, collection, make, write

ROOT = Path(__file__).parents[2]
FILES = {**collection("note", {"title": STRING}), "content/notes/one.md": "---\ntitle: One\n---\n"}


@pytest.mark.parametrize("folder", ["content-types", "content-types/components"])
def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, folder: str) -> None:
    write(tmp_path, FILES)
    tmp_path.chmod(0o755)
    (tmp_path / folder).mkdir(exist_ok=True)
    code = (
        "import os; from pathlib import Path\n"
        "from server.schema.load import read_all_content_types\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "print(*read_all_content_types(Path())[1])\n"
    )
    (tmp_path / folder).chmod(0o000)
    command, environment = [sys.executable, "-c", code], {"PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    (tmp_path / folder).chmod(0o755)
    refused = f"{folder}: the folder can't be read: Permission denied. Check its permissions.\n"
    assert told.stdout == refused


def test_a_site_without_content_types_can_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"site.yaml": ""})
    assert not Site(tmp_path).state.schema.content_types


def test_what_stands_in_the_place_of_the_folder_does_not_hide_what_is_served(tmp_path: Path) -> None:
    api = make(tmp_path, FILES)
    os.rename(tmp_path / "content-types", tmp_path / "aside")
    (tmp_path / "content-types").write_text("no folder")
    with pytest.raises(SetupError, match=r"^content-types: is a file, but must be a folder"):
        Site(tmp_path)
    api.site.refresh()
    assert api.get("/api/notes/one").data["title"] == "One"
    assert "is a file, but must be a folder" in str(api.site.problems)
    (tmp_path / "content-types").unlink()
    os.rename(tmp_path / "aside", tmp_path / "content-types")
    api.site.refresh()
    assert api.site.problems == ()


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("data/{initial}/a.yaml", "contains {initial}, but no {name} after it"),
        ("data/{name}/{initial}.yaml", "contains {initial}, but no {name} after it"),
        ("data/{letter}/{name}.yaml", "contains an unknown or repeated placeholder"),
        ("data/{initial}/{initial}/{name}.yaml", "contains an unknown or repeated placeholder"),
    ],
)
def test_a_pattern_of_paths_that_can_not_be_read_is_refused(tmp_path: Path, pattern: str, wrong: str) -> None:
    write(tmp_path, collection("word", {"title": STRING}, files=pattern))
    with pytest.raises(SetupError, match=re.escape(wrong)):
        read_content_types(tmp_path)
