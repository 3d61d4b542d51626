"""The header `Bifolio-Role`, which limits a read to the permissions of the named role."""

from urllib.parse import unquote

from server.api.identities import ROLE_MARK
from server.api.response import NO_STORE, READ_METHODS, Environ, Representation, without
from server.errors import ForbiddenError, ValidationError

HEADER = "HTTP_BIFOLIO_ROLE"
_CREDENTIALS = "HTTP_AUTHORIZATION"
READ_ONLY_MESSAGE = "Requests with the header Bifolio-Role can only read"


def narrow_to_role(environ: Environ) -> None:
    """Move the role from the header `Bifolio-Role` to the Authorization header, where `identify` reads it.

    Raises ForbiddenError if the request is a write, and ValidationError if the header is empty.
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
    """Return the response with a header that forbids caching.

    Otherwise, a cache could use it for the same caller's requests without the header `Bifolio-Role`.
    """
    headers = without(representation.headers, "Cache-Control")
    return representation._replace(headers=(*headers, ("Cache-Control", NO_STORE)))
