"""Entries: a file as the file store has read it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document
from server.problems import Problem
from server.storage.files import Signature
from server.storage.images.kinds import ImageSize


@dataclass(frozen=True, slots=True)
class Entry:
    """What was read from one file: its document, if it holds one, and the problems in it.

    `digest` is of a document's file, and `derived` has the timestamps that it took from git or from the
    file system, having none of its own. `beside` is the signature of a media file's description. Where the
    file is in a bucket, the entry is of its description, and the path of its document is that of the file.
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
        """Whether the file exists and can't be served; its last good version is served, if there was one."""
        return self.document is None and any(p.severity == "error" for p in self.problems)


# What a picture is: its size, and its formats if they are made; None for what there is not.
ImageFacts = tuple[ImageSize | None, dict[str, Any] | None]
NO_FACTS: ImageFacts = (None, None)
# (path, modified in seconds since 1970) → (createdAt, updatedAt)
Timestamps = Callable[[str, float], tuple[str, str]]
