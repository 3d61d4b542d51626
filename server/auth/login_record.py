"""Data classes for logins and login attempts."""

from dataclasses import dataclass

MAX_DEVICE_CHARS = 200  # Device ids and device names are truncated to this length.
MIN_DEVICE_CHARS = 16  # Shorter device ids are ignored in login attempts, because they could be guessed.


@dataclass(frozen=True, slots=True)
class Login:
    """A user's login. Renewals move `expires_at` forward, but not beyond `ends_at`.

    - `turn`: the number of renewals.
    - `sessions`: the user's `sessions` number at the time of the login. The login ends if it changes.
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
    """A login attempt.

    - `account` identifies the user.
    - `identifier` is the name or email address that was typed, normalized by `name_key`.
    - `address` is the client's network address.
    - `device` is the id that the client sent, or "".
    """

    account: str
    identifier: str
    address: str
    device: str = ""
