"""The responses that an export contains."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BufferedReader
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

from server.auth.permissions import Actor
from server.config.model import FILE, QueryExport
from server.documents.document import Document
from server.documents.ids import to_nfc
from server.errors import ApiError, ForbiddenError, NotFoundError, SetupError
from server.index.snapshot import View, apply
from server.query import qs
from server.query.ast import Query
from server.schema.model import UPLOAD
from server.service.public_site.public_reader import PublicSite
from server.service.read import Reader
from server.service.render import render_files
from server.site.site import Site, State
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.bucket.stored import StoredObject
from server.storage.images.variants import VARIANTS, split_variant_path
from server.storage.links import open_ordinary
from server.storage.media import stored_object, upload_path
from server.tools.export.listings import Access, ListRequest, listings
from server.tools.export.markdown import MarkdownFiles
from server.tools.export.publications import publication_files
from server.tools.export.response import Response

# --- contents -------------------------------------------------------------------------------------

QUERIES = "queries"  # folder for named queries
FILES = "/api/upload/files"


@dataclass(frozen=True)
class SiteExport:
    """All responses that an export contains.

    Its properties raise SetupError if site.yaml contains invalid settings for the export or for feeds.
    """

    state: State
    access: Access
    redirects: Sequence[Response] = ()  # files with redirects

    @cached_property
    def listings(self) -> Sequence[ListRequest]:
        return list(listings(self.state, self.access))

    @cached_property
    def markdown(self) -> Sequence[MarkdownFiles]:
        enabled = self.state.settings.llms.enabled
        return [MarkdownFiles(self.state, listing) for listing in self.listings] if enabled else []

    @cached_property
    def queries(self) -> Sequence[Response]:
        return [
            self._query(name, query_export)
            for name, query_export in self.state.settings.export.queries.items()
        ]

    @cached_property
    def media(self) -> Sequence[Document]:
        if not self.access.actor.may("upload", "find"):
            return []
        files = self.state.schema.types[UPLOAD]
        return list(self.state.snapshot.list(files, self.state.settings.locales.default, "published"))

    @cached_property
    def published(self) -> Sequence[Response]:
        # These files are the same for all roles.
        return [*publication_files(PublicSite(self.state)), *self.redirects]

    def paths(self) -> list[str]:
        listed = [path for path, _ in self._media_paths()]
        return [
            *chain.from_iterable(p.paths for p in self.listings),
            *chain.from_iterable(p.paths for p in self.markdown),
            *listed,
            *(q.path for q in self.queries),
            *(p.path for p in self.published),
        ]

    def responses(self) -> Iterator[Response]:
        return chain(
            *(listing.responses() for listing in self.listings),
            *(files.responses() for files in self.markdown),
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

    def _query(self, name: str, query_export: QueryExport) -> Response:
        try:
            body = _query_response(self.state, self.access.actor, query_export)
        except ForbiddenError as error:
            what = (
                f"export.queries.{name} requires the permission {error.permission}, "
                f"which {self.access.actor.name} lacks"
            )
            raise SetupError(
                FILE, query_export.line, what, "grant the permission, or export as a different role"
            ) from error
        except ApiError as error:
            what = f"the request in export.queries.{name} failed: {error.message}"
            raise SetupError(FILE, query_export.line, what) from error
        return Response(f"{QUERIES}/{name}.json", query_export.request, body)


def _query_response(state: State, actor: Actor, query_export: QueryExport) -> bytes:
    path, _, query = query_export.request.partition("?")
    name, _, document_id = path.removeprefix("/api/").rstrip("/").partition("/")
    type_ = state.schema.endpoints.get(name)
    if type_ is None or (document_id and (type_.kind == "singleType" or "/" in document_id)):
        what = f'"{path}" is not the path of an API request'
        raise SetupError(FILE, query_export.line, what, "write a path such as /api/articles?sort=title")
    try:
        return (
            Reader(state, type_, actor, response_format=state.settings.api.format)
            .get(qs.parse(query), unquote(document_id) or None)
            .body
        )
    except NotFoundError as error:
        raise SetupError(
            FILE,
            query_export.line,
            f'there is no document at "{path}"',
            "correct the path, or delete this line",
        ) from error


# --- uploads --------------------------------------------------------------------------------------

_NAMED = re.compile(rb"""/uploads/([^"'\\\s()<>?#]+)""")
Source = str | StoredObject  # path in the site, or object in its bucket
_BATCH_IMAGES = 100  # number of images to resize before the state is updated


def create_resized_images(site: Site, progress: Callable[[int, int], None]) -> int:
    """Create the missing variants of the site's images. Return the number of images that failed."""
    missing, failed = site.incomplete_images(), 0
    for start in range(0, len(missing), _BATCH_IMAGES):
        batch = missing[start : start + _BATCH_IMAGES]
        for done, path in enumerate(batch, start + 1):
            failed += not site.image_cache.make_variants_of(upload_path(path) or "")
            progress(done, len(missing))
        site.refresh(batch)
    return failed


def with_base_url(state: State, base: str) -> State:
    files = list(state.snapshot.media.values())
    moved = [_with_base(file, base) for file in files]
    return replace(state, snapshot=apply(state.snapshot, files, moved))


def _with_base(file: Document, base: str) -> Document:
    formats = file.get("formats") or {}
    moved = {key: {**entry, "url": base + entry["url"]} for key, entry in formats.items()}
    return file.with_values({"url": base + file.get("url"), "formats": moved or None})


def possible_upload_paths(body: bytes) -> Iterator[str]:
    for found in _NAMED.finditer(body):
        text = found[1].decode()
        for path in (text, text.rstrip(".,;:!*_`]")):
            yield path
            yield unquote(path)


def upload_sources(site: Site, paths: Iterable[str]) -> Mapping[str, Source]:
    """Map each upload in `paths`, and each of its variants, to the file or bucket object that contains it."""
    media = site.state.snapshot.media
    found: dict[str, Source] = {}
    for path in paths:
        key = to_nfc(path)
        if stored := stored_object(media, key):
            found[path] = stored
            found.update(_stored_formats(key, media))
        elif key in media:
            found[path] = media[key].path
            found.update(_formats(site, key, media))
        elif split_variant_path(path) and (file := site.image_cache.find_variant_file(key, media)):
            found[path] = _inside(site, file)
    return dict(sorted(found.items()))


def file_opener(site: Site) -> Callable[[Source], BufferedReader]:
    """Return a function that opens media files. The function can raise OSError or BucketError."""
    bucket = SiteBucket(site.root, site.image_cache.folder)

    def opened(source: Source) -> BufferedReader:
        if isinstance(source, StoredObject):
            return bucket.open(site.state.settings, source)
        return open_ordinary(site.root, source)

    return opened


def _stored_formats(path: str, media: Mapping[str, Document]) -> Iterator[tuple[str, StoredObject]]:
    folder, slash, name = path.rpartition("/")
    for key in VARIANTS:
        inside = f"{folder}{slash}{key}_{name}"
        if inside not in media and (stored := stored_object(media, inside)):
            yield inside, stored


def _formats(site: Site, path: str, media: Mapping[str, Document]) -> Iterator[tuple[str, str]]:
    folder, slash, name = path.rpartition("/")
    for key in VARIANTS:
        inside = f"{folder}{slash}{key}_{name}"
        if inside not in media and (file := site.image_cache.find_variant_file(inside, media)):
            yield inside, _inside(site, file)


def _inside(site: Site, file: Path) -> str:
    return file.relative_to(site.root).as_posix()
