"""JSON Web Tokens, which authenticate users' requests."""

import time
from datetime import datetime
from typing import Any

import jwt

from server.auth.login_record import Login
from server.auth.session_key import PreviousKey
from server.auth.user import User

ALGORITHM = "HS256"


class JsonWebTokens:
    """Issuer and verifier of JSON Web Tokens."""

    # The issuer is the site's id, so sites reject each other's tokens even if they share a key.

    def __init__(
        self, key: str, lifetime_s: float, site_id: str, previous: PreviousKey | None = None
    ) -> None:
        self._key, self.lifetime_s, self._site_id, self._previous = key, lifetime_s, site_id, previous

    def token(self, user: User) -> str:
        """Return a JSON Web Token for a user. The token can't be renewed."""
        return self._encode({"id": user.id, "s": user.sessions}, time.time() + self.lifetime_s)

    def read(self, token: str) -> tuple[int, int] | None:
        """Return the user id and the `sessions` number from a token, or None if the token is invalid."""
        try:
            claims = self._decode(token, ("id", "s"))
            return int(claims["id"]), int(claims["s"])
        except (jwt.PyJWTError, ValueError, TypeError):
            return None

    def access_token(self, user: User, login: Login, lifetime_s: float) -> str:
        expires = time.time() + lifetime_s
        return self._sign({"type": "access", "s": user.sessions}, login, expires)

    def read_access(self, token: str) -> tuple[int, int, str] | None:
        return self._read_login(token, "access")

    def _read_login(self, token: str, kind: str) -> tuple[int, int, str] | None:
        claims = self._claims(token, kind, ("s",))
        return (int(claims["userId"]), int(claims["s"]), str(claims["sessionId"])) if claims else None

    def studio_token(self, user: User, login: Login) -> str:
        expires = datetime.fromisoformat(login.ends_at).timestamp()
        return self._sign({"type": "studio", "s": user.sessions}, login, expires)

    def read_studio(self, token: str) -> tuple[int, int, str] | None:
        return self._read_login(token, "studio")

    def refresh_token(self, login: Login) -> str:
        expires = datetime.fromisoformat(login.expires_at).timestamp()
        return self._sign({"type": "refresh", "turn": login.turn}, login, expires)

    def read_refresh(self, token: str) -> tuple[str, int] | None:
        claims = self._claims(token, "refresh", ("turn",))
        return (str(claims["sessionId"]), int(claims["turn"])) if claims else None

    def _sign(self, claims: dict[str, Any], login: Login, expires: float) -> str:
        return self._encode({"userId": str(login.user_id), "sessionId": login.id, **claims}, expires)

    def _claims(self, token: str, kind: str, more: tuple[str, ...]) -> dict[str, Any] | None:
        try:
            claims = self._decode(token, ("userId", "sessionId", "type", *more))
        except jwt.PyJWTError:
            return None
        return claims if claims["type"] == kind else None

    def _encode(self, claims: dict[str, Any], expires: float) -> str:
        registered = {"iss": self._site_id, "iat": int(time.time()), "exp": int(expires)}
        return jwt.encode({**claims, **registered}, self._key, ALGORITHM)

    def _decode(self, token: str, required: tuple[str, ...]) -> dict[str, Any]:
        # The previous key is accepted until its grace period ends.
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
