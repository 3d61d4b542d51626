"""Markdown renderings of documents and of lists of documents."""

import json
from collections.abc import Mapping
from typing import Any

from server.auth.permissions import require
from server.auth.query_permissions import narrow_query
from server.config.model import ResponseFormat
from server.errors import NotFoundError
from server.query.ast import Node, Query, Selection
from server.query.queryable_attributes import targets_of
from server.query.serialize import query_string
from server.schema.model import UPLOAD, Schema, Type, title_of
from server.service.cache_tags import tag_of_bytes
from server.service.markdown.document import ENDING, Links, document_markdown
from server.service.markdown.syntax import escaped_line, heading, link
from server.service.read import Params, Reader, Rendering
from server.service.render import Renderer

SUMMARY_CHARS = 300
# attributes with a summary, in order of preference
SUMMARIES = ("summary", "description", "excerpt", "abstract", "teaser", "lead")
_FILE_FIELDS = ("name", "alternativeText", "url", "mime")


def read_markdown(reader: Reader, params: Params, document_id: str | None = None) -> Rendering:
    """Render a document as Markdown or, for a collection type without a `document_id`, a list of links.

    Raises ForbiddenError, NotFoundError or ValidationError.
    """
    reader = reader._replace(response_format=ResponseFormat.V5)
    reader.budget.leave_loop()  # A front matter of 100 kB takes 0.2 s.
    if document_id is None and reader.type.kind != "singleType":
        return _list(reader, params)
    require(reader.actor, reader.type, "findOne" if document_id is not None else "find")
    query = _with_links(reader, reader.query(params), params)
    view = reader.view(query)
    document = reader.find(view, query, document_id)
    if document is None:
        raise NotFoundError()
    body = Renderer(view).document(document, query.selection)
    text = document_markdown(reader.type, body, _links(reader, params), reader.budget)
    return reader.rendering(view, query, document, text)._replace(is_markdown=True)


def summary_attribute(type_: Type) -> str | None:
    return next(
        (n for n in SUMMARIES if (a := type_.attributes.get(n)) and a.visible and a.group == "string"), None
    )


def entry_attributes(type_: Type) -> list[str]:
    return [name for name in (*link_fields(type_), summary_attribute(type_)) if name] or ["documentId"]


def render_entry(type_: Type, value: Mapping[str, Any], links: Links) -> str:
    summary = value.get(summary_attribute(type_) or "")
    described = escaped_line(summary, SUMMARY_CHARS) if isinstance(summary, str) else ""
    return f"- {links.document_link(type_, value)}" + (f": {described}" if described else "")


def _links(reader: Reader, params: Params) -> Links:
    state, status = reader.state, params.get("status")
    asked = status if status == "draft" else ""
    return Links(state.schema, reader.actor, state.settings.locales.default, asked)


# --- one document ---------------------------------------------------------------------------------


def _with_links(reader: Reader, query: Query, params: Params) -> Query:
    if "populate" in params or "fields" in params:
        return query
    nodes = link_nodes(reader.state.schema, reader.type)
    return narrow_query(
        query._replace(selection=query.selection._replace(populate=nodes)), reader.actor, reader.state.schema
    )


def link_nodes(schema: Schema, type_: Type, enclosing: tuple[str, ...] = ()) -> tuple[Node, ...]:
    """Return `populate` nodes for all content of components and for the link text of related documents.

    Components in `enclosing` contain this type, so they are not populated again.
    """
    nodes = []
    for name in type_.populatable:
        attribute = type_.attributes.get(name)
        targets = targets_of(schema, attribute) if attribute else [type_]
        selections = {
            t.uid: Selection(populate=link_nodes(schema, t, (*enclosing, t.uid)))
            if t.kind == "component"
            else Selection(fields=link_fields(t))
            for t in targets
            if t.uid not in enclosing
        }
        if selections:
            nodes.append(Node(name, attribute, type_.position[name] if attribute else -1, selections))
    return tuple(nodes)


def link_fields(type_: Type) -> tuple[str, ...]:
    if type_.uid == UPLOAD:
        return _FILE_FIELDS
    names = (title_of(type_), "locale" if type_.localized else None)
    return tuple(name for name in names if name)


# --- a list ---------------------------------------------------------------------------------------


def _list(reader: Reader, params: Params) -> Rendering:
    type_, links = reader.type, _links(reader, params)
    asked = params if "fields" in params else {**params, "fields": entry_attributes(type_)}
    found = reader.collection(asked)
    answer = json.loads(found.body)
    lines = [render_entry(type_, value, links) for value in answer["data"]]
    more = _next_page(type_, params, answer["meta"]["pagination"])
    title = heading(1, escaped_line(type_.display or type_.plural))
    text = "\n".join([title, "", *(lines or ["No documents."]), *(["", more] if more else []), ""])
    body = text.encode()
    return found._replace(body=body, etag=tag_of_bytes(body), is_markdown=True)


def _next_page(type_: Type, params: Params, pagination: Mapping[str, int]) -> str:
    page, count, total = (pagination.get(name) for name in ("page", "pageCount", "total"))
    if page is None or count is None or page >= count:
        return ""
    chosen = params.get("pagination")
    following = {**(chosen if isinstance(chosen, Mapping) else {}), "page": str(page + 1)}
    query = query_string({**params, "pagination": following})
    text = f"Next page ({page + 1} of {count}, {total} documents)"
    return link(text, f"/api/{type_.plural}{ENDING}?{query}")
