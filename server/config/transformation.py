"""Image transformations in URLs such as `/uploads/bay.jpg?width=800` (docs/images.md)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

AUTO = "auto"
# Image formats by name: the media type. Each name is also the extension of files in this format.
MEDIA_TYPES: Mapping[str, str] = {
    "avif": "image/avif",
    "webp": "image/webp",
    "jpg": "image/jpeg",
    "png": "image/png",
}
COVER, CONTAIN, INSIDE, OUTSIDE, SCALE = "cover", "contain", "inside", "outside", "scale"
FITS = (COVER, CONTAIN, INSIDE, OUTSIDE, SCALE)
MAX_SIDE_PIXELS = 32_767  # keeps width × height small; the actual limit is `media.transform.max_edge`
MAX_DPR = 5.0
MAX_QUALITY = 100
_WHOLE_NUMBER = re.compile(r"[0-9]{1,6}")
# `String(number)` in JavaScript has up to 20 digits after the point.
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,20})?|\.[0-9]{1,20}")
_RATIO = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,20})?):([0-9]{1,5}(?:\.[0-9]{1,20})?)")
_RECTANGLE = re.compile(r"([0-9]{1,6}),([0-9]{1,6}),([0-9]{1,6}),([0-9]{1,6})")
MAX_RATIO = 100.0
# Values of `crop` as in imgix, and the point that each one keeps in view: x and y, or None for no effect.
# Faces are not searched for. imgix also ignores `faces` if it finds none.
_CROPS: Mapping[str, tuple[float | None, float | None]] = {
    "focalpoint": (None, None),
    "center": (0.5, 0.5),
    "top": (None, 0.0),
    "bottom": (None, 1.0),
    "left": (0.0, None),
    "right": (1.0, None),
    "entropy": (None, None),
    "edges": (None, None),
    "faces": (None, None),
}
_DETAIL = frozenset({"entropy", "edges"})
# imgix's values of `fit`, each with Bifolio's fit and whether images are enlarged (None: as requested).
_IMGIX_FITS: Mapping[str, tuple[str, bool | None]] = {
    "crop": (COVER, None),
    "min": (COVER, False),
    "clip": (INSIDE, None),
    "max": (INSIDE, False),
    "fill": (CONTAIN, None),
    "fillmax": (CONTAIN, False),
}
_FORMAT_NAMES: Mapping[str, str] = {name: name for name in (AUTO, *MEDIA_TYPES)} | {
    "jpeg": "jpg",
    "pjpg": "jpg",
}


class TransformationError(ValueError):
    """An invalid parameter. The message has the form `PARAMETER must be … (found …)`."""

    def __init__(self, name: str, expected: str, found: str | None) -> None:
        self.name, self.expected = name, expected
        super().__init__(f"{name} must be {expected}" + (f' (found "{found}")' if found is not None else ""))


@dataclass(frozen=True, slots=True)
class Transformation:
    """A requested transformation of an image. Widths and heights are in CSS pixels.

    - `format`: a key of MEDIA_TYPES, AUTO, or "" for the format of the original image.
    - `dpr`: the number of pixels for each CSS pixel.
    - `focus`: the point to keep in view, as fractions of width and height, or None for the image's focal
      point.
    - `ratio`: width divided by height. If only the width or height is set, `ratio` determines the other.
    - `width_range`, `height_range`: the minimum and maximum of the resulting width or height, if it is not
      known yet because it depends on the original image. The image is cropped to fit them.
    - `rectangle`: left, top, width and height of the part to use, in pixels of the original image.
    - `keeps_detail`: whether to keep the part with the most detail, instead of the part around `focus`.
    """

    width: int | None = None
    height: int | None = None
    fit: str = COVER
    format: str = ""
    quality: int | None = None
    dpr: float = 1.0
    focus: tuple[float | None, float | None] | None = None
    enlarges: bool = False
    ratio: float | None = None
    width_range: tuple[int, int] | None = None
    height_range: tuple[int, int] | None = None
    rectangle: tuple[int, int, int, int] | None = None
    keeps_detail: bool = False

    @property
    def pixel_width(self) -> int | None:
        return None if self.width is None else max(1, round(self.width * self.dpr))

    @property
    def pixel_height(self) -> int | None:
        return None if self.height is None else max(1, round(self.height * self.dpr))

    @property
    def pixel_width_range(self) -> tuple[int, int] | None:
        return _in_pixels(self.width_range, self.dpr)

    @property
    def pixel_height_range(self) -> tuple[int, int] | None:
        return _in_pixels(self.height_range, self.dpr)

    @property
    def uses_focal_point(self) -> bool:
        if self.fit != COVER or self.keeps_detail or (self.focus and None not in self.focus):
            return False
        has_both_sides = self.width is not None and self.height is not None
        return bool(has_both_sides or self.ratio or self.width_range or self.height_range)


def _in_pixels(limits: tuple[int, int] | None, dpr: float) -> tuple[int, int] | None:
    return limits and (max(1, round(limits[0] * dpr)), max(1, round(limits[1] * dpr)))


def _whole(name: str, text: str, maximum: int) -> int:
    number = int(text) if _WHOLE_NUMBER.fullmatch(text) else 0
    if not 1 <= number <= maximum:
        raise TransformationError(name, f"a whole number from 1 to {maximum}", text)
    return number


def _decimal(name: str, text: str, minimum: float, maximum: float) -> float:
    number = float(text) if _DECIMAL.fullmatch(text) else -1.0
    if not minimum <= number <= maximum:
        raise TransformationError(name, f"a number from {minimum:g} to {maximum:g}", text)
    return number


def _one_of(name: str, text: str, allowed: Mapping[str, Any]) -> Any:
    if text not in allowed:
        raise TransformationError(name, "one of " + ", ".join(allowed), text)
    return allowed[text]


Change = Callable[[Transformation, str, str], Transformation]  # arguments: so far, parameter, value


def _read_fit(transformation: Transformation, name: str, text: str) -> Transformation:
    fits: dict[str, tuple[str, bool | None]] = {fit: (fit, None) for fit in FITS}
    fit, enlarges = _one_of(name, text, fits | dict(_IMGIX_FITS))
    return replace(
        transformation, fit=fit, enlarges=transformation.enlarges if enlarges is None else enlarges
    )


def _read_auto(transformation: Transformation, name: str, text: str) -> Transformation:
    # imgix's `auto`: a list. Results are always compressed, so `compress` has no effect.
    for word in text.split(","):
        _one_of(name, word.strip(), {"format": 1, "compress": 1})
    asks = "format" in text and not transformation.format
    return replace(transformation, format=AUTO) if asks else transformation


def _read_crop(transformation: Transformation, name: str, text: str) -> Transformation:
    # imgix's `crop`: a list, such as `top,left`.
    x, y, words = None, None, [word.strip() for word in text.split(",")]
    for word in words:
        across, down = _one_of(name, word, _CROPS)
        x, y = (x if across is None else across), (y if down is None else down)
    if x is not None or y is not None:
        focus = (0.5 if x is None else x, 0.5 if y is None else y)
        return replace(transformation, focus=focus, keeps_detail=False)
    if _DETAIL.isdisjoint(words) or (transformation.focus and "focalpoint" in words):
        return replace(transformation, keeps_detail=False)
    return replace(transformation, focus=None, keeps_detail=True)


def _read_ratio(transformation: Transformation, name: str, text: str) -> Transformation:
    found = _RATIO.fullmatch(text)
    across, down = map(float, found.groups()) if found else (0.0, 0.0)
    if not (across and down and 1 / MAX_RATIO <= across / down <= MAX_RATIO):
        raise TransformationError(name, "a ratio such as 16:9", text)
    return replace(transformation, ratio=across / down)


def _read_rectangle(transformation: Transformation, name: str, text: str) -> Transformation:
    found = _RECTANGLE.fullmatch(text)
    left, top, width, height = map(int, found.groups()) if found else (0, 0, 0, 0)
    if not width or not height:
        expected = "left,top,width,height in pixels, such as 0,0,400,300"
        raise TransformationError(name, expected, text)
    return replace(transformation, rectangle=(left, top, width, height))


def _read_limit(*, is_width: bool, is_maximum: bool) -> Change:
    def read(transformation: Transformation, name: str, text: str) -> Transformation:
        limit = _whole(name, text, MAX_SIDE_PIXELS)
        so_far = transformation.width_range if is_width else transformation.height_range
        minimum, maximum = so_far or (1, MAX_SIDE_PIXELS)
        limits = (minimum, limit) if is_maximum else (limit, maximum)
        return (
            replace(transformation, width_range=limits)
            if is_width
            else replace(transformation, height_range=limits)
        )

    return read


def _read_focus(side: int) -> Change:
    def read(transformation: Transformation, name: str, text: str) -> Transformation:
        point = list(transformation.focus or (None, None))
        point[side] = _decimal(name, text, 0.0, 1.0)
        return replace(transformation, focus=(point[0], point[1]))

    return read


def _read_enlargement(transformation: Transformation, name: str, text: str) -> Transformation:
    allowed = {"true": False, "1": False, "false": True, "0": True}
    return replace(transformation, enlarges=_one_of(name, text, allowed))


_READERS: Mapping[str, Change] = {
    "width": lambda wanted, name, text: replace(wanted, width=_whole(name, text, MAX_SIDE_PIXELS)),
    "height": lambda wanted, name, text: replace(wanted, height=_whole(name, text, MAX_SIDE_PIXELS)),
    "fit": _read_fit,
    "withoutEnlargement": _read_enlargement,  # after `fit`, whose value `max` forbids enlargement
    "format": lambda wanted, name, text: replace(wanted, format=_one_of(name, text, _FORMAT_NAMES)),
    "auto": _read_auto,
    "quality": lambda wanted, name, text: replace(wanted, quality=_whole(name, text, MAX_QUALITY)),
    "dpr": lambda wanted, name, text: replace(wanted, dpr=_decimal(name, text, 0.1, MAX_DPR)),
    "fp-x": _read_focus(0),
    "fp-y": _read_focus(1),
    "crop": _read_crop,
    "ar": _read_ratio,
    "rect": _read_rectangle,
    "min-w": _read_limit(is_width=True, is_maximum=False),
    "max-w": _read_limit(is_width=True, is_maximum=True),
    "min-h": _read_limit(is_width=False, is_maximum=False),
    "max-h": _read_limit(is_width=False, is_maximum=True),
}
# Short names of parameters, as in imgix.
ALIASES: Mapping[str, str] = {"w": "width", "h": "height", "q": "quality", "fm": "format"}
PRESET = "key"
# Names that `media.formats` can't define, because these variants are made at upload, as in Strapi.
UPLOAD_FORMATS = ("thumbnail", "small", "medium", "large")
# All parameters that request a transformation, in the order in which they are read.
PARAMETERS = (PRESET, *_READERS, *ALIASES)
DESCRIPTIONS: Mapping[str, str] = {
    "width": "its width in pixels",
    "height": "its height in pixels",
    "fit": "how it fits into the width and height",
    "format": "its format, or `auto`",
    "quality": "its quality, from 1 to 100",
    "dpr": "the number of pixels for each pixel of `width` and `height`",
    "fp-x": "the horizontal position to keep in view, from 0 to 1",
    "fp-y": "the vertical position to keep in view, from 0 to 1",
    "ar": "the ratio of width and height, such as `16:9`",
    "rect": "the part to use: left, top, width and height in pixels",
    "crop": "the part to keep in view, such as `top,left` or `entropy`",
    "max-w": "the most pixels in its width",
    "max-h": "the most pixels in its height",
    "min-w": "the fewest pixels in its width",
    "min-h": "the fewest pixels in its height",
    "withoutEnlargement": "`false` enlarges images that are too small",
    PRESET: "a name in `media.transform.presets` or `media.formats`",
}
_LONG_NAMES = {name: ALIASES.get(name, name) for name in PARAMETERS}


def read_transformation(
    parameters: Mapping[str, str], presets: Mapping[str, Transformation]
) -> Transformation | None:
    """Return the requested transformation, or None if no parameter requests one.

    Raises TransformationError if a parameter is invalid.
    """
    asked: dict[str, tuple[str, str]] = {}
    for name in PARAMETERS:
        if name in parameters:
            long_name = _LONG_NAMES[name]
            if long_name in asked:
                raise TransformationError(name, f"left out if {asked[long_name][0]} is set", None)
            asked[long_name] = name, parameters[name]
    if not asked:
        return None
    wanted = Transformation()
    if PRESET in asked:
        wanted = _one_of(PRESET, asked[PRESET][1], presets) if presets else _no_preset()
    if "auto" in asked and "format" in asked["auto"][1]:
        wanted = replace(wanted, format="")  # `auto=format` overrides the format of a preset.
    for long_name, read in _READERS.items():
        if long_name in asked:
            wanted = read(wanted, *asked[long_name])
    return _apply_size_limits(wanted)


def _apply_size_limits(transformation: Transformation) -> Transformation:
    """Limit the width and height to their ranges.

    If a side's length depends on the original image, its range is kept, to be applied later.
    """
    width, height, across, down = (
        transformation.width,
        transformation.height,
        transformation.width_range,
        transformation.height_range,
    )
    if not across and not down:
        return transformation
    if width is None and height is None and transformation.ratio is None:
        # Without a requested size, `max-w` and `max-h` shrink larger images.
        sides = [side[1] if side and side[1] < MAX_SIDE_PIXELS else None for side in (across, down)]
        width, height, fit = *sides, INSIDE
    else:
        fit = transformation.fit
        if width is None and height is not None and transformation.ratio:
            width = max(1, round(height * transformation.ratio))
        elif height is None and width is not None and transformation.ratio:
            height = max(1, round(width / transformation.ratio))
        width, height = _clamp(width, across), _clamp(height, down)
    return replace(
        transformation,
        width=width,
        height=height,
        fit=fit,
        width_range=across if width is None and height is not None else None,
        height_range=down if height is None and width is not None else None,
    )


def _clamp(side: int | None, limits: tuple[int, int] | None) -> int | None:
    return side if side is None or limits is None else max(limits[0], min(side, limits[1]))


def _no_preset() -> Transformation:
    expected = "left out, because media.transform.presets and media.formats are not set"
    raise TransformationError(PRESET, expected, None)


def canonical_key(transformation: Transformation) -> str:
    """Return a cache key.

    Equivalent transformations, such as `width=800&dpr=2` and `width=1600`, have the same key.
    """
    focus = ",".join("" if side is None else str(side) for side in transformation.focus or ())
    sides = f"{transformation.pixel_width or ''}x{transformation.pixel_height or ''}"
    quality = transformation.quality or ""
    ranges = transformation.pixel_width_range, transformation.pixel_height_range
    parts = (transformation.ratio, *ranges, transformation.rectangle, transformation.keeps_detail)
    rest = " ".join(str(part or "") for part in parts)
    enlarges = "+" if transformation.enlarges else ""
    return (
        f"{sides} {transformation.fit} {transformation.format} q{quality} {focus} {enlarges} {rest}".strip()
    )
