"""Exported responses for content types, the media library and named queries."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor
from server.config.model import FILE, QueryExport, TypeExport, with_values
from server.documents.document import Document
from server.documents.ids import compose
from server.errors import ApiError, ForbiddenError, NotFoundError, SetupError
from server.index.find import find, find_single
from server.index.snapshot import View, apply
from server.query import qs
from server.query.ast import Page, Query
from server.query.parse import with_default_populate
from server.query.serialize import query_string
from server.schema.model import UPLOAD, Type
from server.service.public_site.public_reader import PublicSite
from server.service.read import Reader
from server.service.render import Renderer, list_answer, one_answer, render_files
from server.site.site import Site, State
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.bucket.stored import StoredObject
from server.storage.images.formats import format_of
from server.storage.images.sizes import FORMATS
from server.storage.links import open_ordinary
from server.storage.media import stored_object, upload_path
from server.tools.export.publications import publications
from server.tools.export.response import Response

# --- requests -------------------------------------------------------------------------------------

MAX_DOCUMENTS = 10**9
LOCALES = "locale"  # folder for all locales except the default


@dataclass(frozen=True, slots=True)
class Access:
    """The actor whose permissions limit the export.

    If `drafts` is set, the drafts that the actor is allowed to read are exported, too.
    """

    actor: Actor
    drafts: bool = False

    def status(self, type_: Type) -> Mapping[str, str]:
        """Return the `status` parameter for requests for a content type, or {} for published versions."""
        drafts = self.drafts and may_read_drafts(self.actor, type_)
        return {"status": "draft"} if drafts else {}


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A query for one content type's documents in one locale, and its results."""

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
    def one_by_one(self) -> bool:
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
        if self.one_by_one:
            yield from (f"{top}/{document.document_id}.json" for document in self.documents)

    def responses(self) -> Iterator[Response]:
        """Yield the response for a single type, or for each page and document of a collection type."""
        renderer = Renderer(self.view, response_format=self.view.settings.api.format)
        render = renderer.of(self.query.selection)
        one = {
            key: self.params[key] for key in ("locale", "status", "fields", "populate") if key in self.params
        }
        asked = _query(one)
        if self.type.kind == "singleType":
            path, url = f"{self.folder}/{self.type.singular}.json", f"/api/{self.type.singular}{asked}"
            for document in self.documents:
                body = one_answer(render(document))
                yield Response(path, url, body)
            return
        top, url = f"{self.folder}/{self.type.plural}", f"/api/{self.type.plural}"
        for number in range(1, self.pages + 1):
            page = self.query.page._replace(start=(number - 1) * self.query.page.limit, page=number)
            shown = self.documents[page.start : page.start + page.limit]
            rendered = list(map(render, shown))
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
    query = query_string(params)
    return f"?{query}" if query else ""


def listings(state: State, access: Access) -> Iterator[ListRequest]:
    """Yield the document lists to export. Raises SetupError if parameters in site.yaml are invalid."""
    for type_ in state.schema.content_types:
        wanted = state.settings.export.types.get(type_.singular, TypeExport())
        if not access.actor.may(type_.singular, "find"):
            continue
        for locale in (
            state.settings.locales.available if type_.localized else (state.settings.locales.default,)
        ):
            try:
                yield _listing(state, access, type_, wanted, locale)
            except ApiError as error:
                raise SetupError(
                    FILE,
                    wanted.line,
                    f"the request for export.types.{type_.singular} failed: {error.message}",
                ) from error


def _listing(state: State, access: Access, type_: Type, wanted: TypeExport, locale: str) -> ListRequest:
    default = locale == state.settings.locales.default
    params = {**({} if default else {"locale": locale}), **access.status(type_), **wanted.parameters}
    # Allow `populate` even if site.yaml forbids it together with pagination.
    settings = with_values(state.settings, {"api.populate_with_pagination": True})
    reader = Reader(replace(state, settings=settings), type_, access.actor)
    asked = with_default_populate(qs.parse(query_string(params)), type_, settings)
    query = reader.query(asked, many=True)
    view = reader.view(query)
    if type_.kind == "singleType":
        found = find_single(view, query)
        documents: Sequence[Document] = [found] if found else []
    else:
        documents = find(view, query._replace(page=Page(0, MAX_DOCUMENTS, 1))).documents
    folder = "api" if default else f"{LOCALES}/{locale}/api"
    return ListRequest(access, view, query, params, folder, documents)


# --- contents -------------------------------------------------------------------------------------

QUERIES = "queries"  # folder for named queries
FILES = "/api/upload/files"


@dataclass(frozen=True)
class SiteExport:
    """All responses that are exported for one actor.

    The properties raise SetupError if site.yaml contains an invalid request.
    """

    state: State
    access: Access
    redirects: Sequence[Response] = ()  # files with redirects

    @cached_property
    def listings(self) -> Sequence[ListRequest]:
        return list(listings(self.state, self.access))

    @cached_property
    def queries(self) -> Sequence[Response]:
        """The responses to the requests in the `export.queries` setting."""
        return [self._query(name, wanted) for name, wanted in self.state.settings.export.queries.items()]

    @cached_property
    def media(self) -> Sequence[Document]:
        """The media files that the actor is allowed to list."""
        if not self.access.actor.may("upload", "find"):
            return []
        files = self.state.schema.types[UPLOAD]
        return list(self.state.snapshot.list(files, self.state.settings.locales.default, "published"))

    @cached_property
    def published(self) -> Sequence[Response]:
        # These files are the same for all roles.
        return [*publications(PublicSite(self.state)), *self.redirects]

    def paths(self) -> list[str]:
        listed = [path for path, _ in self._media_paths()]
        return [
            *chain.from_iterable(p.paths for p in self.listings),
            *listed,
            *(q.path for q in self.queries),
            *(p.path for p in self.published),
        ]

    def responses(self) -> Iterator[Response]:
        return chain(
            *(listing.responses() for listing in self.listings),
            self._media_responses(),
            self.queries,
            self.published,
        )

    def _media_paths(self) -> Iterator[tuple[str, str]]:
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
            what = (
                f"export.queries.{name} requires the permission {error.permission}, "
                f"which {self.access.actor.name} lacks"
            )
            raise SetupError(
                FILE, wanted.line, what, "grant the permission, or export as a different role"
            ) from error
        except ApiError as error:
            what = f"the request in export.queries.{name} failed: {error.message}"
            raise SetupError(FILE, wanted.line, what) from error
        return Response(f"{QUERIES}/{name}.json", wanted.request, body)


def _answer(state: State, actor: Actor, wanted: QueryExport) -> bytes:
    """Return the response to a named query.

    Raises ApiError, or SetupError if the path or document does not exist.
    """
    path, _, query = wanted.request.partition("?")
    name, _, document_id = path.removeprefix("/api/").rstrip("/").partition("/")
    type_ = state.schema.endpoints.get(name)
    if type_ is None or (document_id and (type_.kind == "singleType" or "/" in document_id)):
        what = f'"{path}" is not the path of an API request'
        raise SetupError(FILE, wanted.line, what, "write a path such as /api/articles?sort=title")
    try:
        return (
            Reader(state, type_, actor, response_format=state.settings.api.format)
            .get(qs.parse(query), unquote(document_id) or None)
            .body
        )
    except NotFoundError as error:
        raise SetupError(
            FILE, wanted.line, f'there is no document at "{path}"', "correct or remove the request"
        ) from error


# --- uploads --------------------------------------------------------------------------------------

_NAMED = re.compile(rb"""/uploads/([^"'\\\s()<>?#]+)""")
Source = str | StoredObject  # path in the site, or object in its bucket
_BATCH_IMAGES = 100  # number of images to resize before the state is updated


def make_formats(site: Site, progress: Callable[[int, int], None]) -> int:
    """Create the missing resized images, and return the number of images that could not be created."""
    missing, failed = site.unscaled(), 0
    for start in range(0, len(missing), _BATCH_IMAGES):
        batch = missing[start : start + _BATCH_IMAGES]
        for done, path in enumerate(batch, start + 1):
            failed += not site.image_cache.make(upload_path(path) or "")
            progress(done, len(missing))
        site.refresh(batch)
    return failed


def with_base_url(state: State, base: str) -> State:
    """Return the state with `base` at the start of all media URLs."""
    files = list(state.snapshot.media.values())
    moved = [_with_base(file, base) for file in files]
    return replace(state, snapshot=apply(state.snapshot, files, moved))


def _with_base(file: Document, base: str) -> Document:
    formats = file.get("formats") or {}
    moved = {key: {**entry, "url": base + entry["url"]} for key, entry in formats.items()}
    return file.with_values({"url": base + file.get("url"), "formats": moved or None})


def find_uploads(body: bytes) -> Iterator[str]:
    """Yield everything in a response that could be the path of a media file."""
    for found in _NAMED.finditer(body):
        text = found[1].decode()
        for path in (text, text.rstrip(".,;:!*_`]")):
            yield path
            yield unquote(path)


def sources(site: Site, paths: Iterable[str]) -> Mapping[str, Source]:
    """Map upload paths to their sources, including the resized images."""
    media = site.state.snapshot.media
    found: dict[str, Source] = {}
    for path in paths:
        key = compose(path)
        if stored := stored_object(media, key):
            found[path] = stored
            found.update(_stored_formats(key, media))
        elif key in media:
            found[path] = media[key].path
            found.update(_formats(site, key, media))
        elif format_of(path) and (file := site.image_cache.file_of(key, media)):
            found[path] = _inside(site, file)
    return dict(sorted(found.items()))


def opener(site: Site) -> Callable[[Source], BufferedReader]:
    """Return a function that opens media files. That function can raise OSError and BucketError."""
    bucket = SiteBucket(site.root, site.image_cache.folder)

    def opened(source: Source) -> BufferedReader:
        if isinstance(source, StoredObject):
            return bucket.open(site.state.settings, source)
        return open_ordinary(site.root, source)

    return opened


def _stored_formats(path: str, media: Mapping[str, Document]) -> Iterator[tuple[str, StoredObject]]:
    folder, slash, name = path.rpartition("/")
    for key in FORMATS:
        inside = f"{folder}{slash}{key}_{name}"
        if inside not in media and (stored := stored_object(media, inside)):
            yield inside, stored


def _formats(site: Site, path: str, media: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    folder, slash, name = path.rpartition("/")
    for key in FORMATS:
        inside = f"{folder}{slash}{key}_{name}"
        if inside not in media and (file := site.image_cache.file_of(inside, media)):
            yield inside, _inside(site, file)


def _inside(site: Site, file: Path) -> str:
    return file.relative_to(site.root).as_posix()
