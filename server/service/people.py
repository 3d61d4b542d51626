"""Users and roles, as in Strapi's API (docs/access.md)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from server.auth.permissions import Actor, forbidden
from server.auth.roles import Role, resolve_role, roles_of
from server.auth.user import MIN_NAME_CHARS, MIN_PASSWORD_CHARS, OWN_FIELDS, SETTABLE_FIELDS, User
from server.auth.users import Users
from server.config.model import Settings
from server.documents.document import PUBLISHED, Document
from server.errors import (
    RESPONSE_ERRORS,
    ApplicationError,
    NotFoundError,
    UnauthorizedError,
    ValidationError,
)
from server.index.budget import UNLIMITED
from server.index.find import find, find_one
from server.index.snapshot import View
from server.query.ast import NO_FILTER, Query, Selection
from server.query.parse import read_offset_page
from server.schema.model import ROLE, USER, Schema
from server.service.forms import field_error, field_errors, form_error
from server.service.read import Params, Reader
from server.service.render import Renderer, dumps
from server.service.user_management import require_assignable, require_takeover
from server.write.faults import UNSAID

USER_FIELDS = (
    "username",
    "email",
    "provider",
    "confirmed",
    "blocked",
    "createdAt",
    "updatedAt",
    "publishedAt",
)
NO_USER_MESSAGE = "User not found"
_ROLE_FIELDS = ("name", "description", "type", "createdAt", "updatedAt", "publishedAt")


@dataclass(frozen=True, slots=True)
class People:
    """The users of a site.

    Permissions must be checked before a method is called. All methods can raise ValidationError.
    """

    users: Users
    reader: Reader

    def list(self, params: Params) -> list[bytes]:
        query = self._query(params)
        view = self.reader.view(query)
        return render_users(view, query, find(view, query).documents)

    def count(self, params: Params) -> int:
        query = self._query(params)
        is_filtered = query.selection.filter != NO_FILTER or query.text
        if is_filtered and not self.reader.actor.may("user", "find"):
            raise forbidden(self.reader.actor, "user", "find", is_type=False)
        return find(self.reader.view(query), query).total

    def get(self, user_id: int, params: Params) -> bytes:
        query = self._query(params)
        return self._show(query, self.users.get(user_id))

    def require(self, user_id: int) -> None:
        if self.users.get(user_id) is None:
            raise NotFoundError(NO_USER_MESSAGE)

    def create(self, body: object, params: Params) -> bytes:
        query = self._query_of_write(params, populate="role")
        settings = self.reader.state.settings
        values = _read_user(body, settings, creating=True)
        require_assignable(self.reader.actor, settings, values["role"])
        user = self.users.create(
            values["username"],
            values["email"],
            values["password"],
            role=values["role"],
            confirmed=values.get("confirmed", False),
            blocked=values.get("blocked", False),
        )
        return self._render_written(query, user)

    def update(self, user_id: int, body: object, params: Params) -> bytes:
        query = self._query_of_write(params, populate="role")
        values = _read_user(body, self.reader.state.settings, creating=False)
        self._require_manageable(user_id, allows_sign_in="password" in values or "email" in values)
        if "role" in values:
            require_assignable(self.reader.actor, self.reader.state.settings, values["role"])
        return self._render_written(query, self.users.update(user_id, values))

    def update_own(self, body: object, params: Params) -> bytes:
        """Change the caller's own account.

        Raises UnauthorizedError if the caller has no account, or ApplicationError if the update would change
        the email address and email confirmation is required.
        """
        user_id, query = own_id(self.reader.actor), self._query_of_write(params)
        settings = self.reader.state.settings
        values = _read_own(body, settings)
        _refuse_unconfirmed_email(values, self.users.get(user_id), settings)
        return self._render_written(query, self.users.update(user_id, values))

    def delete(self, user_id: int, params: Params) -> bytes:
        query = self._query_of_write(params)
        before = self.reader.view(query)
        self._require_manageable(user_id)
        return self._render_written(query, self.users.delete(user_id), before)

    def _require_manageable(self, user_id: int, *, allows_sign_in: bool = False) -> None:
        """Raise ForbiddenError if the user's role permits more than the caller's role.

        `allows_sign_in` must be set if the caller could sign in as the user after the change.
        """
        user = self.users.get(user_id)
        if user is not None:
            check = require_takeover if allows_sign_in else require_assignable
            check(self.reader.actor, self.reader.state.settings, user.role)

    def _query(self, params: Params) -> Query:
        query = self.reader.query(params, many=True)
        return query if "pagination" in params else query._replace(page=read_offset_page(params))

    def _query_of_write(self, params: Params, populate: str = "") -> Query:
        # Filters are omitted, so that the user is found after the write.
        query = self._query(params)
        selection = query.selection._replace(filter=NO_FILTER)
        if populate:
            populated = self.reader.query({"populate": populate}).selection.populate
            selection = selection._replace(populate=populated)
        return query._replace(selection=selection, text="")

    def _render_written(self, query: Query, user: User | None, view: View | None = None) -> bytes:
        try:
            return self._show(query, user, view)
        except RESPONSE_ERRORS:
            plain = query._replace(selection=query.selection._replace(populate=()))
            view = view or self.reader.view(plain)
            return self._show(plain, user, view._replace(budget=UNLIMITED))

    def _show(self, query: Query, user: User | None, view: View | None = None) -> bytes:
        view = view or self.reader.view(query)
        document = find_one(view, query, user.document_id) if user else None
        if document is None:
            raise NotFoundError()
        return render_users(view, query, [document])[0]


def list_roles(reader: Reader) -> list[bytes]:
    view = reader.view(Query(reader.type))
    documents = (find_role(view, role.document_id) for role in roles_of(reader.state.settings))
    return [render_role(view, role) for role in documents if role]


def get_role(reader: Reader, key: str) -> bytes:
    """Return a role as JSON. `key` is the number, the name or the documentId of the role.

    Raises NotFoundError.
    """
    view, role = reader.view(Query(reader.type)), resolve_role(reader.state.settings, key)
    document = find_role(view, role.document_id) if role else None
    if role is None or document is None:
        raise NotFoundError("Role not found")
    tree = dumps(permissions_tree(reader.state.schema, reader.state.settings, role.type))
    return render_role(view, document, b',"permissions":%b' % tree)


def own_id(actor: Actor) -> int:
    if actor.user_id is None:
        raise UnauthorizedError("Unauthorized")
    return actor.user_id


def _refuse_unconfirmed_email(values: Mapping[str, Any], user: User | None, settings: Settings) -> None:
    if not settings.auth.confirm_email or user is None or "email" not in values:
        return
    if values["email"].strip().lower() != user.email:
        raise ApplicationError(
            "The email can't be changed, because this site confirms email addresses only when users register"
        )


def _read_own(body: object, settings: Settings) -> dict[str, Any]:
    other = next((key for key in body if key not in OWN_FIELDS), None) if isinstance(body, dict) else None
    if other is not None:
        raise ValidationError(f"Invalid key {other}", {"key": other, "path": None, "source": "body"})
    return _read_user(body, settings, creating=False)


def _read_user(body: object, settings: Settings, *, creating: bool) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ValidationError("The request body must be an object")
    min_lengths = {"username": MIN_NAME_CHARS, "email": 1, "password": MIN_PASSWORD_CHARS}
    errors = [
        error
        for name, length in min_lengths.items()
        if name in body or creating
        for error in _account_errors(name, body.get(name, UNSAID), length, creating=creating)
    ]
    for name in ("confirmed", "blocked"):
        if name in body and not isinstance(body[name], bool):
            errors.append(field_error(name, "must be true or false", body[name]))
    values = {name: body[name] for name in SETTABLE_FIELDS if name in body and name != "role"}
    if "role" in body or creating:
        role = resolve_role(settings, body.get("role"), strict=True)
        errors += _role_errors(body.get("role", UNSAID), role, creating=creating)
        if role is not None:
            values["role"] = role.type
    if errors:
        raise form_error(errors)
    return values


def _account_errors(name: str, value: object, min_length: int, *, creating: bool) -> list[dict[str, Any]]:
    too_short = [field_error(name, "must be at least 1 characters", value)]
    if value == "" and name != "password" and not creating:
        return too_short
    if value == "" and name != "email" and creating:
        return [*too_short, *field_errors(name, value, min_length)]
    if name == "password" and not creating and not isinstance(value, str | None):
        return [{**field_error(name, "", value), "message": "Password must be at least 1 character"}]
    return field_errors(name, value, min_length)


def _role_errors(value: object, role: Role | None, *, creating: bool) -> list[dict[str, Any]]:
    if not isinstance(value, dict):
        if role is not None:
            return []
        missing = value is UNSAID or value is None
        return [field_error("role", "is a required field" if missing else "does not exist", value)]
    if role is not None and "connect" not in value:
        return []
    connect, disconnect = value.get("connect", UNSAID), value.get("disconnect")
    if connect is UNSAID or connect == []:
        if creating:
            return [_no_role(connect)]
        at = ["role", "disconnect"]
        return [_error_at(at, "Cannot remove role", disconnect)] if disconnect else []
    if not isinstance(connect, list):
        return [field_error("role", "must be a list", connect, "connect")]
    nameless = [
        _error_at(["role", "connect", str(i)], "Relation entry must include an id or documentId", entry)
        for i, entry in enumerate(connect)
        if not isinstance(entry, dict) or not entry.keys() & {"id", "documentId"}
    ]
    return nameless or ([] if role else [field_error("role", "does not exist", value)])


def _no_role(connect: object) -> dict[str, Any]:
    if connect is UNSAID:
        return field_error("role", "is a required field", connect, "connect")
    return _error_at(["role", "connect"], "Users must have a role", connect)


def _error_at(path: list[str], message: str, value: object) -> dict[str, Any]:
    return {**field_error(path[0], "", value, *path[1:]), "message": message}


def render_users(view: View, query: Query, users: Iterable[Document]) -> list[bytes]:
    selection = query.selection
    if selection.fields is None:
        selection = selection._replace(fields=USER_FIELDS)
    return list(map(Renderer(view).renderer_for(selection), users))


def render_role(view: View, role: Document, more_members: bytes = b"") -> bytes:
    rendered = Renderer(view).document(role, Selection(fields=_ROLE_FIELDS))
    type_, locale = view.snapshot.schema.types[USER], view.settings.locales.default
    count = len(view.snapshot.linking(type_, "role", role.document_id, locale, PUBLISHED))
    return b'%b,"nb_users":%d%b}' % (rendered[:-1], count, more_members)


def find_role(view: View, document_id: str) -> Document | None:
    return view.snapshot.get(
        view.snapshot.schema.types[ROLE], document_id, view.settings.locales.default, PUBLISHED
    )


def permissions_tree(schema: Schema, settings: Settings, role: str) -> dict[str, Any]:
    """Return a role's permissions in the format of Strapi's users-permissions plugin."""
    granted = settings.roles.get(role, frozenset())
    tree: dict[str, Any] = {}
    for type_ in schema.content_types:
        actions = {
            action: {"enabled": f"{type_.singular}.{action}" in granted, "policy": ""}
            for action in ("find", "findOne", "create", "update", "delete")
        }
        tree[f"api::{type_.singular}"] = {"controllers": {type_.singular: actions}}
    return tree
