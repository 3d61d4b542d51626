"""Size of SVG files."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import IO
from xml.parsers import expat

MAX_HEAD_BYTES = 64 * 1024  # The `svg` tag must end within this many bytes.
MAX_SIDE_PIXELS = 32_767
_MAX_ENTITY_CHARS = 200  # Long or nested entities could exhaust the memory.
_LENGTH = re.compile(r"(\d*\.?\d+|\d+\.)(px|pt|pc|in|cm|mm|em|ex)?")
# As in Strapi: 72 pixels per inch and a font size of 12 pixels.
_PIXELS_PER_UNIT = {
    "px": 1.0,
    "pt": 1.0,
    "pc": 12.0,
    "in": 72.0,
    "cm": 72 / 2.54,
    "mm": 72 / 25.4,
    "em": 12.0,
    "ex": 6.0,
}


class _EndError(Exception):
    """Raised to stop the XML parser early."""


def svg_size(file: IO[bytes]) -> tuple[int, int] | None:
    """Return an SVG's size in pixels, or None if the file does not define a valid one."""
    root = _root(file.read(MAX_HEAD_BYTES))
    width, height = (_length(root.get(name, "")) for name in ("width", "height"))
    box = _view_box(root.get("viewBox", ""))
    if box and not (width and height):
        ratio = box[0] / box[1]
        width, height = (width, width / ratio) if width else (height * ratio, height) if height else box
    sides = [math.floor(side + 0.5) for side in (width, height) if side]
    if len(sides) != 2 or not all(0 < side <= MAX_SIDE_PIXELS for side in sides):
        return None
    return sides[0], sides[1]


def _root(head: bytes) -> Mapping[str, str]:
    root_attributes: dict[str, str] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "svg":
            root_attributes.update(attributes)
        raise _EndError

    def entity(name: str, parameter: bool, value: str | None, *_: object) -> None:
        if value is None or len(value) > _MAX_ENTITY_CHARS or "&" in value or "%" in value:
            raise _EndError

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EntityDeclHandler = entity
    with suppress(_EndError, expat.ExpatError, ValueError):  # ValueError: unsupported encoding
        parser.Parse(head, False)
    return root_attributes


def _length(text: str) -> float | None:
    match = _LENGTH.fullmatch(text)
    return float(match[1]) * _PIXELS_PER_UNIT[match[2] or "px"] if match else None


def _view_box(text: str) -> tuple[float, float] | None:
    try:
        sides = [float(part) for part in re.split(r"[\s,]+", text.strip())]
    except ValueError:
        return None
    if len(sides) != 4 or not all(math.isfinite(side) and side > 0 for side in sides[2:]):
        return None
    return sides[2], sides[3]
