"""Media files: which a caller finds, and how received files are stored, changed and removed.

A file comes with its bytes on disk (`write.uploads.uploading.Incoming`). It goes into the bucket before the
write, if the site has one. A branch that is not served gets it too, but no formats of pictures.
"""

import posixpath
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from server.auth.query_permissions import narrow
from server.documents.document import Document
from server.errors import NotFoundError
from server.index.dangling import MEDIA, Key
from server.index.find import Listing, find
from server.index.snapshot import View
from server.query.ast import Query
from server.query.parse import read_part, read_query
from server.schema.model import UPLOAD
from server.service.read import Caller
from server.service.render import render_files
from server.service.write import Outcome, Writes
from server.site.site import Site, State
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.media import media_key
from server.write.uploads import uploading
from server.write.uploads.attach import Attachment

SCALING_TIMEOUT_S = 10.0
# What a query may say of files, which have neither locales nor drafts; and where it asks for a page.
_QUERY_KEYS = ("fields", "filters", "sort", "populate", "_q", "publicationFilter")
_PAGED_QUERY_KEYS = (*_QUERY_KEYS, "pagination", "page", "pageSize")


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """Files that were written, each as JSON, and the commit."""

    bodies: list[bytes]
    commit: str


class Uploads:
    """Stores, changes and removes the media files of a site. Safe to use from many threads."""

    def __init__(self, site: Site, writes: Writes, bucket: SiteBucket) -> None:
        self._site, self._writes, self._bucket = site, writes, bucket

    def upload(
        self,
        caller: Caller,
        files: Iterable[uploading.Incoming],
        attachment: Attachment | None = None,
        message: str = "",
    ) -> StoredFiles:
        """Let received files become media of the site. Raises BucketError, and what a write raises."""
        wanted = uploading.Upload(tuple(map(self._keep, files)), caller.actor, attachment)
        made = self._writes.make(caller, uploading.upload, wanted, _media_keys, message=message)
        return self._stored(caller, made, made.made)

    def change(self, caller: Caller, change: uploading.FileChange, message: str = "") -> StoredFiles:
        """Change what is said of a file, or its content. Raises NotFoundError, and what `upload` raises."""
        change = self._keep_replacement(caller.state, change)
        made = self._writes.make(caller, uploading.change_file, change, message=message)
        return self._stored(caller, made, (made.made,))

    def remove(self, caller: Caller, key: str, message: str = "") -> str:
        """Remove a file; returns the commit. Raises NotFoundError, and what a write raises."""
        return self._writes.make(caller, uploading.remove, key, message=message).commit

    def _keep(self, file: uploading.Incoming) -> uploading.Incoming:
        """A received file, which is in the bucket then, where the site has one; else a picture is hashed."""
        ending = uploading.ending_of_upload(file)
        if not self._site.state.settings.media.store:
            self._site.image_cache.read_ahead(file.source, ending)
        return replace(file, stored=self._bucket.keep(self._site.state.settings, file.source, ending))

    def _keep_replacement(self, state: State, change: uploading.FileChange) -> uploading.FileChange:
        """A change of a file, whose new content is in the bucket then, where the site has one."""
        if change.file is None:
            return change
        if not self._site.state.settings.media.store:
            with suppress(NotFoundError):  # The write says so.
                ending = posixpath.splitext(find_file(state, change.key).path)[1]
                self._site.image_cache.read_ahead(change.file.source, ending)
            return change
        old = find_file(state, change.key)
        uploading.check_replacement(old, change.file)
        ending = posixpath.splitext(old.path)[1]
        kept = self._bucket.keep(self._site.state.settings, change.file.source, ending)
        return replace(change, file=replace(change.file, stored=kept))

    def _stored(self, caller: Caller, made: Outcome[Any], paths: tuple[str, ...]) -> StoredFiles:
        """Files that were just written, as they are shown."""
        state = made.state if caller.branch else _scaled(self._site, made.state, paths)
        files = [state.snapshot.media[media_key(path) or ""] for path in paths]
        shown = render(replace(caller, state=state), Query(state.schema.types[UPLOAD]), files)
        return StoredFiles(shown, made.commit)


def _scaled(site: Site, state: State, paths: tuple[str, ...]) -> State:
    """The state with the formats of pictures that were just written, if made within SCALING_TIMEOUT_S.

    Others are made in the background.
    """
    deadline = time.monotonic() + SCALING_TIMEOUT_S
    for path in paths:
        if time.monotonic() < deadline:
            state = site.scale(path)
    return state


def _media_keys(paths: Iterable[str]) -> list[Key]:
    return [(MEDIA, media_key(path) or path) for path in paths]


# --- reading --------------------------------------------------------------------------------------


def read_file_query(caller: Caller, params: Mapping[str, Any], *, paged: bool = False) -> Query:
    """Read which files are asked for and what of them, and maybe which page. Raises ValidationError."""
    state = caller.state
    wanted = {key: params[key] for key in (_PAGED_QUERY_KEYS if paged else _QUERY_KEYS) if key in params}
    query = read_query(state.schema, state.settings, state.schema.types[UPLOAD], wanted, many=True)
    return narrow(query, caller.actor, state.schema)._replace(page=query.page if paged else read_part(params))


def find_files(caller: Caller, query: Query) -> Listing:
    """Return the files that a query finds. Raises LimitError."""
    return find(view_of(caller), query)


def find_file(state: State, key: str) -> Document:
    """Return the media file with a number or documentId. Raises NotFoundError."""
    return uploading.find_file(state.snapshot, state.settings.locales.default, key)


def render(caller: Caller, query: Query, files: Iterable[Document]) -> list[bytes]:
    """Return files as JSON, each by itself. Raises LimitError."""
    return render_files(view_of(caller), query, files)


def view_of(caller: Caller) -> View:
    """Return how a caller sees files."""
    return View(caller.state.snapshot, caller.state.settings, budget=caller.budget)
