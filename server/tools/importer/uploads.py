"""Import of media files."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from server.documents.timestamps import read_timestamp
from server.errors import ConflictError
from server.formats.edits import REMOVE
from server.formats.tree import SyntaxProblem, Tree
from server.paths import UPLOADS
from server.schema.model import UPLOAD
from server.storage.document_text import change_text, new_text
from server.storage.files import is_ignored
from server.storage.images.kinds import MEASURED_EXTENSIONS
from server.storage.images.variants import VARIANTS
from server.storage.media import SIDECAR_SUFFIX
from server.storage.read import parse
from server.tools.importer.merge import Merge
from server.tools.importer.record import digest, digest_of, file_digest
from server.tools.importer.source import (
    DOCUMENT_ID,
    ImportNotes,
    ReportProgress,
    Source,
    SourceReader,
    SourceUpload,
)
from server.write.write_timestamps import known_timestamps

_NAME = re.compile(r"[^/\\\0\x01-\x1f]{1,200}")
_DESCRIBED: Mapping[str, type] = {
    "name": str, "alternativeText": str, "caption": str, "focalPoint": dict, "width": int, "height": int,
}  # fmt: skip
_SIZE_FIELDS = ("width", "height")
DESCRIPTIONS = "descriptions of files"


def file_name(data: Mapping[str, Any]) -> str:
    return f"{data['hash']}{data.get('ext') or ''}"


def read_upload(
    data: Mapping[str, Any],
    origin: str,
    notes: ImportNotes,
    *,
    size: int | None = None,
    digest: str | None = None,
) -> SourceUpload | None:
    """Convert a media file's data. If the file's name or id is invalid, add a note and return None."""
    ending = str(data.get("ext") or "")
    path = file_name(data)
    if not _NAME.fullmatch(path) or is_ignored(path):
        notes.add(UPLOAD, f"{path[:80]!r} is not a valid file name")
        return None
    if not DOCUMENT_ID.fullmatch(str(data.get("documentId"))):
        notes.add(
            UPLOAD, f"{path} has the documentId {str(data.get('documentId'))[:40]!r}, which is not a valid id"
        )
        return None
    if data.get("provider") not in (None, "local"):
        notes.add(UPLOAD, f"was stored by {data['provider']}; its URL in Bifolio is /uploads/…")
    for name in dict(data.get("formats") or {}).keys() - VARIANTS.keys():
        notes.add(UPLOAD, f'the format "{name}" is not a variant that Bifolio creates')
    measured = ending.lower() in MEASURED_EXTENSIONS
    names = [name for name in _DESCRIBED if not (measured and name in _SIZE_FIELDS)]
    return SourceUpload(
        path=path,
        document_id=data["documentId"],
        description={name: data[name] for name in names if isinstance(data.get(name), _DESCRIBED[name])},
        created=read_timestamp(str(data["createdAt"])),
        updated=read_timestamp(str(data["updatedAt"])),
        published=read_timestamp(str(data["publishedAt"])) if data.get("publishedAt") else None,
        origin=origin,
        size=size,
        digest=digest,
    )


def site_path(upload: SourceUpload) -> str:
    return f"{UPLOADS}/{upload.path}"


def description(upload: SourceUpload) -> dict[str, Tree]:
    # publishedAt is left out if it equals updatedAt.
    published = upload.published if upload.published != upload.updated else None
    timestamps = known_timestamps(upload.created, upload.updated, published)
    return {**upload.description, "documentId": upload.document_id, **timestamps}


def merge_uploads(
    merge: Merge, source: Source, reader: SourceReader, folder: Path | None, report_progress: ReportProgress
) -> None:
    """Merge media files and their descriptions into the site.

    New and changed files are first copied to `folder`. In a dry run, `folder` is None, and they are only
    counted.
    """
    merge.outcome_counts(UPLOAD).document_count = len(source.uploads)
    needed = []
    for upload in source.uploads:
        if not merge.record_if_current(UPLOAD, site_path(upload), _digest_of(upload), upload.digest):
            needed.append(upload)
        _merge_description(merge, upload)
    if folder is None:
        for upload in needed:
            merge.count_file(UPLOAD, site_path(upload), upload.digest)
        return
    for done, (upload, file) in enumerate(reader.fetch(needed, folder)):
        report_progress("Files", done, len(needed))
        merge.merge_file(UPLOAD, site_path(upload), _digest_of(upload), file_digest(file) or "", file)


def _digest_of(upload: SourceUpload) -> str:
    return upload.digest or digest(f"{upload.path} {upload.size} {upload.updated}")


def _merge_description(merge: Merge, upload: SourceUpload) -> None:
    trees, path = description(upload), site_path(upload) + SIDECAR_SUFFIX

    def changed(old: str) -> str:
        try:
            tree = parse(path, old, None)
        except SyntaxProblem as error:
            raise ConflictError(f"{path}: {error.message}") from error
        changes: dict[str, Any] = {name: value for name, value in trees.items() if tree.get(name) != value}
        changes |= {name: REMOVE for name in _DESCRIBED if name in tree and name not in trees}
        return change_text(path, old, None, changes) if changes else old

    merge.merge_text(DESCRIPTIONS, path, digest_of(trees), lambda: new_text(path, None, trees), changed)
