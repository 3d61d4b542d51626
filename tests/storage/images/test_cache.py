"""The formats that are kept of a picture are of the bytes that it has."""

import io
from pathlib import Path

import pytest

from server.storage.images.cache import ImageCache, read_picture
from server.storage.images.formats import kept_formats
from tests.api.test_upload import picture
from tests.sites import write


def key_of(data: bytes) -> str:
    return read_picture(io.BytesIO(data), ".png").key


@pytest.mark.parametrize("later", [picture(900, 700), picture()[:200]], ids=["other", "damaged"])
def test_a_picture_that_is_replaced_before_it_is_scaled_gets_no_formats_of_another(
    later: bytes, tmp_path: Path
) -> None:
    write(tmp_path, {"content/uploads/a.png": later})
    cache, key = ImageCache(tmp_path), key_of(picture())
    path = tmp_path / "content/uploads/a.png"
    assert not cache.make_from(key, ".png", lambda: path.open("rb"))
    assert kept_formats(cache.folder, key, "a.png") is None
    assert cache.make("a.png") == (later == picture(900, 700))
    assert cache.may_make(key)
