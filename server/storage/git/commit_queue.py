"""Queue of writes that are not committed yet."""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from server.errors import ApiError, StorageError
from server.storage.durable import back_up, stage, sync_folder
from server.storage.file_lock import FileLock
from server.storage.files import storage_error
from server.storage.git.checkout import check_out, finish_checkout
from server.storage.git.own_commits import OwnCommits
from server.storage.git.written import is_on_disk
from server.storage.replaced import move_to_unsaved

_LOCK_FILE = "lock"
_NAME_CHARS = 20
_STAGED_SUFFIX, _QUEUED_SUFFIX, _DONE_SUFFIX, _ASIDE_SUFFIX = ".staged", ".kept", ".done", ".aside"
RESULT_TTL_S = 60.0  # How long a commit id is stored for the request that waits for it.


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write that has not been committed yet.

    `base`, `joins`, `ready` and `exact` mean the same as in NewCommit.
    """

    name: str
    author: str
    email: str
    actor: str
    message: str
    documents: tuple[str, ...]
    at: float  # in seconds since 1970
    base: str
    files: Mapping[str, bytes | Path | None]
    joins: str = ""
    ready: str = ""
    asked: bool = False  # A request asked to commit changes that already existed.
    exact: bool = False
    beside: Sequence[str] = ()  # files to check out from `ready`, because the journal can't write them
    replaced: Mapping[str, str] = field(default_factory=dict)  # digests of replaced versions

    @property
    def alone(self) -> bool:
        """True if this write gets its own commit."""
        return self.asked or bool(self.joins)


class CommitQueue:
    """Queue of a site's uncommitted writes.

    A write is staged before its files change, and is moved to the queue afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "commits"
        self.own_commits = OwnCommits(self.folder)
        self._known: dict[str, PendingWrite] = {}
        self._committer: int | None = None  # the id of the committing thread

    # --- under the site's write lock -------------------------------------------------------------------

    def stage(self, fields: Mapping[str, Any], files: Mapping[str, bytes | Path | None]) -> str:
        """Store a write before its files change, and return the name under which it is stored.

        Raises StorageError if this fails.
        """
        try:
            return self._stage(fields, files)
        except OSError as error:
            raise self._storage_error(error) from error

    def _stage(self, fields: Mapping[str, Any], files: Mapping[str, bytes | Path | None]) -> str:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        name = self._next_name()
        kept: dict[str, Any] = {}
        for number, (path, content) in enumerate(files.items()):
            if isinstance(content, Path):
                beside = f"{name}.{number}"
                back_up(content, self.folder / beside)
                kept[path] = {"file": beside}
            else:
                kept[path] = None if content is None else {"text": content.decode(errors="surrogateescape")}
        data = json.dumps({**fields, "files": kept}).encode()
        stage(data, self.folder / (name + _STAGED_SUFFIX), 0o600)
        return name

    @contextmanager
    def applying(self, root: Path, name: str, fields: Mapping[str, Any]) -> Iterator[None]:
        """Context manager around a block that applies a staged write.

        First check out the files in `beside`, which the journal can't write. If the block fails, restore
        these files and drop the write.
        """
        beside = fields.get("beside", ())
        try:
            check_out(root, fields["ready"], beside)
            yield
        except BaseException:
            check_out(root, fields["base"], beside)
            self.drop(name)
            raise

    def enqueue(self, name: str) -> None:
        """Move a staged write to the queue. Raises OSError."""
        (self.folder / (name + _STAGED_SUFFIX)).rename(self.folder / (name + _QUEUED_SUFFIX))
        sync_folder(self.folder)

    def drop(self, name: str) -> None:
        self._known.pop(name, None)
        for path in self.folder.glob(f"{name}.*"):
            if path.suffix != _DONE_SUFFIX:
                path.unlink(missing_ok=True)

    def recover(self, root: Path) -> bool:
        """Queue each staged write of a killed process if its files were written, and otherwise drop it.

        Return True if this changed files.
        """
        changed = False
        # A writer holds the write lock until it has finished. This process holds it now, so the processes
        # that staged these writes were killed.
        for name in self._names(_STAGED_SUFFIX):
            pending = self._read(name, _STAGED_SUFFIX)
            files = pending.files if pending else {}
            made = [is_on_disk(root / path, content) for path, content in files.items()]
            if pending and pending.beside:
                # On failure, these files are left as they are.
                with suppress(ApiError, OSError):
                    revert = bool(made) and not any(made)
                    changed |= finish_checkout(
                        root, pending.beside, pending.base, pending.ready, revert=revert
                    )
            if pending and all(made):
                self.enqueue(name)
            else:
                self.drop(name)
        return changed

    # --- for the committing thread ---------------------------------------------------------------------

    @contextmanager
    def committing(self, timeout_s: float) -> Iterator[bool]:
        """Hold the lock for committing. The thread that holds it may call this again.

        Yields False if another thread or process still holds the lock after `timeout_s` seconds.
        """
        if self._committer == threading.get_ident():
            yield True
            return
        lock = FileLock(self.folder / _LOCK_FILE)
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            alone = lock.acquire(timeout_s)
        except OSError as error:
            raise self._storage_error(error) from error
        try:
            if alone:
                self._committer = threading.get_ident()
            yield alone
        finally:
            if alone:
                self._committer = None
            lock.release()

    def _storage_error(self, error: OSError) -> StorageError:
        return storage_error("The commit can't be queued", error, self.folder.parent.parent)

    def pending(self) -> list[PendingWrite]:
        names = self._names(_QUEUED_SUFFIX)
        # The mapping is replaced, never modified, because another thread may be reading it.
        cached = self._known
        entries = ((name, cached.get(name) or self._read(name, _QUEUED_SUFFIX)) for name in names)
        self._known = {name: pending for name, pending in entries if pending}
        return list(self._known.values())

    @property
    def waiting(self) -> int:
        return len(self._names(_QUEUED_SUFFIX))

    @property
    def has_staged_writes(self) -> bool:
        return bool(self._names(_STAGED_SUFFIX))

    def is_pending(self, name: str) -> bool:
        return (self.folder / (name + _QUEUED_SUFFIX)).exists()

    def finish(self, name: str, commit: str) -> None:
        """Remove a write from the queue, and store the id of its commit, or "" if it has no commit."""
        with suppress(OSError):
            (self.folder / (name + _DONE_SUFFIX)).write_text(commit)
        self.drop(name)

    def move_to_unsaved(self, write: PendingWrite, path: str) -> Path:
        """Save a write's version of the file `path` in .bifolio/unsaved/, and return the new path.

        Raises OSError.
        """
        content, copy = write.files[path], self.folder / (write.name + _ASIDE_SUFFIX)
        assert content is not None
        copy.unlink(missing_ok=True)  # A killed process may have left this file.
        if isinstance(content, Path):
            back_up(content, copy)
        else:
            stage(content, copy, 0o600)
        return move_to_unsaved(self.folder.parent, copy, path)

    def take_commit_id(self, name: str) -> str:
        """Return and delete the stored commit id of a finished write. Return "" if no id is stored."""
        path = self.folder / (name + _DONE_SUFFIX)
        try:
            commit = path.read_text()
            path.unlink()
        except OSError:
            return ""
        return commit

    def sweep(self) -> None:
        self.own_commits.sweep(lambda: (*self._names(_STAGED_SUFFIX), *self._names(_QUEUED_SUFFIX)))
        for name in self._names(_DONE_SUFFIX):
            path = self.folder / (name + _DONE_SUFFIX)
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - RESULT_TTL_S:
                    path.unlink()

    def _next_name(self) -> str:
        # Other processes cache writes by name, so names must stay unique even if the clock is set back.
        numbers = {name.partition(".")[0] for name in os.listdir(self.folder)}
        last = max((int(number) for number in numbers if number.isdigit()), default=0)
        descriptor = os.open(self.folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            stored = os.pread(descriptor, _NAME_CHARS, 0)
            last = max(last, int(stored) if stored.isdigit() else 0)
            name = f"{max(time.time_ns(), last + 1):0{_NAME_CHARS}d}"
            os.pwrite(descriptor, name.encode(), 0)
        finally:
            os.close(descriptor)
        return name

    def _names(self, suffix: str) -> list[str]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        return sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))

    def _read(self, name: str, suffix: str) -> PendingWrite | None:
        try:
            data = json.loads((self.folder / (name + suffix)).read_bytes())
            files = {path: self._content(kept) for path, kept in data.pop("files").items()}
            return PendingWrite(name, files=files, **{**data, "documents": tuple(data["documents"])})
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            return None

    def _content(self, kept: Mapping[str, str] | None) -> bytes | Path | None:
        if kept is None:
            return None
        if "file" in kept:
            return self.folder / kept["file"]
        return kept["text"].encode(errors="surrogateescape")
