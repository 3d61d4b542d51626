"""The key that signs JSON Web Tokens.

The key is read from the environment variable BIFOLIO_JWT_SECRET. If this variable is not set, the key is read
from the file .bifolio/jwt.key, which is created when a server starts for the first time. After the key was
replaced, tokens that were signed with the previous key remain valid for a grace period.
"""

import os
import pwd
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from server.errors import SetupError
from server.paths import STATE_FOLDER, keep_private, state_folder
from server.storage.durable import make_once, replace_private

KEY_VARIABLE = "BIFOLIO_JWT_SECRET"
PREVIOUS_KEY_VARIABLE = "BIFOLIO_JWT_SECRET_PREVIOUS"
MIN_KEY_CHARS = 32
KEY_FILE = "jwt.key"
# This file contains the previous key, and a second line with the Unix time at which the key expires.
PREVIOUS_KEY_FILE = "jwt.previous.key"


@dataclass(frozen=True, slots=True)
class PreviousKey:
    """The signing key that was used before the current one. It is used only to verify tokens, and only until
    `until_s` (Unix time).
    """

    text: str
    until_s: float

    def is_usable(self) -> bool:
        """Whether tokens signed with this key are still valid."""
        return time.time() < self.until_s


def session_key(root: Path) -> str:
    """Return the signing key for the site at `root`. If neither the environment variable nor the key file
    exists, create the file with a random key.

    Raises SetupError if the key can't be read or created, or is too short.
    """
    if (given := _key_in(KEY_VARIABLE)) is not None:
        return given
    try:
        path = state_folder(root) / KEY_FILE
        if not path.exists():
            make_once(path, secrets.token_hex(32).encode())
        keep_private(path)
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, PermissionError) and not os.path.exists(root / STATE_FOLDER):
            what = (
                f"the user {_user()} can't write to the folder, in which Bifolio must create {STATE_FOLDER}/"
            )
            fix = "change the folder's owner, or run Bifolio as its owner"
            raise SetupError(os.path.abspath(root), None, what, fix) from error
        fix = "check the file's permissions; if you delete the file, all sessions end"
        raise SetupError(".bifolio/jwt.key", None, f"can't be used: {error}", fix) from error
    # Short keys are rejected, because anyone who guesses the key can sign in as any user.
    if len(key) < MIN_KEY_CHARS:
        fix = "delete the file; all sessions will end"
        raise SetupError(".bifolio/jwt.key", None, f"is shorter than {MIN_KEY_CHARS} characters", fix)
    return key


def _key_in(variable: str) -> str | None:
    """Return the key in an environment variable. Returns None if the variable is not set. Raises SetupError
    if the key is too short.
    """
    given = os.environ.get(variable)
    if given is not None and len(given) < MIN_KEY_CHARS:
        fix = "set a longer random key"
        raise SetupError(variable, None, f"is shorter than {MIN_KEY_CHARS} characters", fix)
    return given


def previous_key(root: Path) -> PreviousKey | None:
    """Return the signing key that was used before the current one. Returns None if there is none, or if its
    grace period has ended.

    If the current key comes from an environment variable, the previous key comes from
    BIFOLIO_JWT_SECRET_PREVIOUS, and remains valid as long as this variable is set. Raises SetupError if that
    key is too short.
    """
    if os.environ.get(KEY_VARIABLE) is not None:
        given = _key_in(PREVIOUS_KEY_VARIABLE)
        return PreviousKey(given, float("inf")) if given else None
    with suppress(OSError, ValueError):
        text, until = (state_folder(root) / PREVIOUS_KEY_FILE).read_text("utf-8").split()
        key = PreviousKey(text, float(until))
        return key if key.is_usable() and len(text) >= MIN_KEY_CHARS else None
    # A damaged file is ignored. Tokens that were signed with the previous key are then invalid before the
    # grace period ends.
    return None


def rotate_key(root: Path, grace_s: float) -> None:
    """Replace the signing key. Tokens that were signed with the old key remain valid for `grace_s` seconds.

    The old key is saved before the new key is stored. Tokens therefore remain valid even if the replacement
    is interrupted. Raises SetupError if the key is set in an environment variable, or if a file can't be
    written.
    """
    if os.environ.get(KEY_VARIABLE) is not None:
        fix = (
            f"set the new key there and the previous key in {PREVIOUS_KEY_VARIABLE}, then restart the servers"
        )
        raise SetupError(
            KEY_VARIABLE, None, "contains this site's key, so this command can't replace the key", fix
        )
    before, folder = session_key(root), state_folder(root)
    until_s = time.time() + grace_s
    try:
        replace_private(folder / PREVIOUS_KEY_FILE, f"{before}\n{until_s}\n".encode())
        replace_private(folder / KEY_FILE, secrets.token_hex(32).encode())
    except OSError as error:
        raise SetupError(f"{STATE_FOLDER}/{KEY_FILE}", None, f"can't be written: {error}") from error


def _user() -> str:
    """Return the name of the user account that runs this process, or its numeric id if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
