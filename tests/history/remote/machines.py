"""Simulated machines: each is a clone of the same bare repository, served by its own app."""

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
    """Return the `site.yaml` of a machine that pushes its writes to the remote."""
    return f"search: {{index: false}}\ngit: {{remote: origin, branch: main, push: {push}}}\n{more}"


@dataclass(frozen=True, slots=True)
class Machines:
    """Machines, by name, that share a bare repository as their remote."""

    bare: Path
    by_name: Mapping[str, Api]

    def __getitem__(self, name: str) -> Api:
        return self.by_name[name]

    @property
    def tip(self) -> str:
        """The commit at the tip of the remote's branch."""
        return head(self.bare, "main")


def head(root: Path, name: str = "HEAD") -> str:
    """Return the commit that a branch or other revision points to."""
    return git(root, "rev-parse", name).strip()


def at_remote(machines: Machines, path: str) -> str:
    """Return the content of a file in the latest commit of the remote."""
    return git(machines.bare, "show", f"main:{path}")


def hook(repository: Path, name: str, body: str) -> None:
    """Install a shell script as a git hook in a repository."""
    path = repository / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[list[str]]:
    """Context manager: record the names of the git commands that the block starts.

    The list is filled when the block ends. It excludes commands that git itself starts, and `git config`,
    which Bifolio runs every few seconds.
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
    """Context manager: start machines that serve clones of the same content."""
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
