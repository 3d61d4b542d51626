"""One file in an export."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Response:
    """A file to export, and the request that it answers ("" if there is none)."""

    path: str
    request: str
    body: bytes
