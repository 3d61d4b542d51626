"""Source maps, which tell a preview where each string in a response is stored. A source map consists of
invisible characters that are appended to the string.

The encoding is the same as in `@vercel/stega`. Four zero-width characters represent the digits 0 to 3. A
source map (here called a mark) begins with four zeros, followed by JSON. Each character of the JSON is
encoded as four digits, the most significant digit first.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import orjson

from server.config.model import Preview
from server.index.budget import Budget
from server.schema.model import ACCOUNT_UIDS, UPLOAD, Schema, Type
from server.site.site import State

# --- encoding -------------------------------------------------------------------------------------

DIGITS = "\u200b\u200c\u200d\ufeff"
_START = DIGITS[0] * 4
_SHIFTS = (6, 4, 2, 0)
_MARKS = {code: "".join(DIGITS[code >> shift & 3] for shift in _SHIFTS) for code in range(256)}


def encode(source: Mapping[str, str]) -> str:
    """Encode the origin of a string as a mark. `source` is a mapping with keys such as `documentId`, `type`,
    `path` and `model`.

    Keys with empty values are omitted.
    """
    query = "&".join(f"{name}={_quote(value)}" for name, value in source.items() if value)
    return _START + f'{{"strapiSource":"{query}"}}'.translate(_MARKS)


def _quote(value: str) -> str:
    """Percent-encode a value as JavaScript's URLSearchParams does. ASCII letters, digits, *, -, . and _ are
    not encoded, and a space becomes +.
    """
    return quote_plus(value, safe="*", errors="replace").replace("~", "%7E")


# --- marking --------------------------------------------------------------------------------------

HEADER = "Strapi-Encode-Source-Maps"  # request header; the value `true` asks for source maps
COSTLY_BYTES = 64 * 1024  # Marks are added to larger responses only one at a time.
# The types of attributes whose values are marked. `uid` is not among them, because its values are used in
# URLs.
MARKED_TYPES = frozenset(
    (
        *("string", "text", "richtext", "email", "enumeration", "biginteger", "json"),
        *("date", "time", "datetime", "timestamp"),
    )
)
# The fields of a media file whose values are marked.
FILE_TEXT_FIELDS = frozenset(("name", "alternativeText", "caption"))
_ADDRESS = re.compile(r"(?:https?://|/|#|mailto:|tel:)\S*")
_MAX_INTEGER_DIGITS = 18
_NO_PREVIEW = Preview("")


@dataclass(frozen=True, slots=True)
class _Source:
    """The origin of a string: a document, and the path to the string in this document. `names` is this path
    without the indices of list items.
    """

    document_id: str
    locale: str
    unmarked: frozenset[str]
    model: str
    kind: str
    path: str = ""
    names: str = ""

    def inside(self, name: str, index: int | None = None) -> "_Source":
        """Return the origin of an attribute of this value. If the attribute is a list and `index` is given,
        return the origin of the list item at this index.
        """
        path = f"{self.path}.{name}" if self.path else name
        names = f"{self.names}.{name}" if self.names else name
        if index is not None:
            path = f"{path}.{index}"
        return _Source(self.document_id, self.locale, self.unmarked, self.model, self.kind, path, names)

    def of(self, type_: Type) -> "_Source":
        """Return a copy of this origin in which the type is replaced."""
        kind = "" if type_.kind == "component" else type_.kind
        return _Source(self.document_id, self.locale, self.unmarked, type_.uid, kind, self.path, self.names)


def mark(body: bytes, type_: Type, state: State, budget: Budget) -> bytes:
    """Add a mark to each string in the response to a content read. `body` is the response's JSON. Returns the
    changed JSON.

    Raises LimitError if the result is too large.
    """
    if len(body) > COSTLY_BYTES:
        budget.take_turn()
    # Numbers are not converted, because they could lose precision.
    answer = json.loads(body, parse_float=orjson.Fragment, parse_int=_integer)
    marker = _Marker(state, budget)
    for document in _objects(answer["data"]):
        marker.document(document, type_)
    return orjson.dumps(answer)


class _Marker:
    """Editor that adds marks (source maps) to the strings in a parsed response, in place."""

    def __init__(self, state: State, budget: Budget) -> None:
        self.schema: Schema = state.schema
        self.previews, self.budget = state.settings.preview, budget

    def document(self, document: dict[str, Any], type_: Type) -> None:
        """Add marks to the strings in a document. Users, roles and media files are skipped, because the
        studio does not edit them as documents.
        """
        if "documentId" not in document or type_.uid in ACCOUNT_UIDS or type_.uid == UPLOAD:
            return
        unmarked = self.previews.get(type_.singular, _NO_PREVIEW).unmarked
        locale = document.get("locale") or ""
        self.texts(document, type_, _Source(document["documentId"], locale, unmarked, type_.uid, type_.kind))

    def texts(self, values: dict[str, Any], type_: Type, source: _Source) -> None:
        """Add marks to the strings in the attributes of a document or component."""
        for name, value in values.items():
            attribute = type_.attributes.get(name)
            inner = source.inside(name)
            if attribute is None or value is None or inner.names in source.unmarked:
                continue
            if attribute.type in MARKED_TYPES:
                values[name] = self.marked(value, attribute.type, inner)
            elif attribute.type == "blocks":
                self.blocks(value, inner)
            elif attribute.type == "media":
                self.files(value, inner.of(self.schema.types[UPLOAD]))
            elif attribute.holds_components:
                for index, part in enumerate(_objects(value)):
                    place = source.inside(name, index) if isinstance(value, list) else inner
                    component = self.schema.types[part.get("__component") or attribute.component or ""]
                    self.texts(part, component, place.of(component))
            elif attribute.type == "relation":
                for document in _objects(value):
                    target = self.schema.types.get(document.get("__type") or attribute.target or "")
                    if target is not None:
                        self.document(document, target)

    def files(self, value: Any, source: _Source) -> None:
        """Add marks to the names, alternative texts and captions of the files in a media attribute. The path
        in these marks does not contain the file's index, even if the attribute is a list.
        """
        for file in _objects(value):
            for name in FILE_TEXT_FIELDS & file.keys():
                inner = source.inside(name)
                if inner.names not in source.unmarked:
                    file[name] = self.marked(file[name], "string" if name == "name" else "text", inner)

    def blocks(self, value: Any, source: _Source) -> None:
        """Add a mark to the first string in each block of a rich text, and to the alternative text of each
        image. Code blocks are skipped.
        """
        for block in _objects(value):
            if block.get("type") == "list":
                self.entries(block, source)
            elif block.get("type") in ("paragraph", "heading", "quote"):
                self.first_text(block, source)
            elif block.get("type") == "image":
                for image in _objects(block.get("image")):
                    if image.get("alternativeText"):
                        self.block_text(image, "alternativeText", source)

    def entries(self, block: dict[str, Any], source: _Source) -> None:
        """Add a mark to the first string in each entry of a list block, and of the lists nested in it."""
        for entry in _objects(block.get("children")):
            if entry.get("type") == "list":
                self.entries(entry, source)
            elif entry.get("type") == "list-item":
                self.first_text(entry, source)

    def first_text(self, node: dict[str, Any], source: _Source) -> bool:
        """Add a mark to the first string inside a node of a rich text. Returns False if it contains no
        string.
        """
        if node.get("type") == "text" and isinstance(node.get("text"), str):
            self.block_text(node, "text", source)
            return True
        return any(self.first_text(child, source) for child in _objects(node.get("children")))

    def block_text(self, values: dict[str, Any], name: str, source: _Source) -> None:
        """Add a mark to one string in a block. The mark also contains the path to the rich text attribute
        (`fieldPath`).
        """
        values[name] = self.marked(values[name], "blocks", source, field_path=source.path)

    def marked(self, value: Any, type_: str, source: _Source, field_path: str = "") -> Any:
        """Return a string with its mark appended. URLs are returned unchanged, because a mark would break
        them. Values that are not strings are also returned unchanged.
        """
        if not isinstance(value, str) or _ADDRESS.fullmatch(value):
            return value
        # The keys are in the same order as in Strapi, because front ends may compare the JSON text.
        told = encode(
            {
                "documentId": source.document_id,
                "type": type_,
                "path": source.path,
                "model": source.model,
                "kind": source.kind,
                "locale": source.locale,
                "fieldPath": field_path,
            }
        )
        self.budget.write(3 * len(told))
        return value + told


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a list. If the value itself is an object, yield only this object."""
    items = value if isinstance(value, list) else [value]
    return (item for item in items if isinstance(item, dict))


def _integer(text: str) -> Any:
    return int(text) if len(text) <= _MAX_INTEGER_DIGITS else orjson.Fragment(text)
