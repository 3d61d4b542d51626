"""All responses of an export: of every type, of the media library, of the named queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from urllib.parse import unquote

from server.auth.permissions import Actor
from server.config.model import FILE, QueryExport
from server.documents.document import Document
from server.errors import ApiError, ForbiddenError, NotFoundError, SetupError
from server.index.snapshot import View
from server.query import qs
from server.query.ast import Query
from server.schema.model import UPLOAD
from server.service.read import Reader
from server.service.render import render_files
from server.site.site import State
from server.tools.export.requests import Access, ListRequest, Response, listings

QUERIES = "queries"  # the folder of the named queries, beside `api`
FILES = "/api/upload/files"


@dataclass(frozen=True)
class SiteExport:
    """All that one role or token may see of one state.

    Raises SetupError where site.yaml asks for something that cannot be requested.
    """

    state: State
    access: Access

    @cached_property
    def listings(self) -> Sequence[ListRequest]:
        """The listings of all types."""
        return list(listings(self.state, self.access))

    @cached_property
    def queries(self) -> Sequence[Response]:
        """The responses of the named queries."""
        return [self._query(name, wanted) for name, wanted in self.state.settings.exported_queries.items()]

    @cached_property
    def media(self) -> Sequence[Document]:
        """All media files, if the actor may list files."""
        if not self.access.actor.may("upload", "find"):
            return []
        files = self.state.schema.types[UPLOAD]
        return list(self.state.snapshot.list(files, self.state.settings.default_locale, "published"))

    def paths(self) -> list[str]:
        """The paths of all responses."""
        listed = [path for path, _ in self._media_paths()]
        return [
            *chain.from_iterable(p.paths for p in self.listings),
            *listed,
            *(q.path for q in self.queries),
        ]

    def responses(self) -> Iterator[Response]:
        """All responses, each rendered when it is its turn."""
        return chain(
            *(listing.responses() for listing in self.listings), self._media_responses(), self.queries
        )

    def _media_paths(self) -> Iterator[tuple[str, str]]:
        """The path and request of each response of the media library: the list, then the files."""
        if self.access.actor.may("upload", "find"):
            yield f"{FILES[1:]}.json", FILES
            if self.access.actor.may("upload", "findOne"):
                yield from ((f"{FILES[1:]}/{file.id}.json", f"{FILES}/{file.id}") for file in self.media)

    def _media_responses(self) -> Iterator[Response]:
        query = Query(self.state.schema.types[UPLOAD])
        rendered = render_files(View(self.state.snapshot, self.state.settings), query, self.media)
        bodies = [b"[%b]" % b",".join(rendered), *rendered]
        for (path, request), body in zip(self._media_paths(), bodies, strict=False):
            yield Response(path, request, body)

    def _query(self, name: str, wanted: QueryExport) -> Response:
        try:
            body = _answer(self.state, self.access.actor, wanted)
        except ForbiddenError as error:
            what = f"export.queries.{name}: {self.access.actor.name} may not ask this"
            raise SetupError(FILE, wanted.line, what, "grant it, or export as another role") from error
        except ApiError as error:
            raise SetupError(FILE, wanted.line, f"export.queries.{name}: {error.message}") from error
        return Response(f"{QUERIES}/{name}.json", wanted.request, body)


def _answer(state: State, actor: Actor, wanted: QueryExport) -> bytes:
    """The body that a server sends for a GET of content. Raises ApiError, and SetupError for other paths."""
    path, _, query = wanted.request.partition("?")
    name, _, document_id = path.removeprefix("/api/").rstrip("/").partition("/")
    type_ = state.schema.endpoints.get(name)
    if type_ is None or (document_id and (type_.kind == "singleType" or "/" in document_id)):
        what = f'"{path}" is no address of content'
        raise SetupError(FILE, wanted.line, what, "write it as /api/articles?sort=title")
    try:
        return (
            Reader(state, type_, actor, v4=state.settings.v4)
            .get(qs.parse(query), unquote(document_id) or None)
            .body
        )
    except NotFoundError as error:
        raise SetupError(FILE, wanted.line, f'"{path}" finds nothing', "fix or remove it") from error
