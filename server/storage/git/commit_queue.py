"""The writes that wait to be committed, in .bifolio/commits/: they outlast whatever becomes of the server.

A write is staged before its files are put in place and kept once they are, both under the site's write lock.
So one that is staged when somebody else has that lock is of a writer that was killed; what it has written is
told by the files. What is kept has the contents that were written: the files may change before the commit.
"""

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.errors import ApiError
from server.storage.durable import back_up, stage, sync_folder
from server.storage.file_lock import FileLock
from server.storage.git.checkout import check_out, finish_checkout
from server.storage.git.commit import is_on_disk

_STAGED_SUFFIX, _QUEUED_SUFFIX, _DONE_SUFFIX = ".staged", ".kept", ".done"
RESULT_TTL_S = 60.0  # How long the result of a write is kept for the requests that wait for it.


@dataclass(frozen=True, slots=True)
class Pending:
    """A write that is to be committed; `at` is in seconds since 1970, all else as in `commit.NewCommit`.

    `asked`: somebody has asked for a commit of files as they are, and is told whether there is one. `beside`
    are files that are checked out with the write as `ready` has them, since the journal can't write them.
    """

    name: str
    author: str
    email: str
    actor: str
    message: str
    documents: tuple[str, ...]
    at: float
    base: str
    files: Mapping[str, bytes | Path | None]
    joins: str = ""
    ready: str = ""
    asked: bool = False
    exact: bool = False
    beside: Sequence[str] = ()

    @property
    def alone(self) -> bool:
        """Whether it is a commit by itself, and at once: a merge, or one that was asked for."""
        return self.asked or bool(self.joins)


class CommitQueue:
    """The queue of the site whose .bifolio/ is `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "commits"
        self._known: dict[str, Pending] = {}
        self._alone: int | None = None  # the thread of this process that commits

    # --- under the site's write lock -------------------------------------------------------------------

    def stage(self, about: Mapping[str, Any], files: Mapping[str, bytes | Path | None]) -> str:
        """Note a write that is about to be made; returns the name that it has here. Raises OSError.

        `about` has what `Pending` has beside its name and its files. The name is greater than all that there
        are, whichever process has given them, and also where the clock was set back.
        """
        self.folder.mkdir(mode=0o700, exist_ok=True)
        name = f"{max(time.time_ns(), self._last_number() + 1):020d}"
        kept: dict[str, Any] = {}
        for number, (path, content) in enumerate(files.items()):
            if isinstance(content, Path):
                beside = f"{name}.{number}"
                back_up(content, self.folder / beside)
                kept[path] = {"file": beside}
            else:
                kept[path] = None if content is None else {"text": content.decode(errors="surrogateescape")}
        data = json.dumps({**about, "files": kept}).encode()
        stage(data, self.folder / (name + _STAGED_SUFFIX), 0o600)
        return name

    @contextmanager
    def making(self, root: Path, name: str, about: Mapping[str, Any]) -> Iterator[None]:
        """Make a staged write in the block, having checked out what is `beside` it; drop it where that fails.

        Raises CommitError and OSError.
        """
        beside = about.get("beside", ())
        try:
            check_out(root, about["ready"], beside)
            yield
        except BaseException:
            check_out(root, about["base"], beside)
            self.drop(name)
            raise

    def keep(self, name: str) -> None:
        """The write was made. Raises OSError."""
        (self.folder / (name + _STAGED_SUFFIX)).rename(self.folder / (name + _QUEUED_SUFFIX))
        sync_folder(self.folder)

    def drop(self, name: str) -> None:
        """Forget a write: it was not made, or is committed."""
        self._known.pop(name, None)
        for path in self.folder.glob(f"{name}.*"):
            if path.suffix != _DONE_SUFFIX:
                path.unlink(missing_ok=True)

    def settle(self, root: Path) -> bool:
        """Keep those of the writes of killed writers that were made, and drop the others.

        Whether files were changed by that: those `beside` a write go with the ones that the journal wrote.
        """
        changed = False
        for name in self._names(_STAGED_SUFFIX):
            pending = self._read(name, _STAGED_SUFFIX)
            files = pending.files if pending else {}
            made = [is_on_disk(root / path, content) for path, content in files.items()]
            if pending and pending.beside:
                with suppress(ApiError, OSError):  # They stay as they are; the next take-over has them.
                    back = bool(made) and not any(made)
                    changed |= finish_checkout(root, pending.beside, pending.base, pending.ready, back=back)
            if pending and all(made):
                self.keep(name)
            else:
                self.drop(name)
        return changed

    # --- for who commits -------------------------------------------------------------------------------

    @contextmanager
    def committing(self, seconds: float) -> Iterator[bool]:
        """Be the only one that commits, if that is possible within some seconds; whether it is.

        A thread that is may say so again.
        """
        if self._alone == threading.get_ident():
            yield True
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        with FileLock(self.folder / "lock").held(seconds) as alone:
            if alone:
                self._alone = threading.get_ident()
            try:
                yield alone
            finally:
                if alone:
                    self._alone = None

    def pending(self) -> list[Pending]:
        """The writes that are to be committed, in their order."""
        names = self._names(_QUEUED_SUFFIX)
        known = self._known  # Another thread may ask at the same time: none changes what one looks through.
        found = ((name, known.get(name) or self._read(name, _QUEUED_SUFFIX)) for name in names)
        self._known = {name: pending for name, pending in found if pending}
        return list(self._known.values())

    @property
    def waiting(self) -> int:
        """How many writes are to be committed."""
        return len(self._names(_QUEUED_SUFFIX))

    @property
    def is_unsettled(self) -> bool:
        """Whether there is a write that is being made, or was by a process that was killed."""
        return bool(self._names(_STAGED_SUFFIX))

    def is_pending(self, name: str) -> bool:
        """Whether a write is still to be committed."""
        return (self.folder / (name + _QUEUED_SUFFIX)).exists()

    def finish(self, name: str, commit: str) -> None:
        """A write is in a commit, "" where there was nothing to commit."""
        with suppress(OSError):
            (self.folder / (name + _DONE_SUFFIX)).write_text(commit)
        self.drop(name)

    def commit_of(self, name: str) -> str:
        """The commit that a finished write is in; "" where there is none."""
        path = self.folder / (name + _DONE_SUFFIX)
        try:
            commit = path.read_text()
            path.unlink()
        except OSError:
            return ""
        return commit

    def sweep(self) -> None:
        """Forget what became of writes that nobody has asked for."""
        for name in self._names(_DONE_SUFFIX):
            path = self.folder / (name + _DONE_SUFFIX)
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - RESULT_TTL_S:
                    path.unlink()

    def _last_number(self) -> int:
        """The greatest number that a write here has as its name; 0 if there is none."""
        numbers = {name.partition(".")[0] for name in os.listdir(self.folder)}
        return max((int(number) for number in numbers if number.isdigit()), default=0)

    def _names(self, suffix: str) -> list[str]:
        try:
            found = os.listdir(self.folder)
        except OSError:
            return []
        return sorted(name.removesuffix(suffix) for name in found if name.endswith(suffix))

    def _read(self, name: str, suffix: str) -> Pending | None:
        """A write as it was noted; None where that is not all there any more."""
        try:
            found = json.loads((self.folder / (name + suffix)).read_bytes())
            files = {path: self._content(kept) for path, kept in found.pop("files").items()}
            return Pending(name, files=files, **{**found, "documents": tuple(found["documents"])})
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            return None

    def _content(self, kept: Mapping[str, str] | None) -> bytes | Path | None:
        if kept is None:
            return None
        if "file" in kept:
            return self.folder / kept["file"]
        return kept["text"].encode(errors="surrogateescape")
