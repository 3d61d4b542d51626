"""Tests of placeholders: BlurHashes and main colors of images."""

import blurhash
import pytest
from PIL import Image

from server.storage.images.placeholder import make_placeholder


def decoded(described: dict[str, str]) -> tuple[list[int], list[int]]:
    """Return the first and the last pixel of a decoded placeholder."""
    [row] = blurhash.decode(described["placeholder"], 16, 1)
    return row[0], row[-1]


def test_a_placeholder_shows_where_which_color_is() -> None:
    image = Image.new("RGB", (600, 300), (250, 0, 0))
    image.paste((0, 0, 250), (400, 0, 600, 300))
    described = make_placeholder(image)
    left, right = decoded(described)
    assert left[0] > 200 > left[2]
    assert right[2] > 200 > right[0]
    assert described["color"] == "#fa0000"


def test_the_image_itself_is_not_changed() -> None:
    image = Image.new("RGB", (600, 300), (250, 0, 0))
    make_placeholder(image)
    assert image.size == (600, 300)


COLORS = {"RGBA": (10, 20, 30, 255), "LA": (20, 255), "L": 20, "CMYK": (1, 2, 3, 200), "I;16": 5000, "1": 1}


@pytest.mark.parametrize("mode", COLORS)
@pytest.mark.parametrize("size", [(300, 200), (200, 300), (5000, 1), (1, 1)])
def test_every_kind_of_image_has_one(mode: str, size: tuple[int, int]) -> None:
    described = make_placeholder(Image.new(mode, size, COLORS[mode]))
    assert blurhash.components(described["placeholder"])[size[0] < size[1]] == 4
    assert len(described["color"]) == 7


def test_transparent_parts_are_white() -> None:
    assert make_placeholder(Image.new("RGBA", (300, 200), (0, 0, 0, 0)))["color"] == "#ffffff"
