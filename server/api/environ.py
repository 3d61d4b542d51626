"""What a WSGI environ says of a request, read without Flask."""

from collections.abc import Mapping
from typing import Any

from server.config.model import Settings
from server.errors import ValidationError
from server.query import qs

FORMAT = "Strapi-Response-Format"  # the header that asks for the previous format
# The keys of a WSGI environ that hold the state which the request is answered from, and what it may cost.
STATE, BUDGET = "quire.state", "quire.budget"
REFUSED = "quire.refused"  # the key of an error that was met while the body was received


def parse_query(raw: str) -> dict[str, object]:
    """A query string, as WSGI has it, as nested values. Raises ValidationError."""
    try:
        return qs.parse(raw if raw.isascii() else raw.encode("latin-1").decode())
    except UnicodeError as error:
        raise ValidationError("The query is not UTF-8") from error


def wsgi_text(raw: str) -> str:
    """A part of a path, as WSGI has it (each character stands for a byte), as text."""
    return raw if raw.isascii() else raw.encode("latin-1").decode(errors="replace")


def is_v4(environ: Mapping[str, Any], settings: Settings) -> bool:
    """Whether the previous format is wanted: by the request, else by the site (spec.md 4.4, 9)."""
    asked = environ.get("HTTP_STRAPI_RESPONSE_FORMAT")
    return settings.v4 if asked is None else str(asked).lower() == "v4"
