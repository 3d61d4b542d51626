"""GET /uploads/…: the files of content/uploads/, as they are on disk or in a bucket, or were at a commit."""

import os

from flask import Response, request, send_file

from server.api.caching import tag_of_file
from server.api.request import commit_of, state_of, with_cache_tags
from server.api.routes.handlers import Handlers
from server.documents.ids import compose
from server.service.cache_tags import tags_of_file
from server.service.media_files import MediaFile, MediaFiles

FILE_MAX_AGE_S = 3600  # so long a client may keep a file without asking again
REDIRECT_MAX_AGE_S = 300  # and where to get it; less than a signed URL can be used


def bind(handles: Handlers, files: MediaFiles) -> None:
    """Bind the operation that serves media files."""

    @handles("download")
    def download(path: str) -> Response:
        snapshot, key = state_of(request).snapshot, compose(path)
        found = files.find(snapshot, commit_of(request), key)
        response = _redirect(found) if isinstance(found, str) else _send(found)
        if not files.is_served(commit_of(request)):  # No cache that others share may keep it.
            response.cache_control.public = False
            response.cache_control.private = True
        # An SVG or HTML file is shown, but can't run script on the site's origin.
        response.headers["Content-Security-Policy"] = "default-src 'self'; script-src 'none'; sandbox"
        return with_cache_tags(response, request, tags_of_file(snapshot, key))


def _redirect(url: str) -> Response:
    headers = {"Location": url, "Cache-Control": f"public, max-age={REDIRECT_MAX_AGE_S}"}
    return Response(status=302, headers=headers)


def _send(found: MediaFile) -> Response:
    """Return a file, or the part of it that the request asks for."""
    file = found.file
    size = os.fstat(file.fileno()).st_size
    response = send_file(
        file,
        mimetype=found.mime,
        download_name=found.name,
        conditional=False,
        etag=found.digest or tag_of_file(file),
        last_modified=found.modified,
        max_age=FILE_MAX_AGE_S,
    )
    response.content_length = size
    try:
        response.make_conditional(request, accept_ranges=True, complete_length=size)
    except BaseException:
        file.close()
        raise
    return response
