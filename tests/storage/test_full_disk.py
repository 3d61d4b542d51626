"""A full or failing disk at any step of a write: the response has status 507, and no data is lost."""

import errno
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from server.site.change_log import ChangeLog
from tests.sites import Api, make
from tests.small_disk import fill, mounted
from tests.storage.test_journal import FILES, contents, run_disturbed
from tests.torture import LONG

SITE = {**FILES, "content/tags/large.md": "---\nname: large\n---\n" + "text\n" * 2000}
BIG = "a line of text\n" * 1000
# One write of each kind. Each function returns the response's status.
WRITES: dict[str, Callable[[Api], int]] = {
    "several files": lambda m: m.put("/api/tags/b", {"name": "bb", "things": {"set": ["one", "two"]}}).status,
    "publish": lambda m: m.put("/api/things/two", {"body": BIG}).status,
    "create": lambda m: m.post("/api/things", {"name": "new", "body": BIG, "tags": ["a"]}).status,
    "delete": lambda m: m.ask("DELETE", "/api/things/two").status,
    "upload": lambda m: (
        m.ask("POST", "/api/upload", data={"files": (io.BytesIO(b"x" * 9000), "notes.txt")}).status
    ),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO] if LONG else [errno.ENOSPC])
def test_a_failure_at_any_step_is_507_and_leaves_what_there_was(
    name: str, number: int, tmp_path: Path
) -> None:
    api = make(tmp_path / "site", SITE)
    shutil.copytree(api.root / "content", tmp_path / "before")
    old, step = contents(api.root), WRITES[name]

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    def restore() -> None:
        shutil.rmtree(api.root / "content")
        shutil.copytree(tmp_path / "before", api.root / "content")
        api.site.refresh()

    events, status = run_disturbed(api, step, 0, fail)
    assert status < 300
    assert len(events) > 3
    for at in range(1, len(events) + 1):
        restore()
        _, status = run_disturbed(api, step, at, fail)
        if status < 300:
            assert contents(api.root) != old
        elif status in (404, 500):
            # The new file could not be read, but the next rescan will read it.
            assert events[at - 1] == "open"
        else:
            assert status == 507, f"{events[at - 1]} at {at}"
            assert contents(api.root) == old, f"{events[at - 1]} at {at}"


def test_a_refusal_names_the_file_that_could_not_be_written(tmp_path: Path) -> None:
    api = make(tmp_path / "site", SITE)
    shutil.copytree(api.root / "content", tmp_path / "before")
    staged = str(api.root / ".bifolio/journal/1-a-2.staged")

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), staged)

    def step(api: Api) -> tuple[int, str]:
        answer = api.put("/api/things/two", {"body": BIG})
        return answer.status, answer.error["details"].get("path", "") if answer.status == 507 else ""

    events, _ = run_disturbed(api, step, 0, fail)
    named = set()
    for at in range(1, len(events) + 1):
        named.add(run_disturbed(api, step, at, fail)[1][1])
        shutil.rmtree(api.root / "content")
        shutil.copytree(tmp_path / "before", api.root / "content")
        api.site.refresh()
    assert {"content/things/two.md", "content/things/two.draft.md"} <= named


def test_a_full_disk_is_said_of_the_file_that_was_to_be_written(small_disk: Path) -> None:
    root = small_disk / "site"
    root.mkdir()
    api = make(root, SITE)
    assert api.put("/api/things/two", {"body": "Short"}).status == 200
    with suppress(OSError), (small_disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            continue
    refused = api.put("/api/things/two", {"body": BIG})
    assert (refused.status, refused.error["details"]["path"]) == (507, "content/things/two.md")


def test_the_mode_of_new_files_is_by_the_umask_which_nobody_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = {0o022: 0o644, 0o027: 0o640, 0o077: 0o600}
    for umask, mode in modes.items():
        before = os.umask(umask)
        try:
            with monkeypatch.context() as patch:
                patch.delattr(os, "umask")
                api = make(tmp_path / oct(umask), SITE)
                for name in ("create", "upload"):
                    assert WRITES[name](api) == 201
        finally:
            os.umask(before)
        files = (path for path in (api.root / "content").rglob("*") if path.is_file())
        new = [path for path in files if str(path.relative_to(api.root)) not in SITE]
        assert len(new) == 3
        assert {stat.S_IMODE(path.stat().st_mode) for path in new} == {mode}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted file system of 1 MB."""
    with mounted(tmp_path / "disk", "1m") as folder:
        yield folder


def test_a_disk_with_ever_less_room_loses_nothing(small_disk: Path) -> None:
    root, filler = small_disk / "site", small_disk / "filler"
    root.mkdir()
    api = make(root, SITE)
    shown = {path.name: path.read_bytes() for path in (root / "content").rglob("*.md")}
    statuses = []
    for free_kb in range(120, -1, -4):
        fill(filler)  # Fill the disk, then free some space (free_kb).
        os.truncate(filler, max(0, filler.stat().st_size - free_kb * 1024))
        for name in ("publish", "create", "several files", "upload"):
            before = {path: path.read_bytes() for path in (root / "content").rglob("*") if path.is_file()}
            status = WRITES[name](api)
            statuses.append(status)
            assert status in (200, 201, 507)
            if status == 507:
                after = {path: path.read_bytes() for path in (root / "content").rglob("*") if path.is_file()}
                assert after == before
        filler.unlink()
    assert {200, 201, 507} == set(statuses)
    assert WRITES["publish"](api) == 200  # The disk has space again.
    assert not list((root / ".bifolio/journal").iterdir())
    assert (root / "content/tags/large.md").read_bytes() == shown["large.md"]


def test_a_full_temporary_folder_keeps_nobody_from_writing(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    api = make(tmp_path / "site", SITE)
    with closing(ChangeLog()) as log:
        api.site.share(log)
        fill(small_disk / "filler")
        for number in range(20):  # more than fit into the rest of a block
            assert api.put("/api/things/one", {"body": f"{number} {BIG}"}).status == 200
            assert api.get("/api/things/one").data["body"].startswith(f"{number} ")
