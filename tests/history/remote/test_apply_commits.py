"""Integration of remote commits into the served branch."""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from server.errors import RemoteMergeError
from server.history.remote import apply_commits
from tests.git import git
from tests.history.remote.places import FILES, Places, set_up, settle
from tests.killing import DONE, KILLED, killed_at
from tests.sites import STRING, collection, make, write
from tests.torture import SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
STRIDE = 9  # kill the process at every ninth step
ONE = "content/notes/one.md"
TEXT = str(FILES[ONE])


def shown(places: Places) -> list[int]:
    """Return a list to which each further change to the site appends its number of files."""
    counts: list[int] = []
    observed = places.api.site._replica.observe
    places.api.site.observe(lambda contents, record, origin: counts.append(len(record.entries)))
    assert observed is None
    return counts


def refused(places: Places) -> RemoteMergeError:
    """Assert that integrating the remote's commits fails and changes nothing. Return the error."""
    before = (places.head, places.status, places.api.get("/api/notes").data)
    with pytest.raises(RemoteMergeError) as caught:
        places.take()
    assert (places.head, places.status, places.api.get("/api/notes").data) == before
    return caught.value


# --- without uncommitted changes --------------------------------------------------------------------------


def test_files_of_any_kind_arrive_as_one_record(places: Places) -> None:
    counts = shown(places)
    theirs = places.push(
        {
            ONE: TEXT.replace("Short", "Long"),
            "content/notes/new.md": "---\ntitle: New\n---\n",
            "content/notes/two.md": None,
            "content/uploads/data.bin": b"\0\xff" * 5000,
            "README.md": "Other\n",
            "bin/run": "#!/bin/sh\n",
            **collection("place", {"name": STRING}),
            "content/places/home.yaml": "name: Home\n",
            "site.yaml": "name: Renamed\nsearch: {index: false}\n",
        }
    )
    taken = places.take()
    assert (taken.commit, taken.method, places.head, places.branch) == (
        theirs,
        "fast-forward",
        theirs,
        theirs,
    )
    assert places.status == ""
    assert places.note()["summary"] == "Long"
    assert sorted(places.api.get("/api/notes").ids) == ["new", "one"]
    assert places.api.get("/api/places").ids == ["home"]
    assert (places.root / "content/uploads/data.bin").read_bytes() == b"\0\xff" * 5000
    assert len(counts) == 1
    assert not places.api.site.refresh()


def test_documents_of_a_folder_that_became_a_file_are_removed(places: Places) -> None:
    places.push({ONE: None, "content/notes/two.md": None})
    (places.other / "content/notes").rmdir()
    theirs = places.push({"content/notes": "A file\n"})
    assert places.take().commit == theirs
    assert (places.api.get("/api/notes").ids, places.status) == ([], "")
    assert places.api.post("/api/notes", {"title": "New"}).status == 409
    git(places.other, "revert", "--no-edit", "HEAD", "HEAD~1")
    places.push({})
    places.take()
    assert (sorted(places.api.get("/api/notes").ids), places.status) == (["one", "two"], "")


def test_timestamps_are_immediately_those_of_the_commit(places: Places) -> None:
    places.push({ONE: TEXT.replace("Short", "Long")}, at="2031-02-03T04:05:06Z")
    places.take()
    assert places.note()["updatedAt"] == "2031-02-03T04:05:06.000Z"


def test_links_and_modes_are_integrated(places: Places) -> None:
    os.symlink("README.md", places.other / "link")
    write(places.other, {"run": "#!/bin/sh\n"})
    (places.other / "run").chmod(0o755)
    places.push({ONE: TEXT.replace("Short", "Long")})
    places.take()
    assert os.readlink(places.root / "link") == "README.md"
    assert os.access(places.root / "run", os.X_OK)
    (places.other / "run").chmod(0o644)
    (places.other / "link").unlink()
    places.push({})
    places.take()
    assert not os.access(places.root / "run", os.X_OK)
    assert not os.path.lexists(places.root / "link")
    assert places.status == ""


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_a_site_in_a_folder_of_its_repository(tmp_path: Path, kind: str) -> None:
    places = set_up(tmp_path, "sites/a", kind)
    theirs = places.push({ONE: TEXT.replace("Short", "Long"), "../../README": "New\n", "../../more/x": "x\n"})
    places.take()
    assert (places.head, git(places.root, "status", "--porcelain")) == (theirs, "")
    assert (places.root / "../../README").read_text() == "New\n"
    assert places.note()["summary"] == "Long"
    theirs = places.push({"../../README": "Newer\n"})
    places.take()
    assert (places.head, places.status) == (theirs, "")
    places.edit({"../../README": "By hand\n"})
    places.push({"../../README": "Newest\n", ONE: TEXT})
    assert refused(places).details["files"] == ["../README"]
    places.api.accounts.close()


def test_invalid_content_of_the_remote_is_integrated(places: Places) -> None:
    theirs = places.push({"content/tags/sea.yaml": "name: [\n", ONE: TEXT.replace("Short", "Long")})
    places.take()
    assert (places.head, places.status, places.note()["summary"]) == (theirs, "", "Long")
    assert places.api.get("/api/tags/sea").data["name"] == "Sea"
    schema = "content-types/note.json"
    found = next(path for path in FILES if path.startswith("content-types") and "note" in path)
    broken = places.push({found: "{", "content/tags/sea.yaml": "name: Sea 2\n"}, schema)
    places.take()
    assert (places.head, places.status, places.api.get("/api/tags/sea").data["name"]) == (broken, "", "Sea 2")
    assert any(found in problem.path for problem in places.api.site.problems)
    sound = places.push({found: str(FILES[found])})
    places.take()
    assert (places.head, places.status) == (sound, "")
    assert not places.api.site.problems


# --- local commits ---------------------------------------------------------------------------------------


def test_local_commits_are_merged(places: Places) -> None:
    places.edit({ONE: TEXT.replace("title: One", "title: Here")})
    ours = places.commit()
    theirs = places.push({ONE: TEXT.replace("Short", "There"), "README.md": "First\n\nSecond\n\nLast\n"})
    taken = places.take()
    assert taken.method == "merge"
    assert git(places.root, "log", "-1", "--format=%P").split() == [ours, theirs]
    note = places.note()
    assert (note["title"], note["summary"], places.status) == ("Here", "There", "")
    assert places.take().method == "nothing"


def test_conflicting_commits_change_nothing(places: Places) -> None:
    places.edit({ONE: TEXT.replace("Short", "Here")})
    places.commit()
    places.push({ONE: TEXT.replace("Short", "There")})
    error = refused(places)
    assert error.message == "The same values were changed here and on the git remote: note/one/en (summary)"
    places.push({ONE: TEXT.replace("Short", "Here")})
    assert places.take().method == "merge"
    assert places.note()["summary"] == "Here"


def test_conflicting_changes_of_a_content_type_name_the_migration_once(places: Places) -> None:
    change = {"operation": "rename-type", "type": "note", "to": "memo", "plural": "memos"}
    path, body = "/api/content-type-builder/changes", {"changes": [change]}
    plan = places.api.post(f"{path}?dryRun=true", body)
    assert places.api.post(path, body, headers={"If-Match": plan.headers["ETag"]}).status == 200
    places.commit()
    schema = "content-types/note.json"
    places.push(
        {
            "migrations/0001-rename-words.yaml": "operation: rename\nattribute: note.summary\nto: words\n",
            schema: str(FILES[schema]).replace("summary", "words"),
            ONE: TEXT.replace("summary", "words"),
        }
    )
    with pytest.raises(RemoteMergeError) as caught:
        places.take()
    assert caught.value.message == (
        f"The same values were changed here and on the git remote: {schema}, {ONE}. The target branch lacks "
        '0001-rename-words, which can\'t be applied there: unknown type "note". Correct this there, or merge '
        "with git and then run bifolio migrate apply"
    )
    assert caught.value.details["files"] == [schema, ONE]


# --- uncommitted changes ---------------------------------------------------------------------------------


def test_edits_by_hand_are_merged_and_stay_uncommitted(places: Places) -> None:
    places.edit(
        {
            ONE: TEXT.replace("title: One", "title: Hand").replace("# A comment", "# Mine"),
            "README.md": "Mine\n\nSecond\n\nThird\n",
            "content/notes/two.md": str(FILES["content/notes/two.md"]).replace("Two", "Hand"),
            "content/notes/mine.md": "---\ntitle: Mine\n---\n",
        }
    )
    places.api.site.refresh()
    theirs = places.push({ONE: TEXT.replace("Short", "There"), "README.md": "First\n\nSecond\n\nTheirs\n"})
    places.take()
    assert places.head == theirs
    note = places.note()
    assert (note["title"], note["summary"]) == ("Hand", "There")
    assert "# Mine" in places.text(ONE)
    assert places.text("README.md") == "Mine\n\nSecond\n\nTheirs\n"
    assert sorted(places.status.splitlines()) == [
        " M README.md", f" M {ONE}", " M content/notes/two.md", "?? content/notes/mine.md",
    ]  # fmt: skip
    assert git(places.root, "diff", "--unified=0", ONE).count("\n+") == 3
    assert places.note("mine")["title"] == "Mine"


def test_an_unscanned_edit_is_kept(places: Places) -> None:
    places.edit({ONE: TEXT.replace("title: One", "title: Hand")})
    places.push({ONE: TEXT.replace("Short", "There")})
    places.take()
    note = places.note()
    assert (note["title"], note["summary"]) == ("Hand", "There")


def test_uncommitted_writes_are_kept(places: Places) -> None:
    assert places.api.put("/api/notes/one", {"title": "Written"}).status == 200
    places.push({ONE: TEXT.replace("Short", "There")})
    places.take()
    note = places.note()
    assert (note["title"], note["summary"]) == ("Written", "There")


def test_a_conflicting_local_edit_changes_nothing(places: Places) -> None:
    places.edit({ONE: TEXT.replace("Short", "Hand")})
    places.api.site.refresh()
    places.push({ONE: TEXT.replace("Short", "There"), "content/tags/sea.yaml": "name: New\n"})
    error = refused(places)
    assert "note/one/en (summary)" in error.message
    assert error.details["files"] == [ONE]
    places.edit({ONE: TEXT})
    places.take()
    assert (places.note()["summary"], places.status) == ("There", "")


@pytest.mark.parametrize("path", ["notes.txt", "mine.tmp", "content/notes/new.md"])
def test_an_untracked_file_blocks_the_integration(places: Places, path: str) -> None:
    places.edit({path: "---\ntitle: Mine\n---\n"})
    write(places.other, {path: "---\ntitle: Theirs\n---\n"})
    git(places.other, "add", "-f", path)
    theirs = places.push({})
    assert path in refused(places).details["files"]
    places.edit({path: "---\ntitle: Theirs\n---\n"})
    places.take()
    assert (places.head, places.status) == (theirs, "")


def test_a_locally_renamed_document_gets_remote_changes(places: Places) -> None:
    places.edit(
        {ONE: None, "content/notes/first.md": TEXT.replace("title: One", "documentId: one\ntitle: One")}
    )
    places.api.site.refresh()
    places.push({ONE: TEXT.replace("Short", "There")})
    places.take()
    assert not (places.root / ONE).exists()
    assert "summary: There" in places.text("content/notes/first.md")
    assert places.note()["summary"] == "There"


def test_a_staged_and_edited_file_blocks_the_integration(places: Places) -> None:
    places.edit({ONE: TEXT.replace("One", "Staged")})
    git(places.root, "add", ONE)
    places.edit({ONE: TEXT.replace("One", "Edited")})
    places.push({ONE: TEXT.replace("Short", "There")})
    assert refused(places).details["files"] == [ONE]
    assert "Staged" in git(places.root, "show", f":{ONE}")
    git(places.root, "add", ONE)
    places.take()
    assert (places.note()["title"], places.note()["summary"]) == ("Edited", "There")


def test_an_edit_by_hand_at_the_last_moment_is_kept(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    put, left = apply_commits.serve_commit, ["Hand"]

    def edited(*arguments: Any) -> Any:
        if left:
            places.edit({ONE: TEXT.replace("title: One", f"title: {left.pop()}")})
        return put(*arguments)

    monkeypatch.setattr(apply_commits, "serve_commit", edited)
    places.push({ONE: TEXT.replace("Short", "There")})
    places.take()
    note = places.note()
    assert (note["title"], note["summary"]) == ("Hand", "There")


# --- blocked integration ---------------------------------------------------------------------------------


def test_another_branch_or_none_is_not_changed(places: Places) -> None:
    theirs = places.push({ONE: TEXT.replace("Short", "There")})
    git(places.root, "fetch", "-q")
    git(places.root, "checkout", "-q", "-b", "mine")
    take = apply_commits.Takeover(apply_commits.PastStates(places.api.site)).take_over
    with pytest.raises(RemoteMergeError, match='The branch "mine" is checked out instead of "main"'):
        take(theirs, "main")
    git(places.root, "checkout", "-q", "--detach")
    with pytest.raises(RemoteMergeError, match="No branch is checked out"):
        take(theirs, "main")
    git(places.root, "checkout", "-q", "main")
    assert take(theirs, "main").method == "fast-forward"


@pytest.mark.parametrize("name", ["index.lock", "MERGE_HEAD"])
def test_it_waits_while_git_is_busy(places: Places, name: str) -> None:
    theirs = places.push({ONE: TEXT.replace("Short", "There")})
    write(places.root, {f".git/{name}": "" if name == "index.lock" else f"{theirs}\n"})
    os.utime(places.root / ".git" / name, (0, 0))
    assert "git can't commit now" in refused(places).message
    (places.root / ".git" / name).unlink()
    places.take()
    assert (places.head, places.status) == (theirs, "")


# --- rewritten history on the remote ----------------------------------------------------------------------


def rewrite(places: Places, files: dict[str, str | bytes | None]) -> str:
    """Replace all commits of the remote except the first one."""
    git(
        places.other,
        "reset",
        "-q",
        "--hard",
        git(places.other, "rev-list", "--max-parents=0", "HEAD").strip(),
    )
    return places.push(files, "rewritten", force=True)


def test_a_rewritten_history_is_followed(places: Places) -> None:
    before = places.push({ONE: TEXT.replace("Short", "There")})
    places.take()
    places.edit({"content/notes/two.md": "---\ntitle: Hand\nnumber: 1\n---\nText.\n"})
    theirs = rewrite(places, {"content/tags/sea.yaml": "name: Ocean\n"})
    taken = places.take()
    assert (taken.method, places.head) == ("reset", theirs)
    assert places.note()["summary"] == "Short"
    assert places.note("two")["title"] == "Hand"
    assert git(places.root, "rev-parse", taken.backup_ref).strip() == before
    assert places.status == " M content/notes/two.md\n"


def test_a_history_reset_over_links_and_messages_is_followed(places: Places) -> None:
    first = places.head
    os.symlink("README.md", places.other / "link")
    for _ in ("a link", "nothing"):
        second = places.push({})
        places.take()
        git(places.other, "reset", "-q", "--hard", first)
        git(places.other, "push", "-q", "--force", "origin", "main")
        taken = places.take()
        assert (taken.method, places.head, places.branch, places.status) == ("reset", first, first, "")
        assert git(places.root, "rev-parse", taken.backup_ref).strip() == second
        assert not os.path.lexists(places.root / "link")


def test_a_replaced_commit_is_kept_once(places: Places) -> None:
    first, second = places.head, places.push({"README.md": "Other\n"})
    for commit in (second, first, second, first):
        git(places.other, "push", "-q", "--force", "origin", f"{commit}:main")
        places.take()
    kept = git(places.root, "for-each-ref", "--format=%(objectname)", "refs/bifolio/before").split()
    assert kept == [second]


def test_local_commits_are_reapplied_on_a_rewritten_history(places: Places) -> None:
    places.push({ONE: TEXT.replace("Short", "There"), "secret.txt": "secret\n"})
    places.take()
    places.edit({ONE: TEXT.replace("Short", "There").replace("title: One", "title: Here")})
    ours = places.commit("mine")
    theirs = rewrite(places, {ONE: TEXT.replace("Short", "Rewritten")})
    taken = places.take()
    assert taken.method == "re-apply"
    assert git(places.root, "log", "-1", "--format=%P %s").split() == [theirs, "mine"]
    note = places.note()
    assert (note["title"], note["summary"], places.status) == ("Here", "Rewritten", "")
    assert not (places.root / "secret.txt").exists()
    assert git(places.root, "rev-parse", taken.backup_ref).strip() == ours


def test_a_reset_remote_is_followed(places: Places) -> None:
    first = places.head
    places.push({ONE: TEXT.replace("Short", "There")})
    places.take()
    git(places.other, "reset", "-q", "--hard", first)
    git(places.other, "push", "-qf", "origin", "main")
    assert places.take().method == "reset"
    assert (places.head, places.note()["summary"]) == (first, "Short")


def test_a_shallow_clone(tmp_path: Path) -> None:
    places = set_up(tmp_path)
    places.api.accounts.close()
    for number in range(3):
        places.push({"README.md": f"{number}\n"})
    shutil.rmtree(places.root)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{places.remote}", str(places.root))
    again = Places(make(places.root, {}), places.remote, places.other)
    theirs = again.push({ONE: TEXT.replace("Short", "There")})
    assert again.take().method == "fast-forward"
    assert (again.head, again.status) == (theirs, "")


# --- killed processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("edited", [False, True])
def test_a_process_is_killed_at_every_step(places: Places, edited: bool) -> None:
    """If a process is killed while it integrates commits, the next one finishes that. No edit is lost."""
    first, steps = places.head, 0
    for step in range(1 + SEED % STRIDE, 2000, STRIDE):
        git(places.root, "reset", "-q", "--hard", first)
        git(places.other, "reset", "-q", "--hard", first)
        git(places.root, "update-ref", "-d", "refs/bifolio/remote/main")
        places.api.site.refresh()
        theirs = places.push(
            {
                ONE: TEXT.replace("Short", f"There {step}"),
                "content/tags/sea.yaml": f"name: {step}\n",
                "README.md": f"{step}\n",
            },
            force=True,
        )
        if edited:
            places.edit({ONE: TEXT.replace("title: One", "title: Hand")})
            places.api.site.refresh()
        ended = killed_at(step, places.takes, theirs)
        settle(places)
        title = "Hand" if edited else "One"
        summary = f"There {step}" if places.head == theirs else "Short"
        assert (places.note()["title"], places.note()["summary"]) in (
            (title, summary), (title, f"There {step}"),
        ), step  # fmt: skip
        assert places.head in (first, theirs)
        places.take()
        assert places.head == theirs
        assert places.status == (f" M {ONE}\n" if edited else ""), step
        note = places.note()
        assert (note["title"], note["summary"]) == (title, f"There {step}"), step
        assert places.api.get("/api/tags/sea").data["name"] == str(step)
        steps += 1
        if ended != KILLED:
            break
    assert ended == DONE
    assert steps > 5


def test_an_edit_of_the_same_size_right_after_a_commit_is_kept(places: Places) -> None:
    """git recognizes such a file only because its modification time is the same as that of git's index."""
    places.edit({ONE: TEXT.replace("title: One", "title: Commit")})
    git(places.root, "commit", "-qam", "here")
    at = (places.root / ".git/index").stat().st_mtime_ns
    places.edit({ONE: TEXT.replace("title: One", "title: Handed")})
    os.utime(places.root / ONE, ns=(at, at))
    places.push({ONE: TEXT.replace("Short", "There")})
    places.api.site.refresh()
    places.take()
    note = places.note()
    assert (note["title"], note["summary"]) == ("Handed", "There")


@pytest.mark.parametrize(
    "name", [b"\xff\xfe.md", b"\xff/one.md", b".hidden.md", b".folder/one.md", b"one.md~"]
)
def test_files_that_are_not_content_are_integrated(
    places: Places, name: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere, here = (root / "content/notes" / os.fsdecode(name) for root in (places.other, places.root))
    elsewhere.parent.mkdir(exist_ok=True)
    notes = len(places.api.get("/api/notes?pagination[pageSize]=100").data)
    for text in ("First", "Second"):
        elsewhere.write_text(text)
        places.push({})
        places.take()
        assert here.read_text() == text
        assert len(places.api.get("/api/notes?pagination[pageSize]=100").data) == notes
    elsewhere.unlink()
    theirs = places.push({ONE: TEXT.replace("Short", "There")})
    assert (places.take().commit, places.status, places.note()["summary"]) == (theirs, "", "There")
    assert not here.exists()
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


def put_at(root: Path, kind: str) -> None:
    """Create a file, a folder or a symbolic link at `PLACE`, replacing whichever is there."""
    place = root / "content/notes/x.md"
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if kind == "link":
        place.symlink_to("../tags")
    else:
        write(root, {f"content/notes/x.md{'' if kind == 'file' else '/y/z.md'}": "---\ntitle: X\n---\n"})


@pytest.mark.parametrize("first", ["file", "folder", "link"])
@pytest.mark.parametrize("second", ["file", "folder", "link"])
def test_a_folder_replacing_a_file_is_integrated(places: Places, first: str, second: str) -> None:
    for kind in (first, second, first):
        put_at(places.other, kind)
        theirs = places.push({ONE: f"---\ntitle: {kind}\n---\n"})
        assert (places.take().commit, places.status) == (theirs, "")
        assert places.note()["title"] == kind


@pytest.mark.parametrize("local", ["x.md/local.md", "x.md/local.tmp", "x.md/y/local.md"])
def test_a_folder_with_local_files_is_not_removed_for_a_link(places: Places, local: str) -> None:
    put_at(places.other, "folder")
    places.push({})
    places.take()
    places.edit({f"content/notes/{local}": "Mine\n"})
    put_at(places.other, "link")
    places.push({})
    assert refused(places).details["files"] == [f"content/notes/{local}"]
    assert places.text(f"content/notes/{local}") == "Mine\n"


def test_an_untracked_folder_is_not_removed_for_a_link(places: Places) -> None:
    places.edit({"content/notes/x.md/local.md": "Mine\n"})
    put_at(places.other, "link")
    places.push({})
    assert refused(places).details["files"] == ["content/notes/x.md/local.md"]


def test_an_untracked_file_is_not_removed_for_a_folder_with_a_link(places: Places) -> None:
    places.edit({"x.tmp": "Mine\n"})
    (places.other / "x.tmp").mkdir()
    (places.other / "x.tmp/link").symlink_to("nowhere")
    git(places.other, "add", "-f", "x.tmp/link")
    places.push({})
    assert refused(places).details["files"] == ["x.tmp"]
    assert places.text("x.tmp") == "Mine\n"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_hidden_from_git_is_kept(places: Places, flag: str) -> None:
    before = places.head
    places.push({"content/notes/two.md": "---\ntitle: Theirs\n---\nText.\n"})
    git(places.root, "update-index", flag, "content/notes/two.md")
    places.edit({"content/notes/two.md": "---\ntitle: By hand\n---\nText.\n"})
    with pytest.raises(RemoteMergeError, match="but marked as unchanged in git") as raised:
        places.take()
    assert raised.value.details == {"files": ["content/notes/two.md"]}
    assert (places.head, "By hand" in places.text("content/notes/two.md")) == (before, True)


@pytest.mark.parametrize(("staged", "coming"), [("place/file.txt", "place"), ("place", "place/file.txt")])
def test_staged_files_are_kept_in_the_index(places: Places, staged: str, coming: str) -> None:
    places.push({coming: "Theirs\n"})
    places.edit({staged: "Staged\n"})
    git(places.root, "add", staged)
    (places.root / staged).unlink()
    shutil.rmtree(places.root / "place", ignore_errors=True)
    with pytest.raises(
        RemoteMergeError, match="staged here, but the git remote has a different file at this path"
    ):
        places.take()
    assert git(places.root, "show", f":{staged}") == "Staged\n"
