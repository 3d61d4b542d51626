"""One file in an export."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Response:
    """A file to export.

    `request` is the URL (without the host) that returns the same content, or "" for a redirect file.
    """

    path: str
    request: str
    body: bytes
