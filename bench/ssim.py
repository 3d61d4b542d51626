"""Structural similarity of two images (Wang et al. 2004), from 0 to 1, of windows of 8 × 8 pixels."""

from pathlib import Path
from statistics import mean

from PIL import Image, ImageMath

_WINDOW_PIXELS = 8
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2  # the constants of the original paper


def similarity(one: Path, other: Path) -> float:
    """Return the mean structural similarity of the brightness of two images with the same dimensions."""
    a, b = (Image.open(path).convert("L").convert("F") for path in (one, other))
    assert a.size == b.size, (one, a.size, other, b.size)
    square_a, square_b, product = (_multiply(*pair) for pair in ((a, a), (b, b), (a, b)))
    means = [image.reduce(_WINDOW_PIXELS) for image in (a, b, square_a, square_b, product)]
    names = dict(zip(("a", "b", "aa", "bb", "ab"), means, strict=True))
    # ImageStat would count the values in 256 steps.
    return mean(memoryview(ImageMath.lambda_eval(_formula, **names).tobytes()).cast("f"))


def _multiply(a: Image.Image, b: Image.Image) -> Image.Image:
    made: Image.Image = ImageMath.lambda_eval(lambda of: of["a"] * of["b"], a=a, b=b)
    return made


def _formula(of):  # type: ignore[no-untyped-def]
    a, b = of["a"], of["b"]
    light, contrast = a * b, of["ab"] - a * b
    spread = of["aa"] - a * a + of["bb"] - b * b
    return (light * 2 + _C1) * (contrast * 2 + _C2) / ((a * a + b * b + _C1) * (spread + _C2))
