"""Handler for GET /uploads/…, which returns media files from the site, a bucket or a past commit."""

import os

from flask import Response, request, send_file

from server.api.caching import tag_of_file
from server.api.request import commit_of, state_of, with_cache_tags
from server.api.routes.handlers import Handlers
from server.documents.ids import compose
from server.service.cache_tags import tags_of_file
from server.service.media_files import MediaFile, MediaFiles

FILE_MAX_AGE_S = 3600  # how long clients are allowed to cache a file
# Shorter than the time for which the signed URL in the redirect is valid.
REDIRECT_MAX_AGE_S = 300


def bind(handles: Handlers, files: MediaFiles) -> None:
    """Register the handler."""

    @handles("download")
    def download(path: str) -> Response:
        snapshot, key = state_of(request).snapshot, compose(path)
        found = files.find(snapshot, commit_of(request), key)
        response = _redirect(found) if isinstance(found, str) else _send(found)
        # Shared caches may store the file only if it belongs to the served state.
        if not files.is_served(commit_of(request)):
            response.cache_control.public = False
            response.cache_control.private = True
        # Browsers may display SVG and HTML files, but must not run scripts in them.
        response.headers["Content-Security-Policy"] = "default-src 'self'; script-src 'none'; sandbox"
        return with_cache_tags(response, request, tags_of_file(snapshot, key))


def _redirect(url: str) -> Response:
    headers = {"Location": url, "Cache-Control": f"public, max-age={REDIRECT_MAX_AGE_S}"}
    return Response(status=302, headers=headers)


def _send(found: MediaFile) -> Response:
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
