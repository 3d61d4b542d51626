"""The panel with a document's file, in a browser: what it displays, and how a save would change the file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_pages import SIZES
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio, expect, sign_in
from tests.waiting import until

BESIDE_A_PANEL_PX = 567.5  # the width of a form next to a panel, if the window is 1280 pixels wide
AUTHOR = "content/authors/winifred-stannage.yaml"


@pytest.fixture
def own(tmp_path: Path) -> Any:
    """A server of a site that a single test may change."""
    made = Studio(tmp_path)
    made.start()
    yield made
    stop(made.process)


def enter(page: Page, studio: Studio, path: str) -> None:
    page.goto(studio.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    page.goto(f"{studio.url}/{path}")


def difference(page: Page, path: str) -> Any:
    """Return the displayed lines of the change to a file."""
    return page.get_by_label(f"Changed: {path}")


def but_timestamps(lines: Any) -> Any:
    """Return the lines of a file without the timestamps that each write sets."""
    return lines.filter(has_not_text="updatedAt").filter(has_not_text="createdAt")


@pytest.mark.parametrize("width", [1280, 1920])
def test_a_panel_leaves_the_form_where_it_is(page: Page, studio: Studio, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{studio.url}/author/winifred-stannage")
    heading = page.get_by_role("heading", level=1, name="Winifred Stannage")
    before = heading.bounding_box()
    page.get_by_role("button", name="File", exact=True).click()
    page.get_by_role("complementary", name="File").wait_for()
    after = heading.bounding_box()
    assert after["x"] == before["x"]
    assert after["width"] == (before["width"] if width > 1280 else BESIDE_A_PANEL_PX)


def test_the_panel_shows_the_file_and_what_a_save_would_change(
    page: Page, studio: Studio, check_access: Callable[[Page], None]
) -> None:
    before = (studio.root / AUTHOR).read_text()
    page.goto(f"{studio.url}/author/winifred-stannage?panel=file")
    panel = page.get_by_role("complementary", name="File")
    panel.get_by_text(AUTHOR, exact=True).wait_for()
    expect(page.get_by_label(f"Text of {AUTHOR}")).to_contain_text("name: Winifred Stannage")
    panel.get_by_text("No changes. Everything is saved.").wait_for()
    page.get_by_label("Based in").fill("Elsewhere")
    expect(difference(page, AUTHOR)).to_contain_text("Elsewhere")
    page.get_by_label("Based in").fill("Port Elsewhere")
    expect(but_timestamps(panel.locator("ins"))).to_have_text(["basedIn: Port Elsewhere"])
    expect(but_timestamps(panel.locator("del"))).to_have_text(["basedIn: Port Ardle"])
    expect(panel.locator(".is-added .code-mark").first).to_have_text("+")
    check_access(page)
    assert (studio.root / AUTHOR).read_text() == before


def test_keys_that_the_type_does_not_have_are_shown_and_stay(page: Page, own: Studio) -> None:
    file = own.root / AUTHOR
    file.write_text(f"weight: 5\nbuild: {{list: never}}\n{file.read_text()}")
    enter(page, own, "author/winifred-stannage")
    keys = page.get_by_role("region", name="Other keys in the file")
    keys.get_by_text("list: never").wait_for()
    expect(keys).not_to_contain_text("name:")
    page.get_by_label("Based in").fill("Elsewhere")
    page.keyboard.press("Control+s")
    until(lambda: "basedIn: Elsewhere" in file.read_text())
    assert file.read_text().startswith("weight: 5\nbuild: {list: never}\n")
    with page.expect_response(lambda answer: "/source/authors/nell" in answer.url):
        page.goto(f"{own.url}/author/nell-trevanion")
    page.get_by_label("Based in").wait_for()
    expect(keys).to_have_count(0)


def test_keys_that_the_type_does_not_have_are_edited_as_source(
    page: Page, own: Studio, check_access: Callable[[Page], None]
) -> None:
    file = own.root / AUTHOR
    before = f"weight: 5   # of them\nbuild: {{list: never}}\n{file.read_text()}"
    file.write_text(before)
    enter(page, own, "author/winifred-stannage")
    page.get_by_label("Based in").fill("Not saved")
    keys = page.get_by_role("region", name="Other keys in the file")
    keys.get_by_role("button", name="Edit").click()
    area = keys.get_by_role("textbox", name="Other keys in the file")
    typed = area.input_value()
    save = keys.get_by_role("button", name="Save keys")
    area.fill(typed.replace("weight: 5", "weight: [6"))
    save.click()
    keys.get_by_role("alert").filter(has_text="line").wait_for()
    check_access(page)
    file.write_text(before.replace("never", "always"))
    area.fill(typed.replace("weight: 5", "weight: 6"))
    area.press("Control+s")
    keys.get_by_role("alert").filter(has_text="The file has changed since you opened it").wait_for()
    keys.get_by_label("Current text of the file").get_by_text("list: always").wait_for()
    assert "weight: 5" in file.read_text()
    area.fill(area.input_value().replace("never", "always"))
    save.click()
    keys.get_by_role("button", name="Edit").wait_for()
    after = file.read_text()
    assert after.replace("weight: 6", "weight: 5").splitlines()[:2] == [
        "weight: 5   # of them",
        "build: {list: always}",
    ]
    assert "Not saved" not in after
    expect(page.get_by_label("Based in")).to_have_value("Not saved")


def test_the_panel_says_why_it_can_not_be_saved(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/author/winifred-stannage?panel=file")
    page.get_by_label("Email").fill("no address")
    page.get_by_text("Can't be saved yet").wait_for()


def test_a_new_document_is_shown_as_the_file_that_it_will_be(page: Page, studio: Studio) -> None:
    page.goto(f"{studio.url}/tag/-/new?panel=file")
    page.get_by_label("Name").fill("Moonlight")
    lines = page.get_by_role("complementary", name="File").locator("ins")
    expect(lines.filter(has_text="name: Moonlight")).to_have_count(1)
    assert not list((studio.root / "content/tags").glob("moonlight*"))


def test_the_change_is_looked_at_before_it_is_saved(page: Page, own: Studio) -> None:
    enter(page, own, "author/winifred-stannage?panel=file")
    page.get_by_label("Review changes before saving").check()
    page.get_by_label("Based in").fill("Elsewhere")
    page.keyboard.press("Control+s")
    dialog = page.get_by_role("dialog", name="Changes made by saving")
    dialog.get_by_text("basedIn: Elsewhere").wait_for()
    dialog.get_by_role("button", name="Back").click()
    dialog.wait_for(state="detached")
    assert "Port Ardle" in (own.root / AUTHOR).read_text()
    page.reload()  # The browser has stored the choice, and the typed values.
    page.get_by_label("Based in").wait_for()
    page.get_by_label("Based in").fill("Anywhere")
    page.keyboard.press("Control+s")
    dialog.get_by_text("basedIn: Anywhere").wait_for()
    dialog.get_by_role("button", name="Save").click()
    until(lambda: "basedIn: Anywhere" in (own.root / AUTHOR).read_text())


def test_publishing_is_looked_at_as_one_step(page: Page, own: Studio) -> None:
    enter(page, own, "article/2025--goemon?panel=file")
    page.get_by_label("Review changes before saving").check()
    page.get_by_label("Title", exact=True).fill("Goémon, again")
    page.get_by_role("button", name="Publish").click()
    dialog = page.get_by_role("dialog", name="Changes made by publishing")
    dialog.get_by_text("title: Goémon, again").wait_for()
    expect(dialog.get_by_role("heading", level=4)).to_have_count(1)  # No draft remains.
    assert not (own.root / "content/articles/2025/goemon.draft.md").exists()


def test_a_role_that_may_not_read_files_is_not_offered_them(
    own: Studio, new_page: Callable[..., Page]
) -> None:
    rights = "author: [find, findOne, update]"
    (own.root / "site.yaml").write_text(
        f"roles:\n  public: {{auth: [callback]}}\n  authenticated: {{{rights}}}\n"
    )
    add_user(own, "nell", "authenticated")
    page = new_page()
    page.goto(own.url)
    sign_in(page, "nell")
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    page.goto(f"{own.url}/author/winifred-stannage?panel=file")
    page.locator("#panel-button-preview").wait_for()  # The button is in the same row.
    expect(page.get_by_role("button", name="File")).to_have_count(0)
    expect(page.get_by_role("complementary", name="File")).to_have_count(0)


def test_who_may_not_write_files_reads_the_other_keys(own: Studio, new_page: Callable[..., Page]) -> None:
    file = own.root / AUTHOR
    file.write_text(f"weight: 5\n{file.read_text()}")
    rights = "author: [find, findOne, update], source: [read]"
    (own.root / "site.yaml").write_text(
        f"roles:\n  public: {{auth: [callback]}}\n  authenticated: {{{rights}}}\n"
    )
    add_user(own, "nell", "authenticated")
    page = new_page()
    page.goto(own.url)
    sign_in(page, "nell")
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    page.goto(f"{own.url}/author/winifred-stannage")
    keys = page.get_by_role("region", name="Other keys in the file")
    keys.get_by_text("weight: 5").wait_for()
    expect(keys.get_by_role("button")).to_have_count(0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_screen(
    new_page: Callable[..., Page],
    signed_in: Any,
    studio: Studio,
    check_access: Callable[[Page], None],
    size: str,
    scheme: str,
) -> None:
    page = new_page(
        storage_state=signed_in,
        viewport=dict(zip(("width", "height"), SIZES[size], strict=True)),
        color_scheme=scheme,
    )
    page.goto(f"{studio.url}/author/winifred-stannage")
    page.get_by_label("Based in").fill("Elsewhere")
    page.get_by_role("button", name="File").click()
    expect(difference(page, AUTHOR)).to_contain_text("Elsewhere")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    check_access(page)
