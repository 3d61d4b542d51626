"""Users and roles as documents, so that lists of them are filtered, sorted and populated as content is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.api.render import Renderer
from server.auth.users import User
from server.config.model import Settings
from server.documents.document import Document, make
from server.index.find import find
from server.index.snapshot import View, build
from server.query.ast import Query
from server.schema.model import ROLE, USER, Schema, Type

_NUMBERS: Mapping[str, int] = {"authenticated": 1, "public": 2}
_DESCRIPTIONS: Mapping[str, str] = {
    "authenticated": "Default role given to authenticated user.",
    "public": "Default role given to unauthenticated user.",
}


@dataclass(frozen=True, slots=True)
class Role:
    """A role of site.yaml as the API shows it."""

    id: int
    type: str
    name: str
    description: str

    @property
    def document_id(self) -> str:
        """The id that paths use."""
        return f"role-{self.type}"


def roles_of(settings: Settings) -> list[Role]:
    """The roles of a site; the two that every site has are numbered as clients know them."""
    others = [name for name in settings.roles if name not in _NUMBERS]
    numbers = {**_NUMBERS, **{name: i for i, name in enumerate(others, start=3)}}
    return sorted(
        (
            Role(numbers[n], n, n.replace("-", " ").capitalize(), _DESCRIPTIONS.get(n, ""))
            for n in settings.roles
        ),
        key=lambda role: role.id,
    )


def view_of(schema: Schema, settings: Settings, users: list[User], timestamp: str) -> View:
    """A snapshot of users and roles alone."""
    user_type, role_type = schema.types[USER], schema.types[ROLE]
    people = [_user_document(user_type, user, settings.default_locale) for user in users]
    roles = [
        _role_document(role_type, role, timestamp, settings.default_locale) for role in roles_of(settings)
    ]
    return View(build(schema, [*people, *roles]), settings)


def _user_document(type_: Type, user: User, locale: str) -> Document:
    values = (user.username, user.email, user.provider, user.confirmed, user.blocked, (f"role-{user.role}",))
    timestamps = (user.created_at, user.updated_at, user.created_at)
    return make(type_, user.document_id, values, timestamps, locale, f"user {user.id}", number=user.id)


def _role_document(type_: Type, role: Role, timestamp: str, locale: str) -> Document:
    values = (role.name, role.description, role.type)
    timestamps = (timestamp, timestamp, timestamp)
    return make(type_, role.document_id, values, timestamps, locale, f"role {role.type}", number=role.id)


def render_users(view: View, query: Query) -> list[bytes]:
    """The users that a query finds, each as a JSON object."""
    renderer = Renderer(view)
    found = find(view, query).documents
    return [renderer.document(d, query.selection) for d in found]


def describe_role(role: Role, users: list[User], timestamp: str) -> dict[str, Any]:
    """A role as the list of roles shows it; `timestamp` is when it was written."""
    return {
        "id": role.id,
        "documentId": role.document_id,
        "name": role.name,
        "description": role.description,
        "type": role.type,
        "createdAt": timestamp,
        "updatedAt": timestamp,
        "publishedAt": timestamp,
        "nb_users": sum(user.role == role.type for user in users),
    }


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


def role_named(settings: Settings, key: object) -> Role | None:
    """The role that a body names: by number, name or document id, also as `{"connect": [{"id": 1}]}`."""
    if isinstance(key, dict):
        key = next((key[name] for name in ("connect", "set") if name in key), key)
    if isinstance(key, list):
        key = key[-1] if key else None
    if isinstance(key, dict):
        key = next((key[name] for name in ("id", "documentId") if name in key), None)
    wanted = str(key) if isinstance(key, str | int) else None
    return next((r for r in roles_of(settings) if wanted in (str(r.id), r.type, r.document_id)), None)
