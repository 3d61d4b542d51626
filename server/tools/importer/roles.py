"""The roles of a source, as site.yaml would say them: shown in the report, never taken over.

Who may do what is decided by a person, and the accounts do not come either.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from server.config.model import ACTIONS
from server.tools.importer.links import Linked
from server.tools.importer.source import Roles

_ROLE = "plugin::users-permissions.role"
_PERMISSION = "plugin::users-permissions.permission"
# What controllers of plugins are called here.
_SUBJECTS = {
    "plugin::upload.content-api": "upload",
    "plugin::users-permissions.user": "user",
    "plugin::users-permissions.auth": "auth",
    "plugin::users-permissions.role": "role",
}
_LOCALES = "plugin::i18n.locales.listLocales"


def read_roles(
    entities: Mapping[str, Sequence[tuple[int, Mapping[str, Any]]]], linked: Linked, uids: Mapping[str, str]
) -> Roles:
    """What each role may do there, as far as there is such an action here."""
    names = {row: str(data.get("type")) for row, data in entities.get(_ROLE, ())}
    roles: dict[str, dict[str, list[str]]] = {}
    for row, data in entities.get(_PERMISSION, ()):
        found = _action(str(data.get("action")), uids)
        if found is None:
            continue
        for _, (_, role) in linked.targets.get((_PERMISSION, row, "role"), ()):
            if role in names:
                roles.setdefault(names[role], {}).setdefault(found[0], []).append(found[1])
    return roles


def _action(action: str, uids: Mapping[str, str]) -> tuple[str, str] | None:
    """(subject, action) as site.yaml names them."""
    if action == _LOCALES:
        return "locale", "find"
    controller, _, verb = action.rpartition(".")
    subject = _SUBJECTS.get(controller)
    if controller.startswith("api::") and controller in uids:
        subject = uids[controller].rpartition(".")[2]
    if subject is None or verb not in ACTIONS.get(subject, ACTIONS[""]):
        return None
    return subject, verb


def roles_lines(roles: Roles) -> Iterator[str]:
    """The lines of site.yaml that say so."""
    yield "roles:"
    for name, subjects in roles.items():
        yield f"  {name}:"
        yield from (f"    {subject}: [{', '.join(actions)}]" for subject, actions in subjects.items())
