"""A script that reloads a page in development when something that it shows has changed."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import unquote

from server.api.caching.tags import tags_of_file
from server.api.environ import parse_query
from server.api.front import content_at
from server.api.reading import Reader
from server.documents.ids import composed
from server.errors import NotFoundError, ValidationError
from server.events.model import KINDS
from server.schema.cache_tags import SITE, document_tag, type_tag
from server.schema.model import Type
from server.site.site import State

_SOURCE = Path(__file__).parents[2] / "templates" / "reload.js"
_COMMENTS_AND_INDENTATION = re.compile(r"^\s*(//.*)?\n?", re.MULTILINE)


def script() -> str:
    """The script, with the names of the events that it listens to."""
    text = _COMMENTS_AND_INDENTATION.sub("", _SOURCE.read_text(encoding="utf-8"))
    return text.replace("KINDS", json.dumps([*KINDS, "restart"], separators=(",", ":")))


def tags_of_address(
    address: object, state: State, reader: Callable[[Type], Reader], subjects: Iterable[str]
) -> list[str]:
    """The tags that the answer to a path with a query has; `subjects` are the types that it may be about.

    What is not there yet has the tags that it will have. Raises ValidationError, and what a read raises.
    """
    if not isinstance(address, str):
        raise ValidationError('"of" must be the address of an answer, such as /api/articles?populate=author')
    path, _, query = address.partition("?")
    path = unquote(path)
    content = content_at(path, state.schema)
    if content is not None:
        return _tags_of_content(*content, query, reader)
    if path.startswith("/uploads/"):
        return [SITE, *tags_of_file(state.snapshot, composed(path.removeprefix("/uploads/")))]
    about_all = path.startswith(("/search", "/api/upload"))
    return [SITE, *(subjects if about_all else ())]


def _tags_of_content(
    type_: Type, document_id: str, query: str, reader: Callable[[Type], Reader]
) -> list[str]:
    try:
        read = reader(type_).get(parse_query(query), composed(document_id) or None)
    except NotFoundError:
        tag = document_tag(type_.uid, composed(document_id)) if document_id else type_tag(type_.uid)
        return [SITE, tag]
    return read.cache_tags.split(", ")
