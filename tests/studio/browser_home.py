"""The part of the studio's first page about work."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.sites import schema, write
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import serving_users
from tests.studio.conftest import Page, Studio, expect, signed_in_users

SITE = """\
name: Harbour
search: {index: false}
roles:
  public: {auth: [callback]}
  chief:
    paper: [find, findOne, create, update, delete, readDraft, updateDraft]
    branch: [find, create, update, merge]
    problems: [find]
    history: [read]
  editor: {paper: [find, findOne, readDraft, create, update]}
  writer: {paper: [find, findOne, readDraft, updateDraft]}
  reader: {paper: [find, findOne]}
"""
FILES = {
    "content-types/paper.json": schema("paper", {"title": "string"}, drafts=True),
    "content/papers/tides.yaml": "title: Tides\n",
    "content/papers/broken.yaml": "titel: Broken\n",
    "site.yaml": SITE,
    ".gitignore": ".bifolio/\n",
}
ROLES = ("chief", "editor", "writer", "reader")
OTHERS, DRAFTS = "Changed by others since your last visit", "My drafts"
SEND = """async ([path, method, title]) => (await fetch(path, {method, body: JSON.stringify({data: {title}}),
  headers: {"Bifolio-Studio": "1", "Content-Type": "application/json"}})).status"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site in git with a branch, a problem, and a user in each role."""
    studio = Studio(tmp_path_factory.mktemp("home"), files=FILES)
    commit_all(studio.root)
    git(studio.root, "branch", "-q", "next")
    with serving_users(studio, {role: role for role in ROLES}):
        yield studio


@pytest.fixture(scope="module")
def sessions(site: Studio, browser: Any) -> dict[str, Any]:
    """The browser state in which each role's user is signed in, by role."""
    return signed_in_users(site, browser, ROLES)


@pytest.fixture
def enter(site: Studio, sessions: dict[str, Any], new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A function that opens the first page as a user with a role."""

    def enter(role: str, **options: Any) -> Page:
        page = new_page(storage_state=sessions[role], **options)
        with page.expect_response("**/events/activity*"):
            page.goto(site.url)
        return page

    return enter


def part(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name)


def test_each_role_sees_its_work(
    enter: Callable[..., Page], site: Studio, check_access: Callable[[Page], None]
) -> None:
    pages = {role: enter(role) for role in ROLES}
    for page in pages.values():
        expect(part(page, OTHERS)).to_have_count(0)  # on the first visit
    assert pages["editor"].evaluate(SEND, ["/api/papers?status=draft", "POST", "Fog"]) == 201
    assert pages["writer"].evaluate(SEND, ["/api/papers/tides?status=draft", "PUT", "High tides"]) == 200
    assert pages["chief"].evaluate(SEND, ["/api/papers/tides?branch=next", "PUT", "Next tides"]) == 200
    write(site.root, {"content/papers/mist.yaml": "title: Mist\n"})
    for page in pages.values():
        with page.expect_response("**/events/activity*"):
            page.reload()
    expect(part(pages["editor"], DRAFTS).get_by_role("link")).to_have_text(["Fog"])
    expect(part(pages["writer"], DRAFTS).get_by_role("link")).to_have_text(["High tides"])
    expect(part(pages["reader"], DRAFTS)).to_have_count(0)
    expect(part(pages["reader"], OTHERS).get_by_role("link")).to_have_text(["Mist"])
    chief = part(pages["chief"], OTHERS)
    expect(chief.get_by_role("listitem")).to_have_count(3)
    expect(chief.get_by_role("listitem").filter(has_text="Fog")).to_contain_text("a-editor")
    expect(part(pages["editor"], OTHERS)).not_to_contain_text("a-writer")
    part(pages["chief"], "Branches to merge").get_by_role("link", name="next").wait_for()
    part(pages["chief"], "Problems").get_by_role("link").wait_for()
    for role in ("editor", "writer", "reader"):
        expect(part(pages[role], "Branches to merge")).to_have_count(0)
        expect(part(pages[role], "Problems")).to_have_count(0)
    for scheme in ("light", "dark"):
        pages["chief"].emulate_media(color_scheme=scheme)
        for size, (width, height) in SIZES.items():
            pages["chief"].set_viewport_size({"width": width, "height": height})
            check_access(pages["chief"])
            assert pages["chief"].evaluate("document.documentElement.scrollWidth <= innerWidth"), size
            picture(pages["chief"], f"work-{scheme}{SHOWN[size]}")
    chief.get_by_role("button", name="Mark as read").press("Enter")
    expect(chief).to_have_count(0)
    with pages["chief"].expect_response("**/events/activity*"):
        pages["chief"].reload()
    part(pages["chief"], "Problems").wait_for()
    expect(chief).to_have_count(0)
    part(pages["editor"], DRAFTS).get_by_role("link").click()
    pages["editor"].get_by_role("heading", level=1, name="Fog").wait_for()
