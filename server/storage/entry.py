"""Entry: the result of reading one file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document
from server.problems import Problem
from server.storage.files import Signature
from server.storage.images.kinds import ImageSize


@dataclass(frozen=True, slots=True)
class Entry:
    """Result of reading one file: its document, if the file is valid, and all problems found."""

    path: str  # for media in a bucket, the path of the description file
    signature: Signature | None
    document: Document | None = None
    problems: tuple[Problem, ...] = ()
    digest: bytes = b""
    derived: tuple[str, str] | None = None  # createdAt and updatedAt, if the file does not set them
    beside: Signature | None = None  # signature of a media file's description file

    @property
    def broken(self) -> bool:
        """True if the file contains no valid document."""
        return self.document is None and any(p.severity == "error" for p in self.problems)


# An image's width and height in pixels, and its resized variants (formats). Either is None if the file is not
# an image, or if that value has not been computed yet.
ImageFacts = tuple[ImageSize | None, dict[str, Any] | None]
NO_FACTS: ImageFacts = (None, None)
# (path, mtime in seconds since 1970) → (createdAt, updatedAt)
Timestamps = Callable[[str, float], tuple[str, str]]
