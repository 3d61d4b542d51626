"""A login, as the accounts database keeps it (`server.auth.logins`), and an attempt at one."""

from dataclasses import dataclass

MAX_DEVICE_CHARS = 200  # of the id or name of a device that are kept
MIN_DEVICE_CHARS = 16  # A shorter id could be guessed, so that no device is known by it.


@dataclass(frozen=True, slots=True)
class Login:
    """One login of a user. It ends at `expires_at` unless it is renewed, and at `ends_at` in any case."""

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
    """What is tried (`server.auth.attempts`): an account, by an identifier that names it, from an address.

    `device` is the id that the client gives the device, "" for none.
    Identifiers that nobody could tell apart are the same here (`server.auth.user.name_key`).
    """

    account: str
    identifier: str
    address: str
    device: str = ""
