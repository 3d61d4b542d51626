"""Handlers for /api/users and /api/users-permissions. The responses have no `data` envelope."""

from flask import Response, request

from server.api.identities import Identities
from server.api.request import answer, budget_of, parameters, read_body, require_permission, state_of
from server.api.response import NO_STORE
from server.api.routes.handlers import Handlers
from server.config.model import FILE
from server.errors import MethodNotAllowedError, NotFoundError
from server.schema.model import USER
from server.service.people import NO_USER_MESSAGE, People, get_role, list_roles, own_id, permissions_tree
from server.service.read import Reader
from server.service.render import dumps

ROLES_ARE_FILES = f"Roles are defined in {FILE}; to change a role, use PUT /roles/NAME"


def bind(handles: Handlers, identities: Identities) -> None:
    """Register the handlers."""

    def reader(subject: str, action: str) -> Reader:
        actor, state = require_permission(request, subject, action), state_of(request)
        type_, budget = state.schema.types[USER], budget_of(request)
        return Reader(state, type_, actor, users=identities.user_index, budget=budget)

    def people(action: str) -> People:
        return People(identities.users, reader("user", action))

    @handles("findUsers")
    def find_users() -> Response:
        return answer(b"[%b]" % b",".join(people("find").list(parameters(request))))

    @handles("countUsers")
    def count_users() -> Response:
        return answer(dumps(people("count").count(parameters(request))))

    @handles("me")
    def me() -> Response:
        callers = people("me")
        found = callers.get(own_id(callers.reader.actor), parameters(request))
        return answer(found, cache_control=NO_STORE)

    @handles("updateMe")
    def update_me() -> Response:
        return answer(people("updateMe").update_own(read_body(request), parameters(request)))

    @handles("findOneUser")
    def find_user(key: str) -> Response:
        return answer(people("findOne").get(_number(key), parameters(request)))

    @handles("createUser")
    def create_user() -> Response:
        return answer(people("create").create(read_body(request), parameters(request)), 201)

    @handles("updateUser")
    def update_user(key: str) -> Response:
        callers, user_id = people("update"), _number(key, NO_USER_MESSAGE)
        callers.require(user_id)
        return answer(callers.update(user_id, read_body(request), parameters(request)))

    @handles("deleteUser")
    def delete_user(key: str) -> Response:
        return answer(people("destroy").delete(_number(key), parameters(request)))

    @handles("findRoles")
    def find_roles() -> Response:
        return answer(b'{"roles":[%b]}' % b",".join(list_roles(reader("role", "find"))))

    @handles("findOneRole")
    def find_one_role(key: str) -> Response:
        return answer(b'{"role":%b}' % get_role(reader("role", "findOne"), key))

    @handles("createRole", "updateRole", "deleteRole")
    def refuse_role(key: str = "") -> Response:
        require_permission(request, "role", "find")
        raise MethodNotAllowedError(("GET", "HEAD", "OPTIONS"), ROLES_ARE_FILES)

    @handles("findPermissions")
    def find_permissions() -> Response:
        state = reader("role", "find").state
        return answer(dumps({"permissions": permissions_tree(state.schema, state.settings, "")}))


def _number(key: str, message: str = "Not Found") -> int:
    if not key.isascii() or not key.isdigit():
        raise NotFoundError(message)
    return int(key[:20])
