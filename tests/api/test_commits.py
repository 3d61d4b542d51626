"""Tests of committed writes (docs/history.md), with real git repositories and through the API."""

import errno
import io
import json
import os
import shlex
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from server.auth.users import Users
from server.errors import BusyError
from server.site.commits import committing, grouping
from server.storage.git import ref_updates
from server.write.context import Context
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.git_programs import GIT, fake_git, killed_ref_update
from tests.killing import DONE, KILLED, killed_at
from tests.servers import free_port, kill_all, serving, start, wait
from tests.sites import Answer, Api, collection, documents, make, opened, write, write_to
from tests.waiting import until

EACH = {"site.yaml": "git:\n  commit: each\n  committer: Site <site@example.org>\n"}
ARTICLES = {
    **collection("article", {"title": "string", "slug": {"type": "uid", "targetField": "title"}}),
    **documents("articles", walk={"title": "Equinox walk"}, other={"title": "Other"}),
}


@pytest.fixture
def made(make_api: MakeApi, tmp_path: Path) -> Callable[..., Api]:
    """Return a function that creates a site in its own git repository.

    The function writes the files, calls `before` with the folder, and then loads the site. By default,
    `before` commits all files.
    """

    def make(files: dict[str, str] | None = None, before: Callable[[Path], object] = commit_all) -> Api:
        everything = {**ARTICLES, **EACH, ".gitignore": ".bifolio/\n", **(files or {})}
        for name, text in everything.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        before(tmp_path)
        return make_api(everything)

    return make


def head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD").strip()


def status(root: Path) -> str:
    return git(root, "status", "--porcelain")


def changed(root: Path, commit: str = "HEAD") -> list[str]:
    return git(root, "show", "--format=", "--name-status", "--no-renames", commit).splitlines()


def rename(api: Api, title: str, name: str = "walk", **options: Any) -> Answer:
    answer = api.put(f"/api/articles/{name}", {"title": title}, **options)
    assert answer.status == 200, answer.text
    return answer


def commits(api: Api, title: str) -> bool:
    """Rename a document and return whether the change was committed immediately."""
    answer = api.put("/api/articles/walk", {"title": title})
    return answer.headers.get("Bifolio-Commit", "pending") != "pending"


def sound(root: Path) -> None:
    """Require that the git repository is intact and contains no temporary files or refs from Bifolio."""
    git(root, "fsck", "--strict")
    assert not list(root.glob(".git/*.lock")) + list(root.glob(".git/bifolio-*"))
    assert "refs/bifolio" not in git(root, "for-each-ref")


def test_a_token_does_not_sign_commits_with_an_email_address(made: Callable[..., Api]) -> None:
    api, name = made(), "Boss <boss@example.org>"
    api.tokens[name] = api.accounts.create_token(name, "full-access")
    assert api.put("/api/articles/walk", {"title": "Spring tide walk"}, name).status == 200
    assert (
        git(api.root, "log", "-1", "--format=%an <%ae>").strip() == "Boss bossexample.org <site@example.org>"
    )


def test_off(made: Callable[..., Api]) -> None:
    api = made({"site.yaml": ""})
    before = head(api.root)
    assert "Bifolio-Commit" not in rename(api, "New").headers
    assert head(api.root) == before
    assert not (api.root / ".bifolio/commits").exists()


def test_each_write_is_a_commit(made: Callable[..., Api]) -> None:
    api = made()
    answer = rename(api, "New walk")
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert changed(api.root) == ["M\tcontent/articles/walk.json"]
    assert (
        git(api.root, "log", "-1", "--format=%an|%ae|%cn|%ce")
        == "full|site@example.org|Site|site@example.org\n"
    )
    message = 'Update article "New walk"\n\nBifolio-Actor: token:full\nBifolio-Document: article/walk\n\n'
    assert git(api.root, "log", "-1", "--format=%B") == message
    assert status(api.root) == ""
    sound(api.root)


def test_created_and_deleted(made: Callable[..., Api]) -> None:
    api = made()
    answer = api.post("/api/articles", {"title": "Third"})
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert git(api.root, "log", "-1", "--format=%s") == 'Create article "Third"\n'
    assert [line[0] for line in changed(api.root)] == ["A"]
    gone = api.ask("DELETE", "/api/articles/walk")
    assert (gone.status, gone.headers["Bifolio-Commit"]) == (204, head(api.root))
    assert git(api.root, "log", "-1", "--format=%s") == 'Delete article "Equinox walk"\n'
    assert changed(api.root) == ["D\tcontent/articles/walk.json"]
    assert status(api.root) == ""
    sound(api.root)


def test_a_message_of_the_request(made: Callable[..., Api]) -> None:
    api = made()
    rename(api, "New", headers={"Bifolio-Message": "Fix — the title".encode().decode("latin-1")})
    assert git(api.root, "log", "-1", "--format=%s") == "Fix — the title\n"
    batch = {
        "message": "Two at once\n\nBifolio-Actor: user:1\n",
        "operations": [
            {"method": "PUT", "path": f"/api/articles/{name}", "body": {"data": {"title": "B"}}}
            for name in ("walk", "other")
        ],
    }
    answer = api.ask("POST", "/batch", json=batch)
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert git(api.root, "log", "-1", "--format=%s") == "Two at once\n"
    trailers = git(api.root, "log", "-1", "--format=%(trailers:only)").splitlines()
    assert trailers[0] == "Bifolio-Actor: token:full"
    assert set(trailers[1:]) - {""} == {"Bifolio-Document: article/walk", "Bifolio-Document: article/other"}
    assert len(changed(api.root)) == 2


def test_the_author_is_the_user(made: Callable[..., Api]) -> None:
    roles = (
        EACH["site.yaml"]
        + "roles:\n  public:\n    auth: [callback]\n  authenticated:\n    article: [update, find, findOne]\n"
    )
    api = made({"site.yaml": roles})
    Users(api.accounts).create(
        "ada <x>", "ada@example.org", "secret-pass", role="authenticated", confirmed=True
    )
    login = {"identifier": "ada@example.org", "password": "secret-pass"}
    api.tokens["ada"] = api.ask("POST", "/api/auth/local", "public", json=login).body["jwt"]
    rename(api, "Hers", who="ada")
    assert git(api.root, "log", "-1", "--format=%an|%ae") == "ada x|ada@example.org\n"
    assert git(api.root, "log", "-1", "--format=%(trailers:key=Bifolio-Actor,valueonly)").startswith("user:1")
    sound(api.root)


def test_nothing_else_is_touched(made: Callable[..., Api]) -> None:
    api = made({"staged.txt": "a\n", "dirty.txt": "a\n", "both.txt": "a\nb\n"})
    root = api.root
    (root / "staged.txt").write_text("staged\n")
    (root / "both.txt").write_text("a\nstaged\n")
    (root / "new.txt").write_text("new\n")
    git(root, "add", "staged.txt", "both.txt", "new.txt")
    (root / "both.txt").write_text("dirty\nstaged\n")
    (root / "dirty.txt").write_text("dirty\n")
    (root / "unknown.txt").write_text("?\n")
    (root / "content/articles/other.json").write_text('{"title": "By hand"}')
    before = status(root), git(root, "diff", "--cached"), git(root, "diff")
    rename(api, "New walk")
    assert (status(root), git(root, "diff", "--cached"), git(root, "diff")) == before
    assert changed(root) == ["M\tcontent/articles/walk.json"]
    sound(root)


def test_a_file_that_is_staged_in_part_is_as_committed(made: Callable[..., Api]) -> None:
    api = made()
    path = api.root / "content/articles/walk.json"
    path.write_text(json.dumps({"title": "Staged"}))
    git(api.root, "add", "-A")
    path.write_text(json.dumps({"title": "By hand", "slug": "by-hand"}))
    api.site.refresh()
    rename(api, "New walk")
    assert status(api.root) == ""
    assert json.loads(git(api.root, "show", "HEAD:content/articles/walk.json"))["slug"] == "by-hand"


def test_media(made: Callable[..., Api]) -> None:
    api = made()
    form = {"files": (io.BytesIO(b"text"), "note.txt")}
    answer = api.ask("POST", "/api/upload", data=form)
    assert answer.status == 201
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert [line[0] for line in changed(api.root)] == ["A", "A"]
    assert git(api.root, "log", "-1", "--format=%s").startswith('Upload file "note_')
    [path] = [line[2:] for line in changed(api.root) if line.endswith(".txt")]
    assert git(api.root, "show", f"HEAD:{path}") == "text"
    [file] = answer.body
    form = {"files": (io.BytesIO(b"other"), "note.txt")}
    assert api.ask("POST", f"/api/upload?id={file['id']}", data=form).headers["Bifolio-Commit"] == head(
        api.root
    )
    assert git(api.root, "show", f"HEAD:{path}") == "other"
    assert api.ask("DELETE", f"/api/upload/files/{file['id']}").headers["Bifolio-Commit"] == head(api.root)
    assert [line[0] for line in changed(api.root)] == ["D", "D"]
    assert status(api.root) == ""
    assert len(list((api.root / ".bifolio/commits").iterdir())) == 1  # only the lock file is left


def test_what_git_ignores_is_not_committed(made: Callable[..., Api]) -> None:
    api = made({".gitignore": ".bifolio/\ncontent/uploads/\n"})
    before = head(api.root)
    answer = api.ask("POST", "/api/upload", data={"files": (io.BytesIO(b"text"), "note.txt")})
    assert (answer.status, "Bifolio-Commit" in answer.headers) == (201, False)
    assert head(api.root) == before


def test_filters_of_the_repository_work(made: Callable[..., Api]) -> None:
    api = made({".gitattributes": "content/** filter=up\n"})
    git(api.root, "config", "filter.up.clean", "tr a-z A-Z")
    rename(api, "New walk")
    assert '"TITLE": "NEW WALK"' in git(api.root, "show", "HEAD:content/articles/walk.json")
    assert "M content/articles/walk.json" not in status(api.root)


def test_a_detached_head(made: Callable[..., Api]) -> None:
    def detached(root: Path) -> None:
        commit_all(root)
        git(root, "checkout", "-q", "--detach")

    api = made(before=detached)
    assert rename(api, "New").headers["Bifolio-Commit"] == head(api.root)
    assert git(api.root, "rev-parse", "main~0") != head(api.root) + "\n"
    assert status(api.root) == ""


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_no_commit_yet(made: Callable[..., Api], kind: str) -> None:
    api = made(before=lambda root: git(root, "init", "-q", "-b", "main", f"--object-format={kind}"))
    for title in ("First", "Second"):
        answer = rename(api, title)
        assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert api.ask("DELETE", "/api/articles/walk").headers["Bifolio-Commit"] == head(api.root)
    assert len(git(api.root, "log", "--format=%H").splitlines()) == 3
    sound(api.root)


def test_a_subfolder_a_worktree_and_a_shallow_clone(tmp_path: Path) -> None:
    origin, site = tmp_path / "origin", os.fsdecode(b"sites/caf\xe9")
    write(
        origin,
        {f"{site}/{name}": text for name, text in {**ARTICLES, **EACH, ".gitignore": ".bifolio/\n"}.items()},
    )
    commit_all(origin)
    (origin / "more.txt").write_text("more")
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "second")
    git(origin, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "shallow")
    for root in (origin, tmp_path / "side", tmp_path / "shallow"):
        api = make(root / site, {})
        answer = rename(api, f"New in {root.name}")
        assert answer.headers["Bifolio-Commit"] == head(root)
        assert status(root) == ""
        assert len(changed(root)) == 1
        git(root, "fsck", "--strict")
        api.accounts.close()


def hook(root: Path, name: str, script: str) -> None:
    path = root / ".git/hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_hooks_run(made: Callable[..., Api]) -> None:
    api = made({"staged.txt": "a\n"})
    hook(api.root, "pre-commit", "git diff --cached --name-only > .git/seen")
    hook(api.root, "commit-msg", "sed -i '1s/^/[x] /' \"$1\"")
    (api.root / "staged.txt").write_text("staged\n")
    git(api.root, "add", "staged.txt")
    before = status(api.root)
    answer = rename(api, "New")
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert git(api.root, "log", "-1", "--format=%s|%an|%cn") == '[x] Update article "New"|full|Site\n'
    assert (api.root / ".git/seen").read_text() == "content/articles/walk.json\n"
    assert status(api.root) == before
    sound(api.root)


def commit_beside(api: Api, path: str, text: str) -> str:
    """Return a shell command with which a hook commits another file, as if a user did so by hand."""
    by_hand = f"env -u GIT_INDEX_FILE {shlex.quote(GIT)} -C {shlex.quote(str(api.root))}"
    done = api.root / ".git/done"
    return (
        f"[ -e {done} ] || {{ : >{done}; printf %s {shlex.quote(text)} >{shlex.quote(str(api.root / path))}; "
        f"{by_hand} -c user.name=h -c user.email=h@x commit -qnm 'by hand' {path}; }} </dev/null"
    )


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
def test_somebody_commits_while_a_hook_runs(made: Callable[..., Api], name: str) -> None:
    """Neither commit may undo the other, and git's index must match both."""
    api = made({"notes.txt": "0\n"})
    hook(api.root, name, commit_beside(api, "notes.txt", "by hand"))
    answer = rename(api, "New")
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert git(api.root, "log", "-2", "--format=%s").splitlines() == ['Update article "New"', "by hand"]
    assert git(api.root, "show", "HEAD:notes.txt") == "by hand"
    assert (changed(api.root), status(api.root)) == (["M\tcontent/articles/walk.json"], "")
    assert rename(api, "Newer").headers["Bifolio-Commit"] == head(api.root)
    sound(api.root)


def test_somebody_commits_a_file_that_a_hook_changes(made: Callable[..., Api]) -> None:
    """The version of the file that was committed by hand must be kept, because the hook runs again."""
    api = made({"notes.txt": "0\n"})
    blob = "$(echo hooked | git hash-object -w --stdin)"
    stage = f"[ -e .git/done ] || git update-index --cacheinfo 100644,{blob},notes.txt"
    hook(api.root, "pre-commit", f"{stage}\n{commit_beside(api, 'notes.txt', 'by hand')}")
    answer = rename(api, "New")
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert git(api.root, "show", "HEAD:notes.txt") == "by hand"
    assert (changed(api.root), status(api.root)) == (["M\tcontent/articles/walk.json"], "")


def test_a_hook_runs_although_another_file_is_staged_in_part(made: Callable[..., Api]) -> None:
    api = made({"notes.txt": "0\n"})
    hook(api.root, "pre-commit", "exit 0")
    for text in ("1\n", "2\n"):
        (api.root / "notes.txt").write_text(text)
        if text == "1\n":
            git(api.root, "add", "notes.txt")
    answer = rename(api, "New")
    assert answer.headers["Bifolio-Commit"] == head(api.root)
    assert (changed(api.root), status(api.root)) == (["M\tcontent/articles/walk.json"], "MM notes.txt\n")


def test_hooks_may_change_the_files_and_run_after_the_commit(made: Callable[..., Api]) -> None:
    api = made()
    formatted = json.dumps({"title": "Formatted"})
    hook(api.root, "pre-commit", f"echo '{formatted}' >content/articles/walk.json; git add content")
    hook(api.root, "post-commit", "git rev-parse HEAD >.git/seen")
    commit = rename(api, "New").headers["Bifolio-Commit"]
    assert (api.root / ".git/seen").read_text().strip() == commit == head(api.root)
    assert "Formatted" in git(api.root, "show", "HEAD:content/articles/walk.json")
    assert status(api.root) == ""


def test_what_a_hook_refuses_waits_while_others_are_committed(made: Callable[..., Api], caplog: Any) -> None:
    api = made()
    hook(api.root, "pre-commit", "git diff --cached | grep -q Bad && { echo not Bad >&2; exit 1; }; exit 0")
    assert rename(api, "Bad").headers["Bifolio-Commit"] == "pending"
    assert "not Bad" in caplog.text
    assert rename(api, "Fine", "other").headers["Bifolio-Commit"] == head(api.root)
    assert (
        rename(api, "Better").headers["Bifolio-Commit"] == "pending"
    )  # waits behind the rejected write to the same file
    (api.root / ".git/hooks/pre-commit").unlink()
    api.site.committer.commit_due()
    assert len(api.site.committer.queue.pending()) == 2  # the hook is not called again for a rejected write
    api.site.committer._refused.clear()
    api.site.committer.commit_due()
    assert git(api.root, "log", "-2", "--format=%s").splitlines() == [
        'Update article "Better"',
        'Update article "Bad"',
    ]
    assert status(api.root) == ""


def test_signatures(made: Callable[..., Api]) -> None:
    api = made()
    key = api.root.parent / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgSign", "true")):
        git(api.root, "config", name, value)
    rename(api, "New")
    assert "gpgsig -----BEGIN SSH SIGNATURE-----" in git(api.root, "cat-file", "commit", "HEAD")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "GIT_LOCK_TIMEOUT_S", 0.2)
    monkeypatch.setattr(committing, "BACKOFF_S", 0.0)


@pytest.fixture(params=["links", "no links"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with hard links, and on a simulated file system without hard links."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("links")
def test_with_and_without_hard_links_each_write_is_a_commit(made: Callable[..., Api]) -> None:
    api = made()
    mode = (api.root / ".git/index").stat().st_mode
    for title in ("New", "Newer"):
        assert rename(api, title).headers["Bifolio-Commit"] == head(api.root)
        assert status(api.root) == ""
        sound(api.root)
    assert (api.root / ".git/index").stat().st_mode == mode
    file = api.root / "content/articles/walk.json"
    # git must detect the change although the file size is unchanged
    file.write_text(file.read_text().replace("Newer", "Older"))
    assert "walk.json" in status(api.root)


@pytest.mark.usefixtures("impatient", "links")
def test_a_locked_index_is_waited_for(made: Callable[..., Api], caplog: Any) -> None:
    api = made()
    before, lock = head(api.root), api.root / ".git/index.lock"
    lock.write_text("somebody's")
    answer = rename(api, "New")
    assert answer.headers["Bifolio-Commit"] == "pending"
    assert "another git command has locked the index" in caplog.text
    assert (head(api.root), lock.read_text()) == (before, "somebody's")
    threading.Timer(0.1, lock.unlink).start()
    assert rename(api, "Newer").headers["Bifolio-Commit"] == head(api.root)
    assert git(api.root, "show", "HEAD~1:content/articles/walk.json").count('"New"') == 1
    assert status(api.root) == ""
    sound(api.root)


@pytest.mark.usefixtures("impatient")
def test_a_merge_is_waited_for(made: Callable[..., Api], caplog: Any) -> None:
    api = made({"a.txt": "a\n"})
    root = api.root
    git(root, "checkout", "-q", "-b", "side")
    for branch, text in (("side", "b\n"), ("main", "c\n")):
        git(root, "checkout", "-q", branch)
        (root / "a.txt").write_text(text)
        git(root, "commit", "-qam", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "side")
    assert rename(api, "New").headers["Bifolio-Commit"] == "pending"
    assert "a merge is in progress" in caplog.text
    (root / "a.txt").write_text("both\n")
    git(root, "add", "a.txt")
    git(root, "commit", "-qm", "Merge")
    api.site.committer.commit_due()
    assert git(root, "log", "-1", "--format=%s") == 'Update article "New"\n'
    assert status(root) == ""


@pytest.mark.usefixtures("impatient")
def test_what_somebody_has_committed_meanwhile_is_not_undone(made: Callable[..., Api], caplog: Any) -> None:
    api = made()
    root, path = api.root, api.root / "content/articles/walk.json"
    (root / ".git/index.lock").write_text("somebody's")
    rename(api, "New")
    (root / ".git/index.lock").unlink()
    path.write_text(path.read_text().replace("New", "By hand"))
    git(root, "commit", "-qam", "by hand")
    before = head(root)
    path.write_text(path.read_text().replace("By hand", "Again"))
    api.site.committer.commit_due()
    assert head(root) == before
    assert api.site.committer.queue.pending() == []
    kept = root / ".bifolio/unsaved/content/articles/walk.json"
    assert '"New"' in kept.read_text()
    assert "the written version was saved in .bifolio/unsaved/content/articles/walk.json" in caplog.text


def test_without_git(made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch) -> None:
    api = made()
    monkeypatch.setenv("PATH", "/nowhere")
    assert rename(api, "New").headers["Bifolio-Commit"] == "pending"
    monkeypatch.undo()
    api.site.committer.commit_due()
    assert git(api.root, "log", "-1", "--format=%s") == 'Update article "New"\n'


def test_without_a_repository(make_api: MakeApi) -> None:
    api = make_api({**ARTICLES, **EACH})
    assert "Bifolio-Commit" not in rename(api, "New").headers


def test_one_commit_per_author_after_a_while(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = made({"site.yaml": EACH["site.yaml"].replace("each", "1h")})
    api.token("second", "full-access")
    for title in ("One", "Two"):
        assert rename(api, title).headers["Bifolio-Commit"] == "pending"
    rename(api, "Three", "other", who="second")
    rename(api, "Four", "walk")
    before = head(api.root)
    api.site.committer.commit_due()
    assert head(api.root) == before
    real = committing.time.time
    monkeypatch.setattr(committing.time, "time", lambda: real() + 3601)
    api.site.committer.commit_due()
    monkeypatch.undo()
    log = git(api.root, "log", "-2", "--reverse", "--format=%an: %s", f"{before}..").splitlines()
    assert log == ["full: Make 3 changes", 'second: Update article "Three"']
    assert status(api.root) == ""
    assert git(api.root, "show", "HEAD:content/articles/walk.json").count("Four") == 1


def test_writes_of_two_authors_of_one_file_stay_in_order() -> None:
    def pending(number: int, author: str, path: str) -> grouping.PendingWrite:
        return grouping.PendingWrite(
            str(number), author, "", author, "m", (), number, "", {path: b"%d" % number}
        )

    writes = [pending(1, "a", "x"), pending(2, "b", "x"), pending(3, "a", "x"), pending(4, "b", "y")]
    found = grouping.due_groups(writes, timedelta(seconds=5), 100.0)
    assert [[w.at for w in group.writes] for group in found] == [[1], [2, 4], [3]]
    # b is still writing, and a's last write to the file waits behind b's
    found = grouping.due_groups(writes, timedelta(seconds=5), 8.5)
    assert [[w.at for w in group.writes] for group in found] == [[1]]
    found = grouping.due_groups(writes, timedelta(seconds=5), 2.5)  # The clock has been set back.
    assert [[w.at for w in group.writes] for group in found] == [[1], [2, 4], [3]]
    found = grouping.due_groups([pending(1, "a", "x"), pending(4, "b", "y")], timedelta(seconds=5), 7.0)
    assert [[w.at for w in group.writes] for group in found] == [[1]]


@pytest.mark.parametrize("commit", ["each", "3s"])
def test_a_clock_that_is_set_back_keeps_the_order(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch, commit: str
) -> None:
    """After the clock was set back by an hour, another process writes, whose own last write is older."""
    api = made({"site.yaml": EACH["site.yaml"].replace("each", commit)})
    (api.root / ".git/index.lock").write_text("somebody's")
    monkeypatch.setattr(committing, "GIT_LOCK_TIMEOUT_S", 0.0)
    rename(api, "One")
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() - 3_600_000_000_000)
    monkeypatch.setattr(time, "time", lambda: real() - 3600)

    def rename_again(_: None, context: Context) -> None:
        path = "content/articles/walk.json"
        context.changeset.put(path, context.changeset.text(path).replace("One", "Two"))

    write_to(opened(api.root), rename_again, None)
    names = [write.files for write in api.site.committer.queue.pending()]
    assert [b"Two" in next(iter(files.values())) for files in names] == [False, True]
    (api.root / ".git/index.lock").unlink()
    monkeypatch.setattr(time, "time", lambda: real() - 3590)
    api.site.committer.commit_due()
    monkeypatch.undo()
    assert api.site.committer.queue.pending() == []
    assert "Two" in git(api.root, "show", "HEAD:content/articles/walk.json")
    assert status(api.root) == ""


def test_many_writers_at_once(made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine, 24 commits take longer, and a write that does not wait for its commit is "pending".
    monkeypatch.setattr("server.site.commits.committing.QUEUE_TIMEOUT_S", 120.0)
    api = made()
    count, commits = 6, []

    def write(number: int) -> None:
        client = api.app.test_client()
        for i in range(4):
            answer = client.put(
                f"/api/articles/{'walk' if number % 2 else 'other'}",
                json={"data": {"title": f"{number} {i}"}},
                headers={"Authorization": f"Bearer {api.tokens['full']}"},
            )
            assert answer.status_code == 200, answer.text
            commits.append((answer.headers["Bifolio-Commit"], f"{number} {i}"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(commits) == count * 4
    for commit, title in commits:
        assert commit != "pending"
        assert f'"{title}"' in git(api.root, "show", "--format=", commit)
    assert len(git(api.root, "log", "--format=%H").splitlines()) == count * 4 + 1
    assert status(api.root) == ""
    sound(api.root)


def test_a_commit_is_no_change_of_the_site(made: Callable[..., Api]) -> None:
    api = made()
    rename(api, "New")
    assert not api.site.seems_changed(())
    state = api.site.state
    assert not api.site.refresh()
    assert api.site.state is state


@pytest.mark.usefixtures("links")
def test_what_a_killed_process_leaves(made: Callable[..., Api]) -> None:
    """Kill a process at every step of a write and its commit. Another process must finish the write."""
    api = made()
    kept = 0
    for step in range(1, 400):
        ended = killed_at(step, commits, api, f"Step {step}")
        api.site.refresh()
        with api.site.locked():  # the first step of every write
            pass
        api.site.committer.commit_due()
        title = json.loads(api.read("content/articles/walk.json"))["title"]
        committed = json.loads(git(api.root, "show", "HEAD:content/articles/walk.json"))["title"]
        assert title == committed
        assert status(api.root) == "", step
        kept += title == f"Step {step}"
        if ended != KILLED:
            break
    assert ended == DONE
    assert kept > 10
    sound(api.root)


@pytest.mark.parametrize("hooks", [False, True])
def test_git_is_killed_while_it_moves_the_branch(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch, hooks: bool
) -> None:
    """Simulate a power failure that ends the server and its git command, and leaves the lock
    files of both.
    """
    api = made()
    locks = [api.root / ".git" / name for name in ("HEAD.lock", "refs/heads/main.lock")]
    failure = f": >{locks[0]}; : >{locks[1]}; kill -9 $PPID; exit 1"
    if hooks:
        write(api.root, {".git/hooks/post-commit": "#!/bin/sh\n"})
        (api.root / ".git/hooks/post-commit").chmod(0o755)
    with monkeypatch.context() as patch:
        fake_git(patch, api.root / ".git/programs", update_ref=failure)
        assert killed_at(10_000, commits, api, "New") == -signal.SIGKILL
    assert [lock.exists() for lock in locks] == [True, True]
    api.site.refresh()
    api.site.committer.commit_due()  # The git command may still be running.
    assert (len(api.site.committer.queue.pending()), locks[1].exists()) == (1, True)
    monkeypatch.setattr(ref_updates, "REF_LOCK_AGE_S", 0.0)
    api.site.committer.commit_due()
    assert git(api.root, "log", "-1", "--format=%s") == 'Update article "New"\n'
    assert status(api.root) == ""
    sound(api.root)


def test_only_git_is_killed_while_it_moves_the_branch(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate that git alone is killed because memory runs out. The server must remove its locks."""
    api = made()
    with monkeypatch.context() as patch:
        fake_git(patch, api.root / ".git/programs", update_ref=killed_ref_update(api.root, "refs/heads/main"))
        commit = rename(api, "New").headers["Bifolio-Commit"]
    assert (api.root / ".git/killed").exists()
    assert not list((api.root / ".git").rglob("*.lock"))
    assert commit == head(api.root)
    assert status(api.root) == ""
    sound(api.root)


def test_git_is_killed_before_it_writes_to_its_locks(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty lock can belong to another git command, so the server removes it only later."""
    api = made()
    locks = [api.root / ".git" / name for name in ("HEAD.lock", "refs/heads/main.lock")]
    with monkeypatch.context() as patch:
        script = killed_ref_update(api.root, "refs/heads/main", empty=True)
        fake_git(patch, api.root / ".git/programs", update_ref=script)
        assert rename(api, "New").headers["Bifolio-Commit"] == "pending"
    api.site.committer.commit_due()
    assert [lock.exists() for lock in locks] == [True, True]
    monkeypatch.setattr(ref_updates, "REF_LOCK_AGE_S", 0.0)
    opened(api.root).committer.commit_due()  # also after a restart
    assert git(api.root, "log", "-1", "--format=%s") == 'Update article "New"\n'
    assert status(api.root) == ""
    sound(api.root)


@pytest.mark.parametrize("is_older", [True, False])
def test_the_lock_of_another_git_command_is_kept_when_git_is_killed(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch, is_older: bool
) -> None:
    api = made()
    lock, kill = api.root / ".git/refs/heads/main.lock", killed_ref_update(api.root)
    with monkeypatch.context() as patch:
        if is_older:
            lock.write_text("")
            os.utime(lock, (time.time() - 3600,) * 2)
        else:
            kill = f"echo {'1' * 40} >{lock}; {kill}"
        fake_git(patch, api.root / ".git/programs", update_ref=kill)
        assert rename(api, "New").headers["Bifolio-Commit"] == "pending"
    monkeypatch.setattr(ref_updates, "REF_LOCK_AGE_S", 0.0)
    api.site.committer.commit_due()
    assert lock.exists()
    lock.unlink()
    api.site.committer.commit_due()
    assert api.site.committer.queue.pending() == []
    sound(api.root)


def test_a_saved_write_is_confirmed_while_another_process_holds_the_write_lock(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = made()

    @contextmanager
    def busy() -> Iterator[None]:
        raise BusyError()
        yield

    with monkeypatch.context() as patch:
        patch.setattr(api.site.committer, "_locked", busy)
        answer = rename(api, "New")
    assert (answer.status, answer.headers["Bifolio-Commit"]) == (200, "pending")
    api.site.committer.commit_due()
    assert api.site.committer.queue.pending() == []


def test_a_server_commits_later_what_was_pending(made: Callable[..., Api]) -> None:
    api = made({"site.yaml": EACH["site.yaml"].replace("each", "1s")})
    rename(api, "New")
    port = free_port()
    with serving(api.root, port):
        until(lambda: git(api.root, "log", "-1", "--format=%s") == 'Update article "New"\n')
        until(lambda: status(api.root) == "")  # git's index must match the branch.
    sound(api.root)


def test_a_server_that_is_killed_loses_nothing(made: Callable[..., Api]) -> None:
    """Kill several workers at a random moment while they commit, and while a user commits by hand."""
    api = made({"notes.txt": "0\n", "site.yaml": EACH["site.yaml"]})
    root, port, answered = api.root, free_port(), list[tuple[str, str]]()
    headers = {"Authorization": f"Bearer {api.tokens['full']}", "Content-Type": "application/json"}

    def write_on(name: str, round_: int) -> None:
        for i in range(200):
            title = f"{name} {round_} {i}"
            body = json.dumps({"data": {"title": title}}).encode()
            url = f"http://127.0.0.1:{port}/api/articles/{name}"
            try:
                asked = urllib.request.Request(url, body, headers, method="PUT")
                with urllib.request.urlopen(asked, timeout=20) as answer:
                    answered.append((title, answer.headers["Bifolio-Commit"]))
            except (OSError, HTTPException):
                return

    for round_ in range(4):
        process = start(root, port, "--workers", "2")
        wait(process, port)
        threads = [threading.Thread(target=write_on, args=(name, round_)) for name in ("walk", "other")]
        before = len(answered)
        for thread in threads:
            thread.start()
        until(lambda before=before: len(answered) > before)
        deadline = time.monotonic() + 0.7 + round_ / 7
        while time.monotonic() < deadline:
            (root / "notes.txt").write_text(f"{time.monotonic()}\n")
            # the branch may have moved, or git's index may be locked
            with suppress(subprocess.CalledProcessError):
                git(root, "commit", "-qm", "by hand", "notes.txt")
            time.sleep(0.05)
        kill_all(process)
        process.communicate()
        for thread in threads:
            thread.join()
    with serving(root, port):
        until(lambda: not list((root / ".bifolio/commits").glob("*.kept")))
        until(lambda: "content" not in status(root))
    assert len(answered) >= 4  # at least one in each round
    history = git(root, "log", "-p", "--format=%H")
    for title, commit in answered:
        assert f'"{title}"' in (history if commit == "pending" else git(root, "show", commit)), title
    sound(root)


@pytest.mark.parametrize(
    "said",
    [
        "fatal: error when closing loose object file: No space left on device",
        "fatal: Unable to create '/site/.git/refs/heads/main.lock': File exists.",
        "fatal: couldn't write '.git/refs/heads/main.lock'",
        "fatal: cannot lock ref 'HEAD': Unable to create '/site/.git/HEAD.lock': File exists.",
    ],
)
def test_what_would_fail_again_is_tried_once_and_not_taken_for_a_hook(
    made: Callable[..., Api], monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    api = made()
    programs, tried = api.root / ".git/programs", api.root / ".git/tried"
    with monkeypatch.context() as patch:
        fake_git(patch, programs, update_ref=f'echo x >>{tried}; echo "{said}" >&2; exit 128')
        assert rename(api, "New").headers["Bifolio-Commit"] == "pending"
        assert tried.read_text() == "x\n"
    api.site.committer.commit_due()
    assert api.site.committer.queue.pending() == []
    assert status(api.root) == ""
