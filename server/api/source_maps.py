"""Source maps: invisible characters that tell a preview which attribute a string comes from.

The encoding is the same as in `@vercel/stega`: each character of JSON becomes four zero-width characters.
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


def encode_mark(source: Mapping[str, str]) -> str:
    """Return a mark: invisible characters that encode where a string comes from."""
    query = "&".join(f"{name}={_quote(value)}" for name, value in source.items() if value)
    return _START + f'{{"strapiSource":"{query}"}}'.translate(_MARKS)


def _quote(value: str) -> str:
    return quote_plus(value, safe="*", errors="replace").replace("~", "%7E")


# --- marking --------------------------------------------------------------------------------------

HEADER = "Strapi-Encode-Source-Maps"  # request header; the value `true` requests source maps
COSTLY_BYTES = 64 * 1024  # Larger responses are processed one at a time.
# Attributes of these types are marked. `uid` is not one of them, because its values are used in URLs.
MARKED_TYPES = frozenset(
    (
        *("string", "text", "richtext", "email", "enumeration", "biginteger", "json"),
        *("date", "time", "datetime", "timestamp"),
    )
)
# Fields of media files that are marked.
FILE_TEXT_FIELDS = frozenset(("name", "alternativeText", "caption"))
_ADDRESS = re.compile(r"(?:https?://|/|#|mailto:|tel:)\S*")
_MAX_INTEGER_DIGITS = 18
_NO_PREVIEW = Preview("")


@dataclass(frozen=True, slots=True)
class _Source:
    """The attribute that a string comes from.

    - `unmarked`: the paths of attributes whose strings get no marks.
    - `model`: the uid of the type that the attribute belongs to.
    - `kind`: the kind of this type, or "" for a component.
    - `path`: the attribute's path.
    - `names`: the attribute's path without list indices.
    """

    document_id: str
    locale: str
    unmarked: frozenset[str]
    model: str
    kind: str
    path: str = ""
    names: str = ""

    def inside(self, name: str, index: int | None = None) -> "_Source":
        path = f"{self.path}.{name}" if self.path else name
        names = f"{self.names}.{name}" if self.names else name
        if index is not None:
            path = f"{path}.{index}"
        return _Source(self.document_id, self.locale, self.unmarked, self.model, self.kind, path, names)

    def of(self, type_: Type) -> "_Source":
        kind = "" if type_.kind == "component" else type_.kind
        return _Source(self.document_id, self.locale, self.unmarked, type_.uid, kind, self.path, self.names)


def mark(body: bytes, type_: Type, state: State, budget: Budget) -> bytes:
    """In a JSON response, add a mark to each string that comes from an attribute.

    Raises LimitError if the marked response is too large.
    """
    if len(body) > COSTLY_BYTES:
        budget.take_turn()
    # Long and fractional numbers are copied as text, because converting them could lose precision.
    answer = json.loads(body, parse_float=orjson.Fragment, parse_int=_integer)
    marker = _Marker(state, budget)
    for document in _objects(answer["data"]):
        marker.document(document, type_)
    return orjson.dumps(answer)


class _Marker:
    """Marker that adds marks to the strings of a parsed response in place."""

    def __init__(self, state: State, budget: Budget) -> None:
        self.schema: Schema = state.schema
        self.previews, self.budget = state.settings.preview, budget

    def document(self, document: dict[str, Any], type_: Type) -> None:
        if "documentId" not in document or type_.uid in ACCOUNT_UIDS or type_.uid == UPLOAD:
            return
        unmarked = self.previews.get(type_.singular, _NO_PREVIEW).unmarked
        locale = document.get("locale") or ""
        self.texts(document, type_, _Source(document["documentId"], locale, unmarked, type_.uid, type_.kind))

    def texts(self, values: dict[str, Any], type_: Type, source: _Source) -> None:
        for name, value in values.items():
            attribute = type_.attributes.get(name)
            inner = source.inside(name)
            if attribute is None or value is None or inner.names in source.unmarked:
                continue
            if attribute.type in MARKED_TYPES:
                values[name] = self.marked(value, attribute.type, inner)
            elif attribute.type == "blocks":
                self.mark_blocks(value, inner)
            elif attribute.type == "media":
                self.mark_files(value, inner.of(self.schema.types[UPLOAD]))
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

    def mark_files(self, value: Any, source: _Source) -> None:
        for file in _objects(value):
            for name in FILE_TEXT_FIELDS & file.keys():
                inner = source.inside(name)
                if inner.names not in source.unmarked:
                    file[name] = self.marked(file[name], "string" if name == "name" else "text", inner)

    def mark_blocks(self, value: Any, source: _Source) -> None:
        """Mark the first string of each block and of each list item.

        Also mark the alternative texts of images.
        """
        for block in _objects(value):
            if block.get("type") == "list":
                self.entries(block, source)
            elif block.get("type") in ("paragraph", "heading", "quote"):
                self.mark_first_text(block, source)
            elif block.get("type") == "image":
                for image in _objects(block.get("image")):
                    if image.get("alternativeText"):
                        self.block_text(image, "alternativeText", source)

    def entries(self, block: dict[str, Any], source: _Source) -> None:
        for entry in _objects(block.get("children")):
            if entry.get("type") == "list":
                self.entries(entry, source)
            elif entry.get("type") == "list-item":
                self.mark_first_text(entry, source)

    def mark_first_text(self, node: dict[str, Any], source: _Source) -> bool:
        if node.get("type") == "text" and isinstance(node.get("text"), str):
            self.block_text(node, "text", source)
            return True
        return any(self.mark_first_text(child, source) for child in _objects(node.get("children")))

    def block_text(self, values: dict[str, Any], name: str, source: _Source) -> None:
        values[name] = self.marked(values[name], "blocks", source, field_path=source.path)

    def marked(self, value: Any, type_: str, source: _Source, field_path: str = "") -> Any:
        if not isinstance(value, str) or _ADDRESS.fullmatch(value):
            return value
        # The keys have the same order as in Strapi, because front ends may compare the JSON text.
        told = encode_mark(
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
    items = value if isinstance(value, list) else [value]
    return (item for item in items if isinstance(item, dict))


def _integer(text: str) -> Any:
    return int(text) if len(text) <= _MAX_INTEGER_DIGITS else orjson.Fragment(text)
