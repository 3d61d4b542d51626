"""GET /uploads/…: the files of content/uploads/, as they are on disk or in a bucket, or were at a commit."""

import os
import posixpath
from pathlib import Path
from typing import IO

from flask import Response, request, send_file

from server.api.caching import tag_of_file
from server.api.request import commit_of, state_of, with_cache_tags
from server.api.routes.handlers import Handlers
from server.documents.ids import compose
from server.errors import NotFoundError
from server.history.commit_files import open_blob
from server.history.past import PastStates, replaced_file
from server.service.cache_tags import tags_of_file
from server.site.site import Site
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.bucket.stored import StoredObject
from server.storage.images.formats import format_of
from server.storage.links import open_ordinary
from server.storage.media import mime_type, stored_object

KEPT_S = 3600  # so long a client may keep a file without asking again
REDIRECTED_S = 300  # and where to get it; less than a signed URL can be used


def bind(handles: Handlers, site: Site, past: PastStates, bucket: SiteBucket) -> None:
    """Bind the operations of media files: only what the index knows as one is served."""

    @handles("download")
    def upload(path: str) -> Response:
        commit, key = commit_of(request), compose(path)
        stored = stored_object(state_of(request).snapshot.media, key)
        found = _in_bucket(stored, key) if stored else _then(key, commit) if commit else None
        if found is None:
            found = _now(key)
        # An SVG or HTML file is shown, but can't run script on the site's origin.
        found.headers["Content-Security-Policy"] = "default-src 'self'; script-src 'none'; sandbox"
        return with_cache_tags(found, request, tags_of_file(state_of(request).snapshot, key))

    def _in_bucket(stored: StoredObject, key: str) -> Response:
        """A file that is in a bucket: where to get it, or the file itself."""
        settings = site.state.settings
        if elsewhere := bucket.url(settings, stored):
            headers = {"Location": elsewhere, "Cache-Control": f"public, max-age={REDIRECTED_S}"}
            return Response(status=302, headers=headers)
        file, name = bucket.open(settings, stored), posixpath.basename(key)
        return _send(file, name, mime_type(key), stored.sha256)

    def _now(key: str) -> Response:
        media, of_picture = state_of(request).snapshot.media, format_of(key)
        described = key if key in media or of_picture is None else of_picture[1]
        file = site.root / media[key].path if key in media else site.image_cache.file_of(key, media)
        if file is None:
            raise NotFoundError()
        opened = _open(site, file)
        at = os.fstat(opened.fileno()).st_mtime
        modified = site.git.committed.modified(media[described].path, at)
        return _send(opened, file.name, mime_type(key), tag_of_file(opened), modified)

    def _then(key: str, commit: str) -> Response | None:
        """A file that differed at a commit; None for one that is still as it was."""
        media, of_picture = state_of(request).snapshot.media, format_of(key)
        if key in media:
            blob = replaced_file(past, commit, media[key].path)
            name = posixpath.basename(media[key].path)
            return _send(open_blob(site.root, blob), name, mime_type(key), blob.id) if blob else None
        if of_picture is None or of_picture[1] not in media:
            raise NotFoundError()
        picture = media[of_picture[1]].path
        blob = replaced_file(past, commit, picture)
        if blob is None:
            return None
        file = past.picture_file(picture, blob, of_picture[0])
        if file is None:
            raise NotFoundError()
        opened = _open(site, file)
        return _send(opened, file.name, mime_type(key), tag_of_file(opened))


def _open(site: Site, file: Path) -> IO[bytes]:
    """A file of the site, opened. Raises NotFoundError where it is none any more, or became a link."""
    try:
        return open_ordinary(site.root, file.relative_to(site.root).as_posix())
    except OSError as error:
        raise NotFoundError() from error


def _send(file: IO[bytes], name: str, mime: str, etag: str, modified: float | None = None) -> Response:
    """An opened file, or the part of it that the request asks for."""
    size = os.fstat(file.fileno()).st_size
    found = send_file(
        file,
        mimetype=mime,
        download_name=name,
        conditional=False,
        etag=etag,
        last_modified=modified,
        max_age=KEPT_S,
    )
    found.content_length = size
    try:
        found.make_conditional(request, accept_ranges=True, complete_length=size)
    except BaseException:
        file.close()
        raise
    return found
