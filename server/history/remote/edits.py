"""What is in the working tree of a repository that no commit has: which files, and a commit of them.

The filters of the repository work here, as they do for its owner.
"""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.storage.git.command import git_as_owner
from server.storage.git.commit import Person
from server.storage.git.repository import Repository, Staged, Tree
from server.storage.git.uncommitted import EVERY_EDIT

_AT_ONCE = 1000  # paths on a command line
_LINK = "120000"
_TREE = "160000"  # another repository


@dataclass(frozen=True, slots=True)
class Edit:
    """A file that differs from the last commit: in the index (`staged`), or on disk from the index."""

    staged: bool
    edited: bool

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
        printed = os.fsdecode(git_as_owner(repository.top, "status", *EVERY_EDIT, "--", *some))
        for line in filter(None, printed.split("\0")):
            name, edit = line[3:], Edit(line[0] not in " ?!", line[1] != " ")
            if name in full:
                found[full[name]] = edit
            elif name.endswith("/"):  # All of a folder is ignored.
                inside = (one for one in some if one.startswith(name))
                found.update((full[one], edit) for one in inside if os.path.lexists(repository.top / one))
    return found


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
    nobody = Person("Quire", "quire@localhost")
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
        git_as_owner(top, "add", "--force", *from_input, given=named, environment=environment)
    tree = git_as_owner(top, "write-tree", environment=environment).decode().strip()
    made = git_as_owner(top, "commit-tree", "-p", head, "-m", "Edits", tree, environment=environment)
    return made.decode().strip()


def holds(repository: Repository, path: str, file: Staged | None) -> bool:
    """Whether the working tree has a file as git has it. Raises CommitError."""
    full = repository.full(path)
    place = repository.top / full
    if file is None:  # A folder in its place may have what comes there.
        return not _is_file(place)
    if not os.path.lexists(place):
        return False
    if file.mode == _TREE:
        return place.is_dir()
    if place.is_symlink() or file.mode == _LINK:
        target = os.fsencode(os.readlink(place)) if place.is_symlink() else None
        return file.mode == _LINK and target is not None and _hash(repository, target) == file.id
    if not place.is_file() or bool(place.stat().st_mode & 0o100) != (file.mode == "100755"):
        return False
    named = ("hash-object", f"--path={full}", "--", str(place))
    return git_as_owner(repository.top, *named).decode().strip() == file.id


def swaps(paths: Iterable[str]) -> set[str]:
    """Those of some paths that have changed at which a folder takes the place of a file, or a file of one."""
    paths = set(paths)
    tops = paths & {above for path in paths for above in _above(path)}
    return {path for path in paths if path in tops or not tops.isdisjoint(_above(path))} if tops else tops


def in_place_of(repository: Repository, files: Tree) -> set[str]:
    """The files on disk that are in the way of some that come, and are not to go themselves.

    They are in a folder where a file or a link comes, or are a file where a folder does.
    """
    found = set[str]()
    for path in (path for path, file in files.items() if file and file.mode != _TREE):
        place = repository.root / path
        if place.is_dir() and not place.is_symlink():
            below = (Path(folder, name) for folder, _, names in os.walk(place) for name in names)
            found.update(os.path.relpath(one, repository.root) for one in below)
        above = (repository.root / one for one in _above(path))
        found.update(str(one.relative_to(repository.root)) for one in above if _is_file(one))
    return {path for path in found if path not in files or files[path]}


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _above(path: str) -> Iterator[str]:
    """The folders that a path relative to the site is in, those inside of the site."""
    parts = path.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)) if parts[length - 1] != "..")


def check_out(repository: Repository, files: Mapping[str, Staged | None], folder: Path) -> None:
    """Let the working tree have some files as git has them, links and all; `folder` is for an index.

    What is another repository stays. Raises CommitError and OSError.
    """
    environment = {"GIT_INDEX_FILE": str(folder / "odd-index")}
    for path, file in files.items():
        place = repository.top / repository.full(path)
        if file is None and (place.is_symlink() or place.is_file()):
            place.unlink()
    entries = b"".join(
        b"%b %b\t%b\0" % (file.mode.encode(), file.id.encode(), os.fsencode(repository.full(path)))
        for path, file in files.items()
        if file and file.mode != _TREE
    )
    if entries:
        git_as_owner(
            repository.top, "update-index", "-z", "--index-info", given=entries, environment=environment
        )
        git_as_owner(repository.top, "checkout-index", "--all", "--force", "--quiet", environment=environment)


def _hash(repository: Repository, data: bytes) -> str:
    return git_as_owner(repository.top, "hash-object", "--stdin", given=data).decode().strip()


def _parts(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), _AT_ONCE):
        yield paths[start : start + _AT_ONCE]
