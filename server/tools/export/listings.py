"""The lists of documents in an export."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor
from server.config.model import FILE, TypeExport, with_values
from server.documents.document import Document
from server.errors import ApiError, SetupError
from server.index.find import find, find_single
from server.index.snapshot import View
from server.query import qs
from server.query.ast import Page, Query
from server.query.parse import with_default_populate
from server.query.serialize import query_string
from server.schema.model import Type
from server.service.read import Reader
from server.service.render import Renderer, list_response, one_answer
from server.site.site import State
from server.tools.export.response import Response

MAX_DOCUMENTS = 10**9
LOCALES = "locale"  # folder for all locales except the default


@dataclass(frozen=True, slots=True)
class Access:
    """The actor whose permissions limit the export.

    If `drafts` is set, drafts that the actor may read are exported instead of published versions.
    """

    actor: Actor
    drafts: bool = False

    def status_params(self, type_: Type) -> Mapping[str, str]:
        drafts = self.drafts and may_read_drafts(self.actor, type_)
        return {"status": "draft"} if drafts else {}


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A query for the documents of one content type in one locale, with its results."""

    access: Access
    view: View
    query: Query
    params: Mapping[str, Any]
    folder: str
    documents: Sequence[Document]

    @property
    def type(self) -> Type:
        return self.query.type

    @property
    def pages(self) -> int:
        return max(1, -(-len(self.documents) // self.query.page.limit))

    @property
    def has_document_files(self) -> bool:
        # Each document gets a file of its own if the actor is allowed to request single documents.
        return self.access.actor.may(self.type.singular, "findOne")

    @property
    def paths(self) -> Iterator[str]:
        if self.type.kind == "singleType":
            yield from (f"{self.folder}/{self.type.singular}.json" for _ in self.documents)
            return
        top = f"{self.folder}/{self.type.plural}"
        yield f"{top}.json"
        yield from (f"{top}/page/{number}.json" for number in range(1, self.pages + 1))
        if self.has_document_files:
            yield from (f"{top}/{document.document_id}.json" for document in self.documents)

    def responses(self) -> Iterator[Response]:
        renderer = Renderer(self.view, response_format=self.view.settings.api.format)
        render = renderer.renderer_for(self.query.selection)
        one = {
            key: self.params[key] for key in ("locale", "status", "fields", "populate") if key in self.params
        }
        document_query = _query(one)
        if self.type.kind == "singleType":
            path = f"{self.folder}/{self.type.singular}.json"
            url = f"/api/{self.type.singular}{document_query}"
            for document in self.documents:
                body = one_answer(render(document))
                yield Response(path, url, body)
            return
        top, url = f"{self.folder}/{self.type.plural}", f"/api/{self.type.plural}"
        for number in range(1, self.pages + 1):
            page = self.query.page._replace(start=(number - 1) * self.query.page.limit, page=number)
            shown = self.documents[page.start : page.start + page.limit]
            rendered = list(map(render, shown))
            body = list_response(rendered, page, len(self.documents))
            if number == 1:
                yield Response(f"{top}.json", f"{url}{_query(self.params)}", body)
            pagination = {**self.params.get("pagination", {}), "page": str(number)}
            query = _query({**self.params, "pagination": pagination})
            yield Response(f"{top}/page/{number}.json", f"{url}{query}", body)
            if self.has_document_files:
                for key, body in zip((d.document_id for d in shown), rendered, strict=True):
                    request = f"{url}/{quote(key, safe='')}{document_query}"
                    yield Response(f"{top}/{key}.json", request, one_answer(body))


def _query(params: Mapping[str, Any]) -> str:
    query = query_string(params)
    return f"?{query}" if query else ""


def listings(state: State, access: Access) -> Iterator[ListRequest]:
    """Yield the document lists to export. Raises SetupError if `export.types` in site.yaml is invalid."""
    for type_ in state.schema.content_types:
        type_export = state.settings.export.types.get(type_.singular, TypeExport())
        if not access.actor.may(type_.singular, "find"):
            continue
        for locale in (
            state.settings.locales.available if type_.localized else (state.settings.locales.default,)
        ):
            try:
                yield _listing(state, access, type_, type_export, locale)
            except ApiError as error:
                raise SetupError(
                    FILE,
                    type_export.line,
                    f"the documents for export.types.{type_.singular} can't be listed: {error.message}",
                ) from error


def _listing(state: State, access: Access, type_: Type, type_export: TypeExport, locale: str) -> ListRequest:
    default = locale == state.settings.locales.default
    params = {
        **({} if default else {"locale": locale}),
        **access.status_params(type_),
        **type_export.parameters,
    }
    # Allow `populate` even if site.yaml forbids it together with pagination.
    settings = with_values(state.settings, {"api.populate_with_pagination": True})
    reader = Reader(replace(state, settings=settings), type_, access.actor)
    parameters = with_default_populate(qs.parse(query_string(params)), type_, settings)
    query = reader.query(parameters, many=True)
    view = reader.view(query)
    if type_.kind == "singleType":
        found = find_single(view, query)
        documents: Sequence[Document] = [found] if found else []
    else:
        documents = find(view, query._replace(page=Page(0, MAX_DOCUMENTS, 1))).documents
    folder = "api" if default else f"{LOCALES}/{locale}/api"
    return ListRequest(access, view, query, params, folder, documents)
