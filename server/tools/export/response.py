"""One file in an export."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Response:
    """A file to export. `request` is the request whose response it contains, or "" if there is none."""

    path: str
    request: str
    body: bytes
