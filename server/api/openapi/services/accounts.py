"""The operations of logins, registration, passwords and sessions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from server.api.openapi.operations import ALWAYS, answer, closed, json_content
from server.api.openapi.parameters import name_in_path
from server.api.openapi.services.caller import FLAG, TEXT, TIMESTAMP, USER, Caller, methods
from server.api.openapi.services.forms import text_of
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.api.routes.auth import CHANGE, REGISTER, RESET
from server.api.routes.login import LOGIN

ACCOUNTS = "Accounts"


def account_paths(caller: Caller) -> Iterator[tuple[str, JsonSchema]]:
    """Every path of logins."""
    shown = answer("A token to send as `Authorization: Bearer`, and whose it is.", _LOGGED_IN)
    registered = answer("The new user, with a token where the address need not be confirmed.", _REGISTERED)
    done = answer("It is done, or will be.", closed({"ok": {"const": True}}))
    sent = answer("A mail is sent if there is such a user.", closed({"email": TEXT, "sent": FLAG}))
    rows: Iterable[tuple[str, str, str, str, JsonSchema, Mapping[str, int]]] = (
        ("callback", "local", "login", "Log in", shown, LOGIN),
        ("register", "local/register", "register", "Make an account", registered, REGISTER),
        ("changePassword", "change-password", "changePassword", "Change one's password", shown, CHANGE),
        ("forgotPassword", "forgot-password", "forgotPassword", "Be sent a code", done, {"email": 1}),
        ("resetPassword", "reset-password", "resetPassword", "Set a password by a code", shown, RESET),
        (
            "sendEmailConfirmation", "send-email-confirmation", "sendConfirmation",
            "Be sent a link that confirms the address", sent, {"email": 1},
        ),
    )  # fmt: skip
    for action, path, name, summary, answered, form in rows:
        body = {"required": True, "content": json_content(_form(form), _example(form))}
        made = caller.operation(
            f"auth.{action}", ACCOUNTS, name, summary, {200: answered},
            body=body, errors=(*ALWAYS, 413, 429),
        )  # fmt: skip
        yield f"/api/auth/{path}", methods(post=made)
    code = {"name": "confirmation", "in": "query", "required": True, "schema": TEXT}
    leads = {"description": "Leads to the page that `auth.url` names."}
    confirmed = caller.operation(
        "auth.emailConfirmation", ACCOUNTS, "confirmEmail", "Confirm an address by a code",
        {200: done, 302: leads}, parameters=[{**code, "description": "The code."}],
    )  # fmt: skip
    yield "/api/auth/email-confirmation", methods(get=confirmed)
    yield from _sessions(caller, done)


def _sessions(caller: Caller, done: JsonSchema) -> Iterator[tuple[str, JsonSchema]]:
    """Where `auth.refresh` is not set, these answer 404."""
    token = _body({"refreshToken": TEXT})
    refreshed = caller.operation(
        "auth.refresh", ACCOUNTS, "refresh", "Get the next token",
        {200: answer("The next token, and the next refresh token unless it is a cookie.", _REFRESHED)},
        body=token, errors=(*ALWAYS, 404, 413),
    )  # fmt: skip
    ended = caller.operation(
        "auth.logout", ACCOUNTS, "logout", "End this session, those of a device, or all",
        {200: done}, body=_body({"refreshToken": TEXT, "deviceId": TEXT, "scope": {"const": "all"}}),
        errors=(*ALWAYS, 404, 413),
    )  # fmt: skip
    listed = caller.operation(
        "auth.getSessions", ACCOUNTS, "getSessions", "One's sessions",
        {200: answer("The sessions.", closed({"data": {"type": "array", "items": _SESSION}}))},
        errors=(*ALWAYS, 404),
    )  # fmt: skip
    revoked = caller.operation(
        "auth.revokeSession", ACCOUNTS, "revokeSession", "End one of one's sessions",
        {200: answer("It has ended.", closed({"data": closed({})}))},
        parameters=[name_in_path("sessionId", "The `id` of a session.")], errors=(*ALWAYS, 404),
    )  # fmt: skip
    yield "/api/auth/refresh", methods(post=refreshed)
    yield "/api/auth/logout", methods(post=ended)
    yield "/api/auth/sessions", methods(get=listed)
    yield "/api/auth/sessions/{sessionId}", methods(delete=revoked)


def _body(properties: Mapping[str, Any]) -> JsonSchema:
    """A body that may be left out, as may all its members."""
    return {"content": json_content({"type": "object", "properties": dict(properties)})}


def _form(wanted: Mapping[str, int]) -> JsonSchema:
    properties = {name: text_of(name, least) for name, least in wanted.items()}
    found: JsonSchema = {"type": "object", "properties": properties, "required": list(wanted)}
    return {**found, "additionalProperties": False} if wanted is REGISTER else found


def _example(wanted: Mapping[str, int]) -> Any:
    known = {
        "email": "ann@example.org",
        "username": "ann",
        "identifier": "ann",
        "code": "the code of the mail",
    }
    return {name: known.get(name, "correct horse") for name in wanted}


_LOGGED_IN = {
    **closed({"jwt": TEXT, "refreshToken": TEXT, "user": ref(USER)}),
    "required": ["jwt", "user"],
}
_REGISTERED = {**_LOGGED_IN, "required": ["user"]}
_REFRESHED = {**closed({"jwt": TEXT, "refreshToken": TEXT}), "required": ["jwt"]}
_SESSION = {
    **closed(
        {
            "id": TEXT,
            "deviceId": {"type": ["string", "null"]},
            "deviceName": TEXT,
            "current": FLAG,
            **dict.fromkeys(("loginAt", "lastActiveAt"), TIMESTAMP),
        }
    ),
    "required": ["id", "deviceId", "current", "loginAt", "lastActiveAt"],
}
