"""The key of JSON web tokens: QUIRE_JWT_SECRET, or one made at the first start in .quire/."""

import os
import pwd
import secrets
from pathlib import Path

from server.errors import SetupError
from server.paths import STATE_FOLDER, keep_private, state_folder
from server.storage.durable import make_once

KEY_VARIABLE = "QUIRE_JWT_SECRET"
MIN_KEY_CHARS = 32


def session_key(root: Path) -> str:
    """The key of the site at `root`, made where there is none. Raises SetupError for one that is unusable."""
    given = os.environ.get(KEY_VARIABLE)
    if given is not None:
        if len(given) < MIN_KEY_CHARS:
            fix = "make a longer one at random"
            raise SetupError(KEY_VARIABLE, None, f"is shorter than {MIN_KEY_CHARS} characters", fix)
        return given
    try:
        path = state_folder(root) / "jwt.key"
        if not path.exists():
            make_once(path, secrets.token_hex(32).encode())
        keep_private(path)
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, PermissionError) and not os.path.exists(root / STATE_FOLDER):
            what = f"the folder can't be written by user {_user()}, and Quire keeps {STATE_FOLDER}/ in it"
            fix = "chown it, or run as its owner"
            raise SetupError(os.path.abspath(root), None, what, fix) from error
        fix = "look at its permissions, or delete it, which ends all sessions"
        raise SetupError(".quire/jwt.key", None, f"can't be used: {error}", fix) from error
    if len(key) < MIN_KEY_CHARS:  # With a key that can be guessed, anybody can log in as anybody.
        fix = "delete it, which ends all sessions"
        raise SetupError(".quire/jwt.key", None, f"is shorter than {MIN_KEY_CHARS} characters", fix)
    return key


def _user() -> str:
    """Return the name of the user that this process runs as, or its number if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
