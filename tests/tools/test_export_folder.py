"""The target folder of an export: only changed files are written, and files that were not exported are not
touched.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sites import STRING, collection, documents, write
from tests.tools.test_export import exported, files_of, refused, run

FILES = {
    **collection("note", {"title": STRING}),
    **documents("notes", a={"title": "A"}, b={"title": "B"}),
    "content/uploads/one.txt": "one",
    "content/uploads/deep/two.txt": "two",
    "site.yaml": "roles: {public: {note: [find, findOne], upload: [find]}}\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", FILES)
    return tmp_path / "site"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def age(out: Path) -> None:
    """Set an old modification time for every file, so that a test can detect which files are written."""
    for path in out.rglob("*"):
        if path.is_file():
            os.utime(path, (1_000_000, 1_000_000))


def written(out: Path) -> set[str]:
    files = (path for path in out.rglob("*") if path.is_file() and path.stat().st_mtime > 1_000_000)
    return {path.relative_to(out).as_posix() for path in files}


# --- written files ------------------------------------------------------------------------------


def test_a_second_export_writes_nothing(root: Path, out: Path) -> None:
    before = exported(root, out)
    age(out)
    done = run(root, out)
    assert f"0 written, {len(before) - 1} unchanged, 0 removed" in done.stdout
    assert written(out) == set()
    assert files_of(out) == before


def test_only_what_changed_is_written(root: Path, out: Path) -> None:
    exported(root, out)
    age(out)
    write(root, {"content/notes/b.json": '{"title": "Bee"}', "content/uploads/one.txt": "One"})
    exported(root, out)
    assert {path for path in written(out) if "note" in path} == {
        "api/notes.json",
        "api/notes/b.json",
        "api/notes/page/1.json",
    }
    assert "uploads/one.txt" in written(out)
    assert "uploads/deep/two.txt" not in written(out)
    assert (out / "uploads/one.txt").read_text() == "One"


def test_what_is_gone_is_removed_with_its_folder_and_nothing_else(root: Path, out: Path) -> None:
    exported(root, out)
    write(out, {"index.html": "mine", "api/notes/mine.txt": "mine", "uploads/deep/mine.txt": "mine"})
    (root / "content/notes/b.json").unlink()
    (root / "content/uploads/deep/two.txt").unlink()
    assert "2 removed" in run(root, out).stdout
    files = files_of(out)
    assert {"api/notes/b.json", "uploads/deep/two.txt"} & files.keys() == set()
    assert {p for p, body in files.items() if body == b"mine"} == {
        "index.html",
        "api/notes/mine.txt",
        "uploads/deep/mine.txt",
    }
    (out / "uploads/deep/mine.txt").unlink()
    (root / "content/uploads/one.txt").unlink()
    exported(root, out)
    assert not (out / "uploads/one.txt").exists()


def test_a_file_that_somebody_changed_is_put_right(root: Path, out: Path) -> None:
    before = exported(root, out)
    write(out, {"api/notes/a.json": before["api/notes/a.json"].replace(b"A", b"X"), "uploads/one.txt": "0ne"})
    (out / "api/notes/b.json").unlink()
    assert "3 written" in run(root, out).stdout
    assert files_of(out) == before


def test_a_file_becomes_a_folder_and_a_folder_a_file(root: Path, out: Path) -> None:
    exported(root, out)
    (root / "content/uploads/one.txt").unlink()
    (root / "content/uploads/deep/two.txt").unlink()
    (root / "content/uploads/deep").rmdir()
    write(root, {"content/uploads/one.txt/in.txt": "in", "content/uploads/deep": "deep"})
    files = exported(root, out)
    assert (files["uploads/one.txt/in.txt"], files["uploads/deep"]) == (b"in", b"deep")


def test_files_can_be_read_by_the_web_server(root: Path, out: Path) -> None:
    before = os.umask(0o022)
    try:
        exported(root, out)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in out.rglob("*") if path.is_file()} == {0o644}
    assert {path.stat().st_mode & 0o777 for path in out.rglob("*") if path.is_dir()} == {0o755}


def test_an_export_that_was_killed_leaves_whole_files_and_is_finished_by_the_next(
    root: Path, out: Path
) -> None:
    write(root, documents("notes", **{f"n{i:05d}": {"title": "x" * 2000} for i in range(1500)}))
    command = [sys.executable, "-m", "server", "export", str(out), "--site", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=Path(__file__).parents[2])
    while process.poll() is None and len(list(out.glob("api/notes/*.json"))) < 200:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    for path in out.glob("api/**/*.json"):
        json.loads(path.read_bytes())
    known = json.loads((out / "bifolio-export.json").read_bytes())["files"]
    left = {path for path in files_of(out) if path.startswith("api/")}
    assert 200 <= len(left) < len(known)
    assert left <= known.keys()
    for i in range(1500):
        (root / f"content/notes/n{i:05d}.json").unlink()
    files = exported(root, out)
    assert sorted(p for p in files if p.startswith("api/notes")) == [
        "api/notes.json",
        "api/notes/a.json",
        "api/notes/b.json",
        "api/notes/page/1.json",
    ]
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []


# --- rejected folders ---------------------------------------------------------------------------


def test_a_folder_that_holds_something_else(root: Path, out: Path) -> None:
    write(out, {"index.html": "mine"})
    assert "is not empty, and does not contain bifolio-export.json" in refused(root, out)
    assert files_of(out) == {"index.html": b"mine"}
    files = exported(root, out, "--force")
    assert files["index.html"] == b"mine"
    assert "api/notes/a.json" in files
    exported(root, out)  # from now on, the folder is known to contain an export


def test_a_file_in_the_way_that_is_not_ours(root: Path, out: Path) -> None:
    before = exported(root, out)
    write(out, {"api/notes/c.json": "mine"})
    write(root, {"content/notes/c.json": '{"title": "C"}'})
    assert "api/notes/c.json: exists, but was not created by an export" in refused(root, out)
    assert files_of(out) == {**before, "api/notes/c.json": b"mine"}
    assert b'"C"' in exported(root, out, "--force")["api/notes/c.json"]


OWN_FOLDERS = {
    **dict.fromkeys(("site", ".", "..", "/"), "contains the site itself"),
    **dict.fromkeys(
        ("site/content", "site/content/public", "site/content/uploads", "site/content-types/x",
         "site/.bifolio/x", "site/.git/x", "link", "link/x"),
        "overlaps with a folder of the site",
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", OWN_FOLDERS)
def test_the_sites_own_folders(root: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "link").symlink_to(root / "content")
    before = files_of(root)
    assert OWN_FOLDERS[target] in refused(root, tmp_path / target, "--force")
    assert {p: b for p, b in files_of(root).items() if not p.startswith(".bifolio")} == before


def test_a_folder_inside_of_the_site_that_is_not_content(root: Path) -> None:
    assert "api/notes/a.json" in exported(root, root / "public")
    assert "api/notes/a.json" in exported(root, root / "public")


def test_the_folder_of_documents_that_are_elsewhere(root: Path) -> None:
    write(root, collection("page", {"title": STRING}, files="docs/{name}.md"))
    write(root, {"docs/a.md": "A"})
    assert "overlaps with a folder of the site (docs)" in refused(root, root / "docs" / "out")


def test_a_site_whose_content_is_in_its_own_folder(root: Path) -> None:
    write(root, {**collection("page", {"title": STRING}, files="{name}.md"), "a.md": "A"})
    assert "Pass a separate folder, such as ../public." in refused(root, root / "public")


def test_a_link_to_a_folder_is_followed_and_a_link_inside_of_it_is_not(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "current").symlink_to(tmp_path / "real")
    exported(root, tmp_path / "current")
    assert (tmp_path / "real/api/notes.json").is_file()
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "real/api").rename(elsewhere)
    (tmp_path / "real/api").symlink_to(elsewhere)
    before = files_of(elsewhere)
    (root / "content/notes/a.json").unlink()
    for options in ([], ["--force"]):
        assert "api: is a file or symbolic link, but the export needs a folder here" in refused(
            root, tmp_path / "current", *options
        )
    assert files_of(elsewhere) == before


def test_a_link_in_place_of_a_file_is_replaced_and_not_followed(
    root: Path, out: Path, tmp_path: Path
) -> None:
    before = exported(root, out)
    write(tmp_path, {"secret": "mine"})
    (out / "api/notes/a.json").unlink()
    (out / "api/notes/a.json").symlink_to(tmp_path / "secret")
    assert exported(root, out) == before
    assert (tmp_path / "secret").read_text() == "mine"
    assert not (out / "api/notes/a.json").is_symlink()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"bifolioExport": 2, "files": {}}',
        *(
            json.dumps(
                {"bifolioExport": 1, "site": "", "role": "public", "drafts": False, "baseUrl": "",
                 "files": {path: {"request": "", "bytes": 0, "sha256": ""}}}
            )
            for path in ("../mine", "/etc/mine", "api/../../mine", "index.html", "api//a", "api/./a", "api")
        ),
    ],
)  # fmt: skip
def test_a_manifest_that_cannot_be_trusted(root: Path, out: Path, tmp_path: Path, text: str) -> None:
    write(tmp_path, {"mine": "mine", "out/index.html": "mine", "out/bifolio-export.json": text})
    assert "bifolio-export.json: is not an export manifest that this version" in refused(root, out)
    assert (tmp_path / "mine").read_text() == "mine"
    exported(root, out, "--force")
    assert (tmp_path / "mine").read_text() == (out / "index.html").read_text() == "mine"


def test_a_target_that_is_a_file_or_has_no_place(root: Path, tmp_path: Path) -> None:
    write(tmp_path, {"file": "mine"})
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    for target in ("file", "file/out", "dangling"):
        assert "can't be exported" in refused(root, tmp_path / target)
    assert (tmp_path / "file").read_text() == "mine"


def test_two_exports_at_once(root: Path, out: Path) -> None:
    exported(root, out)
    held = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another export is running in this folder" in refused(root, out)
    finally:
        os.close(held)


def test_a_disk_that_takes_no_more_is_one_line(root: Path, out: Path) -> None:
    write(root, {"content/uploads/large.bin": b"x" * 200_000})
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from server.commands.cli import main; main()"
    )
    arguments = ["export", str(out), "--site", str(root)]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "can't be exported: File too large" in done.stderr
    assert not (out / "uploads/large.bin").exists()
    assert exported(root, out)["uploads/large.bin"] == b"x" * 200_000
