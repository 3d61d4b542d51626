"""The studio's pages about the whole site: problems in its files, and uncommitted changes."""

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.servers import stop
from tests.sites import write
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio, expect, sign_in, signed_in_at

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

ROLES = "roles: {public: {auth: [callback]}, guest: {article: [find, findOne, update]}}\n"
ODD = "title: Odd\nslug: odd\nsummary: Odd\nauthor: nell-trevanoin   # kept\n"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site in a git repository, with a user who has few permissions."""
    made = Studio(tmp_path_factory.mktemp("site"))
    write(made.root, {".gitignore": ".bifolio/\n"})
    settings = made.root / "site.yaml"
    text = settings.read_text()
    settings.write_text(text.partition("roles:")[0] + ROLES)
    commit_all(made.root)
    add_user(made, "gus", "guest")
    made.start()
    yield made
    stop(made.process)


@pytest.fixture(scope="module")
def session(own: Studio, browser: Any) -> Any:
    """The browser state in which the owner is signed in."""
    return signed_in_at(own, browser)


@pytest.fixture
def owner(own: Studio, session: Any, new_page: Callable[..., Page]) -> Page:
    """A page of the studio in which the owner is signed in."""
    page = new_page(storage_state=session)
    page.goto(own.url)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    return page


@pytest.fixture(autouse=True)
def clean(own: Studio) -> Iterator[None]:
    """Commit all changes before each test."""
    yield
    git(own.root, "reset", "-q", "--hard")
    git(own.root, "clean", "-fdq", "content")


def test_a_broken_file_appears_is_opened_at_its_field_and_fixed(
    own: Studio, owner: Page, check_access: Callable[[Page], None]
) -> None:
    owner.get_by_role("link", name="Problems").click()
    owner.get_by_text("No problems").wait_for()
    write(
        own.root, {"content/articles/odd.yaml": ODD, "content/tags/lamps.yaml": "name: Lights: and lamps\n"}
    )
    odd = owner.get_by_role("region", name="Odd")
    odd.get_by_text("does not exist").wait_for()
    lamps = owner.get_by_role("region", name="content/tags/lamps.yaml")
    lamps.get_by_text("Line 1. Put strings that contain a colon in quotes").wait_for()
    owner.locator(".side-link", has_text="Problems").get_by_text("2", exact=True).wait_for(timeout=12_000)
    check_access(owner)
    owner.get_by_role("button", name="Errors").click()
    odd.wait_for(state="detached")
    owner.get_by_role("button", name="All").click()
    odd.get_by_role("link", name="Open").click()
    owner.locator("#field-author :focus, #field-author:focus").wait_for()
    owner.go_back()
    owner.get_by_role("button", name="Apply safe fixes (1)").click()
    owner.get_by_role("dialog").get_by_text("nell-trevanoin").wait_for()
    owner.get_by_role("dialog").get_by_role("button", name="Fix", exact=True).click()
    odd.wait_for(state="detached")
    assert (own.root / "content/articles/odd.yaml").read_text() == ODD.replace("trevanoin", "trevanion")
    (own.root / "content/tags/lamps.yaml").unlink()
    owner.get_by_text("No problems").wait_for()


def test_what_is_chosen_is_committed_and_what_is_staged_stays(
    own: Studio, owner: Page, check_access: Callable[[Page], None]
) -> None:
    path = own.root / "content/tags/fog.yaml"
    before = path.read_text()
    write(
        own.root,
        {"content/tags/fog.yaml": re.sub("(?m)^name: .*$", "name: Mist", before), "notes.txt": "mine\n"},
    )
    write(own.root, {"content/tags/haar.yaml": "name: Haar\nslug: haar\n"})
    git(own.root, "add", "notes.txt")
    owner.get_by_role("link", name="Changes").click()
    owner.get_by_role("button", name="changes in Mist").click()
    owner.locator(".diff .is-added", has_text="name: Mist").wait_for()
    check_access(owner)
    owner.get_by_role("checkbox", name="Commit Haar").uncheck()
    owner.get_by_label("Commit message").fill("Call it mist")
    owner.get_by_role("button", name="Commit 1 file").click()
    owner.get_by_text("Committed as").wait_for()
    owner.get_by_role("checkbox", name="Commit Mist").wait_for(state="detached")
    expect(owner.get_by_role("button", name="Commit")).to_be_focused()
    told = git(own.root, "log", "-1", "--format=%s", "--name-only").split("\n")
    assert (told[0], [line for line in told[1:] if line]) == ("Call it mist", ["content/tags/fog.yaml"])
    assert "A  notes.txt" in git(own.root, "status", "--porcelain").splitlines()
    owner.get_by_role("checkbox", name="Commit Haar").wait_for()


def test_a_hook_that_refuses_says_why(own: Studio, owner: Page) -> None:
    hook = own.root / ".git/hooks/pre-commit"
    write(own.root, {"content/tags/haar.yaml": "name: Haar\nslug: haar\n"})
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho Not on Sundays >&2\nexit 1\n")
    hook.chmod(0o755)
    try:
        owner.goto(f"{own.url}/site/-/changes")
        owner.get_by_label("Commit message").fill("Add haar")
        owner.get_by_role("button", name="Commit 1 file").click()
        owner.get_by_role("alert").get_by_text("Not on Sundays").wait_for()
    finally:
        hook.unlink()
    expect(owner.get_by_label("Commit message")).to_have_value("Add haar")


def test_a_role_without_rights_sees_neither_page(own: Studio, new_page: Callable[..., Page]) -> None:
    page: Any = new_page()
    page.goto(own.url)
    sign_in(page, "gus")
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    expect(page.get_by_role("link", name="Articles")).to_have_count(1)
    expect(page.get_by_role("link", name="Problems")).to_have_count(0)
    expect(page.get_by_role("link", name="Changes")).to_have_count(0)
    page.goto(f"{own.url}/site/-/problems")
    page.get_by_text("Not allowed").wait_for()


def test_the_palette_leads_to_both(owner: Page) -> None:
    owner.keyboard.press("Control+k")
    owner.keyboard.type("problems")
    owner.get_by_role("option", name="Problems").wait_for()
    owner.keyboard.press("Enter")
    owner.get_by_role("heading", level=1, name="Problems").wait_for()


def test_a_site_whose_first_check_is_not_done_is_still_being_looked_at(own: Studio, owner: Page) -> None:
    busy = {"data": None, "error": {"status": 503, "name": "ServiceUnavailableError", "message": "Busy"}}
    owner.route("**/problems?*", lambda route: route.fulfill(status=503, json=busy))
    with owner.expect_response("**/problems?*pageSize=100*"):
        owner.goto(f"{own.url}/site/-/problems")
    owner.get_by_text("Checking all files").wait_for()
    expect(owner.get_by_role("alert").filter(has_text="The request failed")).to_have_count(0)
    owner.unroute("**/problems?*")
    owner.get_by_text("No problems").wait_for()
