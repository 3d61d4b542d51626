"""What is in the working tree of a repository that no commit has: which files, and a commit of them.

The filters of the repository work here, as they do for its owner.
"""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from server.storage.git.checkout import folders_above
from server.storage.git.command import MAX_PATH_ARGUMENTS, git_as_owner
from server.storage.git.commit import Person
from server.storage.git.repository import Repository
from server.storage.git.uncommitted import STATUS_OPTIONS, hidden_edits


@dataclass(frozen=True, slots=True)
class Edit:
    """A file that differs from the last commit: in the index (`staged`), or on disk from the index.

    `hidden`: git has been told to take it for unchanged.
    """

    staged: bool
    edited: bool
    hidden: bool = False

    @property
    def is_both(self) -> bool:
        """Whether the index has something that neither the commit nor the file on disk has."""
        return self.staged and self.edited


def edits(repository: Repository, paths: Collection[str]) -> dict[str, Edit]:
    """Those of some paths at which there is something that is in no commit.

    Paths are relative to the site; those outside of it begin with `../`. Raises CommitError.
    """
    full, found = {repository.full(path): path for path in paths}, dict[str, Edit]()
    for some in _parts(sorted(full)):
        printed = os.fsdecode(git_as_owner(repository.top, "status", *STATUS_OPTIONS, "--", *some))
        for line in filter(None, printed.split("\0")):
            name, edit = line[3:], Edit(line[0] not in " ?!", line[1] != " ")
            if name in full:
                found[full[name]] = edit
            elif name.endswith("/"):  # All of a folder is ignored.
                inside = (one for one in some if one.startswith(name))
                found.update((full[one], edit) for one in inside if os.path.lexists(repository.top / one))
    hidden = hidden_edits(repository, paths) if paths else set()
    return found | dict.fromkeys(hidden, Edit(staged=False, edited=True, hidden=True))


def new_files(repository: Repository, folders: Collection[str]) -> set[str]:
    """The files below some folders of the site that git has not got and does not ignore."""
    options = ("--others", "--exclude-standard", "-z", "--", *folders)
    printed = os.fsdecode(git_as_owner(repository.root, "ls-files", *options)) if folders else ""
    return {path for path in printed.split("\0") if path and not path.endswith("/")}


def commit_edits(repository: Repository, head: str, paths: Collection[str], folder: Path) -> str:
    """Make a commit, to which nothing leads, of what is in the working tree; returns its id.

    It has all files that git knows as they are there, and those at some paths, whether git knows them or not.
    `folder` is for its index. Raises CommitError.
    """
    top = repository.top
    nobody = Person("Bifolio", "bifolio@localhost")
    environment = {
        "GIT_INDEX_FILE": str(folder / "edits-index"),
        **nobody.environment("AUTHOR", 0),
        **nobody.environment("COMMITTER", 0),
    }
    # With its time: by that git knows which files it has to look into, though they have the size they had.
    shutil.copy2(repository.index, folder / "edits-index")
    git_as_owner(top, "add", "--update", environment=environment)
    there = (full for path in paths if os.path.lexists(top / (full := repository.full(path))))
    named = b"\0".join(map(os.fsencode, there))
    from_input = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if named:
        git_as_owner(top, "add", "--force", *from_input, stdin=named, environment=environment)
    tree = git_as_owner(top, "write-tree", environment=environment).decode().strip()
    made = git_as_owner(top, "commit-tree", "-p", head, "-m", "Edits", tree, environment=environment)
    return made.decode().strip()


def swaps(paths: Iterable[str]) -> set[str]:
    """Those of some paths that have changed at which a folder takes the place of a file, or a file of one."""
    paths = set(paths)
    tops = paths & {above for path in paths for above in folders_above(path)}
    return {path for path in paths if path in tops or not tops.isdisjoint(folders_above(path))}


def _parts(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), MAX_PATH_ARGUMENTS):
        yield paths[start : start + MAX_PATH_ARGUMENTS]
