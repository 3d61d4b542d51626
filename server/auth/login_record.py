"""Data classes for logins and login attempts."""

from dataclasses import dataclass

MAX_DEVICE_CHARS = 200  # Device ids and device names are truncated to this length.
MIN_DEVICE_CHARS = 16  # Shorter device ids are ignored in login attempts, because they could be guessed.


@dataclass(frozen=True, slots=True)
class Login:
    """A user's login.

    - `sessions`: the user's `sessions` number when the login began. The login ends when the user's number
      changes.
    - `turn`: how many times the login has been renewed.
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
    """A login attempt, or a request for an email.

    - `identifier`: the user name or email address as typed, normalized by `name_key`.
    - `device`: the id of the device, or "" if it is unknown.
    """

    account: str
    identifier: str
    address: str
    device: str = ""
