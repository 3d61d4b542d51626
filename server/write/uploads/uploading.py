"""Changes to media files: upload, replacement, description and deletion."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from slugify import slugify

from server.auth.permissions import Actor
from server.documents.document import ID, PUBLISHED, Document, column_of
from server.documents.ids import new_document_id, to_nfc
from server.errors import ConflictError, NotFoundError, PreconditionError, ValidationError
from server.formats.edits import REMOVE
from server.index.snapshot import Snapshot
from server.paths import UPLOADS
from server.schema.model import UPLOAD
from server.storage.bucket.stored import DESCRIPTION_KEY, StoredFile
from server.storage.document_text import change_text, new_text
from server.storage.media import (
    REPLACED_KEY,
    SIDECAR_SUFFIX,
    actual_extension,
    extension_of,
    media_key,
    mime_type,
)
from server.write.context import Context, syntax_errors_as_conflicts
from server.write.uploads.attach import Attachment, attach
from server.write.uploads.file_info import INFO_READERS, MAX_NAME_CHARS, NAME_CONTROL_CHARS
from server.write.uploads.folders import existing_folder, folders_of
from server.write.write_timestamps import new_timestamps, updated_timestamp

ENDING = re.compile(r"\.[A-Za-z0-9]{1,12}")
_MAX_STEM_CHARS = 80
NO_FILE_TO_CHANGE_MESSAGE = "Entity not found"
CHANGED_MESSAGE = "The description of the file has changed; read it again"


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """An uploaded file, whose content is in `source`. If `stored` is set, the content is also in a bucket."""

    source: Path
    name: str
    info: Mapping[str, Any]
    mime: str = ""
    stored: StoredFile | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    """Request to store files and, optionally, attach them to a document."""

    files: tuple[ReceivedFile, ...]
    actor: Actor
    attachment: Attachment | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """Request to change the description of a media file and, if `file` is set, its content.

    `previous` contains the description's values before the client's edit.
    """

    key: str
    info: Mapping[str, Any]
    file: ReceivedFile | None = None
    previous: Mapping[str, Any] = field(default_factory=dict)


def find_file(snapshot: Snapshot, locale: str, key: str, error_message: str = "file.notFound") -> Document:
    """Return the media file whose numeric id or documentId is `key`.

    Raises NotFoundError if there is none.
    """
    type_, document_id = snapshot.schema.types[UPLOAD], to_nfc(key)
    if found := snapshot.get(type_, document_id, locale, PUBLISHED):
        return found
    if document_id.isascii() and document_id.isdecimal():
        files = list(snapshot.list(type_, locale, PUBLISHED))
        numbers = zip(files, column_of(files, ID), strict=True)
        if found := next((file for file, number in numbers if str(number) == document_id), None):
            return found
    raise NotFoundError(error_message)


def upload(request: Upload, context: Context) -> tuple[str, ...]:
    """Store files and return their paths.

    Raises ConflictError if a requested documentId is in use, or if a requested folder differs from an
    existing folder only in case.
    """
    _refuse_used_ids(request, context)
    names_folder = any(file.info.get("folder") for file in request.files)
    folders = folders_of(context.snapshot.media.values()) if names_folder else {}
    paths = tuple(_add(context, file, folders) for file in request.files)
    if request.attachment:
        media_keys = [media_key(path) or path for path in paths]
        attach(context, request.actor, request.attachment, media_keys)
    return paths


def _refuse_used_ids(request: Upload, context: Context) -> None:
    type_, locale = context.snapshot.schema.types[UPLOAD], context.settings.locales.default
    requested = [id_ for file in request.files if (id_ := file.info.get("documentId"))]
    for at, id_ in enumerate(requested):
        if id_ in requested[:at] or context.snapshot.get(type_, id_, locale, PUBLISHED):
            raise ConflictError(f'A file with the documentId "{id_}" already exists')


def change_file(request: FileChange, context: Context) -> str:
    """Change the description or content of a media file, and return its path.

    Raises PreconditionError if the current values of the description differ from `previous`.
    """
    locale = context.settings.locales.default
    file = find_file(context.snapshot, locale, request.key, NO_FILE_TO_CHANGE_MESSAGE)
    current = {name: file.get(name) for name in request.previous}
    if any((current[name] or None) != (value or None) for name, value in request.previous.items()):
        raise PreconditionError(CHANGED_MESSAGE, {"current": current})
    if request.file:
        _replace(context, file, replace(request.file, info=request.info))
    else:
        _describe(context, file, request.info)
    return file.path


def remove(key: str, context: Context) -> str:
    path = find_file(context.snapshot, context.settings.locales.default, key).path
    context.changeset.delete(path)
    context.changeset.delete(path + SIDECAR_SUFFIX)
    return path


def _add(context: Context, incoming: ReceivedFile, folders: dict[str, str]) -> str:
    name = _name(incoming)
    folder = f"{UPLOADS}/{existing_folder(incoming.info.get('folder') or '', folders)}".rstrip("/")
    path = f"{folder}/{_file_name(context, incoming, name, folder)}"
    described = {key: incoming.info[key] for key in INFO_READERS if incoming.info.get(key) is not None}
    document_id = incoming.info.get("documentId") or new_document_id()
    trees = {**described, "name": name, "documentId": document_id}
    trees |= new_timestamps(context.now)
    if incoming.stored:
        trees[DESCRIPTION_KEY] = incoming.stored.as_tree()
    else:
        context.changeset.put_file(path, incoming.source)
    context.changeset.put(path + SIDECAR_SUFFIX, new_text(path + SIDECAR_SUFFIX, None, trees))
    return path


def _name(incoming: ReceivedFile) -> str:
    client_name = NAME_CONTROL_CHARS.sub("", incoming.name)
    stem, ending = client_name.removesuffix(_suffix(client_name)), _suffix(client_name)[:MAX_NAME_CHARS]
    return str(incoming.info.get("name") or stem[: MAX_NAME_CHARS - len(ending)] + ending)


def _file_name(context: Context, incoming: ReceivedFile, name: str, folder: str) -> str:
    client_ending = _client_ending(incoming, name)
    ending = actual_extension(incoming.source, client_ending)
    stem = PurePosixPath(name).name.removesuffix(client_ending)
    stem = slugify(stem, separator="_", lowercase=False, max_length=_MAX_STEM_CHARS) or "file"
    while context.changeset.exists(f"{folder}/{stem}_{(random := secrets.token_hex(5))}{ending}"):
        continue
    return f"{stem}_{random}{ending}"


def _client_ending(incoming: ReceivedFile, name: str) -> str:
    endings = (*(_suffix(n) for n in (incoming.name, name)), extension_of(incoming.mime))
    return next((e for e in endings if ENDING.fullmatch(e)), "")


def ending_of_upload(incoming: ReceivedFile) -> str:
    return actual_extension(incoming.source, _client_ending(incoming, _name(incoming)))


def check_replacement(file: Document, incoming: ReceivedFile) -> None:
    ending = actual_extension(incoming.source, _suffix(file.path))
    if mime_type(f"x{ending}") != mime_type(file.path):
        raise ValidationError(
            f"The new file must have the same type as the file that it replaces: {mime_type(file.path)}"
        )


def _suffix(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).suffix


def _describe(context: Context, file: Document, info: Mapping[str, Any]) -> None:
    path = file.path + SIDECAR_SUFFIX
    trees = {**info, **updated_timestamp(context.now)}
    if context.changeset.exists(path):
        with syntax_errors_as_conflicts(path):
            text = change_text(path, context.changeset.text(path), None, trees)
        context.changeset.put(path, text)
    else:
        context.changeset.put(path, new_text(path, None, trees))


def _replace(context: Context, file: Document, incoming: ReceivedFile) -> None:
    # Raises ValidationError if the media type would change.
    check_replacement(file, incoming)
    info = {"focalPoint": None, **incoming.info, "name": _name(incoming)}
    # The resized variants and the focal point belong to the old content.
    if incoming.stored:
        context.changeset.delete(file.path)
        _describe(context, file, {**info, DESCRIPTION_KEY: incoming.stored.as_tree()})
    else:
        context.changeset.put_file(file.path, incoming.source)
        was_stored = {DESCRIPTION_KEY: REMOVE} if file.get("provider_metadata") else {}
        _describe(context, file, {**info, **was_stored, REPLACED_KEY: {}})
