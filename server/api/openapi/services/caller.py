"""For whom operations are described, and what the services have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from server.api.openapi.operations import operation
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.auth.permissions import Actor

FILE, USER = "UploadFile", "UsersPermissionsUser"
FLAG: JsonSchema = {"type": "boolean"}
TEXT: JsonSchema = {"type": "string"}
TIMESTAMP: JsonSchema = {"type": "string", "format": "date-time"}
_NINE_DIGITS: JsonSchema = {"type": "integer", "minimum": 0, "maximum": 999_999_999}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is told of operations; `public` is what needs no credentials.

    `limited` where 429 may come, `commits` where a write of theirs may become a commit, `branches` where it
    may be to a branch.
    """

    actor: Actor
    public: Actor
    limited: bool
    commits: bool
    branches: bool

    def operation(
        self,
        permission: str,
        tag: str,
        name: str,
        summary: str,
        answers: Mapping[int, JsonSchema],
        **more: Any,
    ) -> JsonSchema:
        """An operation of the subject and action of a permission; nothing where it is not granted."""
        subject, _, action = permission.partition(".")
        if not self.actor.may(subject, action):
            return {}
        public = self.public.may(subject, action)
        return operation(tag, name, summary, answers, public=public, limited=self.limited, **more)


def methods(**operations: JsonSchema) -> JsonSchema:
    """The operations of a path by method, without those that are not granted."""
    return {method: made for method, made in operations.items() if made}


def shared_of(name: str, *which: str) -> list[JsonSchema]:
    """Parameters of a built-in type, by their names."""
    return [ref(f"{name}.{each}", "parameters") for each in which]


def part_of(what: str) -> list[JsonSchema]:
    """The parameters that show a part of a list whose answers have no envelope."""
    all_of_them = {**_NINE_DIGITS, "minimum": -1}
    rows = (
        ("start", f"How many {what} to leave out first.", _NINE_DIGITS),
        ("limit", f"How many {what} to show; -1 shows all.", all_of_them),
    )
    return [{"name": n, "in": "query", "description": text, "schema": schema} for n, text, schema in rows]
