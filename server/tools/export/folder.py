"""The folder that an export goes to: what is ours in it, and files that are written whole or not at all.

Only what differs is written, only what an earlier manifest lists is overwritten or removed, and
nothing is written through a link. Nothing is synced: an export that was cut off is made again, and
every file is compared with what it should be.
"""

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from server.errors import SetupError
from server.tools.export.manifest import NAME, TOPS, Entry, Manifest, checked, read_manifest
from server.tools.export.requests import Response

_LONGEST = 255  # bytes of a file's name
_STAGE = ".quire-export-"  # how the folder of files that are being written begins


@dataclass(slots=True)
class Tally:
    """What an export came to: files that were written, left as they were, removed; bytes in all."""

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    size: int = 0


@contextmanager
def opened(root: Path, manifest: Manifest, *, force: bool) -> "Iterator[Folder]":
    """A folder to export into, made where it is missing, while nobody else exports into it.

    Raises SetupError where it holds anything that is not of an export, or of one for other eyes.
    """
    with _errors(root), _locked(root):
        earlier = _earlier(root, manifest, force=force)
        for left in root.glob(f"{_STAGE}*"):  # of an export that was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_STAGE, dir=root) as stage:
            yield Folder(root, Path(stage), manifest, earlier, force=force)


@contextmanager
def _errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = str(error.filename2 or error.filename or root)
        if _STAGE in path:  # nobody has to know of it
            path = str(root)
        what = f"can't be exported: {error.strerror}"
        raise SetupError(path, None, what, "fix it and export again") from error


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SetupError(str(root), None, "another export is at work there", "wait for it") from error
    try:
        yield
    finally:
        os.close(lock)


def _earlier(root: Path, manifest: Manifest, *, force: bool) -> Manifest:
    """The manifest of what is there. Raises SetupError where that forbids to export."""
    try:
        found = read_manifest(root)
    except SetupError:
        if not force:
            raise
        found = None
    nothing = Manifest("", "")
    if force:
        return found or nothing
    if found is None:
        if any(not name.startswith(_STAGE) for name in os.listdir(root)):
            what = f"is not empty and has no {NAME} of an earlier export"
            raise SetupError(str(root), None, what, "name an empty folder, or use --force")
        return nothing
    if found.files and (found.role, found.drafts) != (manifest.role, manifest.drafts):
        drafts = " with drafts" if found.drafts else ""
        what = f"holds an export of what {found.role} may see{drafts}"
        raise SetupError(str(root), None, what, "name another folder, or use --force")
    return found


class Folder:
    """An open target. `claim` the paths, `put` and `copy` the files, then `finish`."""

    def __init__(
        self, root: Path, stage: Path, manifest: Manifest, earlier: Manifest, *, force: bool
    ) -> None:
        self.root, self.manifest, self.force = root, manifest, force
        self.tally = Tally()
        self._stage = stage / "file"  # where a file is until it is whole, on the same file system
        self._owned = dict(earlier.files)
        self._files: dict[str, Entry] = {}
        self._sizes: dict[str, int] = {}
        self._folders: set[str] = {""}
        self._others: set[str] = set()
        for top in TOPS:
            self._look(top)

    def claim(self, paths: Iterable[str]) -> None:
        """Make some paths ours, in a manifest on disk, before anything is written to them.

        Raises SetupError, before anything is changed, where something is there that is not ours.
        """
        new = []
        for path in paths:
            self._check_way(path)
            if path not in self._owned:
                _check_name(path)
                new.append(path)
                if self._is_taken(path) and not self.force:
                    raise self._refuse(path)
        if new:
            self._owned.update(dict.fromkeys(new, Entry()))
            self._save(replace(self.manifest, files=self._owned))

    def put(self, answer: Response) -> None:
        """Have a file hold the bytes of an answer."""
        digest = hashlib.sha256(answer.body).hexdigest()
        self._enter(answer.path, Entry(answer.request, len(answer.body), digest))
        if self._sizes.get(answer.path) == len(answer.body) and self._read(answer.path) == answer.body:
            self.tally.unchanged += 1
            return
        self._stage.write_bytes(answer.body)
        self._place(answer.path)

    def copy(self, path: str, request: str, source: Path) -> None:
        """Have a file hold the bytes of another."""
        digest, size = _digest(source)
        if self._sizes.get(path) == size and _digest(self.root / path) == (digest, size):
            self.tally.unchanged += 1
        else:
            shutil.copyfile(source, self._stage)
            digest, size = _digest(self._stage)
            self._place(path)
        self._enter(path, Entry(request, size, digest))

    def remove_gone(self, paths: Iterable[str]) -> None:
        """Remove the files of earlier exports that are not among some paths, and folders left empty."""
        for path in sorted(self._owned.keys() - set(paths)):
            if path in self._sizes or path in self._others:
                (self.root / path).unlink(missing_ok=True)
                self._sizes.pop(path, None)
                self._others.discard(path)
                self.tally.removed += 1
                self._remove_empty(path.rpartition("/")[0])
            del self._owned[path]

    def finish(self) -> Tally:
        """Write the manifest, where it says anything new."""
        manifest = replace(self.manifest, files=self._files)
        if (self.root / NAME).is_symlink() or self._text() != manifest.text():
            self._save(manifest)
        return self.tally

    def _look(self, path: str) -> None:
        """Find what is at a path and below; links are not followed."""
        full = self.root / path
        if full.is_symlink() or (full.exists() and not full.is_dir()):
            self._others.add(path)
            return
        if not full.exists():
            return
        self._folders.add(path)
        with os.scandir(full) as entries:
            for entry in entries:
                inside = f"{path}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    self._look(inside)
                elif entry.is_file(follow_symlinks=False):
                    self._sizes[inside] = entry.stat(follow_symlinks=False).st_size
                else:
                    self._others.add(inside)

    def _check_way(self, path: str) -> None:
        """Refuse a path that leads through a link, or through a file that is not ours."""
        above = path.rpartition("/")[0]
        while above:
            if above in self._folders:
                return
            if above in self._others:
                raise SetupError(str(self.root / above), None, "is no folder of its own", "remove it")
            if above in self._sizes and above not in self._owned and not self.force:
                raise self._refuse(above)
            above = above.rpartition("/")[0]

    def _is_taken(self, path: str) -> bool:
        """Whether something that is not ours is at a path, be it in a folder there."""
        if path in self._folders:
            below = (p for p in (*self._sizes, *self._others) if p.startswith(f"{path}/"))
            return any(inside not in self._owned for inside in below)
        return path in self._sizes or path in self._others

    def _refuse(self, path: str) -> SetupError:
        what = "is there and is not of an export"
        return SetupError(str(self.root / path), None, what, "remove it, or use --force")

    def _enter(self, path: str, entry: Entry) -> None:
        self._files[path] = entry
        self.tally.size += entry.size

    def _read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except OSError:
            return None

    def _place(self, path: str) -> None:
        self._make_folder(path.rpartition("/")[0])
        os.replace(self._stage, self.root / path)
        self._sizes[path] = -1
        self.tally.written += 1

    def _make_folder(self, path: str) -> None:
        if path not in self._folders:
            self._make_folder(path.rpartition("/")[0])
            if path in self._sizes:  # a file that is in the way, ours or to be overwritten
                (self.root / path).unlink()
                del self._sizes[path]
            (self.root / path).mkdir()
            self._folders.add(path)

    def _remove_empty(self, path: str) -> None:
        while path:
            try:
                (self.root / path).rmdir()
            except OSError:
                return
            self._folders.discard(path)
            path = path.rpartition("/")[0]

    def _text(self) -> str | None:
        found = self._read(NAME)
        return None if found is None else found.decode(errors="replace")

    def _save(self, manifest: Manifest) -> None:
        self._stage.write_text(manifest.text(), encoding="utf-8")
        os.replace(self._stage, self.root / NAME)


def _digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _check_name(path: str) -> None:
    """Refuse what no file can be called."""
    try:
        checked(path)
        longest = max(len(part.encode()) for part in path.split("/"))
        if longest > _LONGEST:
            raise ValueError(f"{longest} bytes are more than the {_LONGEST} of a file's name")
    except ValueError as error:
        what = f"can't be the name of a file: {error}"
        raise SetupError(repr(path), None, what, "give the document another documentId") from error
