"""Tests for POST `/branches/NAME/merge`, which merges a branch into the served branch or into another
branch.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.history.merging import merge as merging
from server.site.commits import committing
from server.storage.git import command
from tests.examples import examples
from tests.git import commit_all, git
from tests.killing import DONE, KILLED, killed_at
from tests.sites import STRING, Answer, Api, collection, component, make, relation, write
from tests.torture import SEED

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

STRIDE = 9  # kill the process at every ninth step
FILES = {
    "site.yaml": "search: {index: false}\n",
    ".gitignore": ".bifolio/\n",
    "README.md": "First\n\nSecond\n\nThird\n",
    **component("page.block", {"heading": STRING, "text": STRING}),
    **collection("tag", {"name": STRING}),
    **collection(
        "note",
        {
            "title": {"type": "string", "required": True},
            "slug": {"type": "uid"},
            "summary": STRING,
            "number": {"type": "integer"},
            "data": {"type": "json"},
            "body": {"type": "richtext"},
            "tags": relation("manyToMany", "tag"),
            "blocks": {"type": "component", "component": "page.block", "repeatable": True},
        },
        drafts=True,
    ),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/tags/sky.yaml": "name: Sky\n",
    "content/tags/fog.yaml": "name: Fog\n",
    "content/notes/one.md": "---\n# A comment\ntitle: One\nslug: one\nsummary: Short\ntags: [sea]\n"
    "blocks:\n  - heading: A\n    text: a\n  - heading: B\n    text: b\n---\nThe harbour.\n\nThe quay.\n",
    "content/notes/two.md": "---\ntitle: Two\n---\nText.\n",
}


def serve(root: Path, files: dict[str, str | bytes] | None = None) -> Api:
    write(root, {**FILES, **(files or {})})
    commit_all(root)
    git(root, "branch", "next")
    return make(root, {})


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    made = serve(tmp_path)
    yield made
    made.accounts.close()


def head(api: Api, name: str = "main") -> str:
    return git(api.root, "rev-parse", name).strip()


def parents(api: Api, name: str = "main") -> list[str]:
    return git(api.root, "log", "-1", "--format=%P", name).split()


def merge(api: Api, name: str = "next", who: str = "full", headers: Any = None, **body: Any) -> Answer:
    return api.ask("POST", f"/branches/{name}/merge", who, json=body, headers=headers or {})


def merges(api: Api) -> bool:
    """Merge the branch, and return whether the merge was committed immediately."""
    answer = merge(api)
    return answer.status == 200 and answer.data["commit"] != "pending"


def commit(api: Api, name: str, files: dict[str, str | bytes | None], message: str = "change") -> None:
    """Commit files on a branch by hand. If the branch is not checked out, use a separate worktree."""
    here = git(api.root, "symbolic-ref", "--short", "HEAD").strip() == name
    folder = api.root if here else api.root.with_name(f"{api.root.name}-worktree")
    if not here:
        git(api.root, "worktree", "add", "-q", str(folder), name)
    write(folder, {path: text for path, text in files.items() if text is not None})
    for path in [path for path, text in files.items() if text is None]:
        (folder / path).unlink()
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    if here:
        api.site.refresh()
    else:
        git(api.root, "worktree", "remove", "--force", str(folder))


def clean(api: Api) -> None:
    """Assert that there are no uncommitted changes, and no temporary files in the repository or next to
    it.
    """
    assert git(api.root, "status", "--porcelain") == ""
    git(api.root, "fsck", "--strict")
    assert not list(api.root.glob(".git/*.lock")) + list(api.root.glob(".git/bifolio-*"))
    assert not list(api.root.glob(".bifolio/merge-*")) + list(api.root.glob(".bifolio/commits/*.kept"))
    assert "refs/bifolio" not in git(api.root, "for-each-ref")


def both(api: Api, ours: dict[str, Any], theirs: dict[str, Any], name: str = "one") -> None:
    """Change the same note on the served branch and on another branch, and commit both changes."""
    assert api.put(f"/api/notes/{name}", ours).status == 200
    git(api.root, "commit", "-qam", "ours")
    api.site.refresh()
    assert api.put(f"/api/notes/{name}?branch=next", theirs).status == 200


def test_a_branch_is_merged_and_served_at_once(api: Api) -> None:
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    before, theirs = head(api), head(api, "next")
    made = merge(api)
    assert made.data == {
        "branch": "next", "into": "main", "result": "merge", "commit": head(api), "documents": 1, "files": 1
    }  # fmt: skip
    assert made.headers["Bifolio-Commit"] == head(api)
    assert parents(api) == [before, theirs]
    said = "Merge branch next\n\nBifolio-Actor: token:full\nBifolio-Document: note/one\n\n"
    assert git(api.root, "log", "-1", "--format=%an %ae %cn|%B") == f"full bifolio@localhost Bifolio|{said}"
    note = api.get("/api/notes/one").data
    assert (note["title"], note["summary"]) == ("Ours", "Theirs")
    assert "# A comment" in api.read("content/notes/one.md")
    assert not api.site.refresh()
    clean(api)


def test_a_merged_branch_is_reported_as_nothing(api: Api) -> None:
    before = head(api)
    assert merge(api).data["result"] == "nothing"
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    assert merge(api).data["result"] == "merge"
    after = head(api)
    assert merge(api).data == {
        "branch": "next", "into": "main", "result": "nothing", "commit": after, "documents": 0, "files": 0
    }  # fmt: skip
    assert head(api) == after != before


def test_fast_forward(api: Api) -> None:
    new = api.post("/api/notes?branch=next", {"title": "New"}).data["documentId"]
    made = merge(api)
    assert (made.data["result"], made.data["commit"], made.data["documents"]) == (
        "fast-forward",
        head(api, "next"),
        1,
    )
    assert head(api) == head(api, "next")
    assert sorted(api.get("/api/notes").ids) == sorted(["one", "two", new])
    clean(api)


def test_only_served_states_are_first_parents(api: Api) -> None:
    before = head(api)
    api.put("/api/notes/one?branch=next", {"title": "Theirs"})
    new = api.post("/api/notes?branch=next", {"title": "New"}).data["documentId"]
    api.ask("DELETE", "/api/notes/two?branch=next")
    made = merge(api)
    assert (made.data["result"], made.data["commit"], made.data["documents"]) == ("merge", head(api), 3)
    assert parents(api) == [before, head(api, "next")]
    assert len(set(git(api.root, "rev-parse", "main^{tree}", "next^{tree}").split())) == 1
    assert sorted(api.get("/api/notes").ids) == sorted(["one", new])
    clean(api)


def test_each_kind_of_value_is_merged(api: Api) -> None:
    ours = {
        "tags": {"connect": ["sky"]},
        "body": "The old harbour.\n\nThe quay.",
        "blocks": [{"heading": "A", "text": "ours"}, {"heading": "B", "text": "b"}],
    }
    theirs = {
        "tags": {"connect": ["fog"]},
        "body": "The harbour.\n\nThe new quay.",
        "blocks": [{"heading": "A", "text": "a"}, {"heading": "B", "text": "b"}, {"heading": "C"}],
    }
    both(api, ours, theirs)
    assert merge(api).status == 200
    note = api.get("/api/notes/one?populate=*").data
    assert {tag["documentId"] for tag in note["tags"]} == {"sea", "sky", "fog"}
    assert note["body"] == "The old harbour.\n\nThe new quay."
    assert [(b["heading"], b["text"]) for b in note["blocks"]] == [("A", "ours"), ("B", "b"), ("C", None)]
    clean(api)


def test_a_conflict_is_reported_and_resolved(api: Api) -> None:
    both(api, {"title": "Ours", "number": 1, "summary": "s"}, {"title": "Theirs", "number": 2, "body": "b"})
    before = head(api)
    refused = merge(api)
    assert (refused.status, refused.error["name"]) == (409, "ConflictError")
    assert "send your choices in the key" in refused.error["message"]
    assert refused.error["details"] == {
        "conflicts": [
            {
                "document": "note/one/en",
                "type": "note",
                "documentId": "one",
                "title": "Theirs",
                "locale": "en",
                "status": "published",
                "files": ["content/notes/one.md"],
                "attributes": {
                    "title": {"paths": [["title"]], "base": "One", "ours": "Ours", "theirs": "Theirs"},
                    "number": {"paths": [["number"]], "base": None, "ours": 1, "theirs": 2},
                },
            }
        ],
        "files": [],
        "total": 1,
    }
    assert (head(api), git(api.root, "status", "--porcelain")) == (before, "")
    half = merge(api, resolve={"documents": {"note/one/en": {"title": "ours"}}})
    assert [*half.error["details"]["conflicts"][0]["attributes"]] == ["number"]
    made = merge(api, resolve={"documents": {"note/one/en": {"title": "ours", "number": {"value": 3}}}})
    assert made.status == 200
    note = api.get("/api/notes/one").data
    assert (note["title"], note["number"], note["summary"], note["body"]) == ("Ours", 3, "s", "b")
    clean(api)


def test_the_values_of_json_in_a_resolution_are_counted(api: Api) -> None:
    given = {"note/one/en": {"data": {"value": json.dumps([1] * 60_000)}}}
    assert merge(api, resolve={"documents": given}).error["details"] == {"limit": "values"}


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_whole_document_is_resolved_to_one_side(api: Api, side: str) -> None:
    both(api, {"title": "ours", "number": 1, "summary": "s"}, {"title": "theirs", "number": 2, "body": "b"})
    assert merge(api, resolve={"documents": {"note/one/en": side}}).status == 200
    note = api.get("/api/notes/one").data
    number = {"ours": 1, "theirs": 2}[side]
    assert (note["title"], note["number"], note["summary"], note["body"]) == (side, number, "s", "b")


def test_a_conflict_inside_a_component_concerns_only_that_value(api: Api) -> None:
    def blocks(first: str, second: str) -> dict[str, Any]:
        return {"blocks": [{"heading": "A", "text": first}, {"heading": "B", "text": second}]}

    both(api, blocks("ours", "b"), blocks("theirs", "both"))
    told = merge(api).error["details"]["conflicts"][0]["attributes"]["blocks"]
    assert told["paths"] == [["blocks", "0", "text"]]
    assert merge(api, resolve={"documents": {"note/one/en": {"blocks": "ours"}}}).status == 200
    found = api.get("/api/notes/one?populate=*").data["blocks"]
    assert [b["text"] for b in found] == ["ours", "both"]


@pytest.mark.parametrize(
    "resolve",
    [
        {"documents": {"note/two/en": "ours"}},
        {"documents": {"note/one/en": {"title": "ours", "summary": "ours"}}},
        {"documents": {"note/one/en": {"title": "our"}}},
        {"documents": {"note/one/en": {"title": {"value": 1, "more": 2}}}},
        {"documents": {"note/one/en": {"title": {"value": {"a": 1}}}}},
        {"documents": ["note/one/en"]},
        {"files": {"README.md": "ours"}},
        {"files": {"README.md": {"value": "x"}}},
        {"document": {}},
        "ours",
    ],
)
def test_a_resolution_without_a_conflict_is_refused(api: Api, resolve: Any) -> None:
    both(api, {"title": "Ours"}, {"title": "Theirs"})
    before = head(api)
    assert merge(api, resolve=resolve).status == 400
    assert head(api) == before


@pytest.mark.parametrize("body", [{"onto": "main"}, {"into": 1}, {"message": 1}, {"message": "x" * 10_001}])
def test_an_invalid_body_is_refused(api: Api, body: dict[str, Any]) -> None:
    assert merge(api, **body).status == 400
    assert api.ask("POST", "/branches/next/merge", json=[1]).status == 400


def test_deleted_on_one_side_and_changed_on_the_other(api: Api) -> None:
    api.ask("DELETE", "/api/notes/one")
    git(api.root, "commit", "-qam", "ours")
    api.site.refresh()
    api.put("/api/notes/one?branch=next", {"title": "Theirs"})
    # The served branch has not changed this note, so the merge simply deletes it.
    api.ask("DELETE", "/api/notes/two?branch=next")
    refused = merge(api)
    [told] = refused.error["details"]["conflicts"]
    assert (refused.status, told["document"], told["deleted"]) == (409, "note/one/en", "ours")
    assert merge(api, resolve={"documents": {"note/one/en": "theirs"}}).status == 200
    assert api.get("/api/notes").ids == ["one"]
    assert api.get("/api/notes/one").data["title"] == "Theirs"
    clean(api)


def test_changed_here_and_deleted_in_the_branch(api: Api) -> None:
    api.put("/api/notes/one", {"title": "Ours"})
    git(api.root, "commit", "-qam", "ours")
    api.site.refresh()
    api.ask("DELETE", "/api/notes/one?branch=next")
    assert merge(api).error["details"]["conflicts"][0]["deleted"] == "theirs"
    assert merge(api, resolve={"documents": {"note/one/en": "ours"}}).status == 200
    assert api.get("/api/notes/one").data["title"] == "Ours"
    clean(api)


def test_created_on_both_sides(api: Api) -> None:
    commit(api, "main", {"content/tags/new.yaml": "name: Same\n", "content/tags/odd.yaml": "name: Ours\n"})
    commit(api, "next", {"content/tags/new.yaml": "name: Same\n", "content/tags/odd.yaml": "name: Theirs\n"})
    [told] = merge(api).error["details"]["conflicts"]
    assert told["document"] == "tag/odd/en"
    assert told["attributes"]["name"] == {
        "paths": [["name"]], "base": None, "ours": "Ours", "theirs": "Theirs"
    }  # fmt: skip
    assert merge(api, resolve={"documents": {"tag/odd/en": "theirs"}}).status == 200
    assert api.get("/api/tags/odd").data["name"] == "Theirs"
    clean(api)


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_two_documents_in_one_file(api: Api, side: str) -> None:
    ids = {"ours": api.post("/api/notes", {"title": "Ours", "slug": "same"}).data["documentId"]}
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", "ours")
    api.site.refresh()
    made = api.post("/api/notes?branch=next", {"title": "Theirs", "slug": "same"})
    ids["theirs"] = made.data["documentId"]
    assert merge(api).error["details"]["files"] == ["content/notes/same.md"]
    assert merge(api, resolve={"files": {"content/notes/same.md": side}}).status == 200
    assert sorted(api.get("/api/notes").ids) == sorted(["one", "two", ids[side]])
    clean(api)


def test_validation_includes_uncommitted_documents(api: Api) -> None:
    api.put("/api/notes/one", {"slug": "same"})
    api.put("/api/notes/two?branch=next", {"slug": "same"})
    assert merge(api).error["details"]["errors"][0]["path"] == ["note/two/en", "slug"]


def test_identical_changes_on_both_sides(api: Api) -> None:
    both(api, {"title": "Same"}, {"title": "Same"}, "two")
    commit(api, "main", {"content/notes/two.md": git(api.root, "show", "next:content/notes/two.md")})
    before, theirs = head(api), head(api, "next")
    made = merge(api)
    assert (made.data["result"], made.data["documents"], made.data["files"]) == ("merge", 0, 0)
    assert parents(api) == [before, theirs]
    clean(api)


def test_drafts_are_separate_versions(api: Api) -> None:
    api.put("/api/notes/one?status=draft", {"title": "Draft"})
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", "ours")
    api.site.refresh()
    api.put("/api/notes/one?branch=next&status=draft", {"title": "Other"})
    assert merge(api).error["details"]["conflicts"][0]["document"] == "note/one/en/draft"
    assert merge(api, resolve={"documents": {"note/one/en/draft": "ours"}}).status == 200
    assert api.get("/api/notes/one?status=draft").data["title"] == "Draft"
    assert api.get("/api/notes/one").data["title"] == "One"


def test_a_renamed_document_is_merged(api: Api) -> None:
    text = api.read("content/notes/one.md").replace("title: One", "documentId: one\ntitle: One")
    commit(api, "main", {"content/notes/one.md": text})
    git(api.root, "branch", "-f", "next")
    commit(api, "next", {"content/notes/one.md": None, "content/notes/moved.md": text})
    commit(api, "main", {"content/notes/one.md": text.replace("Short", "Shorter")})
    assert merge(api).status == 200
    assert api.get("/api/notes/one").data["summary"] == "Shorter"
    assert "Shorter" in api.read("content/notes/moved.md")
    assert not (api.root / "content/notes/one.md").exists()
    clean(api)


# --- files that are not documents ------------------------------------------------------------------------


def test_files_of_any_kind_are_merged(api: Api) -> None:
    picture = bytes(range(256)) * 40
    commit(api, "main", {"README.md": FILES["README.md"].replace("First", "1st")})
    files = {"content/uploads/a/b.bin": picture, "content/uploads/a/b.bin.yaml": "caption: Bytes\n"}
    readme = FILES["README.md"].replace("Third", "3rd")
    commit(api, "next", {**files, "README.md": readme, "tools/x.py": "pass\n"})
    assert merge(api).status == 200
    assert (api.root / "content/uploads/a/b.bin").read_bytes() == picture
    assert api.read("README.md") == "1st\n\nSecond\n\n3rd\n"
    assert api.get("/api/upload/files").body[0]["caption"] == "Bytes"
    clean(api)


def test_many_files_need_no_more_commands_than_one(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    real, ran = command._run, list[str]()

    def counted(words: list[str], *arguments: Any) -> Any:
        ran.append(words[0])
        return real(words, *arguments)

    monkeypatch.setattr(command, "_run", counted)
    counts = []
    for number in (1, 40):
        git(api.root, "branch", "-f", "next", "main")
        commit(api, "next", {f"content/tags/t{i}.yaml": f"name: {number}\n" for i in range(number)})
        commit(api, "main", {"README.md": f"{number}\n"})
        ran.clear()
        assert merge(api).data["files"] == number
        counts.append(len(ran))
    assert counts[1] <= counts[0] < 70


def test_conflicting_files_are_named(api: Api) -> None:
    commit(api, "main", {"content/uploads/a.bin": b"\0ours", "README.md": "Ours\n"})
    commit(api, "next", {"content/uploads/a.bin": b"\0theirs", "README.md": "Theirs\n"})
    refused = merge(api)
    assert (refused.status, refused.error["details"]["files"]) == (
        409,
        ["README.md", "content/uploads/a.bin"],
    )
    resolve = {"files": {"README.md": "ours", "content/uploads/a.bin": "theirs"}}
    assert merge(api, resolve=resolve).status == 200
    assert api.read("README.md") == "Ours\n"
    assert (api.root / "content/uploads/a.bin").read_bytes() == b"\0theirs"
    clean(api)


def test_a_schema_is_merged_with_its_documents(api: Api) -> None:
    changed = collection("tag", {"name": STRING, "label": STRING})
    commit(api, "next", {**changed, "content/tags/sea.yaml": "name: Sea\nlabel: Salt\n"})
    commit(api, "main", {"content/tags/sky.yaml": "name: Blue\n", "content/tags/sea.yaml": "name: Ocean\n"})
    assert merge(api).status == 200
    sea = api.get("/api/tags/sea").data
    assert (sea["name"], sea["label"]) == ("Ocean", "Salt")
    assert api.get("/api/tags/sky").data["label"] is None
    assert not api.site.refresh()
    clean(api)


@pytest.mark.parametrize(
    "files",
    [
        {"content-types/tag.json": "{"},
        {"site.yaml": "locales: 3\n"},
        {"content/tags/sea.yaml": "name: [\n"},
        {"content/tags/other.yaml": "documentId: sea\nname: Twice\n"},
    ],
)
def test_a_merge_that_breaks_the_site_is_refused(api: Api, files: dict[str, str]) -> None:
    commit(api, "next", files)
    commit(api, "main", {"content/tags/sky.yaml": "name: Blue\n"})
    before = head(api)
    assert merge(api).status == 409
    assert (head(api), git(api.root, "status", "--porcelain")) == (before, "")
    assert api.get("/api/tags/sea").data["name"] == "Sea"


def test_the_merged_state_is_validated(api: Api) -> None:
    """Each branch is valid, but after the merge two documents would have the same unique value."""
    api.put("/api/notes/one", {"slug": "same"})
    git(api.root, "commit", "-qam", "ours")
    api.site.refresh()
    api.put("/api/notes/two?branch=next", {"slug": "same"})
    before = head(api)
    refused = merge(api)
    assert (refused.status, refused.error["name"]) == (400, "ValidationError")
    [error] = refused.error["details"]["errors"]
    assert error["path"] == ["note/two/en", "slug"]
    assert (head(api), git(api.root, "status", "--porcelain")) == (before, "")


def test_newly_required_attributes_are_checked_in_merged_documents(api: Api) -> None:
    required = collection("tag", {"name": STRING, "label": {"type": "string", "required": True}})
    known = {f"content/tags/{name}.yaml": "name: x\nlabel: y\n" for name in ("sea", "sky", "fog")}
    commit(api, "main", {**required, **known})
    commit(api, "next", {"content/tags/new.yaml": "name: New\n"})
    assert merge(api).error["details"]["errors"][0]["path"] == ["tag/new/en", "label"]
    # If the branch changes a schema, existing documents are validated with the new schema.
    git(api.root, "branch", "other", "next~1")
    commit(api, "other", {"content/tags/rain.yaml": "name: Rain\n"})
    refused = merge(api, "main", into="other")
    assert refused.error["details"]["errors"][0]["path"] == ["tag/rain/en", "label"]


def test_a_dangling_relation_is_a_problem_but_not_an_error(api: Api) -> None:
    both(api, {"tags": ["sea", "fog"]}, {"summary": "x"})
    git(api.root, "branch", "-f", "next", "main~1")
    api.ask("DELETE", "/api/tags/fog?branch=next")
    assert merge(api).status == 200
    assert any("fog" in problem.message for problem in api.site.problems)


# --- concurrent edits and commits ------------------------------------------------------------------------


def test_uncommitted_edits_are_not_overwritten(api: Api) -> None:
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    api.put("/api/notes/two", {"title": "By hand"})
    write(api.root, {"notes.txt": "mine\n", "content/notes/two.md": api.read("content/notes/two.md") + "\n"})
    api.put("/api/notes/one", {"number": 7})
    before, text = head(api), api.read("content/notes/one.md")
    refused = merge(api)
    assert (refused.status, refused.error["details"]["paths"]) == (409, ["content/notes/one.md"])
    assert (head(api), api.read("content/notes/one.md")) == (before, text)
    git(api.root, "commit", "-qm", "mine", "content/notes/one.md")
    assert merge(api).status == 200
    # Uncommitted changes to other files than the merge changes stay uncommitted.
    assert git(api.root, "status", "--porcelain").split("\n") == [
        " M content/notes/two.md",
        "?? notes.txt",
        "",
    ]


def test_an_untracked_or_staged_file_blocks_the_merge(api: Api) -> None:
    commit(api, "next", {"content/tags/new.yaml": "name: Theirs\n", "content/tags/sea.yaml": "name: Sea 2\n"})
    commit(api, "next", {"notes/ignored.txt": "theirs\n"})
    write(api.root, {".git/info/exclude": "notes/\n", "notes/ignored.txt": "mine\n"})
    write(api.root, {"content/tags/new.yaml": "name: Mine\n", "content/tags/sea.yaml": "name: Staged\n"})
    git(api.root, "add", "content/tags/sea.yaml")
    write(api.root, {"content/tags/sea.yaml": "name: Sea\n"})
    refused = merge(api)
    assert refused.error["details"]["paths"] == [
        "content/tags/new.yaml", "content/tags/sea.yaml", "notes/ignored.txt"
    ]  # fmt: skip
    assert api.read("content/tags/new.yaml") == "name: Mine\n"


@pytest.mark.parametrize("moment", ["_collect_files", "_write"])
def test_an_edit_by_hand_after_the_check_is_kept(
    api: Api, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    commit(api, "next", {"content/notes/two.md": "---\ntitle: Deux\n---\nText.\n"})
    step = getattr(merging.Merger, moment)
    text = "---\ntitle: Two\n---\nSaved by hand.\n"

    def edited(*arguments: Any, **more: Any) -> Any:
        write(api.root, {"content/notes/two.md": text})
        return step(*arguments, **more)

    monkeypatch.setattr(merging.Merger, moment, edited)
    answer = merge(api)
    assert answer.status == 409, answer.body
    assert api.read("content/notes/two.md") == text
    assert git(api.root, "log", "-1", "--format=%s", "main").strip() != "Merge branch next"


def test_an_edit_by_hand_at_the_last_moment_is_kept(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    before, put = head(api), merging.Merger._write

    def edited(self: Any, *arguments: Any) -> Any:
        text = api.read("content/notes/one.md").replace("One", "Hand").replace("Ours", "Hand")
        write(api.root, {"content/notes/one.md": text})
        return put(self, *arguments)

    monkeypatch.setattr(merging.Merger, "_write", edited)
    refused = merge(api)
    assert (refused.status, refused.error["details"]["paths"]) == (409, ["content/notes/one.md"])
    assert "title: Hand" in api.read("content/notes/one.md")
    assert head(api) == before


def test_two_simultaneous_merges_both_succeed(api: Api) -> None:
    for number in range(4):
        git(api.root, "branch", f"topic/{number}", "main")
        assert api.post(f"/api/tags?branch=topic/{number}", {"name": f"Tag {number}"}).status == 201
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: merge(api, f"topic/{number}"), range(4)))
    assert [answer.status for answer in answers] == [200] * 4
    assert len(api.get("/api/tags").ids) == 7
    assert git(api.root, "log", "--merges", "--format=%s").count("Merge branch topic/") == 3
    clean(api)


def test_a_merge_during_another_commit(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit is made while the merge is being prepared, so the merge is prepared again on top of
    it.
    """
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    put, done = merging.Merger._write, list[str]()

    def beside(self: Any, *arguments: Any) -> Any:
        if not done:
            write(api.root, {"notes.txt": "x\n"})
            git(api.root, "add", "notes.txt")
            git(api.root, "commit", "-qm", "beside")
            done.append(head(api))
        return put(self, *arguments)

    monkeypatch.setattr(merging.Merger, "_write", beside)
    assert merge(api).status == 200
    assert parents(api) == [done[0], head(api, "next")]
    assert git(api.root, "diff", "--name-only", "HEAD~1", "HEAD") == "content/notes/one.md\n"
    clean(api)


@pytest.mark.parametrize("way", ["index.lock", "MERGE_HEAD"])
@pytest.mark.parametrize("forward", [True, False])
def test_nothing_is_written_while_git_is_busy(api: Api, way: str, forward: bool) -> None:
    if not forward:
        both(api, {"title": "Ours"}, {"summary": "Theirs"})
    api.put("/api/notes/one?branch=next", {"summary": "Theirs"})
    write(api.root, {f".git/{way}": "" if way == "index.lock" else f"{head(api, 'next')}\n"})
    os.utime(api.root / ".git" / way, (0, 0))
    before = head(api)
    assert merge(api).status == 409
    (api.root / ".git" / way).unlink()
    assert (head(api), git(api.root, "status", "--porcelain")) == (before, "")
    assert merge(api).status == 200
    clean(api)


@pytest.mark.parametrize("name", ["pre-merge-commit", "commit-msg"])
def test_a_hook_can_refuse(api: Api, name: str) -> None:
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    hook = api.root / ".git/hooks" / name
    write(api.root, {f".git/hooks/{name}": "#!/bin/sh\necho not today >&2; exit 1\n"})
    hook.chmod(0o755)
    before = head(api)
    refused = merge(api)
    assert refused.status == 409
    assert "not today" in refused.error["message"]
    assert (head(api), git(api.root, "status", "--porcelain")) == (before, "")
    hook.write_text("#!/bin/sh\nexit 0\n")
    assert merge(api).status == 200
    assert parents(api) == [before, head(api, "next")]
    clean(api)


def test_a_merge_that_can_not_be_committed_is_pending(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """git's branch is locked when the merged files have been written, so the commit, with both parents, is
    made later.
    """
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    before, put = head(api), merging.Merger._write

    def locking(self: Any, *arguments: Any) -> Any:
        write(api.root, {".git/refs/heads/main.lock": ""})
        return put(self, *arguments)

    monkeypatch.setattr(merging.Merger, "_write", locking)
    monkeypatch.setattr(committing, "HOOK_RETRY_INTERVAL_S", 0.0)
    made = merge(api)
    assert (made.status, made.data["commit"], made.headers["Bifolio-Commit"]) == (200, "pending", "pending")
    assert api.get("/api/notes/one").data["summary"] == "Theirs"
    assert head(api) == before
    (api.root / ".git/refs/heads/main.lock").unlink()
    api.site.committer.commit_due()
    assert parents(api) == [before, head(api, "next")]
    clean(api)


def test_the_disk_is_full_when_the_index_is_copied(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    both(api, {"title": "Ours"}, {"summary": "Theirs"})

    def full(source: Path, copy: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(copy))

    monkeypatch.setattr(shutil, "copy2", full)
    before = head(api)
    answer = merge(api)
    assert (answer.status, head(api)) == (409, before)
    assert "No space left on device" in answer.error["message"]
    monkeypatch.undo()
    assert merges(api)


def test_a_process_is_killed_at_every_step(api: Api) -> None:
    """After a process is killed, the next one completes the merge with both parents, or nothing was
    merged.
    """
    merged, first = 0, head(api)
    for step in range(1 + SEED % STRIDE, 2000, STRIDE):
        git(api.root, "reset", "-q", "--hard", first)
        git(api.root, "branch", "-f", "next", first)
        api.site.refresh()
        api.put("/api/notes/two?branch=next", {"title": "Theirs"})
        api.put("/api/notes/one?branch=next", {"summary": "Theirs"})
        if step % 2:
            commit(api, "main", {"README.md": f"{step}\n"})
        before = head(api)
        ended = killed_at(step, merges, api)
        api.site.refresh()
        api.site.committer.commit_due()
        api.site.refresh()
        assert git(api.root, "status", "--porcelain", "-uno") == "", step
        one, two = (api.get(f"/api/notes/{name}").data for name in ("one", "two"))
        state = (one["summary"], two["title"])
        if head(api) == before:
            assert state == ("Short", "Two"), step
        else:
            assert state == ("Theirs", "Theirs"), step
            theirs = head(api, "next")
            assert head(api) == theirs or parents(api) == [before, theirs], step
            merged += 1
        if ended != KILLED:
            break
    assert ended == DONE
    assert merged > 1


# --- into other branches ---------------------------------------------------------------------------------


def test_into_a_branch_that_is_not_checked_out(api: Api) -> None:
    git(api.root, "branch", "other")
    api.put("/api/notes/one?branch=next", {"title": "Next"})
    api.put("/api/notes/one?branch=other", {"summary": "Other"})
    before, index = head(api), (api.root / ".git/index").read_bytes()
    parent = head(api, "other")
    write(api.root, {"content/notes/one.md": "mine\n"})
    made = merge(api, into="other", message="Take it over")
    assert (made.data["into"], made.data["result"], made.data["commit"]) == (
        "other",
        "merge",
        head(api, "other"),
    )
    assert parents(api, "other") == [parent, head(api, "next")]
    assert git(api.root, "log", "-1", "--format=%s", "other") == "Take it over\n"
    note = api.get("/api/notes/one?at=other").data
    assert (note["title"], note["summary"]) == ("Next", "Other")
    assert (head(api), (api.root / ".git/index").read_bytes()) == (before, index)
    assert api.read("content/notes/one.md") == "mine\n"
    before = head(api, "next")
    assert merge(api, "other", into="next").data["result"] == "merge"
    assert parents(api, "next") == [before, head(api, "other")]
    git(api.root, "fsck", "--strict")


def test_the_served_branch_is_merged_into_another(api: Api) -> None:
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    before = head(api)
    assert merge(api, "main", into="next").data["result"] == "merge"
    assert merge(api).data["result"] == "merge"
    assert parents(api) == [before, head(api, "next")]
    clean(api)


def test_branches_that_can_not_be_merged(api: Api, tmp_path: Path) -> None:
    assert merge(api, "none").status == 404
    assert merge(api, into="none").status == 404
    assert merge(api, "main").status == 400
    git(api.root, "worktree", "add", "-q", str(tmp_path.with_name(f"{tmp_path.name}-x")), "next")
    assert merge(api, "main", into="next").status == 409
    assert merge(api, "next").status == 200
    empty = git(api.root, "commit-tree", "-m", "x", git(api.root, "mktree").strip()).strip()
    git(api.root, "branch", "apart", empty)
    assert merge(api, "apart").status == 409
    git(api.root, "checkout", "-q", "--detach")
    assert merge(api, "next").status == 409
    assert merge(api, "next", into="main").status == 200


def test_changes_that_are_left_to_git(api: Api) -> None:
    folder = api.root.with_name(f"{api.root.name}-links")
    for number, kind in enumerate(("link", "mode", "state")):
        git(api.root, "branch", f"b{number}", "main")
        git(api.root, "worktree", "add", "-q", str(folder), f"b{number}")
        if kind == "link":
            (folder / "content/tags/link.yaml").symlink_to("sea.yaml")
        elif kind == "mode":
            (folder / "README.md").chmod(0o755)
        else:
            write(folder, {".bifolio/jwt.key": "known"})
        git(folder, "add", "-Af")
        git(folder, "commit", "-qm", "x")
        git(api.root, "worktree", "remove", "--force", str(folder))
        refused = merge(api, f"b{number}")
        words = "is reserved for the server" if kind == "state" else "merge the branch with git"
        assert (refused.status, words in refused.error["message"]) == (409, True), kind


SHELF = "content/notes/shelf"  # a folder on one branch, a file on the other


@pytest.mark.parametrize("theirs_is_folder", [True, False], ids=["folder", "file"])
@pytest.mark.parametrize("served", [True, False], ids=["into the served", "into another"])
def test_a_file_and_a_folder_at_one_path_are_both_kept(
    api: Api, theirs_is_folder: bool, served: bool
) -> None:
    folder, file = {f"{SHELF}/two.md": "---\ntitle: Two\n---\n"}, {SHELF: "What is on the shelf.\n"}
    commit(api, "next", folder if theirs_is_folder else file)
    commit(api, "main", file if theirs_is_folder else folder)
    into = "main"
    if not served:
        git(api.root, "branch", "into", "main")
        git(api.root, "checkout", "-q", "-b", "aside")
        into = "into"
    before = head(api, into)
    answer = merge(api, into=into)
    assert (answer.status, answer.error["details"]["files"]) == (409, [SHELF, f"{SHELF}/two.md"])
    assert answer.error["message"].startswith(f"{SHELF} is a file on one side, but a folder that contains ")
    assert head(api, into) == before
    clean(api)


@pytest.mark.parametrize(
    "mine", [{}, {f"{SHELF}/new.md": "---\ntitle: New\n---\n"}], ids=["gone", "written to"]
)
def test_an_empty_folder_is_replaced_by_a_file(api: Api, mine: dict[str, Any]) -> None:
    old = f"{SHELF}/old.md"
    commit(api, "main", {old: "---\ntitle: Old\n---\n"})
    git(api.root, "branch", "-f", "next", "main")
    git(api.root, "branch", "into", "main")
    commit(api, "next", {old: None}, "empty")
    commit(api, "next", {SHELF: "What is on the shelf.\n"})
    if mine:
        commit(api, "into", mine)
    # The folder still exists on disk.
    assert (merge(api).status, merge(api).error["details"]["files"]) == (409, [SHELF])
    answer = merge(api, into="into")
    assert answer.status == (409 if mine else 200), answer.body
    there = git(api.root, "ls-tree", "-r", "--name-only", "into", "content/notes").split()
    assert (SHELF in there) == (not mine)
    assert (f"{SHELF}/new.md" in there) == bool(mine)


# --- permissions -----------------------------------------------------------------------------------------


def test_a_merge_needs_the_permission_for_each_change(api: Api) -> None:
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    api.token("branch", may=["branch.merge"])
    api.token("note", may=["note.update", "branch.update"])
    api.token("create", may=["branch.merge", "note.create"])
    api.token("reads", "read-only")
    for who in ("branch", "note", "create", "reads", "public"):
        assert merge(api, who=who).status == 403, who
    api.token("both", may=["branch.merge", "note.update"])
    assert merge(api, who="both").status == 200


def test_each_file_needs_its_own_permission(api: Api) -> None:
    branches = {
        "media": ({"content/uploads/a.txt": "x"}, ["upload.upload"]),
        "made": ({"content/tags/new.yaml": "name: New\n"}, ["tag.create"]),
        "gone": ({"content/tags/fog.yaml": None}, ["tag.delete"]),
        "draft": (
            {"content/notes/one.draft.md": "---\ntitle: Draft\n---\n"},
            ["note.create", "note.readDraft"],
        ),
    }
    for name, (files, may) in branches.items():
        git(api.root, "branch", name, "main")
        commit(api, name, files)
        for number in range(len(may)):
            api.token(f"{name}{number}", may=["branch.merge", *may[:number]])
            refused = merge(api, name, f"{name}{number}")
            assert refused.status == 403, (name, number)
            # The permissions of a content type are named to those who know of the type.
            if name == "media" or number:
                assert refused.error["details"] == {"permission": may[number]}
        api.token(name, may=["branch.merge", *may])
        assert merge(api, name, name).status == 200, name
    for number, path in enumerate(("site.yaml", "content-types/tag.json", "README.md", ".gitattributes")):
        git(api.root, "branch", f"f{number}", "main")
        commit(api, f"f{number}", {path: api.read(path) + "\n" if path in FILES else "# x\n"})
        api.token(f"f{number}", may=["branch.merge", "upload.upload", "tag.update", "note.update"])
        refused = merge(api, f"f{number}", f"f{number}")
        assert refused.status == 403, path
        assert "requires full access" in refused.error["message"]
        assert merge(api, f"f{number}").status == 200, path


def test_a_conflict_reports_only_visible_values(api: Api) -> None:
    both(api, {"title": "Ours"}, {"title": "Theirs"})
    api.token("blind", may=["branch.merge", "note.update"])
    [told] = merge(api, who="blind").error["details"]["conflicts"]
    assert told["attributes"] == {"title": {"paths": [["title"]]}}


# --- repositories ----------------------------------------------------------------------------------------


def test_a_site_that_commits_its_writes(tmp_path: Path) -> None:
    for number, commits in enumerate(("each", "1h")):
        api = serve(tmp_path / str(number), {"site.yaml": f"git:\n  commit: {commits}\n"})
        assert api.put("/api/notes/one", {"title": "Ours"}).status == 200
        api.put("/api/notes/one?branch=next", {"summary": "Theirs"})
        assert merge(api, headers={"Bifolio-Message": "Together"}).data["result"] == "merge"
        log = git(api.root, "log", "--first-parent", "--format=%s").split("\n")[:2]
        assert log == ["Together", 'Update note "Ours"']
        clean(api)
        api.accounts.close()


def test_a_repository_of_sha256_and_a_site_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "other/site", FILES)
    git(tmp_path / "other", "init", "-q", "-b", "main", "--object-format=sha256")
    commit_all(tmp_path / "other")
    git(tmp_path / "other", "branch", "next")
    api = make(tmp_path / "other/site", {})
    both(api, {"title": "Ours"}, {"summary": "Theirs"})
    assert merge(api).data["result"] == "merge"
    assert api.get("/api/notes/one").data["summary"] == "Theirs"
    assert git(tmp_path / "other", "status", "--porcelain") == ""
    # Files outside the site's folder are merged by git.
    git(tmp_path / "other", "worktree", "add", "-q", str(tmp_path / "next"), "next")
    write(tmp_path / "next", {"README": "x\n"})
    git(tmp_path / "next", "add", "-A")
    git(tmp_path / "next", "commit", "-qm", "outside")
    assert "outside the site's folder" in merge(api).error["message"]
    api.accounts.close()


def test_filters_and_line_ends_are_those_of_a_checkout(tmp_path: Path) -> None:
    api = serve(tmp_path, {".gitattributes": "*.rot filter=rot\n*.crlf text eol=crlf\n"})
    git(tmp_path, "config", "filter.rot.clean", "tr a-z b-za")
    git(tmp_path, "config", "filter.rot.smudge", "tr b-za a-z")
    commit(api, "next", {"content/uploads/x.rot": "secret\n", "content/uploads/y.crlf": "a\r\nb\r\n"})
    commit(api, "main", {"README.md": "x\n"})
    assert git(tmp_path, "show", "next:content/uploads/x.rot") == "tfdsfu\n"
    assert merge(api).status == 200
    assert api.read("content/uploads/x.rot") == "secret\n"
    assert api.read("content/uploads/y.crlf") == "a\r\nb\r\n"
    clean(api)
    api.accounts.close()


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
VALUES = {
    "title": TEXTS,
    "summary": TEXTS,
    "number": st.integers(-1000, 1000),
    "body": TEXTS,
    "tags": st.lists(st.sampled_from(["sea", "sky", "fog"]), unique=True),
}


@st.composite
def two_edits(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw two changes to a note that have no attribute in common."""
    names = draw(st.permutations(sorted(VALUES)))
    at = draw(st.integers(1, len(names) - 1))
    return tuple({name: draw(VALUES[name]) for name in part} for part in (names[:at], names[at:]))  # type: ignore[return-value]


@given(edits=two_edits())
@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_edits_of_different_attributes_both_survive(api: Api, edits: Any) -> None:
    ours, theirs = edits
    git(api.root, "branch", "-f", "next", "main")
    assert api.put("/api/notes/one?branch=next", theirs).status == 200
    assert api.put("/api/notes/one", ours).status == 200
    git(api.root, "commit", "-q", "--allow-empty", "-am", "ours")
    api.site.refresh()
    assert merge(api).status == 200
    note = api.get("/api/notes/one?populate=tags").data
    note["tags"] = [tag["documentId"] for tag in note["tags"]]
    wanted = {**ours, **theirs}
    assert json.dumps({name: note[name] for name in wanted}) == json.dumps(wanted)
    assert git(api.root, "status", "--porcelain") == ""


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_hidden_from_git_is_kept(api: Api, flag: str) -> None:
    commit(api, "next", {"README.md": "Theirs\n"})
    commit(api, "main", {"other.txt": "Ours\n"})
    git(api.root, "update-index", flag, "README.md")
    write(api.root, {"README.md": "By hand\n"})
    before, refused = head(api), merge(api)
    assert (refused.status, refused.error["details"]) == (409, {"paths": ["README.md"]})
    assert (head(api), api.read("README.md")) == (before, "By hand\n")
    git(api.root, "update-index", flag.replace("--", "--no-"), "README.md")
    git(api.root, "checkout", "-q", "HEAD", "--", "README.md")
    assert merges(api)
    assert api.read("README.md") == "Theirs\n"
    clean(api)


def test_a_file_outside_of_a_sparse_checkout_is_not_an_edit(api: Api) -> None:
    commit(api, "next", {"README.md": "Theirs\n"})
    commit(api, "main", {"other.txt": "Ours\n"})
    git(api.root, "update-index", "--skip-worktree", "README.md")
    (api.root / "README.md").unlink()
    assert merges(api)
    assert git(api.root, "show", "HEAD:README.md") == "Theirs\n"


@pytest.mark.parametrize(("staged", "coming"), [("place/file.txt", "place"), ("place", "place/file.txt")])
def test_staged_files_are_kept_in_the_index(api: Api, staged: str, coming: str) -> None:
    commit(api, "next", {coming: "Theirs\n"})
    commit(api, "main", {"other.txt": "Ours\n"})
    write(api.root, {staged: "Staged\n"})
    git(api.root, "add", staged)
    (api.root / staged).unlink()
    shutil.rmtree(api.root / "place", ignore_errors=True)
    refused = merge(api)
    assert (refused.status, refused.error["details"]) == (409, {"paths": [staged]})
    assert git(api.root, "show", f":{staged}") == "Staged\n"


def test_a_file_is_merged_into_a_folder_that_is_a_repository_here(api: Api) -> None:
    commit(api, "next", {"extra/file.txt": "Theirs\n"})
    commit(api, "main", {"other.txt": "Ours\n"})
    git(api.root, "init", "-q", "extra")
    assert merges(api)
    assert git(api.root, "show", "HEAD:extra/file.txt") == api.read("extra/file.txt") == "Theirs\n"


U = "content/notes/u.md"


def other_keys(api: Api, base: str, ours: str, theirs: str) -> Answer:
    """Merge a note in which both branches changed adjacent lines.

    `base`, `ours` and `theirs` are the front matter lines below the title in each version.
    """
    text = "---\ntitle: {}\n{}---\nText.\n"
    commit(api, "main", {U: text.format("U", base)})
    git(api.root, "branch", "-f", "next")
    commit(api, "next", {U: text.format("U", theirs)})
    commit(api, "main", {U: text.format("Ours", ours)})
    return merge(api)


def test_a_key_without_an_attribute_is_merged(api: Api) -> None:
    assert (
        other_keys(api, "old: x\nkey: base\n", "old: x\nkey: base\n", "key: theirs\nmore: [a, b]\n").status
        == 200
    )
    assert api.read(U) == "---\ntitle: Ours\nkey: theirs\nmore:\n  - a\n  - b\n---\nText.\n"
    clean(api)


@pytest.mark.parametrize(("side", "left"), [("ours", "key: mine\n"), ("theirs", "key: other\n")])
def test_a_key_changed_on_both_sides_is_a_conflict_of_the_file(api: Api, side: str, left: str) -> None:
    refused = other_keys(api, "key: base\n", "key: mine\n", "key: other\n")
    assert (refused.status, refused.error["details"]["files"]) == (409, [U])
    assert merge(api, resolve={"files": {U: side}}).status == 200
    assert api.read(U) == f"---\ntitle: Ours\n{left}---\nText.\n"


BLOCKS = "blocks:\n  - heading: A\n    x: base\n  - heading: B\n    y: base\n"
TURNED = "blocks:\n  - heading: B\n    y: base\n  - heading: A\n    x: base\n"
TITLED = BLOCKS.replace("heading: A", "heading: A2")


def test_other_keys_of_a_component_are_merged_with_it(api: Api) -> None:
    ours = BLOCKS.replace("blocks:", "summary: s\nblocks:")  # so that both branches change adjacent lines
    theirs = BLOCKS.replace("blocks:", "number: 3\nblocks:").replace("x: base", "x: other")
    assert other_keys(api, BLOCKS, ours, theirs).status == 200
    text = api.read(U)
    assert ours.replace("x: base", "x: other") in text
    assert "number: 3" in text
    clean(api)


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (TITLED, BLOCKS.replace("x: base", "x: other")),
        (BLOCKS.replace("x: base", "x: mine"), TITLED),
        (BLOCKS.replace("x: base", "x: mine"), BLOCKS.replace("x: base", "x: other")),
        (TURNED, TITLED),
        (TITLED, TURNED),
        (TITLED, BLOCKS.replace("blocks:", "blocks:\n  - heading: C\n    z: new")),
    ],
)
def test_other_keys_are_not_moved_between_components(api: Api, ours: str, theirs: str, side: str) -> None:
    refused = other_keys(api, BLOCKS, ours, theirs)
    assert (refused.status, refused.error["details"]["files"]) == (409, [U])
    assert merge(api, resolve={"files": {U: side}}).status == 200
    assert (ours if side == "ours" else theirs).removeprefix("blocks:") in api.read(U)
    clean(api)


def blocks(order: str) -> str:
    return "blocks:\n" + "".join(f"  - heading: {name}\n    x: {name}{name}\n" for name in order)


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_other_keys_of_components_come_from_the_chosen_side(api: Api, side: str) -> None:
    refused = other_keys(api, blocks("ABC"), blocks("BAC"), blocks("CAB"))
    [conflict] = refused.error["details"]["conflicts"]
    assert merge(api, resolve={"documents": {conflict["document"]: {"blocks": side}}}).status == 200
    assert blocks("BAC" if side == "ours" else "CAB") in api.read(U)


@pytest.mark.parametrize(("deletes", "keeps"), [("main", "next"), ("next", "main")])
def test_a_note_that_one_side_deletes_keeps_a_key_of_the_other(api: Api, deletes: str, keeps: str) -> None:
    commit(api, keeps, {"content/notes/two.md": "---\ntitle: Two\nkey: words\n---\nText.\n"})
    commit(api, deletes, {"content/notes/two.md": None})
    refused = merge(api)
    assert (refused.status, refused.error["details"]["files"]) == (409, ["content/notes/two.md"])
    side = "ours" if keeps == "main" else "theirs"
    assert merge(api, resolve={"files": {"content/notes/two.md": side}}).status == 200
    assert "key: words" in api.read("content/notes/two.md")
    clean(api)


def test_a_note_created_in_two_formats_has_the_keys_of_both(api: Api) -> None:
    commit(api, "main", {"content/tags/new.yaml": "name: New\nmine: 1\n"})
    commit(api, "next", {"content/tags/new.json": '{"name": "New", "other": {"a": [true, "1"]}}\n'})
    assert merge(api).status == 200
    text = api.read("content/tags/new.yaml")
    assert text.startswith("name: New\nmine: 1\nother:")
    assert "true" in text
    assert "'1'" in text


SECRET = {"title": STRING, "code": {"type": "password"}}
PART = {"name": STRING, "code": {"type": "password"}}
PARTS = {"type": "component", "component": "page.part", "repeatable": True}


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Api]:
    """A site with an older branch `next`, on which passwords are stored as plain text."""
    old = {
        **component("page.part", {"name": STRING, "code": STRING}),
        **collection("vault", {"title": STRING, "code": STRING, "parts": PARTS}),
        "content/vaults/a.yaml": "title: A\n",
    }
    made = serve(tmp_path, old)
    write(tmp_path, {**component("page.part", PART), **collection("vault", {**SECRET, "parts": PARTS})})
    commit_all(tmp_path)
    yield made
    made.accounts.close()


@pytest.mark.parametrize(
    ("name", "data"),
    [("code", {"code": "walrus"}), ("parts", {"parts": [{"name": "One", "code": "walrus"}]})],
)
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_plain_text_of_a_branch_does_not_become_a_password(
    plain: Api, name: str, data: dict[str, Any], method: str
) -> None:
    path = "/api/vaults/a" if method == "PUT" else "/api/vaults"
    made = plain.ask(method, f"{path}?branch=next", json={"data": {"title": "Next", **data}})
    assert made.status in (200, 201)
    before = plain.read("content/vaults/a.yaml")
    refused = merge(plain)
    message = refused.body["error"]["message"]
    assert (refused.status, f'"{name}" of vault/' in message, "walrus" in message) == (409, True, False)
    assert plain.read("content/vaults/a.yaml") == before
    plain.put(f"/api/vaults/{made.data['documentId']}?branch=next", {name: None if name == "code" else []})
    assert merge(plain).status == 200
    assert "walrus" not in plain.read("content/vaults/a.yaml")
