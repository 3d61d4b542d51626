"""The result of reading one file: a document, or the problems that prevent it from being served."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document
from server.problems import Problem
from server.storage.files import Signature
from server.storage.images.kinds import ImageSize
from server.storage.images.variants import Placeholder


@dataclass(frozen=True, slots=True)
class Entry:
    """Result of reading one file: its document, if the file is valid, and all problems found.

    - `path`: the file's path. For media in a bucket, it is the path of the description file.
    - `derived`: createdAt and updatedAt, if the file does not set them.
    - `beside`: the signature of a media file's description file.
    - `document_id`: the `documentId` in a file with an error, if it could be read.
    """

    path: str
    signature: Signature | None
    document: Document | None = None
    problems: tuple[Problem, ...] = ()
    digest: bytes = b""
    derived: tuple[str, str] | None = None
    beside: Signature | None = None
    document_id: str = ""

    @property
    def broken(self) -> bool:
        """True if the file contains no valid document."""
        return self.document is None and self.error is not None

    @property
    def error(self) -> Problem | None:
        """The first error in the file, or None.

        A file with an error is not served, but the last valid version of its document may be.
        """
        return next((problem for problem in self.problems if problem.severity == "error"), None)


# An image's width and height in pixels, its resized variants (formats), and its placeholder and main color.
# Each is None if the file is not an image, or if that value has not been computed yet.
ImageFacts = tuple[ImageSize | None, dict[str, Any] | None, Placeholder | None]
NO_FACTS: ImageFacts = (None, None, None)
# (path, mtime in seconds since 1970) → (createdAt, updatedAt)
Timestamps = Callable[[str, float], tuple[str, str]]
