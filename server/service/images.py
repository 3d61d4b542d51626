"""Transforms images on the fly, for URLs such as `/uploads/bay.jpg?width=800` (docs/images.md)."""

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
from server.config.media import MediaSettings, TransformSettings
from server.config.transformation import (
    AUTO,
    MEDIA_TYPES,
    PARAMETERS,
    PRESET,
    Transformation,
    TransformationError,
    canonical,
    read_transformation,
)
from server.documents.document import Document
from server.errors import ForbiddenError, NotFoundError, ValidationError
from server.index.snapshot import Snapshot
from server.service.image_signatures import SIGNATURE, is_signed, signature
from server.service.media_files import MediaFile, MediaFiles
from server.service.media_versions import read_version, version_of_image, with_focus
from server.storage.bucket.shared_images import SharedImage, SharedImages
from server.storage.files import FileMark, file_mark, file_mark_of
from server.storage.images.cache import size_of_image
from server.storage.images.derivatives import (
    DIGEST_DIGITS,
    VERSION,
    Derivative,
    Derivatives,
    Request,
)
from server.storage.images.formats import format_of
from server.storage.images.kinds import ImageSize
from server.storage.images.processes import Job, UntransformableError
from server.storage.images.results import OWN_FORMATS, UnfitSizeError, animation_limit, result_size
from server.storage.media import stored_object

MAX_NOTED_FILES = 10_000
_WIDTHS = ("width", "w", "min-w", "max-w")  # parameters that set or limit the width
UNSIGNED_MESSAGE = (
    "The URL has no valid signature, which media.transform.sign requires; "
    "sign it with `bifolio media sign`, or use only the name of a preset, such as ?key=hero"
)
_TRANSFORMABLE = "only JPEG, PNG, WebP, AVIF, GIF, TIFF and BMP images can. Request it without parameters"
MEASURE_LOCKS = 64
# The blob of a past commit or the mark of a current file, and its extension.
_Note = tuple[str, FileMark | None, str]
_Facts = tuple[str, ImageSize | None]  # a file's digest, and the image's dimensions


@dataclass(frozen=True, slots=True)
class Redirect:
    """The parameters to request instead, because the width is not allowed."""

    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BucketUrl:
    """The URL of a transformed image in the bucket.

    `varies` means whether it depends on the media types that the client accepts.
    """

    url: str
    varies: bool


@dataclass(frozen=True, slots=True)
class Caller:
    """A request for a transformation.

    - `accepts`: the media types that the client accepts.
    - `admit`: called before an image is transformed. Raises RateLimitError if the client has requested too
      many.
    - `admit_search`: the same, called before an image is searched for in the bucket.
    - `follows`: whether the client may be redirected to the bucket.
    """

    accepts: Collection[str]
    admit: Callable[[], None]
    admit_search: Callable[[], None] = lambda: None
    follows: bool = False


class Images:
    """Transformed images of a site's media files."""

    def __init__(self, files: MediaFiles, concurrency: int, download_timeout_s: float) -> None:
        self._files, self._shared = files, SharedImages()
        self._derivatives = Derivatives(files.site.root, concurrency, download_timeout_s)
        # Saves hashing and measuring the original, 2 ms for 3 MB.
        self._facts: Cache[_Note, _Facts] = Cache(MAX_NOTED_FILES, lambda key, facts: 1)
        # Requests for the same file share one measurement.
        self._measuring = [threading.Lock() for _ in range(MEASURE_LOCKS)]

    def find(
        self,
        snapshot: Snapshot,
        commit: str,
        key: str,
        parameters: Mapping[str, Any],
        caller: Caller,
    ) -> MediaFile | Redirect | BucketUrl | None:
        """Return a transformed image, or None if the parameters request no transformation.

        `commit` is the past commit that contains the image, or "".

        Raises:
        - ValidationError if a parameter is invalid or the file can't be transformed.
        - ForbiddenError if the URL must be signed, but is not.
        - RateLimitError, BusyError or StorageError if the image can't be transformed now.
        - NotFoundError, or any error of the bucket.
        """
        settings = self._files.site.state.settings.media
        asked = {name: value for name, value in parameters.items() if name in PARAMETERS}
        if not asked or not settings.transform.enabled:
            return None
        if settings.transform.sign and not is_signed(self._files.site.root, key, parameters):
            raise ForbiddenError(UNSIGNED_MESSAGE)
        wanted = _read(asked, settings)
        if width := _nearest_width(wanted, asked, settings.transform):
            return self._redirect(key, _with_width(parameters, width, settings), settings.transform)
        _check_sides(wanted, asked, settings.transform)
        key, document = _original(snapshot, key)
        has_own_entry = PRESET not in asked and not wanted.uses_focal_point
        wanted = with_focus(wanted, document)
        ending = posixpath.splitext(key)[1].lower()
        if ending not in OWN_FORMATS:
            raise ValidationError(f'"{key}" can\'t be transformed; {_TRANSFORMABLE}')
        digest, size = self._look(snapshot, commit, key, document)
        _check_size(size, wanted, settings.transform, key)
        formats = _formats(wanted.format, ending, settings.transform, caller.accepts)
        requests = [self._request(snapshot, commit, key, digest, wanted, *pair) for pair in formats]
        stem = posixpath.splitext(posixpath.basename(key))[0]
        most = animation_limit(ending, wanted.format, settings.transform)
        versions = (
            _versions(digest, wanted, most, has_own_entry=has_own_entry) if read_version(parameters) else ()
        )
        return self._result(requests, caller, stem, versions, varies=wanted.format == AUTO)

    def _result(
        self, requests: list[Request], caller: Caller, stem: str, versions: tuple[str, ...], *, varies: bool
    ) -> MediaFile | BucketUrl:
        found, request = self._answer(requests, caller)
        if caller.follows and request.shared and (url := request.shared.url(found.path)):
            found.file.close()
            return BucketUrl(url, varies)
        if request.shared:
            request.shared.use(found.path)
        return MediaFile(
            found.file,
            f"{stem}.{found.format}",
            MEDIA_TYPES[found.format],
            found.digest,
            varies=varies,
            versions=versions if request is requests[0] else (),  # A better format follows.
        )

    def _request(
        self,
        snapshot: Snapshot,
        commit: str,
        key: str,
        digest: str,
        wanted: Transformation,
        format_: str,
        rivals: tuple[str, ...],
    ) -> Request:
        settings, stored = self._files.site.state.settings, stored_object(snapshot.media, key)
        most = animation_limit(posixpath.splitext(key)[1].lower(), format_, settings.media.transform)
        name = _key_of(digest, wanted, format_, rivals, most)
        return Request(
            name,
            Job(wanted, format_, settings.media.transform.max_pixels, rivals),
            lambda: self._files.open(snapshot, commit, key).file,
            settings.media.transform.cache,
            "" if stored else digest,
            is_remote=stored is not None and not self._files.bucket.is_local(stored),
            shared=SharedImage(self._shared, settings, name) if stored else None,
        )

    def _redirect(self, key: str, parameters: Mapping[str, str], settings: TransformSettings) -> Redirect:
        if not settings.sign:
            return Redirect(parameters)
        signed = signature(session_key(self._files.site.root), key, parameters)
        return Redirect({**parameters, SIGNATURE: signed})

    def _answer(self, requests: list[Request], caller: Caller) -> tuple[Derivative, Request]:
        """Return the first image that is cached. Otherwise, make the last one now and the others later."""
        found = None
        for request in requests:
            found = self._derivatives.find(request.key)
            if found:
                break
        began = time.monotonic()
        if found is None and request.shared:
            caller.admit_search()
            found = self._derivatives.fetch(request)
        if found is None:
            caller.admit()
            try:
                found = self._derivatives.make(request, began)
            except UntransformableError as error:
                raise ValidationError(f"The image {error}") from error
        for better in requests[: requests.index(request)]:
            self._derivatives.make_later(better)
        return found, request

    def _look(self, snapshot: Snapshot, commit: str, key: str, document: Document) -> _Facts:
        """Return an image's digest and dimensions. Both are cached while the file is unchanged."""
        if stored := stored_object(snapshot.media, key):  # The description file contains both.
            width, height = document.get("width"), document.get("height")
            return stored.sha256, ImageSize(width, height) if width and height else None
        note = self._note_of(snapshot, commit, key, document)
        if facts := self._facts.get(note):
            return facts
        with self._measuring[hash(note) % MEASURE_LOCKS]:
            return self._facts.get(note) or self._measure(snapshot, commit, key)

    def _note_of(self, snapshot: Snapshot, commit: str, key: str, document: Document) -> _Note:
        # Opening the file takes half of the time that a cached image takes in `_look`.
        blob = self._files.blob_id(snapshot, commit, key) if commit else ""
        mark = None if blob else file_mark_of(self._files.site.root / document.path)
        return blob, mark, posixpath.splitext(key)[1]

    def _measure(self, snapshot: Snapshot, commit: str, key: str) -> _Facts:
        source, ending = self._files.open(snapshot, commit, key), posixpath.splitext(key)[1]
        with source.file as file:
            # A blob of a past commit is opened as a temporary file, which has another mark each time.
            mark = None if source.digest else file_mark(os.fstat(file.fileno()))
            digest = _digest_of(file)
            file.seek(0)
            facts = digest, size_of_image(cast(BufferedReader, file), ending)
            self._facts.put((source.digest, mark, ending), facts)
            return facts


def _original(snapshot: Snapshot, key: str) -> tuple[str, Document]:
    # A resized variant such as `small_bay.jpg` stands for the image that it was made from.
    parts = format_of(key)
    if key not in snapshot.media and parts is not None:
        key = parts[1]
    document = snapshot.media.get(key)
    if document is None:
        raise NotFoundError()
    return key, document


def _nearest_width(
    wanted: Transformation, asked: Mapping[str, Any], settings: TransformSettings
) -> int | None:
    """Return the width to redirect to, or None if the requested width is allowed."""
    if not settings.widths or wanted.width is None or asked.keys() == {PRESET}:
        return None
    larger = [width for width in settings.widths if width >= wanted.width]
    nearest = larger[0] if larger else settings.widths[-1]
    return None if nearest == wanted.width else nearest


def _with_width(parameters: Mapping[str, Any], width: int, media: MediaSettings) -> Mapping[str, str]:
    """Return the parameters for another width, without the signature.

    Limits such as `min-w` are left out if they would lead to a width that is not allowed. Raises
    ValidationError if the limits of a preset would do so.
    """
    kept = {n: value for n, value in parameters.items() if n != SIGNATURE and isinstance(value, str)}
    names = [name for name in ("width", "w", "max-w") if name in kept] or ["width"]
    unlimited = {name: value for name, value in kept.items() if name not in _WIDTHS}
    for changed in (kept | dict.fromkeys(names, str(width)), unlimited | {"width": str(width)}):
        asked = {name: value for name, value in changed.items() if name in PARAMETERS}
        if _nearest_width(_read(asked, media), asked, media.transform) is None:
            return changed
    allowed = ", ".join(map(str, media.transform.widths))
    raise ValidationError(
        f'preset "{kept.get(PRESET)}": min-w or max-w gives a width '
        f"that media.transform.widths does not allow ({allowed})"
    )


def _read(asked: Mapping[str, Any], media: MediaSettings) -> Transformation:
    settings = media.transform
    for name, value in asked.items():
        if not isinstance(value, str):
            raise ValidationError(f'"{name}" must have exactly one value')
    try:
        wanted = read_transformation(asked, {**settings.presets, **media.formats})
    except TransformationError as error:
        raise ValidationError(str(error)) from error
    assert wanted is not None  # `asked` is not empty
    if asked.keys() == {PRESET}:
        return wanted  # Whoever wrote the preset chose its values.
    if settings.qualities and wanted.quality is not None and wanted.quality not in settings.qualities:
        allowed = ", ".join(map(str, settings.qualities))
        raise ValidationError(f'quality must be one of {allowed} (found "{wanted.quality}")')
    if wanted.format not in ("", AUTO, *settings.formats):
        allowed = ", ".join((AUTO, *settings.formats))
        raise ValidationError(f'format must be one of {allowed} (found "{wanted.format}")')
    return wanted


def _check_sides(wanted: Transformation, asked: Mapping[str, Any], settings: TransformSettings) -> None:
    """Raise ValidationError if the requested width or height exceeds `max_edge`."""
    if asked.keys() == {PRESET}:
        return
    most = settings.max_edge
    for name, pixels in (("width", wanted.pixel_width), ("height", wanted.pixel_height)):
        if pixels is not None and pixels > most:
            times = f" times dpr {wanted.dpr:g}" if wanted.dpr != 1 else ""
            limit = f"{most}, the value of media.transform.max_edge"
            raise ValidationError(f"{name}{times} must be at most {limit} (found {pixels})")


def _versions(digest: str, wanted: Transformation, most: int, *, has_own_entry: bool) -> tuple[str, ...]:
    """Return the hashes that identify a result. `most` is the result of `animation_limit`.

    `has_own_entry` means that the URL and the original determine it: no preset, and no focal point.
    """
    version = version_of_image(digest, wanted, most)
    return (version, digest) if has_own_entry else (version,)


def _check_size(
    size: ImageSize | None, wanted: Transformation, settings: TransformSettings, key: str
) -> None:
    if size is None:
        raise ValidationError(f"\"{key}\" can't be transformed, because its dimensions can't be read")
    try:
        result_size(size, wanted, settings)
    except UnfitSizeError as error:
        raise ValidationError(f'"{key}" can\'t be transformed, because {error}') from error


def _formats(
    wanted: str, ending: str, settings: TransformSettings, accepts: Collection[str]
) -> Sequence[tuple[str, tuple[str, ...]]]:
    """Return the formats of a result, the best first. The last one is made if none of them is cached.

    With each format are its rivals. The result has one of these formats instead if it is smaller.
    """
    own = OWN_FORMATS[ending]
    if wanted != AUTO:
        return ((wanted or own, ()),)
    better = ("avif", "webp")
    found: list[str] = [name for name in better if name in settings.formats and MEDIA_TYPES[name] in accepts]
    if "webp" not in found and own not in found:
        found.append(own)
    # All browsers can show a JPEG and a PNG.
    reuse_rule = [name for name in dict.fromkeys(("webp", own)) if name in found or name in ("jpg", "png")]
    return [(name, tuple(rival for rival in reuse_rule if rival != name and name != own)) for name in found]


# The cache saves 10 of the 100 µs that finding a cached image takes.
@lru_cache(maxsize=4096)
def _key_of(digest: str, wanted: Transformation, format_: str, rivals: tuple[str, ...], most: int) -> str:
    text = f"{VERSION} {digest} {most} {' '.join(rivals)} {canonical(replace(wanted, format=format_))}"
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]


def _digest_of(file: IO[bytes]) -> str:
    file.seek(0)
    return hashlib.file_digest(cast(BufferedReader, file), "sha256").hexdigest()
