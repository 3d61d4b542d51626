"""GET /uploads/…: the files of content/uploads/, as they are on disk."""

import os
from pathlib import Path
from typing import IO

from flask import Blueprint, Response, request, send_file

from server.api.request import state_of
from server.documents.ids import composed
from server.errors import NotFoundError
from server.site.site import Site
from server.storage.links import open_ordinary
from server.storage.media import mime_type

KEPT_S = 3600  # so long a client may keep a file without asking again


def blueprint(site: Site) -> Blueprint:
    """The route of media files: only what the index knows as one is served."""
    bp = Blueprint("uploads", __name__, url_prefix="/uploads")

    @bp.get("/<path:path>")
    def upload(path: str) -> Response:
        media, key = state_of(request).snapshot.media, composed(path)
        file = site.root / media[key].path if key in media else site.image_cache.file_of(key, media)
        if file is None:
            raise NotFoundError()
        found = _sent(_opened(site, file), file.name, mime_type(path))
        # An SVG or HTML file is shown, but can't run script on the site's origin.
        found.headers["Content-Security-Policy"] = "default-src 'self'; script-src 'none'; sandbox"
        return found

    return bp


def _opened(site: Site, file: Path) -> IO[bytes]:
    """A file of the site, opened. Raises NotFoundError where it is none any more, or became a link."""
    try:
        return open_ordinary(site.root, file.relative_to(site.root).as_posix())
    except OSError as error:
        raise NotFoundError() from error


def _sent(file: IO[bytes], name: str, mime: str) -> Response:
    """An opened file, or the part of it that the request asks for."""
    status = os.fstat(file.fileno())
    found = send_file(
        file,
        mimetype=mime,
        download_name=name,
        conditional=False,
        etag=f"{status.st_mtime}-{status.st_size}",
        last_modified=status.st_mtime,
        max_age=KEPT_S,
    )
    found.content_length = status.st_size
    try:
        found.make_conditional(request, accept_ranges=True, complete_length=status.st_size)
    except BaseException:
        file.close()
        raise
    return found
