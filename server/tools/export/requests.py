"""What an export asks of each type, as whom, and the answers: by the way of requests (ask → find → render).

Every answer has a file name and the request that a running server gives the same bytes for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from server.api.reading import Reader
from server.api.render import Renderer, list_answer, one_answer
from server.auth.permissions import Actor, may_read_drafts
from server.config.model import FILE, TypeExport
from server.documents.document import Document
from server.errors import ApiError, SetupError
from server.index.find import find, find_single
from server.index.snapshot import View
from server.query import qs
from server.query.ast import Page, Query
from server.schema.model import Type
from server.site.site import State

ALL = 10**9
LOCALES = "locale"  # the folder of the other locales, beside `api`


@dataclass(frozen=True, slots=True)
class Access:
    """As whom an export asks, and whether for drafts, of what it may see the drafts of."""

    actor: Actor
    drafts: bool = False

    def status(self, type_: Type) -> Mapping[str, str]:
        """The `status` parameter of requests for a type, where it needs one."""
        drafts = self.drafts and may_read_drafts(self.actor, type_)
        return {"status": "draft"} if drafts else {}


@dataclass(frozen=True, slots=True)
class Response:
    """One file of an export: its path, the request that it answers, its bytes."""

    path: str
    request: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Part:
    """The documents of one type in one locale, in the order of their list, and how they are asked for."""

    access: Access
    view: View
    query: Query
    params: Mapping[str, Any]
    folder: str
    documents: Sequence[Document]

    @property
    def type(self) -> Type:
        """The type that it is of."""
        return self.query.type

    @property
    def pages(self) -> int:
        """How many pages the list has; an empty one has one."""
        return max(1, -(-len(self.documents) // self.query.page.limit))

    @property
    def one_by_one(self) -> bool:
        """Whether the documents may be asked for by their ids."""
        return self.access.actor.may(self.type.singular, "findOne")

    @property
    def paths(self) -> Iterator[str]:
        """The paths of its answers."""
        if self.type.kind == "singleType":
            yield from (f"{self.folder}/{self.type.singular}.json" for _ in self.documents)
            return
        top = f"{self.folder}/{self.type.plural}"
        yield f"{top}.json"
        yield from (f"{top}/page/{number}.json" for number in range(1, self.pages + 1))
        if self.one_by_one:
            yield from (f"{top}/{document.document_id}.json" for document in self.documents)

    def answers(self) -> Iterator[Response]:
        """The answers: a single type's document, or the documents and the pages of their list."""
        renderer, selection = Renderer(self.view), self.query.selection
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
            body = list_answer(b"[%b]" % b",".join(rendered), page, len(self.documents))
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


def parts(state: State, access: Access) -> Iterator[Part]:
    """What there is to export: every type that may be listed, in each of its locales.

    Raises SetupError where `export.types` asks for what can't be asked.
    """
    for type_ in state.schema.content_types:
        wanted = state.settings.exported_types.get(type_.singular, TypeExport())
        if not access.actor.may(type_.singular, "find"):
            continue
        for locale in state.settings.locales if type_.localized else (state.settings.default_locale,):
            try:
                yield _part(state, access, type_, wanted, locale)
            except ApiError as error:
                raise SetupError(
                    FILE, wanted.line, f"export.types.{type_.singular}: {error.message}"
                ) from error


def _part(state: State, access: Access, type_: Type, wanted: TypeExport, locale: str) -> Part:
    default = locale == state.settings.default_locale
    params = {**({} if default else {"locale": locale}), **access.status(type_), **wanted.parameters}
    # Pages of a populated list are exported, also where requests may not ask for both at once.
    settings = replace(state.settings, populate_with_pagination=True)
    reader = Reader(replace(state, settings=settings), type_, access.actor)
    query = reader.query(qs.parse(qs.write(params)), many=True)
    view = reader.view(query)
    if type_.kind == "singleType":
        found = find_single(view, query)
        documents: Sequence[Document] = [found] if found else []
    else:
        documents = find(view, replace(query, page=Page(0, ALL, 1))).documents
    folder = "api" if default else f"{LOCALES}/{locale}/api"
    return Part(access, view, query, params, folder, documents)
