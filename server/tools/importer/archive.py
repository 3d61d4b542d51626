"""Reads an export archive: a .tar or .tar.gz of JSON lines and the files of the media library.

An archive is somebody else's: names that lead out of it, lines that are no JSON and members larger
than they may be are refused in one line. It is read twice, since the files come before what is said
of them: once for everything but their bytes, once for those that are needed.
"""

import gzip
import hashlib
import tarfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from server.errors import SetupError
from server.formats.json_reader import read_json
from server.formats.tree import SyntaxProblem
from server.schema.model import UPLOAD
from server.tools.importer.links import Key, Linked
from server.tools.importer.record import stream_digest
from server.tools.importer.roles import read_roles
from server.tools.importer.schemas import LEFT, UNKNOWN, clean_schemas, our_uids
from server.tools.importer.source import (
    Notes,
    Shape,
    Source,
    Upload,
    Version,
    is_draft_publish,
    read_version,
)
from server.tools.importer.uploads import file_name, read_upload

MAX_LINE = 64_000_000  # bytes of one line of JSON
MAX_JSON = 4_000_000_000  # bytes of all of them
_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b"
_EXPORT = "export it again: strapi export --no-encrypt"
Row = tuple[int, dict[str, Any]]  # id, data


@dataclass(slots=True)
class _Contents:
    """An archive's members, parsed, with the uids that types have here."""

    schemas: list[dict[str, Any]] = field(default_factory=list)
    entities: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    links: list[dict[str, Any]] = field(default_factory=list)
    configuration: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    files: dict[str, tuple[int, str]] = field(default_factory=dict)  # name → size, sha256


class Archive:
    """The reader of one archive (see `source.Reader`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Source:
        """Everything but the bytes of the files. Raises SetupError."""
        contents = self._contents()
        made = contents.metadata.get("strapi", {}).get("version")
        if not contents.schemas or not isinstance(made, str):
            raise self._refuse("is no export of Strapi: it has no schemas or no metadata.json", _EXPORT)
        if int(made.partition(".")[0] or 0) < 5:
            raise self._refuse(f"was made by Strapi {made}, whose documents have no documentIds",
                               "upgrade that installation to Strapi 5 and export it again")  # fmt: skip
        notes = Notes()
        try:
            return _make_source(self._title(contents), contents, notes)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"is damaged: {type(error).__name__} {error}"
            raise self._refuse(what, _EXPORT) from error

    def _title(self, contents: _Contents) -> str:
        day = str(contents.metadata.get("createdAt", ""))[:10]
        return f"{self.path.name}, exported by Strapi {contents.metadata['strapi']['version']} on {day}"

    def fetch(self, uploads: Sequence[Upload], folder: Path) -> Iterator[tuple[Upload, Path]]:
        """The files of some uploads, in the archive's order, each put into a folder."""
        wanted = {upload.origin: upload for upload in uploads}
        if not wanted:
            return
        with self._damage():
            for member, file in self._members():
                upload = wanted.pop(member.name, None)
                if upload:
                    yield upload, _copied(file, folder, member.name)
        if wanted:
            raise self._refuse(f"{min(wanted)} is not there any more", "leave the archive alone meanwhile")

    # --- members -------------------------------------------------------------------------------

    def _contents(self) -> _Contents:
        with self._damage():
            return self._read_members()

    def _read_members(self) -> _Contents:
        found, left = _Contents(), MAX_JSON
        for member, file in self._members():
            folder, _, rest = member.name.partition("/")
            if member.name.startswith("assets/uploads/"):
                found.files[member.name] = (member.size, stream_digest(file))
            elif member.name == "metadata.json":
                found.metadata = self._parse(file.read(MAX_LINE), member.name, 1)
            elif rest and folder in _TAKE:
                left -= member.size
                if left < 0:
                    raise self._refuse(f"has more than {MAX_JSON:,} bytes of JSON", "split it")
                for number, line in self._lines(file, member.name):
                    try:
                        _TAKE[folder](found, line)
                    except (KeyError, TypeError, AttributeError) as error:
                        what = f"{member.name}, line {number}: not what an export has ({error})"
                        raise self._refuse(what, _EXPORT) from error
        return found

    def _lines(self, file: IO[bytes], name: str) -> Iterator[tuple[int, Any]]:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise self._refuse(f"{name}, line {number}: longer than {MAX_LINE:,} bytes")
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
        """Every file in turn, open while it is its turn; none of them is written anywhere."""
        with self._open() as archive:
            for member in archive:
                self._check_name(member)
                file = archive.extractfile(member) if member.isfile() else None
                if file:
                    yield member, file

    def _check_name(self, member: tarfile.TarInfo) -> None:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
            raise self._refuse(f'"{member.name}" leads out of the archive', "don't trust where it is from")
        if not (member.isfile() or member.isdir()):
            raise self._refuse(f'"{member.name}" is no ordinary file', "don't trust where it is from")

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
            raise self._refuse(f"can't be read: {error.strerror}", "name an export archive") from error

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Say in one line that the archive is none, or damaged."""
        try:
            yield
        except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError) as error:
            what = f"is no .tar or .tar.gz, is encrypted, or is damaged ({error})"
            raise self._refuse(what, _EXPORT) from error

    def _refuse(self, what: str, fix: str = "") -> SetupError:
        return SetupError(str(self.path), None, what, fix)


def _copied(file: IO[bytes], folder: Path, name: str) -> Path:
    """A member's bytes in a file of a folder."""
    target = folder / hashlib.sha256(name.encode()).hexdigest()
    try:
        with target.open("wb") as made:
            while block := file.read(_BLOCK):
                made.write(block)
    except OSError as error:
        fix = "make room; nothing was imported"
        raise SetupError(str(target), None, f"can't be written: {error.strerror or error}", fix) from error
    return target


def _take_entity(found: _Contents, line: dict[str, Any]) -> None:
    found.entities[line["type"]].append((line["id"], line["data"]))


def _take_configuration(found: _Contents, line: dict[str, Any]) -> None:
    if line["type"] == "core-store":
        found.configuration[line["value"]["key"]] = line["value"]["value"]


_TAKE = {
    "schemas": lambda found, line: found.schemas.append({**line, "uid": line["uid"]}),
    "entities": _take_entity,
    "links": lambda found, line: found.links.append({**line, "left": line["left"], "right": line["right"]}),
    "configuration": _take_configuration,
}


# --- rows and links → versions -------------------------------------------------------------------


def _make_source(title: str, contents: _Contents, notes: Notes) -> Source:
    uids = our_uids(contents.schemas)
    schemas = clean_schemas(contents.schemas, uids)
    uploads, paths = _uploads(contents, notes)
    ids = {
        (uids.get(uid, uid), row): data["documentId"]
        for uid, rows in contents.entities.items()
        for row, data in rows
        if "documentId" in data
    }
    linked = Linked(uids, ids, paths, notes)
    for link in contents.links:
        linked.add(link)
    versions: list[Version] = []
    created: dict[Key, str] = {}
    for uid, rows in contents.entities.items():
        if uids.get(uid) in schemas:
            made = (_version(schemas, uids[uid], row, data, linked) for row, data in rows)
            versions += [version for version in made if version]
            created |= {(uids[uid], row): data["createdAt"] for row, data in rows}
        elif uid not in _ELSEWHERE:
            notes.add(uid, LEFT.get(uid, UNKNOWN), len(rows))
    linked.note_orders(created)
    default = contents.configuration.get("plugin_i18n_default_locale") or "en"
    locales = [data["code"] for _, data in contents.entities.get("plugin::i18n.locale", ())]
    used = dict.fromkeys([default, *locales, *(v.locale for v in versions if v.locale)])
    roles = read_roles(contents.entities, linked, uids)
    return Source(title, schemas, tuple(used), default, versions, uploads, notes, roles)


_ELSEWHERE = (UPLOAD, "plugin::i18n.locale")


def _version(
    schemas: Mapping[str, Shape], uid: str, row: int, data: dict[str, Any], linked: Linked
) -> Version | None:
    def resolve(owner: str, name: str, attribute: Shape, inner: Mapping[str, Any]) -> Any:
        return linked.of(owner, row if inner is data else inner["id"], name, attribute)

    draft = is_draft_publish(schemas[uid]) and data.get("publishedAt") is None
    return read_version(schemas, uid, data, draft, resolve, linked.notes)


def _uploads(contents: _Contents, notes: Notes) -> tuple[list[Upload], dict[int, str]]:
    """The files of the media library, and the path of each by its id."""
    uploads, paths = [], {}
    for row, data in contents.entities.get(UPLOAD, ()):
        origin = f"assets/uploads/{file_name(data)}"
        if origin not in contents.files:
            notes.add(UPLOAD, f"{data['name']}: its bytes are not in the archive")
            continue
        size, digest = contents.files[origin]
        upload = read_upload(data, origin, notes, size=size, digest=digest)
        if upload:
            uploads.append(upload)
            paths[row] = upload.path
    return uploads, paths
