"""Custom formats of images (docs/images.md)."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from server.config.media import MediaSettings
from server.config.transformation import AUTO, MEDIA_TYPES, PRESET, Transformation
from server.documents.document import Document
from server.service.media.versions import VERSION_PARAMETER, version_of_image, with_focus
from server.storage.bucket.stored import object_of
from server.storage.images.errors import SizeLimitError
from server.storage.images.kinds import ImageSize
from server.storage.images.results import OWN_FORMATS, animation_limit, result_size


@dataclass(frozen=True, slots=True)
class CustomFormats:
    """The transformations in the setting `media.formats`.

    `key` identifies them in the cache keys of rendered documents.
    """

    settings: MediaSettings
    key: Hashable

    def add(self, file: Document) -> Document:
        own = OWN_FORMATS.get(file.get("ext").lower())
        width, height = file.get("width") or 0, file.get("height") or 0
        if own is None or min(width, height) < 1:
            return file
        described = {}
        for name, transformation in self.settings.formats.items():
            try:
                size = result_size(ImageSize(width, height), transformation, self.settings.transform)
            except SizeLimitError:  # Requests for this format get a 400 response.
                continue
            ending, format_ = file.get("ext").lower(), transformation.format
            animation_pixels = animation_limit(ending, format_, self.settings.transform)
            url = _address(file, name, transformation, animation_pixels)
            described[name] = _describe(file, name, url, _format_of(transformation, own), size)
        if not described:
            return file
        return file.with_values({"formats": {**(file.get("formats") or {}), **described}})


def custom_formats(settings: MediaSettings) -> CustomFormats | None:
    if not settings.formats or not settings.transform.enabled:
        return None
    limits = settings.transform.max_pixels, settings.transform.max_edge
    return CustomFormats(settings, repr((settings.formats, limits)))


def _format_of(transformation: Transformation, own: str) -> str:
    return own if transformation.format in ("", AUTO) else transformation.format


def _address(file: Document, name: str, transformation: Transformation, animation_pixels: int) -> str:
    url = f"{file.get('url')}?{PRESET}={name}"
    # The hash of a file on disk is not known without reading the file.
    if stored := object_of(file.get("provider_metadata")):
        version = version_of_image(stored.sha256, with_focus(transformation, file), animation_pixels)
        return f"{url}&{VERSION_PARAMETER}={version}"
    return url


def _describe(file: Document, name: str, url: str, format_: str, size: ImageSize) -> Mapping[str, Any]:
    ext, called = f".{format_}", file.get("name")
    if called.lower().endswith(file.get("ext").lower()):
        called = called[: len(called) - len(file.get("ext"))] + ext
    return {
        "name": f"{name}_{called}",
        "hash": f"{name}_{file.get('hash')}",
        "ext": ext,
        "mime": MEDIA_TYPES[format_],
        "path": None,
        "width": size.width,
        "height": size.height,
        # The image is made when it is first requested, so its size is not known yet.
        "size": None,
        "sizeInBytes": None,
        "url": url,
    }
