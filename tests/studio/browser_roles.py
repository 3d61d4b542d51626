"""Roles in the studio: what each role sees and may do, and that the API rejects everything else."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sites import schema, write
from tests.studio.browser_form import told
from tests.studio.browser_sign_in import serving_users
from tests.studio.conftest import Page, Studio, expect, signed_in_users

FILES = {
    "content-types/paper.json": schema("paper", {"title": "string", "text": "text"}, drafts=True),
    "content-types/memo.json": schema("memo", {"title": "string"}),
    "content-types/vault.json": schema("vault", {"title": "string"}),
    "content/papers/one.md": "---\ntitle: One\n---\n",
    "content/papers/two.draft.md": "---\ntitle: Two\n---\n",
    "content/memos/one.md": "---\ntitle: A memo\n---\n",
    "content/vaults/one.md": "---\ntitle: A vault\n---\n",
    "site.yaml": """
name: Papers
roles:
  public: {auth: [callback]}
  editor:
    paper: [find, findOne, readDraft, create, update, delete]
    memo: [find, findOne, create, update, delete]
    vault: [find, findOne, update]
  writer: {paper: [find, findOne, readDraft, updateDraft], memo: [find, findOne]}
  reader: {paper: [find, findOne], memo: [find, findOne]}
""",
}
ROLES = ("editor", "writer", "reader")
# For each role: the buttons that the page of a published paper must have, and those that it must not have.
BUTTONS = {
    "editor": ({"Save draft", "Publish", "Unpublish", "Delete", "Duplicate"}, set()),
    "writer": ({"Save draft", "Duplicate"}, {"Publish", "Unpublish", "Delete"}),
    "reader": (set(), {"Save", "Save draft", "Publish", "Unpublish", "Delete", "Duplicate", "Discard draft"}),
}
TYPES = {
    "editor": ["Memos", "Papers", "Vaults"],
    "writer": ["Memos", "Papers"],
    "reader": ["Memos", "Papers"],
}
# Requests that a manipulated page might send, and the roles whose requests succeed.
REQUESTS: tuple[tuple[str, str, Any, set[str]], ...] = (
    ("GET", "api/papers?status=draft", None, {"editor", "writer"}),
    ("GET", "api/papers/two?status=draft", None, {"editor", "writer"}),
    ("GET", "api/vaults", None, {"editor"}),
    ("GET", "api/vaults/one", None, {"editor"}),
    ("PUT", "api/vaults/one", {"data": {"title": "A vault"}}, {"editor"}),
    ("POST", "api/vaults", {"data": {"title": "Mine"}}, set()),
    ("DELETE", "api/vaults/one", None, set()),
    ("PUT", "api/papers/one", {"data": {"title": "One"}}, {"editor"}),
    ("PUT", "api/papers/one?status=draft", {"data": {"title": "Other"}}, {"editor", "writer"}),
    ("PUT", "api/memos/one", {"data": {"title": "A memo"}}, {"editor"}),
    ("POST", "api/memos", {"data": {"title": "Mine"}}, {"editor"}),
    ("POST", "batch", [{"method": "DELETE", "path": "/api/papers/none"}], set()),
    ("GET", "presence", None, {"editor", "writer"}),
    ("GET", "events?types=vault", None, {"editor"}),
    ("GET", "api/users", None, set()),
    ("GET", "history", None, set()),
)
DRIVE = """async ([method, path, body]) => {
  const headers = {"Bifolio-Studio": "1", "Content-Type": "application/json"};
  const answer = await fetch(`/${path}`, {method, headers, body: body && JSON.stringify(body)});
  return [answer.status, await answer.text()];
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with three roles, and one user in each role."""
    studio = Studio(tmp_path_factory.mktemp("roles"), files=FILES)
    with serving_users(studio, {role: role for role in ROLES}):
        yield studio


@pytest.fixture(scope="module")
def sessions(site: Studio, browser: Any) -> dict[str, Any]:
    """The browser state in which the role's user is signed in, by role."""
    return signed_in_users(site, browser, ROLES)


@pytest.fixture
def enter(
    site: Studio, sessions: dict[str, Any], new_page: Callable[..., Page]
) -> Callable[[str, str], Page]:
    """A function that opens a page of the studio as the user of a role.

    For each role, the same page is used again. The files are in their initial state.
    """
    for path in (site.root / "content").rglob("*.*"):
        if path.relative_to(site.root).as_posix() not in FILES:
            path.unlink()
    write(site.root, {name: text for name, text in FILES.items() if name.startswith("content/")})

    pages: dict[str, Page] = {}

    def enter(role: str, path: str) -> Page:
        page = pages[role] = pages.get(role) or new_page(storage_state=sessions[role])
        page.goto(f"{site.url}/{path}".rstrip("/"))
        page.locator("main h1").wait_for()
        page.locator("[aria-busy=true]").wait_for(state="detached")
        return page

    return enter


@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_shown_what_it_may_do(role: str, enter: Callable[[str, str], Page]) -> None:
    page = enter(role, "paper/one")
    types = page.get_by_role("navigation", name="Content").locator(".side-text")
    expect(types).to_have_count(len(TYPES[role]))
    assert sorted(types.all_inner_texts()) == TYPES[role]
    expect(page.get_by_text("Your role can't edit this document")).to_have_count(int(role == "reader"))
    expect(page.get_by_label("Title")).to_be_editable(editable=role != "reader")
    if (more := page.get_by_role("button", name="More", exact=True)).is_visible():
        more.click()
    shown = {*page.locator(".actions-buttons").get_by_role("button").all_inner_texts()}
    shown |= {*page.locator(".actions-buttons").get_by_role("link").all_inner_texts()}
    has, has_not = BUTTONS[role]
    assert has <= shown
    assert not has_not & shown


@pytest.mark.parametrize("role", ROLES)
def test_lists_offer_what_a_role_may_do(role: str, enter: Callable[[str, str], Page]) -> None:
    page = enter(role, "paper")
    expect(page.get_by_role("rowheader")).to_have_count(1 if role == "reader" else 2)
    expect(page.get_by_role("rowheader", name="Two")).to_have_count(int(role != "reader"))
    expect(page.get_by_role("link", name="New paper")).to_be_visible(visible=role != "reader")
    # A checkbox for each document, and one for all of them.
    expect(page.get_by_role("checkbox")).to_have_count(3 if role == "editor" else 0)
    expect(page.get_by_label("Status")).to_be_visible(visible=role != "reader")
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Sign out").wait_for()
    offered = page.get_by_role("option").all_inner_texts()
    made = [text.split("\n")[0] for text in offered if text.startswith("New ")]
    assert made == {"editor": ["New memo", "New paper"], "writer": ["New paper"], "reader": []}[role]


@pytest.mark.parametrize("role", ["writer", "reader"])
def test_what_a_role_may_not_find_is_not_there(role: str, enter: Callable[[str, str], Page]) -> None:
    for path in ("vault", "vault/one", "vault/-/new"):
        page = enter(role, path)
        expect(page.get_by_role("heading", level=1)).to_have_text("Content not found")
        assert "A vault" not in page.content()
    page = enter(role, "")
    page.locator("main li").first.wait_for()
    expect(page.get_by_role("main")).not_to_contain_text("vault", ignore_case=True)
    page.keyboard.press("Control+k")
    page.keyboard.type("vault")
    page.get_by_text("No results").wait_for()


@pytest.mark.parametrize("role", ROLES)
def test_the_api_refuses_the_rest(role: str, enter: Callable[[str, str], Page]) -> None:
    page = enter(role, "")
    for method, path, body, allowed in REQUESTS:
        status, text = page.evaluate(DRIVE, [method, path, body])
        assert (status < 300) == (role in allowed), (method, path, text)
        if role not in allowed:
            assert status in (400, 403), (method, path, text)
            assert json.loads(text)["error"]["status"] == status
            assert "A vault" not in text


def test_a_writer_writes_drafts_alone(site: Studio, enter: Callable[[str, str], Page]) -> None:
    page = enter("writer", "paper/one")
    page.get_by_label("Title").fill("Mine")
    page.keyboard.press("Control+s")
    told(page, "Saved as a draft")
    assert Path(site.root / "content/papers/one.md").read_text() == FILES["content/papers/one.md"]
    assert "title: Mine" in Path(site.root / "content/papers/one.draft.md").read_text()
    page = enter("writer", "paper/-/new")
    page.get_by_label("Title").fill("New")
    page.keyboard.press("Control+s")
    page.get_by_role("heading", level=1, name="New").wait_for()
    made = {path.name for path in (site.root / "content/papers").iterdir()} - {"one.md", "two.draft.md"}
    assert made
    assert all(".draft." in name for name in made)


def test_an_editor_publishes_and_a_reader_is_shown_it(
    site: Studio, sessions: dict[str, Any], enter: Callable[[str, str], Page], new_page: Callable[..., Page]
) -> None:
    page = enter("editor", "paper/two")
    page.get_by_label("Title").fill("Two, published")
    page.get_by_role("button", name="Publish").click()
    told(page, "Published")
    assert "title: Two, published" in Path(site.root / "content/papers/two.md").read_text()
    reader = new_page(storage_state=sessions["reader"])
    reader.goto(f"{site.url}/paper")
    reader.get_by_role("rowheader", name="Two, published").wait_for()
