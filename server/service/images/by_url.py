"""Transformed images for URLs such as `/uploads/bay.jpg?width=800` (docs/images.md)."""

import hashlib
import os
import posixpath
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from io import BufferedReader
from typing import IO, Any, cast

from server.auth.session_key import session_key
from server.bounded import Cache
from server.config.media import TransformSettings
from server.config.transformation import (
    AUTO,
    MEDIA_TYPES,
    PARAMETERS,
    PRESET,
    Transformation,
    canonical_key,
)
from server.documents.document import Document
from server.errors import ForbiddenError, NotFoundError, ValidationError
from server.index.snapshot import Snapshot
from server.service.images.parameters import check_max_edge, nearest_width, read_parameters, with_width
from server.service.images.signatures import SIGNATURE, is_signed, signature
from server.service.media.files import MediaFile, MediaFiles
from server.service.media.versions import read_version, version_of_image, with_focus
from server.storage.bucket.shared_images import SharedImage, SharedImages
from server.storage.files import FileMark, file_mark, file_mark_of
from server.storage.images.cache import size_of_image
from server.storage.images.derivatives import (
    DIGEST_DIGITS,
    VERSION,
    Derivative,
    DerivativeRequest,
    Derivatives,
)
from server.storage.images.errors import SizeLimitError, UntransformableError
from server.storage.images.kinds import ImageSize
from server.storage.images.limits import MAX_MEASURED_PIXELS
from server.storage.images.processes import Job
from server.storage.images.results import OWN_FORMATS, animation_limit, result_size
from server.storage.images.variants import split_variant_path
from server.storage.media import stored_object

MAX_CACHE_ENTRIES = 10_000
UNSIGNED_MESSAGE = (
    "The URL has no valid signature, which media.transform.sign requires; "
    "sign it with `bifolio media sign`, or use only the name of a preset, such as ?key=hero"
)
_TRANSFORMABLE = "only JPEG, PNG, WebP, AVIF, GIF, TIFF and BMP images can. Request it without parameters"
MEASURE_LOCKS = 64
# The blob of a past commit or the mark of a current file, and its extension.
_FileIdentity = tuple[str, FileMark | None, str]
_ImageFacts = tuple[str, ImageSize | None]  # a file's digest, and the image's dimensions


@dataclass(frozen=True, slots=True)
class ParameterRedirect:
    """A redirect to the same image with other parameters, which request an allowed width."""

    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BucketUrl:
    """The URL of a transformed image in the bucket.

    `varies_by_accept` is set if the Accept header of the request determines the image's file format.
    """

    url: str
    varies_by_accept: bool


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client's request for an image.

    `count_transformation` is called before an image is transformed, and `count_bucket_search` before the
    bucket is searched. Both can raise RateLimitError. `network` is the client's network, or "" if there is no
    limit per client.
    """

    accepted_types: Collection[str]
    count_transformation: Callable[[], None]
    count_bucket_search: Callable[[], None] = lambda: None
    allows_redirect: bool = False
    network: str = ""


class Images:
    """Transformed images of a site's media files."""

    def __init__(
        self,
        files: MediaFiles,
        concurrency: int,
        download_timeout_s: float,
        is_answering: Callable[[], bool] = lambda: False,
    ) -> None:
        self._files, self._shared = files, SharedImages()
        self._derivatives = Derivatives(files.site.root, concurrency, download_timeout_s, is_answering)
        # Saves hashing and measuring the original, 2 ms for 3 MB.
        self._facts: Cache[_FileIdentity, _ImageFacts] = Cache(MAX_CACHE_ENTRIES, lambda identity, facts: 1)
        # Requests for the same file share one measurement.
        self._measuring = [threading.Lock() for _ in range(MEASURE_LOCKS)]

    def find(
        self,
        snapshot: Snapshot,
        commit: str,
        path: str,
        parameters: Mapping[str, Any],
        client: ClientRequest,
    ) -> MediaFile | ParameterRedirect | BucketUrl | None:
        """Return a transformed image, or where to find it. Return None if no transformation is requested.

        If `commit` is "", the current file is transformed. Raises ForbiddenError if a signature is missing,
        or ValidationError if the transformation is impossible or not allowed. Also raises NotFoundError,
        RateLimitError, BusyError, StorageError, or any error of the bucket.
        """
        settings = self._files.site.state.settings.media
        requested = {name: value for name, value in parameters.items() if name in PARAMETERS}
        if not requested or not settings.transform.enabled:
            return None
        if settings.transform.sign and not is_signed(self._files.site.root, path, parameters):
            raise ForbiddenError(UNSIGNED_MESSAGE)
        transformation = read_parameters(requested, settings)
        if width := nearest_width(transformation, requested, settings.transform):
            return self._redirect(path, with_width(parameters, width, settings), settings.transform)
        check_max_edge(transformation, requested, settings.transform)
        path, document = _original(snapshot, path)
        depends_only_on_url_and_file = PRESET not in requested and not transformation.uses_focal_point
        transformation = with_focus(transformation, document)
        ending = posixpath.splitext(path)[1].lower()
        if ending not in OWN_FORMATS:
            raise ValidationError(f'"{path}" can\'t be transformed; {_TRANSFORMABLE}')
        digest, size = self._digest_and_size(snapshot, commit, path, document)
        _check_size(size, transformation, settings.transform, path)
        formats = _candidate_formats(transformation.format, ending, settings.transform, client.accepted_types)
        requests = [
            self._request(snapshot, commit, path, digest, transformation, *pair, client.network)
            for pair in formats
        ]
        stem = posixpath.splitext(posixpath.basename(path))[0]
        animation_pixels = animation_limit(ending, transformation.format, settings.transform)
        versions: tuple[str, ...] = ()
        if read_version(parameters):
            version = version_of_image(digest, transformation, animation_pixels)
            # Presets and focal points can change, so the digest does not identify their results.
            versions = (version, digest) if depends_only_on_url_and_file else (version,)
        return self._result(requests, client, stem, versions, varies=transformation.format == AUTO)

    def _result(
        self,
        requests: list[DerivativeRequest],
        client: ClientRequest,
        stem: str,
        versions: tuple[str, ...],
        *,
        varies: bool,
    ) -> MediaFile | BucketUrl:
        derivative, request = self._find_or_make(requests, client)
        if bucket_copy := request.bucket_copy:
            if client.allows_redirect and (url := bucket_copy.upload_if_missing(derivative.path)):
                derivative.file.close()
                return BucketUrl(url, varies)
            bucket_copy.record_use(derivative.path)
        return MediaFile(
            derivative.file,
            f"{stem}.{derivative.format}",
            MEDIA_TYPES[derivative.format],
            derivative.digest,
            varies_by_accept=varies,
            versions=versions if request is requests[0] else (),  # A better format follows.
        )

    def _request(
        self,
        snapshot: Snapshot,
        commit: str,
        path: str,
        digest: str,
        transformation: Transformation,
        format_: str,
        alternative_formats: tuple[str, ...],
        network: str,
    ) -> DerivativeRequest:
        settings, stored = self._files.site.state.settings, stored_object(snapshot.media, path)
        animation_pixels = animation_limit(
            posixpath.splitext(path)[1].lower(), format_, settings.media.transform
        )
        cache_key = _cache_key(digest, transformation, format_, alternative_formats, animation_pixels)
        return DerivativeRequest(
            cache_key,
            Job(transformation, format_, settings.media.transform.max_pixels, alternative_formats),
            lambda: self._files.open(snapshot, commit, path).file,
            settings.media.transform.cache,
            "" if stored else digest,
            network,
            is_remote=stored is not None and not self._files.bucket.is_local(stored),
            bucket_copy=SharedImage(self._shared, settings, cache_key) if stored else None,
        )

    def _redirect(
        self, path: str, parameters: Mapping[str, str], settings: TransformSettings
    ) -> ParameterRedirect:
        if not settings.sign:
            return ParameterRedirect(parameters)
        signed = signature(session_key(self._files.site.root), path, parameters)
        return ParameterRedirect({**parameters, SIGNATURE: signed})

    def _find_or_make(
        self, requests: list[DerivativeRequest], client: ClientRequest
    ) -> tuple[Derivative, DerivativeRequest]:
        """Return the best image in the cache. `requests` describes the possible images, best first.

        If none is cached, the last of them is fetched from the bucket or made. Better images are then made in
        the background.
        """
        derivative = None
        for request in requests:
            derivative = self._derivatives.find(request.key)
            if derivative:
                break
        began = time.monotonic()
        if derivative is None and request.bucket_copy:
            client.count_bucket_search()
            derivative = self._derivatives.fetch(request)
        if derivative is None:
            client.count_transformation()
            try:
                derivative = self._derivatives.make(request, began)
            except UntransformableError as error:
                raise ValidationError(f"The image {error}") from error
        for better in requests[: requests.index(request)]:
            self._derivatives.make_later(better)
        return derivative, request

    def _digest_and_size(self, snapshot: Snapshot, commit: str, path: str, document: Document) -> _ImageFacts:
        if stored := stored_object(snapshot.media, path):  # The description file contains both.
            width, height = document.get("width"), document.get("height")
            return stored.sha256, ImageSize(width, height) if width and height else None
        identity = self._identify(snapshot, commit, path, document)
        if facts := self._facts.get(identity):
            return facts
        with self._measuring[hash(identity) % MEASURE_LOCKS]:
            return self._facts.get(identity) or self._measure(snapshot, commit, path)

    def _identify(self, snapshot: Snapshot, commit: str, path: str, document: Document) -> _FileIdentity:
        # Opening the file takes half of the time that a cached image takes in `_digest_and_size`.
        blob = self._files.blob_id(snapshot, commit, path) if commit else ""
        mark = None if blob else file_mark_of(self._files.site.root / document.path)
        return blob, mark, posixpath.splitext(path)[1]

    def _measure(self, snapshot: Snapshot, commit: str, path: str) -> _ImageFacts:
        source, ending = self._files.open(snapshot, commit, path), posixpath.splitext(path)[1]
        with source.file as file:
            # A blob of a past commit is opened as a temporary file, which has a new mark each time.
            mark = None if source.digest else file_mark(os.fstat(file.fileno()))
            digest = _digest_of(file)
            file.seek(0)
            facts = digest, size_of_image(cast(BufferedReader, file), ending)
            self._facts.put((source.digest, mark, ending), facts)
            return facts


def _original(snapshot: Snapshot, path: str) -> tuple[str, Document]:
    # A variant such as `small_bay.jpg` stands for the image that it was made from.
    parts = split_variant_path(path)
    if path not in snapshot.media and parts is not None:
        path = parts[1]
    document = snapshot.media.get(path)
    if document is None:
        raise NotFoundError()
    return path, document


def _check_size(
    size: ImageSize | None, transformation: Transformation, settings: TransformSettings, path: str
) -> None:
    if size is None:
        problem = f"is damaged or has more than {MAX_MEASURED_PIXELS:,} pixels"
        raise ValidationError(f'"{path}" can\'t be transformed, because it {problem}')
    try:
        result_size(size, transformation, settings)
    except SizeLimitError as error:
        raise ValidationError(f'"{path}" can\'t be transformed, because {error}') from error


def _candidate_formats(
    requested: str, extension: str, settings: TransformSettings, accepted_types: Collection[str]
) -> Sequence[tuple[str, tuple[str, ...]]]:
    """Return the file formats in which an image can be sent, best first.

    Each is paired with formats that replace it if they make the image smaller.
    """
    own = OWN_FORMATS[extension]
    if requested != AUTO:
        return ((requested or own, ()),)
    better = ("avif", "webp")
    formats: list[str] = [
        name for name in better if name in settings.formats and MEDIA_TYPES[name] in accepted_types
    ]
    if "webp" not in formats and own not in formats:
        formats.append(own)
    # All browsers can show a JPEG and a PNG.
    alternatives = [
        name for name in dict.fromkeys(("webp", own)) if name in formats or name in ("jpg", "png")
    ]
    return [
        (name, tuple(other for other in alternatives if other != name and name != own)) for name in formats
    ]


# The cache saves 10 of the 100 µs that finding a cached image takes.
@lru_cache(maxsize=4096)
def _cache_key(
    digest: str,
    transformation: Transformation,
    format_: str,
    alternative_formats: tuple[str, ...],
    animation_pixels: int,
) -> str:
    parameters = canonical_key(replace(transformation, format=format_))
    text = f"{VERSION} {digest} {animation_pixels} {' '.join(alternative_formats)} {parameters}"
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def _digest_of(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()
