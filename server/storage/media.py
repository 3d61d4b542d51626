"""Documents of media files.

A description file such as `photo.jpg.yaml` overrides values in the document of `photo.jpg`.
"""

import mimetypes
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from server.documents.document import Document, make_version
from server.documents.encode import Reading, read_document_id, read_file_timestamp, read_value, warn_unknown
from server.documents.ids import id_of_name, to_nfc
from server.formats.tree import Tree
from server.paths import UPLOADS, UPLOADS_URL
from server.schema.model import FILE_FIELDS, PLACEHOLDER, Type
from server.storage.bucket.stored import DESCRIPTION_KEY, StoredFile, StoredObject, object_of
from server.storage.files import DEVICE_NAMES, is_ignored
from server.storage.images.kinds import MEASURED_EXTENSIONS, ImageSize, is_text, kilobytes, sniff
from server.storage.images.variants import Placeholder, describe_variants, split_variant_path

SIDECAR_SUFFIX = ".yaml"
# A description file can't contain a locale, because media files have none.
_DESCRIPTION_KEYS = (*(name for name in FILE_FIELDS if name != "locale"), DESCRIPTION_KEY)
# A description file can set these fields, which then override the values derived from the media file.
DESCRIBED_FIELDS = ("name", "alternativeText", "caption", "focalPoint", "width", "height")

# If a description file contains this key, the media file's content was replaced. The API then returns {}
# instead of null for missing resized variants.
REPLACED_KEY = "formats"

_OFFICE_PREFIX = "application/vnd.openxmlformats-officedocument."
# Media types that the `mimetypes` module lacks in some or all versions of Python.
_EXTRA_TYPES = {
    "image/webp": "webp", "image/avif": "avif", "image/heic": "heic", "image/heif": "heif",
    "image/jpeg": "jfif", "image/png": "apng", "image/vnd.adobe.photoshop": "psd",
    "audio/mp4": "m4a", "audio/flac": "flac", "audio/ogg": "oga ogg opus", "audio/webm": "weba",
    "audio/aac": "aac", "audio/wav": "wav", "audio/mpeg": "mp3",
    "video/mp4": "m4v mp4", "video/ogg": "ogv", "video/webm": "webm", "video/x-matroska": "mkv",
    "video/3gpp": "3gp",
    "font/woff": "woff", "font/woff2": "woff2", "font/ttf": "ttf", "font/otf": "otf",
    "text/markdown": "md", "text/calendar": "ics", "application/yaml": "yaml yml",
    "application/toml": "toml", "application/geo+json": "geojson", "application/ld+json": "jsonld",
    "application/xhtml+xml": "xhtml xht", "application/gpx+xml": "gpx",
    "application/epub+zip": "epub", "application/gzip": "gz tgz", "application/x-7z-compressed": "7z",
    "application/vnd.rar": "rar", "model/gltf-binary": "glb", "model/gltf+json": "gltf",
    f"{_OFFICE_PREFIX}wordprocessingml.document": "docx", f"{_OFFICE_PREFIX}spreadsheetml.sheet": "xlsx",
    f"{_OFFICE_PREFIX}presentationml.presentation": "pptx",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
}  # fmt: skip
_NOT_PORTABLE = re.compile(r'[\\:*?"<>|]')
_UNKNOWN_TYPE = "application/octet-stream"
_TYPES = mimetypes.MimeTypes()
_TYPES.encodings_map, _TYPES.suffix_map = {}, {}  # Emptied, so that x.tar.gz is application/gzip.
for _type, _endings in _EXTRA_TYPES.items():
    for _ending in _endings.split():
        _TYPES.add_type(_type, f".{_ending}")


def mime_type(path: str) -> str:
    return _TYPES.guess_type(path, strict=False)[0] or _UNKNOWN_TYPE


def extension_of(mime: str) -> str:
    return "" if mime == _UNKNOWN_TYPE else _TYPES.guess_extension(mime, strict=False) or ""


def actual_extension(content: Path | bytes, extension: str) -> str:
    """Return `extension`, or the right extension if it is missing or contradicts the file's content."""
    # Only the types of images can be determined reliably from the first bytes.
    sniffed = sniff(content)
    if sniffed and sniffed[0].startswith("image/"):
        return extension if mime_type(f"x{extension}") == mime_type(f"x{sniffed[1]}") else sniffed[1]
    if extension.lower() in MEASURED_EXTENSIONS:
        return sniffed[1] if sniffed else ".txt" if is_text(content) else ".bin"
    return extension or (sniffed[1] if sniffed else "")


def upload_path(path: str) -> str | None:
    return path.removeprefix(f"{UPLOADS}/") if path.startswith(f"{UPLOADS}/") else None


def media_key(path: str) -> str | None:
    """Return the path of a media file in content/uploads/, normalized to NFC, as used in documents and URLs.

    Return None for other files.
    """
    inside = upload_path(path)
    return to_nfc(inside) if inside else None


def is_media_name(name: str) -> bool:
    """Return True if the name is valid on every operating system and is not ignored by Bifolio."""
    return name.isprintable() and not _NOT_PORTABLE.search(name) and all(map(_is_part, name.split("/")))


def _is_part(part: str) -> bool:
    is_device = part.partition(".")[0].strip().lower() in DEVICE_NAMES
    is_trimmed = part == part.strip().rstrip(".")
    return bool(part) and is_trimmed and not is_device and not is_ignored(part) and len(part) < 250


def read_media(
    type_: Type,
    path: str,
    size: int,
    description: Mapping[str, Tree],
    timestamps: tuple[str, str],
    locale: str,
    reading: Reading,
    image_size: ImageSize | None = None,
    formats: Mapping[str, Any] | None = None,
    placeholder: Placeholder | None = None,
    stored: StoredFile | None = None,
) -> Document:
    """Return the document of a media file. `size` is in bytes.

    If the file is in a bucket, `stored` is set.
    """
    inside = media_key(path) or path
    stem, ending = posixpath.splitext(posixpath.basename(inside))
    values: dict[str, Any] = {
        "name": posixpath.basename(inside),
        "hash": stem,
        "ext": ending,
        "mime": mime_type(inside),
        "size": kilobytes(size),
        "url": UPLOADS_URL + quote(inside),
        "provider": "local",
        "width": image_size.width if image_size else None,
        "height": image_size.height if image_size else None,
        "formats": formats or ({} if REPLACED_KEY in description else None),
        "provider_metadata": stored.as_metadata() if stored else None,
        PLACEHOLDER: placeholder,
    }
    warn_unknown(type_, description, (), reading, allowed=_DESCRIPTION_KEYS)
    for name in DESCRIBED_FIELDS:
        if name in description:
            value = read_value(type_.attributes[name], description[name], (name,), reading)
            values[name] = values.get(name) if value is None else value
    values["name"] = to_nfc(values["name"])
    if values["formats"]:
        values["formats"] = _with_name(values["formats"], values["name"])
    document_id = read_document_id(description, id_of_name(inside), reading)
    row = [values.get(name) for name in type_.attributes]
    published = read_file_timestamp(description, "publishedAt", timestamps[1], reading)
    return make_version(type_, document_id, row, (*timestamps, published), locale, path)


def with_formats(file: Document, formats: Mapping[str, Any], placeholder: Placeholder | None) -> Document:
    return file.with_values({"formats": _with_name(formats, file.get("name")), PLACEHOLDER: placeholder})


def _with_name(formats: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: {**one, "name": f"{key}_{name}"} for key, one in formats.items()}


def stored_media(
    type_: Type,
    path: str,
    stored: StoredFile,
    description: Mapping[str, Tree],
    timestamps: tuple[str, str],
    locale: str,
    reading: Reading,
) -> Document:
    """Return the document of a media file in a bucket.

    `path` is the path that the file would have on disk.
    """
    sizes = {
        name: {"width": one.width, "height": one.height, "bytes": one.object.size}
        for name, one in stored.formats.items()
    }
    return read_media(
        type_,
        path,
        stored.object.size,
        description,
        timestamps,
        locale,
        reading,
        ImageSize(stored.width, stored.height) if stored.width and stored.height else None,
        describe_variants(sizes, media_key(path) or path),
        stored.placeholder,
        stored,
    )


def stored_object(media: Mapping[str, Document], key: str) -> StoredObject | None:
    if key in media:
        return object_of(media[key].get("provider_metadata"))
    of_picture = split_variant_path(key)
    picture = media.get(of_picture[1]) if of_picture else None
    return object_of(picture.get("provider_metadata"), of_picture[0]) if of_picture and picture else None
