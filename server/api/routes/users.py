"""/api/users and /api/users-permissions: who there is, and what roles there are.

Users are answered bare, without the envelope of content, as clients expect.
"""

from dataclasses import replace
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.routing import BaseConverter

from server.api.render import dumps
from server.api.request import Identities, answer, json_body, parameters, state_of
from server.api.routes.auth import field_errors, form_error
from server.api.users_view import describe_role, permissions_tree, render_users, role_named, roles_of, view_of
from server.auth.permissions import Actor, narrow
from server.auth.users import SHORTEST_NAME, SHORTEST_PASSWORD, User
from server.config.model import Settings
from server.errors import ApplicationError, ForbiddenError, NotFoundError, ValidationError
from server.query.ast import EVERYTHING, Page, Query
from server.query.parse import read_query
from server.schema.model import USER
from server.site.site import Site

SHOWN = ("username", "email", "provider", "confirmed", "blocked", "createdAt", "updatedAt", "publishedAt")
WRITTEN = ("username", "email", "password", "confirmed", "blocked", "role", "provider")
_EVERYBODY = 10**9


class UserKey(BaseConverter):
    """The part of a path that names a user: whatever no other path has there."""

    regex = r"(?!(?:me|count)$)[^/]+"


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The routes of users, roles and permissions."""
    bp = Blueprint("users", __name__, url_prefix="/api")
    bp.record_once(lambda setup: setup.app.url_map.converters.update(user=UserKey))
    users = identities.users

    def asked(actor: Actor) -> Query:
        state = state_of(request)
        params = {**parameters(request)}
        query = read_query(state.schema, state.settings, state.schema.types[USER], params, many=True)
        query = narrow(query, actor, state.schema)
        selection = query.selection if query.selection.fields else replace(query.selection, fields=SHOWN)
        page = query.page if "pagination" in params else Page(0, _EVERYBODY, 1)
        return replace(query, selection=selection, page=page)

    def rendered(query: Query, some: list[User]) -> list[bytes]:
        state = state_of(request)
        return render_users(view_of(state.schema, state.settings, some, site.started), query)

    def with_role(query: Query) -> Query:
        """The query, with the role populated, as answers to writes have it."""
        state = state_of(request)
        role = read_query(state.schema, state.settings, query.type, {"populate": "role"}, many=False)
        return replace(query, selection=replace(query.selection, populate=role.selection.populate))

    def one(query: Query, user: User | None, status: int = 200) -> Response:
        if user is None:
            raise NotFoundError()
        selection = replace(query.selection, filter=EVERYTHING)
        return answer(rendered(replace(query, selection=selection), [user])[0], status)

    @bp.get("/users", strict_slashes=False)
    def find_users() -> Response:
        actor = identities.permit(request, "user", "find")
        return answer(b"[%b]" % b",".join(rendered(asked(actor), users.all())))

    @bp.get("/users/count", strict_slashes=False)
    def count_users() -> Response:
        identities.permit(request, "user", "count")
        return answer(dumps(users.count()))

    @bp.get("/users/me", strict_slashes=False)
    def me() -> Response:
        actor = identities.permit(request, "user", "me")
        return one(asked(actor), users.get(_self(actor)))

    @bp.put("/users/me", strict_slashes=False)
    def update_me() -> Response:
        actor = identities.permit(request, "user", "updateMe")
        user_id, query = _self(actor), asked(actor)
        values = _read(json_body(request), state_of(request).settings, ("username", "email"), creating=False)
        _refuse_unproven(values, users.get(user_id), state_of(request).settings)
        return one(query, users.update(user_id, values))

    @bp.get("/users/<user:key>", strict_slashes=False)
    def find_user(key: str) -> Response:
        actor = identities.permit(request, "user", "findOne")
        return one(asked(actor), users.get(_number(key)))

    @bp.post("/users", strict_slashes=False)
    def create_user() -> Response:
        query = with_role(asked(identities.permit(request, "user", "create")))
        values = _read(json_body(request), state_of(request).settings, WRITTEN, creating=True)
        made = users.create(
            values["username"],
            values["email"],
            values["password"],
            role=values.get("role", "authenticated"),
            confirmed=values.get("confirmed", False),
            blocked=values.get("blocked", False),
        )
        return one(query, made, 201)

    @bp.put("/users/<user:key>", strict_slashes=False)
    def update_user(key: str) -> Response:
        query, user_id = with_role(asked(identities.permit(request, "user", "update"))), _number(key)
        if users.get(user_id) is None:
            raise NotFoundError()
        values = _read(json_body(request), state_of(request).settings, WRITTEN, creating=False)
        return one(query, users.update(user_id, values))

    @bp.delete("/users/<user:key>", strict_slashes=False)
    def delete_user(key: str) -> Response:
        query = asked(identities.permit(request, "user", "destroy"))
        return one(query, users.delete(_number(key)))

    @bp.get("/users-permissions/roles", strict_slashes=False)
    def find_roles() -> Response:
        identities.permit(request, "role", "find")
        everybody = users.all()
        return answer(
            dumps({"roles": [describe_role(r, everybody) for r in roles_of(state_of(request).settings)]})
        )

    @bp.get("/users-permissions/roles/<key>", strict_slashes=False)
    def find_role(key: str) -> Response:
        identities.permit(request, "role", "findOne")
        state = state_of(request)
        role = role_named(state.settings, key)
        if role is None:
            raise NotFoundError()
        tree = permissions_tree(state.schema, state.settings, role.type)
        return answer(dumps({"role": {**describe_role(role, users.all()), "permissions": tree}}))

    @bp.get("/users-permissions/permissions", strict_slashes=False)
    def find_permissions() -> Response:
        identities.permit(request, "role", "find")
        state = state_of(request)
        return answer(dumps({"permissions": permissions_tree(state.schema, state.settings, "")}))

    return bp


def _number(key: str) -> int:
    """The number of a user in a path. Raises NotFoundError for what is none."""
    if not key.isascii() or not key.isdigit():
        raise NotFoundError()
    return int(key[:20])


def _self(actor: Actor) -> int:
    """The number of the user that asks. Raises ForbiddenError where it is a token."""
    if actor.user_id is None:
        raise ForbiddenError()
    return actor.user_id


def _refuse_unproven(values: dict[str, Any], user: User | None, settings: Settings) -> None:
    """Refuse another address to a user where addresses have to be confirmed."""
    if not settings.confirm_email or user is None or "email" not in values:
        return
    if values["email"].strip().lower() != user.email:
        raise ApplicationError("The email can't be changed: addresses are confirmed here when registering")


def _read(body: object, settings: Settings, known: tuple[str, ...], *, creating: bool) -> dict[str, Any]:
    """The columns that a body sets. Raises ValidationError with everything that is wrong."""
    if not isinstance(body, dict):
        raise ValidationError("The body must be an object")
    unknown = next((key for key in body if key not in known), None)
    if unknown is not None:
        raise ValidationError(f"Invalid key {unknown}", {"key": unknown, "path": None, "source": "body"})
    least = {"username": SHORTEST_NAME, "email": 1, "password": SHORTEST_PASSWORD}
    needed = {"username", "email", "password"} if creating else set()
    errors = [
        error
        for name, length in least.items()
        if name in body or name in needed
        for error in field_errors(name, body.get(name), length)
    ]
    errors += [
        {"path": [name], "message": f"{name} must be true or false", "name": "ValidationError"}
        for name in ("confirmed", "blocked")
        if name in body and not isinstance(body[name], bool)
    ]
    # A provider is what it was made with: clients send back what they got.
    values = {name: value for name, value in body.items() if name not in ("role", "provider")}
    if body.get("role") is not None:
        role = role_named(settings, body["role"])
        if role is None:
            errors.append({"path": ["role"], "message": "role does not exist", "name": "ValidationError"})
        else:
            values["role"] = role.type
    if errors:
        raise form_error(errors)
    return values
