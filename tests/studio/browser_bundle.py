"""The bundled studio that packages contain (`make dist`): it is complete and loads with few requests."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.servers import stop
from tests.studio.browser_form import open_form
from tests.studio.conftest import USE_PAGE, Page, Studio, expect
from tests.studio.test_page import PAGE
from tests.vendor.studio import bundle

# All requests of a first visit, including data and the files for lists and forms
MOST_REQUESTS = 12
MOST_BYTES = 350_000  # of all files, compressed; 14 kB of them are the German texts


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server that serves the bundled studio."""
    folder = tmp_path_factory.mktemp("bundled")
    if reason := bundle(folder / "page"):
        pytest.skip(reason)
    studio = Studio(folder)
    studio.start(first=USE_PAGE.format(str(folder / "page")))
    yield studio
    stop(studio.process)


@pytest.fixture
def owner(entered: Any, new_page: Callable[..., Page]) -> Page:
    return new_page(storage_state=entered)


@pytest.mark.parametrize(("path", "region"), [("", "Recently changed"), ("/article", "Articles")])
def test_a_first_visit_takes_few_requests(path: str, region: str, owner: Page, site: Studio) -> None:
    asked: list[str] = []
    owner.on("request", lambda request: asked.append(request.url))
    owner.goto(site.url + path)
    owner.get_by_role("heading", level=1, name=region).wait_for()
    owner.locator("main [aria-busy=false]").locator("li, tbody tr").first.wait_for()
    owner.wait_for_load_state("networkidle")
    assert 0 < len(asked) <= MOST_REQUESTS, asked
    assert sum(urlsplit(url).path == "/access" for url in asked) == 1
    # Links to lists and forms need no more files.
    before = len(asked)
    owner.get_by_role("link", name="Tags").first.click()
    expect(owner.get_by_role("region", name="Tags")).to_have_attribute("aria-busy", "false")
    assert [url for url in asked[before:] if "/studio/-/" in url] == []


def test_every_part_that_is_loaded_late_is_there(owner: Page, site: Studio) -> None:
    open_form(owner, site, "article/2025--goemon?panel=file")
    owner.get_by_role("complementary", name="File").get_by_text("Current file").wait_for()
    owner.locator(".cm-content").first.wait_for()
    for path, heading in (
        ("site/-/problems", "Problems"),
        ("site/-/changes", "Changes"),
        ("site/-/media", "Media"),
        ("site/-/branches", "Branches"),
        ("site/-/branches/next", "next"),
    ):
        owner.goto(f"{site.url}/{path}")
        owner.get_by_role("heading", level=1, name=heading).wait_for()
    licences = owner.request.get(f"{site.url}/-/x/vendor/licences.txt")
    assert licences.ok
    assert "codemirror" in licences.text()


def test_the_whole_page_stays_within_its_limit(site: Studio) -> None:
    files = list(Path(site.root.parent / "page").rglob("*.br"))
    sources = json.loads((PAGE / "messages/de.json").read_text())
    packaged = json.loads((site.root.parent / "page/messages/de.json").read_text())
    assert {*map(str, packaged.values())} == {*map(str, sources.values())}
    assert "Save" not in packaged
    assert 200_000 < sum(path.stat().st_size for path in files) < MOST_BYTES


def test_what_a_browser_is_sent_is_compressed_as_packaged(site: Studio) -> None:
    packaged = Path(site.root.parent / "page")
    assert {path.suffix for path in packaged.rglob("*.br")} == {".br"}
    assert (packaged / "main.js.br").stat().st_size < (packaged / "main.js").stat().st_size + 50
