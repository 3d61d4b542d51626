"""The data classes for logins and login attempts."""

from dataclasses import dataclass

MAX_DEVICE_CHARS = 200  # Device ids and device names are truncated to this length.
MIN_DEVICE_CHARS = 16  # A shorter device id is ignored in login attempts, because it could be guessed.


@dataclass(frozen=True, slots=True)
class Login:
    """A user's login. It expires at `expires_at`. Each time it is renewed, this time moves forward, but not
    beyond `ends_at`.
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
    """A login attempt. It contains the account, the identifier as typed, and the client's network address.

    `device` is the id that the client sent, or "". Identifiers that look alike have the same key, and are
    treated as equal (`server.auth.user.name_key`).
    """

    account: str
    identifier: str
    address: str
    device: str = ""
