"""The roles of a source, as site.yaml would have them: the report shows them.

They are never taken over, since a person has to decide who may do what; accounts do not come either.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from server.config.model import known_actions
from server.tools.importer.readers.links import Linked
from server.tools.importer.source import Roles

_ROLE = "plugin::users-permissions.role"
_PERMISSION = "plugin::users-permissions.permission"
# The subjects of site.yaml by the controllers of plugins.
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
    """The permissions of each role, as far as Quire has the same action."""
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
    """The subject and action in site.yaml for an action of the source; None if there is none."""
    if action == _LOCALES:
        return "locale", "find"
    controller, _, verb = action.rpartition(".")
    subject = _SUBJECTS.get(controller)
    if controller.startswith("api::") and controller in uids:
        subject = uids[controller].rpartition(".")[2]
    if subject is None or verb not in known_actions(subject):
        return None
    return subject, verb


def roles_lines(roles: Roles) -> Iterator[str]:
    """The roles as lines of site.yaml."""
    yield "roles:"
    for name, subjects in roles.items():
        yield f"  {name}:"
        yield from (f"    {subject}: [{', '.join(actions)}]" for subject, actions in subjects.items())
