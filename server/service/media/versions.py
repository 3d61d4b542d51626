"""The parameter `v` of media URLs, a hash that identifies a version of the file (docs/images.md)."""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import replace

from server.config.transformation import Transformation, canonical_key
from server.documents.document import Document
from server.storage.images.derivatives import VERSION

VERSION_PARAMETER = "v"
MIN_VERSION_DIGITS = 16
_VERSION = re.compile(f"[0-9a-f]{{{MIN_VERSION_DIGITS},64}}")


def read_version(parameters: Mapping[str, object]) -> str:
    version = parameters.get(VERSION_PARAMETER)
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else ""


def is_version(version: str, digests: tuple[str, ...]) -> bool:
    return bool(version) and any(digest.startswith(version) for digest in digests)


def version_of_image(digest: str, transformation: Transformation, animation_pixels: int) -> str:
    """Return a hash of everything that determines the content of a transformed image.

    `digest` is the SHA-256 of the original. `transformation` must include the focal point.
    """
    text = f"{VERSION} {digest} {animation_pixels} {canonical_key(transformation)}"
    return hashlib.sha256(text.encode()).hexdigest()[:MIN_VERSION_DIGITS]


def with_focus(transformation: Transformation, document: Document) -> Transformation:
    """Return the transformation with the image's focal point, unless it already has one."""
    x, y = transformation.focus or (None, None)
    point = document.get("focalPoint")
    if transformation.keeps_detail or not isinstance(point, dict):
        return transformation
    return replace(
        transformation, focus=(_side(point, "x") if x is None else x, _side(point, "y") if y is None else y)
    )


def _side(point: Mapping[str, object], name: str) -> float | None:
    try:  # The description may have been written by hand.
        percent = float(str(point[name]))
    except (KeyError, ValueError, OverflowError):
        return None
    return min(max(percent, 0.0), 100.0) / 100 if math.isfinite(percent) else None
