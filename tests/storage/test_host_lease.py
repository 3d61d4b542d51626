"""The lease on a site's folder: two machines can't serve the same folder, and no other case is rejected."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.errors import SetupError
from server.storage import host_lease
from server.storage.host_lease import HostLease
from tests.servers import free_port, start, stop, wait
from tests.sites import STRING, collection, write
from tests.waiting import until

Machine = Callable[[str], HostLease]
# With this setting, a server treats every file system as shared.
SHARED = (
    "from server.storage import host_lease as h; "
    "h.SHARED_FILE_SYSTEMS = {h._file_system(h.Path('.')).partition('.')[0]}"
)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A function that returns a site's lease as seen by a machine on a shared file system."""
    monkeypatch.setattr(host_lease, "SHARED_FILE_SYSTEMS", {host_lease._file_system(tmp_path)})
    monkeypatch.setattr(host_lease, "RENEWAL_INTERVAL_S", 0.05)
    monkeypatch.setattr(host_lease, "LEASE_TTL_S", 1.0)
    monkeypatch.setattr(host_lease, "CONTEST_DELAY_S", 0.0)
    root = tmp_path / "site"
    root.mkdir()

    def of(name: str) -> HostLease:
        boot = tmp_path / name
        boot.write_text(f"{name}\n")
        with monkeypatch.context() as patch:
            patch.setattr(host_lease, "_BOOT_ID_FILE", boot)
            patch.setattr("platform.node", lambda: f"{name}.example.org")
            return HostLease(root)

    return of


@contextmanager
def serving(lease: HostLease) -> Iterator[None]:
    """Context manager: renew a lease, as a running server does."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(0.01):
            lease.renew()

    lease.acquire()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def file_of(root: Path) -> Path:
    return root / "site/.bifolio/host.json"


def test_another_machine_is_refused_while_one_serves(machine: Machine, tmp_path: Path) -> None:
    one = machine("one")
    with serving(one):
        with pytest.raises(SetupError) as refused:
            machine("two").acquire()
        assert str(refused.value) == (
            ".bifolio: a server on the machine one.example.org is already serving this folder; only one "
            "machine"
            " can serve it at a time. Stop it first, or serve a clone of the repository here."
        )
        machine("one").acquire()  # as another server, or a container, on the same machine
    one.release()
    assert not file_of(tmp_path).exists()
    began = time.monotonic()
    machine("two").acquire()
    assert time.monotonic() - began < 0.5


def test_a_lease_that_nobody_renews_has_expired(machine: Machine, tmp_path: Path) -> None:
    machine("crashed").acquire()
    shutil.copytree(tmp_path / "site", tmp_path / "copy")
    two = machine("two")
    two.acquire()
    assert json.loads(file_of(tmp_path).read_text())["host"] == "two"
    machine("crashed").release()
    assert file_of(tmp_path).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "x", "renewals": "many"}'])
def test_what_is_no_lease_is_in_nobodys_way(machine: Machine, tmp_path: Path, text: str) -> None:
    (tmp_path / "site/.bifolio").mkdir()
    file_of(tmp_path).write_text(text)
    machine("one").acquire()
    assert json.loads(file_of(tmp_path).read_text())["host"] == "one"


def test_of_two_that_take_it_at_once_one_has_it(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machine("one"), machine("two")
    monkeypatch.setattr(host_lease.time, "sleep", lambda _: two._write())
    with pytest.raises(SetupError, match=r"two\.example\.org"):
        one.acquire()
    assert one.renew() is None


def test_a_machine_that_was_suspended_says_what_has_happened(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    one = machine("one")
    one.acquire()
    two = machine("two")
    two.acquire()  # waits until the lease has not been renewed for LEASE_TTL_S
    for _ in range(3):
        one._due = 0.0
        one.renew()
    assert [message.partition(" is already serving")[0] for message in caplog.messages] == [
        "a server on the machine two.example.org"
    ]


def test_a_folder_that_is_deleted_is_made_anew_and_a_local_one_has_no_lease(tmp_path: Path) -> None:
    lease = HostLease(tmp_path)
    lease.acquire()
    assert lease.renew() is None
    assert list(tmp_path.iterdir()) == []


def test_a_server_takes_the_lease_renews_it_and_releases_it(tmp_path: Path) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, {**collection("note", {"title": STRING}), "site.yaml": "search: {index: false}\n"})
    first = f"import os; os.chdir({str(root)!r}); {SHARED}; h.RENEWAL_INTERVAL_S = 0.05"
    process = start(root, port, "--workers=1", first=first)
    file = root / ".bifolio/host.json"
    try:
        wait(process, port)

        def renewals() -> int:
            return int(json.loads(file.read_text())["renewals"])

        before = renewals()
        until(lambda: renewals() > before + 2)
        assert file.stat().st_mode & 0o077 == 0
        assert os.path.getsize(file) == 512
    finally:
        stop(process)
    assert not file.exists()
