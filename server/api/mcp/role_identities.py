"""The identity of an agent that is started with `bifolio mcp --as ROLE`."""

from typing import Any

from server.api.identities import Identities
from server.auth.permissions import Actor
from server.config.model import Settings
from server.errors import ForbiddenError

# Built-in roles, with the permissions of API tokens of the types full-access and read-only.
FULL_ACCESS, READ_ONLY = BUILT_IN_ROLES = ("full-access", "read-only")
PREFIX = "agent:"


class RoleIdentities(Identities):
    """Identities for a process in which all requests have the same role."""

    def __init__(self, role: str, *others: Any, **more: Any) -> None:
        super().__init__(*others, **more)
        self._role = role

    def identify(
        self, authorization: str, settings: Settings, *, allow_ended: bool = False, waits: bool = True
    ) -> Actor:
        name = f"{PREFIX}{self._role}"
        if self._role in BUILT_IN_ROLES:
            return Actor(name, everything=self._role == FULL_ACCESS, reading=self._role == READ_ONLY)
        if self._role not in settings.roles:
            raise ForbiddenError(f'site.yaml has no role "{self._role}" any more')
        return Actor(name, settings.roles[self._role])

    def commit_author(self, actor: Actor) -> tuple[str, str]:
        return f"agent ({self._role})", ""
