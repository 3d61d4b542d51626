"""Machines: clones of one bare repository, each with the app of its site."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.git import commit_all, git
from tests.sites import STRING, Api, collection, component, opened, relation, write

FILES: Mapping[str, str | bytes] = {
    ".gitignore": ".bifolio/\ncontent/uploads/private/\n",
    **component("page.block", {"heading": STRING, "text": STRING}),
    **collection("tag", {"name": STRING}),
    **collection(
        "note",
        {
            "title": {"type": "string", "required": True},
            "slug": {"type": "string", "unique": True},
            "summary": STRING,
            "number": {"type": "integer"},
            "body": {"type": "richtext"},
            "tags": relation("manyToMany", "tag"),
            "blocks": {"type": "component", "component": "page.block", "repeatable": True},
        },
        drafts=True,
    ),
    "content/tags/sea.yaml": "name: Sea\n",
    "content/tags/sky.yaml": "name: Sky\n",
    "content/notes/one.md": "---\ntitle: One\nslug: one\nsummary: Short\n---\nThe harbour.\n\nThe quay.\n",
    "content/notes/two.md": "---\ntitle: Two\nslug: two\n---\nText.\n",
}


def settings(push: str = "before", more: str = "") -> str:
    """Return the site.yaml of machines that push."""
    return f"search: {{index: false}}\ngit: {{remote: origin, branch: main, push: {push}}}\n{more}"


@dataclass(frozen=True, slots=True)
class Machines:
    """A bare repository, and machines by name."""

    bare: Path
    by_name: Mapping[str, Api]

    def __getitem__(self, name: str) -> Api:
        return self.by_name[name]

    @property
    def tip(self) -> str:
        """The current commit of the remote."""
        return head(self.bare, "main")


def head(root: Path, name: str = "HEAD") -> str:
    """Return the commit of a name."""
    return git(root, "rev-parse", name).strip()


def at_remote(machines: Machines, path: str) -> str:
    """Return the content of a file at the remote."""
    return git(machines.bare, "show", f"main:{path}")


def hook(repository: Path, name: str, body: str) -> None:
    """Install a hook, a shell script, in a repository."""
    path = repository / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[list[str]]:
    """Context manager: record the git commands run in the block by name, without those that git runs itself.

    Commands that read git's own settings, which run once in several seconds, are excluded too.
    """
    found: list[str] = []
    there = shutil.which("git")
    log, program = folder / "commands", folder / "bin/git"
    program.parent.mkdir(exist_ok=True)
    log.write_text("")
    program.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {there} "$@"\n')
    program.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        yield found
    words = (line.split() for line in log.read_text().splitlines())
    found += (name for line in words if (name := line[line.index("-C") + 2]) != "config")


@contextmanager
def machines(
    folder: Path, *names: str, push: str = "before", files: Mapping[str, str | bytes] | None = None
) -> Iterator[Machines]:
    """Yield machines that serve the same content."""
    write(folder / "first", {"site.yaml": settings(push), **FILES, **(files or {})})
    commit_all(folder / "first")
    git(folder, "clone", "-q", "--bare", "first", "bare.git")
    made = {}
    for name in names:
        git(folder, "clone", "-q", "bare.git", name)
        made[name] = Api.of(opened(folder / name))
    try:
        yield Machines(folder / "bare.git", made)
    finally:
        for api in made.values():
            api.accounts.close()
