"""Document + selection → JSON, in the flattened format or the previous one (`v4`).

An object is put together from bytes: the columns are written by orjson in one go, what is populated
is appended. Nothing is built twice, and a document's text is copied once.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any

import orjson

from server.documents import Document
from server.find import Found, compile_filter, in_order
from server.index import View
from server.pagination import pagination
from server.query import EVERYTHING, Node, Query, Selection
from server.schema import Type
from server.values import Component

Row = tuple[Any, ...]


class Renderer:
    """Renders documents for one answer; keeps what it worked out for each type and selection."""

    def __init__(self, view: View, *, v4: bool = False) -> None:
        self.view, self.v4 = view, v4
        self._columns: dict[tuple[str, int], Callable[[Row], bytes]] = {}
        self._tests: dict[int, Any] = {}

    def document(self, document: Document, selection: Selection, locale: str) -> bytes:
        """One document as a JSON object; `locale` is where the walk has come to be."""
        locale = document.locale if document.type.localized else locale
        head = _members({"id": document.row[0], "documentId": document.row[1]})
        body = self._body(document.type, selection, document.row)
        for node in selection.populate:
            body += b"," + self._member(node, document.row, document, locale)
        if self.v4:
            return b'{%b,"attributes":{%b}}' % (head, body.removeprefix(b","))
        return b"{%b%b}" % (head, body)

    def component(self, component: Component, selection: Selection, locale: str, *, named: bool) -> bytes:
        """One component; `named` adds `__component`, as entries of a dynamic zone have it."""
        out = _members({"id": component.row[0]}) + self._body(component.type, selection, component.row)
        for node in selection.populate:
            out += b"," + self._member(node, component.row, None, locale)
        if named:
            out += b',"__component":' + orjson.dumps(component.type.uid)
        return b"{%b}" % out

    def _body(self, type_: Type, selection: Selection, row: Row) -> bytes:
        """The columns of a row as `,"name":value…`."""
        key = (type_.uid, id(selection))
        columns = self._columns.get(key)
        if columns is None:
            names = type_.visible if selection.fields is None else selection.fields
            columns = self._columns[key] = _columns(type_, names)
        return columns(row)

    def _member(self, node: Node, row: Row, owner: Document | None, locale: str) -> bytes:
        return orjson.dumps(node.name) + b":" + self._value(node, row, owner, locale)

    def _value(self, node: Node, row: Row, owner: Document | None, locale: str) -> bytes:
        attribute = node.attribute
        if attribute is None:
            documents = self.view.localizations(owner) if owner else []
            return self._documents(node, documents, locale, many=True)
        value = row[node.at]
        if attribute.type in ("component", "dynamiczone"):
            return self._components(node, value, locale)
        related = self.view.related(attribute, value, owner, locale)
        return self._documents(node, related, locale, many=attribute.to_many)

    def _documents(self, node: Node, documents: list[Document], locale: str, *, many: bool) -> bytes:
        shown = [d for d in documents if d.type.uid in node.selections]
        for selection in node.selections.values():
            if selection.filter is not EVERYTHING and selection.filter != EVERYTHING:
                shown = [d for d in shown if self._passes(selection, d, locale)]
            if selection.sort:
                shown = in_order(self.view, shown, selection.sort)
        # The other side of a morph relation has one type, which need not be said.
        morph = node.attribute is not None and node.attribute.morph and not node.attribute.derived
        out = [self._related(d, node.selections[d.type.uid], locale, morph=morph) for d in shown]
        data = b"[%b]" % b",".join(out) if many else (out[0] if out else b"null")
        return b'{"data":%b}' % data if self.v4 else data

    def _related(self, document: Document, selection: Selection, locale: str, *, morph: bool) -> bytes:
        rendered = self.document(document, selection, locale)
        if not morph:
            return rendered
        return b'{"__type":%b,%b' % (orjson.dumps(document.type.uid), rendered[1:])

    def _passes(self, selection: Selection, document: Document, locale: str) -> bool:
        inside = document.locale if document.type.localized else locale
        return bool(self._test(selection)(document.row, document, inside))

    def _test(self, selection: Selection) -> Any:
        test = self._tests.get(id(selection))
        if test is None:
            test = self._tests[id(selection)] = compile_filter(self.view, selection.filter)
        return test

    def _components(self, node: Node, value: Any, locale: str) -> bytes:
        attribute = node.attribute
        assert attribute is not None
        zone = attribute.type == "dynamiczone"
        shown = [
            (component, selection)
            for component in (value if isinstance(value, tuple) else (value,))
            if component is not None
            and (selection := node.selections.get(component.type.uid)) is not None
            and (selection.filter == EVERYTHING or self._test(selection)(component.row, None, locale))
        ]
        out = [self.component(c, selection, locale, named=zone) for c, selection in shown]
        if zone or attribute.repeatable:
            return b"[%b]" % b",".join(out)
        return out[0] if out else b"null"


def _members(values: dict[str, Any]) -> bytes:
    return orjson.dumps(values)[1:-1]


def _columns(type_: Type, names: Sequence[str]) -> Callable[[Row], bytes]:
    """A function that writes some columns of a type's rows as `,"name":value…`."""
    if not names:
        return lambda row: b""
    positions = [type_.position[name] for name in names]
    pick: Callable[[Row], Any] = (
        itemgetter(*positions) if len(positions) > 1 else lambda row: (row[positions[0]],)
    )
    big = [name for name in names if type_.columns[name].type == "biginteger"]

    def write(row: Row) -> bytes:
        values = dict(zip(names, pick(row), strict=True))
        for name in big:
            if values[name] is not None:
                values[name] = str(values[name])
        return b"," + dumps(values)[1:-1]

    return write


def dumps(value: Any) -> bytes:
    """JSON of a value; decimals keep their digits, integers of any size are exact."""
    try:
        return orjson.dumps(value, default=_default)
    except TypeError:
        return orjson.dumps(_with_large_integers(value), default=_default)


def _default(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(format(value, "f").encode())
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _with_large_integers(value: Any) -> Any:
    """A value whose integers of more than 64 bits, which orjson does not write, are written out."""
    if isinstance(value, dict):
        return {key: _with_large_integers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_large_integers(item) for item in value]
    if isinstance(value, int) and value.bit_length() > 63:
        return orjson.Fragment(str(value).encode())
    return value


def render_one(view: View, document: Document, query: Query, *, v4: bool) -> bytes:
    """The answer that holds one document (spec.md 2.1)."""
    body = Renderer(view, v4=v4).document(document, query.selection, document.locale)
    return b'{"data":%b,"meta":{}}' % body


def render_list(view: View, found: Found, query: Query, *, v4: bool) -> bytes:
    """The answer that holds a page of documents (spec.md 2.5)."""
    renderer, selection = Renderer(view, v4=v4), query.selection
    rendered = b",".join([renderer.document(d, selection, d.locale) for d in found.documents])
    meta = orjson.dumps({"pagination": pagination(query.page, found.total)})
    return b'{"data":[%b],"meta":%b}' % (rendered, meta)
