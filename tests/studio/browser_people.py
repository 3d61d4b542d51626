"""People and settings in the studio: users, roles, API tokens, sessions and site.yaml."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.sites import schema
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import add_user, serving_users
from tests.studio.conftest import STUDIO_HEADERS, Page, Studio, expect, sign_in, signed_in_users
from tests.waiting import until

SITE = """\
name: Harbour  # the town
locales: {default: en, available: [en, fr]}
api:
  page_size: {max: 50}
roles:
  public: {auth: [callback]}
  authenticated: {user: [me]}
  editor: # people who write
    paper: [find, findOne, create, update]
  chief:
    paper: [find, findOne, create, update, delete, readDraft, updateDraft]
    user: [me, find, findOne, create, update, destroy]
    role: [find, update]
    token: [read, create, revoke]
    settings: [read, write]
  clerk: {paper: [find, findOne], user: [me, find]}
  reader: {paper: [find, findOne], role: [find], settings: [read]}
"""
FILES = {
    "content-types/paper.json": schema("paper", {"title": "string"}, drafts=True),
    "content-types/home.json": schema("home", {"title": "string"}, single=True),
    "content/papers/a.yaml": "title: Tides\n",
    "site.yaml": SITE,
}
USERS = {"chief": "chief", "second": "chief", "clerk": "clerk", "reader": "reader", "nobody": "editor"}
PEOPLE = {"people": "Users", "roles": "Roles", "tokens": "API tokens", "settings": "Settings"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with a user in each role."""
    studio = Studio(tmp_path_factory.mktemp("people"), files=FILES)
    with serving_users(studio, USERS):
        yield studio


@pytest.fixture(scope="module")
def sessions(site: Studio, browser: Any) -> dict[str, Any]:
    """The browser state in which each user is signed in, by name."""
    return signed_in_users(site, browser, USERS)


@pytest.fixture
def enter(site: Studio, sessions: dict[str, Any], new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A function that opens a page of the studio as a user. The site has its first settings."""
    (site.root / "site.yaml").write_text(SITE)

    def enter(name: str, path: str, **options: Any) -> Page:
        page = new_page(storage_state=sessions[name], **options)
        page.goto(f"{site.url}/site/-/{path}")
        page.locator("main h1").wait_for()
        return page

    return enter


def text_of(site: Studio) -> str:
    """Return the text of site.yaml."""
    return (site.root / "site.yaml").read_text()


def save(page: Page) -> Any:
    """Open the dialog with the changed lines, and return the lines."""
    page.get_by_role("button", name="Review and save").click()
    lines = page.get_by_role("dialog").locator(".code")
    lines.wait_for()
    return lines


def scroll_down(page: Page) -> None:
    page.evaluate("document.querySelector('.save-bar').previousElementSibling.scrollIntoView(false)")


# --- navigation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("chief", ["Users", "Roles", "API tokens", "My sessions"]),
        ("clerk", ["Users", "My sessions"]),
        ("reader", ["Roles", "My sessions"]),
        ("nobody", []),
    ],
)
def test_only_pages_that_one_may_use_are_linked(
    name: str, links: list[str], enter: Callable[..., Page]
) -> None:
    page = enter(name, "sessions")
    side = page.get_by_role("navigation", name="Content")
    expect(side.get_by_role("link", name="People")).to_have_count(int(name != "nobody"))
    expect(side.get_by_role("link", name="Settings")).to_have_count(int(name in ("chief", "reader")))
    tabs = page.get_by_role("navigation", name="People").get_by_role("link")
    expect(tabs).to_have_text(links)
    for path in PEOPLE:
        page.goto(re.sub("[^/]+$", path, page.url))
        heading = page.get_by_role("heading", level=1, name=PEOPLE[path])
        heading.wait_for()
        may = PEOPLE[path] in links or (path == "settings" and name in ("chief", "reader"))
        expect(page.get_by_text(re.compile("^Your role can't see"))).to_have_count(int(not may))


# --- users ----------------------------------------------------------------------------------------


def read(page: Page, site: Studio, path: str) -> Any:
    """Return a JSON response, as the user who is signed in on the page."""
    return page.request.get(f"http://127.0.0.1:{site.port}/{path}", headers=STUDIO_HEADERS).json()


def test_signing_in_with_a_password_is_allowed_where_people_are_invited(
    enter: Callable[..., Page], site: Studio, new_page: Callable[..., Page]
) -> None:
    page = enter("chief", "people")
    notice = page.get_by_text("Nobody can sign in with a password on this site yet")
    expect(notice).to_have_count(0)
    text = SITE.replace("public: {auth: [callback]}", "public: {auth: [register]}")
    (site.root / "site.yaml").write_text(text)
    until(lambda: not read(page, site, "users")["meta"]["passwordSignIn"])
    page.reload()
    page.get_by_text("An administrator can allow it").wait_for()
    (site.root / "site.yaml").write_text(
        text.replace("  chief:\n", "  chief:\n    auth: [callback, register]\n")
    )
    until(lambda: "auth" in read(page, site, "access")["data"]["permissions"])
    page.reload()
    page.get_by_role("button", name="Allow signing in with a password").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("callback").first.wait_for()
    dialog.get_by_role("button", name="Save").click()
    expect(notice).to_have_count(0)
    assert "public: {auth: [register, callback]}" in (site.root / "site.yaml").read_text()
    other = new_page()
    other.goto(f"{site.url}")
    other.get_by_label("Password", exact=True).wait_for()


def test_a_user_is_invited_and_chooses_a_password(
    site: Studio, enter: Callable[..., Page], new_page: Callable[..., Page]
) -> None:
    page = enter("chief", "people")
    page.get_by_role("button", name="Invite user").click()
    page.get_by_label("E-mail address").fill("nell@example.org")
    page.get_by_label("User name").fill("nell")
    page.get_by_label("Role", exact=True).last.select_option("authenticated")
    page.keyboard.press("Enter")
    link = page.get_by_role("dialog").get_by_label("Link")
    page.get_by_text("This site does not send e-mail.").wait_for()
    address = link.input_value()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("button", name=re.compile("^nell"))).to_contain_text("Invited")
    guest = new_page()
    guest.goto(address)
    guest.get_by_label("New password").fill("flood tide")
    assert "#" not in guest.url
    guest.keyboard.press("Enter")
    guest.get_by_role("heading", level=1, name="Recently changed").wait_for()
    other = new_page()
    other.goto(address)
    other.get_by_label("New password").fill("flood tide")
    other.keyboard.press("Enter")
    expect(other.get_by_role("alert")).to_contain_text("This invitation has been used")
    page.reload()
    expect(page.get_by_role("button", name=re.compile("^nell"))).to_contain_text("Last seen")


def test_a_user_gets_a_role_is_blocked_and_signed_out(
    enter: Callable[..., Page], site: Studio, new_page: Callable[..., Page]
) -> None:
    add_user(site, "a-temp", "authenticated")
    theirs = new_page()
    theirs.goto(site.url)
    sign_in(theirs, "a-temp")
    theirs.get_by_role("heading", level=1, name="Recently changed").wait_for()
    page = enter("chief", "people")
    page.get_by_role("searchbox", name="Find users").fill("a-temp")
    page.get_by_role("button", name=re.compile("^a-temp")).press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem")).to_have_count(1)
    dialog.get_by_role("button", name=re.compile("^Sign out everywhere")).click()
    dialog.get_by_text("No sessions are open").wait_for()
    theirs.reload()
    theirs.get_by_label("Password", exact=True).wait_for()
    dialog.get_by_label("Role").select_option("clerk")
    dialog.get_by_role("button", name="Change role").click()
    dialog.get_by_text("a-temp now has the role clerk.").wait_for()
    dialog.get_by_role("button", name="Block").click()
    dialog.get_by_text("a-temp is blocked and signed out.").wait_for()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    dialog.get_by_role("button", name="Delete a-temp for good").click()
    page.get_by_text("a-temp was deleted.").wait_for()
    page.get_by_text("No user matches").wait_for()


def test_two_people_at_the_same_user_see_each_others_change(enter: Callable[..., Page]) -> None:
    pages = [enter(name, "people") for name in ("chief", "second")]
    for page in pages:
        page.get_by_role("button", name=re.compile("^a-clerk")).click()
    for page, role in zip(pages, ("editor", "authenticated"), strict=True):
        page.get_by_role("dialog").get_by_label("Role").select_option(role)
        page.get_by_role("dialog").get_by_role("button", name="Change role").click()
    pages[0].get_by_text("a-clerk now has the role editor.").wait_for()
    alert = pages[1].get_by_role("dialog").get_by_role("alert").first
    expect(alert).to_contain_text("Someone else has changed a-clerk meanwhile.")
    choice = pages[1].get_by_role("dialog").get_by_label("Role")
    expect(choice).to_have_value("editor")
    choice.select_option("clerk")
    pages[1].get_by_role("dialog").get_by_role("button", name="Change role").click()
    pages[1].get_by_text("a-clerk now has the role clerk.").wait_for()


# --- roles ----------------------------------------------------------------------------------------


def test_a_role_is_changed_with_the_keyboard(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "roles?role=editor")
    box = page.get_by_role("checkbox", name="Delete: Papers")
    box.focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("1 change", exact=True)).to_be_visible()
    page.set_viewport_size({"width": 1000, "height": 250})
    scroll_down(page)
    lines = save(page)
    expect(lines).to_contain_text("paper: [find, findOne, create, update, delete]")
    page.get_by_role("dialog").get_by_role("button", name="Save").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The role editor was changed.")).to_be_in_viewport(ratio=1)
    assert text_of(site) == SITE.replace("create, update]\n  chief", "create, update, delete]\n  chief")
    expect(page.get_by_role("checkbox", name="Delete: Papers")).to_be_checked()
    upload = page.get_by_role("group", name="Media").get_by_role("checkbox").first
    expect(upload).to_be_disabled()
    assert upload.get_attribute("title") == "You don't have this permission yourself"


def test_a_role_is_created_and_deleted(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "roles")
    page.get_by_role("button", name="New role").click()
    page.get_by_label("Name").fill("guest")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Create").click()
    choice = page.get_by_label("Role", exact=True)
    expect(choice).to_have_value("guest")
    assert "  guest: {}\n" in text_of(site)
    page.get_by_role("button", name="Delete role").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete role").click()
    page.get_by_text("The role guest was deleted.").wait_for()
    assert text_of(site) == SITE


def test_two_people_at_the_same_role_keep_their_changes(enter: Callable[..., Page], site: Studio) -> None:
    pages = [enter(name, "roles?role=editor") for name in ("chief", "second")]
    for page, action in zip(pages, ("Delete: Papers", "See drafts: Papers"), strict=True):
        page.get_by_role("checkbox", name=action).check()
    for page in pages:
        save(page)
    pages[0].get_by_role("dialog").get_by_role("button", name="Save").click()
    pages[0].get_by_text("The role editor was changed.").wait_for()
    pages[1].get_by_role("dialog").get_by_role("button", name="Save").click()
    pages[1].get_by_text("Someone else has changed site.yaml meanwhile.").wait_for()
    expect(pages[1].get_by_role("checkbox", name="Delete: Papers")).to_be_checked()
    expect(pages[1].get_by_role("checkbox", name="See drafts: Papers")).to_be_checked()
    save(pages[1])
    pages[1].get_by_role("dialog").get_by_role("button", name="Save").click()
    pages[1].get_by_text("The role editor was changed.").wait_for()
    assert "    paper: [find, findOne, create, update, delete, readDraft]\n" in text_of(site)


def test_a_role_that_one_may_only_read_can_t_be_changed(enter: Callable[..., Page]) -> None:
    page = enter("reader", "roles?role=editor")
    expect(page.get_by_role("checkbox", name="List: Papers")).to_be_disabled()
    expect(page.get_by_role("button", name="Review and save")).to_have_count(0)


def test_the_site_is_shown_as_a_role_would_see_it(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "roles?role=reader")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.headers.get("bifolio-role", "")))
    page.get_by_role("link", name="See the site as reader").click()
    page.get_by_text("You see what the role reader would see").wait_for()
    side = page.get_by_role("navigation", name="Content")
    side.get_by_role("link", name=re.compile("^Papers")).click()
    page.get_by_role("link", name="Tides").click()
    title = page.get_by_role("textbox", name="Title")
    title.wait_for()
    assert title.is_disabled() or title.get_attribute("readonly") is not None
    assert "as=reader" in page.url
    assert "reader" in asked
    page.get_by_role("link", name="Go back to the role").click()
    page.get_by_role("heading", level=1, name="Roles").wait_for()
    expect(page.get_by_label("Role", exact=True)).to_have_value("reader")
    assert "as=" not in page.url


def test_one_leaves_the_view_as_a_role_that_is_gone(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "roles")
    page.goto(f"{site.url}?as=gone")
    page.get_by_text('unknown role "gone" in the header Bifolio-Role').wait_for()
    page.get_by_role("link", name="Leave the view as gone").click()
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()


# --- tokens and sessions --------------------------------------------------------------------------


def test_a_token_is_shown_once_and_revoked(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "tokens")
    page.get_by_text("No API tokens yet").wait_for()
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("website")
    page.get_by_role("group", name="Papers").get_by_label("List", exact=True).check()
    page.get_by_role("button", name="Create token").click()
    secret = page.get_by_role("dialog").get_by_label("Token", exact=True).input_value()
    page.get_by_role("button", name="Done").click()
    api = f"http://127.0.0.1:{site.port}/api/papers"
    assert page.request.get(api, headers={"Authorization": f"Bearer {secret}"}).ok
    row = page.get_by_role("listitem").filter(has_text="paper.find")
    page.reload()
    expect(row).to_contain_text("Used just now")
    assert secret not in page.content()
    row.get_by_role("button", name="Revoke website").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    page.get_by_text("The token website was revoked.").wait_for()
    assert page.request.get(api, headers={"Authorization": f"Bearer {secret}"}).status == 401


def test_the_reason_why_a_token_is_refused_is_in_view(enter: Callable[..., Page]) -> None:
    page = enter("chief", "tokens", viewport={"width": 1000, "height": 500})
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("website")
    page.keyboard.press("Enter")
    alert = page.get_by_role("dialog").get_by_role("alert").filter(has_text="permissions")
    expect(alert).to_be_in_viewport(ratio=1)


def test_one_sees_one_s_own_sessions(enter: Callable[..., Page]) -> None:
    page = enter("nobody", "sessions")
    expect(page.get_by_role("listitem").filter(has_text="Signed in")).to_contain_text("on Linux")


# --- settings -------------------------------------------------------------------------------------


def test_settings_are_changed_and_say_what_needs_a_restart(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "settings")
    page.get_by_label("Name", exact=True).fill("Pier")
    page.get_by_label("Rate limit").fill("100 per minute")
    expect(page.get_by_role("group", name="Preview")).to_have_count(0)  # only site.yaml can redirect editors
    lines = save(page)
    expect(lines).to_contain_text("Pier  # the town")
    page.get_by_text("A restart of the server is needed for: Rate limit.").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_text("Saved. Restart the server to apply: Rate limit.").wait_for()
    assert "name: Pier  # the town\n" in text_of(site)
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Pier")
    expect(page.get_by_role("link", name="Pier")).to_have_count(1)
    page.get_by_label("Name", exact=True).fill("")
    save(page)
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    assert "name:" not in text_of(site)


def test_an_invalid_setting_is_marked(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "settings")
    size = page.get_by_label("Page size: max")
    size.fill("5")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="api.page_size.default must not be greater").wait_for()
    expect(size).to_have_attribute("aria-invalid", "true")
    expect(size).to_be_focused()
    assert text_of(site) == SITE


def test_what_came_of_saving_is_in_view_at_the_end_of_long_settings(enter: Callable[..., Page]) -> None:
    page = enter("chief", "settings", viewport={"width": 1000, "height": 400})
    locale = page.get_by_label("Locales: default")
    locale.fill("german")
    scroll_down(page)
    page.get_by_role("button", name="Review and save").click()
    expect(locale).to_be_focused()
    expect(locale).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".save-bar").get_by_role("alert")).to_be_in_viewport(ratio=1)
    locale.fill("fr")
    scroll_down(page)
    save(page)
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_in_viewport(ratio=1)


def test_settings_that_one_may_only_read_can_t_be_changed(enter: Callable[..., Page]) -> None:
    page = enter("reader", "settings")
    expect(page.get_by_label("Name", exact=True)).to_be_disabled()
    expect(page.get_by_role("button", name="Review and save")).to_have_count(0)


# --- every page -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PEOPLE)
def test_every_page_is_accessible_at_every_size(
    path: str, scheme: str, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("chief", path, color_scheme=scheme)
    page.locator(".account-list, .permissions, .settings, .state").first.wait_for()
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), size
        picture(page, f"{path}-{scheme}{SHOWN[size]}")


@pytest.mark.parametrize(
    ("path", "button"),
    [("people", "Invite user"), ("people", "a-clerk"), ("roles", "New role"), ("tokens", "New token")],
)
def test_every_dialog_is_accessible(
    path: str, button: str, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("chief", path, viewport={"width": 320, "height": 640})
    page.get_by_role("button", name=re.compile(f"^{button}")).click()
    page.get_by_role("dialog").wait_for()
    check_access(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
