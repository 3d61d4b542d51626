"""Owner sign-in with a one-time key."""

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

from server.auth.owner_session_files import KEY_TTL_S, age_of
from server.auth.permissions import Actor
from server.paths import state_folder, studio_folder

SESSION_PREFIX = "owner_"  # This prefix distinguishes the owner's session secrets from users' tokens.
OWNER = Actor("owner", everything=True)


def make_key(root: Path) -> str:
    """Create a one-time key that is valid for KEY_TTL_S seconds. Raises OSError if it can't be stored."""
    folder = _make_folder(root)
    for path in folder.glob("*.key"):
        if age_of(path) > KEY_TTL_S:
            path.unlink(missing_ok=True)
    key = secrets.token_urlsafe(32)
    _file(folder, key, "key").touch(mode=0o600)
    return key


def spend_key(root: Path, key: str) -> str | None:
    """Exchange a one-time key for the secret string of a new session.

    Return None if the key is unknown or has expired. Raises OSError if the session can't be stored.
    """
    folder, session = _make_folder(root), SESSION_PREFIX + secrets.token_urlsafe(32)
    path = _file(folder, key, "key")
    if age_of(path) > KEY_TTL_S:
        return None
    try:
        path.rename(_file(folder, session, "session"))
    except FileNotFoundError:
        return None
    return session


def is_session(root: Path, session: str, lifetime_s: float) -> bool:
    return age_of(_file(studio_folder(root), session, "session")) <= lifetime_s


def end_session(root: Path, session: str) -> None:
    with suppress(OSError):
        _file(studio_folder(root), session, "session").unlink()


def _make_folder(root: Path) -> Path:
    state_folder(root)
    folder = studio_folder(root)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _file(folder: Path, secret: str, kind: str) -> Path:
    return folder / f"{hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()}.{kind}"
