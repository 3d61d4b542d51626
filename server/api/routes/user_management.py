"""Handlers for `/users` and `/tokens`, for administrators."""

from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.request import answer, budgeted_json_response, caller_of, parameters, read_body, state_of
from server.api.response import NO_STORE, PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import data_of
from server.auth import mail
from server.auth.login_record import Login
from server.auth.user import User
from server.config.model import Settings
from server.errors import ValidationError
from server.query.parse import PAGE_PARAMETERS, pagination, read_page_parameters
from server.service.render import dumps
from server.service.tokens import ListedToken, create_token, list_tokens, revoke_token
from server.service.user_management import (
    ListedUser,
    UserFilter,
    UserManagement,
    accept_invitation,
)

INVITATION_PLACE = "studio/site/-/invitation"  # Where a user chooses a password. The code is in the fragment.


def bind(handles: Handlers, identities: Identities) -> None:
    """Register the handlers."""
    outbox = mail.Outbox()
    bind_tokens(handles, identities)

    def users() -> UserManagement:
        return UserManagement(identities.directory(), caller_of(request))

    @handles("listUsers")
    def list_users() -> Response:
        managed, params = users(), parameters(request)
        page = read_page_parameters(params, managed.settings)
        found = managed.list(UserFilter(_text(params, "q"), _text(params, "role")))
        meta = {
            "pagination": pagination(page, len(found)),
            "roles": managed.assignable_roles(),
            "sendsMail": bool(managed.settings.mail.host),
            "passwordSignIn": managed.can_sign_in_with_password(),
        }
        rows = [user_json(user) for user in found[page.start : page.start + page.limit]]
        return budgeted_json_response(request, {"data": rows, "meta": meta}, PRIVATE_REVALIDATE)

    @handles("inviteUser")
    def invite() -> Response:
        base, data = link_base(), data_of(read_body(request))
        return show_invitation(base, *users().invite(data))

    @handles("inviteAgain")
    def invite_again(key: str) -> Response:
        base = link_base()
        return show_invitation(base, *users().invite_again(key))

    def link_base() -> str:
        public_url = state_of(request).settings.public_url
        if not public_url and not request.host:
            raise ValidationError("The Host header is empty, so the link in the invitation would be invalid")
        return public_url or request.url_root.rstrip("/")

    def show_invitation(base: str, user: ListedUser, code: str) -> Response:
        settings = state_of(request).settings
        link = f"{base}/{INVITATION_PLACE}#{code}"
        sends = bool(settings.mail.host)
        if sends:
            outbox.put(lambda: _mail_invitation(settings, user.user, link))
        return answer(dumps({"data": user_json(user), "meta": {"link": link, "sent": sends}}), 201, NO_STORE)

    @handles("acceptInvitation")
    def accept() -> Response:
        user = accept_invitation(identities.directory(), read_body(request))
        return answer(dumps({"data": {"username": user.username}}), cache_control=NO_STORE)

    @handles("getUser")
    def get_user(key: str) -> Response:
        return show_user(users().get(key))

    @handles("changeUser")
    def change_user(key: str) -> Response:
        if_match = request.headers.get("If-Match", "")
        return show_user(users().update(key, data_of(read_body(request)), if_match))

    @handles("removeUser")
    def remove_user(key: str) -> Response:
        users().delete(key)
        return Response(status=204)

    @handles("listSessions")
    def list_sessions(key: str) -> Response:
        rows = [_session_json(login) for login in users().sessions(key)]
        return answer(dumps({"data": rows}), cache_control=PRIVATE_REVALIDATE)

    @handles("endSessions")
    def end_sessions(key: str) -> Response:
        users().end_sessions(key)
        return Response(status=204)

    @handles("endSession")
    def end_session(key: str, session: str) -> Response:
        users().end_session(key, session)
        return Response(status=204)


def bind_tokens(handles: Handlers, identities: Identities) -> None:
    """Register the handlers for API tokens."""

    @handles("listTokens")
    def find_tokens() -> Response:
        caller = caller_of(request)
        params, settings = parameters(request), state_of(request).settings
        found = list_tokens(identities.directory(), caller)
        if not PAGE_PARAMETERS & params.keys():
            rows = [token_json(token) for token in found]
            return budgeted_json_response(request, {"data": rows}, PRIVATE_REVALIDATE)
        page = read_page_parameters(params, settings)
        rows = [token_json(token) for token in found[page.start : page.start + page.limit]]
        meta = {"pagination": pagination(page, len(found))}
        return budgeted_json_response(request, {"data": rows, "meta": meta}, PRIVATE_REVALIDATE)

    @handles("createToken")
    def new_token() -> Response:
        caller, data = caller_of(request), data_of(read_body(request))
        token, secret = create_token(identities.directory(), caller, data)
        return answer(dumps({"data": token_json(token), "meta": {"secret": secret}}), 201, NO_STORE)

    @handles("revokeToken")
    def remove_token(name: str) -> Response:
        revoke_token(identities.directory().accounts, caller_of(request), name)
        return Response(status=204)


def show_user(user: ListedUser) -> Response:
    response = answer(dumps({"data": user_json(user)}), cache_control=NO_STORE)
    response.headers["ETag"] = f'"{user.user.updated_at}"'
    return response


def user_json(listed: ListedUser) -> dict[str, Any]:
    """Return a user's JSON, without secrets."""
    user = listed.user
    return {
        "id": user.id,
        "username": user.username,
        "email": user.email,
        "role": user.role,
        "blocked": user.blocked,
        "invited": listed.is_invited,
        "createdAt": user.created_at,
        "lastSeen": listed.last_seen,
        "sessions": listed.sessions,
        "changeable": listed.is_changeable,
        "version": user.updated_at,
    }


def token_json(listed: ListedToken) -> dict[str, Any]:
    """Return a token's JSON, without its secret string."""
    token = listed.token
    return {
        "name": token.name,
        "type": token.kind,
        "permissions": token.permissions,
        "createdAt": token.created_at,
        "expiresAt": token.expires_at,
        "expired": token.expired,
        "lastUsed": listed.last_used,
        "branchOnly": token.branch_only,
        "maker": listed.maker,
        "changeable": listed.changeable,
    }


def _session_json(login: Login) -> dict[str, Any]:
    return {
        "id": login.id,
        "deviceName": login.device_name,
        "loginAt": login.began_at,
        "lastActiveAt": login.renewed_at,
        "expiresAt": login.expires_at,
    }


def _mail_invitation(settings: Settings, user: User, link: str) -> None:
    text = (
        f"Hello {user.username},\n\nyou are invited to {settings.name}. To choose your password, open this"
        f" link within a week:\n\n{link}\n"
    )
    mail.send(settings, user.email, f"{settings.name}: an invitation", text)


def _text(params: dict[str, object], name: str) -> str:
    value = params.get(name, "")
    if not isinstance(value, str):
        raise ValidationError(f'"{name}" must be a single string')
    return value
