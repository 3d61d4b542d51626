"""Webhooks and the log of events in the studio."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.receivers import Receiver, receiving, status
from tests.servers import stop
from tests.sites import schema, write
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import serving_users
from tests.studio.conftest import Page, Studio, expect, signed_in_users

SITE = """\
name: Harbour
webhooks_allow: [127.0.0.1]
webhooks:
  - name: build
    url: http://127.0.0.1:{port}/a-secret-path
    headers: {{Authorization: Bearer squeamish}}
    events: [entry.*]
roles:
  public: {{auth: [callback]}}
  chief:
    paper: [find, findOne, create, update, delete, readDraft, updateDraft]
    upload: [find]
    history: [read]
    webhook: [read, write, send, rotate]
  operator: {{paper: [find, findOne], webhook: [read, send]}}
  editor: {{paper: [find, findOne, readDraft, create, update], history: [read]}}
  reader: {{paper: [find, findOne]}}
"""
LINKS = {
    "chief": ["Webhooks", "Events"],
    "operator": ["Webhooks", "Events"],
    "editor": ["Events"],
    "reader": [],
}
SHOWN_PAGES = {"webhooks": "webhooks", "webhooks/build": "webhook", "events": "events"}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Studio]:
    """A server of a site with a webhook and a user in each role."""
    files = {
        "content-types/paper.json": schema("paper", {"title": "string", "text": "text"}, drafts=True),
        "content/papers/tides.yaml": "title: Tides\n",
        "site.yaml": SITE.format(port=receiver.port),
    }
    studio = Studio(tmp_path_factory.mktemp("webhooks"), files=files)
    with serving_users(studio, {role: role for role in LINKS}):
        yield studio


@pytest.fixture(scope="module")
def sessions(site: Studio, browser: Any) -> dict[str, Any]:
    """The browser state in which each role's user is signed in, by role."""
    return signed_in_users(site, browser, LINKS)


@pytest.fixture
def enter(site: Studio, sessions: dict[str, Any], new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A function that opens a page of the studio as a user with a role."""

    def enter(role: str, path: str, **options: Any) -> Page:
        page = new_page(storage_state=sessions[role], **options)
        page.goto(f"{site.url}/site/-/{path}")
        page.locator("main h1").wait_for()
        return page

    return enter


def edit(site: Studio, name: str, title: str) -> None:
    write(site.root, {f"content/papers/{name}.yaml": f"title: {title}\n"})


@pytest.mark.parametrize("role", LINKS)
def test_each_role_has_the_pages_that_it_may_use(role: str, enter: Callable[..., Page]) -> None:
    page = enter(role, "webhooks")
    side = page.get_by_role("navigation", name="Content")
    for link in ("Webhooks", "Events"):
        expect(side.get_by_role("link", name=link)).to_have_count(int(link in LINKS[role]))
    refused = page.get_by_text("Your role can't see webhooks")
    expect(refused).to_have_count(int("Webhooks" not in LINKS[role]))
    expect(page.get_by_role("button", name="New webhook")).to_have_count(int(role == "chief"))
    if role == "operator":
        page.get_by_role("link", name="build").click()
        page.get_by_text("Your role can't see deliveries").wait_for()
        expect(page.get_by_role("button", name="Send test")).to_have_count(1)
        expect(page.get_by_role("button", name="New secret")).to_have_count(0)


def test_a_failed_delivery_is_looked_at_and_sent_again(
    enter: Callable[..., Page], site: Studio, receiver: Receiver, check_access: Callable[[Page], None]
) -> None:
    page = enter("chief", "webhooks/build")
    receiver.answer = status(204)
    page.get_by_role("button", name="Send test").press("Enter")
    page.get_by_text("The receiver responded with 204").wait_for()
    receiver.answer = status(410, body="gone: Bearer squeamish")
    edit(site, "fog", "Fog")
    page.get_by_text("Failed: 410").first.wait_for()
    page.get_by_role("button", name=re.compile("entry.*410")).first.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Response")).to_have_text("gone: •••")
    expect(dialog.get_by_label("Request")).to_contain_text('"title": "Fog"')
    expect(dialog.get_by_label("Request")).to_contain_text("Authorization: •••")
    check_access(page)
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    receiver.answer = status(204)
    page.get_by_role("button", name="Enable").click()
    page.get_by_text("The webhook is enabled").wait_for()
    page.get_by_role("button", name=re.compile("entry.*410")).first.click()
    dialog.get_by_role("button", name="Send again").click()
    page.get_by_role("button", name=re.compile("entry.*Delivered: 204")).first.wait_for()
    page.get_by_role("button", name="Failed", exact=True).click()
    page.wait_for_url("**?state=failed")


def test_a_secret_is_generated_and_shown_once(
    enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("chief", "webhooks/build")
    page.get_by_role("button", name="New secret").click()
    page.get_by_role("dialog").get_by_role("button", name="Generate").click()
    secret = page.get_by_role("dialog").get_by_label("Secret")
    assert secret.input_value().startswith("whsec_")
    check_access(page)
    page.get_by_role("button", name="Done").click()
    page.get_by_text("also signed with the old secret").wait_for()
    again = page.get_by_role("button", name="New secret")
    expect(again).to_be_disabled()
    expect(again).to_have_accessible_description(re.compile("A new one can be generated after that"))


def test_the_form_of_a_webhook_explains_hidden_headers_and_survives_its_plan(
    enter: Callable[..., Page], site: Studio, receiver: Receiver
) -> None:
    before = (site.root / "site.yaml").read_text()
    page = enter("chief", "webhooks")
    dialog = page.get_by_role("dialog")
    headers, review = dialog.get_by_label("Headers"), dialog.get_by_role("button", name="Review and save")
    page.get_by_role("button", name="New webhook").click()
    dialog.get_by_label("Name", exact=True).fill("cache")
    dialog.get_by_label("URL").fill(f"http://127.0.0.1:{receiver.port}/")
    expect(headers).not_to_have_accessible_description(re.compile("•••"))
    headers.fill("X-Key: •••")
    review.click()
    expect(dialog.get_by_role("alert")).to_contain_text("Enter one for: X-Key.")
    expect(headers).to_be_focused()
    headers.fill("X-Key: swordfish")
    review.click()
    dialog.get_by_text("- name: cache").wait_for()
    dialog.get_by_role("button", name="Back").click()
    expect(headers).to_have_value("X-Key: swordfish")
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("cache")
    page.goto(f"{site.url}/site/-/webhooks/build")
    page.get_by_role("button", name="Edit").click()
    expect(headers).to_have_accessible_description(re.compile("To remove a header, delete its line"))
    dialog.get_by_label("URL").fill(f"http://127.0.0.1:{receiver.port}/other")
    review.click()
    alert = dialog.get_by_role("alert").get_by_text("or delete their lines: Authorization.")
    expect(alert).to_be_in_viewport()
    expect(headers).to_be_focused()
    headers.fill("")
    dialog.get_by_label("Enabled").uncheck()
    review.click()
    dialog.get_by_text("0 waiting deliveries are dropped").wait_for()
    expect(dialog.get_by_label("Changed lines").or_(dialog.locator(".code"))).to_contain_text("/other")
    page.keyboard.press("Escape")
    expect(dialog.get_by_label("Enabled")).not_to_be_checked()
    assert (site.root / "site.yaml").read_text() == before


def test_a_webhook_is_created_tested_edited_and_deleted_by_keyboard(
    enter: Callable[..., Page], site: Studio, receiver: Receiver, check_access: Callable[[Page], None]
) -> None:
    before = (site.root / "site.yaml").read_text()
    receiver.answer = status(204)
    page = enter("chief", "webhooks", color_scheme="light")
    dialog = page.get_by_role("dialog")

    def look(name: str) -> None:
        check_access(page)
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, size)
            check_access(page)
            picture(page, f"webhook-{name}-light{SHOWN[size]}")

    def fill(label: str, text: str) -> None:
        page.get_by_label(label, exact=True).focus()
        page.keyboard.press("Control+a")
        page.keyboard.type(text)

    page.get_by_role("button", name="New webhook").press("Enter")
    expect(dialog.get_by_label("Name", exact=True)).to_be_focused()
    fill("Name", "cache")
    fill("URL", "http://10.0.0.1/")
    fill("Headers", "X-Key: swordfish")
    dialog.get_by_label("entry.*").press("Space")
    look("new")
    dialog.get_by_role("button", name="Review and save").press("Enter")
    expect(dialog.get_by_role("alert").get_by_text("10.0.0.1 is not a public address")).to_be_in_viewport()
    expect(dialog.get_by_label("URL")).to_be_focused()
    fill("URL", f"http://127.0.0.1:{receiver.port}/hook?key=1")
    page.keyboard.press("Enter")
    dialog.get_by_text("- name: cache").wait_for()
    look("review")
    assert (site.root / "site.yaml").read_text() == before
    dialog.get_by_role("button", name="Create").press("Enter")
    secret = dialog.get_by_label("Secret")
    assert secret.input_value().startswith("whsec_")
    dialog.get_by_role("button", name="Done").press("Enter")
    page.get_by_role("heading", level=1, name="cache").wait_for()
    page.get_by_role("button", name="Send test").press("Enter")
    page.get_by_text("The receiver responded with 204").wait_for()
    assert (receiver.received[-1].path, receiver.received[-1].headers["x-key"]) == (
        "/hook?key=1",
        "swordfish",
    )

    page.get_by_role("button", name="Edit").press("Enter")
    expect(dialog.get_by_label("URL")).to_have_value(f"http://127.0.0.1:{receiver.port}/…")
    expect(dialog.get_by_label("Headers")).to_have_value("X-Key: •••\n")
    expect(dialog.get_by_label("entry.*")).to_be_checked()
    dialog.get_by_label("Paper", exact=True).press("Space")
    # Somebody changes the file while the dialog is open.
    write(site.root, {"site.yaml": (site.root / "site.yaml").read_text() + "# edited\n"})
    dialog.get_by_role("button", name="Review and save").press("Enter")
    dialog.get_by_role("alert").get_by_text("Someone else has changed site.yaml").wait_for()
    dialog.get_by_role("button", name="Review and save").press("Enter")
    dialog.get_by_text("types: [paper]").wait_for()
    dialog.get_by_role("button", name="Save").press("Enter")
    page.get_by_text("Saved.").wait_for()
    page.get_by_text("Sends entry.*, paper to http").wait_for()
    assert "X-Key: swordfish" in (site.root / "site.yaml").read_text()

    page.get_by_role("button", name="Delete").press("Enter")
    dialog.get_by_text("X-Key: (hidden)").wait_for()
    check_access(page)
    dialog.get_by_role("button", name="Delete").press("Enter")
    page.get_by_text("Deleted cache").wait_for()
    expect(page.get_by_role("link", name="cache")).to_have_count(0)
    assert (site.root / "site.yaml").read_text() == before + "# edited\n"


def test_events_appear_pause_and_continue_after_an_outage(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("editor", "events")
    rows = page.get_by_role("list", name="Events").get_by_role("listitem")
    page.get_by_role("status").get_by_text("Live").wait_for()
    edit(site, "mist", "Mist")
    rows.filter(has_text="mist").first.wait_for()
    count = rows.count()
    page.get_by_role("button", name="Pause").click()
    edit(site, "haze", "Haze")
    page.get_by_text("Paused: 2 new").wait_for()
    assert rows.count() == count
    page.get_by_role("button", name="Pause").click()
    expect(rows).to_have_count(count + 2)
    stop(site.process)
    page.get_by_text("Connecting…").wait_for()
    edit(site, "dew", "Dew")
    site.start()
    rows.filter(has_text="dew").first.wait_for(timeout=20_000)
    page.get_by_label("Event", exact=True).select_option("entry.create")
    expect(rows.filter(has_text="A document is published")).to_have_count(0)
    rows.filter(has_text="A document is created").first.wait_for()
    rows.filter(has_text="dew").get_by_role("link").click()
    page.get_by_role("heading", level=1, name="Dew").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_at_every_size(
    scheme: str, enter: Callable[..., Page], site: Studio, check_access: Callable[[Page], None]
) -> None:
    for path, name in SHOWN_PAGES.items():
        page = enter("chief", path, color_scheme=scheme)
        page.locator(".account-list").first.wait_for()
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            check_access(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, size)
            picture(page, f"{name}-{scheme}{SHOWN[size]}")
