"""Querying, uploading, changing and deleting media files."""

import posixpath
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from server.auth.query_permissions import narrow_query
from server.documents.document import Document
from server.errors import BusyError, NotFoundError, StorageError
from server.index.budget import UNLIMITED
from server.index.dangling import MEDIA, Key
from server.index.find import Listing, find
from server.index.snapshot import View
from server.query.ast import Query
from server.query.parse import read_offset_page, read_query
from server.schema.model import UPLOAD
from server.service.read import Caller
from server.service.render import render_files
from server.service.write import Outcome, UndoOffer, Writes
from server.site.site import Site, State
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.media import media_key
from server.storage.undo import Permit
from server.write.uploads import uploading
from server.write.uploads.attach import Attachment

SCALING_TIMEOUT_S = 10.0
# Query parameters for media files (which have neither locales nor drafts), without and with pagination.
_QUERY_KEYS = ("fields", "filters", "sort", "populate", "_q", "publicationFilter")
_PAGED_QUERY_KEYS = (*_QUERY_KEYS, "pagination", "page", "pageSize")

# Restoring a deleted file is like uploading it again.
MAY_UPLOAD, MAY_DELETE = (Permit(UPLOAD, action, draft=False) for action in ("upload", "destroy"))


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The media files that were written, as JSON, and the id of the commit."""

    files_json: list[bytes]
    commit: str
    undo: UndoOffer | None = None


class Uploads:
    """Thread-safe operations that upload, change and delete media files."""

    def __init__(self, site: Site, writes: Writes, bucket: SiteBucket) -> None:
        self._site, self._writes, self._bucket = site, writes, bucket

    def upload(
        self,
        caller: Caller,
        files: Iterable[uploading.ReceivedFile],
        attachment: Attachment | None = None,
        message: str = "",
    ) -> StoredFiles:
        upload = uploading.Upload(tuple(map(self._store_content, files)), caller.actor, attachment)
        outcome = self._writes.save(caller, uploading.upload, upload, _media_keys, message=message)
        return self._stored(caller, outcome, outcome.result)

    def change(
        self, caller: Caller, change: uploading.FileChange, message: str = "", *, undo: bool = False
    ) -> StoredFiles:
        change = self._keep_replacement(caller.state, change)
        permits = (MAY_UPLOAD,) if undo else ()
        outcome = self._writes.save(caller, uploading.change_file, change, message=message, permits=permits)
        return self._stored(caller, outcome, (outcome.result,))

    def remove(self, caller: Caller, key: str, message: str = "", *, undo: bool = False) -> Outcome[str]:
        permits = (MAY_UPLOAD, MAY_DELETE) if undo else ()
        return self._writes.save(caller, uploading.remove, key, message=message, permits=permits)

    def _store_content(self, file: uploading.ReceivedFile) -> uploading.ReceivedFile:
        suffix = uploading.ending_of_upload(file)
        if not self._site.state.settings.media.store:
            self._site.image_cache.measure_in_advance(file.source, suffix)
        return replace(file, stored=self._bucket.upload(self._site.state.settings, file.source, suffix))

    def _keep_replacement(self, state: State, change: uploading.FileChange) -> uploading.FileChange:
        if change.file is None:
            return change
        if not self._site.state.settings.media.store:
            with suppress(NotFoundError):  # If there is no such file, the write raises the error later.
                suffix = posixpath.splitext(find_file(state, change.key).path)[1]
                self._site.image_cache.measure_in_advance(change.file.source, suffix)
            return change
        old = find_file(state, change.key)
        uploading.check_replacement(old, change.file)
        suffix = posixpath.splitext(old.path)[1]
        stored = self._bucket.upload(self._site.state.settings, change.file.source, suffix)
        return replace(change, file=replace(change.file, stored=stored))

    def _stored(self, caller: Caller, outcome: Outcome[Any], paths: tuple[str, ...]) -> StoredFiles:
        media = dict[str, Document]() if caller.branch else _wait_for_variants(self._site, paths)
        files = [media.get(path) or written_file(outcome.state, path) for path in paths]
        # Without limits: the response must not be an error after a write, and the files are described by
        # the request, whose size is limited.
        shown = replace(caller, state=outcome.state, budget=UNLIMITED)
        bodies = render(shown, Query(outcome.state.schema.types[UPLOAD]), files)
        return StoredFiles(bodies, outcome.commit, outcome.undo)


def written_file(state: State, path: str) -> Document:
    """Return a media file that was written. `state` is the state that the write returned."""
    return state.snapshot.media[media_key(path) or ""]


def _wait_for_variants(site: Site, paths: tuple[str, ...]) -> Mapping[str, Document]:
    """Resize images, and return the files by path. Files that have been deleted since are left out."""
    deadline, state = time.monotonic() + SCALING_TIMEOUT_S, site.state
    for path in paths:
        if time.monotonic() < deadline:
            with suppress(BusyError, StorageError):  # Jobs resize the image later.
                state = site.scale(path)
    found = {path: state.snapshot.media.get(media_key(path) or "") for path in paths}
    return {path: file for path, file in found.items() if file}


def _media_keys(paths: Iterable[str]) -> list[Key]:
    return [(MEDIA, media_key(path) or path) for path in paths]


# --- reading --------------------------------------------------------------------------------------


def parse_media_query(caller: Caller, params: Mapping[str, Any], *, paged: bool = False) -> Query:
    """Parse a query for media files. Unless `paged` is set, only `start` and `limit` can select a page.

    Raises ValidationError.
    """
    state = caller.state
    query_params = {
        key: params[key] for key in (_PAGED_QUERY_KEYS if paged else _QUERY_KEYS) if key in params
    }
    query = read_query(state.schema, state.settings, state.schema.types[UPLOAD], query_params, many=True)
    return narrow_query(query, caller.actor, state.schema)._replace(
        page=query.page if paged else read_offset_page(params)
    )


def find_files(caller: Caller, query: Query) -> Listing:
    return find(view_of(caller), query)


def find_file(state: State, key: str) -> Document:
    return uploading.find_file(state.snapshot, state.settings.locales.default, key)


def render(caller: Caller, query: Query, files: Iterable[Document]) -> list[bytes]:
    return render_files(view_of(caller), query, files)


def view_of(caller: Caller) -> View:
    return View(caller.state.snapshot, caller.state.settings, budget=caller.budget)
