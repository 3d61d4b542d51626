"""Writes the files of an export into its folder, each whole or not at all.

Only files that differ are written. Only files that an earlier manifest lists are overwritten or
removed, and nothing is written through a link. Nothing is synced: after an interrupted export, the
next one compares every file again.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from io import BufferedRandom, BufferedReader
from pathlib import Path

from server.errors import SetupError
from server.tools.export.manifest import NAME, TOPS, ExportedFile, Manifest, checked
from server.tools.export.requests import Response

_LONGEST = 255  # bytes of a file's name


@dataclass(slots=True)
class Tally:
    """The number of files written, unchanged and removed, and the bytes of all."""

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    size: int = 0


class Folder:
    """An open folder. `claim` the paths, `put` and `copy` the files, then `finish`."""

    def __init__(
        self, root: Path, stage: Path, manifest: Manifest, earlier: Manifest, *, force: bool
    ) -> None:
        self.root, self.manifest, self.force = root, manifest, force
        self.tally = Tally()
        self._stage = stage / "file"  # A file is written here, on the same file system, until it is whole.
        self._owned = dict(earlier.files)
        self._files: dict[str, ExportedFile] = {}
        self._sizes: dict[str, int] = {}
        self._folders: set[str] = {""}
        self._others: set[str] = set()
        for top in TOPS:
            self._scan(top)

    def claim(self, paths: Iterable[str]) -> None:
        """Enter some paths into the manifest on disk, before anything is written to them.

        Raises SetupError, before anything is changed, if another file is at one of them.
        """
        new = []
        for path in paths:
            self._check_path(path)
            if path not in self._owned:
                _check_name(path)
                new.append(path)
                if self._is_taken(path) and not self.force:
                    raise self._refuse(path)
        if new:
            self._owned.update(dict.fromkeys(new, ExportedFile()))
            self._save(replace(self.manifest, files=self._owned))

    def put(self, response: Response) -> None:
        """Write a response to its file, unless the file holds it already."""
        digest = hashlib.sha256(response.body).hexdigest()
        self._list(response.path, ExportedFile(response.request, len(response.body), digest))
        if (
            self._sizes.get(response.path) == len(response.body)
            and self._read(response.path) == response.body
        ):
            self.tally.unchanged += 1
            return
        self._stage.write_bytes(response.body)
        self._move_into_place(response.path)

    def copy(self, path: str, request: str, source: BufferedReader) -> None:
        """Copy an opened file, unless the copy is there already."""
        digest, size = _digest(source)
        if self._sizes.get(path) == size and self._copied(path) == (digest, size):
            self.tally.unchanged += 1
        else:
            source.seek(0)
            with self._stage.open("w+b") as stage:
                shutil.copyfileobj(source, stage)
                stage.seek(0)
                digest, size = _digest(stage)
            self._move_into_place(path)
        self._list(path, ExportedFile(request, size, digest))

    def _copied(self, path: str) -> tuple[str, int]:
        with (self.root / path).open("rb") as file:
            return _digest(file)

    def remove_gone(self, paths: Iterable[str]) -> None:
        """Remove the files of earlier exports that are not among some paths, and folders that get empty."""
        for path in sorted(self._owned.keys() - set(paths)):
            if path in self._sizes or path in self._others:
                (self.root / path).unlink(missing_ok=True)
                self._sizes.pop(path, None)
                self._others.discard(path)
                self.tally.removed += 1
                self._remove_empty(path.rpartition("/")[0])
            del self._owned[path]

    def finish(self) -> Tally:
        """Write the manifest if it has changed."""
        manifest = replace(self.manifest, files=self._files)
        if (self.root / NAME).is_symlink() or self._text() != manifest.text():
            self._save(manifest)
        return self.tally

    def _scan(self, path: str) -> None:
        """Find the files and folders at a path and below it, without following links."""
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
                    self._scan(inside)
                elif entry.is_file(follow_symlinks=False):
                    self._sizes[inside] = entry.stat(follow_symlinks=False).st_size
                else:
                    self._others.add(inside)

    def _check_path(self, path: str) -> None:
        """Refuse a path that leads through a link, or through a file that is not of an export."""
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
        """Whether a file that is not of an export is at a path, or in a folder there."""
        if path in self._folders:
            below = (p for p in (*self._sizes, *self._others) if p.startswith(f"{path}/"))
            return any(inside not in self._owned for inside in below)
        return path in self._sizes or path in self._others

    def _refuse(self, path: str) -> SetupError:
        what = "is there and is not of an export"
        return SetupError(str(self.root / path), None, what, "remove it, or use --force")

    def _list(self, path: str, entry: ExportedFile) -> None:
        self._files[path] = entry
        self.tally.size += entry.size

    def _read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except OSError:
            return None

    def _move_into_place(self, path: str) -> None:
        self._make_folder(path.rpartition("/")[0])
        os.replace(self._stage, self.root / path)
        self._sizes[path] = -1
        self.tally.written += 1

    def _make_folder(self, path: str) -> None:
        if path not in self._folders:
            self._make_folder(path.rpartition("/")[0])
            if path in self._sizes:  # A file is in the way that may be removed.
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


def _digest(file: BufferedReader | BufferedRandom) -> tuple[str, int]:
    return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _check_name(path: str) -> None:
    """Refuse a path that no file can have."""
    try:
        checked(path)
        longest = max(len(part.encode()) for part in path.split("/"))
        if longest > _LONGEST:
            raise ValueError(f"{longest} bytes are more than the {_LONGEST} of a file's name")
    except ValueError as error:
        what = f"can't be the name of a file: {error}"
        raise SetupError(repr(path), None, what, "give the document another documentId") from error
