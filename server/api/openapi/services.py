"""The operations that every site has: media, logins, users, roles, locales, content types."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from server.api.openapi.operations import ALWAYS, JSON, WRITE, answer, closed, json_content, operation
from server.api.openapi.parameters import name_in_path, number_in_path
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.api.routes.auth import CHANGE, LOGIN, REGISTER, RESET
from server.api.routes.users import OWN, WRITTEN
from server.auth.permissions import Actor
from server.auth.user import LONGEST, LONGEST_OTHER, SHORTEST_NAME, SHORTEST_PASSWORD
from server.write.uploads.file_info import INFO

MEDIA, ACCOUNTS, USERS, SITE = "Media", "Accounts", "Users", "Site"
_FILE, _USER = "UploadFile", "UsersPermissionsUser"
_OBJECT: JsonSchema = {"type": "object"}
_FLAG: JsonSchema = {"type": "boolean"}
_TEXT: JsonSchema = {"type": "string"}
_TIMESTAMP: JsonSchema = {"type": "string", "format": "date-time"}


@dataclass(frozen=True, slots=True)
class Services:
    """Makes the paths of services that the actor may use; `public` is what needs no credentials.

    `populated` names the parameter that shows what files are related to, where that is something.
    """

    actor: Actor
    public: Actor
    limited: bool
    populated: tuple[str, ...] = ()

    def all(self) -> Iterator[tuple[str, JsonSchema]]:
        """Every path with its operations; a path may be empty where the actor may do nothing there."""
        yield from self._media()
        yield from self._accounts()
        yield from self._users()
        yield from self._site()

    def _one(
        self, permission: str, tag: str, name: str, summary: str, answers: Any, **more: Any
    ) -> JsonSchema:
        """An operation of the subject and action of a permission; nothing where it is not granted."""
        subject, _, action = permission.partition(".")
        if not self.actor.may(subject, action):
            return {}
        more.setdefault("limited", self.limited)
        return operation(tag, name, summary, answers, public=self.public.may(subject, action), **more)

    # --- media ---------------------------------------------------------------------------------

    def _media(self) -> Iterator[tuple[str, JsonSchema]]:
        one, several = ref(_FILE), {"type": "array", "items": ref(_FILE)}
        number = name_in_path("id", "The number or documentId of a file.")
        asking = _params(_FILE, "fields", "filters", "sort", *self.populated)
        found = self._one(
            "upload.find", MEDIA, "findFiles", "The files of the media library, all of them",
            {200: answer("The files.", several)}, parameters=[*asking, *_part("files")],
        )  # fmt: skip
        meta = closed({"pagination": ref("Pagination")})
        page = self._one(
            "upload.find", MEDIA, "findFilesPage", "A page of the files of the media library",
            {200: answer("The files.", closed({"data": several, "meta": meta}))},
            parameters=[*asking, ref("pagination", "parameters")],
        )  # fmt: skip
        sent = self._one(
            "upload.upload", MEDIA, "uploadFiles",
            "Upload files; with `id`, say something else of a file, or replace it",
            {200: answer("The file that was changed.", one), 201: answer("The new files.", several)},
            parameters=[_upload_id()], body=_UPLOAD_BODY, errors=(*WRITE, 404),
        )  # fmt: skip
        yield "/api/upload", _methods(post=sent)
        yield "/api/upload/files", _methods(get=found)
        yield "/api/upload/files/page", _methods(get=page)
        shown = self._one(
            "upload.findOne", MEDIA, "findOneFile", "One file",
            {200: answer("The file.", one)}, parameters=[number, *_params(_FILE, *self.populated)],
            errors=(*ALWAYS, 404),
        )  # fmt: skip
        gone = self._one(
            "upload.destroy", MEDIA, "deleteFile", "Delete a file",
            {200: answer("The file that is gone.", one)},
            parameters=[number], errors=(*WRITE, 404),
        )  # fmt: skip
        yield "/api/upload/files/{id}", _methods(get=shown, delete=gone)
        content: JsonSchema = {"*/*": {"schema": {}}}
        bytes_ = {"description": "The bytes of the file.", "content": content}
        part = {"description": "A part of it, as `Range` asks for.", "content": content}
        yield "/uploads/{path}", _methods(
            get=operation(
                MEDIA, "download", "The content of a file",
                {200: bytes_, 206: part},
                parameters=[name_in_path("path", "The path in a file's `url`; it may have slashes.")],
                errors=(404, 416, 500), public=True, limited=self.limited,
            )
        )  # fmt: skip

    # --- accounts ------------------------------------------------------------------------------

    def _accounts(self) -> Iterator[tuple[str, JsonSchema]]:
        shown = answer("A token to send as `Authorization: Bearer`, and whose it is.", _LOGGED_IN)
        registered = answer(
            "The new user, with a token where the address need not be confirmed.", _REGISTERED
        )
        done = answer("It is done, or will be.", closed({"ok": {"const": True}}))
        sent = answer("A mail is sent if there is such a user.", closed({"email": _TEXT, "sent": _FLAG}))
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
            made = self._one(
                f"auth.{action}", ACCOUNTS, name, summary, {200: answered},
                body=body, errors=(*ALWAYS, 413, 429),
            )  # fmt: skip
            yield f"/api/auth/{path}", _methods(post=made)
        code = {"name": "confirmation", "in": "query", "required": True, "schema": _TEXT}
        leads = {"description": "Leads to the page that `auth.url` names."}
        confirmed = self._one(
            "auth.emailConfirmation", ACCOUNTS, "confirmEmail", "Confirm an address by a code",
            {200: done, 302: leads}, parameters=[{**code, "description": "The code."}],
        )  # fmt: skip
        yield "/api/auth/email-confirmation", _methods(get=confirmed)
        yield from self._sessions(done)

    def _sessions(self, done: JsonSchema) -> Iterator[tuple[str, JsonSchema]]:
        """Where `auth.refresh` is not set, these answer 404."""
        token = _body({"refreshToken": _TEXT})
        refreshed = self._one(
            "auth.refresh", ACCOUNTS, "refresh", "Get the next token",
            {200: answer("The next token, and the next refresh token unless it is a cookie.", _REFRESHED)},
            body=token, errors=(*ALWAYS, 404, 413),
        )  # fmt: skip
        ended = self._one(
            "auth.logout", ACCOUNTS, "logout", "End this session, those of a device, or all",
            {200: done}, body=_body({"refreshToken": _TEXT, "deviceId": _TEXT, "scope": {"const": "all"}}),
            errors=(*ALWAYS, 404, 413),
        )  # fmt: skip
        listed = self._one(
            "auth.getSessions", ACCOUNTS, "getSessions", "One's sessions",
            {200: answer("The sessions.", closed({"data": {"type": "array", "items": _SESSION}}))},
            errors=(*ALWAYS, 404),
        )  # fmt: skip
        revoked = self._one(
            "auth.revokeSession", ACCOUNTS, "revokeSession", "End one of one's sessions",
            {200: answer("It has ended.", closed({"data": closed({})}))},
            parameters=[name_in_path("sessionId", "The `id` of a session.")], errors=(*ALWAYS, 404),
        )  # fmt: skip
        yield "/api/auth/refresh", _methods(post=refreshed)
        yield "/api/auth/logout", _methods(post=ended)
        yield "/api/auth/sessions", _methods(get=listed)
        yield "/api/auth/sessions/{sessionId}", _methods(delete=revoked)

    # --- users and roles -----------------------------------------------------------------------

    def _users(self) -> Iterator[tuple[str, JsonSchema]]:
        one = answer("The user.", ref(_USER))
        showing = _params(_USER, "fields", "populate")
        listed = self._one(
            "user.find", USERS, "findUsers", "The users",
            {200: answer("The users.", {"type": "array", "items": ref(_USER)})},
            parameters=[*showing, *_params(_USER, "filters", "sort"), *_part("users")],
        )  # fmt: skip
        made = self._one(
            "user.create", USERS, "createUser", "A new user",
            {201: answer("The user.", ref(_USER))},
            parameters=_params(_USER, "fields"), body=_user_body(whole=True), errors=(*ALWAYS, 413),
        )  # fmt: skip
        yield "/api/users", _methods(get=listed, post=made)
        count = self._one(
            "user.count", USERS, "countUsers", "How many users there are",
            {200: answer("The number.", {"type": "integer"})}, parameters=_params(_USER, "filters"),
        )  # fmt: skip
        yield "/api/users/count", _methods(get=count)
        me = self._one("user.me", USERS, "me", "The user who asks", {200: one}, parameters=showing)
        changed = self._one(
            "user.updateMe", USERS, "updateMe", "Change one's own name or address", {200: one},
            parameters=_params(_USER, "fields"), body=_user_body(OWN), errors=(*ALWAYS, 413),
        )  # fmt: skip
        yield "/api/users/me", _methods(get=me, put=changed)
        number = number_in_path("id", "The number of a user.")
        missing = (*ALWAYS, 404)
        shown = self._one(
            "user.findOne", USERS, "findOneUser", "One user", {200: one},
            parameters=[number, *showing], errors=missing,
        )  # fmt: skip
        updated = self._one(
            "user.update", USERS, "updateUser", "Change a user", {200: one},
            parameters=[number, *_params(_USER, "fields")], body=_user_body(), errors=(*missing, 413),
        )  # fmt: skip
        gone = self._one(
            "user.destroy", USERS, "deleteUser", "Delete a user", {200: one},
            parameters=[number, *_params(_USER, "fields")], errors=missing,
        )  # fmt: skip
        yield "/api/users/{id}", _methods(get=shown, put=updated, delete=gone)
        yield from self._roles()

    def _roles(self) -> Iterator[tuple[str, JsonSchema]]:
        role = closed({"id": {"type": "integer"}, "nb_users": {"type": "integer"},
                        **dict.fromkeys(("documentId", "name", "description", "type"), _TEXT),
                        **dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), _TIMESTAMP)})  # fmt: skip
        roles = self._one(
            "role.find", USERS, "findRoles", "The roles",
            {200: answer("The roles.", closed({"roles": {"type": "array", "items": role}}))},
        )  # fmt: skip
        yield "/api/users-permissions/roles", _methods(get=roles)
        whole = {**role, "properties": {**role["properties"], "permissions": _OBJECT}}
        one = self._one(
            "role.findOne", USERS, "findOneRole", "One role, and what it may do",
            {200: answer("The role.", closed({"role": whole}))},
            parameters=[name_in_path("id", "The number or name of a role.")], errors=(*ALWAYS, 404),
        )  # fmt: skip
        yield "/api/users-permissions/roles/{id}", _methods(get=one)
        every = self._one(
            "role.find", USERS, "findPermissions", "Everything that roles can be allowed to do",
            {200: answer("By subject and action.", closed({"permissions": _OBJECT}))},
        )  # fmt: skip
        yield "/api/users-permissions/permissions", _methods(get=every)

    # --- the site ------------------------------------------------------------------------------

    def _site(self) -> Iterator[tuple[str, JsonSchema]]:
        locales = self._one(
            "locale.find", SITE, "findLocales", "The locales of the site",
            {200: answer("The locales.", {"type": "array", "items": _LOCALE})},
        )  # fmt: skip
        yield "/api/i18n/locales", _methods(get=locales)
        for name, kind in (("content-types", "ContentType"), ("components", "Component")):
            described = {"type": "object", "required": ["uid", "schema"]}
            many = self._one(
                "content-type.find", SITE, f"find{kind}s", f"The {name.replace('-', ' ')} of the site",
                {200: answer("Their schemas.", closed({"data": {"type": "array", "items": described}}))},
            )  # fmt: skip
            yield f"/api/content-type-builder/{name}", _methods(get=many)
            one = self._one(
                "content-type.findOne", SITE, f"findOne{kind}", f"One of the {name.replace('-', ' ')}",
                {200: answer("Its schema.", closed({"data": described}))},
                parameters=[name_in_path("uid", "Such as `api::article.article`.")], errors=(*ALWAYS, 404),
            )  # fmt: skip
            yield f"/api/content-type-builder/{name}/{{uid}}", _methods(get=one)
        health = {204: answer("The site is loaded.")}
        yield (
            "/_health",
            _methods(
                get=operation(
                    SITE, "health", "Whether the site is loaded", health, errors=(500,), public=True
                )
            ),
        )


def _methods(**operations: JsonSchema) -> JsonSchema:
    return {method: made for method, made in operations.items() if made}


def _params(name: str, *which: str) -> list[JsonSchema]:
    return [ref(f"{name}.{each}", "parameters") for each in which]


def _part(what: str) -> list[JsonSchema]:
    """The parameters that show a part of a list whose answers have no envelope."""
    all_of_them = {**_NINE_DIGITS, "minimum": -1}
    rows = (
        ("start", f"How many {what} to leave out first.", _NINE_DIGITS),
        ("limit", f"How many {what} to show; -1 shows all.", all_of_them),
    )
    return [{"name": n, "in": "query", "description": text, "schema": schema} for n, text, schema in rows]


# --- shapes --------------------------------------------------------------------------------------

_LOGGED_IN = {
    **closed({"jwt": _TEXT, "refreshToken": _TEXT, "user": ref(_USER)}),
    "required": ["jwt", "user"],
}
_REGISTERED = {**_LOGGED_IN, "required": ["user"]}
_REFRESHED = {**closed({"jwt": _TEXT, "refreshToken": _TEXT}), "required": ["jwt"]}
_SESSION = {
    **closed(
        {
            "id": _TEXT,
            "deviceId": {"type": ["string", "null"]},
            "deviceName": _TEXT,
            "current": _FLAG,
            **dict.fromkeys(("loginAt", "lastActiveAt"), _TIMESTAMP),
        }
    ),
    "required": ["id", "deviceId", "current", "loginAt", "lastActiveAt"],
}
_LOCALE = closed(
    {
        "id": {"type": "integer"},
        **dict.fromkeys(("documentId", "name", "code"), _TEXT),
        **dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), _TIMESTAMP),
        "isDefault": _FLAG,
    }
)
_NINE_DIGITS: JsonSchema = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
# What a text of a form has to be, beside its lengths.
_CONTROL = r"^[^\u0000-\u001f\u007f]*$"


def _text(name: str, least: int) -> JsonSchema:
    found = {**_TEXT, "minLength": least, "maxLength": LONGEST.get(name, LONGEST_OTHER), "pattern": _CONTROL}
    kinds = {"email": "email"} if name == "email" else {"format": "password"} if "assword" in name else {}
    return {**found, **({"format": "email"} if name == "email" else kinds)}


def _body(properties: Mapping[str, Any]) -> JsonSchema:
    """A body that may be left out, as may all its members."""
    return {"content": json_content({"type": "object", "properties": dict(properties)})}


def _form(wanted: Mapping[str, int]) -> JsonSchema:
    properties = {name: _text(name, least) for name, least in wanted.items()}
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


def _user_body(names: tuple[str, ...] = WRITTEN, *, whole: bool = False) -> JsonSchema:
    texts = {"username": SHORTEST_NAME, "email": 1, "password": SHORTEST_PASSWORD}
    properties: JsonSchema = {name: _text(name, least) for name, least in texts.items() if name in names}
    for name in ("confirmed", "blocked"):
        if name in names:
            properties[name] = _FLAG
    if "role" in names:
        properties["role"] = {
            "description": "The number, name or documentId of a role.",
            "type": ["integer", "string", "object"],
        }
    found: JsonSchema = {"type": "object", "properties": properties}
    if names == OWN:
        found["additionalProperties"] = False
    if whole:
        found["required"] = [*texts, "role"]
    return {"required": True, "content": json_content(found)}


def _upload_id() -> JsonSchema:
    return {
        "name": "id",
        "in": "query",
        "description": "The number or documentId of the file to change.",
        "schema": {"type": "string"},
    }


_UPLOAD_BODY: JsonSchema = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "files": {
                        "type": "array",
                        "items": {
                            "type": "string",
                            "format": "binary",
                            "contentMediaType": "application/octet-stream",
                        },
                    },
                    "fileInfo": {
                        "type": "string",
                        "contentMediaType": JSON,
                        "description": f"JSON: {', '.join(INFO)}; or a list with one for each file.",
                    },
                    "ref": {
                        **_TEXT,
                        "description": "The uid of a content type or component that gets the files.",
                    },
                    "refId": {**_TEXT, "description": "The id of it, or the documentId."},
                    "field": {**_TEXT, "description": "Its media attribute."},
                },
            }
        }
    },
}
