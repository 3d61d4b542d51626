"""Sessions: JSON web tokens, their key, and keys of the machine's owner."""

import hashlib
import os
import pwd
import secrets
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import jwt

from server.auth.logins import Login
from server.auth.permissions import Actor
from server.auth.session_files import KEY_S, age_of
from server.auth.user import User
from server.errors import SetupError
from server.paths import FOLDER, keep_private, state_folder, studio_folder
from server.storage.durable import make_once

ALGORITHM = "HS256"


class Sessions:
    """Makes and reads the tokens of one site.

    Each token names its site, as the issuer: another site with the same key has other users.
    """

    def __init__(self, key: str, lifetime_s: float, site_id: str) -> None:
        self._key, self.lifetime_s, self._site_id = key, lifetime_s, site_id

    def token(self, user: User) -> str:
        """A token for a user who has just proved who it is."""
        return self._encoded({"id": user.id, "s": user.sessions}, time.time() + self.lifetime_s)

    def read(self, token: str) -> tuple[int, int] | None:
        """(user id, sessions number) of a sound token that has not expired, or None."""
        try:
            claims = self._decoded(token, ("id", "s"))
            return int(claims["id"]), int(claims["s"])
        except (jwt.PyJWTError, ValueError, TypeError):
            return None

    def access_token(self, user: User, login: Login, lifetime_s: float) -> str:
        """A token with which a user acts for a short while; it ends with the login as well."""
        expires = time.time() + lifetime_s
        return self._sign({"type": "access", "s": user.sessions}, login, expires)

    def read_access(self, token: str) -> tuple[int, int, str] | None:
        """(user id, sessions number, login id) of a sound access token that has not expired, or None."""
        return self._read_login(token, "access")

    def _read_login(self, token: str, kind: str) -> tuple[int, int, str] | None:
        claims = self._claims(token, kind, ("s",))
        return (int(claims["userId"]), int(claims["s"]), str(claims["sessionId"])) if claims else None

    def studio_token(self, user: User, login: Login) -> str:
        """The token in the cookie of the studio; it ends with the login."""
        expires = datetime.fromisoformat(login.ends_at).timestamp()
        return self._sign({"type": "studio", "s": user.sessions}, login, expires)

    def read_studio(self, token: str) -> tuple[int, int, str] | None:
        """(user id, sessions number, login id) of a sound token of the studio, or None."""
        return self._read_login(token, "studio")

    def refresh_token(self, login: Login) -> str:
        """The token with which a login is renewed, once."""
        expires = datetime.fromisoformat(login.expires_at).timestamp()
        return self._sign({"type": "refresh", "turn": login.turn}, login, expires)

    def read_refresh(self, token: str) -> tuple[str, int] | None:
        """(id of the login, turn) of a sound refresh token that has not expired, or None."""
        claims = self._claims(token, "refresh", ("turn",))
        return (str(claims["sessionId"]), int(claims["turn"])) if claims else None

    def _sign(self, claims: dict[str, Any], login: Login, expires: float) -> str:
        return self._encoded({"userId": str(login.user_id), "sessionId": login.id, **claims}, expires)

    def _claims(self, token: str, kind: str, more: tuple[str, ...]) -> dict[str, Any] | None:
        """What a sound token of a kind says, which has all the claims that it must have."""
        try:
            claims = self._decoded(token, ("userId", "sessionId", "type", *more))
        except jwt.PyJWTError:
            return None
        return claims if claims["type"] == kind else None

    def _encoded(self, claims: dict[str, Any], expires: float) -> str:
        registered = {"iss": self._site_id, "iat": int(time.time()), "exp": int(expires)}
        return jwt.encode({**claims, **registered}, self._key, ALGORITHM)

    def _decoded(self, token: str, required: tuple[str, ...]) -> dict[str, Any]:
        """What a token says. Raises PyJWTError for one that is not sound, expired, or of another site."""
        options: jwt.types.Options = {"require": ["iss", "exp", *required]}
        found: dict[str, Any] = jwt.decode(
            token, self._key, [ALGORITHM], issuer=self._site_id, options=options
        )
        return found


# --- session key ----------------------------------------------------------------------------------

VARIABLE = "QUIRE_JWT_SECRET"
SHORTEST_KEY = 32


def session_key(root: Path) -> str:
    """The key of the site at `root`, made where there is none. Raises SetupError for one that is unusable."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        if len(given) < SHORTEST_KEY:
            fix = "make a longer one at random"
            raise SetupError(VARIABLE, None, f"is shorter than {SHORTEST_KEY} characters", fix)
        return given
    try:
        path = state_folder(root) / "jwt.key"
        if not path.exists():
            make_once(path, secrets.token_hex(32).encode())
        keep_private(path)
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, PermissionError) and not os.path.exists(root / FOLDER):
            what = f"the folder can't be written by user {_user()}, and Quire keeps {FOLDER}/ in it"
            fix = "chown it, or run as its owner"
            raise SetupError(os.path.abspath(root), None, what, fix) from error
        fix = "look at its permissions, or delete it, which ends all sessions"
        raise SetupError(".quire/jwt.key", None, f"can't be used: {error}", fix) from error
    if len(key) < SHORTEST_KEY:  # With a key that can be guessed, anybody can log in as anybody.
        fix = "delete it, which ends all sessions"
        raise SetupError(".quire/jwt.key", None, f"is shorter than {SHORTEST_KEY} characters", fix)
    return key


def _user() -> str:
    """Return the name of the user that this process runs as, or its number if it has no name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


# --- owner ----------------------------------------------------------------------------------------

PREFIX = "owner_"  # of the secret of a session, which tells it from the token of a user
OWNER = Actor("owner", everything=True)


def make_key(root: Path) -> str:
    """A new key for one sign-in at the site at `root`. Raises OSError where it can't be kept."""
    folder = _made_folder(root)
    for path in folder.glob("*.key"):
        if age_of(path) > KEY_S:
            path.unlink(missing_ok=True)
    key = secrets.token_urlsafe(32)
    _file(folder, key, "key").touch(mode=0o600)
    return key


def spend_key(root: Path, key: str) -> str | None:
    """The secret of a new session, for a key that nobody has used yet; None for any other.

    Raises OSError where sessions can't be kept.
    """
    folder, session = _made_folder(root), PREFIX + secrets.token_urlsafe(32)
    path = _file(folder, key, "key")
    if age_of(path) > KEY_S:
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


def _made_folder(root: Path) -> Path:
    state_folder(root)
    folder = studio_folder(root)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _file(folder: Path, secret: str, kind: str) -> Path:
    """The file of a secret: its name says nothing of that, whatever was sent."""
    return folder / f"{hashlib.sha256(secret.encode(errors='surrogatepass')).hexdigest()}.{kind}"
