"""Every page of the studio: accessibility, screenshots, and no layout shifts while loading."""

import os
import re
import subprocess
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.servers import stop
from tests.studio.conftest import FIGURES, HERE, Page, Studio, expect, signed_in_at

# The content at each URL, and the name of its screenshot. An empty name means no screenshot.
PAGES = {"": "home", "/article": "list", "/home": "", "/nothing": "", "/tag/there/is/no/such/page": ""}
SIZES = {"wide": (1280, 800), "narrow": (320, 640)}
SHOWN = {"wide": "", "narrow": "-320"}


def is_shown(page: Page) -> None:
    """Wait until a page is completely loaded."""
    page.locator("main h1").wait_for()
    page.wait_for_load_state("networkidle")
    page.locator("[aria-busy=true]").wait_for(state="detached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_everybody_can_use_it(
    path: str,
    scheme: str,
    studio: Studio,
    signed_in: Any,
    new_page: Callable[..., Page],
    check_access: Callable[[Page], None],
) -> None:
    page = new_page(storage_state=signed_in, color_scheme=scheme)
    page.goto(studio.url + path)
    is_shown(page)
    assert page.title().endswith(" · Slack Water")
    for name, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if PAGES[path]:
            picture(page, f"{PAGES[path]}-{scheme}{SHOWN[name]}")


def picture(page: Page, name: str) -> None:
    """Take a screenshot. With the environment variable FIGURES=write, update the figure in docs/studio.md."""
    made = BytesIO()
    shown = Image.open(BytesIO(page.screenshot())).convert("RGB")
    shown.quantize(256, dither=Image.Dither.NONE).save(made, "PNG", optimize=True)
    assert len(made.getvalue()) < 100_000
    if os.environ.get("FIGURES") == "write":
        FIGURES.mkdir(parents=True, exist_ok=True)
        (FIGURES / f"{name}.png").write_bytes(made.getvalue())


def test_nothing_moves_while_a_page_loads(page: Page, studio: Studio) -> None:
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver((list) => list.getEntries().forEach((entry) => {"
        " moved += entry.value })).observe({type: 'layout-shift', buffered: true})"
    )
    for path in ("", "/article"):
        page.goto(studio.url + path)
        is_shown(page)
        assert page.evaluate("moved") < 0.01, path


def test_a_keyboard_is_enough(page: Page, studio: Studio) -> None:
    page.goto(studio.url)
    is_shown(page)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.get_by_role("link", name=re.compile("^Articles")).focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Articles").wait_for()
    # A screen reader continues at the focused heading. It gets the focus shortly after it has appeared.
    expect(page.get_by_role("heading", level=1, name="Articles")).to_be_focused()
    expect(page).to_have_title("Articles · Slack Water")


def hold(page: Page, module: str) -> list[Any]:
    """Hold back the responses for a module of the page. Return the list of the requests that are waiting."""
    held: list[Any] = []
    page.route(f"**/-/*/{module}", lambda route: held.append(route))
    return held


@pytest.mark.parametrize(
    ("link", "part"),
    [("Articles", "documents/pages.js"), ("Problems", "site/problems-page.js")],
    ids=["list", "problems"],
)
def test_a_page_that_is_loaded_first_is_named_and_has_the_focus_then(
    link: str, part: str, page: Page, studio: Studio
) -> None:
    held = hold(page, part)
    page.goto(studio.url)
    page.get_by_role("link", name=re.compile(f"^{link}")).click()
    page.get_by_text("Loading…").wait_for()
    for route in held:
        route.continue_()
    expect(page.get_by_role("heading", level=1, name=link)).to_be_focused()
    expect(page).to_have_title(f"{link} · Slack Water")


def test_a_page_that_is_loaded_leaves_the_focus_in_a_dialog(page: Page, studio: Studio) -> None:
    held = hold(page, "documents/pages.js")
    page.goto(studio.url)
    page.get_by_role("link", name=re.compile("^Articles")).click()
    page.get_by_text("Loading…").wait_for()
    page.keyboard.press("Control+k")
    finder = page.get_by_role("combobox", name="Find documents and commands")
    expect(finder).to_be_focused()
    for route in held:
        route.continue_()
    expect(page).to_have_title("Articles · Slack Water")
    expect(finder).to_be_focused()


def test_a_narrow_screen_has_the_types_behind_a_button(page: Page, studio: Studio) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(studio.url)
    is_shown(page)
    tags = page.get_by_role("navigation", name="Content").get_by_role("link", name=re.compile("^Tags"))
    expect(tags).to_be_hidden()
    page.get_by_role("button", name="Open the menu").click()
    tags.click()
    page.get_by_role("heading", level=1, name="Tags").wait_for()
    expect(tags).to_be_hidden()


def test_what_is_chosen_stays_visible(
    tmp_path: Path, new_page: Callable[..., Page], browser: Any, check_access: Callable[[Page], None]
) -> None:
    """In a low window, with a long word in a title, and in forced colors."""
    studio = Studio(tmp_path)
    (studio.root / "content/articles/long.md").write_text(f"---\ntitle: {'x' * 120}\nslug: x\n---\n")
    studio.start()
    try:
        page = new_page(storage_state=signed_in_at(studio, browser), forced_colors="active")
        page.set_viewport_size({"width": 1280, "height": 500})
        page.goto(f"{studio.url}/site/-/settings")
        is_shown(page)
        menu = page.get_by_role("navigation", name="Content")
        expect(menu.get_by_role("link", name="Settings")).to_be_in_viewport(ratio=0.9)
        menu.get_by_role("link", name="Home").click()
        page.wait_for_url(f"{studio.url}/home/home")
        page.goto(f"{studio.url}/article/-/new?locale=fr")
        page.get_by_text("Language: French (fr)").wait_for()
        page.goto(f"{studio.url}/article")
        is_shown(page)
        expect(page.get_by_role("columnheader", name="Changed")).to_be_in_viewport(ratio=0.9)
        color = "e => getComputedStyle(e).backgroundColor"
        button = page.get_by_role("button", name="Filter", exact=True)
        before = button.evaluate(color)
        button.click()
        assert button.evaluate(color) != before
        links = [menu.get_by_role("link", name=name) for name in ("Articles", "Authors")]
        assert links[0].evaluate(color) != links[1].evaluate(color)
        marks = [page.locator(f".status.is-{name}").first for name in ("published", "draft")]
        filled = [mark.evaluate("e => getComputedStyle(e, '::before').backgroundColor") for mark in marks]
        assert filled[0] != filled[1]
        check_access(page)
        for path, opener in (("tokens", "New token"), ("types?type=article", "Add attribute")):
            page.goto(f"{studio.url}/site/-/{path}")
            page.get_by_role("button", name=opener).click()
            send = page.get_by_role("dialog").locator(".primary")
            expect(send).to_be_in_viewport(ratio=0.9)
        expect(page.get_by_text("Changes of the last hour")).to_be_hidden()
    finally:
        stop(studio.process)


def test_the_modules_fit_their_types(packages: Path) -> None:
    checked = subprocess.run(
        ["node", packages / "typescript/bin/tsc", "-p", HERE / "tsconfig.json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert checked.stdout == ""
