"""Pictures like photographs, for benchmarks: detail at all scales, light, edges and some text."""

import random
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from server.storage.images.kinds import ImageSize

PHOTOGRAPH = ImageSize(2400, 1600)
_SMALLEST_DETAIL_PIXELS, _LARGEST_DETAIL_PIXELS = 2, 512
_QUALITY = 92  # JPEG quality, as in a camera


def make_photographs(folder: Path, amount: int, size: ImageSize = PHOTOGRAPH) -> list[Path]:
    """Write JPEG files into a folder, the same ones each time. Return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(amount):
        path = folder / f"photograph-{number:02d}.jpg"
        _photograph(size, random.Random(number)).save(path, quality=_QUALITY)
        made.append(path)
    return made


def _photograph(size: ImageSize, chance: random.Random) -> Image.Image:
    shape = (size.width, size.height)
    one, other = _clouds(size, chance), _clouds(size, chance)
    # Neighbouring colors of a photograph are similar, so the third channel is a mixture of the other two.
    image = Image.merge("RGB", (one, ImageChops.blend(one, other, 0.5), other))
    light = Image.linear_gradient("L").rotate(chance.randrange(4) * 90).resize(shape)
    image = Image.blend(image, Image.merge("RGB", (light,) * 3), 0.3)
    draw = ImageDraw.Draw(image)
    for _ in range(25):
        color = tuple(chance.randrange(256) for _ in range(3))
        x, y = chance.randrange(size.width), chance.randrange(size.height)
        points = [(x + chance.randrange(-300, 300), y + chance.randrange(-300, 300)) for _ in range(5)]
        draw.polygon(points, fill=color)
        draw.line(points, fill=(20, 20, 20), width=chance.randrange(1, 9))
        draw.text((y, x), "Slack Water 1:37", fill=color, font_size=chance.randrange(16, 90))
    return image.filter(ImageFilter.GaussianBlur(0.8))


def _clouds(size: ImageSize, chance: random.Random) -> Image.Image:
    """Return noise whose detail has the same contrast at each scale, as in photographs of nature."""
    made = Image.new("L", (size.width, size.height), 128)
    detail = _LARGEST_DETAIL_PIXELS
    while detail >= _SMALLEST_DETAIL_PIXELS:
        across, down = -(-size.width // detail), -(-size.height // detail)
        noise = Image.frombytes("L", (across, down), chance.randbytes(across * down))
        noise = noise.resize(made.size, Image.Resampling.BICUBIC)
        made = ImageChops.blend(made, noise, 0.12 + 0.3 * detail / _LARGEST_DETAIL_PIXELS)
        detail //= 2
    return made
