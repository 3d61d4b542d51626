"""Users and roles as /api/users and /api/users-permissions show them: bare, without an envelope."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from server.api.render import Renderer
from server.config.model import Settings
from server.documents.document import PUBLISHED, Document
from server.index.snapshot import View
from server.query.ast import Query, Selection
from server.schema.model import ROLE, USER, Schema

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
    type_, locale = view.snapshot.schema.types[USER], view.settings.default_locale
    count = len(view.snapshot.linking(type_, "role", role.document_id, locale, PUBLISHED))
    return b'%b,"nb_users":%d%b}' % (shown[:-1], count, more)


def find_role(view: View, document_id: str) -> Document | None:
    """The role with a documentId."""
    return view.snapshot.get(
        view.snapshot.schema.types[ROLE], document_id, view.settings.default_locale, PUBLISHED
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
