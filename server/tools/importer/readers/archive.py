"""Reader of a Strapi export, which is an untrusted tar archive."""

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from server.errors import SetupError
from server.formats.json import read_json
from server.formats.tree import SyntaxProblem
from server.tools.importer.readers.rows import ArchiveRows, make_source
from server.tools.importer.record import stream_digest
from server.tools.importer.source import (
    ImportNotes,
    Source,
    SourceUpload,
)

MAX_LINE_BYTES = 64_000_000
MAX_JSON_BYTES = 4_000_000_000  # limit for all lines of the archive together
_CHUNK_BYTES = 1 << 20
_GZIP = b"\x1f\x8b"
_EXPORT = "export it again: strapi export --no-encrypt"


class Archive:
    """Reader of an export archive."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Source:
        """Read everything except the contents of media files.

        Raises SetupError if the archive is damaged, or is not an export of Strapi 5 or newer.
        """
        contents = self._contents()
        made = contents.metadata.get("strapi", {}).get("version")
        if not contents.schemas or not isinstance(made, str):
            raise self._refuse("is not a Strapi export: schemas or metadata.json are missing", _EXPORT)
        if int(made.partition(".")[0] or 0) < 5:
            raise self._refuse(f"was exported by Strapi {made}, which has no documentIds",
                               "upgrade Strapi to version 5 and export again")  # fmt: skip
        notes = ImportNotes()
        try:
            return make_source(self._title(contents), contents, notes)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"is damaged: {type(error).__name__} {error}"
            raise self._refuse(what, _EXPORT) from error

    def _title(self, contents: ArchiveRows) -> str:
        day = str(contents.metadata.get("createdAt", ""))[:10]
        return f"{self.path.name}, exported by Strapi {contents.metadata['strapi']['version']} on {day}"

    def fetch(self, uploads: Sequence[SourceUpload], folder: Path) -> Iterator[tuple[SourceUpload, Path]]:
        """Copy media files to a folder, in the order in which the archive contains them.

        Yield each file with the path of its copy.
        """
        wanted = {upload.origin: upload for upload in uploads}
        if not wanted:
            return
        with self._damage():
            for member, file in self._members():
                upload = wanted.pop(member.name, None)
                if upload:
                    yield upload, _copy_member(file, folder, member.name)
        if wanted:
            raise self._refuse(
                f"the file {min(wanted)} has disappeared from the archive",
                "do not change the archive during the import",
            )

    # --- members -------------------------------------------------------------------------------

    def _contents(self) -> ArchiveRows:
        with self._damage():
            return self._read_members()

    def _read_members(self) -> ArchiveRows:
        found, left = ArchiveRows(), MAX_JSON_BYTES
        for member, file in self._members():
            folder, _, rest = member.name.partition("/")
            if member.name.startswith("assets/uploads/"):
                found.files[member.name] = (member.size, stream_digest(file))
            elif member.name == "metadata.json":
                found.metadata = self._parse(file.read(MAX_LINE_BYTES), member.name, 1)
            elif rest and folder in _ADD:
                left -= member.size
                if left < 0:
                    raise self._refuse(
                        f"has more than {MAX_JSON_BYTES:,} bytes of JSON",
                        "export the content in several smaller archives",
                    )
                for number, line in self._lines(file, member.name):
                    try:
                        _ADD[folder](found, line)
                    except (KeyError, TypeError, AttributeError) as error:
                        what = f"{member.name}, line {number}: unexpected content ({error})"
                        raise self._refuse(what, _EXPORT) from error
        return found

    def _lines(self, file: IO[bytes], name: str) -> Iterator[tuple[int, Any]]:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise self._refuse(f"{name}, line {number}: longer than {MAX_LINE_BYTES:,} bytes")
            if line.strip():
                yield number, self._parse(line, name, number)

    def _parse(self, line: bytes, name: str, number: int) -> Any:
        try:
            found = read_json(line.decode())
        except (SyntaxProblem, UnicodeDecodeError) as error:
            message = error.message if isinstance(error, SyntaxProblem) else "not UTF-8"
            raise self._refuse(f"{name}, line {number}: {message}", _EXPORT) from error
        if not isinstance(found, dict):
            raise self._refuse(f"{name}, line {number}: not an object", _EXPORT)
        return found

    def _members(self) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
        with self._open() as archive:
            for member in archive:
                self._check_name(member)
                file = archive.extractfile(member) if member.isfile() else None
                if file:
                    yield member, file

    def _check_name(self, member: tarfile.TarInfo) -> None:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
            raise self._refuse(
                f'"{member.name}" points outside the archive',
                "the archive may be malicious; do not import it",
            )
        if not (member.isfile() or member.isdir()):
            raise self._refuse(
                f'"{member.name}" is not a regular file', "the archive may be malicious; do not import it"
            )

    @contextmanager
    def _open(self) -> Iterator[tarfile.TarFile]:
        if self.path.suffix == ".enc":
            raise self._refuse("is encrypted", _EXPORT)
        try:
            with self.path.open("rb") as file:
                packed = file.read(2) == _GZIP
                file.seek(0)
                stream = gzip.GzipFile(fileobj=file) if packed else file
                with tarfile.open(fileobj=stream, mode="r|") as archive:
                    yield archive
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            raise self._refuse(
                f"can't be read: {error.strerror}", "pass an archive from `strapi export`"
            ) from error

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError) as error:
            what = f"is not a .tar or .tar.gz file, is encrypted, or is damaged ({error})"
            raise self._refuse(what, _EXPORT) from error

    def _refuse(self, what: str, fix: str = "") -> SetupError:
        return SetupError(str(self.path), None, what, fix)


def _copy_member(file: IO[bytes], folder: Path, name: str) -> Path:
    target = folder / hashlib.sha256(name.encode()).hexdigest()
    try:
        with target.open("wb") as made:
            while block := file.read(_CHUNK_BYTES):
                made.write(block)
    except OSError as error:
        fix = (
            "free some disk space or check the permissions, then run the command again; nothing was imported"
        )
        raise SetupError(str(target), None, f"can't be written: {error.strerror or error}", fix) from error
    return target


def _add_entity(archive_rows: ArchiveRows, line: dict[str, Any]) -> None:
    archive_rows.entities[line["type"]].append((line["id"], line["data"]))


def _add_configuration(archive_rows: ArchiveRows, line: dict[str, Any]) -> None:
    if line["type"] == "core-store":
        archive_rows.configuration[line["value"]["key"]] = line["value"]["value"]


_ADD = {
    "schemas": lambda found, line: found.schemas.append({**line, "uid": line["uid"]}),
    "entities": _add_entity,
    "links": lambda found, line: found.links.append({**line, "left": line["left"], "right": line["right"]}),
    "configuration": _add_configuration,
}
