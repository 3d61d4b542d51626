"""Uncommitted changes in the working tree."""

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
    """An uncommitted change to a file. It is in git's index (`staged`), on disk (`edited`), or both.

    `hidden` is set if `git status` does not report the change.
    """

    staged: bool
    edited: bool
    hidden: bool = False

    @property
    def is_both(self) -> bool:
        # The staged content then exists only in git's index.
        return self.staged and self.edited


def find_edits(repository: Repository, paths: Collection[str]) -> dict[str, Edit]:
    """Return the uncommitted changes to the files at `paths`, by path. Raises CommitError."""
    full, edits_by_path = {repository.full(path): path for path in paths}, dict[str, Edit]()
    for batch in _batches(sorted(full)):
        printed = os.fsdecode(git_as_owner(repository.top, "status", *STATUS_OPTIONS, "--", *batch))
        for line in filter(None, printed.split("\0")):
            name, edit = line[3:], Edit(line[0] not in " ?!", line[1] != " ")
            if name in full:
                edits_by_path[full[name]] = edit
            elif name.endswith("/"):  # git reports an ignored folder as one line.
                ignored_paths = (path for path in batch if path.startswith(name))
                edits_by_path.update(
                    (full[path], edit) for path in ignored_paths if os.path.lexists(repository.top / path)
                )
    hidden = hidden_edits(repository, paths) if paths else set()
    return edits_by_path | dict.fromkeys(hidden, Edit(staged=False, edited=True, hidden=True))


def new_files(repository: Repository, folders: Collection[str]) -> set[str]:
    options = ("--others", "--exclude-standard", "-z", "--", *folders)
    printed = os.fsdecode(git_as_owner(repository.root, "ls-files", *options)) if folders else ""
    return {path for path in printed.split("\0") if path and not path.endswith("/")}


def commit_edits(repository: Repository, head: str, paths: Collection[str], folder: Path) -> str:
    """Commit the working tree on top of `head`, and return the commit id. No branch is moved.

    The commit contains all tracked files and the files at `paths`. Raises CommitError.
    """
    top = repository.top
    person = Person("Bifolio", "bifolio@localhost")
    environment = {
        "GIT_INDEX_FILE": str(folder / "edits-index"),
        **person.environment("AUTHOR", 0),
        **person.environment("COMMITTER", 0),
    }
    # `copy2` keeps the modification time, which git needs to skip unchanged files.
    shutil.copy2(repository.index, folder / "edits-index")
    git_as_owner(top, "add", "--update", environment=environment)
    existing = (full for path in paths if os.path.lexists(top / (full := repository.full(path))))
    named = b"\0".join(map(os.fsencode, existing))
    from_input = ("--pathspec-from-file=-", "--pathspec-file-nul")
    if named:
        git_as_owner(top, "add", "--force", *from_input, stdin=named, environment=environment)
    tree = git_as_owner(top, "write-tree", environment=environment).decode().strip()
    commit = git_as_owner(top, "commit-tree", "-p", head, "-m", "Edits", tree, environment=environment)
    return commit.decode().strip()


def file_folder_swaps(paths: Iterable[str]) -> set[str]:
    """Return the changed paths at which a folder is replaced by a file, or a file by a folder."""
    paths = set(paths)
    paths_and_folders = paths & {above for path in paths for above in folders_above(path)}
    return {
        path
        for path in paths
        if path in paths_and_folders or not paths_and_folders.isdisjoint(folders_above(path))
    }


def _batches(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), MAX_PATH_ARGUMENTS):
        yield paths[start : start + MAX_PATH_ARGUMENTS]
