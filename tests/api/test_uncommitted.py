"""Tests of `/history/uncommitted` and `/history/commit`, which list and commit uncommitted changes."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, make, write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

FILES = {
    **collection(
        "note",
        {"title": STRING, "body": "richtext", "salary": {"type": "integer", "private": True}},
        drafts=True,
    ),
    **collection("tag", {"name": STRING}),
    **collection("member", {"name": STRING, "key": {"type": "password"}}, format="yaml"),
    "site.yaml": "name: Notes\nsearch: {index: false}\n",
    ".gitignore": "*.bak\n",
    "content/notes/one.md": "---\ntitle: One\n---\nFirst.\n\nSecond.\n",
    "content/notes/two.md": "---\ntitle: Two\n---\nText of the second note, which is long enough.\n",
    "content/notes/three.md": "---\ntitle: Three\n---\n",
    "content/tags/sea.yaml": "name: Sea\n",
    "content/uploads/a.txt": "a\n",
    "content/members/ann.yaml": "name: Ann\nkey: $argon2id$v=19$old\n",
    "content/private/plan.md": "---\ntitle: The plan\n---\nText that git knows again, since it is long.\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    write(tmp_path, FILES)
    commit_all(tmp_path)
    made = make(tmp_path, {})
    yield made
    made.accounts.close()


def edit(api: Api) -> None:
    write(
        api.root,
        {
            "content/notes/one.md": "---\ntitle: Uno\n---\nFirst.\n\nChanged.\n",
            "content/notes/new.draft.md": "---\ntitle: New\nsalary: 3\n---\n",
            "content/notes/old.bak": "ignored",
            "content/uploads/b.txt": "b\n",
            "content-types/tag.json": FILES["content-types/tag.json"] + "\n",
        },
    )
    (api.root / "content/notes/three.md").unlink()
    (api.root / "content/notes/two.md").rename(api.root / "content/notes/deux.md")
    api.site.refresh()


def brief(answer: Any) -> list[tuple[str, str, str | None, list[str] | None]]:
    return [
        (one["path"].removeprefix("content/"), one["action"], one["documentId"], one["attributes"])
        for one in answer.data
    ]


def commit(api: Api, files: Any, message: Any = "Say it", who: str = "full", **options: Any) -> Any:
    return api.ask("POST", "/history/commit", who, json={"message": message, "files": files}, **options)


def test_what_is_not_committed_is_told_by_file(api: Api) -> None:
    assert api.get("/history/uncommitted").data == []
    edit(api)
    answer = api.get("/history/uncommitted")
    assert brief(answer) == [
        ("content-types/tag.json", "update", None, None),
        ("notes/deux.md", "rename", "deux", []),
        ("notes/new.draft.md", "create", "new", ["title"]),
        ("notes/one.md", "update", "one", ["title", "body"]),
        ("notes/three.md", "delete", "three", ["title"]),
        ("uploads/b.txt", "create", None, None),
    ]
    renamed, made = answer.data[1:3]
    assert (renamed["before"], renamed["title"]) == ("content/notes/two.md", "Two")
    assert (made["type"], made["status"], made["title"]) == ("note", "draft", "New")
    meta = answer.body["meta"]
    assert (meta["branch"], meta["commit"], meta["underWay"], meta["pending"]) == ("main", "off", None, 0)
    assert meta["head"] == git(api.root, "rev-parse", "HEAD").strip()
    assert len(api.get("/history/uncommitted?pageSize=2&page=3").data) == 2
    assert git(api.root, "diff", "--cached", "--name-only") == ""  # Nothing was staged in git's index.


def test_a_difference_is_told_by_attribute_and_by_line(api: Api) -> None:
    edit(api)
    answer = api.get("/history/uncommitted/diff?path=content/notes/one.md").data
    assert answer["attributes"]["title"] == {"from": "One", "to": "Uno"}
    assert answer["lines"][:3] == ["@@ -1,6 +1,6 @@", " ---", "-title: One"]
    schema = api.get("/history/uncommitted/diff?path=content-types/tag.json").data
    assert (schema["attributes"], bool(schema["lines"])) == (None, False)
    assert api.get("/history/uncommitted/diff?path=content/tags/sea.yaml").status == 404
    assert api.get("/history/uncommitted/diff?path=../../etc/passwd").status == 404
    assert api.get("/history/uncommitted/diff").status == 400


def test_no_hash_of_a_password_is_in_a_difference(api: Api) -> None:
    path = "content/members/ann.yaml"
    write(
        api.root, {path: "name: Anne\nkey: $argon2id$v=19$new\n", "content/old/bob.yaml": "key: $2b$10$abc\n"}
    )
    api.site.refresh()
    lines = api.get(f"/history/uncommitted/diff?path={path}").data["lines"]
    assert lines[1:] == ["-name: Ann", "-key: (hidden 1)", "+name: Anne", "+key: (hidden anew)"]
    assert api.get("/history/uncommitted/diff?path=content/old/bob.yaml").data["lines"][1:] == [
        "+key: (hidden)"
    ]
    write(api.root, {path: "name: [\nkey: $argon2id$v=19$new\n"})
    api.site.refresh()
    assert api.get(f"/history/uncommitted/diff?path={path}").data["lines"] is None


def test_a_difference_of_the_settings_contains_no_secrets(api: Api) -> None:
    api.tokens["agent"] = api.accounts.create_token("agent", "full-access", branch_only=True)
    secrets = (
        "# swordfish\nname: Notes\naccounts: postgresql://u:hunter2@db/x\nmail: {user: hunter2}\n"
        "webhooks:\n  - name: build\n    url: https://b.org/hunter2 # hunter2\n    secret: [env:HUNTER2]\n"
        "    headers: {X-Key: hunter2}\n"
    )
    path = "/history/uncommitted/diff?path=site.yaml"
    write(api.root, {"site.yaml": secrets})
    commit_all(api.root)
    write(api.root, {"site.yaml": secrets.replace("hunter2", "hunter3").replace("Notes", "Pier")})
    for who in ("full", "agent"):
        answer = api.get(path, who)
        assert answer.data["lines"] == ["@@ -2 +2 @@", "-name: Notes", "+name: Pier"]
        assert not any(secret in answer.text.lower() for secret in ("hunter", "swordfish"))
    (api.root / "site.yaml").rename(api.root / "old.yaml")
    assert "hunter" not in api.get("/history/uncommitted/diff?path=old.yaml").text.lower()
    write(api.root, {"site.yaml": "webhooks: [\n"})
    assert api.get(path).data["lines"] is None


def test_a_difference_of_the_settings_contains_no_setting_that_is_commented_out(api: Api) -> None:
    live = "name: Notes\naccounts: postgresql://u:hunter2@db/x\nmail:\n  user: hunter2\n"
    out = "name: Notes\n#accounts: postgresql://u:hunter2@db/x\n#mail:\n#  user: hunter2\n"
    write(api.root, {"site.yaml": live})
    commit_all(api.root)
    write(api.root, {"site.yaml": out})
    answer = api.get("/history/uncommitted/diff?path=site.yaml")
    assert answer.data["lines"][-3:] == ["+# (hidden)"] * 3
    assert "hunter2" not in answer.text


def test_what_a_file_was_before_it_was_renamed_is_for_who_may_see_that(api: Api) -> None:
    (api.root / "content/private/plan.md").rename(api.root / "content/notes/plan.md")
    api.site.refresh()
    api.token("writes", may=["history.read", "history.commit", "note.find", "note.readDraft"])
    assert [one["before"] for one in api.get("/history/uncommitted").data] == ["content/private/plan.md"]
    assert api.get("/history/uncommitted", "writes").data == []
    assert api.get("/history/uncommitted/diff?path=content/notes/plan.md", "writes").status == 404
    assert commit(api, ["content/notes/plan.md"], who="writes").status == 400


def test_what_is_named_is_committed_and_nothing_else(api: Api) -> None:
    edit(api)
    write(api.root, {"content/tags/sea.yaml": "name: Staged\n", "other.txt": "mine\n"})
    git(api.root, "add", "content/tags/sea.yaml", "other.txt")
    api.site.refresh()
    made = commit(api, ["content/notes/one.md", "content/notes/deux.md", "content/notes/three.md"])
    assert made.status == 201
    told = git(
        api.root, "log", "-1", "--format=%H%n%an%n%s%n%(trailers)", "--name-status", "--no-renames"
    ).split()
    assert told[:4] == [made.data["commit"], "full", "Say", "it"]
    assert made.headers["Bifolio-Commit"] == told[0]
    paths = [word for word in told if word.startswith("content/")]
    assert paths == [f"content/notes/{name}.md" for name in ("deux", "one", "three", "two")]
    assert "note/one" in told
    status = git(api.root, "status", "--porcelain").splitlines()
    assert "M  content/tags/sea.yaml" in status
    assert "A  other.txt" in status
    assert not any("notes/one.md" in line for line in status)
    left = ["content-types/tag.json", "notes/new.draft.md", "tags/sea.yaml", "uploads/b.txt"]
    assert [path for path, *_ in brief(api.get("/history/uncommitted"))] == left
    assert api.get("/history/notes/one").data[0]["message"].startswith("Say it")


def test_a_kept_migration_is_listed_and_committed(api: Api) -> None:
    path = "migrations/0001-rename-tag-name.yaml"
    write(api.root, {path: "rename: tag.name\nto: title\n"})
    api.token("commits", may=["history.read", "history.commit", "tag.find"])
    assert brief(api.get("/history/uncommitted")) == [(path, "create", None, None)]
    diff = api.get(f"/history/uncommitted/diff?path={path}").data["lines"]
    assert diff[1:] == ["+rename: tag.name", "+to: title"]
    assert api.get("/history/uncommitted", "commits").data == []
    assert commit(api, [path], who="commits").status == 400
    assert commit(api, [path]).status == 201
    assert git(api.root, "status", "--porcelain", "migrations") == ""
    (api.root / path).unlink()
    assert brief(api.get("/history/uncommitted")) == [(path, "delete", None, None)]


def test_what_a_role_may_not_see_is_neither_told_nor_committed(api: Api) -> None:
    edit(api)
    api.token("reads", may=["history.read", "note.find"])
    api.token("drafts", may=["history.read", "note.find", "note.readDraft"])
    api.token("commits", may=["history.read", "history.commit", "tag.find", "upload.find"])
    api.token("blind", may=["history.commit"])
    assert api.get("/history/uncommitted", "public").status == 403
    assert api.get("/history/uncommitted", "reads").data == []
    told = [path for path, *_ in brief(api.get("/history/uncommitted", "drafts"))]
    assert told == [f"notes/{name}.md" for name in ("deux", "new.draft", "one", "three")]
    diff = api.get("/history/uncommitted/diff?path=content/notes/new.draft.md", "drafts").data
    assert (list(diff["attributes"]), diff["lines"]) == (["title"], None)  # Private attributes are left out.
    assert [path for path, *_ in brief(api.get("/history/uncommitted", "commits"))] == ["uploads/b.txt"]
    for who in ("public", "drafts", "blind"):
        assert commit(api, ["content/notes/one.md"], who=who).status == 403
    assert commit(api, ["content/notes/one.md"], who="commits").status == 400
    assert commit(api, ["content/uploads/b.txt"], who="commits").status == 201
    assert "one.md" in git(api.root, "status", "--porcelain")


@pytest.mark.parametrize(
    ("message", "files"),
    [
        ("", ["content/notes/one.md"]),
        (" \x00\n", ["content/notes/one.md"]),
        ("m" * 10_001, ["content/notes/one.md"]),
        (None, ["content/notes/one.md"]),
        ("m", []),
        ("m", None),
        ("m", [1]),
        ("m", ["content/notes/none.md"]),
        ("m", ["content/tags/sea.yaml"]),
        ("m", ["../outside"]),
        ("m", ["x"] * 5001),
    ],
)
def test_what_makes_no_commit_is_refused(api: Api, message: Any, files: Any) -> None:
    edit(api)
    head = git(api.root, "rev-parse", "HEAD")
    assert commit(api, files, message).error["status"] == 400
    assert git(api.root, "rev-parse", "HEAD") == head


def test_a_message_is_one_of_people(api: Api) -> None:
    edit(api)
    assert commit(api, ["content/notes/one.md"], "Say\x07 it\n\nBifolio-Actor: token:other\n").status == 201
    told = git(api.root, "log", "-1", "--format=%B")
    assert told.startswith("Say  it\n\n Bifolio-Actor: token:other\n\nBifolio-Actor: token:full\n")
    large = api.ask("POST", "/history/commit", json={"message": "m" * 1_100_000, "files": ["a"]})
    assert large.status == 413


def test_no_message_hides_who_made_the_commit(api: Api) -> None:
    edit(api)
    cut = "Say it\n# ------------------------ >8 ------------------------\nmore"
    assert commit(api, ["content/notes/one.md"], cut).status == 201
    trailers = git(api.root, "log", "-1", "--format=%(trailers:key=Bifolio-Actor,valueonly)")
    assert trailers.strip() == "token:full"


def test_a_hook_that_refuses_is_told_in_its_words(api: Api) -> None:
    edit(api)
    assert commit(api, ["content/notes/new.draft.md"]).status == 201  # before the hook exists
    hook = api.root / ".git/hooks/pre-commit"
    write(api.root, {".git/hooks/pre-commit": "#!/bin/sh\necho No commits on Sundays >&2\nexit 1\n"})
    hook.chmod(0o755)
    refused = commit(api, ["content/notes/one.md"])
    assert refused.error["status"] == 409
    assert "No commits on Sundays" in refused.error["message"]
    api.site.committer.commit_due()  # The queue is empty, so the commit is not retried.
    assert api.site.committer.queue.pending() == []
    hook.unlink()
    assert commit(api, ["content/notes/one.md"]).status == 201


@pytest.mark.parametrize("name", ["MERGE_HEAD", "index.lock"])
def test_nothing_is_committed_into_what_git_is_at(api: Api, name: str) -> None:
    edit(api)
    head = git(api.root, "rev-parse", "HEAD")
    (api.root / ".git" / name).write_text(head)
    if name == "MERGE_HEAD":
        assert api.get("/history/uncommitted").body["meta"]["underWay"] == "a merge"
    assert commit(api, ["content/notes/one.md"]).error["status"] == 409
    (api.root / ".git" / name).unlink()
    assert git(api.root, "rev-parse", "HEAD") == head
    assert commit(api, ["content/notes/one.md"]).status == 201


def test_of_two_commits_at_once_both_are_made(api: Api) -> None:
    edit(api)
    clients = [Api(api.site, api.app, api.accounts, api.app.test_client(), api.tokens) for _ in range(2)]
    files = (["content/notes/one.md"], ["content/notes/new.draft.md"])
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda c=c, f=f: found.append(commit(c, f).status))  # type: ignore[misc]
        for c, f in zip(clients, files, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [201, 201]
    assert git(api.root, "rev-list", "--count", "HEAD").strip() == "3"
    assert "error" not in git(api.root, "fsck", "--strict")


def test_a_commit_of_a_killed_process_is_made_by_the_next(api: Api) -> None:
    """The queue contains everything that another process needs to create the requested commit."""
    edit(api)
    queue = api.site.committer.queue
    about = {"author": "Ann", "email": "ann@x.org", "actor": "user:1", "message": "Asked", "documents": []}
    more = {"at": 1.0, "base": git(api.root, "rev-parse", "HEAD").strip(), "asked": True}
    data = (api.root / "content/notes/one.md").read_bytes()
    queue.enqueue(queue.stage({**about, **more}, {"content/notes/one.md": data}))
    api.site.committer.commit_due()
    assert git(api.root, "log", "-1", "--format=%an: %s").strip() == "Ann: Asked"
    assert "one.md" not in git(api.root, "status", "--porcelain")


def test_a_link_is_left_to_git(api: Api) -> None:
    os.symlink("one.md", api.root / "content/notes/link.md")
    api.site.refresh()
    assert "link" in commit(api, ["content/notes/link.md"]).error["message"]


def test_a_site_in_no_repository_says_so(make_api: Any) -> None:
    api = make_api({**FILES})
    for answer in (api.get("/history/uncommitted"), commit(api, ["a"])):
        assert (answer.status, "git init" in answer.error["message"]) == (409, True)
