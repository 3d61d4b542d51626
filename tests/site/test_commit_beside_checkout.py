"""A checkout that runs while the server commits a write: no part of it is visible before the rest."""

from pathlib import Path
from typing import Any

import pytest

from server.site import rescan
from server.site.replica import State
from server.write.context import Context
from tests.git import commit_all, git
from tests.sites import STRING, collection, opened, write, write_to


def note(title: str) -> str:
    return f"---\ntitle: {title}\n---\n"


def site_yaml(name: str) -> str:
    committing = "git: {commit: each, committer: Site <site@example.org>}\n"
    return f"name: {name}\n{committing}search: {{index: false}}\n"


def shown(state: State) -> tuple[str, set[Any]]:
    documents = state.snapshot.tables["api::note.note"].versions.values()
    return state.settings.name, {d.get("title") for d in documents if d.document_id != "new"}


def test_a_checkout_during_a_commit_is_visible_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server commits beside a commit that it does not know yet, so it reads everything again. Meanwhile,
    git checks out another branch.
    """
    notes = ("one", "two", "three")
    write(tmp_path, {**collection("note", {"title": STRING}), ".gitignore": ".bifolio/\n"})
    write(tmp_path, {f"content/notes/{name}.md": note("first") for name in notes})
    write(tmp_path, {"site.yaml": site_yaml("first")})
    commit_all(tmp_path)
    git(tmp_path, "checkout", "-qb", "second")
    write(tmp_path, {f"content/notes/{name}.md": note("second") for name in notes})
    write(tmp_path, {"site.yaml": site_yaml("second")})
    git(tmp_path, "commit", "-qam", "second")
    git(tmp_path, "checkout", "-q", "main")
    site = opened(tmp_path)
    git(tmp_path, "checkout", "-q", "second")
    read, is_done = rescan.read_git_state, False

    def read_after_checkout(*arguments: Any) -> Any:
        nonlocal is_done
        if not is_done:
            is_done = True
            git(tmp_path, "checkout", "-q", "main")
        return read(*arguments)

    monkeypatch.setattr(rescan, "read_git_state", read_after_checkout)

    def put(title: str, context: Context) -> None:
        context.changeset.put("content/notes/new.md", note(title))

    state, _ = write_to(site, put, "new")
    assert is_done
    name, titles = shown(state)
    assert titles == {name}
    site.refresh()
    assert shown(site.state) == ("first", {"first"})
