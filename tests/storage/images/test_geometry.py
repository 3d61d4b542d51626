"""Tests of the geometry of transformations: the shown part of an image, and its size."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.config.transformation import FITS, Transformation, canonical_key
from server.storage.images.geometry import lay_out
from server.storage.images.kinds import ImageSize

WIDE = ImageSize(400, 200)
WHOLE = (0.0, 0.0, 400.0, 200.0)
# By parameters: the shown part of a picture of 400 × 200 pixels, its size, and the size of the result.
ARRANGED = [
    (Transformation(), WHOLE, (400, 200), (400, 200)),
    (Transformation(200), WHOLE, (200, 100), (200, 100)),
    (Transformation(height=50), WHOLE, (100, 50), (100, 50)),
    (Transformation(100, dpr=2), WHOLE, (200, 100), (200, 100)),
    (Transformation(800), WHOLE, (400, 200), (400, 200)),
    (Transformation(800, enlarges=True), WHOLE, (800, 400), (800, 400)),
    (Transformation(100, 100), (100.0, 0.0, 300.0, 200.0), (100, 100), (100, 100)),
    (Transformation(100, 100, focus=(0.0, 0.5)), (0.0, 0.0, 200.0, 200.0), (100, 100), (100, 100)),
    (Transformation(100, 100, focus=(1.0, 0.5)), (200.0, 0.0, 400.0, 200.0), (100, 100), (100, 100)),
    (Transformation(800, 800), (100.0, 0.0, 300.0, 200.0), (200, 200), (200, 200)),
    (Transformation(400, 400, enlarges=True), (100.0, 0.0, 300.0, 200.0), (400, 400), (400, 400)),
    (Transformation(100, 100, "inside"), WHOLE, (100, 50), (100, 50)),
    (Transformation(100, 100, "outside"), WHOLE, (200, 100), (200, 100)),
    (Transformation(100, 100, "contain"), WHOLE, (100, 50), (100, 100)),
    (Transformation(800, 800, "contain"), WHOLE, (400, 200), (800, 800)),
    (Transformation(800, 800, "contain", enlarges=True), WHOLE, (800, 400), (800, 800)),
    (Transformation(100, 100, "scale"), WHOLE, (100, 100), (100, 100)),
    (Transformation(800, 800, "scale"), WHOLE, (200, 200), (200, 200)),
    (Transformation(800, 800, "scale", enlarges=True), WHOLE, (800, 800), (800, 800)),
    (Transformation(100, ratio=1.0), (100.0, 0.0, 300.0, 200.0), (100, 100), (100, 100)),
    (Transformation(height=100, ratio=1.0), (100.0, 0.0, 300.0, 200.0), (100, 100), (100, 100)),
    (Transformation(ratio=1.0), (100.0, 0.0, 300.0, 200.0), (200, 200), (200, 200)),
    (Transformation(ratio=4.0), (0.0, 50.0, 400.0, 150.0), (400, 100), (400, 100)),
    (Transformation(100, rectangle=(200, 50, 100, 100)), (200.0, 50.0, 300.0, 150.0), (100, 100), (100, 100)),
    (Transformation(20, rectangle=(300, 0, 999, 999)), (300.0, 0.0, 400.0, 200.0), (20, 40), (20, 40)),
    (
        Transformation(50, 100, rectangle=(200, 0, 200, 200), focus=(1.0, 0.5)),
        (300.0, 0.0, 400.0, 200.0),
        (50, 100),
        (50, 100),
    ),
    (Transformation(height=100, width_range=(1, 100)), (100.0, 0.0, 300.0, 200.0), (100, 100), (100, 100)),
    (Transformation(height=100, width_range=(1, 300)), WHOLE, (200, 100), (200, 100)),
    (Transformation(80, height_range=(80, 90)), (100.0, 0.0, 300.0, 200.0), (80, 80), (80, 80)),
]


@pytest.mark.parametrize(("wanted", "box", "size", "canvas"), ARRANGED)
def test_a_transformation_is_arranged(
    wanted: Transformation, box: tuple[float, ...], size: tuple[int, int], canvas: tuple[int, int]
) -> None:
    found = lay_out(WIDE, wanted)
    assert (found.box, found.size, found.canvas) == (box, ImageSize(*size), ImageSize(*canvas))


sides = st.integers(1, 5000)


images = st.builds(ImageSize, sides, sides)
limits = st.none() | st.tuples(sides, sides).map(sorted).map(tuple)
transformations = st.builds(
    Transformation,
    width=st.none() | sides,
    height=st.none() | sides,
    fit=st.sampled_from(FITS),
    dpr=st.sampled_from([0.5, 1.0, 2.0]),
    focus=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    enlarges=st.booleans(),
    ratio=st.none() | st.floats(0.01, 100),
    width_range=limits,
    height_range=limits,
    rectangle=st.none() | st.tuples(sides, sides, sides, sides),
)


@given(images, transformations)
def test_the_shown_part_is_inside_the_image(image: ImageSize, wanted: Transformation) -> None:
    found = lay_out(image, wanted)
    left, top, right, bottom = found.box
    assert 0 <= left < right <= image.width + 1e-6
    assert 0 <= top < bottom <= image.height + 1e-6
    assert 1 <= found.size.width <= found.canvas.width
    assert 1 <= found.size.height <= found.canvas.height
    if not wanted.enlarges:
        assert found.size.width <= image.width
        assert found.size.height <= image.height
    if wanted.enlarges and wanted.fit == "cover" and wanted.width and wanted.height:
        assert found.canvas == ImageSize(wanted.pixel_width or 0, wanted.pixel_height or 0)


@given(images, transformations, st.booleans(), st.floats(0, 1e-3))
def test_transformations_with_the_same_text_have_the_same_result(
    image: ImageSize, one: Transformation, is_scaled: bool, shift: float
) -> None:
    x, y = one.focus or (None, None)
    other = replace(
        one,
        width=one.pixel_width,
        height=one.pixel_height,
        dpr=1.0,
        width_range=one.pixel_width_range if is_scaled else one.width_range,
        height_range=one.pixel_height_range if is_scaled else one.height_range,
        focus=None if x is None or y is None else (min(1.0, x + shift), y),
    )
    if is_scaled and other.focus == one.focus:
        assert canonical_key(one) == canonical_key(other)
    if canonical_key(one) == canonical_key(other):
        assert lay_out(image, one) == lay_out(image, other)
