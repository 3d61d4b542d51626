"""Data classes for logins."""

from dataclasses import dataclass

MAX_DEVICE_CHARS = 200  # Device ids and device names are truncated to this length.
MIN_DEVICE_CHARS = 16  # Shorter device ids are ignored in login attempts, because they could be guessed.


@dataclass(frozen=True, slots=True)
class Login:
    """A user's login.

    It ends if the user's `sessions` changes. `turn` is the number of renewals.
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
    """A login attempt. `identifier` is normalized by `name_key`. `device` can be ""."""

    account: str
    identifier: str
    address: str
    device: str = ""
