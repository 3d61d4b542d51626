"""Data classes for logins and login attempts."""

from dataclasses import dataclass

MAX_DEVICE_CHARS = 200  # Device ids and names are truncated to this length.
MIN_DEVICE_CHARS = 16  # Shorter device ids are ignored, because they could be guessed.


@dataclass(frozen=True, slots=True)
class Login:
    """A user's login. It expires at `expires_at`. Each renewal moves this time forward, but not beyond
    `ends_at`.
    """

    id: str
    user_id: int
    sessions: int
    turn: int
    device_id: str | None
    device_name: str | None
    began_at: str
    renewed_at: str
    expires_at: str
    ends_at: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login attempt. It contains the account, the identifier as typed, and the client's address.

    `device` is an id that the client sent, or "". Identifiers that look alike are treated as equal
    (`server.auth.user.name_key`).
    """

    account: str
    identifier: str
    address: str
    device: str = ""
