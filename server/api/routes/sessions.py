"""Handlers for /api/auth/refresh, /logout and /sessions. They return 404 if `auth.refresh` is off."""

from collections.abc import Mapping
from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.request import answer, read_body, require_permission, state_of
from server.api.response import NO_STORE
from server.api.routes.handlers import Handlers
from server.api.routes.login import COOKIE, forget_cookie, token_response, uses_refresh_cookie
from server.auth.login_record import Login
from server.errors import BadRequestError, NotFoundError, UnauthorizedError
from server.service.render import dumps


def bind(handles: Handlers, identities: Identities) -> None:
    """Register the handlers."""

    def permit(action: str) -> None:
        # Without `auth.refresh`, these paths do not exist.
        if not state_of(request).settings.auth.refresh:
            raise NotFoundError()
        require_permission(request, "auth", action)

    def caller(action: str) -> tuple[int, str]:
        """Check the permission for `action`. Return the user id and session id from the access token."""
        permit(action)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        claims = identities.sessions.read_access(token.strip()) if scheme.lower() == "bearer" else None
        if claims is None:
            raise UnauthorizedError("Missing authentication")
        return claims[0], claims[2]

    def form() -> Mapping[str, Any]:
        body = read_body(request)
        return body if isinstance(body, dict) else {}

    def refresh_token() -> str:
        token = request.cookies.get(COOKIE) or form().get("refreshToken")
        return token if isinstance(token, str) else ""

    @handles("refresh")
    def refresh() -> Response:
        permit("refresh")
        token = refresh_token()
        if not token:
            raise BadRequestError("Missing refresh token")
        known, settings = identities.sessions.read_refresh(token), state_of(request).settings
        login = identities.logins.renew(*known, settings.auth.idle) if known else None
        user = identities.users.get(login.user_id) if login else None
        if login is None or user is None or user.blocked:
            raise UnauthorizedError("Invalid refresh token")
        return token_response(request, user, login, {})

    @handles("logout")
    def logout() -> Response:
        user_id, login_id = caller("logout")
        body = form()
        device = body.get("deviceId")
        if body.get("scope") == "all":
            identities.logins.end_all(user_id)
        elif isinstance(device, str) and device:
            identities.logins.end_all(user_id, device)
        else:
            known = identities.sessions.read_refresh(refresh_token())
            identities.logins.end(user_id, known[0] if known else login_id)
        response = answer(dumps({"ok": True}))
        if uses_refresh_cookie(request, state_of(request).settings):
            forget_cookie(request, response)
        return response

    @handles("getSessions")
    def get_sessions() -> Response:
        user_id, login_id = caller("getSessions")
        found = sorted(identities.logins.list_for_user(user_id), key=lambda login: login.id != login_id)
        return answer(
            dumps({"data": [_login_json(login, login_id) for login in found]}), cache_control=NO_STORE
        )

    @handles("revokeSession")
    def revoke_session(session_id: str) -> Response:
        user_id, _ = caller("revokeSession")
        if not identities.logins.end(user_id, session_id):
            raise NotFoundError("Session not found")
        return answer(dumps({"data": {}}))


def _login_json(login: Login, current: str) -> dict[str, Any]:
    named = {"deviceName": login.device_name} if login.device_name else {}
    return {
        "id": login.id,
        "deviceId": login.device_id,
        **named,
        "current": login.id == current,
        "loginAt": login.began_at,
        "lastActiveAt": login.renewed_at,
    }
