"""A git remote: fetching from it, pushing to it, and all ways in which this can fail."""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server.errors import (
    RemoteAccessError,
    RemoteMovedError,
    RemoteRefusedError,
    RemoteTimeoutError,
)
from server.storage.git.remote import MAX_REASON_CHARS, fetch, printable, push, tracked_commit
from tests.git import commit_all, git
from tests.servers import free_port
from tests.sites import write
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "bare.git")
    return tmp_path / "bare.git"


@pytest.fixture
def one(tmp_path: Path, bare: Path) -> Path:
    write(tmp_path / "one", {"a.md": "one\n"})
    commit_all(tmp_path / "one")
    git(tmp_path / "one", "remote", "add", "origin", str(bare))
    git(tmp_path / "one", "push", "-q", "origin", "main")
    return tmp_path / "one"


@pytest.fixture
def two(tmp_path: Path, one: Path, bare: Path) -> Path:
    git(tmp_path, "clone", "-q", str(bare), "two")
    return tmp_path / "two"


def head(root: Path, name: str = "HEAD") -> str:
    return git(root, "rev-parse", name).strip()


def commit(root: Path, text: str) -> str:
    """Create a commit on top of HEAD that is on no branch, and return its id."""
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=root, input=text.encode(), capture_output=True
    )
    tree = f"100644 blob {blob.stdout.decode().strip()}\ta.md\n"
    made = subprocess.run(["git", "mktree"], cwd=root, input=tree.encode(), capture_output=True, check=True)
    return git(root, "commit-tree", "-p", "HEAD", "-m", text, made.stdout.decode().strip()).strip()


def hook(repository: Path, name: str, body: str) -> None:
    path = repository / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


# --- successes ---------------------------------------------------------------------------------------


def test_a_commit_that_no_branch_leads_to_is_pushed_and_fetched(one: Path, two: Path, bare: Path) -> None:
    made, before = commit(one, "more"), head(one)
    push(one, "origin", "main", made, before)
    assert head(bare, "main") == made
    assert tracked_commit(one, "origin", "main") == made
    assert head(one) == before
    assert fetch(two, "origin", "main") == made
    assert tracked_commit(two, "origin", "main") == made
    assert head(two) == before


def test_a_branch_is_made_where_none_is_expected(one: Path, two: Path) -> None:
    push(one, "origin", "next", head(one), "")
    assert fetch(two, "origin", "next") == head(one)
    with pytest.raises(RemoteMovedError):
        push(two, "origin", "next", commit(two, "more"), "")


def test_a_branch_that_the_remote_has_not_is_told(one: Path) -> None:
    assert fetch(one, "origin", "next") == ""


def test_a_push_from_another_commit_than_expected_is_refused(one: Path, two: Path, bare: Path) -> None:
    before, ours, theirs = head(one), commit(one, "ours"), commit(two, "theirs")
    push(two, "origin", "main", theirs, before)
    with pytest.raises(RemoteMovedError):
        push(one, "origin", "main", ours, before)
    fetch(one, "origin", "main")
    with pytest.raises(RemoteMovedError):  # The push would discard the commit that the other clone pushed.
        push(one, "origin", "main", ours, theirs)
    assert head(bare, "main") == theirs


def test_what_was_taken_back_at_the_remote_is_not_brought_back(one: Path, bare: Path) -> None:
    first, second = head(one), commit(one, "second")
    push(one, "origin", "main", second, first)
    git(bare, "update-ref", "refs/heads/main", first)
    git(one, "reset", "-q", "--hard", second)
    with pytest.raises(RemoteMovedError):
        push(one, "origin", "main", commit(one, "third"), second)


def test_of_many_pushes_at_once_one_is_made(one: Path, bare: Path) -> None:
    before, commits = head(one), [commit(one, f"{number}") for number in range(6)]

    def attempt(made: str) -> bool:
        try:
            push(one, "origin", "main", made, before)
        except RemoteMovedError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(attempt, commits))
    assert [made for made, was in zip(commits, done, strict=True) if was] == [head(bare, "main")]


def test_fetches_at_once_all_succeed(one: Path, two: Path) -> None:
    made = commit(one, "more")
    push(one, "origin", "main", made, head(one))
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(lambda _: fetch(two, "origin", "main"), range(6))) == {made}


def test_the_lock_that_a_killed_fetch_has_left_is_removed(one: Path, two: Path) -> None:
    made = commit(one, "more")
    push(one, "origin", "main", made, head(one))
    lock = two / ".git/refs/remotes/origin/main.lock"
    lock.write_text("")
    with pytest.raises(RemoteTimeoutError):  # A git command may still be running.
        fetch(two, "origin", "main")
    os.utime(lock, (time.time() - 120, time.time() - 120))
    assert fetch(two, "origin", "main") == made


# --- failures ----------------------------------------------------------------------------------------


def test_a_remote_that_is_gone_is_away(one: Path, bare: Path) -> None:
    bare.rename(bare.with_name("moved.git"))
    with pytest.raises(RemoteTimeoutError):
        fetch(one, "origin", "main")
    with pytest.raises(RemoteTimeoutError):
        push(one, "origin", "main", commit(one, "more"), head(one))


def test_an_address_where_nobody_listens_is_away(one: Path) -> None:
    git(one, "remote", "set-url", "origin", f"http://name:secret@127.0.0.1:{free_port()}/x.git")
    with pytest.raises(RemoteTimeoutError) as caught:
        fetch(one, "origin", "main")
    assert "secret" not in str(caught.value)
    assert "name" not in str(caught.value)


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that accepts connections but never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("scheme", ["git", "http"])
def test_a_remote_that_hangs_is_away_in_time(one: Path, silent: int, scheme: str) -> None:
    git(one, "remote", "set-url", "origin", f"{scheme}://127.0.0.1:{silent}/x.git")
    before, began = threading.active_count(), time.monotonic()
    with pytest.raises(RemoteTimeoutError, match="within 1 s"):
        fetch(one, "origin", "main", 1.0)
    with pytest.raises(RemoteTimeoutError, match="within 1 s"):
        push(one, "origin", "main", commit(one, "more"), head(one), 1.0)
    assert time.monotonic() - began < 10
    until(lambda: threading.active_count() <= before)


def test_a_remote_that_says_much_is_cut_short(one: Path, bare: Path) -> None:
    hook(bare, "pre-receive", "yes '\033[31mno \007way' | head -c 3000000 >&2; exit 1")
    with pytest.raises(RemoteRefusedError) as caught:
        push(one, "origin", "main", commit(one, "more"), head(one))
    said = str(caught.value)
    assert "no way no way" in said
    assert len(said) < MAX_REASON_CHARS + 100
    assert said.isprintable()


@pytest.mark.parametrize("name", ["pre-receive", "update"])
def test_a_hook_of_the_remote_refuses_with_its_words(one: Path, bare: Path, name: str) -> None:
    hook(bare, name, "echo 'Only on weekdays, see https://bot:hunter2@example.org/rules' >&2; exit 1")
    with pytest.raises(RemoteRefusedError, match=r"weekdays, see https://example\.org/rules"):
        push(one, "origin", "main", commit(one, "more"), head(one))
    assert head(bare, "main") == head(one)


def test_a_rule_of_the_remote_refuses(one: Path, two: Path) -> None:
    git(one, "remote", "set-url", "origin", str(two))
    with pytest.raises(RemoteRefusedError, match="checked out branch"):
        push(one, "origin", "main", commit(one, "more"), head(one))
    assert head(two) == head(one)


def test_a_hook_before_the_push_refuses_with_its_words(one: Path, bare: Path) -> None:
    hook(one / ".git", "pre-push", "echo 'Spelling first' >&2; exit 1")
    with pytest.raises(RemoteRefusedError, match=r"pre-push .*: Spelling first"):
        push(one, "origin", "main", commit(one, "more"), head(one))
    assert head(bare, "main") == head(one)


def test_a_remote_that_dies_when_it_has_the_commit_is_away(one: Path, bare: Path) -> None:
    hook(bare, "post-receive", "kill -9 $PPID")
    made = commit(one, "more")
    with pytest.raises(RemoteTimeoutError):
        push(one, "origin", "main", made, head(one))
    assert fetch(one, "origin", "main") == made


def test_a_remote_that_asks_for_credentials_has_no_access(one: Path, tmp_path: Path) -> None:
    head_lines = (b"HTTP/1.1 401 Unauthorized", b"WWW-Authenticate: Basic realm=x", b"Content-Length: 0")
    answer = b"\r\n".join((*head_lines, b"Connection: close", b"", b""))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        port = server.getsockname()[1]
        git(one, "remote", "set-url", "origin", f"http://name:secret@127.0.0.1:{port}/x.git")
        with pytest.raises(RemoteAccessError) as caught:
            fetch(one, "origin", "main")
        with pytest.raises(RemoteAccessError):
            push(one, "origin", "main", commit(one, "more"), head(one))
        server.shutdown(socket.SHUT_RDWR)
    assert "secret" not in str(caught.value)


def test_ssh_asks_nobody(one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "bin" / "ssh"
    said = f"echo \"$@\" > {tmp_path}/ran; echo 'Permission denied (publickey).' >&2"
    write(tmp_path, {"bin/ssh": f"#!/bin/sh\n{said}; exit 255\n"})
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    git(one, "remote", "set-url", "origin", "git@example.org:x.git")
    with pytest.raises(RemoteAccessError):
        fetch(one, "origin", "main")
    assert "BatchMode=yes" in (tmp_path / "ran").read_text()
    git(one, "config", "core.sshCommand", f"{ssh} --mine")
    with pytest.raises(RemoteAccessError):
        fetch(one, "origin", "main")
    assert (tmp_path / "ran").read_text().startswith("--mine")
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{ssh} --ours")
    with pytest.raises(RemoteAccessError):
        fetch(one, "origin", "main")
    assert (tmp_path / "ran").read_text().startswith("--ours")


def test_a_remote_runs_no_program_of_its_address(one: Path, tmp_path: Path) -> None:
    git(one, "config", "protocol.ext.allow", "always")
    git(one, "remote", "set-url", "origin", f"ext::touch {tmp_path}/ran")
    with pytest.raises(RemoteTimeoutError):
        fetch(one, "origin", "main")
    assert not (tmp_path / "ran").exists()


def test_a_git_daemon_that_takes_no_pushes_gives_no_access(one: Path, bare: Path, tmp_path: Path) -> None:
    port = free_port()
    options = [
        f"--base-path={tmp_path}",
        "--export-all",
        "--reuseaddr",
        "--listen=127.0.0.1",
        f"--port={port}",
    ]
    daemon = subprocess.Popen(["git", "daemon", *options], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        git(one, "remote", "set-url", "origin", f"git://127.0.0.1:{port}/bare.git")

        def fetched() -> bool:
            try:
                return fetch(one, "origin", "main") == head(one)
            except RemoteTimeoutError:
                return False

        until(fetched)
        with pytest.raises(RemoteAccessError):
            push(one, "origin", "main", commit(one, "more"), head(one))
    finally:
        os.killpg(daemon.pid, 15)
        daemon.wait(10)


def test_what_a_remote_says_is_one_plain_line() -> None:
    said = "remote: a\x1b[31m b\nhttps://u:p@host/x \u202e ssh://git@host"
    assert printable(said) == "remote: a b https://host/x ssh://host"
