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
    """Result of reading one file. It contains problems, and a document if the file could be parsed into one.

    - `digest` is the digest of the document file's bytes.
    - `derived` contains timestamps from git or the file system for those that the file does not set.
    - `beside` is the signature of the description, if the file is a media file.

    If a media file is in a bucket, `path` is the path of its description, and `document.path` is the path of
    the media file.
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
        """Whether the file exists but can't be served.

        In this case, its last good version is served, if there is one.
        """
        return self.document is None and any(p.severity == "error" for p in self.problems)


# A picture's size and its formats. Each is None for other files, or if it has not been computed.
ImageFacts = tuple[ImageSize | None, dict[str, Any] | None]
NO_FACTS: ImageFacts = (None, None)
# (path, modified in seconds since 1970) → (createdAt, updatedAt)
Timestamps = Callable[[str, float], tuple[str, str]]
