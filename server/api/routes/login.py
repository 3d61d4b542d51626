"""Functions for signing in: they check passwords, return responses to successful logins, and set the cookie
that contains the refresh token.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from flask import Request, Response

from server.api.operations.people import LOGIN
from server.api.request import FORM, answer, identities_of, read_body, state_of
from server.auth.login_record import MAX_DEVICE_CHARS, MIN_DEVICE_CHARS, Attempt, Login
from server.auth.user import User, name_key, public_fields
from server.config.model import Settings
from server.errors import ApplicationError, RateLimitError, ValidationError
from server.service.forms import read_form
from server.service.render import dumps

if TYPE_CHECKING:
    from server.auth.attempts import Attempts, Taken

WRONG = "Invalid identifier or password"
COOKIE = "strapi_up_refresh"
COOKIE_PATH = "/api/auth"
COOKIE_HEADER = "X-Strapi-Refresh-Cookie"  # With the value "httpOnly", the client requests the cookie.
MAX_AGENT_CHARS = 1024
# Regular expressions that find the browser or system in a User-Agent header. The first that matches is used.
_BROWSERS = {
    "Edge": r"\bEdg(e|A|iOS)?/",
    "Opera": r"\b(OPR|Opera)/",
    "Samsung Internet": r"\bSamsungBrowser/",
    "Vivaldi": r"\bVivaldi/",
    "Firefox": r"\b(Firefox|FxiOS)/",
    "Chrome": r"\b(Chrome|CriOS|Chromium)/",
    "Safari": r"\bSafari/",
}
_SYSTEMS = {
    "Windows": r"\bWindows NT\b",
    "iOS": r"\b(iPhone|iPad|iPod)\b",
    "Android": r"\bAndroid\b",
    "macOS": r"\b(Macintosh|Mac OS X)\b",
    "ChromeOS": r"\bCrOS\b",
    "Linux": r"\bLinux\b",
}


def prove_password(request: Request, body: object) -> User:
    """Check the identifier and password in a request body, and return the user. The number of attempts is
    limited.

    Raises ValidationError if the identifier or the password is wrong, and RateLimitError if a limit is
    reached. Raises ApplicationError if the user is blocked or has not confirmed the email address.
    """
    form = read_form(body, LOGIN)
    identities = identities_of(request)
    attempts, attempt = identities.directory().attempts, attempt_by(request, form["identifier"])
    device = device_of(body)
    if len(device) >= MIN_DEVICE_CHARS:
        attempt = replace(attempt, device=device)
    taken = count(attempts, attempt)
    user = identities.users.with_password(form["identifier"], form["password"])
    if user is None:
        raise ValidationError(WRONG)
    attempts.succeeded(attempt, taken)
    refuse_unready(user, state_of(request).settings)
    return user


def attempt_by(request: Request, identifier: str) -> Attempt:
    """Return a login attempt for the account with this user name or email address. If there is no such
    account, attempts are counted for the name or address instead.
    """
    return attempt_at(request, identities_of(request).users.resembling(identifier), identifier)


def attempt_at(request: Request, user: User | None, identifier: str) -> Attempt:
    """Return a login attempt for a user's account. If `user` is None, attempts are counted for the identifier
    instead.
    """
    key = name_key(identifier)
    return Attempt(f"user {user.id}" if user else f"name {key}", key, request.remote_addr or "")


def count(attempts: "Attempts", attempt: Attempt) -> "Taken":
    """Count a login attempt. Return the keys under which it was counted, for example a key for the account
    and a key for the IP address.

    Raises RateLimitError if a limit is reached.
    """
    taken = attempts.take(attempt)
    if taken is None:
        raise RateLimitError(max(1, ceil(attempts.wait_s(attempt))))
    return taken


def device_of(body: object) -> str:
    """Return the `deviceId` in a request body, truncated to MAX_DEVICE_CHARS. Returns "" if it is missing."""
    device = body.get("deviceId") if isinstance(body, dict) else None
    return device[:MAX_DEVICE_CHARS] if isinstance(device, str) else ""


def refuse_unready(user: User, settings: Settings) -> None:
    """Raise ApplicationError if the user is blocked or has not confirmed the email address."""
    if user.blocked:
        raise ApplicationError("Your account has been blocked by an administrator")
    if settings.auth.confirm_email and not user.confirmed:
        raise ApplicationError("Your account email is not confirmed")


def login_answer(request: Request, user: User, body: object = None) -> Response:
    """Return the response to a login request with a correct password.

    `body` is the request body, which may contain a `deviceId`.
    """
    settings, identities = state_of(request).settings, identities_of(request)
    shown = {"user": public_fields(user)}
    if not settings.auth.refresh:
        return answer(dumps({"jwt": identities.sessions.token(user), **shown}))
    device_id = device_of(body) or None
    agent = device_name(request.headers.get("User-Agent", ""))
    login = identities.logins.begin(user, settings.auth.idle, settings.auth.session, device_id, agent)
    return with_tokens(request, user, login, shown)


def with_tokens(request: Request, user: User, login: Login, shown: Mapping[str, object]) -> Response:
    """Return a response with an access token and a refresh token. The refresh token is either in the body or
    in a cookie (see `in_cookie`).
    """
    settings = state_of(request).settings
    sessions = identities_of(request).sessions
    access = sessions.access_token(user, login, settings.auth.access_token.total_seconds())
    refresh = sessions.refresh_token(login)
    if not in_cookie(request, settings):
        return answer(dumps({"jwt": access, "refreshToken": refresh, **shown}))
    response = answer(dumps({"jwt": access, **shown}))
    _set_cookie(request, response, refresh)
    return response


def forget_cookie(request: Request, response: Response) -> None:
    """Make the browser delete the cookie that contains the refresh token."""
    _set_cookie(request, response, "", expires=0)


def in_cookie(request: Request, settings: Settings) -> bool:
    """Whether the refresh token must be sent in a cookie instead of the body.

    This is the case if the setting `auth.cookie` is on, if the header X-Strapi-Refresh-Cookie requests a
    cookie, or if the request itself contained this cookie.
    """
    asked = request.headers.get(COOKIE_HEADER) == "httpOnly"
    return settings.auth.cookie or asked or bool(request.cookies.get(COOKIE))


def read_sign_in(request: Request) -> object:
    """Parse the body of a sign-in request. Raises ValidationError.

    If `auth.cookie` is on, the body must be JSON. Otherwise, any website could contain a form that signs a
    visitor in to someone else's account.
    """
    if request.mimetype == FORM and state_of(request).settings.auth.cookie:
        raise ValidationError("The request body must be JSON, because auth.cookie is set in site.yaml")
    return read_body(request)


def _set_cookie(request: Request, response: Response, value: str, expires: int | None = None) -> None:
    secure = request.is_secure or request.headers.get("X-Forwarded-Proto", "") == "https"
    response.set_cookie(
        COOKIE, value, expires=expires, path=COOKIE_PATH, secure=secure, httponly=True, samesite="Lax"
    )


def device_name(agent: str) -> str | None:
    """Return a name for the device that sent this User-Agent header, such as "Firefox on Linux". Returns None
    if neither the browser nor the system is known.
    """
    found = [_first(patterns, agent[:MAX_AGENT_CHARS]) for patterns in (_BROWSERS, _SYSTEMS)]
    return " on ".join(filter(None, found)) or None


def _first(patterns: Mapping[str, str], agent: str) -> str | None:
    return next((name for name, pattern in patterns.items() if re.search(pattern, agent)), None)
