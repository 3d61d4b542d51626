"""Handler for `GET /uploads/…`, which sends media files."""

import os
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from urllib.parse import quote, urlencode

from flask import Request, Response, request, send_file

from server.api.limiting.count_table import CountTable, client_id
from server.api.request import parameters, requested_commit, state_of, with_cache_tags
from server.api.response_cache import file_etag
from server.api.routes.handlers import Handlers
from server.bounded import network_of
from server.config.transformation import PARAMETERS
from server.documents.ids import to_nfc
from server.errors import RateLimitError
from server.paths import UPLOADS_URL
from server.service.cache_tags import tags_of_file
from server.service.images.by_url import BucketUrl, ClientRequest, Images, ParameterRedirect
from server.service.media.files import MediaFile, MediaFiles
from server.service.media.versions import is_version, read_version
from server.site.loading import cores
from server.storage.file_digests import sha256_of

FILE_MAX_AGE_S = 3600  # how long clients are allowed to cache a file
IMMUTABLE_MAX_AGE_S = 31_536_000
# Shorter than the time for which the signed URL in the redirect is valid.
REDIRECT_MAX_AGE_S = 300
# How long a request waits for an image from the bucket. The download continues for a later request.
DOWNLOAD_TIMEOUT_S = 10.0
# A transformed image can be evicted from the bucket.
IMAGE_REDIRECT_MAX_AGE_S = 60
# How often a client can search the bucket for an image, for each image that it can have transformed.
SEARCHES_PER_IMAGE = 10
_MINUTE_S = 60.0
TOO_MANY_MESSAGE = (
    "Too many new images in the last minute (media.transform.per_minute); "
    "images that have been made before are still sent"
)


def bind(handles: Handlers, files: MediaFiles, counts: CountTable, is_busy: Callable[[], bool]) -> None:
    """Register the handler.

    - `counts`: the number of image transformations for each client. Results from the cache are not counted.
    - `is_busy`: a function that returns whether the server is handling requests other than those for media
      files.
    """
    images = Images(files, cores(), DOWNLOAD_TIMEOUT_S, is_busy)

    @handles("download")
    def download(path: str) -> Response:
        snapshot, key, commit = state_of(request).snapshot, to_nfc(path), requested_commit(request)
        asked = parameters(request) if request.query_string else {}
        most = state_of(request).settings.media.transform.per_minute
        admit = partial(_admit, counts, request.remote_addr or "")
        client = ClientRequest(
            _accepted(request),
            partial(admit, "images", most),
            partial(admit, "searches", SEARCHES_PER_IMAGE * most),
            allows_redirect=True,
            network=network_of(request.remote_addr or ""),
        )
        made = images.find(snapshot, commit, key, asked, client) if asked else None
        found = files.find(snapshot, commit, key) if made is None else made
        is_current = isinstance(found, MediaFile) and not commit and _is_immutable(found, asked)
        if isinstance(found, ParameterRedirect):
            response = _redirect(f"{UPLOADS_URL}{quote(path)}?{urlencode(found.parameters)}")
        elif isinstance(found, BucketUrl):
            response = _redirect(found.url, IMAGE_REDIRECT_MAX_AGE_S)
        else:
            response = _redirect(found) if isinstance(found, str) else _send(found)
        if isinstance(found, MediaFile | BucketUrl) and found.varies_by_accept:
            response.vary.add("Accept")
        if is_current:
            response.cache_control.max_age = IMMUTABLE_MAX_AGE_S
            response.cache_control.immutable = True
        # Shared caches may store the file only if it belongs to the served state.
        if not files.is_served(requested_commit(request)):
            response.cache_control.public = False
            response.cache_control.private = True
        # Browsers may display SVG and HTML files, but must not run scripts in them.
        response.headers["Content-Security-Policy"] = "default-src 'self'; script-src 'none'; sandbox"
        return with_cache_tags(response, request, tags_of_file(snapshot, key))


def _is_immutable(media_file: MediaFile, params: Mapping[str, object]) -> bool:
    version = read_version(params)
    if not version:
        return False
    if media_file.versions is None:
        # If transformations are disabled, the same URL has another response after they have been enabled.
        return params.keys().isdisjoint(PARAMETERS) and is_version(version, (sha256_of(media_file.file),))
    return is_version(version, media_file.versions)


def _accepted(request: Request) -> Collection[str]:
    # `*/*` does not show that a client can display a format, so only formats that the client names count.
    return {media_type for media_type, quality in request.accept_mimetypes if quality > 0}


def _admit(counts: CountTable, address: str, kind: str, max_requests: int) -> None:
    made, end = counts.add(client_id(f"{kind} {network_of(address)}"), _MINUTE_S)
    if made > max_requests:
        raise RateLimitError(max(1, int(end - time.time())), TOO_MANY_MESSAGE)


def _redirect(url: str, max_age_s: int = REDIRECT_MAX_AGE_S) -> Response:
    headers = {"Location": url, "Cache-Control": f"public, max-age={max_age_s}"}
    return Response(status=302, headers=headers)


def _send(media_file: MediaFile) -> Response:
    file = media_file.file
    size = os.fstat(file.fileno()).st_size
    response = send_file(
        file,
        mimetype=media_file.mime,
        download_name=media_file.name,
        conditional=False,
        etag=media_file.digest or file_etag(file),
        last_modified=media_file.modified,
        max_age=FILE_MAX_AGE_S,
    )
    response.content_length = size
    try:
        length = None if _is_range_ignored(request, size) else size
        response.make_conditional(request, accept_ranges=True, complete_length=length)
    except BaseException:
        file.close()
        raise
    return response


def _is_range_ignored(request: Request, size: int) -> bool:
    """Return whether to ignore the Range header and send the whole file (RFC 9110, section 14.2)."""
    wanted = request.range
    if wanted is None:
        return False
    start, _ = wanted.ranges[0]
    return wanted.units != "bytes" or len(wanted.ranges) > 1 or start < -size
