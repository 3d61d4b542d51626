"""Handlers for /api/auth and /api/connect."""

from urllib.parse import urlencode

from flask import Response, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from server.api.identities import Identities
from server.api.operations.people import CHANGE, EMAIL, LOGIN, REGISTER, RESET
from server.api.request import answer, parameters, read_body, require_permission, state_of
from server.api.response import NO_STORE
from server.api.routes.handlers import Handlers
from server.api.routes.login import (
    check_password,
    count_attempt,
    login_attempt,
    login_attempt_for,
    login_response,
    read_sign_in,
    require_active,
)
from server.auth import mail
from server.auth.user import User, public_fields
from server.config.model import Settings
from server.errors import ApplicationError, ValidationError
from server.service.forms import read_form, reject_unknown_fields
from server.service.render import dumps

NO_PROVIDER_MESSAGE = "This provider is disabled"  # OAuth is not supported.


def bind(handles: Handlers, identities: Identities) -> None:
    """Register the handlers."""
    outbox = mail.Outbox()

    def count_mail(email: str) -> None:
        count_attempt(identities.directory().email_limiter, login_attempt_for(request, email))

    @handles("login")
    def login() -> Response:
        require_permission(request, "auth", "callback")
        body = read_sign_in(request)
        user = check_password(request, body)
        return login_response(request, user, body=body)

    @handles("register")
    def register() -> Response:
        require_permission(request, "auth", "register")
        body = read_sign_in(request)
        reject_unknown_fields(body, REGISTER)
        form = read_form(body, REGISTER)
        settings = state_of(request).settings
        confirmed = not settings.auth.confirm_email
        user = identities.users.register(
            form["username"], form["email"], form["password"], confirmed=confirmed
        )
        if settings.auth.confirm_email:
            outbox.put(lambda: _mail_confirmation(settings, identities, user))
            return answer(dumps({"user": public_fields(user)}))
        return login_response(request, user)

    @handles("changePassword")
    def change_password() -> Response:
        # Ended sessions are accepted, because the request must contain the current password.
        actor = require_permission(request, "auth", "changePassword", allow_ended=True)
        user = identities.users.get(actor.user_id) if actor.user_id else None
        if user is None:
            raise ApplicationError("You must be authenticated to reset your password")
        form = read_form(read_body(request), CHANGE)
        attempts, attempt = identities.directory().login_limiter, login_attempt(request, user, user.email)
        taken = count_attempt(attempts, attempt)
        if identities.users.authenticate(user.email, form["currentPassword"]) is None:
            raise ValidationError("The provided current password is invalid")
        attempts.record_success(attempt, taken)
        if form["password"] == form["currentPassword"]:
            raise ValidationError("Your new password must be different than your current password")
        user = identities.users.update(user.id, {"password": form["password"]}) or user
        return login_response(request, user)

    @handles("forgotPassword")
    def forgot_password() -> Response:
        require_permission(request, "auth", "forgotPassword")
        email = read_form(read_body(request), EMAIL)["email"]
        count_mail(email)
        settings = state_of(request).settings
        # Neither the response nor its timing may reveal whether the account exists.
        outbox.put(lambda: _mail_reset(settings, identities, email))
        return answer(dumps({"ok": True}))

    @handles("resetPassword")
    def reset_password() -> Response:
        require_permission(request, "auth", "resetPassword")
        form = read_form(read_sign_in(request), RESET)
        user = identities.users.spend_reset_code(form["code"])
        if user is None:
            raise ValidationError("Incorrect code provided")
        # The code was sent to the email address, so using the code also confirms the address.
        user = identities.users.update(user.id, {"password": form["password"], "confirmed": True}) or user
        for identifier in (user.username, user.email):
            identities.directory().login_limiter.record_success(login_attempt(request, user, identifier))
        require_active(user, state_of(request).settings)
        return login_response(request, user)

    @handles("sendConfirmation")
    def send_confirmation() -> Response:
        require_permission(request, "auth", "sendEmailConfirmation")
        email = read_form(read_body(request), EMAIL)["email"]
        count_mail(email)
        settings = state_of(request).settings
        outbox.put(lambda: _mail_confirmation(settings, identities, identities.users.find(email)))
        return answer(dumps({"email": email, "sent": True}))

    @handles("confirmEmail")
    def confirm_email() -> BaseResponse:
        require_permission(request, "auth", "emailConfirmation")
        code = parameters(request).get("confirmation")
        user = identities.users.spend_confirm_code(code) if isinstance(code, str) and code else None
        if user is None:
            raise ValidationError("Invalid token")
        url = state_of(request).settings.auth.url
        return redirect(url) if url else answer(dumps({"ok": True}), cache_control=NO_STORE)

    @handles("returnFromProvider")
    def return_from_provider(provider: str) -> Response:
        require_permission(request, "auth", "callback")
        if provider == "local":  # a request without a JSON body
            read_form(None, LOGIN)
        raise ApplicationError(NO_PROVIDER_MESSAGE)

    @handles("connectProvider")
    def connect(provider: str) -> Response:
        require_permission(request, "auth", "connect")
        raise ApplicationError(NO_PROVIDER_MESSAGE)


def _link(settings: Settings, name: str, code: str) -> str:
    query = urlencode({name: code})
    if settings.auth.url:
        return f"{settings.auth.url}{'&' if '?' in settings.auth.url else '?'}{query}"
    return f"{name}: {code}"


def _mail_reset(settings: Settings, identities: Identities, email: str) -> None:
    user = identities.users.find(email)
    if user is None or user.blocked:
        return
    link = _link(settings, "code", identities.users.reset_code(user))
    text = f"Hello {user.username},\n\nto choose a new password, use this within an hour:\n\n{link}\n"
    mail.send(settings, user.email, f"{settings.name}: a new password", text)


def _mail_confirmation(settings: Settings, identities: Identities, user: User | None) -> None:
    if user is None or user.confirmed or user.blocked:
        return
    link = _link(settings, "confirmation", identities.users.confirm_code(user))
    text = f"Hello {user.username},\n\nto confirm this address, use this within three days:\n\n{link}\n"
    mail.send(settings, user.email, f"{settings.name}: confirm your address", text)
