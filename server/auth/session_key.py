"""The key that signs JSON Web Tokens."""

import os
import pwd
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from server.errors import SetupError
from server.paths import STATE_FOLDER, keep_private, state_folder
from server.storage.durable import create_private_file, replace_private_file

KEY_VARIABLE = "BIFOLIO_JWT_SECRET"
PREVIOUS_KEY_VARIABLE = "BIFOLIO_JWT_SECRET_PREVIOUS"
MIN_KEY_CHARS = 32
KEY_FILE = "jwt.key"
# Contains two lines: the previous key, and the Unix time at which it expires.
PREVIOUS_KEY_FILE = "jwt.previous.key"


@dataclass(frozen=True, slots=True)
class PreviousKey:
    """The previous signing key, which is accepted until `until_s` (Unix time)."""

    text: str
    until_s: float

    def is_usable(self) -> bool:
        return time.time() < self.until_s


def session_key(root: Path) -> str:
    """Return the signing key. If there is none, create a file that contains a new key.

    Raises SetupError if the key is too short, or if its file can't be used.
    """
    if (given := _key_in(KEY_VARIABLE)) is not None:
        return given
    try:
        path = state_folder(root) / KEY_FILE
        if not path.exists():
            create_private_file(path, secrets.token_hex(32).encode())
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
    given = os.environ.get(variable)
    if given is not None and len(given) < MIN_KEY_CHARS:
        fix = "set a longer random key"
        raise SetupError(variable, None, f"is shorter than {MIN_KEY_CHARS} characters", fix)
    return given


def previous_key(root: Path) -> PreviousKey | None:
    """Return the previous key, or None if it does not exist or its grace period has ended.

    Raises SetupError if an environment variable contains a key that is too short.
    """
    if os.environ.get(KEY_VARIABLE) is not None:
        given = _key_in(PREVIOUS_KEY_VARIABLE)
        return PreviousKey(given, float("inf")) if given else None
    with suppress(OSError, ValueError):
        text, until = (state_folder(root) / PREVIOUS_KEY_FILE).read_text("utf-8").split()
        key = PreviousKey(text, float(until))
        return key if key.is_usable() and len(text) >= MIN_KEY_CHARS else None
    # The only effect of a damaged file is that the grace period ends early.
    return None


def rotate_key(root: Path, grace_s: float) -> None:
    """Replace the signing key. Tokens signed with the old key remain valid for `grace_s` seconds.

    Raises SetupError if the key is set by an environment variable, or if the key's files can't be written.
    """
    # The old key is saved first, so tokens remain valid even if the replacement is interrupted.
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
        replace_private_file(folder / PREVIOUS_KEY_FILE, f"{before}\n{until_s}\n".encode())
        replace_private_file(folder / KEY_FILE, secrets.token_hex(32).encode())
    except OSError as error:
        raise SetupError(f"{STATE_FOLDER}/{KEY_FILE}", None, f"can't be written: {error}") from error


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
