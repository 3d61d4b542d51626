"""`bifolio media push` and `pull`: in both directions, with kills, and with simultaneous changes by users."""

import hashlib
import io
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import obstore
import pytest
import yaml
from click.testing import CliRunner, Result
from PIL import Image

from server.commands.cli import main
from server.schema.model import PLACEHOLDER
from server.site.site import Site
from server.storage.bucket import bucket as buckets
from tests.buckets import S3
from tests.git import commit_all, git
from tests.sites import load, schema, write
from tests.waiting import until

OUT = io.BytesIO()
Image.linear_gradient("L").resize((600, 400)).save(OUT, "PNG")
PICTURE = OUT.getvalue()
QUIETLY: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
POST = schema("post", {"cover": {"type": "media"}})


def files_of(s3: S3) -> dict[str, str | bytes]:
    return {
        "site.yaml": s3.settings(),
        "content-types/post.json": POST,
        "content/posts/one.md": "---\ncover: bay.png\n---\n",
        "content/uploads/bay.png": PICTURE,
        "content/uploads/bay.png.yaml": "# Ours\ncaption: The bay\ncreatedAt: 2024-01-01T00:00:00.000Z\n",
        "content/uploads/deep/note.txt": b"a note",
        "content/uploads/own.yaml": b"a: file of its own\n",
    }


@pytest.fixture
def root(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(buckets, "BACKOFF_S", 0.0)
    write(tmp_path, files_of(s3))
    return tmp_path


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["media", *arguments, "--site", str(root)])


def content(root: Path) -> dict[str, bytes]:
    """Return the media files of a site that are on disk, without their descriptions."""
    folder = root / "content/uploads"
    files = (path for path in folder.rglob("*") if path.is_file())
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {path: data for path, data in found.items() if path == "own.yaml" or not path.endswith(".yaml")}


def count(root: Path) -> int:
    """Return the number of media files on disk. Files may be moved at the same time."""
    return sum(name.endswith(".txt") for name in os.listdir(root / "content/uploads"))


def shown(root: Path) -> dict[str, dict[str, Any]]:
    """Return the values of all media as in responses, without the values that depend on where a file is
    stored.
    """
    site = Site(root)
    site.load()
    for path in site.incomplete_images():
        site.scale(path)
    media = site.state.snapshot.media
    told = {key: dict(zip(one.type.columns, one.row, strict=True)) for key, one in media.items()}
    assert not site.problems
    return {key: {**one, "provider_metadata": None, PLACEHOLDER: None} for key, one in told.items()}


def test_there_and_back_again(root: Path, s3: S3) -> None:
    before, disk = shown(root), content(root)
    done = run(root, "push")
    size = sum(map(len, disk.values()))
    assert done.output == f"3 files moved to s3://media-of-tests/site ({size:,} bytes)\n"
    assert content(root) == {}
    assert shown(root) == before
    held = s3.objects()
    assert {PICTURE, b"a note", b"a: file of its own\n"} <= set(held.values())
    said = (root / "content/uploads/bay.png.yaml").read_text()
    assert said.startswith("# Ours\ncaption: The bay\ncreatedAt: 2024-01-01T00:00:00.000Z\n")
    assert yaml.safe_load(said)["file"]["sha256"] == hashlib.sha256(PICTURE).hexdigest()
    assert run(root, "push").output == "0 files moved to s3://media-of-tests/site (0 bytes)\n"
    back = run(root, "pull")
    assert (back.exit_code, back.output.startswith("3 files moved from s3://")) == (0, True)
    assert content(root) == disk
    assert shown(root) == before
    assert s3.objects() == held
    assert run(root, "pull").output.startswith("0 files moved")


def test_files_can_be_kept(root: Path, s3: S3) -> None:
    before, disk = shown(root), content(root)
    assert run(root, "push", "--keep").exit_code == 0
    assert content(root) == disk
    assert shown(root) == before
    assert PICTURE in s3.objects().values()
    assert run(root, "push").exit_code == 0
    assert (content(root), shown(root)) == ({}, before)


def test_what_the_bucket_does_not_give_back_stays_on_disk(root: Path, s3: S3) -> None:
    hash_ = hashlib.sha256(b"a note").hexdigest()
    # Of the same length as the right content, and new.
    obstore.put(s3.store, f"{hash_[:2]}/{hash_}.txt", b"a nope")
    done = run(root, "push")
    assert done.exit_code == 1
    assert "content/uploads/deep/note.txt: The media file is damaged in the bucket" in done.output
    assert content(root) == {"deep/note.txt": b"a note"}
    assert not (root / "content/uploads/deep/note.txt.yaml").exists()


def test_a_missing_object_is_left_by_pull(root: Path, s3: S3) -> None:
    run(root, "push")
    hash_ = hashlib.sha256(b"a note").hexdigest()
    obstore.delete(s3.store, f"{hash_[:2]}/{hash_}.txt")
    done = run(root, "pull")
    assert (done.exit_code, "deep/note.txt: The media file is missing from the bucket" in done.output) == (
        1,
        True,
    )
    assert sorted(content(root)) == ["bay.png", "own.yaml"]


def test_a_link_stays(root: Path) -> None:
    (root / "content/uploads/also.png").symlink_to("bay.png")
    done = run(root, "push")
    assert (done.exit_code, "content/uploads/also.png: is a symbolic link" in done.output) == (1, True)
    assert (root / "content/uploads/also.png").is_symlink()


def test_a_bucket_that_is_away_moves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "MAX_RETRIES", 0)
    disk = content(root)
    text = (root / "site.yaml").read_text()
    (root / "site.yaml").write_text(
        text.replace("endpoint: http://127.0.0.1:", "endpoint: http://127.0.0.1:1 #")
    )
    done = run(root, "push")
    assert (done.exit_code, done.output) == (
        1,
        "bifolio: The media bucket did not respond; try again later\n",
    )
    assert content(root) == disk
    (root / "site.yaml").write_text("")
    assert "media.store is missing" in run(root, "push").output


def test_formats_that_are_missing_are_made(root: Path, s3: S3) -> None:
    before = shown(root)
    run(root, "push")
    path = root / "content/uploads/bay.png.yaml"
    said = yaml.safe_load(path.read_text())
    formats = said["file"].pop("formats")
    path.write_text(yaml.safe_dump(said))
    assert run(root, "push").output.startswith("1 files moved")
    assert yaml.safe_load(path.read_text())["file"]["formats"] == formats
    assert shown(root)["bay.png"]["formats"] == before["bay.png"]["formats"]


def placeholder_of(root: Path) -> Any:
    site = Site(root)
    site.load()
    return site.state.snapshot.media["bay.png"].get(PLACEHOLDER)


def test_placeholders_are_described_if_the_settings_say_so(root: Path, s3: S3) -> None:
    path = root / "content/uploads/bay.png.yaml"
    run(root, "push")
    assert "placeholder" not in path.read_text()
    (root / "site.yaml").write_text(f"{s3.settings()}  placeholders: true\n")
    assert placeholder_of(root) is None
    assert run(root, "push").output.startswith("1 files moved")
    said = yaml.safe_load(path.read_text())["file"]
    assert placeholder_of(root) == {name: said[name] for name in ("placeholder", "color")}
    assert run(root, "push").output.startswith("0 files moved")
    path.write_text(path.read_text().replace(said["color"], "red"))
    assert "file.color must be a color such as #5b7f95" in check(root).output


@pytest.mark.parametrize("way", ["push", "pull"])
def test_killed_again_and_again(tmp_path: Path, s3: S3, way: str) -> None:
    many = {f"content/uploads/{i:02d}.txt": f"file {i}".encode() * 1000 for i in range(90)}
    write(tmp_path, {**many, "site.yaml": s3.settings(), "content-types/post.json": POST})
    before, disk = shown(tmp_path), content(tmp_path)
    if way == "pull":
        assert run(tmp_path, "push").exit_code == 0
    command = [sys.executable, "-m", "server", "media", way, "--site", str(tmp_path)]
    chance, began, halfway = random.Random(4), time.monotonic(), 0
    for _ in range(5):
        seen = count(tmp_path)
        process = subprocess.Popen(command, **QUIETLY)
        while process.poll() is None and count(tmp_path) == seen:
            time.sleep(0.002)
        time.sleep(chance.random() / 20)
        process.kill()
        process.wait()
        halfway += 0 < len(content(tmp_path)) < len(disk)
        # Every file is on disk, or its description names an existing object.
        assert shown(tmp_path) == before
        site, held = load(tmp_path, {}), s3.objects()
        for key, one in site.state.snapshot.media.items():
            stored = one.get("provider_metadata")
            sha256 = stored and stored["sha256"]
            found = held[f"{sha256[:2]}/{sha256}.txt"] if stored else (tmp_path / one.path).read_bytes()
            assert found == disk[key]
    assert halfway
    assert run(tmp_path, way).exit_code == 0
    assert time.monotonic() - began < 200
    assert content(tmp_path) == ({} if way == "push" else disk)
    assert shown(tmp_path) == before


def exported(root: Path, target: Path) -> dict[str, bytes]:
    """Export the site. Return the exported files without the time of the export."""
    done = CliRunner().invoke(main, ["export", str(target), "--site", str(root), "--force"])
    assert done.exit_code == 0, done.output
    uploads = target / "uploads"
    return {str(path.relative_to(target)): path.read_bytes() for path in uploads.rglob("*") if path.is_file()}


def test_an_export_fetches_what_it_needs(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = root / "site.yaml"
    settings.write_text(settings.read_text() + "roles: {public: {upload: [find], post: [find]}}\n")
    before = exported(root, tmp_path_factory.mktemp("before"))
    assert {"uploads/bay.png", "uploads/small_bay.png", "uploads/deep/note.txt"} <= before.keys()
    assert run(root, "push").exit_code == 0
    assert exported(root, tmp_path_factory.mktemp("after")) == before


def check(root: Path) -> Result:
    return CliRunner().invoke(main, ["check", "--media", "--site", str(root)])


def test_a_check_tells_what_the_bucket_lacks(root: Path, s3: S3) -> None:
    assert check(root).exit_code == 0
    run(root, "push")
    assert check(root).exit_code == 0
    small = yaml.safe_load((root / "content/uploads/bay.png.yaml").read_text())["file"]["formats"]["small"]
    key = f"{small['sha256'][:2]}/{small['sha256']}.png"
    obstore.delete(s3.store, key)
    found = check(root)
    assert found.exit_code == 1
    assert (
        f"refers to the object {key}, which is missing from the bucket s3://media-of-tests/site"
        in found.output
    )
    assert run(root, "push").exit_code == 0
    assert run(root, "pull").exit_code == 0
    assert check(root).exit_code == 0


def test_a_file_that_somebody_changes_meanwhile_is_not_lost(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, fetch = root / "content/uploads/deep/note.txt", buckets.Bucket.fetch
    changes = iter([b"changed once", b"changed twice!"])

    def fetch_and_change(self: buckets.Bucket, object_: Any, *more: Any) -> None:
        fetch(self, object_, *more)
        if object_.ext == ".txt" and (data := next(changes, b"")):
            path.write_bytes(data)

    monkeypatch.setattr(buckets.Bucket, "fetch", fetch_and_change)
    assert run(root, "push").exit_code == 0
    monkeypatch.undo()
    until(lambda: content(root) == {})
    said = yaml.safe_load((root / "content/uploads/deep/note.txt.yaml").read_text())
    assert said["file"]["sha256"] == hashlib.sha256(b"changed twice!").hexdigest()


def test_moves_are_commits_where_the_site_commits_writes(root: Path, s3: S3) -> None:
    settings = f"{s3.settings()}git: {{commit: each, committer: Site <site@example.org>}}\n"
    write(root, {"site.yaml": settings, ".gitignore": ".bifolio/\n"})
    commit_all(root)
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    assert run(root, "push", "--keep").exit_code == 0
    assert run(root, "push").exit_code == 0
    assert run(root, "pull").exit_code == 0
    assert git(root, "status", "--short") == ""
    assert git(root, "log", "-4", "--format=%an: %s").splitlines() == [
        "Ada: Move 3 media files from the bucket",
        "Ada: Move 3 media files to the bucket",
        "Ada: Copy 3 media files to the bucket",
        "T: first",
    ]
