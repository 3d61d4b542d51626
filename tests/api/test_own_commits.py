"""Tests of writes to files that Bifolio itself has committed since: they are committed too."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.git import commit_all, git
from tests.sites import Api, collection, documents, opened

WALK = "content/articles/walk.json"
FILES = {
    **collection("article", {"title": "string", "slug": "string"}),
    **documents("articles", walk={"title": "Old", "slug": "walk"}),
    "site.yaml": "git:\n  commit: 1h\n  committer: Site <site@example.org>\n",
    ".gitignore": ".bifolio/\n",
}
HOOK = f"""#!/bin/sh
id=$( (git show :{WALK}; echo) | git hash-object -w --stdin)
git update-index --cacheinfo 100644,$id,{WALK}
"""
Make = Callable[[], Api]


@pytest.fixture
def made(make_api: MakeApi, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Return a function that creates a site in a git repository, with a second user."""

    def make() -> Api:
        api = make_api(FILES)
        commit_all(api.root)
        api.site.refresh()
        api.token("second", "full-access")
        return api

    return make


def put(api: Api, title: str, who: str = "full") -> None:
    answer = api.put("/api/articles/walk", {"title": title}, who=who)
    assert (answer.status, answer.headers["Bifolio-Commit"]) == (200, "pending"), answer.text


def edit(api: Api, slug: str) -> None:
    """Edit the file by hand, and let the server read it."""
    file = api.root / WALK
    file.write_text(json.dumps({**json.loads(file.read_text()), "slug": slug}))
    api.site.refresh()


def flush(api: Api) -> None:
    api.site.committer.flush()
    assert api.site.committer.queue.pending() == []


def committed(api: Api, commit: str = "HEAD") -> Any:
    return json.loads(git(api.root, "show", f"{commit}:{WALK}"))["title"]


def titles(api: Api) -> list[str]:
    """Return the title in each commit of the file, newest first."""
    commits = git(api.root, "log", "--format=%H", "--diff-filter=AM", "--", WALK).split()
    return [committed(api, commit) for commit in commits]


def unsaved(api: Api) -> list[str]:
    files = (api.root / ".bifolio/unsaved").rglob("*")
    return [json.loads(one.read_text())["title"] for one in files if one.is_file()]


def records(api: Api) -> list[str]:
    return sorted(path.name for path in (api.root / ".bifolio/commits").glob("own-*"))


def two_writes(api: Api) -> None:
    """Write the file twice, each time followed by an edit."""
    put(api, "First")
    edit(api, "one")
    put(api, "Second", who="second")
    edit(api, "two")


def test_a_write_on_top_of_an_edited_earlier_write_is_committed(
    made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    api = made()
    two_writes(api)
    flush(api)
    assert titles(api) == ["Second", "First", "Old"]
    assert (unsaved(api), records(api), caplog.text) == ([], [], "")


def test_a_series_of_equal_texts_is_committed_in_its_order(made: Make) -> None:
    api = made()
    for title, who in (("A", "full"), ("B", "second"), ("A", "full"), ("C", "second"), ("A", "full")):
        edit(api, "walk" if title == "A" else "edited")
        put(api, title, who)
    edit(api, "last")
    flush(api)
    assert (titles(api), unsaved(api)) == (["A", "C", "A", "B", "A", "Old"], [])


def test_a_write_is_restored_after_the_earlier_write_has_been_committed(made: Make) -> None:
    api = made()
    two_writes(api)
    commit_first(api)
    assert committed(api) == "First"
    git(api.root, "checkout", "-q", "content")
    api.site.refresh()
    assert api.get("/api/articles/walk").data["title"] == "Second"
    flush(api)
    assert (titles(api), unsaved(api)) == (["Second", "First", "Old"], [])


def commit_first(api: Api) -> None:
    """Let another process commit the first write in the queue. Its author seems to have been idle since."""
    pending = api.site.committer.queue.pending()
    for waiting in pending:
        if waiting.author == pending[0].author:
            entry = api.root / f".bifolio/commits/{waiting.name}.kept"
            entry.write_text(json.dumps({**json.loads(entry.read_text()), "at": waiting.at - 7200}))
    opened(api.root).committer.commit_due()
    assert not api.site.committer.queue.is_pending(pending[0].name)
    api.site.refresh()


@pytest.mark.parametrize("killed", [False, True])
def test_another_process_commits_the_later_write(made: Make, killed: bool) -> None:
    """If the first process is killed just after its commit, the first write is still in the queue."""
    api = made()
    two_writes(api)
    folder = api.root / ".bifolio/commits"
    first = api.site.committer.queue.pending()[0].name
    entry = (folder / f"{first}.kept").read_bytes()
    commit_first(api)
    assert len(records(api)) == 1
    if killed:
        (folder / f"{first}.kept").write_bytes(entry)
        (folder / f"{first}.done").unlink(missing_ok=True)
    other = opened(api.root)
    other.committer.flush()
    assert (titles(api), unsaved(api), records(api)) == (["Second", "First", "Old"], [], [])


def test_a_record_that_is_incomplete_is_ignored(made: Make) -> None:
    api = made()
    two_writes(api)
    (api.root / ".bifolio/commits/own-9-1-none").write_text('{"content/art')
    flush(api)
    assert (titles(api), unsaved(api), records(api)) == (["Second", "First", "Old"], [], [])


def test_a_hook_changes_the_earlier_version(made: Make, caplog: pytest.LogCaptureFixture) -> None:
    api = made()
    hook = api.root / ".git/hooks/pre-commit"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    two_writes(api)
    flush(api)
    assert (titles(api), unsaved(api), records(api), caplog.text) == (["Second", "First", "Old"], [], [], "")


def test_a_write_after_a_deletion_is_committed(made: Make) -> None:
    api = made()
    assert api.ask("DELETE", "/api/articles/walk").status == 204
    (api.root / WALK).write_text('{"title": "Edited", "slug": "walk"}')
    api.site.refresh()
    put(api, "Second", who="second")
    edit(api, "two")
    flush(api)
    assert (titles(api), unsaved(api)) == (["Second", "Old"], [])
    assert git(api.root, "log", "--format=%H", "--diff-filter=D", "--", WALK)


def test_a_deletion_after_an_edited_write_is_committed(made: Make) -> None:
    api = made()
    put(api, "First")
    edit(api, "one")
    assert api.ask("DELETE", "/api/articles/walk", who="second").status == 204
    (api.root / WALK).write_text('{"title": "Edited"}')
    api.site.refresh()
    flush(api)
    assert titles(api) == ["First", "Old"]
    assert git(api.root, "ls-files", "--with-tree=HEAD", "--", WALK) == ""


def test_a_person_commits_the_staged_earlier_write(made: Make) -> None:
    api = made()
    put(api, "First")
    git(api.root, "add", WALK)
    edit(api, "one")
    put(api, "Second", who="second")
    edit(api, "two")
    git(api.root, "commit", "-qm", "by hand")
    flush(api)
    assert (titles(api), unsaved(api)) == (["Second", "First", "Old"], [])


def test_a_person_amends_the_commit_of_the_earlier_write(made: Make) -> None:
    api = made()
    two_writes(api)
    commit_first(api)
    git(api.root, "commit", "-q", "--amend", "--only", "-m", "by hand")
    flush(api)
    assert (titles(api), unsaved(api)) == (["Second", "First", "Old"], [])


def test_a_person_commits_a_different_version_after_the_earlier_write(made: Make) -> None:
    api = made()
    two_writes(api)
    commit_first(api)
    (api.root / WALK).write_text('{"title": "Theirs", "slug": "walk"}')
    git(api.root, "commit", "-qam", "by hand")
    flush(api)
    assert (titles(api), unsaved(api)) == (["Theirs", "First", "Old"], ["Second"])


# --- random series of writes, edits and commits ----------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """A write of the random series."""

    title: str
    who: str
    text: str
    earlier: frozenset[str]  # the replaced version, and those of earlier writes that were waiting


@dataclass
class Model:
    """All versions of the file in the random series, and all commits that a person made."""

    api: Api
    chance: random.Random
    writes: list[Written] = field(default_factory=list)
    by_hand: list[tuple[int, str]] = field(default_factory=list)  # number of writes before it, and version
    seen: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    number: int = 0

    # --- steps -----------------------------------------------------------------------------------------

    def step(self) -> None:
        steps: list[tuple[Callable[[], None], int]] = [
            (self.write, 6), (self.edit, 6), (self.commit_group, 2), (self.commit_all, 1),
            (self.commit_current, 1), (self.commit_older, 1), (self.stage, 1), (self.commit_staged, 1),
            (self.discard, 1), (self.amend, 1),
        ]  # fmt: skip
        [step] = self.chance.choices([step for step, _ in steps], [weight for _, weight in steps])
        self.log.append(step.__name__)
        step()
        self.seen.append(self.text)
        if self.chance.random() < 0.7:
            self.api.site.refresh()

    def write(self) -> None:
        self.number += 1
        title, who = f"w{self.number}", self.chance.choice(["full", "second"])
        waiting = {write.text for write in self.writes[len(self.writes) - self.waiting :]}
        earlier = frozenset({self.text, *waiting})
        answer = self.api.put("/api/articles/walk", {"title": title}, who=who)
        assert answer.status == 200, answer.text
        self.writes.append(Written(title, who, self.text, earlier))
        self.log[-1] += f" {title} {who}"

    def edit(self) -> None:
        self.number += 1
        file = self.api.root / WALK
        file.write_text(json.dumps({**json.loads(self.text), "slug": f"e{self.number}"}))
        self.log[-1] += f" e{self.number}"

    def commit_group(self) -> None:
        if self.waiting:
            commit_first(self.api)
            self.log[-1] += f": {committed(self.api)}"

    def commit_all(self) -> None:
        (self.api.site if self.chance.random() < 0.5 else opened(self.api.root)).committer.flush()

    def commit_current(self) -> None:
        if git(self.api.root, "diff", "HEAD", "--", WALK):
            self._commit_by_hand("--only", WALK)

    def commit_older(self) -> None:
        (self.api.root / ".git/older").write_text(self.chance.choice([*self.seen, self.text]))
        blob = git(self.api.root, "hash-object", "-w", ".git/older").strip()
        git(self.api.root, "update-index", "--cacheinfo", f"100644,{blob},{WALK}")
        self.commit_staged()

    def stage(self) -> None:
        git(self.api.root, "add", WALK)

    def commit_staged(self) -> None:
        if git(self.api.root, "diff", "--cached"):
            self._commit_by_hand()

    def _commit_by_hand(self, *arguments: str) -> None:
        git(self.api.root, "commit", "-qm", "by hand", *arguments)
        self.by_hand.append((len(self.writes), git(self.api.root, "show", f"HEAD:{WALK}")))
        version = json.loads(self.by_hand[-1][1])
        self.log[-1] += f": {version['title']} {version['slug']}"

    def discard(self) -> None:
        git(self.api.root, "checkout", "-q", "HEAD", "--", WALK)
        self.api.site.refresh()
        if self.waiting and not self.unrelated(len(self.writes) - 1):
            assert json.loads(self.text)["title"] == self.writes[-1].title, self.told(self.writes[-1])

    def amend(self) -> None:
        git(self.api.root, "commit", "-q", "--amend", "--only", "-m", "amended")

    # --- state -----------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        return (self.api.root / WALK).read_text()

    @property
    def waiting(self) -> int:
        return self.api.site.committer.queue.waiting

    def unrelated(self, index: int) -> set[str]:
        """Return what people have committed since a write, except for versions before or after the write."""
        related = {*self.writes[index].earlier, *(write.text for write in self.writes[index:])}
        return {text for count, text in self.by_hand if count > index and text not in related}

    def told(self, write: Written) -> str:
        return "\n".join((write.title, *self.log))

    def check(self) -> None:
        flush(self.api)
        in_history, aside = titles(self.api), unsaved(self.api)
        for index, write in enumerate(self.writes):
            if index + 1 < len(self.writes) and self.writes[index + 1].who == write.who:
                continue  # They may be in one commit, which has the later title.
            assert write.title in (*in_history, *aside), self.told(write)
            if not self.unrelated(index):
                assert write.title not in aside, self.told(write)
        if self.writes and committed(self.api) != self.writes[-1].title:
            assert self.unrelated(len(self.writes) - 1), self.told(self.writes[-1])
            assert self.writes[-1].title in (*in_history, *aside), self.told(self.writes[-1])


@pytest.mark.parametrize("seed", [5, 7, 10, 12])
def test_no_write_of_a_random_series_is_lost(made: Make, seed: int) -> None:
    model = Model(made(), random.Random(seed))
    for _ in range(24):
        model.step()
    model.check()
