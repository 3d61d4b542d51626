"""Password checks, login responses, and the refresh token's cookie."""

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
    from server.auth.attempts import AttemptLimiter, CountedKeys

WRONG = "Invalid identifier or password"
COOKIE = "strapi_up_refresh"
COOKIE_PATH = "/api/auth"
COOKIE_HEADER = "X-Strapi-Refresh-Cookie"  # the value "httpOnly" requests the cookie
MAX_AGENT_CHARS = 1024
# Regular expressions that find the browser or operating system in a User-Agent header. The first match wins.
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


def check_password(request: Request, body: object) -> User:
    """Check the user name and password in a request body, and return the user.

    Raises ValidationError if they are wrong, RateLimitError after too many attempts, and ApplicationError if
    the user is blocked or not confirmed.
    """
    form = read_form(body, LOGIN)
    identities = identities_of(request)
    attempts, attempt = identities.directory().login_limiter, login_attempt_for(request, form["identifier"])
    device = read_device_id(body)
    if len(device) >= MIN_DEVICE_CHARS:
        attempt = replace(attempt, device=device)
    taken = count_attempt(attempts, attempt)
    user = identities.users.authenticate(form["identifier"], form["password"])
    if user is None:
        raise ValidationError(WRONG)
    attempts.record_success(attempt, taken)
    require_active(user, state_of(request).settings)
    return user


def login_attempt_for(request: Request, identifier: str) -> Attempt:
    return login_attempt(request, identities_of(request).users.find_by_identifier(identifier), identifier)


def login_attempt(request: Request, user: User | None, identifier: str) -> Attempt:
    key = name_key(identifier)
    return Attempt(f"user {user.id}" if user else f"name {key}", key, request.remote_addr or "")


def count_attempt(attempts: "AttemptLimiter", attempt: Attempt) -> "CountedKeys":
    taken = attempts.count_attempt(attempt)
    if taken is None:
        raise RateLimitError(max(1, ceil(attempts.wait_s(attempt))))
    return taken


def read_device_id(body: object) -> str:
    device = body.get("deviceId") if isinstance(body, dict) else None
    return device[:MAX_DEVICE_CHARS] if isinstance(device, str) else ""


def require_active(user: User, settings: Settings) -> None:
    if user.blocked:
        raise ApplicationError("Your account has been blocked by an administrator")
    if settings.auth.confirm_email and not user.confirmed:
        raise ApplicationError("Your account email is not confirmed")


def login_response(request: Request, user: User, body: object = None) -> Response:
    """Begin a session, and return a response with its tokens and the user."""
    settings, identities = state_of(request).settings, identities_of(request)
    shown = {"user": public_fields(user)}
    if not settings.auth.refresh:
        return answer(dumps({"jwt": identities.sessions.token(user), **shown}))
    device_id = read_device_id(body) or None
    agent = device_name(request.headers.get("User-Agent", ""))
    login = identities.logins.begin(user, settings.auth.idle, settings.auth.session, device_id, agent)
    return token_response(request, user, login, shown)


def token_response(request: Request, user: User, login: Login, fields: Mapping[str, object]) -> Response:
    """Return a response that contains the tokens of a login.

    The refresh token is either in the body or in a cookie.
    """
    settings = state_of(request).settings
    sessions = identities_of(request).sessions
    access = sessions.access_token(user, login, settings.auth.access_token.total_seconds())
    refresh = sessions.refresh_token(login)
    if not uses_refresh_cookie(request, settings):
        return answer(dumps({"jwt": access, "refreshToken": refresh, **fields}))
    response = answer(dumps({"jwt": access, **fields}))
    _set_cookie(request, response, refresh)
    return response


def forget_cookie(request: Request, response: Response) -> None:
    _set_cookie(request, response, "", expires=0)


def uses_refresh_cookie(request: Request, settings: Settings) -> bool:
    asked = request.headers.get(COOKIE_HEADER) == "httpOnly"
    return settings.auth.cookie or asked or bool(request.cookies.get(COOKIE))


def read_sign_in(request: Request) -> object:
    # Otherwise, a form on any website could sign a visitor in to someone else's account.
    if request.mimetype == FORM and state_of(request).settings.auth.cookie:
        raise ValidationError("The request body must be JSON, because auth.cookie is set in site.yaml")
    return read_body(request)


def _set_cookie(request: Request, response: Response, value: str, expires: int | None = None) -> None:
    secure = request.is_secure or request.headers.get("X-Forwarded-Proto", "") == "https"
    response.set_cookie(
        COOKIE, value, expires=expires, path=COOKIE_PATH, secure=secure, httponly=True, samesite="Lax"
    )


def device_name(agent: str) -> str | None:
    found = [_first(patterns, agent[:MAX_AGENT_CHARS]) for patterns in (_BROWSERS, _SYSTEMS)]
    return " on ".join(filter(None, found)) or None


def _first(patterns: Mapping[str, str], agent: str) -> str | None:
    return next((name for name, pattern in patterns.items() if re.search(pattern, agent)), None)
