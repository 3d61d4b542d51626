"""Result of reading one file."""

from collections.abc import Callable
from typing import Any, NamedTuple

from server.documents.document import Document
from server.problems import Problem
from server.storage.files import Signature
from server.storage.images.kinds import ImageSize
from server.storage.images.variants import Placeholder

# If a file is changed again within this time, its signature may stay the same.
RACY_WINDOW_NS = 2_000_000_000


class Entry(NamedTuple):
    """Result of reading one file. `document` is None if the file is invalid.

    For a media file in a bucket, `path` is the path of its description file. For any other media file,
    `beside` is the signature of its description file. `derived` contains createdAt and updatedAt if the file
    itself does not contain them. `read_at_ns` is 0 if the entry is not in the cache.
    """

    path: str
    signature: Signature | None
    document: Document | None = None
    problems: tuple[Problem, ...] = ()
    digest: bytes = b""
    derived: tuple[str, str] | None = None
    beside: Signature | None = None
    document_id: str = ""
    read_at_ns: int = 0

    @property
    def is_settled(self) -> bool:
        """True if an unchanged signature guarantees that the file is unchanged."""
        # Faster without calls, because it is tested for each of up to hundreds of thousands of files.
        signature, limit = self.signature, self.read_at_ns - RACY_WINDOW_NS
        return signature is not None and signature[0] < limit and signature[3] < limit

    @property
    def broken(self) -> bool:
        return self.document is None and self.error is not None

    @property
    def error(self) -> Problem | None:
        """The first error in the file, or None.

        Despite the error, the document's last valid version may still be served.
        """
        return next((problem for problem in self.problems if problem.severity == "error"), None)


# An image's width and height in pixels, its resized variants (formats), and its placeholder and main color.
# Each is None if the file is not an image, or if that value has not been computed yet.
ImageFacts = tuple[ImageSize | None, dict[str, Any] | None, Placeholder | None]
NO_FACTS: ImageFacts = (None, None, None)
# (path, mtime in seconds since 1970) → (createdAt, updatedAt)
Timestamps = Callable[[str, float], tuple[str, str]]
