"""Media in a bucket: objects, memory usage with large files, and access errors."""

import hashlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import IO

import pytest

from server.errors import BucketError, BusyError, MissingObjectError
from server.storage.bucket import bucket as buckets
from server.storage.bucket import copies as kept
from server.storage.bucket.bucket import Bucket
from server.storage.bucket.copies import LocalObjectCache
from server.storage.bucket.keeping import can_be_displayed, headers_of
from server.storage.bucket.stored import StoredObject
from tests.buckets import NAME, PREFIX, S3
from tests.servers import free_port

MB = 1024 * 1024
LARGE = """
import hashlib, resource, sys
from pathlib import Path
from server.storage.bucket.bucket import Bucket
from server.storage.bucket.stored import StoredObject
path = Path(sys.argv[1])
with path.open("rb") as file:
    object_ = StoredObject(hashlib.file_digest(file, "sha256").hexdigest(), ".mp4", path.stat().st_size)
bucket = Bucket(sys.argv[2], sys.argv[3], "us-east-1", long_timeouts=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert bucket.put(object_, path, {})
with open(sys.argv[1] + ".copy", "wb") as copy:
    bucket.fetch(object_, copy)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def object_of(data: bytes, ext: str = ".txt") -> StoredObject:
    return StoredObject(hashlib.sha256(data).hexdigest(), ext, len(data))


@pytest.fixture
def bucket(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setattr(buckets, "BACKOFF_S", 0.0)
    monkeypatch.setattr(buckets, "MAX_RETRIES", 0)
    return Bucket(f"s3://{NAME}/{PREFIX}", s3.url, "us-east-1")


def put(bucket: Bucket, folder: Path, data: bytes) -> StoredObject:
    (folder / "source").write_bytes(data)
    bucket.put(object_of(data), folder / "source", {})
    return object_of(data)


@pytest.mark.parametrize("size", [0, 1, 5 * MB, 5 * MB + 1, 11 * MB])
def test_what_is_put_is_fetched(bucket: Bucket, tmp_path: Path, size: int) -> None:
    object_ = put(bucket, tmp_path, data := os.urandom(size))
    bucket.fetch(object_, into := BytesIO())
    assert into.getvalue() == data
    assert not bucket.put(object_, tmp_path / "source", {})


def test_a_large_file_takes_little_memory(s3: S3, tmp_path: Path) -> None:
    path = tmp_path / "large.mp4"
    path.write_bytes(os.urandom(MB) * 100)
    command = [sys.executable, "-c", LARGE, str(path), f"s3://{NAME}/{PREFIX}", s3.url]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60
    assert path.read_bytes() == Path(f"{path}.copy").read_bytes()


def test_an_old_object_is_sent_again(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    object_ = put(bucket, tmp_path, b"text")
    monkeypatch.setattr(buckets, "MIN_RESEND_AGE", buckets.MIN_RESEND_AGE * 0)
    assert bucket.put(object_, tmp_path / "source", {})


def test_nobody_waits_again_for_a_bucket_that_failed(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "REQUEST_TIMEOUT_S", 2)
    monkeypatch.setattr(buckets, "MAX_RETRIES", 0)
    monkeypatch.setattr(buckets, "BACKOFF_S", 60.0)
    bucket = Bucket(f"s3://{NAME}/{PREFIX}", s3.url, "us-east-1")
    object_ = put(bucket, tmp_path, b"text")
    with s3.stopped(), pytest.raises(BucketError, match="did not respond"):
        bucket.has(object_)
    with pytest.raises(BucketError, match="did not respond"):
        bucket.has(object_)


def test_credentials_that_are_refused(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "BACKOFF_S", 0.0)
    s3.require_credentials()
    try:
        bucket = Bucket(f"s3://{NAME}/{PREFIX}", s3.url, "us-east-1")
        for ask in (bucket.check, lambda: put(bucket, tmp_path, b"text")):
            with pytest.raises(BucketError, match="denies access") as refused:
                ask()
            assert "a-secret" not in str(refused.value)
    finally:
        s3.require_credentials(after=1_000_000)


def test_copies_are_bounded_and_the_last_used_stay(bucket: Bucket, tmp_path: Path) -> None:
    copies, objects = (
        LocalObjectCache(tmp_path),
        [put(bucket, tmp_path, bytes([i]) * 1000) for i in range(12)],
    )
    for i, object_ in enumerate(objects):
        with copies.open(object_, bucket, 5000) as file:
            assert file.read() == bytes([i]) * 1000
        os.utime(tmp_path / ".bifolio/media" / object_.key, (i, i))
    held = {path.name for path in (tmp_path / ".bifolio/media").glob("*/*")}
    assert 1 <= len(held) <= 6
    assert objects[-1].key[3:] in held
    assert not [*(tmp_path / ".bifolio/media").glob("new-*")]


def test_a_copy_that_was_cut_off_is_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    copies, object_ = LocalObjectCache(tmp_path), put(bucket, tmp_path, b"text")
    copies.open(object_, bucket, MB).close()
    (tmp_path / ".bifolio/media" / object_.key).write_bytes(b"te")
    with copies.open(object_, bucket, MB) as file:
        assert file.read() == b"text"


def test_only_so_many_wait(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_CONCURRENT_FETCHES", 0)
    monkeypatch.setattr(kept, "QUEUE_TIMEOUT_S", 0.05)
    object_ = put(bucket, tmp_path, b"text")
    with pytest.raises(BusyError):
        LocalObjectCache(tmp_path).open(object_, bucket, MB)


class Blocked:
    """A bucket that sends one object only after `release` has been set."""

    def __init__(self, bucket: Bucket, slow: StoredObject) -> None:
        self.bucket, self.slow = bucket, slow
        self.begun, self.release = threading.Event(), threading.Event()

    def fetch(self, object_: StoredObject, into: IO[bytes], longest_s: float) -> None:
        if object_ == self.slow:
            self.begun.set()
            self.release.wait(30)
        self.bucket.fetch(object_, into, longest_s)


def test_readers_of_a_slow_object_leave_others_their_places(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MAX_CONCURRENT_FETCHES", 2)
    slow, other = put(bucket, tmp_path, b"slow"), put(bucket, tmp_path, b"other")
    copies, source = LocalObjectCache(tmp_path), Blocked(bucket, slow)
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(copies.open, slow, source, MB) for _ in range(4)]
        source.begun.wait(30)
        with copies.open(other, source, MB) as file:
            assert file.read() == b"other"
        source.release.set()
        for reader in readers:
            with reader.result() as file:
                assert file.read() == b"slow"


def test_what_is_not_there(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(MissingObjectError):
        bucket.fetch(object_of(b"nobody sent this"), BytesIO())
    assert not bucket.has(object_of(b"nobody sent this"))
    assert bucket.modified("ab/cd") is None
    bucket.delete(["ab/cd"])


@pytest.mark.parametrize(
    ("mime", "shown"),
    [
        ("image/png", True),
        ("video/mp4", True),
        ("text/plain", True),
        ("application/pdf", True),
        ("image/svg+xml", False),
        ("text/html", False),
        ("application/xhtml+xml", False),
        ("text/xml", False),
        ("text/javascript", False),
        ("application/octet-stream", False),
    ],
)
def test_what_a_browser_may_show(mime: str, shown: bool) -> None:
    assert can_be_displayed(mime) == shown
    assert ("Content-Disposition" in headers_of(mime)) != shown


def test_a_server_does_not_begin_without_the_library(tmp_path: Path) -> None:
    (tmp_path / "content-types").mkdir()
    (tmp_path / "site.yaml").write_text("media: {store: s3://bucket}\n")
    code = "from server.commands.cli import main\nfrom server.storage.bucket import opening\n"
    code += "opening.find_spec = lambda name: None  # as where it is not installed\nmain()"
    command = [sys.executable, "-c", code, "serve", "--site", str(tmp_path), "--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = "media.store requires the Python library obstore. Run `pip install 'bifolio[s3]'`"
    assert (done.returncode, said in done.stderr) == (1, True), done
