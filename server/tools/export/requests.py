"""The requests of an export for each type, and their responses, made as the server makes them.

Each response has a path for its file, and the request to which a running server sends the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from server.auth.permissions import Actor, may_read_drafts
from server.config.model import FILE, TypeExport
from server.documents.document import Document
from server.errors import ApiError, SetupError
from server.index.find import find, find_single
from server.index.snapshot import View
from server.query import qs
from server.query.ast import Page, Query
from server.query.parse import with_default_populate
from server.schema.model import Type
from server.service.read import Reader
from server.service.render import Renderer, list_answer, one_answer
from server.site.site import State

ALL = 10**9
LOCALES = "locale"  # the folder for locales other than the default one, beside `api`


@dataclass(frozen=True, slots=True)
class Access:
    """The actor of an export, and whether it exports drafts, of the types whose drafts it may see."""

    actor: Actor
    drafts: bool = False

    def status(self, type_: Type) -> Mapping[str, str]:
        """The `status` parameter of requests for a type, if it needs one."""
        drafts = self.drafts and may_read_drafts(self.actor, type_)
        return {"status": "draft"} if drafts else {}


@dataclass(frozen=True, slots=True)
class Response:
    """One file of an export: its path, its request, its bytes."""

    path: str
    request: str
    body: bytes


@dataclass(frozen=True, slots=True)
class ListRequest:
    """The documents of one type in one locale, in the order of their list, with the query for them."""

    access: Access
    view: View
    query: Query
    params: Mapping[str, Any]
    folder: str
    documents: Sequence[Document]

    @property
    def type(self) -> Type:
        """The type of the documents."""
        return self.query.type

    @property
    def pages(self) -> int:
        """The number of pages; an empty list has one."""
        return max(1, -(-len(self.documents) // self.query.page.limit))

    @property
    def one_by_one(self) -> bool:
        """Whether the actor may get documents by their ids."""
        return self.access.actor.may(self.type.singular, "findOne")

    @property
    def paths(self) -> Iterator[str]:
        """The paths of the responses."""
        if self.type.kind == "singleType":
            yield from (f"{self.folder}/{self.type.singular}.json" for _ in self.documents)
            return
        top = f"{self.folder}/{self.type.plural}"
        yield f"{top}.json"
        yield from (f"{top}/page/{number}.json" for number in range(1, self.pages + 1))
        if self.one_by_one:
            yield from (f"{top}/{document.document_id}.json" for document in self.documents)

    def responses(self) -> Iterator[Response]:
        """The responses: the document of a single type, or the pages of the list and its documents."""
        renderer, selection = Renderer(self.view, v4=self.view.settings.v4), self.query.selection
        one = {
            key: self.params[key] for key in ("locale", "status", "fields", "populate") if key in self.params
        }
        asked = _query(one)
        if self.type.kind == "singleType":
            path, url = f"{self.folder}/{self.type.singular}.json", f"/api/{self.type.singular}{asked}"
            for document in self.documents:
                body = one_answer(renderer.document(document, selection))
                yield Response(path, url, body)
            return
        top, url = f"{self.folder}/{self.type.plural}", f"/api/{self.type.plural}"
        for number in range(1, self.pages + 1):
            page = replace(self.query.page, start=(number - 1) * self.query.page.limit, page=number)
            shown = self.documents[page.start : page.start + page.limit]
            rendered = [renderer.document(d, selection) for d in shown]
            body = list_answer(rendered, page, len(self.documents))
            if number == 1:
                yield Response(f"{top}.json", f"{url}{_query(self.params)}", body)
            pagination = {**self.params.get("pagination", {}), "page": str(number)}
            query = _query({**self.params, "pagination": pagination})
            yield Response(f"{top}/page/{number}.json", f"{url}{query}", body)
            if self.one_by_one:
                for key, body in zip((d.document_id for d in shown), rendered, strict=True):
                    request = f"{url}/{quote(key, safe='')}{asked}"
                    yield Response(f"{top}/{key}.json", request, one_answer(body))


def _query(params: Mapping[str, Any]) -> str:
    query = qs.write(params)
    return f"?{query}" if query else ""


def listings(state: State, access: Access) -> Iterator[ListRequest]:
    """The listings to export: of every type that the actor may list, in each of its locales.

    Raises SetupError for parameters in `export.types` that no request may have.
    """
    for type_ in state.schema.content_types:
        wanted = state.settings.exported_types.get(type_.singular, TypeExport())
        if not access.actor.may(type_.singular, "find"):
            continue
        for locale in state.settings.locales if type_.localized else (state.settings.default_locale,):
            try:
                yield _listing(state, access, type_, wanted, locale)
            except ApiError as error:
                raise SetupError(
                    FILE, wanted.line, f"export.types.{type_.singular}: {error.message}"
                ) from error


def _listing(state: State, access: Access, type_: Type, wanted: TypeExport, locale: str) -> ListRequest:
    default = locale == state.settings.default_locale
    params = {**({} if default else {"locale": locale}), **access.status(type_), **wanted.parameters}
    # An export populates paged lists even if requests may not.
    settings = replace(state.settings, populate_with_pagination=True)
    reader = Reader(replace(state, settings=settings), type_, access.actor)
    asked = with_default_populate(qs.parse(qs.write(params)), type_, settings)
    query = reader.query(asked, many=True)
    view = reader.view(query)
    if type_.kind == "singleType":
        found = find_single(view, query)
        documents: Sequence[Document] = [found] if found else []
    else:
        documents = find(view, replace(query, page=Page(0, ALL, 1))).documents
    folder = "api" if default else f"{LOCALES}/{locale}/api"
    return ListRequest(access, view, query, params, folder, documents)
