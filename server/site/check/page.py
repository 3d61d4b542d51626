"""The text of a document, and the prose in it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar, cast

from server.documents.document import VALUES, Document
from server.documents.path_rules import MARKDOWN
from server.documents.values import components_at
from server.formats import frontmatter
from server.formats.prose import Heading, Link, Prose, link_definition_names, possible_anchors
from server.formats.text_positions import KeyPath, Position, Positions, nearest_position
from server.formats.tree import SyntaxProblem, Tree
from server.schema.model import Schema, Type
from server.storage.read import BOM, parse, positions_of

Placed = TypeVar("Placed", Link, Heading)


@dataclass(frozen=True, slots=True)
class Passage:
    """The prose in one value of a document, which is found at `key_path`."""

    key_path: KeyPath
    prose: Prose


@dataclass(frozen=True, eq=False)
class Page:
    """The text of a document, which is loaded with `read` when it is first needed.

    If `document` is given, the prose comes from the document's values. This is faster, but then the positions
    in the prose are wrong.
    """

    path: str
    type: Type
    schema: Schema
    read: Callable[[], str]
    document: Document | None = None
    read_prose: Callable[[str, int], Prose] = field(default=lambda text, line: read_prose(text, line))

    @cached_property
    def text(self) -> str:
        try:
            return self.read()
        except (OSError, SyntaxProblem):
            return ""

    @cached_property
    def passages(self) -> tuple[Passage, ...]:
        found: list[Passage] = []
        with suppress(SyntaxProblem):
            for passage in self._find_passages():
                found.append(passage)
        return tuple(found)

    @cached_property
    def anchors(self) -> frozenset[str]:
        return frozenset().union(*(passage.prose.anchors for passage in self.passages))

    @cached_property
    def possible_anchors(self) -> frozenset[str]:
        return possible_anchors(self.text)

    @cached_property
    def defined_references(self) -> frozenset[str]:
        return link_definition_names(self.text)

    @cached_property
    def parsed(self) -> tuple[dict[str, Tree], Positions]:
        """The values outside the Markdown body, and their positions.

        Raises SyntaxProblem if the text is invalid.
        """
        positions: Positions = {}
        tree = parse(self.path, self.text, None, positions)
        return tree, positions_of(self.path, self.text) if self.path.endswith(".json") else positions

    @property
    def has_body(self) -> bool:
        return self.type.body is not None and self.path.endswith(MARKDOWN)

    @property
    def has_prose(self) -> bool:
        return self.has_body or bool(self.schema.prose_attributes.get(self.type.uid))

    def position(self, key_path: KeyPath) -> Position | None:
        """Return the position of a value or, if it is unknown, of the innermost enclosing value.

        Return None if none of these positions is known. Raises SyntaxProblem if the text is invalid.
        """
        return nearest_position(self.parsed[1], key_path)

    def _find_passages(self) -> Iterator[Passage]:
        if self.document is not None:
            yield from self._passages_in_row(self.type, self.document.read_row()[VALUES], ())
            return
        if self.has_body and self.type.body:
            text = self.text.removeprefix(BOM)
            rest = frontmatter.split_front_matter(text).body_text
            first_line = text.count("\n", 0, len(text) - len(rest)) + 1
            yield Passage((self.type.body,), self.read_prose(rest, first_line))
        others = self.schema.prose_attributes.get(self.type.uid, ())
        if any(name != self.type.body for name in others) or (others and not self.has_body):
            yield from self._passages_in(self.type, self.parsed[0], ())

    def _passages_in(self, type_: Type, values: Tree, key_path: KeyPath) -> Iterator[Passage]:
        if not isinstance(values, dict):
            return
        for name in self.schema.prose_attributes.get(type_.uid, ()):
            attribute, value = type_.attributes[name], values.get(name)
            inner = (*key_path, name)
            if attribute.type == "richtext" and isinstance(value, str) and value:
                yield Passage(inner, self._place_in_file(self.read_prose(value, 1), inner))
            elif attribute.type == "blocks":
                yield self._passage_in_blocks(value, inner)
            elif attribute.holds_components:
                items = value if isinstance(value, list) else [value]
                for i, item in enumerate(items):
                    uid = attribute.component or (
                        str(item.get("__component")) if isinstance(item, dict) else ""
                    )
                    inner_type = self.schema.types.get(uid)
                    if inner_type:
                        where = (*inner, i) if isinstance(value, list) else inner
                        yield from self._passages_in(inner_type, item, where)

    def _passages_in_row(self, type_: Type, values: Any, key_path: KeyPath) -> Iterator[Passage]:
        names = self.schema.prose_attributes.get(type_.uid, ())
        for attribute, value in zip(type_.attributes.values(), values, strict=True):
            is_body = attribute.name == type_.body
            if not value or not (is_body or attribute.name in names):
                continue
            inner = (*key_path, attribute.name)
            if attribute.type == "richtext" or is_body:
                yield Passage(inner, self.read_prose(str(value), 1))
            elif attribute.type == "blocks":
                yield self._passage_in_blocks(value, inner)
            for where, component in components_at(attribute, value, inner):
                yield from self._passages_in_row(component.type, component.values, where)

    def _passage_in_blocks(self, tree: Any, key_path: KeyPath) -> Passage:
        found = list(self._find_in_blocks(tree, key_path))
        links = tuple(one for one in found if isinstance(one, Link))
        return Passage(key_path, Prose(links, tuple(one for one in found if isinstance(one, Heading))))

    # --- positions in values ----------------------------------------------------------------------

    def _place_in_file(self, prose: Prose, key_path: KeyPath) -> Prose:
        line, column, value = self.position(key_path) or Position(1, 1)
        start = sum(len(one) + 1 for one in self.text.split("\n", line)[: line - 1])
        place = _PositionFinder(self.text, start, (line, value or column))
        links = tuple(place.of(link, link.target) for link in prose.links)
        headings = tuple(place.of(heading, heading.text) for heading in prose.headings)
        return Prose(links, headings, prose.text)

    def _find_in_blocks(self, tree: Any, key_path: KeyPath) -> Iterator[Link | Heading]:
        for i, node in enumerate(tree if isinstance(tree, list) else ()):
            if not isinstance(node, dict):
                continue
            inner, kind = (*key_path, i), node.get("type")
            if kind == "link":
                yield self._link("link", node.get("url"), (*inner, "url"))
            elif kind == "image" and isinstance(image := node.get("image"), dict):
                alt = str(image.get("alternativeText") or "").strip() or None
                yield self._link("image", image.get("url"), (*inner, "image", "url"), alt)
            elif kind == "heading" and str(node.get("level")) in "123456":
                line, column, _ = self._position_in_blocks(inner)
                yield Heading(int(str(node.get("level"))), _text_of(node), line, column)
            yield from self._find_in_blocks(node.get("children"), (*inner, "children"))

    def _link(self, kind: Any, target: Any, key_path: KeyPath, alt: str | None = None) -> Link:
        line, column, value = self._position_in_blocks(key_path)
        return Link(kind, str(target or "") or "#", line, value or column, alt)

    def _position_in_blocks(self, key_path: KeyPath) -> Position:
        return (None if self.document else self.position(key_path)) or Position(1, 1)


class _PositionFinder:
    def __init__(self, text: str, start: int, fallback: tuple[int, int]) -> None:
        self._text, self._start, self._fallback = text, start, fallback
        self._next: dict[str, int] = {}

    def of(self, found: Placed, written: str) -> Placed:
        at = self._text.find(written, self._next.get(written, self._start)) if written else -1
        if at < 0:
            return replace(found, line=self._fallback[0], column=self._fallback[1])
        self._next[written] = at + len(written)
        line = self._text.count("\n", 0, at) + 1
        return replace(found, line=line, column=at - self._text.rfind("\n", 0, at))


def _text_of(node: Any) -> str:
    if not isinstance(node, dict):
        return ""
    return str(node.get("text") or "") + "".join(map(_text_of, node.get("children") or ()))


def read_prose(text: str, first_line: int) -> Prose:
    if not text.strip():
        return Prose()
    return cast(Prose, import_module("server.formats.markdown").read_markdown(text, first_line))
