"""`bifolio media gc`: it must not delete objects that a file in any commit refers to, or objects that are
new.
"""

import hashlib
import subprocess
from datetime import timedelta
from pathlib import Path

import obstore
import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.errors import BifolioError
from server.site.site import Site
from server.storage.bucket.opening import open_bucket
from server.tools.media_garbage import delete_garbage, find_garbage
from tests.buckets import S3
from tests.git import commit_all, git
from tests.sites import schema, write

NOW = timedelta()
UPLOADS = "content/uploads"


def key_of(data: bytes) -> str:
    hash_ = hashlib.sha256(data).hexdigest()
    return f"{hash_[:2]}/{hash_}.txt"


def describe(root: Path, name: str, data: bytes) -> None:
    hash_ = hashlib.sha256(data).hexdigest()
    text = f"name: {name}\nfile:\n  sha256: {hash_}\n  ext: .txt\n  size: {len(data)}\n"
    write(root, {f"{UPLOADS}/{name}.yaml": text})


def put(s3: S3, *contents: bytes) -> None:
    for data in contents:
        obstore.put(s3.store, key_of(data), data)


def collect(root: Path, grace: timedelta = NOW) -> tuple[int, int, int, int]:
    """Delete unused objects. Return the number of objects, of those in use, of those that are too new, and of
    those deleted.
    """
    site = Site(root)
    site.load()
    bucket = open_bucket(site.state.settings)
    found = find_garbage(site.root, bucket, grace)
    deleted = delete_garbage(bucket, found, lambda done, whole: None, grace)
    return found.objects, found.referenced, found.recent, deleted


def run(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["media", "gc", "--site", str(root), *arguments])


@pytest.fixture
def root(tmp_path: Path, s3: S3) -> Path:
    """A site whose first commit refers to the object `first`. An uncommitted file refers to `second`."""
    site = tmp_path / "site"
    write(site, {"site.yaml": s3.settings(), "content-types/post.json": schema("post", {"title": "string"})})
    describe(site, "a.txt", b"first")
    commit_all(site)
    describe(site, "a.txt", b"second")
    put(s3, b"first", b"second", b"nobody's")
    return site


def test_what_any_commit_or_file_names_stays(root: Path, s3: S3) -> None:
    assert collect(root) == (3, 2, 0, 1)
    assert sorted(s3.objects().values()) == [b"first", b"second"]


def test_branches_tags_stashes_the_index_and_the_reflog_count(root: Path, s3: S3) -> None:
    git(root, "checkout", "-qb", "other")
    git(root, "commit", "-qam", "second")
    describe(root, "b.txt", b"only staged")
    git(root, "add", "-A")
    (root / UPLOADS / "b.txt.yaml").unlink()
    git(root, "commit", "-q", "--allow-empty", "-m", "c", "--only")
    describe(root, "a.txt", b"left by a reset")
    git(root, "commit", "-qm", "to be reset", f"{UPLOADS}/a.txt.yaml")
    git(root, "reset", "-q", "--soft", "HEAD~1")
    git(root, "reset", "-q", f"{UPLOADS}/a.txt.yaml")
    git(root, "checkout", "-q", f"{UPLOADS}/a.txt.yaml")
    git(root, "checkout", "-q", "main")
    put(s3, b"only staged", b"left by a reset")
    assert collect(root) == (5, 4, 0, 1)
    assert b"nobody's" not in s3.objects().values()


def test_a_description_that_is_elsewhere_as_well_counts(root: Path, s3: S3) -> None:
    """This also applies if git lists the other path first, or if a file name contains a newline."""
    for name in ("a.txt", "b\nc.txt"):
        git(root, "checkout", "-qb", f"with-{name[0]}", "main")
        describe(root, name, f"of {name}".encode())
        write(root, {"aaa/copy.yaml": (root / UPLOADS / f"{name}.yaml").read_text()})
        git(root, "add", "-A")
        git(root, "commit", "-qm", name)
        put(s3, f"of {name}".encode())
    git(root, "checkout", "-q", "main")
    git(root, "reflog", "expire", "--expire=now", "--all")
    describe(root, "a.txt", b"second")
    assert collect(root) == (5, 4, 0, 1)


def test_a_description_that_a_merge_made_counts(root: Path, s3: S3) -> None:
    git(root, "commit", "-qam", "second")
    git(root, "checkout", "-qb", "other", "HEAD~1")
    git(root, "commit", "-q", "--allow-empty", "-m", "other")
    git(root, "merge", "-q", "--no-commit", "--no-ff", "main")
    describe(root, "b.txt", b"of the merge")
    write(root, {"aaa/copy.yaml": (root / UPLOADS / "b.txt.yaml").read_text()})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "merge")
    git(root, "checkout", "-q", "main")
    put(s3, b"of the merge")
    assert collect(root) == (4, 3, 0, 1)


def test_the_branches_of_a_remote_are_fetched_first(root: Path, s3: S3, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "bare")
    git(root, "remote", "add", "origin", str(tmp_path / "bare"))
    git(root, "push", "-q", "origin", "main")
    git(tmp_path, "clone", "-q", "bare", "clone")
    other = tmp_path / "clone"
    git(other, "checkout", "-qb", "elsewhere")
    describe(other, "c.txt", b"of another machine")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "elsewhere")
    git(other, "push", "-q", "origin", "elsewhere")
    put(s3, b"of another machine")
    assert collect(root) == (4, 3, 0, 1)
    (tmp_path / "bare").rename(tmp_path / "away")
    put(s3, b"more")
    with pytest.raises(BifolioError, match="remote"):
        collect(root)
    assert b"more" in s3.objects().values()


def test_what_is_young_stays(root: Path, s3: S3) -> None:
    assert collect(root, timedelta(hours=24)) == (3, 2, 1, 0)
    assert len(s3.objects()) == 3
    done = run(root)
    assert done.output == "3 objects: 2 used, 1 too recent, 0 removed (0 bytes)\n"
    assert run(root, "--grace", "1").exit_code == 2
    assert run(root, "--dry-run").output.endswith("0 would be removed (0 bytes)\n")


def test_other_things_in_the_bucket_are_left_alone(root: Path, s3: S3) -> None:
    obstore.put(s3.store, "read-me.txt", b"by hand")
    obstore.put(s3.store, "ab/other.txt", b"by hand")
    assert collect(root) == (3, 2, 0, 1)
    assert list(s3.objects().values()).count(b"by hand") == 2


def test_an_object_that_was_sent_again_meanwhile_stays(root: Path, s3: S3) -> None:
    site = Site(root)
    site.load()
    bucket = open_bucket(site.state.settings)
    found = find_garbage(site.root, bucket, NOW)
    put(s3, b"nobody's")
    assert delete_garbage(bucket, found, lambda done, whole: None, timedelta(hours=1)) == 0
    assert len(s3.objects()) == 3


def test_a_history_that_is_not_whole_is_refused(root: Path, s3: S3, tmp_path: Path) -> None:
    git(root, "commit", "-qam", "second")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{root}", str(shallow)], check=True)
    done = run(shallow)
    assert (done.exit_code, "git fetch --unshallow" in done.output) == (1, True)
    git(root, "config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    clone = ["git", "clone", "-q", "--filter=blob:none", f"file://{root}", str(partial)]
    subprocess.run(clone, check=True)
    done = run(partial)
    assert (done.exit_code, "some git objects are missing" in done.output) == (1, True)
    assert len(s3.objects()) == 3


def test_a_bucket_that_is_none_of_the_site_is_refused(root: Path, s3: S3) -> None:
    s3.empty()
    put(s3, b"of another site")
    done = run(root)
    assert (done.exit_code, "the site does not refer to any of the objects" in done.output) == (1, True)
    assert len(s3.objects()) == 1


def test_a_site_without_git(root: Path, s3: S3) -> None:
    (root / ".git").rename(root.parent / "git")
    assert collect(root) == (3, 1, 0, 2)
    assert list(s3.objects().values()) == [b"second"]
