"""Signing in to the studio and signing out, in a browser."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.servers import stop
from tests.studio.conftest import ROOT, Page, Studio, expect

EDITOR = """
roles:
  public: {auth: [callback]}
  editor: {article: [find, findOne], tag: [find]}
"""


def test_a_key_in_the_address_signs_in_once(
    studio: Studio, signed_in: Any, new_page: Callable[..., Page]
) -> None:
    page = new_page()
    page.goto(studio.entrance)  # `signed_in` has already used this one-time key
    page.get_by_text("This key has already been used").wait_for()
    expect(page).to_have_url(studio.url)
    page.context.add_cookies(signed_in["cookies"])
    page.reload()
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    assert "key" not in page.evaluate("location.href + document.cookie + JSON.stringify(localStorage)")


def test_users_come_in_with_their_passwords_and_see_what_their_roles_may(
    tmp_path: Any, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    studio = Studio(tmp_path)
    settings = studio.root / "site.yaml"
    settings.write_text(settings.read_text().partition("roles:")[0] + EDITOR)
    add_user(studio, "nell", "editor")
    studio.start()
    try:
        page = new_page()
        page.goto(f"{studio.url}/article")
        page.get_by_role("heading", name="Slack Water").wait_for()
        check_access(page)
        page.get_by_label("E-mail address or user name").fill("nell")
        password = page.get_by_label("Password", exact=True)
        password.fill("wrong")
        page.get_by_label("Show password").check()
        expect(password).to_have_attribute("type", "text")
        page.get_by_label("Show password").uncheck()
        expect(password).to_have_attribute("type", "password")
        password.focus()
        page.keyboard.press("Enter")
        page.get_by_text("Invalid identifier or password").wait_for()
        password.fill("slack water")
        page.keyboard.press("Enter")
        # The page that was requested before signing in.
        expect(page.get_by_role("heading", level=1, name="Articles")).to_be_focused()
        types = page.get_by_role("navigation", name="Content").get_by_role("link")
        expect(types).to_have_text([re.compile("^Articles"), re.compile("^Tags")])
        expect(page.get_by_role("table")).to_contain_text("Goémon")
        expect(page.get_by_role("table")).not_to_contain_text("Status")  # The user may not read drafts.
        block_user(studio, "nell")
        page.get_by_role("link", name="Tags").click()
        page.get_by_text("Your session has ended").wait_for()
    finally:
        stop(studio.process)


def test_signing_out_shows_nothing_any_more(tmp_path: Any, new_page: Callable[..., Page]) -> None:
    studio = Studio(tmp_path)
    studio.start()
    try:
        page = new_page()
        page.goto(studio.entrance)
        page.get_by_role("heading", level=1, name="Recently changed").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_text("open the address that").wait_for()
        page.goto(f"{studio.url}/tag")
        page.get_by_text("open the address that").wait_for()
        assert page.context.cookies() == []
    finally:
        stop(studio.process)


def test_without_a_server_it_says_so_and_goes_on_when_that_is_back(
    tmp_path: Any, new_page: Callable[..., Page]
) -> None:
    studio = Studio(tmp_path)
    studio.start()
    try:
        page = new_page()
        page.goto(studio.entrance)
        page.get_by_role("heading", level=1, name="Recently changed").wait_for()
        page.context.set_offline(True)
        page.get_by_role("link", name="Tags").click()
        page.get_by_text("No connection", exact=True).wait_for()
        page.context.set_offline(False)
        page.get_by_role("rowheader", name="Lighthouses").wait_for()
    finally:
        stop(studio.process)


def add_user(studio: Studio, name: str, role: str) -> None:
    """Add a user whose password is "slack water"."""
    bifolio(
        studio, "user", "create", name, f"{name}@example.org", "--password", "slack water", "--role", role
    )


@contextmanager
def serving_users(studio: Studio, roles: Mapping[str, str]) -> Iterator[Studio]:
    """Context manager: run the server with a user `a-NAME` for each name, who has the role in `roles`."""
    for name, role in roles.items():
        add_user(studio, f"a-{name}", role)
    studio.start()
    try:
        yield studio
    finally:
        stop(studio.process)


def block_user(studio: Studio, name: str) -> None:
    bifolio(studio, "user", "block", name)


def bifolio(studio: Studio, *command: str) -> None:
    """Run a `bifolio` command for the site."""
    args = [sys.executable, "-m", "server", *command, "--site", str(studio.root)]
    subprocess.run(args, cwd=ROOT, check=True, capture_output=True)
