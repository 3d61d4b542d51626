"""Tests of temporary files and folders in `.bifolio/`, and of their cleanup."""

import os
import threading
import time
from pathlib import Path

import pytest

from server.jobs.job import Clock, JobContext, Timing
from server.paths import STATE_FOLDER, incoming_folder, state_folder
from server.site.background.jobs import DeleteStaleFiles
from server.storage.durable import replace_private_file
from server.storage.temporary import (
    ABANDONED_AGE_S,
    FOLDER_PREFIXES,
    sweep_temporary,
    temporary_file,
    temporary_folder,
)
from tests.conftest import MakeApi
from tests.killing import KILLED, killed_at


def age(*paths: Path) -> None:
    then = time.time() - ABANDONED_AGE_S - 60
    for path in paths:
        os.utime(path, (then, then))


def names(root: Path) -> list[str]:
    return sorted(
        p.name for p in (root / STATE_FOLDER).rglob("*") if p.name not in (".gitignore", "incoming")
    )


def use(root: Path, prefix: str) -> bool:
    with temporary_folder(root, prefix) as folder, temporary_file(root) as file:
        (folder / "one").write_text("text")
        file.write(b"text")
        os._exit(KILLED)


@pytest.mark.parametrize("prefix", FOLDER_PREFIXES)
def test_what_a_killed_process_leaves_behind_is_deleted_after_an_hour(tmp_path: Path, prefix: str) -> None:
    state = state_folder(tmp_path)
    assert killed_at(10**6, use, tmp_path, prefix) == KILLED
    [folder], [file] = state.glob(f"{prefix}*"), incoming_folder(tmp_path).iterdir()
    assert sweep_temporary(tmp_path) == 0  # it may have been created just now, and not be locked yet
    age(folder, file)
    assert sweep_temporary(tmp_path) == 2
    assert names(tmp_path) == []


def test_files_that_are_in_use_stay(tmp_path: Path) -> None:
    state_folder(tmp_path)
    with temporary_folder(tmp_path, "merge-") as folder, temporary_file(tmp_path) as file:
        age(folder, Path(file.name))
        assert sweep_temporary(tmp_path) == 0
        assert folder.is_dir()
        assert Path(file.name).exists()
    assert names(tmp_path) == []


def test_other_files_stay(tmp_path: Path) -> None:
    state = state_folder(tmp_path)
    replace_private_file(state / "key", b"key")
    (state / "unsaved").mkdir()
    others = [state / "unsaved/tmpnotes", state / "merge-notes", state / "key", state / "tmplink"]
    others[0].write_text("text")
    others[1].write_text("text")  # not a folder
    others[3].symlink_to(others[0])
    age(*others)
    assert sweep_temporary(tmp_path) == 0
    assert names(tmp_path) == ["key", "merge-notes", "tmplink", "tmpnotes", "unsaved"]


def test_a_state_folder_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    elsewhere, root = tmp_path / "elsewhere", tmp_path / "site"
    (elsewhere / "merge-1").mkdir(parents=True)
    root.mkdir()
    (root / STATE_FOLDER).symlink_to(elsewhere)
    age(elsewhere / "merge-1")
    assert sweep_temporary(root) == 0
    assert (elsewhere / "merge-1").is_dir()
    assert sweep_temporary(tmp_path) == 0  # no state folder


def test_the_background_job_cleans_up(make_api: MakeApi) -> None:
    api = make_api({})
    left = api.root / STATE_FOLDER / "merge-left"
    left.mkdir()
    age(left)
    context = JobContext(Clock(), threading.Event(), lambda: None, is_woken=False)
    DeleteStaleFiles(api.site, Timing()).run(context)
    assert not left.exists()
