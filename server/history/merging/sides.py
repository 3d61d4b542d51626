"""The three sides of a merge, and the files that two branches have changed since they parted."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.documents.document import Document
from server.errors import ConflictError, LimitError
from server.history.merging.names import find_reserved
from server.paths import STATE_FOLDER
from server.storage.git.branches import merge_base
from server.storage.git.checkout import folders_above
from server.storage.git.repository import Staged
from server.storage.git.tree import changed_files, read_named
from server.storage.read import MAX_FILE_BYTES

MAX_FILES = 5000  # Files that a branch changes.
_FILE_MODES = ("100644", "100755")
MERGE_HINT = "merge the branch with git"


@dataclass(frozen=True, slots=True)
class Sides:
    """Three commits: `ours` is what is merged into, `theirs` what is merged, `base` the last in both."""

    base: str
    ours: str
    theirs: str

    @property
    def is_merged(self) -> bool:
        """Whether everything of theirs is in ours already."""
        return self.base == self.theirs

    @property
    def is_forward(self) -> bool:
        """Whether ours has nothing that is not in theirs as well."""
        return self.base == self.ours


@dataclass(frozen=True, slots=True)
class File:
    """A file that a side has changed, as each of the three has it; None where it is not there."""

    base: Staged | None
    ours: Staged | None
    theirs: Staged | None

    @property
    def is_theirs(self) -> bool:
        """Whether the branch alone has changed it."""
        return self.ours == self.base and self.theirs != self.base

    @property
    def is_merged(self) -> bool:
        """Whether there is nothing to do."""
        return self.theirs in (self.base, self.ours)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a document as one side has it."""

    document: Document
    data: bytes

    @property
    def path(self) -> str:
        """The file that it is in."""
        return self.document.path


def sides_of(root: Path, ours: str, theirs: str) -> Sides:
    """The sides of a merge of one commit into another. Raises ConflictError where nothing is in both."""
    base = merge_base(root, ours, theirs)
    if not base:
        raise ConflictError("The branches have no commit in common")
    return Sides(base, ours, theirs)


def files_of(root: Path, sides: Sides, *, whole: bool = False) -> dict[str, File]:
    """The files that either side has changed, by path relative to the site.

    Raises ConflictError for what is left to git: links, modes, files outside of the site or of its state, and
    LimitError for too many; none of it where it is to be the `whole` repository.
    """
    mine, other = (changed_files(root, sides.base, commit) for commit in (sides.ours, sides.theirs))
    require_writable(root, sides.theirs, other)
    if not whole:
        if len(other) > MAX_FILES:
            raise LimitError(f"The branch changes more than {MAX_FILES:,} files; {MERGE_HINT}", "files")
        for path, (before, after) in other.items():
            _refuse_odd(path, before, after)
    files = {}
    for path in {**other, **mine}:
        base = (mine.get(path) or other[path])[0]
        files[path] = File(base, mine.get(path, (base, base))[1], other.get(path, (base, base))[1])
    return {path: file for path, file in files.items() if whole or not path.startswith("../")}


def require_writable(
    root: Path, commit: str, changed: Mapping[str, tuple[Staged | None, Staged | None]]
) -> None:
    """Raise ConflictError where a commit has what may not be written (see `names`)."""
    path, why = find_reserved(root, (path for path, (_, after) in changed.items() if after))
    if path:
        raise ConflictError(f"The commit {commit[:10]} has {path!a}, which {why}", {"files": [path]})


def require_places(paths: Collection[str]) -> None:
    """Raise ConflictError where one of the files that a merge comes to would be below another one."""
    for path in sorted(paths):
        for above in folders_above(path):
            if above in paths:
                what = f"{above} is a file on one side, and a folder with {path} on the other"
                raise ConflictError(f"{what}; move one of them first", {"files": [above, path]})


def is_plain(path: str, *versions: Staged | None) -> bool:
    """Whether a change of a file, with these versions, is one of what is in it alone, inside of the site."""
    modes = {file.mode for file in versions if file}
    inside = not path.startswith("../") and path.split("/")[0] != STATE_FOLDER
    return inside and (modes == {"100644"} or (modes == {"100755"} and None not in versions))


def _refuse_odd(path: str, before: Staged | None, after: Staged | None) -> None:
    """Raise ConflictError for a change of a file that is not one of its contents alone."""
    modes = {file.mode for file in (before, after) if file}
    if path.startswith("../"):
        raise ConflictError(
            f"The branch changes {path.removeprefix('../')}, outside of the site; {MERGE_HINT}"
        )
    if path.split("/")[0] == STATE_FOLDER:
        raise ConflictError(f"The branch deletes {path}, which is the server's own; {MERGE_HINT}")
    if not modes <= set(_FILE_MODES):
        raise ConflictError(f"{path} is a link or a repository of its own; {MERGE_HINT}")
    if modes != {"100644"} and not (before and after and before.mode == after.mode):
        raise ConflictError(f"The branch changes whether {path} can be executed; {MERGE_HINT}")


def read_files(root: Path, files: Iterable[Staged | None]) -> Mapping[str, bytes]:
    """What is in some files, by their ids in git; of those alone that are not too large to be documents."""
    ids = sorted({file.id for file in files if file})
    read = zip(ids, read_named(root, ids, MAX_FILE_BYTES), strict=True)
    return {id_: data for id_, data in read if data is not None}
