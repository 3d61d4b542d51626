"""Parameters of image URLs, and the limits that a site sets for them (docs/images.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from server.config.media import MediaSettings, TransformSettings
from server.config.transformation import (
    AUTO,
    MAX_SIDE_PIXELS,
    PARAMETERS,
    PRESET,
    Transformation,
    TransformationError,
    read_transformation,
)
from server.errors import ValidationError
from server.paths import UPLOADS, UPLOADS_URL
from server.service.images.signatures import SIGNATURE
from server.storage.images.variants import split_variant_path
from server.storage.media import SIDECAR_SUFFIX

_SIDES = frozenset({"width", "w", "height", "h"})
_WIDTHS = ("width", "w", "min-w", "max-w")  # parameters that set or limit the width


def nearest_width(
    transformation: Transformation, requested: Mapping[str, Any], settings: TransformSettings
) -> int | None:
    """Return the allowed width to redirect to, or None if the requested width is allowed."""
    if not settings.widths or transformation.width is None or requested.keys() == {PRESET}:
        return None
    larger = [width for width in settings.widths if width >= transformation.width]
    nearest = larger[0] if larger else settings.widths[-1]
    return None if nearest == transformation.width else nearest


def with_width(parameters: Mapping[str, Any], width: int, media: MediaSettings) -> Mapping[str, str]:
    """Return the parameters with a different width, and without the signature.

    `min-w` and `max-w` are removed if they conflict with this width. Raises ValidationError if they come from
    a preset.
    """
    kept = {n: value for n, value in parameters.items() if n != SIGNATURE and isinstance(value, str)}
    names = [name for name in ("width", "w", "max-w") if name in kept] or ["width"]
    unlimited = {name: value for name, value in kept.items() if name not in _WIDTHS}
    for changed in (kept | dict.fromkeys(names, str(width)), unlimited | {"width": str(width)}):
        requested = {name: value for name, value in changed.items() if name in PARAMETERS}
        if nearest_width(read_parameters(requested, media), requested, media.transform) is None:
            return changed
    allowed = ", ".join(map(str, media.transform.widths))
    raise ValidationError(
        f'preset "{kept.get(PRESET)}": min-w or max-w gives a width '
        f"that media.transform.widths does not allow ({allowed})"
    )


def read_parameters(requested: Mapping[str, Any], media: MediaSettings) -> Transformation:
    """Parse the requested transformation. Raises ValidationError if it is invalid or not allowed."""
    settings = media.transform
    for name, value in requested.items():
        if not isinstance(value, str):
            raise ValidationError(f'"{name}" must have exactly one value')
    try:
        transformation = read_transformation(requested, {**settings.presets, **media.formats})
    except TransformationError as error:
        message = str(error)
        if error.name in _SIDES:  # For these, the syntax allows larger values.
            message = message.replace(f"to {MAX_SIDE_PIXELS}", f"to {settings.max_edge}")
        raise ValidationError(message) from error
    assert transformation is not None  # `requested` is not empty
    if requested.keys() == {PRESET}:
        return transformation  # The values in a preset are always allowed.
    quality = transformation.quality
    if settings.qualities and quality is not None and quality not in settings.qualities:
        allowed = ", ".join(map(str, settings.qualities))
        raise ValidationError(f'quality must be one of {allowed} (found "{quality}")')
    if transformation.format not in ("", AUTO, *settings.formats):
        allowed = ", ".join((AUTO, *settings.formats))
        raise ValidationError(f'format must be one of {allowed} (found "{transformation.format}")')
    return transformation


def check_max_edge(
    transformation: Transformation, requested: Mapping[str, Any], settings: TransformSettings
) -> None:
    """Raise ValidationError if the requested width or height is larger than `max_edge` pixels."""
    if requested.keys() == {PRESET}:
        return
    max_edge = settings.max_edge
    for name, pixels in (("width", transformation.pixel_width), ("height", transformation.pixel_height)):
        if pixels is not None and pixels > max_edge:
            times = f" times dpr {transformation.dpr:g}" if transformation.dpr != 1 else ""
            limit = f"{max_edge}, the value of media.transform.max_edge"
            raise ValidationError(f"{name}{times} must be at most {limit} (found {pixels})")


def url_problem(root: Path, media: MediaSettings, url: str) -> str:
    """Return why the server would reject an image URL, or "" if it would accept it."""
    parts = urlsplit(url)
    requested = {name: value for name, value in parse_qsl(parts.query) if name in PARAMETERS}
    if not media.transform.enabled:
        return "media.transform.enabled is false in site.yaml, so the server ignores the parameters"
    try:
        transformation = read_parameters(requested, media)
        if nearest_width(transformation, requested, media.transform) is None:
            check_max_edge(transformation, requested, media.transform)
    except ValidationError as error:
        return str(error)
    path = unquote(parts.path.partition(UPLOADS_URL)[2])
    variant = split_variant_path(path)
    names = [path, *([variant[1]] if variant else [])]
    # A media file in a bucket has only a description file on disk.
    if not any((root / UPLOADS / f"{name}{end}").is_file() for name in names for end in ("", SIDECAR_SUFFIX)):
        return f'there is no media file "{path}"'
    return ""
