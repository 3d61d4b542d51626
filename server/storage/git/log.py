"""Commit log with changed files, cached on disk."""

import json
import math
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from pathlib import Path

from server.errors import GitError
from server.paths import cache_folder
from server.storage.file_lock import FileLock
from server.storage.git.command import git_or_fail
from server.storage.git.repository import location, prefix_of

_FORMAT = "%x01%H%x1f%P%x1f%at%x1f%ct%x1f%an%x1f%ae%x1f%B"
_VERSION = 4
_MIN_TIME_S, _MAX_TIME_S = -62135596800, 253402300799  # the years 1 to 9999, the range of a timestamp
FILE = "commits.jsonl"
MAX_RENAMED_FILES = 1000  # Limit on the files that git compares per commit to detect renames.
CERTAIN_RENAME_PERCENT = 80  # A rename with at least this similarity is considered certain.
MAX_MESSAGE_CHARS = 10_000  # Longer messages are truncated.


@dataclass(frozen=True, slots=True)
class FileChange:
    """Change to one file, in a commit or in the working tree."""

    status: str  # a letter as in git: A, M, D, R (renamed from `before`), C or T
    path: str
    before: str = ""
    similarity_percent: int = 100  # similarity of a renamed file in percent


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit with its changes to the site's files. If there are none, author and message are empty."""

    id: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored: int  # in seconds since 1970
    committed: int
    message: str
    changes: tuple[FileChange, ...] = ()


class CommitLog:
    """Cache of commits. It is stored in a file in `folder`, or only in memory if `folder` is None."""

    def __init__(self, root: Path, folder: Path | None) -> None:
        self.root, self.file = root, folder / FILE if folder else None
        self.commits: dict[str, Commit] = {}
        self._shallow: str | None = None
        self._position = 0  # The cache file has been read up to this position.

    def update(self, commit: str) -> None:
        """Add a commit and its ancestors to the cache. Raises GitError if git can't read them."""
        shallow = _shallow_commits(self.root)
        if commit in self.commits and shallow == self._shallow:
            return
        if self.file is None:
            self._read_from_git(commit, shallow)
            return
        try:
            cache_folder(self.root)  # Create the folder again if it was deleted.
            lock = FileLock(self.file)
            with lock.held(math.inf):  # Other processes may be adding the same commits.
                self._read_from_file(lock.descriptor, shallow)
                if commit not in self.commits:
                    added = self._read_from_git(commit, shallow)
                    self._append(lock.descriptor, added)
        except OSError:
            self._read_from_git(commit, shallow)

    def history_of(self, commit: str, excluded: Iterable[str] = ()) -> Iterator[Commit]:
        """Yield a commit and its ancestors, newest first, with every commit before its parents.

        The `excluded` commits and their ancestors are left out.
        """
        waiting = self._children(commit, stop := frozenset(excluded))
        ready: list[tuple[int, int, str]] = []
        if commit in self.commits and commit not in stop:
            heappush(ready, (-self.commits[commit].committed, 0, commit))
        count = 0
        while ready:
            one = self.commits[heappop(ready)[2]]
            yield one
            for parent in one.parents:
                if parent in waiting:
                    waiting[parent] -= 1
                    if not waiting[parent]:
                        count += 1
                        heappush(ready, (-self.commits[parent].committed, count, parent))

    def main_line(self, commit: str) -> Iterator[Commit]:
        one = self.commits.get(commit)
        while one is not None:
            yield one
            one = self.commits.get(one.parents[0]) if one.parents else None

    def _children(self, commit: str, stop: frozenset[str]) -> dict[str, int]:
        children: dict[str, int] = {}
        seen, waiting = {commit}, [commit]
        while waiting:
            one = self.commits.get(waiting.pop())
            for parent in one.parents if one else ():
                if parent in stop or parent not in self.commits:
                    continue
                children[parent] = children.get(parent, 0) + 1
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return children

    def _read_from_git(self, commit: str, shallow: str) -> list[Commit]:
        if shallow != self._shallow:
            self.commits, self._shallow = {}, shallow
        parents = {parent for one in self.commits.values() for parent in one.parents}
        excluded = [f"^{one}" for one in self.commits if one not in parents]
        try:
            added = read_commits(self.root, [commit, *excluded])
        except GitError:
            if not excluded:
                raise
            # History was rewritten, so one of the excluded commits no longer exists.
            added = [one for one in read_commits(self.root, [commit]) if one.id not in self.commits]
        self.commits.update((one.id, one) for one in added)
        return added

    def _read_from_file(self, descriptor: int, shallow: str) -> None:
        """Load the commits that other processes have added to the file.

        If the file is damaged or outdated, empty it.
        """
        size = os.fstat(descriptor).st_size
        if size < self._position:
            self._position = 0
        data = os.pread(descriptor, size - self._position, self._position) if size > self._position else b""
        lines = data.split(b"\n")
        try:
            if self._position == 0:
                header = json.loads(lines.pop(0))
                if header != {"version": _VERSION, "shallow": shallow}:
                    raise ValueError("of another version or history")
                self._shallow = shallow
            rows = json.loads(b"[" + b",".join(line for line in lines if line) + b"]")
            self.commits.update((one.id, one) for one in map(_commit_of, rows))
            self._position = size
        except (ValueError, TypeError, IndexError, KeyError, AttributeError):
            # The file is new, damaged or outdated.
            os.ftruncate(descriptor, 0)
            self.commits, self._shallow, self._position = {}, shallow, 0
            header = {"version": _VERSION, "shallow": shallow}
            self._position = os.write(descriptor, json.dumps(header).encode() + b"\n")

    def _append(self, descriptor: int, added: Iterable[Commit]) -> None:
        data = b"".join(json.dumps(_row_of(one)).encode() + b"\n" for one in added)
        os.lseek(descriptor, 0, os.SEEK_END)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        self._position += len(data)


def read_commits(root: Path, revisions: Iterable[str], limit: int | None = None) -> list[Commit]:
    """Return the newest `limit` commits that revisions such as `main` and `^main` select.

    For a merge commit, only files that differ from their version in every parent are listed. Raises GitError.
    """
    return _read(root, revisions, "-c", *([] if limit is None else [f"-n{limit}"]))


def read_merges(root: Path, ids: Collection[str]) -> list[Commit]:
    """Return merge commits with all their changes relative to the first parent.

    Raises GitError if git fails.
    """
    return _read(root, ids, "--no-walk=unsorted", "--first-parent", "-m") if ids else []


def _read(root: Path, revisions: Iterable[str], *options: str) -> list[Commit]:
    command = ("log", *options, "-M", f"-l{MAX_RENAMED_FILES}", "-z", "--no-show-signature", "--name-status")
    stdin = "\n".join([*revisions, ""])
    output = git_or_fail(root, *command, f"--format={_FORMAT}", "--stdin", stdin=stdin)
    # Remove the prefix, because `--relative` has no effect on the files listed for merges.
    return list(_parse(output, prefix_of(root)))


def _shallow_commits(root: Path) -> str:
    place = location(root)
    try:
        return (place.common / "shallow").read_text() if place else ""
    except OSError:
        return ""


def _parse(output: str, prefix: str) -> Iterator[Commit]:
    # For each commit: a header, then a status and one or two paths for each changed file.
    tokens = iter(output.split("\0"))
    head: list[str] = []
    changes: list[FileChange] = []
    for token in tokens:
        word = token.lstrip("\n")
        if word.startswith("\x01"):
            if head:
                yield _commit(head, changes)
            head, changes = word[1:].split("\x1f", 6), []
        elif word and head:
            first = next(tokens, "")
            if word[0] in "RC" and word[1:].isdigit():
                change = FileChange(word[0], next(tokens, ""), first, int(word[1:]))
            else:  # For a merge, git prints one status per parent and omits old names.
                change = FileChange(word if word in "AMDT" else "M", first)
            changes.extend(_restrict_to_folder(change, prefix))
    if head:
        yield _commit(head, changes)


def _restrict_to_folder(change: FileChange, prefix: str) -> Iterator[FileChange]:
    """Yield the change, with paths relative to the folder `prefix`, if it affects a file in this folder.

    Moving a file into the folder counts as adding it, and moving it out as deleting it.
    """
    if not prefix:  # The site is the whole repository.
        yield change
        return
    path, before = (name.removeprefix(prefix) for name in (change.path, change.before))
    is_inside, was_inside = change.path.startswith(prefix), change.before.startswith(prefix)
    if is_inside and (was_inside or not change.before):
        yield replace(change, path=path, before=before)
    elif is_inside:
        yield FileChange("A", path)
    elif was_inside and change.before and change.status == "R":
        yield FileChange("D", before)


def _commit(head: list[str], changes: list[FileChange]) -> Commit:
    id_, parents, authored, committed, author, email, message = map(_readable, head)
    if not changes:
        author = email = message = ""
    message = message.strip("\n")[:MAX_MESSAGE_CHARS]
    times = _time(authored), _time(committed)
    return Commit(id_, tuple(parents.split()), author, email, *times, message, tuple(changes))


def _time(text: str) -> int:
    return min(max(int(text or 0), _MIN_TIME_S), _MAX_TIME_S)


def _readable(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _row_of(commit: Commit) -> list[object]:
    changes = [
        [c.status, c.path, c.before, c.similarity_percent] if c.before else [c.status, c.path]
        for c in commit.changes
    ]
    header = [commit.author, commit.email, commit.authored, commit.committed]
    return [commit.id, " ".join(commit.parents), *header, commit.message, changes]


def _commit_of(row: list[object]) -> Commit:
    id_, parents, author, email, authored, committed, message, changes = row
    assert isinstance(changes, list)
    changed_files = tuple(FileChange(*change) for change in changes)
    return Commit(
        str(id_),
        tuple(str(parents).split()),
        str(author),
        str(email),
        int(str(authored)),
        int(str(committed)),
        str(message),
        changed_files,
    )
