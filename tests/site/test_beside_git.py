"""Writes while a git command is running: git must not overwrite a confirmed write."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from server.errors import GitBusyError
from server.site.site import Site
from server.write.context import Context
from tests.conftest import MakeSite
from tests.git import commit_all, git
from tests.sites import STRING, collection, write_to
from tests.waiting import until

TWO = "content/posts/two.md"
POSTS = {
    **collection("post", {"title": STRING}),
    "content/posts/one.md": "---\ntitle: One\n---\n",
    TWO: "---\ntitle: Two\n---\n",
}


def rename(site: Site) -> None:
    """Change the title of a post as the API does, without changing the rest of its file."""

    def prepare(_: None, context: Context) -> None:
        text = context.changeset.text(TWO)
        context.changeset.put(TWO, text.replace("title: Two", "title: New"))

    write_to(site, prepare, None)


def left_over(site: Site) -> list[Path]:
    return list((site.root / ".bifolio/journal").iterdir())


def slow_checkout(site: Site) -> tuple[threading.Thread, Path]:
    """Return a thread that slowly checks out another branch, and the path of the first file that git
    creates.
    """
    commit_all(site.root)
    git(site.root, "checkout", "-qb", "other")
    for name in ("one", "two"):
        with (site.root / f"content/posts/{name}.md").open("a") as file:
            file.write("Of the other branch\n")
    git(site.root, "commit", "-qam", "second")
    git(site.root, "checkout", "-q", "main")
    site.refresh()
    started = site.root / ".git/started"
    git(site.root, "config", "filter.slow.smudge", f"touch '{started}'; sleep 1; cat")
    (site.root / ".git/info/attributes").write_text("content/posts/one.md filter=slow\n")
    checkout = threading.Thread(target=git, args=(site.root, "checkout", "-q", "other"))
    return checkout, started


def test_a_write_waits_for_a_checkout_and_changes_what_it_brings(make_site: MakeSite) -> None:
    site = make_site(POSTS)
    checkout, started = slow_checkout(site)
    checkout.start()
    until(started.exists)
    rename(site)
    checkout.join()
    assert (site.root / TWO).read_text() == "---\ntitle: New\n---\nOf the other branch\n"
    assert git(site.root, "branch", "--show-current") == "other\n"


def test_a_write_beside_a_git_command_that_takes_too_long_is_refused(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.site.site.WRITE_GIT_TIMEOUT_S", 0.2)
    site = make_site(POSTS)
    commit_all(site.root)
    site.refresh()
    (site.root / ".git/index.lock").touch()
    with pytest.raises(GitBusyError, match="A git command is running in the site's repository; try again"):
        rename(site)
    assert (site.root / TWO).read_text() == POSTS[TWO]
    assert left_over(site) == []
    (site.root / ".git/index.lock").unlink()
    rename(site)
    assert "New" in (site.root / TWO).read_text()


@pytest.mark.parametrize(("text", "age_s"), [("", 31), ("a whole index", 0)])
def test_a_lock_whose_command_is_done_with_the_files_is_not_waited_for(
    make_site: MakeSite, text: str, age_s: float
) -> None:
    """The lock remains because the git command was killed, or because it is waiting for a commit message."""
    site = make_site(POSTS)
    commit_all(site.root)
    site.refresh()
    lock = site.root / ".git/index.lock"
    lock.write_text(text)
    os.utime(lock, (time.time() - age_s,) * 2)
    began = time.monotonic()
    rename(site)
    site.refresh()
    assert time.monotonic() - began < 5
    assert "New" in (site.root / TWO).read_text()


def test_a_checkout_that_begins_just_before_a_file_is_replaced(make_site: MakeSite) -> None:
    """git has already read the old file, and overwrites the new file later."""
    site = make_site(POSTS)
    checkout, started = slow_checkout(site)
    waiting = [checkout]

    def begin(event: str, arguments: Any) -> None:
        if event == "os.rename" and waiting and Path(TWO).name in map(str, arguments):
            waiting.pop().start()
            until(started.exists)

    sys.addaudithook(begin)
    rename(site)
    checkout.join()
    assert not waiting
    assert (site.root / TWO).read_text() == "---\ntitle: New\n---\nOf the other branch\n"
    assert git(site.root, "status", "--porcelain").split() == ["M", TWO]
