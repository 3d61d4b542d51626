"""Transfers between disk and bucket count the files that were moved, and list the others."""

from collections.abc import Callable
from pathlib import Path

import pytest

from server.service.authorship import caller_of_command, writes_of_command
from server.service.media.bucket_transfer import TransferResult, pull, push
from server.service.opening import Mode, open_site
from server.storage.bucket.opening import open_bucket
from tests.buckets import S3
from tests.sites import write

UPLOADS = "content/uploads"
TEXTS = {"a.txt": "one", "b.txt": "two", "c.txt": "three"}


@pytest.fixture
def root(tmp_path: Path, s3: S3) -> Path:
    write(tmp_path, {"site.yaml": s3.settings()})
    write(tmp_path, {f"{UPLOADS}/{name}": text for name, text in TEXTS.items()})
    return tmp_path


def transfer(
    root: Path, transferring: Callable[..., TransferResult], act: Callable[[], None]
) -> TransferResult:
    """Run a transfer of three files. `act` is called when two of them have been copied."""
    opened = open_site(root, Mode.COMMAND)
    bucket = open_bucket(opened.site.state.settings)

    def progress(done: int, total: int) -> None:
        if (done, total) == (2, 3):
            act()

    return transferring(writes_of_command(opened), caller_of_command(opened), bucket, progress)


def nothing() -> None:
    pass


def test_a_push_counts_only_the_files_that_it_moved(root: Path) -> None:
    def change() -> None:
        (root / UPLOADS / "a.txt").write_text("changed")

    reason = "the file changed after the upload; run the command again"
    pushed = transfer(root, push, change)
    assert (pushed.file_count, pushed.byte_count) == (2, len("two" + "three"))
    assert pushed.unmoved == ((f"{UPLOADS}/a.txt", reason),)
    assert (root / UPLOADS / "a.txt").read_text() == "changed"
    again = transfer(root, push, nothing)
    assert (again.file_count, again.byte_count, again.unmoved) == (1, len("changed"), ())


def test_a_pull_counts_only_the_files_that_it_moved(root: Path) -> None:
    transfer(root, push, nothing)

    def create_and_delete() -> None:
        (root / UPLOADS / "a.txt").write_text("new")
        (root / UPLOADS / "b.txt.yaml").unlink()

    pulled = transfer(root, pull, create_and_delete)
    assert (pulled.file_count, pulled.byte_count) == (1, len("three"))
    assert pulled.unmoved == (
        (f"{UPLOADS}/a.txt", "another program created the file during the transfer"),
        (f"{UPLOADS}/b.txt", "the file was deleted during the transfer"),
    )
    assert (root / UPLOADS / "a.txt").read_text() == "new"
    assert not (root / UPLOADS / "b.txt").exists()
