"""Configured programs in a repository: none of Bifolio's git commands may run them."""

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.errors import GitError, GitTimeoutError
from server.site.site import Site
from server.storage.git import command
from server.storage.git.command import git as bifolio_git
from server.storage.git.command import git_if_possible
from server.storage.git.repository import git_folder, is_shallow, repository_of
from server.storage.git.times import read_times
from server.storage.git.trouble import trouble_log
from server.storage.git.uncommitted import changed_paths
from tests.git import commit_all, git
from tests.sites import STRING, collection, make, write
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", {"content/a.md": "one\n", "content/b.md": "two\n"})
    commit_all(tmp_path / "site")
    return tmp_path / "site"


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The path of a file to which each of the programs writes when it runs."""
    return tmp_path / "ran"


@pytest.fixture
def program(tmp_path: Path, ran: Path) -> Path:
    path = tmp_path / "program"
    path.write_text(f'#!/bin/sh\necho "$0 $@" >> {ran}\ncat\n')
    path.chmod(0o755)
    return path


def ask_everything(root: Path) -> frozenset[str]:
    """Run all git commands that Bifolio uses to read.

    One file was changed in place, so that git has to read it.
    """
    changed = root / "content/a.md"
    status = changed.stat()
    changed.write_text("ONE\n")
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    git_folder(root)
    is_shallow(root)
    history = read_times(root)
    later = read_times(root, before=history)
    return later.changed | changed_paths(root, ["content/a.md", "content/b.md"])


# Settings for a repository. {0} is the path of the program.
CONFIGURED = {
    "core.fsmonitor": "{0}",
    "core.pager": "{0}",
    "pager.log": "{0}",
    "pager.diff": "{0}",
    "core.editor": "{0}",
    "core.askPass": "{0}",
    "core.sshCommand": "{0}",
    "core.gitProxy": "{0}",
    "core.alternateRefsCommand": "{0}",
    "credential.helper": "!{0}",
    "diff.external": "{0}",
    "diff.mine.command": "{0}",
    "diff.mine.textconv": "{0}",
    "merge.mine.driver": "{0}",
    "filter.mine.clean": "{0}",
    "filter.mine.smudge": "{0}",
    "filter.mine.process": "{0}",
    "filter.mine.required": "true",
    "gpg.program": "{0}",
    "gpg.ssh.program": "{0}",
    "gpg.x509.program": "{0}",
    "log.showSignature": "true",
    "interactive.diffFilter": "{0}",
    "alias.log": "!{0}",
    "alias.diff": "!{0}",
    "protocol.ext.allow": "always",
    "remote.origin.url": "ext::{0}",
    "remote.origin.promisor": "true",
}


def configure(root: Path, program: Path, **more: str) -> None:
    for name, value in {**CONFIGURED, **more}.items():
        git(root, "config", name, value.format(program))
    hooks = root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"):
        shutil.copy(program, hooks / hook)
    write(root, {".git/info/attributes": "* filter=mine diff=mine merge=mine\n"})


def test_nothing_runs_that_a_repository_configures(root: Path, program: Path, ran: Path) -> None:
    configure(root, program)
    assert ask_everything(root) == {"content/a.md"}
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("name", sorted(CONFIGURED))
def test_nothing_runs_that_is_configured_alone(root: Path, program: Path, ran: Path, name: str) -> None:
    git(root, "config", name, CONFIGURED[name].format(program))
    write(root, {".git/info/attributes": "* filter=mine diff=mine merge=mine\n"})
    assert ask_everything(root) == {"content/a.md"}
    assert not ran.exists(), ran.read_text()


def test_no_hook_runs(root: Path, program: Path, ran: Path) -> None:
    git(root, "config", "core.hooksPath", str(root / "hooks"))
    for folder in ("hooks", ".git/hooks"):
        for hook in ("post-index-change", "fsmonitor-watchman"):
            write(root, {f"{folder}/{hook}": program.read_text()})
            (root / folder / hook).chmod(0o755)
    assert "content/a.md" in ask_everything(root)
    assert not ran.exists(), ran.read_text()
    # No current version of git runs a hook for these commands, so the setting is tested with a command that
    # does.
    assert bifolio_git(root, "update-index", "content/a.md") is not None
    assert not ran.exists(), ran.read_text()


def test_a_hook_would_run(root: Path, program: Path, ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Bifolio's settings, the command runs the hook. This shows that the test above would detect a
    hook.
    """
    fixed = tuple(setting for setting in command._SETTINGS if not setting.startswith("core.hooksPath"))
    monkeypatch.setattr(command, "_SETTINGS", fixed)
    shutil.copy(program, root / ".git/hooks/post-index-change")
    write(root, {"content/a.md": "ONE\n"})
    bifolio_git(root, "update-index", "content/a.md")
    assert "post-index-change" in ran.read_text()


def test_no_program_checks_signatures(root: Path, program: Path, ran: Path) -> None:
    text = git(root, "cat-file", "commit", "HEAD")
    head, _, message = text.partition("\n\n")
    signed = (
        f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n xx\n -----END PGP SIGNATURE-----\n\n{message}"
    )
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],
        cwd=root,
        input=signed.encode(),
        capture_output=True,
        check=True,
    )
    git(root, "reset", "-q", "--soft", made.stdout.decode().strip())
    configure(root, program)
    assert ask_everything(root) == {"content/a.md"}
    assert not ran.exists(), ran.read_text()


def test_nothing_runs_in_a_submodule(root: Path, program: Path, ran: Path) -> None:
    write(root / "content/inner", {"c.md": "three\n"})
    commit_all(root / "content/inner")
    git(root, "add", "content/inner")
    git(root, "commit", "-qm", "inner")
    configure(root / "content/inner", program)
    assert "content/a.md" in ask_everything(root)
    assert not ran.exists(), ran.read_text()


def test_a_filter_with_a_strange_name_is_not_run_either(root: Path, program: Path, ran: Path) -> None:
    for name in ("a.b", "a=b", "-x", "É"):
        git(root, "config", f"filter.{name}.clean", str(program))
        write(root, {".git/info/attributes": f"* filter={name}\n"})
        ask_everything(root)
        assert not ran.exists(), ran.read_text()


def test_variables_of_the_environment_count_for_nothing(
    root: Path, program: Path, ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"config": f"[core]\n\tfsmonitor = {program}\n"})
    others = {
        "GIT_DIR": str(tmp_path / "none"),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_EXTERNAL_DIFF": str(program),
        "GIT_PAGER": str(program),
        "GIT_CONFIG_GLOBAL": str(tmp_path / "config"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(program),
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor={program}'",
        "GIT_EXEC_PATH": str(tmp_path),
        "GIT_TRACE": str(ran),
    }
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    assert ask_everything(root) == {"content/a.md"}
    assert not ran.exists(), ran.read_text()


def test_files_of_a_site_that_was_copied_are_read_once(root: Path, tmp_path: Path) -> None:
    copied, cache = tmp_path / "copy", tmp_path / "cache"
    cache.mkdir()
    shutil.copytree(root, copied)  # The copied files have other inodes, so git's index does not match them.
    git(copied, "config", "core.trustctime", "false")
    before = (copied / ".git/index").read_bytes()
    file = copied / "content/a.md"
    aged = (file.stat().st_mtime_ns - 10_000_000_000,) * 2
    os.utime(file, ns=aged)
    assert changed_paths(copied, cache=cache) == set()
    assert (copied / ".git/index").read_bytes() == before
    # The size and mtime are the same, so git must read the file to detect the change.
    file.write_text("ONE\n")
    os.utime(file, ns=aged)
    assert changed_paths(copied, cache=cache) == set()
    assert changed_paths(copied) == {"content/a.md"}
    (cache / next(cache.iterdir())).write_bytes(b"damaged")
    assert changed_paths(copied, cache=cache) == {"content/a.md"}


def test_one_index_is_kept(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    assert changed_paths(root, cache=cache) == set()
    assert list(cache.iterdir()) == []  # git's index is up to date.
    added: set[str] = set()
    for name in ("c", "d"):
        os.utime(root / "content/a.md", (1, ord(name)))
        assert changed_paths(root, cache=cache) == added
        (root / f"content/{name}.md").write_text(name)
        git(root, "add", f"content/{name}.md")
        added.add(f"content/{name}.md")
        assert changed_paths(root, cache=cache) == added
        assert len(list(cache.iterdir())) == 1


@pytest.fixture
def untrusted(root: Path) -> Iterator[Path]:
    """A repository that another user owns. Only root can create one."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files to others")
    for path in (root, *root.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    trouble_log.cache_clear()
    yield root
    trouble_log.cache_clear()


def test_a_repository_that_was_given_to_somebody_else_is_not_one_without_commits(
    root: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = repository_of(root)
    assert repository.head()
    monkeypatch.setenv("HOME", str(request.getfixturevalue("untrusted").parent))
    with pytest.raises(GitError, match="dubious ownership"):
        repository.head()


def test_the_repository_of_somebody_else_is_not_read(
    untrusted: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(untrusted.parent))
    with caplog.at_level(logging.WARNING, "bifolio"):
        for _ in range(2):
            assert git_folder(untrusted) is None
            assert read_times(untrusted).times == {}
    assert caplog.text.count("belongs to another user") == 1
    write(untrusted.parent, {".gitconfig": f"[safe]\n\tdirectory = {untrusted}\n"})
    assert git_folder(untrusted) == untrusted / ".git"


def test_the_repository_of_somebody_else_is_told_of_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files to others")
    monkeypatch.setenv("HOME", str(tmp_path))
    top = tmp_path / "a b"
    write(top, {"site/site.yaml": "search: {index: false}\n"})
    commit_all(top)
    for path in (top, *top.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    api = make(top / "site", {})
    # The suggested command contains the path of the repository, quoted for a shell.
    trust = f"git config --global --add safe.directory '{top}'"
    for path in ("/branches", "/history", "/api/upload/files?at=main"):
        refused = api.get(path)
        assert (refused.status, refused.error["message"].endswith(trust)) == (409, True), path
        assert "another user" in refused.error["message"]
    assert f"({trust}, if you trust it)" in caplog.text
    subprocess.run(trust, shell=True, check=True)
    api.site.refresh()
    assert api.get("/branches").data[0]["name"] == "main"
    api.accounts.close()


def test_no_room_for_temporary_files_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "content/a.md").write_text("edited\n")
    assert changed_paths(root) == {"content/a.md"}
    monkeypatch.setattr("tempfile.tempdir", str(root / "missing"))
    with pytest.raises(GitError, match="No such file or directory"):
        changed_paths(root)
    assert read_times(root, None).times.keys() == {"content/a.md", "content/b.md"}


def test_files_of_one_commit_share_their_times_in_memory(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for history in (read_times(root, cache), read_times(root, cache)):  # from git, then from the cache
        one, other = (history.times[f"content/{name}.md"] for name in "ab")
        assert one is other
        derived, other_derived = (history.timestamps(f"content/{name}.md", 0) for name in "ab")
        assert derived is other_derived


@pytest.fixture
def slow_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git program that waits for a child process, and a timeout of 0.3 s."""
    folder = tmp_path / "slow"
    write(folder, {"git": f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/started; wait\n"})
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(command, "DEFAULT_TIMEOUT_S", 0.3)
    monkeypatch.setattr(command, "TIMEOUTS_S", {})
    return tmp_path / "started"


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(root: Path, slow_git: Path) -> None:
    with pytest.raises(GitTimeoutError, match=r"git log took longer than 0.3 s"):
        bifolio_git(root, "log")
    until(lambda: not is_running(int(slow_git.read_text())))
    assert git_if_possible(root, "log", seconds=0.1) is None


def test_every_limit_is_of_a_command_that_is_run() -> None:
    sources = "".join(path.read_text() for path in Path(command.__file__).parent.glob("*.py"))
    assert [name for name in command.TIMEOUTS_S if sources.count(f'"{name}"') < 2] == []


def test_a_site_is_served_while_git_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "site"
    write(root, {**collection("note", {"title": STRING}), "content/notes/a.yaml": "title: A\n"})
    commit_all(root)
    api = make(root, {})
    assert api.get("/branches").status == 200
    monkeypatch.setattr(command, "DEFAULT_TIMEOUT_S", 0.0)
    monkeypatch.setattr(command, "TIMEOUTS_S", {})
    busy = api.get("/branches")
    assert (busy.status, busy.headers["Retry-After"]) == (503, "5")
    assert "took longer than" in busy.error["message"]
    (root / "content/notes/a.yaml").write_text("title: B\n")
    api.site.refresh()
    assert api.get("/api/notes/a").data["title"] == "B"
    # The next server starts in spite of the failure, with the cached commit times.
    again = Site(root)
    again.load()
    assert again.git.committed.commit == api.site.git.committed.commit
    api.accounts.close()
