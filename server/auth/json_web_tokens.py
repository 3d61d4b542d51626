"""JSON Web Tokens for users. When a user's password changes, all of this user's tokens become invalid."""

import time
from datetime import datetime
from typing import Any

import jwt

from server.auth.login_record import Login
from server.auth.session_key import PreviousKey
from server.auth.user import User

ALGORITHM = "HS256"


class JsonWebTokens:
    """The JSON Web Tokens for one site.

    Each token contains the site's id as its issuer. A site rejects tokens from other sites, even if they use
    the same signing key.
    """

    def __init__(
        self, key: str, lifetime_s: float, site_id: str, previous: PreviousKey | None = None
    ) -> None:
        self._key, self.lifetime_s, self._site_id, self._previous = key, lifetime_s, site_id, previous

    def token(self, user: User) -> str:
        """Return a token for a user who has just signed in. It is not connected to a login in the database,
        so it can't be ended individually.

        The token is valid until it expires, or until all of the user's sessions are ended (for example by a
        password change).
        """
        return self._encode({"id": user.id, "s": user.sessions}, time.time() + self.lifetime_s)

    def read(self, token: str) -> tuple[int, int] | None:
        """Verify a token that the method `token` has created. Return the user id and the user's `sessions`
        number. Returns None if the token is invalid.
        """
        try:
            claims = self._decode(token, ("id", "s"))
            return int(claims["id"]), int(claims["s"])
        except (jwt.PyJWTError, ValueError, TypeError):
            return None

    def access_token(self, user: User, login: Login, lifetime_s: float) -> str:
        """Return a short-lived access token for a login. It becomes invalid when the login ends."""
        expires = time.time() + lifetime_s
        return self._sign({"type": "access", "s": user.sessions}, login, expires)

    def read_access(self, token: str) -> tuple[int, int, str] | None:
        """Verify an access token. Return the user id, the user's `sessions` number and the login id. Returns
        None if the token is invalid.
        """
        return self._read_login(token, "access")

    def _read_login(self, token: str, kind: str) -> tuple[int, int, str] | None:
        claims = self._claims(token, kind, ("s",))
        return (int(claims["userId"]), int(claims["s"]), str(claims["sessionId"])) if claims else None

    def studio_token(self, user: User, login: Login) -> str:
        """Return the token for the studio's cookie. It expires at the login's `ends_at`, the latest time to
        which the login can be renewed.
        """
        expires = datetime.fromisoformat(login.ends_at).timestamp()
        return self._sign({"type": "studio", "s": user.sessions}, login, expires)

    def read_studio(self, token: str) -> tuple[int, int, str] | None:
        """Verify a token from the studio's cookie. Return the user id, the user's `sessions` number and the
        login id. Returns None if the token is invalid.
        """
        return self._read_login(token, "studio")

    def refresh_token(self, login: Login) -> str:
        """Return a refresh token. The client can use it only once, to renew the login."""
        expires = datetime.fromisoformat(login.expires_at).timestamp()
        return self._sign({"type": "refresh", "turn": login.turn}, login, expires)

    def read_refresh(self, token: str) -> tuple[str, int] | None:
        """Verify a refresh token. Return the login id, and the value that the login's `turn` had when the
        token was created. Returns None if the token is invalid.
        """
        claims = self._claims(token, "refresh", ("turn",))
        return (str(claims["sessionId"]), int(claims["turn"])) if claims else None

    def _sign(self, claims: dict[str, Any], login: Login, expires: float) -> str:
        return self._encode({"userId": str(login.user_id), "sessionId": login.id, **claims}, expires)

    def _claims(self, token: str, kind: str, more: tuple[str, ...]) -> dict[str, Any] | None:
        """Verify a token, which must be of the given kind. Return its claims (the token's content), or None
        if the token is invalid.
        """
        try:
            claims = self._decode(token, ("userId", "sessionId", "type", *more))
        except jwt.PyJWTError:
            return None
        return claims if claims["type"] == kind else None

    def _encode(self, claims: dict[str, Any], expires: float) -> str:
        registered = {"iss": self._site_id, "iat": int(time.time()), "exp": int(expires)}
        return jwt.encode({**claims, **registered}, self._key, ALGORITHM)

    def _decode(self, token: str, required: tuple[str, ...]) -> dict[str, Any]:
        """Verify a token, and return its claims (the token's content). The token may have been signed with
        the current or the previous key.

        Raises PyJWTError if the token is invalid, has expired, or was issued by another site.
        """
        try:
            return self._decode_with(self._key, token, required)
        except jwt.InvalidSignatureError:
            if self._previous is None or not self._previous.is_usable():
                raise
            return self._decode_with(self._previous.text, token, required)

    def _decode_with(self, key: str, token: str, required: tuple[str, ...]) -> dict[str, Any]:
        options: jwt.types.Options = {"require": ["iss", "exp", *required]}
        found: dict[str, Any] = jwt.decode(token, key, [ALGORITHM], issuer=self._site_id, options=options)
        return found
