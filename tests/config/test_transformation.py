"""Tests of the parameters of transformations, and of the settings in `media.transform`."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.config.reader import survey_settings
from server.config.transformation import (
    PARAMETERS,
    Transformation,
    TransformationError,
    canonical_key,
    read_transformation,
)
from tests.sites import write

READ = {
    "width=800": Transformation(width=800),
    "w=800&h=600": Transformation(800, 600),
    "width=800&fit=inside": Transformation(800, fit="inside"),
    "w=800&h=600&fit=crop": Transformation(800, 600),
    "w=800&h=600&fit=max": Transformation(800, 600, "inside"),
    "w=800&fit=min": Transformation(800),
    "w=800&fit=fill": Transformation(800, fit="contain"),
    "w=800&withoutEnlargement=false": Transformation(800, enlarges=True),
    "w=800&withoutEnlargement=true": Transformation(800),
    "w=800&withoutEnlargement=false&fit=max": Transformation(800, fit="inside", enlarges=True),
    "format=jpeg&quality=50": Transformation(format="jpg", quality=50),
    "fm=avif&q=1": Transformation(format="avif", quality=1),
    "auto=format": Transformation(format="auto"),
    "auto=format,compress&fm=png": Transformation(format="png"),
    "auto=compress": Transformation(),
    "w=400&dpr=2": Transformation(400, dpr=2.0),
    "fp-x=0.25": Transformation(focus=(0.25, None)),
    "fp-x=.25&fp-y=1": Transformation(focus=(0.25, 1.0)),
    "crop=focalpoint&fp-y=0": Transformation(focus=(None, 0.0)),
    "fp-x=.12345678901": Transformation(focus=(0.12345678901, None)),
    "fp-x=.3&crop=entropy": Transformation(keeps_detail=True),
    "fp-x=.3&crop=focalpoint,entropy": Transformation(focus=(0.3, None)),
    "crop=top": Transformation(focus=(0.5, 0.0)),
    "crop=bottom,right": Transformation(focus=(1.0, 1.0)),
    "crop=center": Transformation(focus=(0.5, 0.5)),
    "crop=faces": Transformation(),
    "crop=faces,edges": Transformation(keeps_detail=True),
    "w=800&h=300&fit=scale": Transformation(800, 300, "scale"),
    "w=800&ar=16:9": Transformation(800, ratio=16 / 9),
    "ar=1.5:1": Transformation(ratio=1.5),
    "rect=10,0,400,300&w=200": Transformation(200, rectangle=(10, 0, 400, 300)),
    "max-w=800": Transformation(800, fit="inside"),
    "max-h=600&max-w=800&min-w=100": Transformation(800, 600, "inside"),
    "w=900&max-w=800": Transformation(800),
    "w=50&h=900&min-w=100&max-h=800&max-w=800": Transformation(100, 800),
    "h=300&min-w=100&max-w=400": Transformation(height=300, width_range=(100, 400)),
    "w=300&max-h=400": Transformation(300, height_range=(1, 400)),
    "w=1600&ar=2:1&max-h=400": Transformation(1600, 400, ratio=2.0),
    "v=123": None,
    "": None,
}


def parsed(query: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in query.split("&") if pair)


@pytest.mark.parametrize("query", READ)
def test_parameters_are_read(query: str) -> None:
    assert read_transformation(parsed(query), {}) == READ[query]


REFUSED = {
    "width=0": 'width must be a whole number from 1 to 32767 (found "0")',
    "w=1e3": 'w must be a whole number from 1 to 32767 (found "1e3")',
    "w=\u0661": 'w must be a whole number from 1 to 32767 (found "\u0661")',
    "h=": 'h must be a whole number from 1 to 32767 (found "")',
    "q=101": 'q must be a whole number from 1 to 100 (found "101")',
    "fm=gif": 'fm must be one of auto, avif, webp, jpg, png, jpeg, pjpg (found "gif")',
    "dpr=nan": 'dpr must be a number from 0.1 to 5 (found "nan")',
    "dpr=6": 'dpr must be a number from 0.1 to 5 (found "6")',
    "fp-x=1.1": 'fp-x must be a number from 0 to 1 (found "1.1")',
    "fit=stretch": "fit must be one of cover, contain, inside, outside, scale, crop, min, clip, max, fill,"
    ' fillmax (found "stretch")',
    "auto=enhance": 'auto must be one of format, compress (found "enhance")',
    "crop=face": "crop must be one of focalpoint, center, top, bottom, left, right, entropy, edges, faces"
    ' (found "face")',
    "ar=16/9": 'ar must be a ratio such as 16:9 (found "16/9")',
    "ar=0:9": 'ar must be a ratio such as 16:9 (found "0:9")',
    "ar=9999:1": 'ar must be a ratio such as 16:9 (found "9999:1")',
    "rect=0,0,0,9": 'rect must be left,top,width,height in pixels, such as 0,0,400,300 (found "0,0,0,9")',
    "max-w=0": 'max-w must be a whole number from 1 to 32767 (found "0")',
    "withoutEnlargement=maybe": 'withoutEnlargement must be one of true, 1, false, 0 (found "maybe")',
    "w=1&width=2": "w must be left out if width is set",
    "key=hero": ("key must be left out, because media.transform.presets and media.formats are not set"),
}


@pytest.mark.parametrize("query", REFUSED)
def test_an_invalid_value_is_refused_with_the_allowed_ones(query: str) -> None:
    with pytest.raises(TransformationError) as caught:
        read_transformation(parsed(query), {})
    assert str(caught.value) == REFUSED[query]


def test_a_preset_is_overridden_by_parameters() -> None:
    presets = {"hero": Transformation(1600, 600, quality=70)}
    assert read_transformation({"key": "hero"}, presets) == presets["hero"]
    assert read_transformation({"key": "hero", "w": "800"}, presets) == Transformation(800, 600, quality=70)
    webp = {"hero": Transformation(1600, format="webp")}
    assert read_transformation({"key": "hero", "auto": "format"}, webp) == Transformation(1600, format="auto")
    with pytest.raises(TransformationError, match="key must be one of hero"):
        read_transformation({"key": "her"}, presets)


@given(st.dictionaries(st.sampled_from(PARAMETERS), st.text(max_size=8)))
def test_any_text_is_read_or_refused(parameters: dict[str, str]) -> None:
    try:
        wanted = read_transformation(parameters, {"a": Transformation(1)})
    except TransformationError:
        return
    assert (wanted is None) == (not parameters)
    if wanted:
        assert (wanted.pixel_width or 1) >= 1
        assert (wanted.pixel_height or 1) >= 1


def test_equal_requests_have_the_same_canonical_text() -> None:
    same = ("w=800&dpr=2&fm=jpg", "width=1600&format=jpeg", "fm=pjpg&w=1600&dpr=1&withoutEnlargement=1")
    texts = {canonical_key(wanted) for query in same if (wanted := read_transformation(parsed(query), {}))}
    assert len(texts) == 1
    limited = ("h=100&dpr=2&min-w=10&max-w=300", "h=200&min-w=20&max-w=600")
    texts = {canonical_key(wanted) for query in limited if (wanted := read_transformation(parsed(query), {}))}
    assert len(texts) == 1
    others = ("w=801", "h=800", "w=800&fit=inside", "w=800&q=1", "w=800&fp-x=0", "w=800&withoutEnlargement=0")
    others += ("w=800&ar=2:1", "w=800&rect=0,0,9,9", "w=800&crop=entropy", "w=800&max-h=9", "w=800&min-h=9")
    others += ("h=100&dpr=2&max-w=300", "h=200&max-w=300")
    texts = {canonical_key(wanted) for query in others if (wanted := read_transformation(parsed(query), {}))}
    assert len(texts) == len(others)


SETTINGS = """media:
  transform:
    widths: [640, 320]
    qualities: any
    formats: [webp, jpg]
    presets:
      hero: {width: 1600, height: 600, fit: cover}
      card: {w: 480, fm: webp, withoutEnlargement: false}
    max_pixels: 1000000
    cache: 5 MB
"""


def test_the_settings_are_read(tmp_path: Path) -> None:
    write(tmp_path, {"site.yaml": SETTINGS})
    settings, wrong = survey_settings(tmp_path)
    assert wrong == []
    read = settings.media.transform
    assert (read.widths, read.qualities, read.formats) == ((320, 640), (), ("webp", "jpg"))
    assert read.presets == {
        "hero": Transformation(1600, 600),
        "card": Transformation(480, format="webp", enlarges=True),
    }
    assert (read.max_pixels, read.cache, read.enabled) == (1_000_000, 5_000_000, True)


WRONG = {
    "widths: [640, x]": 'media.transform.widths must be "any" or a list of whole numbers above 0',
    "widths: []": 'media.transform.widths must be "any" or a list of whole numbers above 0',
    "widths: [320, 5000]": "media.transform.widths must contain only numbers up to 3840",
    "qualities: [101]": "media.transform.qualities must contain only numbers up to 100",
    "formats: []": "media.transform.formats must contain at least one format",
    "formats: [webp, gif]": 'unknown image format "gif" in media.transform.formats',
    "presets: {a: {widht: 3}}": 'unknown key "media.transform.presets.a.widht"',
    "presets: {a: {width: 0}}": "media.transform.presets.a.width must be a whole number from 1 to 32767",
    "presets: {a: {}}": "media.transform.presets.a must contain at least one parameter",
    "presets: {a: {key: b}}": 'unknown key "media.transform.presets.a.key"',
}


@pytest.mark.parametrize("line", WRONG)
def test_an_invalid_setting_is_refused_where_it_stands(tmp_path: Path, line: str) -> None:
    write(tmp_path, {"site.yaml": f"media:\n  transform:\n    {line}\n"})
    [error] = survey_settings(tmp_path)[1]
    assert str(error).startswith("site.yaml:3:")
    assert WRONG[line] in str(error)
