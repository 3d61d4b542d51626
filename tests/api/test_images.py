"""Tests of transformed images over HTTP: `/uploads/…?width=…`."""

import hashlib
import io
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from PIL import Image, ImageFilter

from server.config.transformation import PARAMETERS
from server.errors import BusyError
from server.history.past import PastStates
from server.service.images.by_url import ClientRequest, Images
from server.service.images.signatures import SIGNATURE, sign_url
from server.service.media.files import MediaFiles
from server.service.media.versions import VERSION_PARAMETER
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.images.cache import size_of_image
from server.storage.images.kinds import ImageSize
from tests.api.test_upload import FILES, fetch, picture
from tests.git import commit_all, git
from tests.sites import Answer, Api, make, write
from tests.waiting import until

SETTINGS = """media:
  transform:
    presets: {hero: {width: 60, height: 20, format: webp}, best: {width: 50, format: auto}}
    max_edge: 950
    max_pixels: 600000
    per_minute: 1000
"""
BROWSER = {"Accept": "image/avif,image/webp,image/*,*/*;q=0.8"}


def halves() -> bytes:
    """Return a picture whose left half is red and whose right half is green."""
    image = Image.new("RGB", (400, 200), (255, 0, 0))
    image.paste((0, 255, 0), (200, 0, 400, 200))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def grainy(sharpness: float) -> bytes:
    """Return a photograph with noise."""
    noise = [Image.effect_noise((300, 200), spread) for spread in (200, 150, 100)]
    blurred = [band.filter(ImageFilter.GaussianBlur(2 - 2 * sharpness)) for band in noise]
    out = io.BytesIO()
    Image.merge("RGB", blurred).save(out, "JPEG", quality=90)
    return out.getvalue()


UPLOADS = {
    "content/uploads/smooth.jpg": grainy(0),
    "content/uploads/grainy.jpg": grainy(1),
    "content/uploads/a.png": picture(300, 200),
    "content/uploads/b/c d.png": halves(),
    "content/uploads/b/c d.png.yaml": "focalPoint: {x: 100, y: 50}\n",
    "content/uploads/large.png": picture(900, 700),
    "content/uploads/draw.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    "content/uploads/text.txt": "text",
    "content/uploads/broken.png": picture(300, 200)[:200],
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    made = make(tmp_path_factory.mktemp("images"), {**FILES, **UPLOADS, "site.yaml": SETTINGS})
    yield made
    made.accounts.close()


def shown(answer: Answer) -> tuple[tuple[int, int], str]:
    assert answer.status == 200, answer.text
    image = Image.open(io.BytesIO(answer.raw))
    return image.size, str(image.format)


SHOWN = {
    "a.png?width=100": ((100, 67), "PNG"),
    "a.png?w=100&h=100&fm=jpg": ((100, 100), "JPEG"),
    "a.png?w=50&dpr=2&fit=inside&h=10": ((30, 20), "PNG"),
    "a.png?width=900": ((300, 200), "PNG"),
    "a.png?width=450&withoutEnlargement=false": ((450, 300), "PNG"),
    "a.png?key=hero": ((60, 20), "WEBP"),
    "a.png?key=hero&w=30&fm=png": ((30, 20), "PNG"),
    "a.png?quality=30&format=avif": ((300, 200), "AVIF"),
    "b/c%20d.png?h=20": ((40, 20), "PNG"),
    "a.png?w=160&ar=16:9&fit=crop&crop=entropy&auto=compress,format": ((160, 90), "PNG"),
    "a.png?w=40&h=90&fit=scale": ((40, 90), "PNG"),
    "a.png?rect=10,20,100,50&w=50&fm=webp": ((50, 25), "WEBP"),
    "a.png?h=100&max-w=100&min-w=50&fit=crop": ((100, 100), "PNG"),
    "a.png?max-w=150": ((150, 100), "PNG"),
}


@pytest.mark.parametrize("path", SHOWN)
def test_an_image_is_transformed(api: Api, path: str) -> None:
    assert shown(fetch(api, f"/uploads/{path}")) == SHOWN[path]


def test_the_focal_point_of_the_description_is_kept(api: Api) -> None:
    def color(query: str) -> Any:
        answer = fetch(api, f"/uploads/b/c%20d.png?w=20&h=20&{query}")
        return Image.open(io.BytesIO(answer.raw)).convert("RGB").getpixel((10, 10))

    assert color("") == (0, 255, 0)
    assert color("fp-x=0") == (255, 0, 0)


def test_auto_answers_webp_at_once_and_avif_later(api: Api) -> None:
    path = "/uploads/smooth.jpg?width=110&auto=format"
    first = fetch(api, path, **BROWSER)
    assert shown(first) == ((110, 73), "WEBP")
    assert "Accept" in first.headers["Vary"]
    until(lambda: shown(fetch(api, path, **BROWSER)) == ((110, 73), "AVIF"))
    for accept in ("*/*", "image/webp;q=0,*/*"):
        assert shown(fetch(api, path, Accept=accept)) == ((110, 73), "JPEG")
    assert shown(fetch(api, path, Accept="image/webp")) == ((110, 73), "WEBP")
    assert "Accept" not in fetch(api, "/uploads/a.png?width=110").headers.get("Vary", "")


def test_auto_answers_the_source_format_if_it_is_smaller(api: Api) -> None:
    path, browser = "/uploads/grainy.jpg?width=280", {"Accept": "image/webp,*/*"}
    auto, webp, jpeg = (fetch(api, f"{path}&fm={name}", **browser) for name in ("auto", "webp", "jpg"))
    assert shown(auto) == ((280, 187), "JPEG")
    assert shown(webp) == ((280, 187), "WEBP")
    assert auto.raw == jpeg.raw
    assert len(jpeg.raw) < len(webp.raw)
    assert "Accept" in auto.headers["Vary"]
    assert auto.headers["Content-Type"] == "image/jpeg"
    assert shown(fetch(api, f"{path}&fm=auto", **browser)) == ((280, 187), "JPEG")


def test_a_preset_with_the_best_format_varies_by_accept(api: Api) -> None:
    answer = fetch(api, "/uploads/a.png?key=best", **BROWSER)
    assert shown(answer)[1] == "WEBP"
    assert "Accept" in answer.headers["Vary"]


def test_one_coordinate_of_the_focal_point_can_be_set(api: Api) -> None:
    # The other one comes from the description.
    answer = fetch(api, "/uploads/b/c%20d.png?w=20&h=20&fp-y=0")
    assert Image.open(io.BytesIO(answer.raw)).convert("RGB").getpixel((10, 10)) == (0, 255, 0)


@pytest.mark.parametrize("point", ["{x: 1" + "0" * 400 + ", y: 3}", "{x: nan, y: nan}", "{x: [], y: 1}", "5"])
def test_an_odd_focal_point_is_ignored(tmp_path_factory: pytest.TempPathFactory, point: str) -> None:
    odd = {"content/uploads/a.png.yaml": f"focalPoint: {point}\n"}
    made = make(tmp_path_factory.mktemp("odd"), {**FILES, **UPLOADS, **odd})
    assert shown(fetch(made, "/uploads/a.png?w=20&h=20")) == ((20, 20), "PNG")
    made.accounts.close()


REFUSED = {
    "a.png?width=0": 'width must be a whole number from 1 to 950 (found "0")',
    "a.png?width=951": "width must be at most 950, the value of media.transform.max_edge (found 951)",
    "a.png?w=500&dpr=2": "width times dpr 2 must be at most 950, the value of media.transform.max_edge",
    "a.png?w=1&w=2": '"w" must have exactly one value',
    "a.png?fm=gif": "fm must be one of auto, avif, webp, jpg, png",
    "a.png?key=her": 'key must be one of hero, best (found "her")',
    "a.png?rect=300,0,5,5": "rect begins at 300,0, but the image has 300 × 200 pixels",
    "a.png?h=200&min-w=960&withoutEnlargement=false": "each side can have at most 950 (media.transform",
    "draw.svg?w=5": "BMP images can. Request it without parameters",
    "text.txt?w=5": '"text.txt" can\'t be transformed; only JPEG, PNG, WebP, AVIF, GIF, TIFF and',
    "broken.png?w=5": "The image is damaged, or is not an image in a supported format",
    "large.png?w=5": "it has more than 600,000 pixels (media.transform.max_pixels)",
}


@pytest.mark.parametrize("path", REFUSED)
def test_what_cannot_be_made_is_refused_by_name(api: Api, path: str) -> None:
    answer = fetch(api, f"/uploads/{path}")
    assert answer.status == 400
    assert answer.error["name"] == "ValidationError"
    assert REFUSED[path] in answer.error["message"]


def test_the_documentation_lists_each_parameter() -> None:
    page = (Path(__file__).parents[2] / "docs/images.md").read_text()
    names = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("|"))
    assert [
        name for name in (*PARAMETERS, VERSION_PARAMETER, SIGNATURE, "at") if f"`{name}`" not in names
    ] == []


def test_a_missing_image_is_not_found(api: Api) -> None:
    assert fetch(api, "/uploads/none.png?w=5").status == 404


@pytest.mark.parametrize("query", ["", "?v=1", "?updated_at=2026"])
def test_other_parameters_return_the_file_itself(api: Api, query: str) -> None:
    assert fetch(api, f"/uploads/a.png{query}").raw == UPLOADS["content/uploads/a.png"]


def test_an_image_is_cached_as_a_file_is(api: Api) -> None:
    path = "/uploads/a.png?width=120"
    first = fetch(api, path)
    tag = first.headers["ETag"]
    assert fetch(api, path, **{"If-None-Match": tag}).status == 304
    part = fetch(api, path, Range="bytes=0-7")
    assert (part.status, part.raw) == (206, first.raw[:8])
    # Other units are unknown, several ranges would need another media type, and no file has this many bytes.
    for wanted in ("items=0-1", "bytes=0-1,5-9", f"bytes=-{len(first.raw) + 1}"):
        whole = fetch(api, path, Range=wanted)
        assert (whole.status, whole.raw, whole.headers["Accept-Ranges"]) == (200, first.raw, "bytes")
    head = api.ask("HEAD", path, "public")
    assert (head.status, head.headers["Content-Length"]) == (200, str(len(first.raw)))
    assert first.headers["Content-Type"] == "image/png"
    assert re.search(r"max-age=\d+", first.headers["Cache-Control"])
    assert "script-src 'none'" in first.headers["Content-Security-Policy"]


def test_a_changed_image_is_transformed_anew(api: Api) -> None:
    path = "/uploads/a.png?width=90"
    before = fetch(api, path)
    file = api.root / "content/uploads/a.png"
    kept = file.read_bytes()
    try:
        file.write_bytes(picture(300, 100))
        api.site.refresh()
        assert shown(fetch(api, path)) == ((90, 30), "PNG")
    finally:
        file.write_bytes(kept)
        api.site.refresh()
    assert fetch(api, path).raw == before.raw


def small(api: Api, **settings: str) -> None:
    lines = "".join(f"    {key}: {value}\n" for key, value in settings.items())
    (api.root / "site.yaml").write_text(f"media:\n  transform:\n{lines}")
    api.site.refresh()


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    made = make(tmp_path_factory.mktemp("other"), {**FILES, **UPLOADS})
    yield made
    made.accounts.close()


def test_a_width_that_is_not_listed_is_redirected_to_the_next(other: Api) -> None:
    small(other, widths="[160, 80]", qualities="[50]", formats="[webp]")
    answer = fetch(other, "/uploads/b/c%20d.png?w=100&fm=webp")
    assert answer.status == 302
    assert answer.headers["Location"] == "/uploads/b/c%20d.png?w=160&fm=webp"
    assert shown(fetch(other, answer.headers["Location"])) == ((160, 80), "WEBP")
    assert fetch(other, "/uploads/a.png?max-w=100").headers["Location"] == "/uploads/a.png?max-w=160"
    for width in (900, 9999):  # max_edge is 3840
        answer = fetch(other, f"/uploads/a.png?width={width}")
        assert (answer.status, answer.headers["Location"]) == (302, "/uploads/a.png?width=160")
    assert "height must be at most 3840" in fetch(other, "/uploads/a.png?h=9999").error["message"]
    small(other, widths="[160, 80]", presets="{p: {width: 100}}")
    preset = fetch(other, "/uploads/a.png?key=p&fm=webp").headers["Location"]
    assert preset == "/uploads/a.png?key=p&fm=webp&width=160"
    assert shown(fetch(other, preset)) == ((160, 107), "WEBP")
    small(other, widths="[160, 80]", sign="true")
    refused = fetch(other, "/uploads/a.png?width=100")
    assert refused.status == 403
    assert "sign it with `bifolio media sign`, or use only the name of a preset" in refused.error["message"]
    signed = sign_url(other.root, "/uploads/a.png?width=100")
    assert shown(fetch(other, fetch(other, signed).headers["Location"])) == ((160, 107), "PNG")
    small(other, widths="[160, 80]", qualities="[50]", formats="[webp]")
    assert "quality must be one of 50" in fetch(other, "/uploads/a.png?q=60&fm=webp").error["message"]
    assert "format must be one of auto, webp" in fetch(other, "/uploads/a.png?fm=avif").error["message"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("h=40&ar=3:1&max-w=1000", "h=40&ar=3%3A1&width=160"),
        ("min-w=700&w=100", "width=160"),
        ("w=100&min-w=120", "w=160&min-w=120"),
    ],
)
def test_a_redirect_leads_to_a_listed_width_whatever_the_limits(
    other: Api, query: str, expected: str
) -> None:
    small(other, widths="[160, 80]")
    answer = fetch(other, f"/uploads/b/c%20d.png?{query}")
    assert answer.headers["Location"] == f"/uploads/b/c%20d.png?{expected}"
    assert fetch(other, answer.headers["Location"]).status == 200


def test_a_preset_whose_limits_allow_no_listed_width_is_not_redirected(other: Api) -> None:
    small(other, widths="[160, 80]", presets="{low: {height: 100, max-w: 50}}")
    answer = fetch(other, "/uploads/a.png?key=low&w=160")
    assert answer.status == 400
    assert answer.error["message"] == (
        'preset "low": min-w or max-w gives a width that media.transform.widths does not allow (80, 160)'
    )


def test_an_animation_moves_again_after_the_limit_is_raised(other: Api) -> None:
    frames = [Image.new("RGB", (40, 30), (80 * number, 0, 0)) for number in range(3)]
    frames[0].save(other.root / "content/uploads/moves.gif", save_all=True, append_images=frames[1:])

    def number_of_frames() -> int:
        image = Image.open(io.BytesIO(fetch(other, "/uploads/moves.gif?width=20").raw))
        return int(getattr(image, "n_frames", 1))

    small(other, max_pixels="3000")
    assert number_of_frames() == 1
    small(other, max_pixels="4000")
    assert number_of_frames() == 3


def test_a_file_that_is_replaced_while_it_is_opened_is_not_cached_as_the_earlier_one(
    other: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all(other.root)
    other.site.refresh()
    file, is_due, real = other.root / "content/uploads/a.png", [False], os.open
    site = other.site
    files = MediaFiles(site, PastStates(site), SiteBucket(site.root, site.image_cache.folder))
    commit = git(other.root, "rev-parse", "HEAD").strip()

    def replacing(path: Any, *arguments: Any, **options: Any) -> int:
        if is_due[0] and str(path) == str(file.resolve()):
            is_due[0] = False
            file.write_bytes(picture(30, 30))
        return real(path, *arguments, **options)

    def admit() -> None:
        is_due[0] = True

    monkeypatch.setattr(os, "open", replacing)
    images = Images(files, 1, 10.0)
    with pytest.raises(BusyError, match="was replaced"):
        images.find(site.state.snapshot, commit, "a.png", {"width": "20"}, ClientRequest((), admit))
    assert not is_due[0]
    assert [*other.root.glob(".bifolio/images/??/*")] == []


def test_a_client_can_only_request_so_many_new_images_per_minute(other: Api) -> None:
    small(other, per_minute="2")
    statuses = [fetch(other, f"/uploads/a.png?width={width}").status for width in (10, 11, 12, 10, 11)]
    assert statuses == [200, 200, 429, 200, 200]
    refused = fetch(other, "/uploads/a.png?width=13")
    assert int(refused.headers["Retry-After"]) > 0
    assert "media.transform.per_minute" in refused.error["message"]


def test_transformations_can_be_turned_off(other: Api) -> None:
    small(other, enabled="false")
    assert fetch(other, "/uploads/a.png?width=10").raw == UPLOADS["content/uploads/a.png"]


IMMUTABLE = "public, max-age=31536000, immutable"


def version(path: str) -> str:
    data = UPLOADS[f"content/uploads/{path}"]
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


CURRENT = {
    "a.png": "",
    "text.txt": "",
    "a.png?width=100": "",
    "a.png?w=50&h=50&fit=inside": "",
    "a.png?w=50&h=50&fp-x=0.5&fp-y=0.5": "",
    "a.png?w=50&h=50&crop=entropy": "",
    "a.png?w=53&format=auto": "",
    # The description can set another focal point, and site.yaml another preset.
    "a.png?w=50&h=50": "max-age=3600",
    "a.png?w=50&ar=1:1": "max-age=3600",
    "a.png?w=50&h=50&fp-x=0.5": "max-age=3600",
    "a.png?key=hero": "max-age=3600",
}


@pytest.mark.parametrize("path", CURRENT)
def test_the_current_version_of_a_file_is_immutable(api: Api, path: str) -> None:
    joined, digest = "&" if "?" in path else "?", version(path.partition("?")[0])
    for named in (digest, digest[:16]):
        answer = fetch(api, f"/uploads/{path}{joined}v={named}")
        assert answer.status == 200
        assert (CURRENT[path] or IMMUTABLE) in answer.headers["Cache-Control"]
        assert "immutable" not in answer.headers["Cache-Control"] or not CURRENT[path]


@pytest.mark.parametrize(
    "query",
    [
        "v=0",
        "v=",
        "v",
        "v={digest}&v={digest}",
        "v[a]={digest}",
        "v={other}",
        "v={short}",
        "v={digest}0",
        "V={digest}",
    ],
)
@pytest.mark.parametrize("start", ["", "width=60&"])
def test_another_version_is_not_immutable(api: Api, start: str, query: str) -> None:
    digest = version("a.png")
    filled = query.format(digest=digest, short=digest[:15], other=version("large.png"))
    answer = fetch(api, f"/uploads/a.png?{start}{filled}")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "public, max-age=3600")


def test_parts_and_unchanged_responses_are_immutable_too(api: Api) -> None:
    path = f"/uploads/a.png?width=120&v={version('a.png')}"
    tag = fetch(api, path).headers["ETag"]
    answers = [
        api.ask("HEAD", path, "public"),
        fetch(api, path, Range="bytes=0-7"),
        fetch(api, path, **{"If-None-Match": tag}),
    ]
    assert [answer.status for answer in answers] == [200, 206, 304]
    assert {answer.headers["Cache-Control"] for answer in answers} == {IMMUTABLE}
    refused = fetch(api, path, Range="bytes=900000-")
    assert (refused.status, refused.headers["Cache-Control"]) == (416, "no-store")


def test_a_webp_that_an_avif_will_replace_is_not_immutable(api: Api) -> None:
    path = f"/uploads/smooth.jpg?width=117&auto=format&v={version('smooth.jpg')}"
    first = fetch(api, path, **BROWSER)
    assert (shown(first)[1], "immutable" in first.headers["Cache-Control"]) == ("WEBP", False)
    until(lambda: shown(fetch(api, path, **BROWSER))[1] == "AVIF")
    best = fetch(api, path, **BROWSER).headers
    assert (best["Cache-Control"], "Accept" in best["Vary"]) == (IMMUTABLE, True)


def test_the_version_before_a_change_is_not_immutable(other: Api) -> None:
    old = version("a.png")
    file = other.root / "content/uploads/a.png"
    assert fetch(other, f"/uploads/a.png?v={old}").headers["Cache-Control"] == IMMUTABLE
    data = picture(300, 100)
    for change in (data, data[:-1] + b"x"):  # of the same size, at once
        file.write_bytes(change)
        other.site.refresh()
        new = hashlib.sha256(change).hexdigest()
        for query in ("", "w=20&") if change is data else ("",):
            assert "immutable" not in fetch(other, f"/uploads/a.png?{query}v={old}").headers["Cache-Control"]
            assert fetch(other, f"/uploads/a.png?{query}v={new}").headers["Cache-Control"] == IMMUTABLE
        old = new


def test_a_width_that_is_not_listed_keeps_its_version(other: Api) -> None:
    small(other, widths="[160]")
    answer = fetch(other, f"/uploads/a.png?w=100&v={version('a.png')}")
    assert (answer.status, answer.headers["Cache-Control"]) == (302, "public, max-age=300")
    assert fetch(other, answer.headers["Location"]).headers["Cache-Control"] == IMMUTABLE
    assert fetch(other, "/uploads/a.png?w=100&v=1&v=2").headers["Location"] == "/uploads/a.png?w=160"


def test_a_transformation_is_not_immutable_while_transformations_are_disabled(other: Api) -> None:
    small(other, enabled="false")
    path = f"/uploads/a.png?width=10&v={version('a.png')}"
    assert "immutable" not in fetch(other, path).headers["Cache-Control"]


def measured_keys(monkeypatch: pytest.MonkeyPatch, during: Callable[[], object] = lambda: None) -> list[str]:
    """Return a list to which each measurement of an image is added."""
    found: list[str] = []

    def measure(file: BinaryIO, ending: str) -> ImageSize | None:
        found.append(ending)
        during()
        return size_of_image(file, ending)

    monkeypatch.setattr("server.service.images.by_url.size_of_image", measure)
    return found


def test_an_image_of_a_past_commit_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {**FILES, **UPLOADS})
    commit_all(tmp_path)
    made, commit = make(tmp_path, {}), git(tmp_path, "rev-parse", "HEAD").strip()
    (tmp_path / "content/uploads/a.png").write_bytes(picture(30, 30))
    made.site.refresh()
    measured = measured_keys(monkeypatch)
    for width in (20, 20, 40):
        answer = made.ask("GET", f"/uploads/a.png?w={width}&at={commit}")
        assert shown(answer) == ((width, round(width * 2 / 3)), "PNG")
    assert measured == [".png"]
    assert shown(fetch(made, "/uploads/a.png?w=20")) == ((20, 20), "PNG")
    made.accounts.close()


def test_requests_for_an_image_share_one_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(tmp_path, {**FILES, **UPLOADS})
    another_measures = threading.Barrier(2)

    def meet() -> None:
        with suppress(threading.BrokenBarrierError):
            another_measures.wait(0.5)

    measured = measured_keys(monkeypatch, meet)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: fetch(made, "/uploads/a.png?w=20"), range(4)))
    assert {answer.status for answer in answers} == {200}
    assert measured == [".png"]
    made.accounts.close()


def test_a_version_of_the_past_is_private(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, **UPLOADS})
    commit_all(tmp_path)
    made, digest = make(tmp_path, {}), version("a.png")
    commit = git(tmp_path, "rev-parse", "HEAD").strip()
    (tmp_path / "content/uploads/a.png").write_bytes(picture(30, 30))
    made.site.refresh()
    for query in ("", "w=20&"):
        assert "immutable" not in fetch(made, f"/uploads/a.png?{query}v={digest}").headers["Cache-Control"]
        for at in (commit, commit[:8], "HEAD"):
            answer = made.ask("GET", f"/uploads/a.png?{query}at={at}&v={digest}")
            assert answer.status == 200
            assert "private" in answer.headers["Cache-Control"]
            assert "public" not in answer.headers["Cache-Control"]
            assert at == commit or "immutable" not in answer.headers["Cache-Control"]
    made.accounts.close()
