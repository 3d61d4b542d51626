"""Script injection: values in documents, schemas, files and settings must not run scripts on any page."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.git import git
from tests.servers import stop
from tests.sites import STRING, collection, component, relation
from tests.studio.conftest import Page, Studio, signed_in_at
from tests.waiting import until

MARKUP = "<script>hacked=1</script><img src=x onerror=hacked=1>\"'><svg onload=hacked=1>"
ADDRESS = "javascript:hacked=1"
BLOCKS = [
    {"type": "paragraph", "children": [{"type": "text", "text": MARKUP}]},
    {
        "type": "paragraph",
        "children": [{"type": "link", "url": ADDRESS, "children": [{"type": "text", "text": "link"}]}],
    },
]
NOTE = {
    "title": MARKUP,
    "text": f"{MARKUP}\n\n[link]({ADDRESS}) ![picture]({ADDRESS})",
    "blocks": BLOCKS,
    "data": {MARKUP: MARKUP},
    "one": "one",
    "parts": [{"label": MARKUP}],
    "picture": "shown.png",
    MARKUP: MARKUP,  # a key without an attribute in the schema
}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
FILES = {
    **collection(
        "note",
        {
            "title": STRING,
            "text": {"type": "richtext"},
            "blocks": {"type": "blocks"},
            "data": {"type": "json"},
            "one": relation("manyToOne", "note"),
            "parts": {"type": "component", "component": "shared.part", "repeatable": True},
            "picture": {"type": "media"},
            "kind": {"type": "enumeration", "enum": [MARKUP, "other"]},
        },
        drafts=True,
    ),
    **component("shared.part", {"label": STRING}),
    "site.yaml": f"name: {json.dumps(MARKUP)}\nroles: {{public: {{note: [find, findOne]}}}}\n",
    "content/notes/one.json": json.dumps(NOTE),
    "content/notes/two.json": json.dumps({"title": MARKUP, "one": MARKUP, "kind": MARKUP}),
    "content/notes/three.draft.json": json.dumps({"title": MARKUP}),
    "content/uploads/shown.png.json": json.dumps(
        {"name": MARKUP, "alternativeText": MARKUP, "caption": MARKUP}
    ),
}
# Returns the text on a page, including the values of its fields.
SHOWN = """document.documentElement.innerText
  + [...document.querySelectorAll("input, textarea")].map((e) => e.value)"""
STUDIO_PAGES = (
    "",
    "/note",
    "/note?q=hacked",
    "/note/one",
    "/note/one?panel=file",
    "/note/one?panel=history",
    "/note/one?panel=preview",
    "/note/two",
    "/note/three",
    "/site/-/problems",
    "/site/-/changes",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site in which every value is an attack."""
    made = Studio(tmp_path_factory.mktemp("injection"), files=FILES)
    (made.root / "content/uploads/shown.png").write_bytes(PNG)
    git(made.root, "init", "-q")
    git(made.root, "add", "-A")
    git(made.root, "commit", "-q", "-m", MARKUP)
    with (made.root / "content/notes/two.json").open("w") as file:
        json.dump({"title": MARKUP + "again"}, file)
    made.start()
    yield made
    stop(made.process)


@pytest.fixture(scope="module")
def entered(site: Studio, browser: Any) -> Any:
    return signed_in_at(site, browser)


def assert_nothing_ran(page: Page) -> None:
    """Assert that no script has run, and that no link or picture would run one."""
    until(lambda: "hacked=1" in page.evaluate(SHOWN))
    # If a script was injected, it runs during this time.
    page.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert page.evaluate("typeof hacked") == "undefined"
    addresses = page.evaluate(
        "[...document.querySelectorAll('[href], [src], [action]')].map((e) => e.href || e.src || e.action)"
    )
    assert not [address for address in addresses if str(address).lower().startswith("javascript:")]


@pytest.mark.parametrize("path", STUDIO_PAGES)
def test_no_page_of_the_studio_runs_what_a_site_holds(
    site: Studio, entered: Any, new_page: Callable[..., Page], path: str
) -> None:
    page = new_page(storage_state=entered)
    page.goto(f"{site.url}{path}")
    page.locator("main h1").wait_for()
    page.locator("main [aria-busy=true], main .loading").first.wait_for(state="detached")
    assert_nothing_ran(page)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_no_page_for_visitors_does(site: Studio, new_page: Callable[..., Page], path: str) -> None:
    page = new_page()
    page.goto(f"{site.url.removesuffix('/studio')}{path}")
    assert_nothing_ran(page)
