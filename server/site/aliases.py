"""Additional addresses of a page, listed in its document's file."""

import re
from collections.abc import Iterable, Iterator
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from server.documents.addresses import ALIAS_KEYS, origin_of, path_of
from server.formats.text_positions import Positions, nearest_position
from server.formats.tree import SyntaxProblem, Tree, is_null
from server.storage.read import decode, parse, positions_of

MAX_ALIASES = 1000  # limit for one document
MAX_ALIAS_CHARS = 2000  # limit for a percent-encoded alias, which is about the maximum length of an address
# An address that is normalized already, as most are. This saves 13 of the 14 µs for each document.
_PLAIN_ADDRESS = re.compile(
    r"(https?://[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::[0-9]+)?)((?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+)"
)
Source = tuple[str, str]  # origin, and path with or without a query string


def read_aliases(
    path: str, data: bytes, keys: Iterable[str] = ALIAS_KEYS
) -> Iterator[tuple[Any, int | None]]:
    """Yield each alias listed under `keys` in a document's file, unresolved, with its line number.

    The line number is None if it is unknown. An invalid file yields nothing.
    """
    positions: Positions = {}
    try:
        text = decode(data)
        tree = parse(path, text, None, positions)
    except SyntaxProblem:
        return
    if path.endswith(".json"):
        positions = positions_of(path, text)
    for key in keys:
        value: Tree = tree.get(key)
        if is_null(value):
            continue
        written = value if isinstance(value, list) else [value]
        for i, alias in enumerate(written[:MAX_ALIASES]):
            position = nearest_position(positions, (key, i) if isinstance(value, list) else (key,))
            yield alias, position.line if position else None


def resolve_alias(alias: Any, address: str, *, from_root: bool = False) -> Source:
    """Return the origin and the path of an alias.

    A relative alias is resolved against the folder of `address` or, if `from_root` is set, against the root.
    Raises ValueError if the alias is invalid or on another origin.
    """
    if not isinstance(alias, str) or not alias.strip():
        raise ValueError("is not a path")
    text, origin = alias.strip(), origin_of(address)
    if "#" in text:
        raise ValueError('contains "#", which browsers do not send to a server')
    if "://" in text or text.startswith("//"):
        try:
            parts = urlsplit(text)
        except ValueError as error:
            raise ValueError("is not a URL") from error
        if f"{parts.scheme}://{parts.netloc.lower()}" != origin:
            raise ValueError(f"is not on {origin}")
        text = path_of(text)
    path, _, query = text.partition("?")
    folder = "/" if from_root else dirname(unquote(urlsplit(address).path).rstrip("/")) or "/"
    try:
        source = normalize_path(join(folder, unquote(path))) + (f"?{encode_query(query)}" if query else "")
    except UnicodeEncodeError as error:
        raise ValueError("contains half of a surrogate pair") from error
    if len(source) > MAX_ALIAS_CHARS:
        raise ValueError(f"has more than {MAX_ALIAS_CHARS:,} characters when it is percent-encoded")
    return origin, source


def normalize_path(decoded_path: str) -> str:
    return quote(normpath("/" + decoded_path.lstrip("/")), safe="/")


def encode_query(query: str) -> str:
    return quote(query, safe="=&%+,.-_~")


def parse_address(address: str) -> Source:
    if plain := _PLAIN_ADDRESS.fullmatch(address):
        return plain[1], plain[2]
    _, _, path, query, _ = urlsplit(address)
    return origin_of(address), normalize_path(unquote(path)) + (f"?{encode_query(query)}" if query else "")
