"""Operations on users, their sessions and API tokens (docs/access.md)."""

from server.api.operations.history import PAGES
from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    NUMBER,
    READ,
    READ_ONE,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    JsonSchema,
    body_of,
    in_path,
    in_query,
    list_of,
    object_of,
    or_null,
    parameter_refs,
    ref,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.people import text_of
from server.api.operations.permission import anyone, may
from server.auth.accounts import KINDS
from server.auth.permissions import TOKEN
from server.auth.user import MIN_NAME_CHARS, MIN_PASSWORD_CHARS

MANAGEMENT = Tag("Management", "Users, their sessions and API tokens.")

_USER = object_of(
    {
        "id": NUMBER,
        **dict.fromkeys(("username", "email", "role"), TEXT),
        "blocked": FLAG,
        "invited": {**FLAG, "description": "Whether the user has no password yet."},
        "createdAt": TIMESTAMP,
        "lastSeen": {**or_null(TIMESTAMP), "description": "When the user was last active, to five minutes."},
        "sessions": {**COUNT, "description": "Number of sessions that can be ended one by one."},
        "changeable": {**FLAG, "description": "Whether the caller may change the user."},
        "version": {**TEXT, "description": "To be sent as `If-Match`."},
    }
)
_USERS_META = object_of(
    {
        "pagination": ref("Pagination"),
        "roles": {
            "type": "object",
            "additionalProperties": FLAG,
            "description": "All roles, and whether the caller may give them.",
        },
        "sendsMail": {**FLAG, "description": "Whether invitations are sent by e-mail."},
        "passwordSignIn": {**FLAG, "description": "Whether people can sign in with a password."},
    }
)
_INVITATION = object_of(
    {
        "link": {**TEXT, "description": "Where the user chooses a password, once and within a week."},
        "sent": {**FLAG, "description": "Whether the link is also sent by e-mail."},
    }
)
_INVITED = object_of({"data": _USER, "meta": _INVITATION})
_SESSION = object_of(
    {
        "id": TEXT,
        "deviceName": TEXT_OR_NULL,
        **dict.fromkeys(("loginAt", "lastActiveAt", "expiresAt"), TIMESTAMP),
    }
)
_TOKEN = object_of(
    {
        "name": TEXT,
        "type": {"enum": list(KINDS)},
        "permissions": list_of(TEXT),
        "createdAt": TIMESTAMP,
        "expiresAt": or_null(TIMESTAMP),
        "expired": FLAG,
        "lastUsed": {**or_null(TIMESTAMP), "description": "When the token was last used, to five minutes."},
        "branchOnly": FLAG,
        "maker": {
            **or_null(object_of({"kind": TEXT, "name": TEXT})),
            "description": "The user or token that created the token; null if it was the command line.",
        },
        "changeable": {**FLAG, "description": "Whether the caller may revoke the token."},
    }
)
_USERNAME, _EMAIL = text_of("username", MIN_NAME_CHARS), text_of("email", 1)
_PASSWORD = text_of("password", MIN_PASSWORD_CHARS)
_DURATION = {"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,2}[smhdw]$"}
_NEW_TOKEN = object_of(
    {
        "name": {**TEXT, "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$"},
        "type": {"enum": list(KINDS)},
        "permissions": {**list_of(TEXT), "description": "Required for the type `custom`, and only for it."},
        "expires": {**_DURATION, "description": "A duration such as `30d`; null for a token that lasts."},
        "branchOnly": FLAG,
    },
    optional=("permissions", "expires", "branchOnly"),
)
_NUMBER = in_path("id", "The id of a user.", {"type": "integer", "minimum": 0})
_NUMBER_OR_ME = in_path("id", "The id of a user, or `me`.")
_ONE = object_of({"data": _USER})
_DONE = {204: response_doc("Done.")}
_ERRORS = (*READ_ONE, 413, 503)


def _body(*required: str, **properties: JsonSchema) -> JsonSchema:
    optional = tuple(name for name in properties if name not in required)
    return body_of(object_of({"data": object_of(properties, optional)}))


USERS = Area(
    "users",
    parts=("users", "tokens", "invitation"),
    tag=MANAGEMENT,
    may_query_accounts=True,
    writes_site=False,
    operations=(
        Operation(
            "listUsers",
            "GET",
            "/users",
            may("user", "find"),
            Docs(
                "List users with their last activity",
                {
                    200: response_doc(
                        "The users, by name.", object_of({"data": list_of(_USER), "meta": _USERS_META})
                    )
                },
                [
                    in_query("q", TEXT, "A part of a name or an e-mail address."),
                    in_query("role", TEXT),
                    *PAGES,
                ],
                errors=(*READ, 503),
            ),
        ),
        Operation(
            "inviteUser",
            "POST",
            "/users",
            may("user", "create"),
            Docs(
                "Invite a user, who then chooses a password",
                {201: response_doc("The user, and the link of the invitation.", _INVITED)},
                body=_body("username", "email", username=_USERNAME, email=_EMAIL, role=TEXT),
                errors=(*READ, 413, 503),
            ),
        ),
        Operation(
            "acceptInvitation",
            "POST",
            "/invitation",
            anyone,
            Docs(
                "Choose the password of an invited user",
                {
                    200: response_doc(
                        "The name to sign in with.", object_of({"data": object_of({"username": TEXT})})
                    )
                },
                body=body_of(object_of({"code": text_of("code", 1), "password": _PASSWORD})),
                errors=(*READ, 413, 503),
            ),
        ),
        Operation(
            "getUser",
            "GET",
            "/users/{id}",
            may("user", "findOne"),
            Docs(
                "Get a user",
                {200: response_doc("The user.", _ONE, has_etag=True)},
                [_NUMBER],
                errors=(*READ_ONE, 503),
            ),
        ),
        Operation(
            "changeUser",
            "PUT",
            "/users/{id}",
            may("user", "update"),
            Docs(
                "Change a user's name, e-mail address or role, or block the user",
                {200: response_doc("The user.", _ONE, has_etag=True)},
                [_NUMBER, *parameter_refs("requiredIfMatch")],
                _body(username=_USERNAME, email=_EMAIL, role=TEXT, blocked=FLAG),
                (*_ERRORS, 412),
            ),
        ),
        Operation(
            "removeUser",
            "DELETE",
            "/users/{id}",
            may("user", "destroy"),
            Docs("Delete a user", _DONE, [_NUMBER], errors=_ERRORS),
        ),
        Operation(
            "inviteAgain",
            "POST",
            "/users/{id}/invitation",
            may("user", "update"),
            Docs(
                "Make a new link with which a user can choose a password",
                {201: response_doc("The user, and the link.", _INVITED)},
                [_NUMBER],
                errors=_ERRORS,
            ),
        ),
        Operation(
            "listSessions",
            "GET",
            "/users/{id}/sessions",
            anyone,
            Docs(
                "List a user's sessions",
                {
                    200: response_doc(
                        "The sessions, the last used first.", object_of({"data": list_of(_SESSION)})
                    )
                },
                [_NUMBER_OR_ME],
                errors=(*READ_ONE, 503),
            ),
        ),
        Operation(
            "endSessions",
            "DELETE",
            "/users/{id}/sessions",
            anyone,
            Docs("Sign a user out on all devices", _DONE, [_NUMBER_OR_ME], errors=_ERRORS),
        ),
        Operation(
            "endSession",
            "DELETE",
            "/users/{id}/sessions/{session}",
            anyone,
            Docs(
                "End one of a user's sessions",
                _DONE,
                [_NUMBER_OR_ME, in_path("session", "The `id` of a session.")],
                errors=_ERRORS,
            ),
        ),
        Operation(
            "listTokens",
            "GET",
            "/tokens",
            may(TOKEN, "read"),
            Docs(
                "List API tokens",
                {
                    200: response_doc(
                        "The tokens, by name. Without `page` and `pageSize`, all of them.",
                        object_of(
                            {"data": list_of(_TOKEN), "meta": object_of({"pagination": ref("Pagination")})},
                            optional=("meta",),
                        ),
                    )
                },
                PAGES,
                errors=(*READ, 503),
            ),
        ),
        Operation(
            "createToken",
            "POST",
            "/tokens",
            may(TOKEN, "create"),
            Docs(
                "Create an API token",
                {
                    201: response_doc(
                        "The token. Its secret is in `meta.secret`, and can't be read again.",
                        object_of({"data": _TOKEN, "meta": object_of({"secret": TEXT})}),
                    )
                },
                body=body_of(object_of({"data": _NEW_TOKEN})),
                errors=(*READ, 409, 413, 503),
            ),
        ),
        Operation(
            "revokeToken",
            "DELETE",
            "/tokens/{name:path}",
            may(TOKEN, "revoke"),
            Docs("Revoke an API token", _DONE, [in_path("name", "The name of a token.")], errors=_ERRORS),
        ),
    ),
)
