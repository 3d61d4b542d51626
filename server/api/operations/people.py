"""Operations on sessions, users and roles (docs/access.md)."""

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
    body_of,
    in_path,
    in_query,
    json_content,
    list_of,
    object_of,
    parameter_refs,
    ref,
    response_doc,
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

ACCOUNTS = Tag("Accounts", "Sign-in, registration, passwords and sessions.")
USERS = Tag("Users", "Users and roles.")
USER = "UsersPermissionsUser"
# The fields of each form, with their minimum lengths.
LOGIN: Mapping[str, int] = {"identifier": 1, "password": 1}
REGISTER: Mapping[str, int] = {"email": 1, "username": MIN_NAME_CHARS, "password": MIN_PASSWORD_CHARS}
CHANGE: Mapping[str, int] = {
    "currentPassword": 1,
    "password": MIN_PASSWORD_CHARS,
    "passwordConfirmation": 1,
}
RESET: Mapping[str, int] = {"code": 1, "password": MIN_PASSWORD_CHARS, "passwordConfirmation": 1}
EMAIL: Mapping[str, int] = {"email": 1}
# Regular expressions for text fields.
_NO_CONTROL = r"^[^\u0000-\u001f\u007f]*$"
_NO_INVISIBLE = (
    # Joiners are invisible characters that are allowed between letters, but this pattern can't express that.
    f"^[^{INVISIBLE_CHARS}]*$"
)
_EXAMPLES = {
    "email": "ann@example.org",
    "username": "ann",
    "identifier": "ann",
    "code": "the code from the e-mail",
}


def paging_parameters(item_name: str) -> list[JsonSchema]:
    return [
        in_query("start", NINE_DIGITS, f"Number of {item_name} to skip."),
        in_query("limit", {**NINE_DIGITS, "minimum": -1}, f"Maximum number of {item_name}; -1 for all."),
    ]


def text_of(name: str, least: int) -> JsonSchema:
    longest = MAX_CHARS.get(name, DEFAULT_MAX_CHARS)
    pattern = _NO_INVISIBLE if name == "username" else _NO_CONTROL
    found = {**TEXT, "minLength": least, "maxLength": longest, "pattern": pattern}
    kind = "email" if name == "email" else "password" if "assword" in name else ""
    return {**found, "format": kind} if kind else found


def _form_schema(fields: Mapping[str, int]) -> JsonSchema:
    properties = {name: text_of(name, least) for name, least in fields.items()}
    schema: JsonSchema = {"type": "object", "properties": properties, "required": list(fields)}
    if fields is REGISTER:
        schema["additionalProperties"] = False
    return body_of(schema, {name: _EXAMPLES.get(name, "correct horse") for name in fields})


def _optional(**properties: Any) -> JsonSchema:
    return {"content": json_content({"type": "object", "properties": properties})}


def _user_schema(names: tuple[str, ...] = SETTABLE_FIELDS, *, whole: bool = False) -> JsonSchema:
    """Return the definition of a request body that contains a user.

    If `whole` is set, `username`, `email`, `password` and `role` are required.
    """
    texts = {"username": MIN_NAME_CHARS, "email": 1, "password": MIN_PASSWORD_CHARS}
    properties: JsonSchema = {name: text_of(name, least) for name, least in texts.items() if name in names}
    properties |= {name: FLAG for name in ("confirmed", "blocked") if name in names}
    if "role" in names:
        kinds = {"type": ["integer", "string", "object"]}
        properties["role"] = {"description": "The id, name or documentId of a role.", **kinds}
    schema: JsonSchema = {"type": "object", "properties": properties}
    if names == OWN_FIELDS:
        schema["additionalProperties"] = False
    if whole:
        schema["required"] = [*texts, "role"]
    return body_of(schema)


_SIGNED_IN = {"jwt": TEXT, "refreshToken": TEXT, "user": ref(USER)}
_TOKEN = response_doc(
    "A token to send as `Authorization: Bearer`, and its user.",
    object_of(_SIGNED_IN, ("refreshToken",)),
)
_REGISTERED = response_doc(
    "The new user, with a token unless the e-mail address must be confirmed first.",
    object_of(_SIGNED_IN, ("jwt", "refreshToken")),
)
_NEXT = object_of({"jwt": TEXT, "refreshToken": TEXT}, ("refreshToken",))
_DONE = response_doc("Done.", object_of({"ok": {"const": True}}))
_SENT = response_doc("An e-mail is sent if the user exists.", object_of({"email": TEXT, "sent": FLAG}))
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
_COUNTED = (*READ, 413, 429)  # 429, because the number of attempts is always limited
_OFF = (*READ_ONE, 413)  # 404, because these paths exist only if `auth.refresh` is set


def _sends(
    id_: str, path: str, action: str, summary: str, json_schema: JsonSchema, form: Mapping[str, int]
) -> Operation:
    docs = Docs(summary, {200: json_schema}, (), _form_schema(form), _COUNTED)
    return Operation(id_, "POST", f"/api/auth/{path}", may("auth", action), docs)


AUTH = Area(
    "users",
    parts=("api/auth",),
    tag=ACCOUNTS,
    takes_at=True,
    may_query_accounts=True,
    writes_site=False,
    operations=(
        _sends("login", "local", "callback", "Sign in", _TOKEN, LOGIN),
        _sends("register", "local/register", "register", "Register a user", _REGISTERED, REGISTER),
        _sends(
            "changePassword", "change-password", "changePassword",
            "Change the caller's password", _TOKEN, CHANGE
        ),
        _sends(
            "forgotPassword", "forgot-password", "forgotPassword",
            "Request an e-mail with a code to reset the password", _DONE, EMAIL,
        ),
        _sends(
            "resetPassword", "reset-password", "resetPassword",
            "Set a password with a code", _TOKEN, RESET,
        ),
        _sends(
            "sendConfirmation", "send-email-confirmation", "sendEmailConfirmation",
            "Request an e-mail with a link that confirms the address", _SENT, EMAIL,
        ),
        Operation(
            "confirmEmail", "GET", "/api/auth/email-confirmation", may("auth", "emailConfirmation"),
            Docs(
                "Confirm an e-mail address with a code",
                {200: _DONE, 302: {"description": "Redirect to the page of `auth.url` in site.yaml."}},
                [in_query("confirmation", TEXT, "The code from the e-mail.", required=True)],
            ),
        ),
        Operation(
            "refresh", "POST", "/api/auth/refresh", may("auth", "refresh"),
            Docs(
                "Renew the token",
                {
                    200: response_doc(
                        "A new token, and a new refresh token unless it is sent as a cookie.", _NEXT
                    )
                },
                body=_optional(refreshToken=TEXT), errors=_OFF,
            ),
        ),
        Operation(
            "logout", "POST", "/api/auth/logout", may("auth", "logout"),
            Docs(
                "End this session, all sessions of a device, or all sessions",
                {200: _DONE},
                body=_optional(refreshToken=TEXT, deviceId=TEXT, scope={"const": "all"}), errors=_OFF,
            ),
        ),
        Operation(
            "getSessions", "GET", "/api/auth/sessions", may("auth", "getSessions"),
            Docs(
                "List the caller's sessions",
                {200: response_doc("The sessions.", object_of({"data": list_of(_SESSION)}))}, errors=READ_ONE,
            ),
        ),
        Operation(
            "revokeSession", "DELETE", "/api/auth/sessions/{sessionId}", may("auth", "revokeSession"),
            Docs(
                "End one of the caller's sessions",
                {200: response_doc("The session has ended.", object_of({"data": object_of({})}))},
                [in_path("sessionId", "The `id` of a session.")], errors=READ_ONE,
            ),
        ),
        Operation(
            "returnFromProvider", "GET", "/api/auth/{provider}/callback", may("auth", "callback"),
            "Signing in with other providers is not supported; the response is an error.",
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
            "Signing in with other providers is not supported; the response is an error.",
        ),
    ),
)  # fmt: skip

_ONE = {200: response_doc("The user.", ref(USER))}
_FIELDS = parameter_refs(f"{USER}.fields")
_SHOWING = parameter_refs(f"{USER}.fields", f"{USER}.populate")
_FILTERS = parameter_refs(f"{USER}.filters")
_NUMBER = in_path("id", "The id of a user.", {"type": "integer", "minimum": 0})
_ROLE_MEMBERS = {
    "id": NUMBER,
    "nb_users": NUMBER,
    **dict.fromkeys(("documentId", "name", "description", "type"), TEXT),
    **dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), TIMESTAMP),
}
_ROLE = object_of(_ROLE_MEMBERS)
_ROLE_WITH_PERMISSIONS = object_of({**_ROLE_MEMBERS, "permissions": OBJECT}, ("permissions",))
_REFUSED = "Roles are defined in site.yaml; the response is an error."
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
                "List users",
                {200: response_doc("The users.", list_of(ref(USER)))},
                [*_SHOWING, *_FILTERS, *parameter_refs(f"{USER}.sort"), *paging_parameters("users")],
            ),
        ),
        Operation(
            "createUser", "POST", "/api/users", may("user", "create"),
            Docs(
                "Create a user", {201: response_doc("The new user.", ref(USER))},
                _FIELDS, _user_schema(whole=True), (*READ, 413),
            ),
        ),
        Operation(
            "countUsers", "GET", "/api/users/count", may("user", "count"),
            Docs("Count users", {200: response_doc("The number.", NUMBER)}, _FILTERS),
        ),
        Operation(
            "me", "GET", "/api/users/me", may("user", "me"),
            Docs("Get the calling user", _ONE, _SHOWING),
        ),
        Operation(
            "updateMe", "PUT", "/api/users/me", may("user", "updateMe"),
            Docs(
                "Change the calling user's name or e-mail address",
                _ONE, _FIELDS, _user_schema(OWN_FIELDS), (*READ, 413),
            ),
        ),
        Operation(
            "findOneUser", "GET", "/api/users/{id:user}", may("user", "findOne"),
            Docs("Get a user", _ONE, [_NUMBER, *_SHOWING], errors=READ_ONE),
        ),
        Operation(
            "updateUser", "PUT", "/api/users/{id:user}", may("user", "update"),
            Docs("Change a user", _ONE, [_NUMBER, *_FIELDS], _user_schema(), (*READ_ONE, 413)),
        ),
        Operation(
            "deleteUser", "DELETE", "/api/users/{id:user}", may("user", "destroy"),
            Docs("Delete a user", _ONE, [_NUMBER, *_FIELDS], errors=READ_ONE),
        ),
        Operation(
            "findRoles", "GET", _ROLES, may("role", "find"),
            Docs("List roles", {200: response_doc("The roles.", object_of({"roles": list_of(_ROLE)}))}),
        ),
        Operation(
            "findOneRole", "GET", _ONE_ROLE, may("role", "findOne"),
            Docs(
                "Get a role with its permissions",
                {200: response_doc("The role.", object_of({"role": _ROLE_WITH_PERMISSIONS}))},
                [in_path("id", "The id or name of a role.")], errors=READ_ONE,
            ),
        ),
        Operation("createRole", "POST", _ROLES, may("role", "find"), _REFUSED, always_fails=True),
        Operation("updateRole", "PUT", _ONE_ROLE, may("role", "find"), _REFUSED, always_fails=True),
        Operation("deleteRole", "DELETE", _ONE_ROLE, may("role", "find"), _REFUSED, always_fails=True),
        Operation(
            "findPermissions", "GET", "/api/users-permissions/permissions", may("role", "find"),
            Docs(
                "List all permissions that roles can have",
                {
                    200: response_doc(
                        "The permissions, by subject and action.", object_of({"permissions": OBJECT})
                    )
                },
            ),
        ),
    ),
)  # fmt: skip
