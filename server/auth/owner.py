"""The owner of the machine: keys for one sign-in, and the sessions that these begin."""

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

from server.auth.owner_session_files import KEY_TTL_S, age_of
from server.auth.permissions import Actor
from server.paths import state_folder, studio_folder

SESSION_PREFIX = "owner_"  # Tells the secret of a session from the token of a user.
OWNER = Actor("owner", everything=True)


def make_key(root: Path) -> str:
    """A new key for one sign-in at the site at `root`. Raises OSError where it can't be kept."""
    folder = _make_folder(root)
    for path in folder.glob("*.key"):
        if age_of(path) > KEY_TTL_S:
            path.unlink(missing_ok=True)
    key = secrets.token_urlsafe(32)
    _file(folder, key, "key").touch(mode=0o600)
    return key


def spend_key(root: Path, key: str) -> str | None:
    """The secret of a new session, for a key that nobody has used yet; None for any other.

    Raises OSError where sessions can't be kept.
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
    """Whether a secret is that of a session that has not ended."""
    return age_of(_file(studio_folder(root), session, "session")) <= lifetime_s


def end_session(root: Path, session: str) -> None:
    """End a session, if there is one with this secret."""
    with suppress(OSError):
        _file(studio_folder(root), session, "session").unlink()


def _make_folder(root: Path) -> Path:
    state_folder(root)
    folder = studio_folder(root)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _file(folder: Path, secret: str, kind: str) -> Path:
    """The file of a secret: its name says nothing of that, whatever was sent."""
    return folder / f"{hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()}.{kind}"
