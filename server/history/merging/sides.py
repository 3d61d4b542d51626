"""The three sides of a merge (base, ours and theirs), and the files that differ between them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.documents.document import Document
from server.errors import ConflictError, LimitError
from server.history.merging.names import find_forbidden_path
from server.paths import STATE_FOLDER
from server.storage.git.branches import merge_base
from server.storage.git.checkout import folders_above
from server.storage.git.log import CommitLog
from server.storage.git.repository import GitFile
from server.storage.git.tree import changed_files, read_named
from server.storage.read import MAX_FILE_BYTES

MAX_FILES = 5000  # A branch that changes more files can't be merged.
_FILE_MODES = ("100644", "100755")
MERGE_HINT = "merge the branch with git"


@dataclass(frozen=True, slots=True)
class MergeSides:
    """The commit ids in a merge of `theirs` into `ours`. `base` is their merge base.

    If `is_fast_forward` is set, `ours` is the first parent of `theirs`, so no merge commit is needed.
    """

    base: str
    ours: str
    theirs: str
    is_fast_forward: bool = False

    @property
    def is_merged(self) -> bool:
        return self.base == self.theirs


@dataclass(frozen=True, slots=True)
class FileSides:
    """A file on the three sides of a merge. A side is None if the file does not exist there."""

    base: GitFile | None
    ours: GitFile | None
    theirs: GitFile | None

    @property
    def is_theirs(self) -> bool:
        return self.ours == self.base and self.theirs != self.base

    @property
    def is_merged(self) -> bool:
        # The file on our side already has the merged content.
        return self.theirs in (self.base, self.ours)


@dataclass(frozen=True, slots=True)
class SideVersion:
    """A document version on one side of a merge, and the content of its file."""

    document: Document
    data: bytes

    @property
    def path(self) -> str:
        return self.document.path


def sides_of(log: CommitLog, ours: str, theirs: str) -> MergeSides:
    base = merge_base(log.root, ours, theirs)
    if not base:
        raise ConflictError("The branches have no common ancestor")
    log.update(theirs)
    return MergeSides(base, ours, theirs, log.commits[theirs].parents[:1] == (ours,))


def changed_files_of(
    root: Path, sides: MergeSides, *, whole_repository: bool = False
) -> dict[str, FileSides]:
    """Return the files that ours or theirs has changed since base, by path relative to the site's folder.

    Raises ConflictError if theirs contains a path that must not be written. Unless `whole_repository` is set,
    also raises ConflictError for special files, such as symbolic links, and LimitError if there are too many
    files.
    """
    our_changes, their_changes = (
        changed_files(root, sides.base, commit) for commit in (sides.ours, sides.theirs)
    )
    require_writable(root, sides.theirs, their_changes)
    if not whole_repository:
        if len(their_changes) > MAX_FILES:
            raise LimitError(f"The branch changes more than {MAX_FILES:,} files; {MERGE_HINT}", "files")
        for path, (before, after) in their_changes.items():
            _refuse_special(path, before, after)
    files = {}
    for path in {**their_changes, **our_changes}:
        base = (our_changes.get(path) or their_changes[path])[0]
        files[path] = FileSides(
            base, our_changes.get(path, (base, base))[1], their_changes.get(path, (base, base))[1]
        )
    return {path: file for path, file in files.items() if whole_repository or not path.startswith("../")}


def require_writable(
    root: Path, commit: str, changed: Mapping[str, tuple[GitFile | None, GitFile | None]]
) -> None:
    path, reason = find_forbidden_path(root, (path for path, (_, after) in changed.items() if after))
    if path:
        raise ConflictError(
            f"The commit {commit[:10]} contains the path {path!a}, which {reason}", {"files": [path]}
        )


def require_no_nesting(paths: Collection[str]) -> None:
    """Raise ConflictError if a path would be both a file and a folder after the merge."""
    for path in sorted(paths):
        for above in folders_above(path):
            if above in paths:
                description = (
                    f"{above} is a file on one side, but a folder that contains {path} on the other side"
                )
                raise ConflictError(f"{description}; move one of them first", {"files": [above, path]})


def is_plain(path: str, *versions: GitFile | None) -> bool:
    modes = {file.mode for file in versions if file}
    is_inside = not path.startswith("../") and path.split("/")[0] != STATE_FOLDER
    return is_inside and (modes == {"100644"} or (modes == {"100755"} and None not in versions))


def _refuse_special(path: str, before: GitFile | None, after: GitFile | None) -> None:
    """Raise ConflictError if a changed file can only be merged with git.

    This applies to files outside the site's folder or reserved for the server, symbolic links, submodules,
    and files whose executable bit changes.
    """
    modes = {file.mode for file in (before, after) if file}
    if path.startswith("../"):
        raise ConflictError(
            f"The branch changes {path.removeprefix('../')}, which is outside the site's folder; {MERGE_HINT}"
        )
    if path.split("/")[0] == STATE_FOLDER:
        raise ConflictError(f"The branch deletes {path}, which is reserved for the server; {MERGE_HINT}")
    if not modes <= set(_FILE_MODES):
        raise ConflictError(f"{path} is a symbolic link or a submodule; {MERGE_HINT}")
    if modes != {"100644"} and not (before and after and before.mode == after.mode):
        raise ConflictError(f"The branch changes whether {path} is executable; {MERGE_HINT}")


def read_files(root: Path, files: Iterable[GitFile | None]) -> Mapping[str, bytes]:
    ids = sorted({file.id for file in files if file})
    read = zip(ids, read_named(root, ids, MAX_FILE_BYTES), strict=True)
    return {id_: data for id_, data in read if data is not None}
