"""The roles in site.yaml, as the API returns them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from server.config.model import Settings
from server.documents.values import derive_id
from server.schema.model import ROLE

_NUMBERS: Mapping[str, int] = {"authenticated": 1, "public": 2}  # Clients rely on these ids.
_DESCRIPTIONS: Mapping[str, str] = {
    "authenticated": "Default role given to authenticated user.",
    "public": "Default role given to unauthenticated user.",
}


@dataclass(frozen=True, slots=True)
class Role:
    """A role, as the API returns it."""

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
    names = [*_NUMBERS, *(name for name in settings.roles if name not in _NUMBERS)]
    return [_role(name) for name in names if name in settings.roles]


def _role(name: str) -> Role:
    # An id depends only on the name. Otherwise, it would refer to another role after one is deleted.
    number = _NUMBERS.get(name) or derive_id(ROLE, document_id_of(name))
    return Role(number, name, name.replace("-", " ").capitalize(), _DESCRIPTIONS.get(name, ""))


def resolve_role(settings: Settings, reference: object, *, strict: bool = False) -> Role | None:
    """Return the role that a request refers to, or None if there is no such role.

    `reference` is a name, a documentId, an id, or an object such as `{"connect": [{"id": 1}]}`. If `strict`
    is set, an `id` and a `documentId` in the same object must refer to the same role.
    """
    if isinstance(reference, dict):
        reference = next((reference[name] for name in ("connect", "set") if name in reference), reference)
    if isinstance(reference, list):
        reference = reference[-1] if reference else None
    references = [reference]
    if isinstance(reference, dict):
        references = [reference[name] for name in ("id", "documentId") if name in reference]
    roles = roles_of(settings)
    found = [list(_matching(roles, one)) for one in references]
    if strict and (not all(found) or len({role for matching in found for role in matching}) > 1):
        return None
    return next((matching[0] for matching in found if matching), None)


def _matching(roles: Sequence[Role], reference: object) -> Iterator[Role]:
    if isinstance(reference, str):
        yield from (role for role in roles if role.type == reference)
        yield from (role for role in roles if role.document_id == reference)
        yield from (role for role in roles if str(role.id) == reference)
    elif type(reference) is int:
        yield from (role for role in roles if role.id == reference)
