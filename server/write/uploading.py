"""Files that are uploaded: their names, their descriptions, and how they come into content/uploads/.

`upload`, `change_file` and `remove` take a request and a context, as `write.prepare` has it.
"""

import math
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from slugify import slugify

from server.auth.permissions import Actor
from server.documents.document import PUBLISHED, Document
from server.documents.ids import new_document_id
from server.documents.layout import UPLOADS
from server.errors import NotFoundError, ValidationError
from server.formats.json_reader import read_json
from server.formats.tree import Plain, SyntaxProblem
from server.index.snapshot import Snapshot
from server.schema.model import UPLOAD
from server.storage.document_text import changed_text, new_text
from server.storage.media import DESCRIPTION, ending_of, mime_type, true_ending, upload_path
from server.write.attach import Attachment, attach
from server.write.context import Context


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and type(value) is not Plain and not _CONTROL.search(value)


def _is_number(value: Any) -> bool:
    if type(value) is Plain:  # a number with a fraction, as read_json has it
        return math.isfinite(float(value))
    return isinstance(value, int) and not isinstance(value, bool)


def _is_point(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() <= {"x", "y"} and all(map(_is_number, value.values()))


# What a client may say of a file, and whether a value is of its kind.
INFO: Mapping[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "alternativeText": _is_text,
    "caption": _is_text,
    "focalPoint": _is_point,
}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IGNORED = ("folder", "id")
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,12}")
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class Incoming:
    """A file that was received: its bytes in `source`, the client's name and type for it, its info."""

    source: Path
    name: str
    info: Mapping[str, Any]
    mime: str = ""


@dataclass(frozen=True, slots=True)
class Upload:
    """Files that are to become media, and the document that is to have them."""

    files: tuple[Incoming, ...]
    actor: Actor
    attachment: Attachment | None = None


@dataclass(frozen=True, slots=True)
class FileChange:
    """Another description for the media file with an id, and other content where there is a `file`."""

    key: str
    info: Mapping[str, Any]
    file: Incoming | None = None


def find_file(snapshot: Snapshot, locale: str, key: str) -> Document:
    """The media file with a number or documentId; `locale` is the default one. Raises NotFoundError."""
    files = snapshot.list(snapshot.schema.types[UPLOAD], locale, PUBLISHED)
    found = next((file for file in files if key in (str(file.id), file.document_id)), None)
    if found is None:
        raise NotFoundError("file.notFound")
    return found


def upload(request: Upload, context: Context) -> tuple[str, ...]:
    """Let received files become media, attached where the request says so; returns their paths."""
    paths = tuple(_add(context, file) for file in request.files)
    if request.attachment:
        inside = [upload_path(path) or path for path in paths]
        attach(context, request.actor, request.attachment, inside)
    return paths


def change_file(request: FileChange, context: Context) -> str:
    """Change what is said of a file, and its content where the request has one; returns its path."""
    file = find_file(context.snapshot, context.settings.default_locale, request.key)
    if request.file:
        _replace(context, file, replace(request.file, info=request.info))
    else:
        _describe(context, file, request.info)
    return file.path


def remove(key: str, context: Context) -> str:
    """Let a media file and its description be gone; returns the path that it had."""
    path = find_file(context.snapshot, context.settings.default_locale, key).path
    context.changeset.delete(path)
    context.changeset.delete(path + DESCRIPTION)
    return path


def read_info(text: str | None, count: int) -> list[dict[str, Any]]:
    """The `fileInfo` of an upload, one object for each of `count` files. Raises ValidationError."""
    if not text:
        return [{} for _ in range(count)]
    try:
        data = read_json(text)
    except SyntaxProblem as error:
        raise ValidationError(f"fileInfo can't be read: {error.message}") from error
    found = data if isinstance(data, list) else [data]
    found += [{} for _ in range(count - len(found))]
    return [_checked(item) for item in found]


def _checked(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise ValidationError("fileInfo must be an object, or a list with one for each file")
    for key, value in item.items():
        if key in _IGNORED:
            continue
        if key not in INFO:
            raise ValidationError(f"Invalid key {key}", {"key": key, "path": "fileInfo", "source": "body"})
        if value is not None and not INFO[key](value):
            raise ValidationError(f"fileInfo.{key} has a value of the wrong kind")
    return {key: value for key, value in item.items() if key not in _IGNORED}


def _add(context: Context, incoming: Incoming) -> str:
    """Let a received file become media; returns its path."""
    name = str(incoming.info.get("name") or _CONTROL.sub("", incoming.name))
    path = f"{UPLOADS}/{_file_name(context, incoming, name)}"
    described = {key: value for key, value in incoming.info.items() if value is not None}
    trees = {**described, "name": name, "documentId": new_document_id()}
    trees["createdAt"] = trees["updatedAt"] = Plain(context.now)
    context.changeset.put_file(path, incoming.source)
    context.changeset.put(path + DESCRIPTION, new_text(path + DESCRIPTION, None, trees))
    return path


def _file_name(context: Context, incoming: Incoming, name: str) -> str:
    """A name that is safe on every system and taken by nobody: the stem, ten digits, the ending."""
    endings = (*(_suffix(n) for n in (incoming.name, name)), ending_of(incoming.mime))
    ending = true_ending(incoming.source, next((e for e in endings if _ENDING.fullmatch(e)), ""))
    stem = PurePosixPath(name.replace("\\", "/")).name
    stem = stem.removesuffix(PurePosixPath(stem).suffix) or "file"
    stem = slugify(stem, separator="_", lowercase=False, max_length=_LONGEST) or "file"
    while context.changeset.exists(f"{UPLOADS}/{stem}_{(random := secrets.token_hex(5))}{ending}"):
        continue
    return f"{stem}_{random}{ending}"


def _suffix(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).suffix


def _describe(context: Context, file: Document, info: Mapping[str, Any]) -> None:
    """Change what a media file's description says."""
    path = file.path + DESCRIPTION
    trees = {**info, "updatedAt": Plain(context.now)}
    if context.changeset.exists(path):
        context.changeset.put(path, changed_text(path, context.changeset.text(path), None, trees))
    else:
        context.changeset.put(path, new_text(path, None, trees))


def _replace(context: Context, file: Document, incoming: Incoming) -> None:
    """Give a media file other content, under the name that it has. ValidationError: of another type."""
    ending = true_ending(incoming.source, _suffix(file.path))
    if mime_type(f"x{ending}") != mime_type(file.path):
        raise ValidationError(
            f"The new file must be of the type that the old one has: {mime_type(file.path)}"
        )
    context.changeset.put_file(file.path, incoming.source)
    _describe(context, file, incoming.info)
