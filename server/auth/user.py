"""Users, and functions that validate and normalize their data."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from server.documents.constraints import MAX_EMAIL_CHARS, is_email
from server.formats.normal_form import normalize

MIN_NAME_CHARS, MIN_PASSWORD_CHARS = 3, 6
MAX_CHARS = {"username": 200, "email": MAX_EMAIL_CHARS}  # maximum lengths of the database columns
DEFAULT_MAX_CHARS = 1024
# Fields that a request body can change. Other keys are ignored, because clients often send back all fields.
SETTABLE_FIELDS = ("username", "email", "password", "confirmed", "blocked", "role")
OWN_FIELDS = ("username", "email")  # Fields that users can change in their own account.
# Invisible characters (Unicode categories Cc, Cf, Zl and Zp), for use inside [] in a regular expression.
INVISIBLE_CHARS = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001"
    "\U000e0020-\U000e007f"
)
_INVISIBLE = re.compile(f"[{INVISIBLE_CHARS}]")
_JOINERS = "\u200c\u200d"
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class User:
    """A user. Incrementing `sessions` ends all of the user's sessions."""

    id: int
    document_id: str
    username: str
    email: str
    provider: str
    confirmed: bool
    blocked: bool
    role: str
    sessions: int
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class UserChanges:
    """The changes since an earlier version of the list of users.

    - `users`: the users that have changed.
    - `count`: the total number of users.
    - `version`: the number of the current version.
    """

    users: list[User]
    count: int
    version: int


def violated_rule(name: str, value: str, min_chars: int = 1) -> str:
    """Return the rule that the value of a field violates, such as "must be a valid email".

    Return "" if the value is valid.
    """
    # The maximum length is checked first, because the other checks are slow for long strings.
    longest = MAX_CHARS.get(name, DEFAULT_MAX_CHARS)
    if len(value) > longest or (name == "username" and len(name_key(value)) > longest):
        return f"must be at most {longest} characters"
    if _CONTROL.search(value):
        return "must not have control characters"
    if name == "username" and _has_invisible(value):
        return "must not have invisible characters"
    if name == "email" and not is_email(value):
        return "must be a valid email"
    length = len(value.strip()) if name == "username" else len(value)
    return f"must be at least {min_chars} characters" if length < min_chars else ""


def _has_invisible(value: str) -> bool:
    # Invisible characters could make a name look like another. Joiners between letters that are not ASCII are
    # allowed, because some scripts need them.
    return any(
        not (found[0] in _JOINERS and _is_letter(value[i - 1 : i]) and _is_letter(value[i + 1 : i + 2]))
        for found in _INVISIBLE.finditer(value)
        for i in (found.start(),)
    )


def _is_letter(char: str) -> bool:
    return not char.isascii() and unicodedata.category(char)[0] in "LM"


def public_fields(user: User) -> dict[str, Any]:
    """Return the JSON object that represents the user in a login response."""
    return {
        "id": user.id,
        "documentId": user.document_id,
        "username": user.username,
        "email": user.email,
        "provider": user.provider,
        "confirmed": user.confirmed,
        "blocked": user.blocked,
        "createdAt": user.created_at,
        "updatedAt": user.updated_at,
        "publishedAt": user.created_at,
    }


def plain_name(text: str) -> str:
    return normalize("NFC", text.strip())


def name_key(text: str) -> str:
    # Names that look alike, such as `Ann` and ` ann`, have the same key.
    return normalize("NFKC", normalize("NFKC", text.strip()).casefold())


def plain_address(text: str) -> str:
    return text.strip().lower()
