"""Three machines write at random and are killed at random: no confirmed write may be lost."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import pytest

from server.errors import CommitError
from server.history.remote.last_integrated import set_last_commit
from tests.git import git
from tests.git_programs import fake_git, killed_ref_update
from tests.history.remote.machines import Machines, at_remote, head, hook, machines
from tests.servers import free_port, is_free, kill_all, start, stop, wait
from tests.sites import write
from tests.torture import SEED
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

WRITING_S = 8.0
NAMES = ("a", "b", "c")
FIELDS = ("title", "summary", "number", "slug")


@dataclass(slots=True)
class Server:
    """The server process of one machine, which a test can kill and restart."""

    root: Path
    token: str
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        until(lambda: is_free(self.port))
        self.process = start(self.root, self.port, "--workers", "1", output=subprocess.DEVNULL)
        wait(self.process, self.port)

    def kill(self) -> None:
        """Kill the server and all its child processes at once, as a power failure would."""
        assert self.process
        kill_all(self.process)
        # The server's git commands run in their own sessions, so killing the process group would miss them.
        for name in os.listdir("/proc"):
            with suppress(OSError, ValueError):
                if name.isdigit() and f"\0{self.root}\0" in Path(f"/proc/{name}/cmdline").read_text():
                    os.kill(int(name), signal.SIGKILL)

    def put(self, number: int, data: dict[str, object]) -> tuple[int, str]:
        """Write a note, and return the response's status and the commit id in its header."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        address = f"http://127.0.0.1:{self.port}/api/notes/n{number}"
        body = json.dumps({"data": data}).encode()
        request = urllib.request.Request(address, body, headers, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
                return answer.status, answer.headers["Bifolio-Commit"]
        except urllib.error.HTTPError as error:
            with error:
                error.read()
                return error.code, ""


@contextmanager
def running(folder: Path, push: str) -> Iterator[tuple[Machines, list[Server]]]:
    documents = {f"content/notes/n{i}.md": f"---\ntitle: N{i}\nslug: n{i}\n---\nText.\n" for i in range(4)}
    with machines(folder, *NAMES, push=f"{push}, follow: 1s", files=documents) as made:
        tokens = {name: made[name].tokens["full"] for name in NAMES}
        roots = {name: made[name].root for name in NAMES}
        servers = [Server(roots[name], tokens[name]) for name in NAMES]
        try:
            for server in servers:
                server.start()
            yield made, servers
        finally:
            for server in servers:
                if server.process and server.process.poll() is None:
                    stop(server.process)


def is_settled(made: Machines, servers: list[Server]) -> bool:
    """Return whether all machines are at the remote's latest commit, with no uncommitted changes."""
    tip = made.tip
    return all(head(s.root) == tip and not git(s.root, "status", "--short") for s in servers)


def test_a_machine_is_killed_when_the_remote_has_its_write(tmp_path: Path) -> None:
    with running(tmp_path, "before") as (made, servers):
        server = servers[0]
        assert server.process
        hook(made.bare, "post-receive", f"kill -9 -{server.process.pid}")
        with pytest.raises((OSError, HTTPException)):
            server.put(0, {"title": "Uno"})
        server.process.wait()
        (made.bare / "hooks/post-receive").unlink()
        assert head(server.root) != made.tip
        server.start()
        until(lambda: is_settled(made, servers))
        assert server.put(0, {"summary": "Long"})[0] == 200
        until(lambda: is_settled(made, servers))
        assert "title: Uno" in at_remote(made, "content/notes/n0.md")


@pytest.mark.parametrize("push", ["before", "after"])
def test_confirmed_writes_are_at_the_remote(tmp_path: Path, push: str) -> None:
    chosen = random.Random(f"{SEED} {push}")
    answered: list[str] = []
    statuses: dict[int, int] = {}
    with running(tmp_path, push) as (made, servers):
        over = time.monotonic() + WRITING_S

        def write(number: int, server: Server) -> None:
            own, count = random.Random(f"{SEED} {push} {number}"), 0
            while time.monotonic() < over:
                count += 1
                # After a write is confirmed, only one machine may change a field. Otherwise, the writes would
                # conflict.
                name = own.choice(FIELDS) if push == "before" else FIELDS[number]
                # A write that sets the current value changes nothing and creates no commit.
                value = 1000 * number + count if name == "number" else f"{name}-{number}-{count}"
                try:
                    status, commit = server.put(own.randrange(4), {name: value})
                except (OSError, HTTPException):
                    time.sleep(0.05)
                    continue
                statuses[status] = statuses.get(status, 0) + 1
                if status == 200:
                    answered.append(commit)

        threads = [threading.Thread(target=write, args=(n, s)) for n, s in enumerate(servers)]
        for thread in threads:
            thread.start()
        while time.monotonic() < over - 2:
            time.sleep(chosen.uniform(0.5, 2.0))
            victim = chosen.choice(servers)
            victim.kill()
            victim.start()
        for thread in threads:
            thread.join()
        assert answered, statuses
        until(lambda: is_settled(made, servers), 90)
        there = set(git(made.bare, "rev-list", "main").split())
        lost = [commit for commit in answered if commit != "pending" and commit not in there]
        assert lost == [], statuses
        assert set(statuses) <= {200, 409, 503}, statuses
        trees = {git(server.root, "rev-parse", "HEAD^{tree}") for server in servers}
        assert trees == {git(made.bare, "rev-parse", "main^{tree}")}
        assert git(made.bare, "fsck", "--connectivity-only") is not None


def test_only_git_is_killed_while_it_serves_a_pushed_commit(
    two: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, folder = two["a"], two["a"].root / ".git"
    with monkeypatch.context() as patch:
        script = killed_ref_update(api.root, "refs/bifolio/remote/main", "refs/heads/main")
        write(api.root, {".git/refs/bifolio/remote/.keep": ""})
        fake_git(patch, folder / "programs", update_ref=script)
        assert api.put("/api/notes/one", {"title": "Uno"}).status == 200
    assert (folder / "killed").exists()
    assert not list(folder.rglob("*.lock"))
    assert api.put("/api/notes/one", {"title": "Eins"}).status == 200
    assert two.tip == head(api.root) == head(api.root, "refs/bifolio/remote/main")
    assert git(api.root, "status", "--short") == ""


def test_only_git_is_killed_while_it_records_the_remote_commit(
    two: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, lock = two["a"], two["a"].root / ".git/refs/bifolio/remote/main.lock"
    write(api.root, {".git/refs/bifolio/remote/.keep": ""})
    commit = head(api.root)
    with monkeypatch.context() as patch:
        script = f"echo {commit} >{lock}; kill -9 $$"
        fake_git(patch, api.root / ".git/programs", update_ref=script)
        with pytest.raises(CommitError, match="killed by signal 9"):
            set_last_commit(api.root, "main", commit)
    assert not lock.exists()
    set_last_commit(api.root, "main", commit)
    assert head(api.root, "refs/bifolio/remote/main") == commit


def test_a_lock_that_blocks_writes_is_named(two: Machines) -> None:
    api, lock = two["a"], two["a"].root / ".git/HEAD.lock"
    lock.write_text("")
    assert api.put("/api/notes/one", {"title": "Uno"}).headers["Bifolio-Commit"] == two.tip
    answer = api.put("/api/notes/one", {"title": "Eins"})
    assert (answer.status, answer.error["message"]) == (
        409,
        "git can't move the branch, because .git/HEAD.lock exists; if no git command is running in the "
        "repository, delete this file",
    )
    lock.unlink()
    assert api.put("/api/notes/one", {"title": "Eins"}).status == 200
    assert two.tip == head(api.root)
