"""References from description files to objects in the bucket."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from server.formats.tree import Tree
from server.storage.images.variants import PLACEHOLDER_FIELDS, Placeholder

# For example, file: {sha256: 9f86…, ext: .png, size: 48213, width: 800, height: 600, formats: {thumbnail: …}}
DESCRIPTION_KEY = "file"
# Every description file that refers to a bucket contains this word, so searching for it is a fast first test.
STORED_MARK = re.compile(rb"\bsha256\b")
_HASH = re.compile(r"[0-9a-f]{64}")
_EXT = re.compile(r"(\.[A-Za-z0-9]{1,12})?")
_NAME = re.compile(r"[a-z]{1,20}")
_PATTERNS = {"placeholder": re.compile(r"[!-~]{6,100}"), "color": re.compile(r"#[0-9a-f]{6}")}
_EXPECTED = {"placeholder": "a BlurHash", "color": "a color such as #5b7f95"}
_NUMBER = re.compile(r"\d{1,15}")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Reference to an object in a bucket. `size` is in bytes, and `ext` is the file name extension."""

    sha256: str
    ext: str
    size: int

    @property
    def key(self) -> str:
        return f"{self.sha256[:2]}/{self.sha256}{self.ext}"


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """Resized variant of an image in a bucket."""

    object: StoredObject
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Media file in a bucket. The fields other than `object` are set only for images."""

    object: StoredObject
    width: int | None = None
    height: int | None = None
    formats: Mapping[str, StoredFormat] = field(default_factory=dict)
    placeholder: Placeholder | None = None

    @property
    def objects(self) -> Iterator[StoredObject]:
        yield self.object
        yield from (one.object for one in self.formats.values())

    def as_tree(self) -> dict[str, Tree]:
        ext = {"ext": self.object.ext} if self.object.ext else {}
        tree = {"sha256": self.object.sha256, **ext, "size": self.object.size}
        if self.width and self.height:
            tree |= {"width": self.width, "height": self.height}
        if self.placeholder:
            tree |= self.placeholder
        if self.formats:
            tree["formats"] = {name: _format_tree(one) for name, one in self.formats.items()}
        return tree

    def as_metadata(self) -> dict[str, Any]:
        formats = {n: {"sha256": f.object.sha256, "size": f.object.size} for n, f in self.formats.items()}
        object_ = {"sha256": self.object.sha256, "ext": self.object.ext, "size": self.object.size}
        return {**object_, "formats": formats} if formats else object_


def bucket_extension(extension: str) -> str:
    """Return `extension` in lower case for use in bucket keys, or "" if it is invalid."""
    return extension.lower() if _EXT.fullmatch(extension) else ""


def is_stored(description: Tree) -> bool:
    file = description.get(DESCRIPTION_KEY) if isinstance(description, dict) else None
    return isinstance(file, dict) and "sha256" in file


def read_stored(description: Mapping[str, Tree]) -> StoredFile:
    """Parse a description file's reference to the bucket.

    Raises ValueError, with a message for users, if the reference is invalid.
    """
    file = description[DESCRIPTION_KEY]
    ext = _text(file, "ext", _EXT, "an ending such as .png") if "ext" in file else ""
    formats = file.get("formats", {})
    width, height = (_number(file, side) if side in file else None for side in ("width", "height"))
    read = {str(name): _read_format(one, ext) for name, one in _mapping(formats).items()}
    if not all(map(_NAME.fullmatch, read)):
        raise ValueError(f"{DESCRIPTION_KEY}.formats must have names such as small")
    return StoredFile(_object(file, ext), width, height, read, _read_placeholder(file))


def _read_placeholder(file: Mapping[str, Tree]) -> Placeholder | None:
    if not all(name in file for name in PLACEHOLDER_FIELDS):
        return None
    return {name: _text(file, name, _PATTERNS[name], expected) for name, expected in _EXPECTED.items()}


def object_of(metadata: Any, format_: str = "") -> StoredObject | None:
    """Return the bucket object that a file's `provider_metadata` refers to, or None for a local file.

    If `format_` is the name of a resized variant, return the variant's object instead.
    """
    if not isinstance(metadata, dict) or "sha256" not in metadata:
        return None
    values = metadata.get("formats", {}).get(format_) if format_ else metadata
    return StoredObject(values["sha256"], metadata["ext"], int(values["size"])) if values else None


def objects_of(metadata: Any) -> Iterator[StoredObject]:
    names = ("", *metadata.get("formats", {})) if isinstance(metadata, dict) else ()
    return filter(None, (object_of(metadata, name) for name in names))


def _read_format(tree: Tree, ext: str) -> StoredFormat:
    mapping = _mapping(tree)
    return StoredFormat(_object(mapping, ext), _number(mapping, "width"), _number(mapping, "height"))


def _mapping(tree: Tree) -> Mapping[str, Tree]:
    mapping: Mapping[str, Tree] | None = tree if isinstance(tree, dict) else None
    if mapping is None:
        raise ValueError(f"{DESCRIPTION_KEY}.formats must be a mapping of mappings")
    return mapping


def _object(tree: Mapping[str, Tree], ext: str) -> StoredObject:
    sha256 = _text(tree, "sha256", _HASH, "64 hexadecimal digits")
    return StoredObject(sha256, ext, _number(tree, "size"))


def _format_tree(format_: StoredFormat) -> dict[str, Tree]:
    return {
        "sha256": format_.object.sha256,
        "size": format_.object.size,
        "width": format_.width,
        "height": format_.height,
    }


def _text(tree: Mapping[str, Tree], name: str, pattern: re.Pattern[str], expected: str) -> str:
    text = str(tree.get(name, ""))
    if not pattern.fullmatch(text):
        raise ValueError(f"{DESCRIPTION_KEY}.{name} must be {expected}")
    return text


def _number(tree: Mapping[str, Tree], name: str) -> int:
    text = str(tree.get(name, ""))
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{DESCRIPTION_KEY}.{name} must be a whole number")
    return int(text)
