"""Operations of users: sign-in, registration, passwords, sessions, users, roles (docs/access.md)."""

from collections.abc import Mapping
from typing import Any

from server.api.operations.json_schema import (
    FLAG,
    NINE_DIGITS,
    NUMBER,
    OBJECT,
    READ,
    READ_ONE,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    JsonSchema,
    answer,
    body_of,
    in_path,
    in_query,
    json_content,
    list_of,
    object_of,
    ref,
    shared_parameters,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.permission import may
from server.auth.user import (
    DEFAULT_MAX_CHARS,
    INVISIBLE_CHARS,
    MAX_CHARS,
    MIN_NAME_CHARS,
    MIN_PASSWORD_CHARS,
    OWN_FIELDS,
    SETTABLE_FIELDS,
)

ACCOUNTS = Tag("Accounts", "Logins, registration, passwords.")
USERS = Tag("Users", "Who there is, and what roles there are.")
USER = "UsersPermissionsUser"
# The fields of each form: name, least length.
LOGIN: Mapping[str, int] = {"identifier": 1, "password": 1}
REGISTER: Mapping[str, int] = {"email": 1, "username": MIN_NAME_CHARS, "password": MIN_PASSWORD_CHARS}
CHANGE: Mapping[str, int] = {
    "currentPassword": 1,
    "password": MIN_PASSWORD_CHARS,
    "passwordConfirmation": 1,
}
RESET: Mapping[str, int] = {"code": 1, "password": MIN_PASSWORD_CHARS, "passwordConfirmation": 1}
EMAIL: Mapping[str, int] = {"email": 1}
# What a text of a form has to be, beside its lengths.
_NO_CONTROL = r"^[^\u0000-\u001f\u007f]*$"
_NO_INVISIBLE = (
    f"^[^{INVISIBLE_CHARS}]*$"  # Joiners between letters are taken as well, which no pattern says.
)
_EXAMPLES = {
    "email": "ann@example.org",
    "username": "ann",
    "identifier": "ann",
    "code": "the code of the mail",
}


def part_of(what: str) -> list[JsonSchema]:
    """The parameters that show a part of a list whose answers have no envelope."""
    return [
        in_query("start", NINE_DIGITS, f"How many {what} to leave out first."),
        in_query("limit", {**NINE_DIGITS, "minimum": -1}, f"How many {what} to show; -1 shows all."),
    ]


def _text_of(name: str, least: int) -> JsonSchema:
    """The text of a field of a form, which has at least so many characters."""
    longest = MAX_CHARS.get(name, DEFAULT_MAX_CHARS)
    pattern = _NO_INVISIBLE if name == "username" else _NO_CONTROL
    found = {**TEXT, "minLength": least, "maxLength": longest, "pattern": pattern}
    kind = "email" if name == "email" else "password" if "assword" in name else ""
    return {**found, "format": kind} if kind else found


def _form(wanted: Mapping[str, int]) -> JsonSchema:
    """The body that a form is: all of its fields; the form of a new account has no others."""
    properties = {name: _text_of(name, least) for name, least in wanted.items()}
    schema: JsonSchema = {"type": "object", "properties": properties, "required": list(wanted)}
    if wanted is REGISTER:
        schema["additionalProperties"] = False
    return body_of(schema, {name: _EXAMPLES.get(name, "correct horse") for name in wanted})


def _optional(**properties: Any) -> JsonSchema:
    """A body that may be left out, as may all its members."""
    return {"content": json_content({"type": "object", "properties": properties})}


def _user(names: tuple[str, ...] = SETTABLE_FIELDS, *, whole: bool = False) -> JsonSchema:
    """The body that writes a user."""
    texts = {"username": MIN_NAME_CHARS, "email": 1, "password": MIN_PASSWORD_CHARS}
    properties: JsonSchema = {name: _text_of(name, least) for name, least in texts.items() if name in names}
    properties |= {name: FLAG for name in ("confirmed", "blocked") if name in names}
    if "role" in names:
        kinds = {"type": ["integer", "string", "object"]}
        properties["role"] = {"description": "The number, name or documentId of a role.", **kinds}
    schema: JsonSchema = {"type": "object", "properties": properties}
    if names == OWN_FIELDS:
        schema["additionalProperties"] = False
    if whole:
        schema["required"] = [*texts, "role"]
    return body_of(schema)


_SIGNED_IN = {"jwt": TEXT, "refreshToken": TEXT, "user": ref(USER)}
_TOKEN = answer(
    "A token to send as `Authorization: Bearer`, and whose it is.",
    object_of(_SIGNED_IN, ("refreshToken",)),
)
_REGISTERED = answer(
    "The new user, with a token where the address need not be confirmed.",
    object_of(_SIGNED_IN, ("jwt", "refreshToken")),
)
_NEXT = object_of({"jwt": TEXT, "refreshToken": TEXT}, ("refreshToken",))
_DONE = answer("It is done, or will be.", object_of({"ok": {"const": True}}))
_SENT = answer("A mail is sent if there is such a user.", object_of({"email": TEXT, "sent": FLAG}))
_SESSION = object_of(
    {
        "id": TEXT,
        "deviceId": TEXT_OR_NULL,
        "deviceName": TEXT,
        "current": FLAG,
        **dict.fromkeys(("loginAt", "lastActiveAt"), TIMESTAMP),
    },
    ("deviceName",),
)
_COUNTED = (*READ, 413, 429)  # The attempts of a client are limited on every site.
_OFF = (*READ_ONE, 413)  # Where `auth.refresh` is not set, these answer 404.


def _sends(
    id_: str, path: str, action: str, summary: str, shown: JsonSchema, form: Mapping[str, int]
) -> Operation:
    """A form of `/api/auth`, whose attempts are counted."""
    docs = Docs(summary, {200: shown}, (), _form(form), _COUNTED)
    return Operation(id_, "POST", f"/api/auth/{path}", may("auth", action), docs)


AUTH = Area(
    "users",
    parts=("api/auth",),
    tag=ACCOUNTS,
    takes_at=True,
    may_query_accounts=True,
    writes_site=False,
    operations=(
        _sends("login", "local", "callback", "Log in", _TOKEN, LOGIN),
        _sends("register", "local/register", "register", "Make an account", _REGISTERED, REGISTER),
        _sends(
            "changePassword", "change-password", "changePassword", "Change one's password", _TOKEN, CHANGE
        ),
        _sends("forgotPassword", "forgot-password", "forgotPassword", "Be sent a code", _DONE, EMAIL),
        _sends("resetPassword", "reset-password", "resetPassword", "Set a password by a code", _TOKEN, RESET),
        _sends(
            "sendConfirmation", "send-email-confirmation", "sendEmailConfirmation",
            "Be sent a link that confirms the address", _SENT, EMAIL,
        ),
        Operation(
            "confirmEmail", "GET", "/api/auth/email-confirmation", may("auth", "emailConfirmation"),
            Docs(
                "Confirm an address by a code",
                {200: _DONE, 302: {"description": "Leads to the page that `auth.url` names."}},
                [in_query("confirmation", TEXT, "The code.", required=True)],
            ),
        ),
        Operation(
            "refresh", "POST", "/api/auth/refresh", may("auth", "refresh"),
            Docs(
                "Get the next token",
                {200: answer("The next token, and the next refresh token unless it is a cookie.", _NEXT)},
                body=_optional(refreshToken=TEXT), errors=_OFF,
            ),
        ),
        Operation(
            "logout", "POST", "/api/auth/logout", may("auth", "logout"),
            Docs(
                "End this session, those of a device, or all",
                {200: _DONE},
                body=_optional(refreshToken=TEXT, deviceId=TEXT, scope={"const": "all"}), errors=_OFF,
            ),
        ),
        Operation(
            "getSessions", "GET", "/api/auth/sessions", may("auth", "getSessions"),
            Docs(
                "One's sessions",
                {200: answer("The sessions.", object_of({"data": list_of(_SESSION)}))}, errors=READ_ONE,
            ),
        ),
        Operation(
            "revokeSession", "DELETE", "/api/auth/sessions/{sessionId}", may("auth", "revokeSession"),
            Docs(
                "End one of one's sessions",
                {200: answer("It has ended.", object_of({"data": object_of({})}))},
                [in_path("sessionId", "The `id` of a session.")], errors=READ_ONE,
            ),
        ),
        Operation(
            "returnFromProvider", "GET", "/api/auth/{provider}/callback", may("auth", "callback"),
            "Accounts of other sites can't be used: the answer is an error.",
        ),
    ),
)  # fmt: skip

CONNECT = Area(
    "users",
    parts=("api/connect",),
    takes_at=True,
    varies_by_commit=True,
    operations=(
        Operation(
            "connectProvider", "GET", "/api/connect/{provider:path}", may("auth", "connect"),
            "Accounts of other sites can't be used: the answer is an error.",
        ),
    ),
)  # fmt: skip

_ONE = {200: answer("The user.", ref(USER))}
_FIELDS = shared_parameters(f"{USER}.fields")
_SHOWING = shared_parameters(f"{USER}.fields", f"{USER}.populate")
_FILTERS = shared_parameters(f"{USER}.filters")
_NUMBER = in_path("id", "The number of a user.", {"type": "integer", "minimum": 0})
_ROLE_MEMBERS = {
    "id": NUMBER,
    "nb_users": NUMBER,
    **dict.fromkeys(("documentId", "name", "description", "type"), TEXT),
    **dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), TIMESTAMP),
}
_ROLE = object_of(_ROLE_MEMBERS)
_ROLE_WITH_PERMISSIONS = object_of({**_ROLE_MEMBERS, "permissions": OBJECT}, ("permissions",))
_REFUSED = "Roles are written in site.yaml: the answer is an error."
_ROLES, _ONE_ROLE = "/api/users-permissions/roles", "/api/users-permissions/roles/{id}"

USERS_AND_ROLES = Area(
    "users",
    parts=("api/users", "api/users-permissions"),
    tag=USERS,
    takes_at=True,
    may_query_accounts=True,
    writes_site=False,
    operations=(
        Operation(
            "findUsers", "GET", "/api/users", may("user", "find"),
            Docs(
                "The users",
                {200: answer("The users.", list_of(ref(USER)))},
                [*_SHOWING, *_FILTERS, *shared_parameters(f"{USER}.sort"), *part_of("users")],
            ),
        ),
        Operation(
            "createUser", "POST", "/api/users", may("user", "create"),
            Docs(
                "A new user", {201: answer("The user.", ref(USER))},
                _FIELDS, _user(whole=True), (*READ, 413),
            ),
        ),
        Operation(
            "countUsers", "GET", "/api/users/count", may("user", "count"),
            Docs("How many users there are", {200: answer("The number.", NUMBER)}, _FILTERS),
        ),
        Operation("me", "GET", "/api/users/me", may("user", "me"), Docs("The user who asks", _ONE, _SHOWING)),
        Operation(
            "updateMe", "PUT", "/api/users/me", may("user", "updateMe"),
            Docs("Change one's own name or address", _ONE, _FIELDS, _user(OWN_FIELDS), (*READ, 413)),
        ),
        Operation(
            "findOneUser", "GET", "/api/users/{id:user}", may("user", "findOne"),
            Docs("One user", _ONE, [_NUMBER, *_SHOWING], errors=READ_ONE),
        ),
        Operation(
            "updateUser", "PUT", "/api/users/{id:user}", may("user", "update"),
            Docs("Change a user", _ONE, [_NUMBER, *_FIELDS], _user(), (*READ_ONE, 413)),
        ),
        Operation(
            "deleteUser", "DELETE", "/api/users/{id:user}", may("user", "destroy"),
            Docs("Delete a user", _ONE, [_NUMBER, *_FIELDS], errors=READ_ONE),
        ),
        Operation(
            "findRoles", "GET", _ROLES, may("role", "find"),
            Docs("The roles", {200: answer("The roles.", object_of({"roles": list_of(_ROLE)}))}),
        ),
        Operation(
            "findOneRole", "GET", _ONE_ROLE, may("role", "findOne"),
            Docs(
                "One role, and what it may do",
                {200: answer("The role.", object_of({"role": _ROLE_WITH_PERMISSIONS}))},
                [in_path("id", "The number or name of a role.")], errors=READ_ONE,
            ),
        ),
        Operation("createRole", "POST", _ROLES, may("role", "find"), _REFUSED, always_fails=True),
        Operation("updateRole", "PUT", _ONE_ROLE, may("role", "find"), _REFUSED, always_fails=True),
        Operation("deleteRole", "DELETE", _ONE_ROLE, may("role", "find"), _REFUSED, always_fails=True),
        Operation(
            "findPermissions", "GET", "/api/users-permissions/permissions", may("role", "find"),
            Docs(
                "Everything that roles can be allowed to do",
                {200: answer("By subject and action.", object_of({"permissions": OBJECT}))},
            ),
        ),
    ),
)  # fmt: skip
