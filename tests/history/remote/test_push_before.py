"""Machines with `git.push: before`: a write is confirmed once the remote has accepted it.

If two machines write the same field at once, only one of the writes succeeds.
"""

import io
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from server.storage.git.times import read_times
from tests.git import commit_all, git
from tests.history.remote.machines import Machines, at_remote, counting, head, hook
from tests.sites import Answer, Api, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")


def change(api: Api, who: str = "full", **values: object) -> Answer:
    return api.put("/api/notes/one", values, who)


def note(api: Api, name: str = "one") -> dict[str, object]:
    found: dict[str, object] = api.get(f"/api/notes/{name}").data
    return found


def status(api: Api) -> str:
    return git(api.root, "status", "--short")


def test_a_confirmed_write_is_at_the_remote(two: Machines) -> None:
    answer = change(two["a"], title="Uno")
    assert answer.status == 200
    assert answer.data["title"] == "Uno"
    assert answer.headers["Bifolio-Commit"] == two.tip == head(two["a"].root)
    assert "title: Uno" in at_remote(two, "content/notes/one.md")
    assert note(two["a"])["title"] == "Uno"
    assert status(two["a"]) == ""
    said = git(
        two.bare, "log", "-1", "--format=%an|%s|%(trailers:key=Bifolio-Actor,valueonly)", "main"
    ).strip()
    assert said == 'full|Update note "Uno"|token:full'


def test_a_write_runs_few_git_commands(
    two: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert change(two["a"], title="Uno").status == 200  # From now on, the repository's location is cached.
    with counting(monkeypatch, tmp_path) as commands:
        assert change(two["a"], title="Eins").status == 200
    assert commands == ["ls-tree", "hash-object", "fast-import", "push", "update-index", "update-ref"]
    assert two["a"].site.state.commit == two.tip == head(two["a"].root, "refs/bifolio/remote/main")
    assert not two["a"].site.state.has_uncommitted_changes
    assert status(two["a"]) == ""
    two["a"].site.refresh()
    assert two["a"].site.git.committed == read_times(two["a"].root)


def test_different_fields_of_a_document_are_merged(two: Machines) -> None:
    assert change(two["a"], title="Uno").status == 200
    answer = change(two["b"], summary="Long")
    assert answer.status == 200
    assert (answer.data["title"], answer.data["summary"]) == ("Uno", "Long")
    assert head(two["b"].root) == two.tip
    assert "title: Uno" in at_remote(two, "content/notes/one.md")
    assert "summary: Long" in at_remote(two, "content/notes/one.md")
    assert status(two["b"]) == ""


def test_a_pushed_migration_that_can_not_be_planned_does_not_stop_writes(two: Machines) -> None:
    root = two["b"].root
    text = 'operation: wrap\ntype: note\nattributes: [summary]\ncomponent: "a.\\0b"\n'
    write(root, {"migrations/0001-odd.yaml": text})
    git(root, "add", "-A")
    git(root, "commit", "-qm", "odd")
    git(root, "push", "-q", "origin", "HEAD:main")
    write(two["a"].root, {"content/tags/new.yaml": "name: New\n"})
    git(two["a"].root, "add", "-A")
    git(two["a"].root, "commit", "-qm", "here")
    assert change(two["a"], title="Uno").status == 200
    assert change(two["a"], title="Eins").status == 200
    assert "title: Eins" in at_remote(two, "content/notes/one.md")
    assert at_remote(two, "migrations/0001-odd.yaml") == text


def test_the_same_field_is_a_reported_conflict(two: Machines) -> None:
    assert change(two["a"], title="Uno").status == 200
    before = two.tip
    answer = change(two["b"], title="Eins", summary="Long")
    assert (answer.status, answer.error["name"]) == (409, "ConflictError")
    details = answer.error["details"]
    assert (details["type"], details["documentId"], details["locale"]) == ("note", "one", "en")
    [conflict] = details["conflicts"]
    assert conflict == {
        "attribute": "title", "paths": [["title"]], "base": "One", "ours": "Eins", "theirs": "Uno",
    }  # fmt: skip
    assert two.tip == before
    assert note(two["b"])["title"] == "Uno"  # This machine has integrated the other machine's write.
    # This machine has integrated the new value, so it may overwrite it.
    assert change(two["b"], title="Eins").status == 200
    assert "title: Eins" in at_remote(two, "content/notes/one.md")


def test_lines_of_one_text_are_merged(two: Machines) -> None:
    assert change(two["a"], body="The old harbour.\n\nThe quay.\n").status == 200
    answer = change(two["b"], body="The harbour.\n\nThe long quay.\n")
    assert answer.status == 200
    assert answer.data["body"].split() == ["The", "old", "harbour.", "The", "long", "quay."]


def test_unique_values_are_checked_across_machines(two: Machines) -> None:
    made = two["a"].post("/api/notes", {"title": "New", "slug": "new"})
    assert made.status == 201
    answer = two["b"].post("/api/notes", {"title": "Other", "slug": "new"})
    assert answer.status == 400
    assert "unique" in answer.error["message"]
    answer = two["b"].post("/api/notes", {"title": "Other", "slug": "other"})
    assert answer.status == 201
    assert answer.data["documentId"] != made.data["documentId"]


def test_a_document_deleted_on_another_machine_is_not_recreated(two: Machines) -> None:
    assert two["a"].ask("DELETE", "/api/notes/one").status == 204
    answer = change(two["b"], title="Eins")
    assert (answer.status, answer.error["details"]["documentId"]) == (409, "one")
    assert two["b"].get("/api/notes/one").status == 404


def test_a_document_changed_on_another_machine_is_not_deleted_unseen(two: Machines) -> None:
    assert change(two["a"], title="Uno").status == 200
    answer = two["b"].ask("DELETE", "/api/notes/one")
    assert (answer.status, answer.error["details"]["documentId"]) == (409, "one")
    assert two["b"].ask("DELETE", "/api/notes/one").status == 204
    # The document is deleted as requested, although another machine has changed it.
    assert two["a"].ask("DELETE", "/api/notes/one").status == 204
    assert two["a"].ask("DELETE", "/api/notes/two").status == 204


def test_a_draft_of_a_published_document(two: Machines) -> None:
    draft = two["a"].put("/api/notes/one?status=draft", {"title": "Draft"})
    assert draft.status == 200
    # Publishing would also publish a draft that this machine has not integrated yet.
    assert change(two["b"], summary="Long").status == 409
    assert "title: One" in at_remote(two, "content/notes/one.md")
    assert two["b"].put("/api/notes/one?status=draft", {"summary": "Long"}).status == 200
    assert two["a"].put("/api/notes/one?status=draft", {"number": 3}).status == 200
    found = two["a"].get("/api/notes/one?status=draft").data
    assert (found["title"], found["summary"], found["number"]) == ("Draft", "Long", 3)


@pytest.mark.parametrize("action", ["unpublish", "discard"])
def test_actions_are_pushed(two: Machines, action: str) -> None:
    assert two["a"].put("/api/notes/one?status=draft", {"title": "Draft"}).status == 200
    assert two["a"].ask("POST", f"/api/notes/one/actions/{action}").status == 200
    assert head(two["a"].root) == two.tip
    answer = two["b"].ask("POST", f"/api/notes/one/actions/{action}")
    assert answer.status in (400, 409)  # The document has changed on the other machine.


def test_a_batch_is_one_commit_that_both_machines_merge(two: Machines) -> None:
    assert change(two["a"], title="Uno").status == 200
    operations = [
        {"method": "PUT", "path": "/api/notes/one", "body": {"data": {"summary": "Long"}}},
        {"method": "PUT", "path": "/api/notes/one", "body": {"data": {"number": 3}}},
        {"method": "POST", "path": "/api/notes", "body": {"data": {"title": "New", "slug": "new"}}},
    ]
    answer = two["b"].ask("POST", "/batch", json={"operations": operations})
    assert answer.status == 200, answer.body
    assert git(two.bare, "rev-list", "--count", "main").strip() == "3"
    found = note(two["b"])
    assert (found["title"], found["summary"], found["number"]) == ("Uno", "Long", 3)


def test_if_match_stays_strict(two: Machines) -> None:
    etag = two["b"].get("/api/notes/one").headers["ETag"]
    assert change(two["a"], title="Uno").status == 200
    answer = two["b"].put("/api/notes/one", {"summary": "Long"}, headers={"If-Match": etag})
    assert answer.status == 412


def test_prefer_merge_finds_the_version_that_was_read(two: Machines) -> None:
    etag = two["b"].get("/api/notes/one").headers["ETag"]
    assert change(two["a"], title="Uno").status == 200
    headers = {"If-Match": etag, "Prefer": "merge"}
    answer = two["b"].put("/api/notes/one", {"summary": "Long"}, headers=headers)
    assert (answer.status, answer.data["title"]) == (200, "Uno")
    assert two["b"].put("/api/notes/one", {"title": "Eins"}, headers=headers).status == 412


def test_edits_by_hand_are_committed_with_the_file_that_is_written(two: Machines) -> None:
    path = two["a"].root / "content/notes/one.md"
    path.write_text(path.read_text().replace("summary: Short", "summary: By hand"))
    (two["a"].root / "content/notes/two.md").write_text("---\ntitle: Zwei\nslug: two\n---\nText.\n")
    two["a"].site.refresh()
    assert change(two["a"], title="Uno").status == 200
    assert "summary: By hand" in at_remote(two, "content/notes/one.md")
    assert "title: Two" in at_remote(two, "content/notes/two.md")
    assert status(two["a"]).strip() == "M content/notes/two.md"


def test_local_edits_of_a_file_are_merged_with_writes_of_other_machines(two: Machines) -> None:
    path = two["b"].root / "content/notes/one.md"
    path.write_text(path.read_text().replace("summary: Short", "summary: By hand"))
    two["b"].site.refresh()
    assert change(two["a"], title="Uno").status == 200
    assert two["b"].put("/api/notes/two", {"title": "Zwei"}).status == 200
    assert "summary: Short" in at_remote(two, "content/notes/one.md")
    assert (note(two["b"])["title"], note(two["b"])["summary"]) == ("Uno", "By hand")
    assert status(two["b"]).strip() == "M content/notes/one.md"


def test_a_file_is_not_replaced_by_a_folder(two: Machines) -> None:
    shutil.rmtree(two["a"].root / "content/tags")
    write(two["a"].root, {"content/tags": "What tags are for.\n"})
    commit_all(two["a"].root)
    two["a"].site.refresh()
    assert change(two["a"], title="Uno").status == 200
    before = two.tip
    for name in ("a", "b"):  # Neither machine has fetched the other machine's commit yet.
        answer = two[name].post("/api/tags", {"name": "x"})
        assert (answer.status, answer.error["name"]) == (409, "ConflictError"), name
    assert two.tip == before
    assert (two["a"].root / "content/tags").read_text() == "What tags are for.\n"


def test_a_dry_run_does_not_contact_the_remote(two: Machines) -> None:
    before = two.tip
    answer = two["a"].put("/api/notes/one?dryRun=true", {"title": "Uno"})
    assert answer.status == 200
    assert two.tip == before
    assert note(two["a"])["title"] == "One"


def test_a_local_hook_refuses_before_the_push(two: Machines) -> None:
    before = two.tip
    hook(two["a"].root / ".git", "pre-commit", "echo 'Spelling first' >&2; exit 1")
    answer = change(two["a"], title="Uno")
    assert answer.status == 409
    assert "Spelling first" in answer.error["message"]
    assert (two.tip, note(two["a"])["title"], status(two["a"])) == (before, "One", "")


def test_local_hooks_can_change_the_commit(two: Machines) -> None:
    hook(two["a"].root / ".git", "pre-commit", "git diff --cached --name-only > .git/seen")
    hook(two["a"].root / ".git", "commit-msg", 'echo "Reviewed" >> "$1"')
    assert change(two["a"], title="Uno").status == 200
    assert (two["a"].root / ".git/seen").read_text() == "content/notes/one.md\n"
    assert "Reviewed" in git(two.bare, "log", "-1", "--format=%B", "main")
    assert status(two["a"]) == ""


def test_the_message_of_a_remote_hook_is_in_the_response(two: Machines) -> None:
    hook(two.bare, "pre-receive", "echo 'Not on Sundays' >&2; exit 1")
    answer = change(two["a"], title="Uno")
    assert (answer.status, answer.error["name"]) == (409, "ConflictError")
    assert "Not on Sundays" in answer.error["message"]
    assert (note(two["a"])["title"], status(two["a"])) == ("One", "")


def test_the_reason_for_an_unavailable_remote_is_only_logged(
    two: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    two.bare.rename(two.bare.with_name("away.git"))
    answer = change(two["a"], title="Uno")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert answer.error["message"] == "The git remote did not respond; try again later"
    assert str(two.bare) in caplog.text


def test_the_reason_for_a_blocked_integration_is_only_logged(
    two: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    two["a"].root.joinpath("content/tags/sea.yaml").write_text("name: Here\n")
    assert two["b"].put("/api/tags/sea", {"name": "There"}, "full").status == 200
    answer = change(two["a"], title="Uno")
    assert answer.status == 409
    assert (answer.error["message"], answer.error["details"]) == (
        "Commits from the git remote can't be applied now; see the server's log or /_health/ready",
        {},
    )
    assert "tag/sea/en (name)" in caplog.text


def test_nothing_is_written_while_the_remote_is_unavailable(two: Machines) -> None:
    two.bare.rename(two.bare.with_name("away.git"))
    objects = head(two["a"].root)
    answer = change(two["a"], title="Uno")
    assert (answer.status, answer.error["name"]) == (503, "ServiceUnavailableError")
    assert answer.headers["Retry-After"]
    assert (note(two["a"])["title"], status(two["a"]), head(two["a"].root)) == ("One", "", objects)
    assert two["a"].get("/api/notes").status == 200


def test_requests_wait_only_once_for_a_hanging_remote(two: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.history.remote.pushing.PUSH_TIMEOUT_S", 0.5)
    monkeypatch.setattr("server.history.remote.pushing.LOST_RESPONSE_TIMEOUT_S", 0.5)
    monkeypatch.setattr("server.history.remote.pushing.BACKOFF_S", 60.0)
    a = two["a"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        git(a.root, "remote", "set-url", "origin", f"git://127.0.0.1:{silent.getsockname()[1]}/x.git")
        assert change(a, title="Uno").status == 503
        before, began = files_of(a.root), time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            statuses = set(pool.map(lambda n: change(a, title=f"Uno {n}").status, range(16)))
        assert statuses == {503}
        assert time.monotonic() - began < 20  # the timeout applies once, not to each of the 16 writes
    assert files_of(a.root) == before
    assert (note(a)["title"], status(a)) == ("One", "")


def test_waiting_for_a_hanging_remote_has_one_timeout(two: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.history.remote.pushed_write.WRITE_TIMEOUT_S", 3.0)
    for name in (
        "pushing.LOST_RESPONSE_TIMEOUT_S",
        "pushing.MIN_TIMEOUT_S",
        "push_before_serving.LOST_RESPONSE_TIMEOUT_S",
        "push_before_serving.MIN_TIMEOUT_S",
    ):
        monkeypatch.setattr(f"server.history.remote.{name}", 0.5)
    monkeypatch.setattr("server.history.remote.pushing.BACKOFF_S", 0.0)
    a = two["a"]
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(12) as pool:
        git(a.root, "remote", "set-url", "origin", f"git://127.0.0.1:{silent.getsockname()[1]}/x.git")

        def write(number: int) -> tuple[int, float]:
            # The writes arrive one after the other, while the first one is waiting and later.
            time.sleep(number / 4)
            began = time.monotonic()
            return change(a, title=f"Uno {number}").status, time.monotonic() - began

        found = list(pool.map(write, range(12)))
    assert {status for status, _ in found} == {503}
    # Each write waits for one timeout, not for the sum of all timeouts.
    assert max(taken for _, taken in found) < 8
    assert (note(a)["title"], status(a)) == ("One", "")


def test_a_repeatedly_overtaken_write_succeeds(two: Machines) -> None:
    a, b = two["a"], two["b"]
    # Five times, "b" pushes just before "a" does.
    elsewhere = two.bare.parent / "elsewhere"
    git(two.bare.parent, "clone", "-q", str(two.bare), str(elsewhere))
    who = "-c user.name=B -c user.email=b@example.org"
    faster = (
        f"cd {elsewhere}; unset $(git rev-parse --local-env-vars); "
        "test $(wc -l < count) -lt 5 || exit 0; echo >> count; "
        f"git pull -q; git {who} commit -q --allow-empty -m Faster; git push -q"
    )
    (elsewhere / "count").touch()
    hook(a.root / ".git", "pre-push", faster)
    answer = change(a, title="Uno")
    assert (answer.status, answer.headers["Bifolio-Commit"]) == (200, two.tip)
    subjects = git(two.bare, "log", "--format=%s", "-6", "main").splitlines()
    assert subjects == ['Update note "Uno"', *["Faster"] * 5]
    assert b.put("/api/notes/one", {"summary": "Long"}).status == 200


def files_of(root: Path) -> set[Path]:
    """Return all files in a site's folder except the event logs, including git's files and those in
    `.bifolio`.
    """
    return {path for path in root.rglob("*") if path.is_file() and ".db" not in path.name}


def test_writes_resume_when_the_remote_is_back(two: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.history.remote.pushing.BACKOFF_S", 0.0)
    a, away = two["a"], two.bare.with_name("away.git")
    two.bare.rename(away)
    assert change(a, title="Uno").status == 503
    before = files_of(a.root)
    assert change(a, title="Uno").status == 503
    assert files_of(a.root) == before
    away.rename(two.bare)
    assert change(two["b"], summary="Long").status == 200
    assert change(a, title="Uno").status == 200
    assert "summary: Long" in at_remote(two, "content/notes/one.md")


def test_a_push_with_a_lost_response_is_detected(two: Machines) -> None:
    hook(two.bare, "post-receive", "kill -9 $PPID")
    answer = change(two["a"], title="Uno")
    assert answer.status == 200
    assert answer.headers["Bifolio-Commit"] == two.tip == head(two["a"].root)
    assert note(two["a"])["title"] == "Uno"


def test_commits_by_hand_are_pushed_with_the_next_write(two: Machines) -> None:
    path = two["a"].root / "content/notes/two.md"
    path.write_text(path.read_text().replace("title: Two", "title: Zwei"))
    git(two["a"].root, "commit", "-qam", "By hand")
    two["a"].site.refresh()
    assert change(two["b"], title="Uno").status == 200
    assert change(two["a"], summary="Long").status == 200
    assert "title: Zwei" in at_remote(two, "content/notes/two.md")
    assert head(two["a"].root) == two.tip


def test_another_branch_that_is_checked_out_is_not_pushed(two: Machines) -> None:
    before = two.tip
    for command in (("switch", "-q", "-c", "other"), ("switch", "-q", "--detach")):
        git(two["a"].root, *command)
        two["a"].site.refresh()
        answer = change(two["a"], title="Uno")
        assert answer.status == 409
        assert "checked out" in answer.error["message"]
    assert (two.tip, status(two["a"])) == (before, "")


def test_uploads_are_pushed(two: Machines) -> None:
    answer = two["a"].ask("POST", "/api/upload", data={"files": (io.BytesIO(b"hello"), "hello.txt")})
    assert answer.status == 201, answer.body
    id_ = answer.body[0]["id"]
    assert head(two["a"].root) == two.tip
    name = answer.body[0]["url"].rpartition("/")[2]
    assert at_remote(two, f"content/uploads/{name}") == "hello"
    assert two["a"].get(f"/uploads/{name}").raw == b"hello"
    info = {"fileInfo": '{"alternativeText": "Hello"}'}
    assert two["a"].ask("POST", f"/api/upload?id={id_}", data=info).status == 200
    assert "Hello" in at_remote(two, f"content/uploads/{name}.yaml")
    assert head(two["a"].root) == two.tip
    assert two["a"].ask("DELETE", f"/api/upload/files/{id_}").status == 200
    assert head(two["a"].root) == two.tip


def test_a_write_can_be_undone(two: Machines) -> None:
    before = at_remote(two, "content/notes/one.md")
    undo = change_with(two["a"], "undo", title="Uno").headers["Bifolio-Undo"]
    assert two["a"].ask("POST", f"/batch/undo/{undo}").status == 200
    assert at_remote(two, "content/notes/one.md") == before
    undo = change_with(two["a"], "undo", title="Uno").headers["Bifolio-Undo"]
    assert change(two["b"], summary="Long").status == 200
    # It would also undo the write of the other machine.
    assert two["a"].ask("POST", f"/batch/undo/{undo}").status == 409
    assert "summary: Long" in at_remote(two, "content/notes/one.md")


def change_with(api: Api, prefer: str, **values: object) -> Answer:
    return api.put("/api/notes/one", values, headers={"Prefer": prefer})


def test_a_merge_is_pushed_first(two: Machines) -> None:
    a = two["a"]
    assert a.ask("POST", "/branches", json={"name": "next"}).status == 201
    assert a.put("/api/notes/one?branch=next", {"summary": "Long"}).status == 200
    assert change(two["b"], title="Uno").status == 200
    merged = a.ask("POST", "/branches/next/merge", json={})
    assert (merged.status, merged.data["result"], merged.data["commit"]) == (200, "merge", two.tip)
    assert (note(a)["title"], note(a)["summary"]) == ("Uno", "Long")
    assert head(a.root) == two.tip
    assert status(a) == ""


def test_a_merge_that_the_remote_refuses_changes_nothing(two: Machines) -> None:
    a = two["a"]
    a.ask("POST", "/branches", json={"name": "next"})
    assert a.put("/api/notes/one?branch=next", {"summary": "Long"}).status == 200
    hook(two.bare, "pre-receive", "echo 'Not on Sundays' >&2; exit 1")
    assert a.ask("POST", "/branches/next/merge", json={}).status == 409
    assert (note(a)["summary"], status(a)) == ("Short", "")


def test_commits_of_local_edits_are_pushed_first(two: Machines) -> None:
    a, before = two["a"], two.tip
    path = a.root / "content/notes/one.md"
    path.write_text(path.read_text().replace("summary: Short", "summary: By hand"))
    a.site.refresh()
    assert change(two["b"], title="Uno").status == 200
    wanted = {"message": "By hand", "files": ["content/notes/one.md"]}
    made = a.ask("POST", "/history/commit", json=wanted)
    assert (made.status, made.data["commit"]) == (201, two.tip)
    text = at_remote(two, "content/notes/one.md")
    assert "summary: By hand" in text
    assert "title: Uno" in text
    assert status(a) == ""
    assert git(two.bare, "rev-list", "--count", f"{before}..main").strip() == "2"


def test_a_version_is_restored_at_the_remote(two: Machines) -> None:
    first = two.tip
    assert change(two["a"], title="Uno").status == 200
    restored = two["a"].ask("POST", "/history/notes/one/restore", json={"at": first, "fields": ["title"]})
    assert restored.status == 200, restored.body
    assert "title: One" in at_remote(two, "content/notes/one.md")


def test_a_source_changed_on_another_machine_is_not_overwritten(two: Machines) -> None:
    read = two["b"].get("/source/notes/one")
    headers = {"If-Match": read.headers["ETag"]}
    text = read.data["text"]
    assert change(two["a"], title="Uno").status == 200
    body = {"data": {"text": text.replace("summary: Short", "summary: Long")}}
    written = two["b"].ask("PUT", "/source/notes/one", json=body, headers=headers)
    assert written.status == 412, written.body
    assert "title: Uno" in at_remote(two, "content/notes/one.md")


def test_a_write_without_changes_is_compared_with_the_remote(two: Machines) -> None:
    assert change(two["a"], title="Uno").status == 200
    answer = change(two["b"], title="One")  # "b" still has this title.
    assert (answer.status, answer.error["name"]) == (409, "ConflictError")
    assert (note(two["b"])["title"], two.tip) == ("Uno", head(two["b"].root))
    answer = change(two["b"], title="One")
    assert (answer.status, answer.headers["Bifolio-Commit"]) == (200, two.tip)
    assert "title: One" in at_remote(two, "content/notes/one.md")


def test_a_write_without_changes_succeeds_after_other_changes(two: Machines) -> None:
    assert change(two["a"], summary="Long").status == 200
    before = two.tip
    answer = change(two["b"], title="One")
    assert (answer.status, answer.data["title"], answer.data["summary"]) == (200, "One", "Long")
    assert two.tip == before == head(two["b"].root)


def test_a_document_created_on_another_machine_is_deleted_or_the_deletion_fails(two: Machines) -> None:
    created = two["a"].post("/api/notes", {"title": "New"}).data["documentId"]
    answer = two["b"].ask("DELETE", f"/api/notes/{created}")
    assert (answer.status, answer.error["details"]["documentId"]) == (409, created)
    assert two["b"].ask("DELETE", f"/api/notes/{created}").status == 204
    assert two.tip == head(two["b"].root)
    assert two["b"].ask("DELETE", f"/api/notes/{created}").status == 204  # Nothing is left to delete.


def test_a_write_without_changes_fails_while_the_remote_is_unavailable(two: Machines) -> None:
    two.bare.rename(two.bare.with_name("away.git"))
    assert change(two["a"], title="One").status == 503


def test_a_write_without_changes_needs_one_fetch(
    two: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert change(two["a"], title="Uno").status == 200
    with counting(monkeypatch, tmp_path) as commands:
        assert change(two["a"], title="Uno").status == 200
    assert commands == ["fetch"]
