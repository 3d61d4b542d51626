"""/api/users and /api/users-permissions: who there is, and what roles there are.

Users are answered bare, without the envelope of content, as clients expect."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from flask import Response, request

from server.api.identities import Identities
from server.api.operations.people import OWN, WRITTEN
from server.api.request import answer, budget_of, parameters, read_body, require_permission, state_of
from server.api.response import NOBODY
from server.api.routes.handlers import Handlers
from server.auth.permissions import Actor
from server.auth.roles import role_named, roles_of
from server.auth.user import SHORTEST_NAME, SHORTEST_PASSWORD, User, broken_rule
from server.config.model import FILE, Settings
from server.documents.document import PUBLISHED, Document
from server.errors import (
    ApplicationError,
    ForbiddenError,
    MethodNotAllowedError,
    NotFoundError,
    UnauthorizedError,
    ValidationError,
)
from server.index.find import find, find_one
from server.index.snapshot import View
from server.query.ast import EVERYTHING, Query, Selection
from server.query.parse import read_part
from server.schema.model import ROLE, USER, Schema
from server.service.read import Reader
from server.service.render import Renderer, dumps

# --- forms ----------------------------------------------------------------------------------------

MOST_SHOWN = 200  # characters of a value that an error quotes
_SECRET = ("code", "password")


def read_form(body: object, wanted: Mapping[str, int]) -> dict[str, str]:
    """The fields of a form, whose names have a least length each.

    Raises ValidationError with everything that is wrong with them: what is missing or malformed is
    told first, what is too short only once nothing is.
    """
    data = body if isinstance(body, dict) else {}
    for lengths in (dict.fromkeys(wanted, 1), wanted):
        errors = [e for name, least in lengths.items() for e in field_errors(name, data.get(name), least)]
        if errors:
            raise form_error(errors)
    return {name: str(data[name]) for name in wanted}


def refuse_others(body: object, known: Mapping[str, int]) -> None:
    """Refuse a form with fields that it does not have. Raises ValidationError that names them."""
    others = [name for name in body if name not in known] if isinstance(body, dict) else []
    if others:
        raise ValidationError(f"Invalid parameters: {', '.join(others)[:MOST_SHOWN]}")


def field_errors(name: str, value: object, least: int) -> list[dict[str, Any]]:
    """What is wrong with one field of a form, as entries of the error's details."""
    if value is None or value == "":
        return [field_error(name, "is a required field")]
    if not isinstance(value, str):
        return [field_error(name, "must be text", value)]
    broken = broken_rule(name, value, least)
    return [field_error(name, broken, value)] if broken else []


def field_error(name: str, sentence: str, value: object = None) -> dict[str, Any]:
    """An entry of the error's details; it quotes a value that is short and no secret."""
    shown = {"value": value} if _is_quotable(name, value) else {}
    return {"path": [name], "message": f"{name} {sentence}", "name": "ValidationError", **shown}


def _is_quotable(name: str, value: object) -> bool:
    if any(secret in name.lower() for secret in _SECRET):
        return False
    return isinstance(value, str | int | float) and len(str(value)) <= MOST_SHOWN


def form_error(errors: list[dict[str, Any]]) -> ValidationError:
    """One error that names everything that is wrong with a form."""
    message = str(errors[0]["message"]) if len(errors) == 1 else f"{len(errors)} errors occurred"
    return ValidationError(message, {"errors": errors})


# --- users ----------------------------------------------------------------------------------------

ROLES_ARE_FILES = f"Roles are written in {FILE}, not through the API"


def bind(handles: Handlers, identities: Identities) -> None:
    """Bind the operations of users, roles and permissions."""

    def asked(subject: str, action: str) -> Reader:
        """Who asks for users, and may do so. Raises ForbiddenError."""
        actor, state = require_permission(request, subject, action), state_of(request)
        type_, budget = state.schema.types[USER], budget_of(request)
        return Reader(state, type_, actor, users=identities.user_index, budget=budget)

    def wanted(ask: Reader) -> Query:
        """What the request wants to see: which users, which part of their list, what of each."""
        params = parameters(request)
        query = ask.query(params, many=True)
        return query if "pagination" in params else replace(query, page=read_part(params))

    def written(ask: Reader, populate: str = "") -> Query:
        """How the answer to a write shows the user, which is not for the request to choose."""
        query = wanted(ask)
        selection = replace(query.selection, filter=EVERYTHING)
        if populate:
            selection = replace(selection, populate=ask.query({"populate": populate}).selection.populate)
        return replace(query, selection=selection, text="")

    def shown(view: View, query: Query, user: User | None, status: int = 200, control: str = "") -> Response:
        document = find_one(view, query, user.document_id) if user else None
        if document is None:
            raise NotFoundError()
        return answer(render_users(view, query, [document])[0], status, control)

    @handles("findUsers")
    def find_users() -> Response:
        ask = asked("user", "find")
        query = wanted(ask)
        view = ask.view(query)
        found = render_users(view, query, find(view, query).documents)
        return answer(b"[%b]" % b",".join(found))

    @handles("countUsers")
    def count_users() -> Response:
        ask = asked("user", "count")
        query = wanted(ask)
        if (query.selection.filter != EVERYTHING or query.text) and not ask.actor.may("user", "find"):
            raise ForbiddenError()  # The number of those with some address tells who has it.
        return answer(dumps(find(ask.view(query), query).total))

    @handles("me")
    def me() -> Response:
        ask = asked("user", "me")
        user_id, query = _self(ask.actor), wanted(ask)
        return shown(ask.view(query), query, identities.users.get(user_id), control=NOBODY)

    @handles("updateMe")
    def update_me() -> Response:
        ask = asked("user", "updateMe")
        user_id, query = _self(ask.actor), written(ask)
        values = _read_own(read_body(request), ask.state.settings)
        _refuse_unproven(values, identities.users.get(user_id), ask.state.settings)
        updated = identities.users.update(user_id, values)
        return shown(ask.view(query), query, updated)

    @handles("findOneUser")
    def find_user(key: str) -> Response:
        ask = asked("user", "findOne")
        query = wanted(ask)
        return shown(ask.view(query), query, identities.users.get(_number(key)))

    @handles("createUser")
    def create_user() -> Response:
        ask = asked("user", "create")
        query = written(ask, populate="role")
        values = _read(read_body(request), ask.state.settings, creating=True)
        made = identities.users.create(
            values["username"],
            values["email"],
            values["password"],
            role=values["role"],
            confirmed=values.get("confirmed", False),
            blocked=values.get("blocked", False),
        )
        return shown(ask.view(query), query, made, 201)

    @handles("updateUser")
    def update_user(key: str) -> Response:
        ask = asked("user", "update")
        query, user_id = written(ask, populate="role"), _number(key)
        if identities.users.get(user_id) is None:
            raise NotFoundError()
        values = _read(read_body(request), ask.state.settings, creating=False)
        updated = identities.users.update(user_id, values)
        return shown(ask.view(query), query, updated)

    @handles("deleteUser")
    def delete_user(key: str) -> Response:
        ask = asked("user", "destroy")
        query, user_id = written(ask), _number(key)
        before = ask.view(query)
        return shown(before, query, identities.users.delete(user_id))

    @handles("findRoles")
    def find_roles() -> Response:
        ask = asked("role", "find")
        view = ask.view(Query(ask.type))
        found = (find_role(view, role.document_id) for role in roles_of(ask.state.settings))
        roles = [render_role(view, role) for role in found if role]
        return answer(b'{"roles":[%b]}' % b",".join(roles))

    @handles("findOneRole")
    def find_one_role(key: str) -> Response:
        ask = asked("role", "findOne")
        view, role = ask.view(Query(ask.type)), role_named(ask.state.settings, key)
        document = find_role(view, role.document_id) if role else None
        if role is None or document is None:
            raise NotFoundError("Role not found")
        tree = dumps(permissions_tree(ask.state.schema, ask.state.settings, role.type))
        return answer(b'{"role":%b}' % render_role(view, document, b',"permissions":%b' % tree))

    @handles("createRole", "updateRole", "deleteRole")
    def refuse_role(key: str = "") -> Response:
        require_permission(request, "role", "find")
        raise MethodNotAllowedError(("GET", "HEAD", "OPTIONS"), ROLES_ARE_FILES)

    @handles("findPermissions")
    def find_permissions() -> Response:
        ask = asked("role", "find")
        return answer(dumps({"permissions": permissions_tree(ask.state.schema, ask.state.settings, "")}))


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
    if not settings.auth.confirm_email or user is None or "email" not in values:
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


SHOWN = ("username", "email", "provider", "confirmed", "blocked", "createdAt", "updatedAt", "publishedAt")
_OF_A_ROLE = ("name", "description", "type", "createdAt", "updatedAt", "publishedAt")


def render_users(view: View, query: Query, users: Iterable[Document]) -> list[bytes]:
    """Users as a query wants them shown, each as a JSON object."""
    selection, renderer = query.selection, Renderer(view)
    if selection.fields is None:
        selection = replace(selection, fields=SHOWN)
    return [renderer.document(user, selection) for user in users]


def render_role(view: View, role: Document, more: bytes = b"") -> bytes:
    """A role with the number of its users; `more` are further members of the object."""
    shown = Renderer(view).document(role, Selection(fields=_OF_A_ROLE))
    type_, locale = view.snapshot.schema.types[USER], view.settings.locales.default
    count = len(view.snapshot.linking(type_, "role", role.document_id, locale, PUBLISHED))
    return b'%b,"nb_users":%d%b}' % (shown[:-1], count, more)


def find_role(view: View, document_id: str) -> Document | None:
    """The role with a documentId."""
    return view.snapshot.get(
        view.snapshot.schema.types[ROLE], document_id, view.settings.locales.default, PUBLISHED
    )


def permissions_tree(schema: Schema, settings: Settings, role: str) -> dict[str, Any]:
    """What a role may do, by controller and action, as clients of users-permissions read it."""
    granted = settings.roles.get(role, frozenset())
    tree: dict[str, Any] = {}
    for type_ in schema.content_types:
        actions = {
            action: {"enabled": f"{type_.singular}.{action}" in granted, "policy": ""}
            for action in ("find", "findOne", "create", "update", "delete")
        }
        tree[f"api::{type_.singular}"] = {"controllers": {type_.singular: actions}}
    return tree
