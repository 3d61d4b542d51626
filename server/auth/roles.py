"""The roles in site.yaml, as the API returns them."""

from collections.abc import Mapping
from dataclasses import dataclass

from server.config.model import Settings

_NUMBERS: Mapping[str, int] = {"authenticated": 1, "public": 2}
_DESCRIPTIONS: Mapping[str, str] = {
    "authenticated": "Default role given to authenticated user.",
    "public": "Default role given to unauthenticated user.",
}


@dataclass(frozen=True, slots=True)
class Role:
    """A role in site.yaml, as the API returns it."""

    id: int
    type: str
    name: str
    description: str

    @property
    def document_id(self) -> str:
        return document_id_of(self.type)


def document_id_of(role: str) -> str:
    return f"role-{role}"


def roles_of(settings: Settings) -> list[Role]:
    """Return the site's roles, sorted by id."""
    # The roles in _NUMBERS always have the ids 1 and 2, because clients rely on them.
    others = [name for name in settings.roles if name not in _NUMBERS]
    numbers = {**_NUMBERS, **{name: i for i, name in enumerate(others, start=3)}}
    return sorted(
        (
            Role(numbers[n], n, n.replace("-", " ").capitalize(), _DESCRIPTIONS.get(n, ""))
            for n in settings.roles
        ),
        key=lambda role: role.id,
    )


def resolve_role(settings: Settings, reference: object) -> Role | None:
    """Return the role that a request body refers to, or None if there is no such role.

    `reference` is an id, a name, a documentId, or an object such as `{"connect": [{"id": 1}]}`.
    """
    if isinstance(reference, dict):
        reference = next((reference[name] for name in ("connect", "set") if name in reference), reference)
    if isinstance(reference, list):
        reference = reference[-1] if reference else None
    if isinstance(reference, dict):
        reference = next((reference[name] for name in ("id", "documentId") if name in reference), None)
    wanted = str(reference) if isinstance(reference, str | int) else None
    return next((r for r in roles_of(settings) if wanted in (str(r.id), r.type, r.document_id)), None)
