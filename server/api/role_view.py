"""The header `Bifolio-Role`, with which a read shows what a role would see."""

from urllib.parse import unquote

from server.api.identities import ROLE_MARK
from server.api.response import NO_STORE, READ_METHODS, Environ, Representation, without
from server.errors import ForbiddenError, ValidationError

HEADER = "HTTP_BIFOLIO_ROLE"
_CREDENTIALS = "HTTP_AUTHORIZATION"
READ_ONLY_MESSAGE = "Requests with the header Bifolio-Role can only read"


def narrow_to_role(environ: Environ) -> None:
    """Add the requested role to the Authorization header, for `Identities.identify`.

    Raises ForbiddenError for writes, or ValidationError for an empty header.
    """
    if environ["REQUEST_METHOD"] not in READ_METHODS:
        raise ForbiddenError(READ_ONLY_MESSAGE)
    # The header is removed, because the request can be handled again on another thread.
    role = unquote(environ.pop(HEADER))
    if not role.strip():
        raise ValidationError("The header Bifolio-Role is empty; it must contain the name of a role")
    environ[_CREDENTIALS] = f"{environ.get(_CREDENTIALS, '')}{ROLE_MARK}{role}"


def is_narrowed(environ: Environ) -> bool:
    return ROLE_MARK in environ.get(_CREDENTIALS, "")


def without_storage(representation: Representation) -> Representation:
    """Forbid caching, because the caller gets another response without Bifolio-Role."""
    headers = without(representation.headers, "Cache-Control")
    return representation._replace(headers=(*headers, ("Cache-Control", NO_STORE)))
