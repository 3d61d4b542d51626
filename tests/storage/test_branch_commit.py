"""Commits that are created without a working tree or git index."""

import shutil
from pathlib import Path

import pytest

from server.errors import ConflictError
from server.storage.git.branch_commit import CommitMetadata, make_commit
from server.storage.git.commit import Person
from tests.git import commit_all, git
from tests.sites import write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

PERSON = Person("A", "a@example.org")
SIGNED = CommitMetadata("Change\n", PERSON, PERSON)


def head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD").strip()


def test_a_file_takes_the_place_of_an_emptied_folder_alone(tmp_path: Path) -> None:
    write(tmp_path, {"place/one.txt": "One\n", "place/two.txt": "Two\n"})
    commit_all(tmp_path)
    parents = (head(tmp_path),)
    with pytest.raises(ConflictError, match="a folder that contains place/two"):
        make_commit(tmp_path, parents, {"place": b"File\n", "place/one.txt": None}, SIGNED)
    gone = {"place/one.txt": None, "place/two.txt": None}
    made = make_commit(tmp_path, parents, {"place": b"File\n", **gone}, SIGNED)
    assert git(tmp_path, "ls-tree", "-r", "--name-only", made) == "place\n"


def test_modes_stay_however_many_files_change(tmp_path: Path) -> None:
    write(tmp_path, {"run.sh": "One\n"})
    (tmp_path / "run.sh").chmod(0o755)
    commit_all(tmp_path)
    # So many names would not fit on a command line.
    many: dict[str, bytes] = {f"{'folder' * 40}/{number:06}.txt": b"Text\n" for number in range(9000)}
    made = make_commit(tmp_path, (head(tmp_path),), {**many, "run.sh": b"Two\n"}, SIGNED)
    assert git(tmp_path, "ls-tree", made, "run.sh").startswith("100755 ")
