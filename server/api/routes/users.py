"""/api/users and /api/users-permissions: who there is, and what roles there are.

Users are answered bare, without the envelope of content, as clients expect.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.routing import BaseConverter

from server.api.forms import field_error, field_errors, form_error
from server.api.render import dumps
from server.api.request import Identities, answer, parameters, read_body, state_of
from server.api.response import NOBODY
from server.api.users_view import (
    describe_role,
    permissions_tree,
    render_users,
    role_named,
    roles_of,
    view_of,
)
from server.auth.permissions import Actor, narrow
from server.auth.users import SHORTEST_NAME, SHORTEST_PASSWORD, User
from server.config.model import FILE, Settings
from server.errors import (
    ApplicationError,
    MethodNotAllowedError,
    NotFoundError,
    UnauthorizedError,
    ValidationError,
)
from server.index.find import find
from server.index.snapshot import View
from server.query.ast import EVERYTHING, Page, Query
from server.query.parse import read_query
from server.schema.model import USER
from server.site.site import Site

SHOWN = ("username", "email", "provider", "confirmed", "blocked", "createdAt", "updatedAt", "publishedAt")
# What a body may set of a user; other keys are ignored, since clients send back what they got.
WRITTEN = ("username", "email", "password", "confirmed", "blocked", "role")
OWN = ("username", "email")  # what users may set of themselves
ROLES_ARE_FILES = f"Roles are written in {FILE}, not through the API"
_EVERYBODY = 10**9
_WHOLE = re.compile(r"[0-9]{1,9}")


class UserKey(BaseConverter):
    """The part of a path that names a user: whatever no other path has there."""

    regex = r"(?!(?:me|count)$)[^/]+"


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The routes of users, roles and permissions."""
    bp = Blueprint("users", __name__, url_prefix="/api")
    bp.record_once(lambda setup: setup.app.url_map.converters.update(user=UserKey))
    users = identities.users

    def asked(actor: Actor) -> Query:
        """What a request asks to be shown, of one user or of several."""
        state, params = state_of(request), parameters(request)
        query = read_query(state.schema, state.settings, state.schema.types[USER], params, many=True)
        query = narrow(query, actor, state.schema)
        selection = query.selection if query.selection.fields else replace(query.selection, fields=SHOWN)
        page = query.page if "pagination" in params else read_part(params)
        return replace(query, selection=selection, page=page)

    def written(actor: Actor, populate: str = "") -> Query:
        """How the answer to a write shows the user, which the request can't choose then."""
        state, query = state_of(request), asked(actor)
        selection = replace(query.selection, filter=EVERYTHING)
        if populate:
            also = read_query(state.schema, state.settings, query.type, {"populate": populate}, many=False)
            selection = replace(selection, populate=narrow(also, actor, state.schema).selection.populate)
        return replace(query, selection=selection, text="")

    def view(some: list[User]) -> View:
        state = state_of(request)
        return view_of(state.schema, state.settings, some, site.started)

    def one(query: Query, user: User | None, status: int = 200, cache_control: str = "") -> Response:
        found = render_users(view([user]), replace(query, page=Page(0, 1, 1))) if user else []
        if not found:
            raise NotFoundError()
        return answer(found[0], status, cache_control)

    @bp.get("/users", strict_slashes=False)
    def find_users() -> Response:
        query = asked(identities.permit(request, "user", "find"))
        return answer(b"[%b]" % b",".join(render_users(view(users.all()), query)))

    @bp.get("/users/count", strict_slashes=False)
    def count_users() -> Response:
        query = asked(identities.permit(request, "user", "count"))
        return answer(dumps(find(view(users.all()), query).total))

    @bp.get("/users/me", strict_slashes=False)
    def me() -> Response:
        actor = identities.permit(request, "user", "me")
        user_id = _self(actor)
        return one(asked(actor), users.get(user_id), cache_control=NOBODY)

    @bp.put("/users/me", strict_slashes=False)
    def update_me() -> Response:
        actor = identities.permit(request, "user", "updateMe")
        user_id, query = _self(actor), written(actor)
        values = _read_own(read_body(request), state_of(request).settings)
        _refuse_unproven(values, users.get(user_id), state_of(request).settings)
        return one(query, users.update(user_id, values))

    @bp.get("/users/<user:key>", strict_slashes=False)
    def find_user(key: str) -> Response:
        query = asked(identities.permit(request, "user", "findOne"))
        return one(query, users.get(_number(key)))

    @bp.post("/users", strict_slashes=False)
    def create_user() -> Response:
        query = written(identities.permit(request, "user", "create"), populate="role")
        values = _read(read_body(request), state_of(request).settings, creating=True)
        made = users.create(
            values["username"],
            values["email"],
            values["password"],
            role=values["role"],
            confirmed=values.get("confirmed", False),
            blocked=values.get("blocked", False),
        )
        return one(query, made, 201)

    @bp.put("/users/<user:key>", strict_slashes=False)
    def update_user(key: str) -> Response:
        query = written(identities.permit(request, "user", "update"), populate="role")
        user_id = _number(key)
        if users.get(user_id) is None:
            raise NotFoundError()
        values = _read(read_body(request), state_of(request).settings, creating=False)
        return one(query, users.update(user_id, values))

    @bp.delete("/users/<user:key>", strict_slashes=False)
    def delete_user(key: str) -> Response:
        query = written(identities.permit(request, "user", "destroy"))
        return one(query, users.delete(_number(key)))

    @bp.get("/users-permissions/roles", strict_slashes=False)
    def find_roles() -> Response:
        identities.permit(request, "role", "find")
        roles, everybody = roles_of(state_of(request).settings), users.all()
        return answer(dumps({"roles": [describe_role(r, everybody, site.started) for r in roles]}))

    @bp.get("/users-permissions/roles/<key>", strict_slashes=False)
    def find_role(key: str) -> Response:
        identities.permit(request, "role", "findOne")
        state = state_of(request)
        role = role_named(state.settings, key)
        if role is None:
            raise NotFoundError("Role not found")
        described = describe_role(role, users.all(), site.started)
        tree = permissions_tree(state.schema, state.settings, role.type)
        return answer(dumps({"role": {**described, "permissions": tree}}))

    @bp.post("/users-permissions/roles", strict_slashes=False)
    @bp.put("/users-permissions/roles/<key>", strict_slashes=False)
    @bp.delete("/users-permissions/roles/<key>", strict_slashes=False)
    def refuse_role(key: str = "") -> Response:
        identities.permit(request, "role", "find")
        raise MethodNotAllowedError(("GET", "HEAD", "OPTIONS"), ROLES_ARE_FILES)

    @bp.get("/users-permissions/permissions", strict_slashes=False)
    def find_permissions() -> Response:
        identities.permit(request, "role", "find")
        state = state_of(request)
        return answer(dumps({"permissions": permissions_tree(state.schema, state.settings, "")}))

    return bp


def read_part(params: Mapping[str, Any]) -> Page:
    """The part of the list of users that `start` and `limit` ask for; all of it without them.

    Raises ValidationError for what is no number; -1 is no limit.
    """
    start, limit = _whole(params, "start", 0), _whole(params, "limit", -1)
    return Page(start, _EVERYBODY if limit == -1 else limit, None)


def _whole(params: Mapping[str, Any], name: str, default: int) -> int:
    value = params.get(name)
    if value is None or value == "" or value == str(default):
        return default
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise ValidationError(
            f"Invalid {name}: a whole number is expected", {"source": "query", "param": name}
        )
    return int(value)


def _number(key: str) -> int:
    """The number of a user in a path. Raises NotFoundError for what is none."""
    if not key.isascii() or not key.isdigit():
        raise NotFoundError()
    return int(key[:20])


def _self(actor: Actor) -> int:
    """The number of the user that asks. Raises UnauthorizedError where nobody has logged in."""
    if actor.user_id is None:
        raise UnauthorizedError("Unauthorized")
    return actor.user_id


def _refuse_unproven(values: Mapping[str, Any], user: User | None, settings: Settings) -> None:
    """Refuse another address to a user where addresses have to be confirmed."""
    if not settings.confirm_email or user is None or "email" not in values:
        return
    if values["email"].strip().lower() != user.email:
        raise ApplicationError("The email can't be changed: addresses are confirmed here when registering")


def _read_own(body: object, settings: Settings) -> dict[str, Any]:
    """What users set of themselves. Raises ValidationError, also for what is not theirs to set."""
    other = next((key for key in body if key not in OWN), None) if isinstance(body, dict) else None
    if other is not None:
        raise ValidationError(f"Invalid key {other}", {"key": other, "path": None, "source": "body"})
    return _read(body, settings, creating=False)


def _read(body: object, settings: Settings, *, creating: bool) -> dict[str, Any]:
    """The columns that a body sets. Raises ValidationError with everything that is wrong."""
    if not isinstance(body, dict):
        raise ValidationError("The body must be an object")
    least = {"username": SHORTEST_NAME, "email": 1, "password": SHORTEST_PASSWORD}
    errors = [
        error
        for name, length in least.items()
        if name in body or creating
        for error in field_errors(name, body.get(name), length)
    ]
    for name in ("confirmed", "blocked"):
        if name in body and not isinstance(body[name], bool):
            errors.append(field_error(name, "must be true or false"))
    values = {name: body[name] for name in WRITTEN if name in body}
    if "role" in body or creating:
        role = role_named(settings, body.get("role"))
        if role is not None:
            values["role"] = role.type
        else:
            missing = body.get("role") is None
            errors.append(field_error("role", "is a required field" if missing else "does not exist"))
    if errors:
        raise form_error(errors)
    return values
