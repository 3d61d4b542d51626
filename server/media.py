"""A file below content/uploads/ as a document of the type `plugin::upload.file` (spec.md 2.4)."""

import mimetypes
import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from server.documents import Document, make
from server.images import Picture
from server.layout import UPLOADS
from server.schema import Type
from server.tree import Tree
from server.values import Reading, read_value, warn_unknown

DESCRIPTION = ".yaml"
_KEPT = ("documentId", "createdAt", "updatedAt")
# What a description may say; everything else of a file is derived from it.
DESCRIBED = ("name", "alternativeText", "caption", "focalPoint", "width", "height")

_TYPES = mimetypes.MimeTypes()
for _ending, _type in ((".webp", "image/webp"), (".avif", "image/avif"), (".md", "text/markdown")):
    _TYPES.add_type(_type, _ending)


def mime_type(path: str) -> str:
    """The media type that a name stands for, by a table that is the same on every machine."""
    return _TYPES.guess_type(path, strict=False)[0] or "application/octet-stream"


def kind_of(path: str) -> str:
    """`images`, `videos`, `audios` or `files`: what `allowedTypes` says of a file."""
    kind = f"{mime_type(path).partition('/')[0]}s"
    return kind if kind in ("images", "videos", "audios") else "files"


def ending_of(mime: str) -> str:
    """The ending that files of a media type have; nothing for one that is not known."""
    return "" if mime == "application/octet-stream" else _TYPES.guess_extension(mime, strict=False) or ""


def upload_path(path: str) -> str | None:
    """`content/uploads/a/b.png` → `a/b.png`; None for a path that is not below uploads."""
    return path.removeprefix(f"{UPLOADS}/") if path.startswith(f"{UPLOADS}/") else None


def read_media(
    type_: Type,
    path: str,
    size: int,
    description: Mapping[str, Tree],
    moments: tuple[str, str],
    locale: str,
    reading: Reading,
    picture: Picture | None = None,
    formats: Mapping[str, Any] | None = None,
) -> Document:
    """The document of a media file of `size` bytes, with what its FILE.yaml says of it."""
    inside = upload_path(path) or path
    stem, ending = posixpath.splitext(posixpath.basename(inside))
    values: dict[str, Any] = {
        "name": posixpath.basename(inside),
        "hash": stem,
        "ext": ending,
        "mime": mime_type(inside),
        "size": round(size / 1000, 2),
        "url": "/uploads/" + quote(inside),
        "provider": "local",
        "width": picture.width if picture else None,
        "height": picture.height if picture else None,
        "formats": formats or None,
    }
    warn_unknown(type_, description, (), reading, allowed=_KEPT)
    for name in DESCRIBED:
        if name in description:
            value = read_value(type_.attributes[name], description[name], (name,), reading)
            values[name] = values.get(name) if value is None else value
    document_id = description.get("documentId")
    if not isinstance(document_id, str) or not document_id:
        document_id = inside.replace("/", "--")
    row = [values.get(name) for name in type_.attributes]
    return make(type_, str(document_id), row, (*moments, moments[1]), locale, path)
