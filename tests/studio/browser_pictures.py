"""The pictures that the studio shows, in a browser: which size is requested, and what is shown instead."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from PIL import Image

from tests.servers import stop
from tests.sites import Files, collection, documents, write
from tests.studio.browser_form import open_form
from tests.studio.conftest import Page, Studio, answer_to, signed_in_at
from tests.waiting import until

THUMBNAIL = "/uploads/thumbnail_bay.jpg"
SHOWN = "image => image.complete && image.naturalWidth > 0"


def photograph() -> bytes:
    noise = [Image.effect_noise((1200, 800), spread) for spread in (60, 50, 40)]
    out = io.BytesIO()
    Image.merge("RGB", noise).save(out, "JPEG")
    return out.getvalue()


BLOCKS = [
    {"type": "paragraph", "children": [{"type": "text", "text": "Fog"}]},
    {
        "type": "image",
        "image": {"name": "bay.jpg", "url": "/uploads/bay.jpg", "width": 600, "height": 400},
        "children": [{"type": "text", "text": ""}],
    },
]
FILES: Files = {
    **collection("note", {"cover": {"type": "media"}, "body": {"type": "blocks"}}),
    **documents("notes", one={"cover": "bay.jpg"}),
    "content/notes/two.yaml": json.dumps({"body": BLOCKS}),
    "content/uploads/bay.jpg": photograph(),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    studio = Studio(tmp_path_factory.mktemp("pictures"), files=FILES)
    studio.start()
    yield studio
    stop(studio.process)


def requested(picture: Any) -> tuple[str, dict[str, str]]:
    """Return the path and parameters of the file that a picture shows, without its version."""
    until(lambda: picture.evaluate(SHOWN))
    url = urlsplit(picture.evaluate("image => image.currentSrc"))
    return url.path, {name: values[0] for name, values in parse_qs(url.query).items() if name != "v"}


@pytest.mark.parametrize("density", [1, 2])
def test_a_picture_is_requested_in_the_size_in_which_it_is_shown(
    site: Studio, entered: Any, new_page: Callable[..., Page], density: int
) -> None:
    page = new_page(storage_state=entered, device_scale_factor=density)
    open_form(page, site, "note/one")
    small = {"width": "90", "height": "90", "fit": "cover", "dpr": str(density), "format": "auto"}
    card = page.locator(".media-card .media-picture")
    assert requested(card) == ("/uploads/bay.jpg", small)
    assert card.evaluate("image => [image.naturalWidth, image.clientWidth]") == [90, 90]
    page.get_by_role("button", name="Choose").click()
    assert requested(page.locator(".library .media-picture").first) == ("/uploads/bay.jpg", small)
    page.get_by_role("button", name="Details of").click()
    path, parameters = requested(page.locator(".focal img"))
    assert (path, parameters["width"], parameters["dpr"]) == ("/uploads/bay.jpg", "440", str(density))
    assert page.locator(".focal img").evaluate("image => image.naturalWidth") == 440
    assert requested(page.locator(".crop img").first) == (path, parameters)
    open_form(page, site, "note/two")
    path, parameters = requested(page.locator(".blocks-image img"))
    # According to the block, the picture has 600 pixels for a place of 420.
    expected = "1.42" if density == 2 else "1"
    assert (path, parameters["width"], parameters["dpr"]) == ("/uploads/bay.jpg", "420", expected)


def test_a_smaller_version_is_shown_if_a_picture_is_not_transformed(
    site: Studio, entered: Any, new_page: Callable[..., Page]
) -> None:
    page = new_page(storage_state=entered)
    until(lambda: THUMBNAIL in answer_to(page, site, "upload/files"))
    page.route("**/*width=90*", lambda route: route.fulfill(status=429))
    open_form(page, site, "note/one")
    assert requested(page.locator(".media-card .media-picture")) == (THUMBNAIL, {})


def test_the_thumbnail_is_requested_if_urls_must_be_signed(
    browser: Any, tmp_path_factory: pytest.TempPathFactory, new_page: Callable[..., Page]
) -> None:
    studio = Studio(tmp_path_factory.mktemp("signed"), files=FILES)
    write(studio.root, {"site.yaml": "media: {transform: {sign: true}}\n"})
    studio.start()
    try:
        page = new_page(storage_state=signed_in_at(studio, browser))
        until(lambda: THUMBNAIL in answer_to(page, studio, "upload/files"))
        open_form(page, studio, "note/one")
        picture = page.locator(".media-card .media-picture")
        assert requested(picture) == (THUMBNAIL, {})
        assert picture.get_attribute("srcset") is None
    finally:
        stop(studio.process)
