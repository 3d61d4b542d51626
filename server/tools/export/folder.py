"""The export folder.

An export changes only files that are listed in its manifest, and follows no symbolic links.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedRandom, BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any

from server.config.public_site import REDIRECT_FILES
from server.errors import SetupError
from server.paths import CONTENT, STATE_FOLDER, TYPES
from server.site.site import Site
from server.storage.file_lock import FileLock
from server.tools.export.response import Response

# --- manifest -------------------------------------------------------------------------------------

NAME = "bifolio-export.json"
# folders directly inside an export
TOP_FOLDERS = ("api", "feeds", "locale", "queries", "uploads")
# the only files directly inside an export
TOP_FILE = re.compile(
    "|".join([r"sitemap(-[1-9][0-9]{0,4})?\.xml", r"llms\.txt", *map(re.escape, REDIRECT_FILES.values())])
)
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """An exported file. `sha256` is the hash of its content, or "" until the file has been written."""

    request: str = ""
    size: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of an export (by path), and the options with which they were exported.

    `commit` is the exported commit, or "" if the current state of the site was exported.
    """

    site: str
    role: str
    drafts: bool = False
    base_url: str = ""
    files: Mapping[str, ExportedFile] = field(default_factory=dict)
    commit: str = ""

    def to_json(self) -> str:
        head = {
            "bifolioExport": _VERSION,
            "site": self.site,
            "role": self.role,
            "drafts": self.drafts,
            "baseUrl": self.base_url,
            **({"commit": self.commit} if self.commit else {}),
        }
        lines = [
            f"{json.dumps(path, ensure_ascii=False)}: {_file_line(entry)}"
            for path, entry in sorted(self.files.items())
        ]
        start = json.dumps(head, ensure_ascii=False, indent=0)[:-2]
        return f'{start},\n"files": {{\n' + ",\n".join(lines) + "\n}}\n"


def _file_line(entry: ExportedFile) -> str:
    shown = {"request": entry.request, "bytes": entry.size, "sha256": entry.sha256}
    return json.dumps(shown, ensure_ascii=False)


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of an export folder, or None if the folder does not contain one.

    Raises SetupError if the manifest is invalid.
    """
    path = folder / NAME
    try:
        if path.is_symlink():
            raise ValueError("it is a symbolic link")
        data = json.loads(path.read_bytes())
        if data["bifolioExport"] != _VERSION:
            raise ValueError("it has a different version")
        files = {check_path(name): _read_file(entry) for name, entry in data["files"].items()}
        head = (str(data["site"]), str(data["role"]), bool(data["drafts"]), str(data["baseUrl"]))
        return Manifest(*head, files)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(
            str(path), None, f"can't be read: {error.strerror}", "check the file and its permissions"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"is not an export manifest that this version of Bifolio can read: {error}"
        raise SetupError(str(path), None, what, "export into a different folder, or use --force") from error


def _read_file(entry: Any) -> ExportedFile:
    return ExportedFile(str(entry["request"]), int(entry["bytes"]), str(entry["sha256"]))


def check_path(path: str) -> str:
    """Return `path` unchanged. Raises ValueError if an export must not contain a file with this path."""
    parts = path.split("/")
    is_inside = len(parts) > 1 and parts[0] in TOP_FOLDERS
    if not (is_inside or TOP_FILE.fullmatch(path)) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f'the path "{path}" is not allowed')
    if "\0" in path or str(PurePosixPath(path)) != path:
        raise ValueError(f'the path "{path}" is not allowed')
    path.encode()
    return path


# --- folder ---------------------------------------------------------------------------------------

_MAX_NAME_BYTES = 255


@dataclass(slots=True)
class FileCounts:
    """Numbers of written, unchanged and removed files, and the total size of the exported files in bytes."""

    written: int = 0
    unchanged: int = 0
    removed: int = 0
    total_bytes: int = 0


class Folder:
    """An export folder that is being written.

    Call `register` first, then `write_response` or `copy` for each file, and finally `finish`.
    """

    def __init__(
        self, root: Path, stage: Path, manifest: Manifest, previous: Manifest, *, force: bool
    ) -> None:
        self.root, self.manifest, self.force = root, manifest, force
        self.counts = FileCounts()
        # Incomplete files are on the same file system, so they can be renamed into place.
        self._stage = stage / "file"
        self._owned = dict(previous.files)
        self._files: dict[str, ExportedFile] = {}
        self._sizes: dict[str, int] = {}
        self._folders: set[str] = {""}
        self._others: set[str] = set()
        with os.scandir(root) as entries:
            for entry in entries:
                if entry.name in TOP_FOLDERS or TOP_FILE.fullmatch(entry.name):
                    self._scan(entry, entry.name)

    def register(self, paths: Iterable[str]) -> None:
        """Record paths in the manifest before the files are written.

        Raises SetupError if a path is taken by a file that no export has created, unless `force` is set.
        """
        new = []
        for path in paths:
            self._check_path(path)
            if path not in self._owned:
                _check_name(path)
                new.append(path)
                if self._has_foreign_file(path) and not self.force:
                    raise self._refuse(path)
        if new:
            self._owned.update(dict.fromkeys(new, ExportedFile()))
            self._save(replace(self.manifest, files=self._owned))

    def write_response(self, response: Response) -> None:
        digest = hashlib.sha256(response.body).hexdigest()
        self._list(response.path, ExportedFile(response.request, len(response.body), digest))
        if (
            self._sizes.get(response.path) == len(response.body)
            and self._read(response.path) == response.body
        ):
            self.counts.unchanged += 1
            return
        self._stage.write_bytes(response.body)
        self._move_into_place(response.path)

    def copy(self, path: str, request: str, source: BufferedReader) -> None:
        digest, size = _digest(source)
        if self._sizes.get(path) == size and self._copy(path) == (digest, size):
            self.counts.unchanged += 1
        else:
            source.seek(0)
            with self._stage.open("w+b") as stage:
                shutil.copyfileobj(source, stage)
                stage.seek(0)
                digest, size = _digest(stage)
            self._move_into_place(path)
        self._list(path, ExportedFile(request, size, digest))

    def _copy(self, path: str) -> tuple[str, int]:
        with (self.root / path).open("rb") as file:
            return _digest(file)

    def remove_obsolete(self, paths: Iterable[str]) -> None:
        for path in sorted(self._owned.keys() - set(paths)):
            if path in self._sizes or path in self._others:
                (self.root / path).unlink(missing_ok=True)
                self._sizes.pop(path, None)
                self._others.discard(path)
                self.counts.removed += 1
                self._remove_empty(path.rpartition("/")[0])
            del self._owned[path]

    def finish(self) -> FileCounts:
        manifest = replace(self.manifest, files=self._files)
        if (self.root / NAME).is_symlink() or self._text() != manifest.to_json():
            self._save(manifest)
        return self.counts

    def _scan(self, entry: os.DirEntry[str], path: str) -> None:
        if entry.is_dir(follow_symlinks=False):
            self._folders.add(path)
            with os.scandir(entry) as entries:
                for inside in entries:
                    self._scan(inside, f"{path}/{inside.name}")
        elif entry.is_file(follow_symlinks=False):
            self._sizes[path] = entry.stat(follow_symlinks=False).st_size
        else:
            self._others.add(path)

    def _check_path(self, path: str) -> None:
        above = path.rpartition("/")[0]
        while above:
            if above in self._folders:
                return
            if above in self._others:
                raise SetupError(
                    str(self.root / above),
                    None,
                    "is a file or symbolic link, but the export needs a folder here",
                    "delete it",
                )
            if above in self._sizes and above not in self._owned and not self.force:
                raise self._refuse(above)
            above = above.rpartition("/")[0]

    def _has_foreign_file(self, path: str) -> bool:
        if path in self._folders:
            below = (p for p in (*self._sizes, *self._others) if p.startswith(f"{path}/"))
            return any(inside not in self._owned for inside in below)
        return path in self._sizes or path in self._others

    def _refuse(self, path: str) -> SetupError:
        what = "exists, but was not created by an export"
        return SetupError(str(self.root / path), None, what, "delete it, or use --force")

    def _list(self, path: str, entry: ExportedFile) -> None:
        self._files[path] = entry
        self.counts.total_bytes += entry.size

    def _read(self, path: str) -> bytes | None:
        try:
            return (self.root / path).read_bytes()
        except OSError:
            return None

    def _move_into_place(self, path: str) -> None:
        self._make_folder(path.rpartition("/")[0])
        os.replace(self._stage, self.root / path)
        self._sizes[path] = -1
        self.counts.written += 1

    def _make_folder(self, path: str) -> None:
        if path not in self._folders:
            self._make_folder(path.rpartition("/")[0])
            # a file from an earlier export
            if path in self._sizes:
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
        self._stage.write_text(manifest.to_json(), encoding="utf-8")
        os.replace(self._stage, self.root / NAME)


def _digest(file: BufferedReader | BufferedRandom) -> tuple[str, int]:
    return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _check_name(path: str) -> None:
    try:
        check_path(path)
        longest = max(len(part.encode()) for part in path.split("/"))
        if longest > _MAX_NAME_BYTES:
            raise ValueError(f"it has {longest} bytes, but the limit is {_MAX_NAME_BYTES}")
    except ValueError as error:
        what = f"can't be used as a file name: {error}"
        raise SetupError(repr(path), None, what, "give the document a different documentId") from error


# --- target ---------------------------------------------------------------------------------------

_STAGE = ".bifolio-export-"  # folder with incomplete files


def check_target(target: Path, site: Site) -> None:
    """Raise SetupError if the target folder contains the site, or overlaps with one of the site's folders."""
    real = target.resolve()
    if site.root.is_relative_to(real):
        what = "contains the site itself"
        raise SetupError(str(target), None, what, "pass a separate folder, such as ../public")
    is_everywhere = "" in site.roots  # The content is in the site's own folder.
    example = "../public" if is_everywhere else "public"
    for folder in (*site.roots, CONTENT, TYPES, STATE_FOLDER, ".git"):
        inside = (site.root / folder).resolve()
        if real.is_relative_to(inside) or inside.is_relative_to(real):
            what = f"overlaps with a folder of the site ({folder or 'its content is in its own folder'})"
            raise SetupError(str(target), None, what, f"pass a separate folder, such as {example}")


@contextmanager
def open_folder(root: Path, manifest: Manifest, *, force: bool) -> Iterator[Folder]:
    """Create and lock the export folder.

    Raises SetupError if the folder is neither empty nor an export for the same role, unless `force` is set.
    """
    with _errors(root), _locked(root):
        previous = _previous_manifest(root, manifest, force=force)
        for left in root.glob(f"{_STAGE}*"):  # Remove the files of an export that was killed.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_STAGE, dir=root) as stage:
            yield Folder(root, Path(stage), manifest, previous, force=force)


@contextmanager
def _errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        path = str(error.filename2 or error.filename or root)
        if _STAGE in path:  # Report the export folder instead of a temporary file.
            path = str(root)
        what = f"can't be exported: {error.strerror}"
        raise SetupError(path, None, what, "fix the problem, then export again") from error


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root, is_folder=True).held() as is_held:
        if not is_held:
            raise SetupError(
                str(root), None, "another export is running in this folder", "wait until it has finished"
            )
        yield


def _previous_manifest(root: Path, manifest: Manifest, *, force: bool) -> Manifest:
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
            what = f"is not empty, and does not contain {NAME} from an earlier export"
            raise SetupError(str(root), None, what, "pass an empty folder, or use --force")
        return nothing
    if found.files and (found.role, found.drafts) != (manifest.role, manifest.drafts):
        drafts = " with drafts" if found.drafts else ""
        what = f"contains an earlier export for {found.role}{drafts}, which has other permissions"
        raise SetupError(str(root), None, what, "pass a different folder, or use --force")
    return found
