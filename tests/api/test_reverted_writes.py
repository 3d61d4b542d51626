"""Tests of git commands that revert an API write before it has been committed: Bifolio restores the write."""

import io
import json
import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.site import changed_files, rescan
from server.site.commits import reverted
from server.storage.files import signature_of
from server.storage.git.repository import repository_of
from server.storage.git.written import KnownVersions
from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.git_programs import GIT, fake_git
from tests.sites import Api, collection, documents, opened, write

EACH = "git:\n  commit: each\n  committer: Site <site@example.org>\n"
WALK = "content/articles/walk.json"
FILES = {
    **collection("article", {"title": "string", "slug": "string"}),
    **documents("articles", walk={"title": "Old", "slug": "walk"}, other={"title": "Other"}),
    ".gitignore": ".bifolio/\n",
}
COMMANDS = ("reset -q --hard HEAD", "restore .", "checkout -q -- content", "checkout -q -f HEAD", "stash -q")
Make = Callable[[str], Api]


@pytest.fixture
def made(make_api: MakeApi, tmp_path: Path) -> Make:
    """Return a function that creates a site in a git repository with the given site.yaml."""

    def make(settings: str) -> Api:
        files = {**FILES, "site.yaml": settings}
        write(tmp_path, files)
        commit_all(tmp_path)
        return make_api(files)

    return make


def put(api: Api, **values: str) -> Any:
    answer = api.put("/api/articles/walk", values)
    assert answer.status == 200, answer.text
    return answer


def file(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(api.read(WALK))
    return found


def committed(api: Api, commit: str = "HEAD") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(git(api.root, "show", f"{commit}:{WALK}"))
    return found


def status(api: Api) -> str:
    return git(api.root, "status", "--porcelain")


def revert_before(patch: pytest.MonkeyPatch, api: Api, moment: str, command: str) -> Path:
    """Run the git command `command` once, just before the server runs the git command `moment`.

    Return the file that is created when `command` runs.
    """
    folder = api.root / ".git/programs"
    mark, root = folder / "reverted", shlex.quote(str(api.root))
    by_hand = f"env -u GIT_INDEX_FILE {shlex.quote(GIT)} -C {root} {command} </dev/null"
    identity = "GIT_COMMITTER_NAME=T GIT_COMMITTER_EMAIL=t@example.org GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@x"
    lines = f"[ -e {mark} ] || {{ : >{mark}; {identity} {by_hand} >&2; }}"
    fake_git(patch, folder, **{moment: lines})
    return mark


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("moment", ["hash_object", "fast_import", "update_index"])
def test_between_the_write_and_its_commit(
    made: Make, monkeypatch: pytest.MonkeyPatch, moment: str, command: str
) -> None:
    api = made(EACH)
    mark = revert_before(monkeypatch, api, moment, command)
    answer = put(api, title="New")
    monkeypatch.undo()
    assert mark.exists()
    assert answer.body["data"]["title"] == "New"
    assert answer.headers["Bifolio-Commit"] == git(api.root, "rev-parse", "HEAD").strip()
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("New", "New", "")
    api.site.refresh()
    assert api.get("/api/articles/walk").body["data"]["title"] == "New"
    put(api, slug="next")
    assert (committed(api)["title"], committed(api)["slug"], status(api)) == ("New", "next", "")


@pytest.mark.parametrize("moment", ["hash_object", "fast_import"])
def test_a_write_that_somebody_commits_first_has_no_commit_of_its_own(
    made: Make, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    api = made(EACH)
    mark = revert_before(monkeypatch, api, moment, "commit -qam by-hand")
    answer = put(api, title="New")
    monkeypatch.undo()
    assert mark.exists()
    assert "Bifolio-Commit" not in answer.headers
    assert git(api.root, "log", "-1", "--format=%s").strip() == "by-hand"
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("New", "New", "")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("moment", ["hook", "commit_tree", "update_index", "update_ref"])
def test_where_git_itself_makes_the_commit(
    made: Make, monkeypatch: pytest.MonkeyPatch, moment: str, command: str
) -> None:
    api = made(EACH)
    hook = api.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    mark = revert_before(monkeypatch, api, moment, command)
    assert put(api, title="New").body["data"]["title"] == "New"
    monkeypatch.undo()
    assert mark.exists()
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("New", "New", "")


def test_a_document_that_is_deleted_stays_deleted(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    api = made(EACH)
    mark = revert_before(monkeypatch, api, "fast_import", COMMANDS[0])
    assert api.ask("DELETE", "/api/articles/walk").status == 204
    monkeypatch.undo()
    assert mark.exists()
    assert (api.root / WALK).exists() is False
    assert status(api) == ""
    assert api.get("/api/articles/walk").status == 404


@pytest.mark.parametrize("commit", ["each", "1h"])
def test_before_the_write_is_read_back(made: Make, monkeypatch: pytest.MonkeyPatch, commit: str) -> None:
    """The git command starts after the write has checked for the lock on git's index for the last time."""
    api = made(EACH.replace("each", commit))
    real, done = changed_files.signature_of, list[str]()

    def reset(path: Path | str) -> Any:
        if not done and str(path).endswith(WALK) and '"New"' in api.read(WALK):
            done.append(git(api.root, "reset", "-q", "--hard", "HEAD"))
        return real(path)

    monkeypatch.setattr(rescan, "signature_of", reset)
    assert put(api, title="New").body["data"]["title"] == "New"
    monkeypatch.undo()
    assert done
    assert api.get("/api/articles/walk").body["data"]["title"] == "New"
    api.site.committer.flush()
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("New", "New", "")


@pytest.mark.parametrize("noticed", [True, False])
def test_while_a_commit_waits_for_its_time(made: Make, noticed: bool) -> None:
    """The next write must keep the values of the reverted write, even if the server has not noticed the git
    command.
    """
    api = made(EACH.replace("each", "1h"))
    assert put(api, title="New").headers["Bifolio-Commit"] == "pending"
    git(api.root, "reset", "-q", "--hard", "HEAD")
    assert file(api)["title"] == "Old"
    if noticed:
        api.site.refresh()
        assert file(api)["title"] == "New"
        assert api.get("/api/articles/walk").body["data"]["title"] == "New"
    answer = put(api, slug="next").body["data"]
    assert (answer["title"], answer["slug"]) == ("New", "next")
    api.site.committer.flush()
    assert committed(api) == file(api)
    assert (file(api)["title"], file(api)["slug"], status(api)) == ("New", "next", "")


def test_a_command_that_has_not_noted_yet_what_it_has_written(made: Make) -> None:
    """The new index is still in its lock file. As its last step, git replaces the old index with
    this file.
    """
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    index, lock = api.root / ".git/index", api.root / ".git/index.lock"
    copy = shutil.copy2(index, api.root / ".git/copied-index")
    subprocess.run(
        [GIT, "reset", "-q", "--hard", "HEAD"],
        cwd=api.root,
        env={**os.environ, "GIT_INDEX_FILE": copy},
        check=True,
    )
    Path(copy).rename(lock)
    assert file(api)["title"] == "Old"
    threading.Timer(0.3, lock.rename, [index]).start()
    api.site.refresh()
    assert file(api)["title"] == "New"
    api.site.committer.flush()
    assert (committed(api)["title"], status(api)) == ("New", "")


def test_a_write_that_is_taken_back_by_hand_stays_so(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    before = api.read(WALK)
    put(api, title="New")
    (api.root / WALK).write_text(before)
    api.site.refresh()
    status(api)  # now git has read the file and stored its timestamps
    api.site.refresh()
    api.site.committer.flush()
    assert api.read(WALK) == before
    assert committed(api)["title"] == "New"
    assert api.get("/api/articles/walk").body["data"]["title"] == "Old"


def test_what_others_have_committed_is_not_undone(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    git(api.root, "checkout", "-qb", "theirs")
    (api.root / WALK).write_text('{"title": "Theirs"}')
    git(api.root, "commit", "-qam", "theirs")
    git(api.root, "checkout", "-q", "main")
    api.site.refresh()
    put(api, title="New")
    git(api.root, "reset", "-q", "--hard", "theirs")
    api.site.refresh()
    api.site.committer.flush()
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("Theirs", "Theirs", "")
    assert unsaved(api) == ["New"]


def unsaved(api: Api) -> list[str]:
    files = (api.root / ".bifolio/unsaved").rglob("*")
    return [json.loads(one.read_text())["title"] for one in files if one.is_file()]


def test_a_write_that_somebody_has_committed_and_reverted_stays_reverted(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    git(api.root, "commit", "-qam", "by hand")
    git(api.root, "revert", "--no-edit", "HEAD")
    api.site.refresh()
    api.site.committer.flush()
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("Old", "Old", "")
    assert (api.site.committer.queue.pending(), unsaved(api)) == ([], [])


def test_a_write_whose_commit_was_not_noted_and_then_reverted_stays_reverted(
    made: Make, tmp_path: Path
) -> None:
    """The server is killed between the commit and its note in the queue."""
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    queue, copy = api.root / ".bifolio/commits", tmp_path.with_name(f"{tmp_path.name}-queue")
    shutil.copytree(queue, copy)
    api.site.committer.flush()
    shutil.rmtree(queue)
    shutil.copytree(copy, queue)
    git(api.root, "revert", "--no-edit", "HEAD")
    site = opened(api.root)
    assert site.committer.queue.pending()
    site.refresh()
    site.committer.flush()
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("Old", "Old", "")
    assert site.committer.queue.pending() == []


def test_all_files_of_a_write_that_is_stashed_are_written_again(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    created = {"method": "POST", "path": "/api/articles", "body": {"data": {"title": "Moved"}}}
    sent = {"operations": [{"method": "DELETE", "path": "/api/articles/walk"}, created]}
    assert api.ask("POST", "/batch", json=sent).status == 200
    [new] = [path for path in (api.root / "content/articles").iterdir() if "Moved" in path.read_text()]
    git(api.root, "stash", "-qu")
    assert (new.exists(), (api.root / WALK).exists()) == (False, True)
    api.site.refresh()
    assert (new.exists(), (api.root / WALK).exists()) == (True, False)
    assert {one["title"] for one in api.get("/api/articles").data} == {"Moved", "Other"}
    api.site.committer.flush()
    assert status(api) == ""


def test_a_write_just_after_somebodys_commit_is_written_again(made: Make) -> None:
    """The server has not yet noticed the commit."""
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    git(api.root, "commit", "-qam", "by hand")
    put(api, title="Newer")
    git(api.root, "checkout", "--", WALK)
    api.site.refresh()
    assert file(api)["title"] == "Newer"
    api.site.committer.flush()
    assert (committed(api)["title"], status(api), unsaved(api)) == ("Newer", "", [])


@pytest.mark.parametrize("noticed", [True, False])
def test_a_write_between_somebodys_commit_and_an_edit_is_committed(made: Make, noticed: bool) -> None:
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    git(api.root, "commit", "-qam", "by hand")
    if noticed:
        api.site.refresh()
    put(api, title="Newer")
    (api.root / WALK).write_text('{"title": "Edited"}')
    api.site.committer.flush()
    assert (file(api)["title"], committed(api)["title"], unsaved(api)) == ("Edited", "Newer", [])


def test_a_commit_of_what_was_staged_before_the_write_does_not_replace_it(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    (api.root / WALK).write_text('{"title": "Staged"}')
    git(api.root, "add", WALK)
    api.site.refresh()
    put(api, title="New")
    git(api.root, "commit", "-qm", "by hand")
    assert committed(api)["title"] == "Staged"
    (api.root / WALK).write_text('{"title": "Edited"}')
    api.site.committer.flush()
    assert (file(api)["title"], committed(api)["title"], unsaved(api)) == ("Edited", "New", [])


def test_a_version_that_was_staged_before_the_write_does_not_replace_it(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    git(api.root, "add", WALK)
    put(api, title="Newer")
    git(api.root, "restore", ".")
    assert file(api)["title"] == "New"
    api.site.refresh()
    assert file(api)["title"] == "Newer"
    api.site.committer.flush()
    assert (committed(api)["title"], status(api)) == ("Newer", "")


def test_an_edit_that_was_staged_after_the_write_stays(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    (api.root / WALK).write_text('{"title": "Edited"}')
    git(api.root, "add", WALK)
    api.site.committer.flush()
    assert (file(api)["title"], committed(api)["title"]) == ("Edited", "New")


def test_a_write_that_somebody_has_committed_and_changed_is_complete(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    git(api.root, "commit", "-qam", "by hand")
    (api.root / WALK).write_text('{"title": "Edited"}')
    git(api.root, "commit", "-qam", "by hand again")
    before = git(api.root, "rev-parse", "HEAD")
    (api.root / WALK).write_text('{"title": "Again"}')
    api.site.committer.flush()
    assert git(api.root, "rev-parse", "HEAD") == before
    assert (api.site.committer.queue.pending(), unsaved(api)) == ([], [])


def test_a_write_is_committed_although_somebody_has_committed_a_later_write(
    made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    api = made(EACH.replace("each", "1h"))
    api.token("second", "full-access")
    put(api, title="New")
    api.put("/api/articles/walk", {"title": "Newer"}, who="second")
    git(api.root, "commit", "-qam", "by hand")
    api.site.committer.flush()
    titles = [json.loads(git(api.root, "show", f"HEAD~{back}:{WALK}"))["title"] for back in range(3)]
    assert titles == ["Newer", "New", "Newer"]
    assert (file(api)["title"], status(api), unsaved(api), caplog.text) == ("Newer", "", [], "")


def test_the_author_of_a_write_has_written_another_file_after_the_later_write(made: Make) -> None:
    """The later write lies between two writes of one commit."""
    api = made(EACH.replace("each", "1h"))
    api.token("second", "full-access")
    put(api, title="New")
    api.put("/api/articles/walk", {"title": "Newer"}, who="second")
    api.post("/api/articles", {"title": "Other", "slug": "other"})
    git(api.root, "commit", "-qam", "by hand")
    api.site.committer.flush()
    titles = git(api.root, "log", "-p", "--format=", "--", WALK)
    assert [title for title in ("New", "Newer") if f'"title": "{title}"' in titles] == ["New", "Newer"]
    assert (file(api)["title"], committed(api)["title"], status(api), unsaved(api)) == (
        "Newer", "Newer", "", [],
    )  # fmt: skip


def test_each_replacement_of_an_upload_is_committed(made: Make, caplog: pytest.LogCaptureFixture) -> None:
    api = made(EACH.replace("each", "1h"))
    api.token("second", "full-access")
    [upload] = api.ask("POST", "/api/upload", data={"files": (io.BytesIO(b"first"), "a.txt")}).body
    api.site.committer.flush()
    for text, who in ((b"second", "full"), (b"third", "second")):
        form = {"files": (io.BytesIO(text), "a.txt")}
        assert api.ask("POST", f"/api/upload?id={upload['id']}", data=form, who=who).status == 200
    git(api.root, "commit", "-qam", "by hand")
    api.site.committer.flush()
    history = git(api.root, "log", "-p", "--format=", "--", "content/uploads/*.txt")
    assert [text for text in ("first", "second", "third") if f"+{text}" in history] == [
        "first", "second", "third",
    ]  # fmt: skip
    assert (status(api), caplog.text) == ("", "")


def test_a_file_that_git_removes_at_the_same_time_is_written_again(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = made(EACH.replace("each", "1h"))
    put(api, title="New")
    git(api.root, "reset", "-q", "--hard", "HEAD")

    def vanishing(path: Path) -> Any:
        before = signature_of(path)
        monkeypatch.undo()
        path.unlink()
        return before

    monkeypatch.setattr(reverted, "signature_of", vanishing)
    waiting = reverted.OverwrittenWrite(api.site.committer.queue.pending()[-1].files[WALK], KnownVersions(""))
    writes = reverted.reverted_writes(repository_of(api.root), {WALK: waiting})
    assert [(write.path, write.before) for write in writes] == [(WALK, None)]


def test_a_deletion_through_the_api_is_not_taken_for_a_git_command(
    made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    api = made(EACH.replace("each", "1h"))
    api.token("second", "full-access")
    made_id = api.post("/api/articles", {"title": "Short", "slug": "short"}).data["documentId"]
    assert api.ask("DELETE", f"/api/articles/{made_id}", who="second").status == 204
    api.site.committer.flush()
    assert "reverted" not in caplog.text
    assert status(api) == ""


def test_a_version_from_another_machine_is_not_undone(made: Make) -> None:
    """The other machine's commit was also created by Bifolio."""
    api = made(EACH.replace("each", "1h"))
    git(api.root, "checkout", "-qb", "theirs")
    (api.root / WALK).write_text('{"title": "Theirs"}')
    git(api.root, "commit", "-qam", "Update article\n\nBifolio-Actor: token:other")
    git(api.root, "checkout", "-q", "main")
    api.site.refresh()
    put(api, title="New")
    git(api.root, "reset", "-q", "--hard", "theirs")
    api.site.refresh()
    api.site.committer.flush()
    assert (file(api)["title"], committed(api)["title"], status(api)) == ("Theirs", "Theirs", "")
    assert unsaved(api) == ["New"]


def test_an_earlier_version_is_known_with_other_line_ends(made: Make) -> None:
    api = made(EACH.replace("each", "1h"))
    git(api.root, "config", "core.autocrlf", "true")
    put(api, title="New")
    git(api.root, "add", WALK)
    put(api, title="Newer")
    git(api.root, "commit", "-qm", "by hand")
    (api.root / WALK).write_text('{"title": "Edited"}')
    api.site.committer.flush()
    assert (committed(api)["title"], unsaved(api)) == ("Newer", [])


def test_without_commits_git_discards_a_write_as_any_edit(made: Make) -> None:
    api = made("")
    put(api, title="New")
    git(api.root, "reset", "-q", "--hard", "HEAD")
    api.site.refresh()
    assert file(api)["title"] == "Old"
    assert api.get("/api/articles/walk").body["data"]["title"] == "Old"


def test_a_command_that_is_at_work_is_waited_for(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The git command holds the lock on git's index while the write is being committed, and then reverts the
    write.
    """
    api = made(EACH)
    lock = api.root / ".git/index.lock"
    root = shlex.quote(str(api.root))
    slow = f"(sleep 0.3; rm {lock}; {shlex.quote(GIT)} -C {root} reset -q --hard HEAD) >/dev/null 2>&1 &"
    mark = revert_before(monkeypatch, api, "fast_import", "version >/dev/null; : >" + str(lock) + "; " + slow)
    assert put(api, title="New").body["data"]["title"] == "New"
    monkeypatch.undo()
    assert mark.exists()
    assert (file(api)["title"], committed(api)["title"]) == ("New", "New")
    subprocess.run(["sleep", "0.5"], check=True)
    assert (file(api)["title"], status(api)) == ("New", "")
