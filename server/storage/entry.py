"""Entry: the result of reading one file (a document, problems, or both)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document
from server.problems import Problem
from server.storage.files import Signature
from server.storage.images.kinds import ImageSize


@dataclass(frozen=True, slots=True)
class Entry:
    """Result of reading one file: the document in it, if the file could be parsed, and the problems found.

    - `digest` is the digest of the document file's bytes.
    - `derived` contains createdAt and updatedAt as derived from git or the file system, for files that do not
      set them.
    - `beside` is the signature of the description file, if the entry is for a media file.

    If the content of a media file is in a bucket, `path` is the path of the description, and `document.path`
    is the path that the media file would have on disk.
    """

    path: str
    signature: Signature | None
    document: Document | None = None
    problems: tuple[Problem, ...] = ()
    digest: bytes = b""
    derived: tuple[str, str] | None = None
    beside: Signature | None = None

    @property
    def broken(self) -> bool:
        """Whether the file exists but contains no valid document. Then the file's last valid document is
        served.
        """
        return self.document is None and any(p.severity == "error" for p in self.problems)


# An image's width and height in pixels, and its resized variants (formats). Each of the two is None if the
# file is not an image, or if it has not been computed yet.
ImageFacts = tuple[ImageSize | None, dict[str, Any] | None]
NO_FACTS: ImageFacts = (None, None)
# (path, modified in seconds since 1970) → (createdAt, updatedAt)
Timestamps = Callable[[str, float], tuple[str, str]]
