"""The operations of users and roles."""

from collections.abc import Iterator

from server.api.openapi.operations import ALWAYS, answer, closed, json_content
from server.api.openapi.parameters import name_in_path, number_in_path
from server.api.openapi.services.caller import (
    FLAG,
    TEXT,
    TIMESTAMP,
    USER,
    Caller,
    methods,
    part_of,
    shared_of,
)
from server.api.openapi.services.forms import text_of
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.api.routes.users import OWN, WRITTEN
from server.auth.user import SHORTEST_NAME, SHORTEST_PASSWORD

USERS = "Users"
_OBJECT: JsonSchema = {"type": "object"}


def user_paths(caller: Caller) -> Iterator[tuple[str, JsonSchema]]:
    """Every path of users and roles."""
    one = answer("The user.", ref(USER))
    showing = shared_of(USER, "fields", "populate")
    listed = caller.operation(
        "user.find", USERS, "findUsers", "The users",
        {200: answer("The users.", {"type": "array", "items": ref(USER)})},
        parameters=[*showing, *shared_of(USER, "filters", "sort"), *part_of("users")],
    )  # fmt: skip
    made = caller.operation(
        "user.create", USERS, "createUser", "A new user",
        {201: answer("The user.", ref(USER))},
        parameters=shared_of(USER, "fields"), body=_user_body(whole=True), errors=(*ALWAYS, 413),
    )  # fmt: skip
    yield "/api/users", methods(get=listed, post=made)
    count = caller.operation(
        "user.count", USERS, "countUsers", "How many users there are",
        {200: answer("The number.", {"type": "integer"})}, parameters=shared_of(USER, "filters"),
    )  # fmt: skip
    yield "/api/users/count", methods(get=count)
    me = caller.operation("user.me", USERS, "me", "The user who asks", {200: one}, parameters=showing)
    changed = caller.operation(
        "user.updateMe", USERS, "updateMe", "Change one's own name or address", {200: one},
        parameters=shared_of(USER, "fields"), body=_user_body(OWN), errors=(*ALWAYS, 413),
    )  # fmt: skip
    yield "/api/users/me", methods(get=me, put=changed)
    number = number_in_path("id", "The number of a user.")
    missing = (*ALWAYS, 404)
    shown = caller.operation(
        "user.findOne", USERS, "findOneUser", "One user", {200: one},
        parameters=[number, *showing], errors=missing,
    )  # fmt: skip
    updated = caller.operation(
        "user.update", USERS, "updateUser", "Change a user", {200: one},
        parameters=[number, *shared_of(USER, "fields")], body=_user_body(), errors=(*missing, 413),
    )  # fmt: skip
    gone = caller.operation(
        "user.destroy", USERS, "deleteUser", "Delete a user", {200: one},
        parameters=[number, *shared_of(USER, "fields")], errors=missing,
    )  # fmt: skip
    yield "/api/users/{id}", methods(get=shown, put=updated, delete=gone)
    yield from _roles(caller)


def _roles(caller: Caller) -> Iterator[tuple[str, JsonSchema]]:
    role = closed({"id": {"type": "integer"}, "nb_users": {"type": "integer"},
                    **dict.fromkeys(("documentId", "name", "description", "type"), TEXT),
                    **dict.fromkeys(("createdAt", "updatedAt", "publishedAt"), TIMESTAMP)})  # fmt: skip
    roles = caller.operation(
        "role.find", USERS, "findRoles", "The roles",
        {200: answer("The roles.", closed({"roles": {"type": "array", "items": role}}))},
    )  # fmt: skip
    yield "/api/users-permissions/roles", methods(get=roles)
    whole = {**role, "properties": {**role["properties"], "permissions": _OBJECT}}
    one = caller.operation(
        "role.findOne", USERS, "findOneRole", "One role, and what it may do",
        {200: answer("The role.", closed({"role": whole}))},
        parameters=[name_in_path("id", "The number or name of a role.")], errors=(*ALWAYS, 404),
    )  # fmt: skip
    yield "/api/users-permissions/roles/{id}", methods(get=one)
    every = caller.operation(
        "role.find", USERS, "findPermissions", "Everything that roles can be allowed to do",
        {200: answer("By subject and action.", closed({"permissions": _OBJECT}))},
    )  # fmt: skip
    yield "/api/users-permissions/permissions", methods(get=every)


def _user_body(names: tuple[str, ...] = WRITTEN, *, whole: bool = False) -> JsonSchema:
    texts = {"username": SHORTEST_NAME, "email": 1, "password": SHORTEST_PASSWORD}
    properties: JsonSchema = {name: text_of(name, least) for name, least in texts.items() if name in names}
    for name in ("confirmed", "blocked"):
        if name in names:
            properties[name] = FLAG
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
