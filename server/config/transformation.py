"""Transformations of images: the parameters of URLs such as `/uploads/bay.jpg?width=800` (docs/images.md)."""

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
COVER, CONTAIN, INSIDE, OUTSIDE = "cover", "contain", "inside", "outside"
FITS = (COVER, CONTAIN, INSIDE, OUTSIDE)
MAX_SIDE_PIXELS = 32_767  # so that products stay small; `media.transform.max_edge` is the actual limit
MAX_DPR = 5.0
_WHOLE_NUMBER = re.compile(r"[0-9]{1,6}")
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?|\.[0-9]{1,6}")
# Values of imgix's `fit`, and the fit and enlargement that they stand for. None: as the caller asks.
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
    """An invalid value of a parameter. `str()` returns the sentence `PARAMETER must be … (found …)`."""

    def __init__(self, name: str, expected: str, found: object) -> None:
        self.name, self.expected = name, expected
        super().__init__(f'{name} must be {expected} (found "{found}")')


@dataclass(frozen=True, slots=True)
class Transformation:
    """A requested transformation of an image.

    - `width`, `height`: in CSS pixels, or None if the other side and the image's ratio determine it.
    - `format`: a key of MEDIA_TYPES, AUTO, or "" for the format of the image.
    - `quality`: from 1 to 100, or None for the format's default.
    - `dpr`: the number of pixels for each CSS pixel.
    - `focus`: the point to keep when the image is cropped, as fractions of its width and height, or None for
      the point that the image's description sets.
    - `enlarges`: whether the result may have more pixels than the image.
    """

    width: int | None = None
    height: int | None = None
    fit: str = COVER
    format: str = ""
    quality: int | None = None
    dpr: float = 1.0
    focus: tuple[float, float] | None = None
    enlarges: bool = False

    @property
    def pixel_width(self) -> int | None:
        return None if self.width is None else max(1, round(self.width * self.dpr))

    @property
    def pixel_height(self) -> int | None:
        return None if self.height is None else max(1, round(self.height * self.dpr))


def _whole(name: str, text: str, most: int) -> int:
    number = int(text) if _WHOLE_NUMBER.fullmatch(text) else 0
    if not 1 <= number <= most:
        raise TransformationError(name, f"a whole number from 1 to {most}", text)
    return number


def _decimal(name: str, text: str, least: float, most: float) -> float:
    number = float(text) if _DECIMAL.fullmatch(text) else -1.0
    if not least <= number <= most:
        raise TransformationError(name, f"a number from {least:g} to {most:g}", text)
    return number


def _one_of(name: str, text: str, allowed: Mapping[str, Any]) -> Any:
    if text not in allowed:
        raise TransformationError(name, "one of " + ", ".join(allowed), text)
    return allowed[text]


Change = Callable[[Transformation, str, str], Transformation]  # arguments: so far, parameter, value


def _read_fit(wanted: Transformation, name: str, text: str) -> Transformation:
    fits: dict[str, tuple[str, bool | None]] = {fit: (fit, None) for fit in FITS}
    fit, enlarges = _one_of(name, text, fits | dict(_IMGIX_FITS))
    return replace(wanted, fit=fit, enlarges=wanted.enlarges if enlarges is None else enlarges)


def _read_auto(wanted: Transformation, name: str, text: str) -> Transformation:
    # imgix's `auto`: a list. Results are always compressed, so `compress` has no effect.
    for word in text.split(","):
        _one_of(name, word.strip(), {"format": 1, "compress": 1})
    asks = "format" in text and not wanted.format
    return replace(wanted, format=AUTO) if asks else wanted


def _read_crop(wanted: Transformation, name: str, text: str) -> Transformation:
    for word in text.split(","):
        _one_of(name, word.strip(), {"focalpoint": 1, "center": 1})
    return replace(wanted, focus=(0.5, 0.5)) if text == "center" else wanted


def _read_focus(side: int) -> Change:
    def read(wanted: Transformation, name: str, text: str) -> Transformation:
        point = list(wanted.focus or (0.5, 0.5))
        point[side] = _decimal(name, text, 0.0, 1.0)
        return replace(wanted, focus=(point[0], point[1]))

    return read


def _read_enlargement(wanted: Transformation, name: str, text: str) -> Transformation:
    allowed = {"true": False, "1": False, "false": True, "0": True}
    return replace(wanted, enlarges=_one_of(name, text, allowed))


_READERS: Mapping[str, Change] = {
    "width": lambda wanted, name, text: replace(wanted, width=_whole(name, text, MAX_SIDE_PIXELS)),
    "height": lambda wanted, name, text: replace(wanted, height=_whole(name, text, MAX_SIDE_PIXELS)),
    "withoutEnlargement": _read_enlargement,
    "fit": _read_fit,
    "format": lambda wanted, name, text: replace(wanted, format=_one_of(name, text, _FORMAT_NAMES)),
    "auto": _read_auto,
    "quality": lambda wanted, name, text: replace(wanted, quality=_whole(name, text, 100)),
    "dpr": lambda wanted, name, text: replace(wanted, dpr=_decimal(name, text, 0.1, MAX_DPR)),
    "crop": _read_crop,
    "fp-x": _read_focus(0),
    "fp-y": _read_focus(1),
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
    "withoutEnlargement": "`false` enlarges images that are too small",
    PRESET: "a name in `media.transform.presets` or `media.formats`",
}
_LONG_NAMES = {name: ALIASES.get(name, name) for name in PARAMETERS}


def read_transformation(
    parameters: Mapping[str, str], presets: Mapping[str, Transformation]
) -> Transformation | None:
    """Read the transformation that a URL's parameters request. Return None if they request none.

    A parameter overrides the preset's value. Raises TransformationError.
    """
    asked: dict[str, tuple[str, str]] = {}
    for name in PARAMETERS:
        if name in parameters:
            long_name = _LONG_NAMES[name]
            if long_name in asked:
                raise TransformationError(name, f"left out if {asked[long_name][0]} is set", parameters[name])
            asked[long_name] = name, parameters[name]
    if not asked:
        return None
    wanted = Transformation()
    if PRESET in asked:
        wanted = _one_of(PRESET, asked[PRESET][1], presets) if presets else _no_preset(asked[PRESET][1])
    for long_name, read in _READERS.items():
        if long_name in asked:
            wanted = read(wanted, *asked[long_name])
    return wanted


def _no_preset(found: str) -> Transformation:
    expected = "left out, because media.transform.presets and media.formats are not set"
    raise TransformationError(PRESET, expected, found)


def canonical(wanted: Transformation) -> str:
    """Return a text that is the same for all parameters that request the same transformation."""
    focus = f"{wanted.focus[0]:.4f},{wanted.focus[1]:.4f}" if wanted.focus else ""
    sides = f"{wanted.pixel_width or ''}x{wanted.pixel_height or ''}"
    quality = wanted.quality or ""
    return f"{sides} {wanted.fit} {wanted.format} q{quality} {focus} {'+' if wanted.enlarges else ''}"
