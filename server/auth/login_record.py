"""Records of logins and of login attempts."""

from dataclasses import dataclass

MAX_DEVICE_CHARS = 200  # stored of the id or name of a device
MIN_DEVICE_CHARS = 16  # A shorter id could be guessed, so it does not identify a device.


@dataclass(frozen=True, slots=True)
class Login:
    """One login of a user. It ends at `expires_at` unless renewed, and at `ends_at` at the latest."""

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
    """Login attempt: an account, the identifier that names it, and the client's address.

    `device` is the client's id of the device, "" for none. Look-alike identifiers are the same
    (`server.auth.user.name_key`).
    """

    account: str
    identifier: str
    address: str
    device: str = ""
