"""One file in an export."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Response:
    """A file to export. `request` is the API request whose response it contains."""

    path: str
    request: str
    body: bytes
