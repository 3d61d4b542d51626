"""An exported file, as the response to a request."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Response:
    """One exported file: its path, the API request whose response it contains, and its bytes."""

    path: str
    request: str
    body: bytes
