"""Tests of images by URL for media in a bucket: `/uploads/…?width=…`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.storage.bucket import bucket as buckets
from tests.api.test_bucket import fetch, picture, site_of, upload
from tests.api.test_images import IMMUTABLE
from tests.buckets import S3
from tests.sites import Api, make


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set short timeouts for a bucket, without retries or a pause after a failure."""
    monkeypatch.setattr(buckets, "BACKOFF_S", 0.0)
    monkeypatch.setattr(buckets, "REQUEST_TIMEOUT_S", 4)
    monkeypatch.setattr(buckets, "MAX_RETRIES", 0)


@pytest.fixture
def api(tmp_path: Path, s3: S3) -> Iterator[Api]:
    made = make(tmp_path, site_of(s3))
    yield made
    made.accounts.close()


def image(api: Api, width: int = 600, height: int = 400) -> Any:
    return upload(api, (picture(width, height), "a.png")).body[0]


def configure(api: Api, s3: S3, **media: str) -> None:
    (api.root / "site.yaml").write_text(site_of(s3, **media)["site.yaml"])
    api.site.refresh()


# --- versions -------------------------------------------------------------------------------------


def test_the_url_of_a_named_format_contains_its_version(api: Api, s3: S3) -> None:
    def shown() -> str:
        return str(api.ask("GET", "/api/upload/files").body[0]["formats"]["card"]["url"])

    configure(api, s3, formats="{card: {w: 80, h: 80}}")
    file = image(api)
    first = shown()
    assert first.startswith(f"{file['url']}?key=card&v=")
    assert fetch(api, first).headers["Cache-Control"] == IMMUTABLE
    focus = '{"focalPoint": {"x": 10, "y": 20}}'
    upload(api, query=f"?id={file['id']}", fileInfo=focus)
    second = shown()
    configure(api, s3, formats="{card: {w: 90, h: 90}}")
    third = shown()
    assert len({first, second, third}) == 3
    assert fetch(api, third).headers["Cache-Control"] == IMMUTABLE
    for old in (first, second):
        assert fetch(api, old).headers["Cache-Control"] == "public, max-age=3600"


def test_a_file_in_a_bucket_has_its_hash_as_version(api: Api) -> None:
    file = image(api)
    stored = file["provider_metadata"]
    assert fetch(api, f"{file['url']}?v={stored['sha256']}").headers["Cache-Control"] == IMMUTABLE
    small, digest = file["formats"]["small"]["url"], stored["formats"]["small"]["sha256"]
    assert fetch(api, f"{small}?v={digest}").headers["Cache-Control"] == IMMUTABLE
    assert "immutable" not in fetch(api, f"{small}?v={stored['sha256']}").headers["Cache-Control"]


@pytest.mark.parametrize("mode", [{"serve": "sign"}, {"public_url": "https://media.example.org/site"}])
def test_a_redirect_to_the_bucket_is_not_immutable(api: Api, s3: S3, mode: dict[str, str]) -> None:
    configure(api, s3, **mode)
    file = image(api)
    for query in ("", "width=50&"):
        answer = fetch(api, f"{file['url']}?{query}v={file['provider_metadata']['sha256']}")
        assert "immutable" not in answer.headers["Cache-Control"] or answer.status == 200
