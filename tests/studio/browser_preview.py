"""The preview next to a form, in a browser. The front end has another origin, as front ends for Strapi
have.
"""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from server.auth.accounts import Accounts
from tests.servers import stop
from tests.studio.browser_pages import SIZES
from tests.studio.conftest import Page, Studio, expect
from tests.waiting import until

FRONT_END = Path(__file__).parent / "front_end/preview.html"
HOSTILE = FRONT_END.with_name("hostile.html")
STORY: dict[str, Any] = {
    "title": {"type": "string", "required": True},
    "summary": {"type": "text"},
    "seo": {"type": "component", "component": "shared.seo"},
    "parts": {"type": "dynamiczone", "components": ["shared.quote", "home.hero"]},
    "cover": {"type": "media"},
    "author": {"type": "relation", "relation": "manyToOne", "target": "api::writer.writer"},
}
WRITER: dict[str, Any] = {
    "name": {"type": "string"},
    "seo": {"type": "component", "component": "shared.seo"},
}
ONE = {
    "title": "One",
    "summary": "A summary",
    "seo": {"metaTitle": "Found as one"},
    "parts": [
        {"__component": "shared.quote", "body": "Quoted"},
        {"__component": "home.hero", "heading": "Hero"},
    ],
    "cover": "causeway.png",
    "author": "ann",
}


class Front:
    """A server for the only page of the front end. A test may replace the page."""

    def __init__(self) -> None:
        front, self.text = self, ""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = front.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.server.server_port}"


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    made = Front()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, front: Front) -> Iterator[Studio]:
    """A server of a site whose stories have a preview."""
    studio = Studio(tmp_path_factory.mktemp("preview"))
    for name, plural, attributes in (("story", "stories", STORY), ("writer", "writers", WRITER)):
        schema = {
            "info": {"singularName": name, "pluralName": plural, "displayName": name.title()},
            "options": {"draftAndPublish": name == "story"},
            "attributes": attributes,
        }
        (studio.root / f"content-types/{name}.json").write_text(json.dumps(schema))
        (studio.root / f"content/{plural}").mkdir()
    settings = studio.root / "site.yaml"
    address = f"{front.origin}/preview?id={{documentId}}&status={{status}}&locale={{locale}}"
    settings.write_text(f"{settings.read_text()}\npreview:\n  story: {address}\n  page: /{{slug}}\n")
    token = Accounts(studio.root, "").create_token("preview", "read-only")
    write_story(studio)
    studio.start()
    text = FRONT_END.read_text()
    front.text = text.replace("STUDIO_ORIGIN", studio.url.removesuffix("/studio")).replace("THE_TOKEN", token)
    yield studio
    stop(studio.process)


def write_story(studio: Studio) -> None:
    """Write the story `one` and its author in their initial state."""
    stories = studio.root / "content/stories"
    for path in stories.iterdir():
        path.unlink()
    (stories / "one.json").write_text(json.dumps(ONE))
    ann = {"name": "Ann", "seo": {"metaTitle": "About Ann"}}
    (studio.root / "content/writers/ann.json").write_text(json.dumps(ann))


@pytest.fixture(scope="module")
def entered(site: Studio, browser: Any) -> Any:
    """The browser state in which the owner of `site` is signed in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    # With this setting, the preview is not scaled. Playwright can't click in a scaled frame.
    page.evaluate("localStorage['bifolio.preview.device'] = 'Phone'")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def form(site: Studio, entered: Any, new_page: Callable[..., Page]) -> Page:
    """The form of the story with its preview next to it, in a browser in which the owner is signed in."""
    write_story(site)
    page = new_page(storage_state=entered)
    until(lambda: page.request.get(f"{site.url[:-7]}/access").ok)
    page.goto(f"{site.url}/story/one?panel=preview")
    return page


def shown(page: Page) -> Any:
    """Return the page in the frame, once the studio has injected its script."""
    frame = page.frame_locator(".preview-frame")
    frame.locator("h1[data-strapi-source]").wait_for()
    return frame


def focused(page: Page) -> str:
    """Return the id of the element that has the focus."""
    return str(page.evaluate("document.activeElement.id"))


def test_it_is_shown_as_wide_as_a_phone_a_tablet_and_a_desktop(form: Page) -> None:
    frame = shown(form)
    for name, width in (("Phone", 390), ("Tablet", 820), ("Desktop", 1280)):
        form.get_by_role("button", name=name, exact=True).click()
        until(lambda width=width: frame.locator("html").evaluate("() => innerWidth") == width)
        box = form.locator(".preview-frame").bounding_box()
        panel = form.locator("#panel").bounding_box()
        assert box
        assert panel
        assert box["x"] >= panel["x"] - 1
        assert box["x"] + box["width"] <= panel["x"] + panel["width"] + 1  # The preview is scaled to fit.
    form.reload()
    shown(form)
    expect(form.get_by_role("button", name="Desktop", exact=True)).to_have_attribute("aria-pressed", "true")


# Delays what the studio's page does after rendering, as on a busy machine.
LATE = """
const [soon, later] = [requestAnimationFrame, setTimeout];
window.requestAnimationFrame = (act) => later(() => soon(act), 800);
window.setTimeout = (act, ms, ...rest) => later(act, ms > 100 ? ms : 800, ...rest);
"""


READY = """<!doctype html><title>Ready</title><link rel=icon href=data:,><body><script>
addEventListener("message", ({ data }) => { document.body.dataset.heard = data.type });
parent.postMessage({ type: "previewReady" }, "*");
</script>"""


def test_a_page_that_is_ready_at_once_is_heard(
    site: Studio, front: Front, entered: Any, new_page: Callable[..., Page]
) -> None:
    whole, front.text = front.text, READY
    try:
        page = new_page(storage_state=entered)
        page.add_init_script(f"if (location.pathname.startsWith('/studio')) {{ {LATE} }}")
        page.goto(f"{site.url}/story/one?panel=preview")
        heard = page.frame_locator(".preview-frame").locator("body")
        expect(heard).to_have_attribute("data-heard", "strapiScript")
    finally:
        front.text = whole


def test_texts_say_where_they_come_from_and_look_as_they_are(form: Page) -> None:
    frame = shown(form)
    assert frame.locator("h1").evaluate("e => e.textContent") == "One"
    assert str(frame.locator("img").get_attribute("alt")).endswith("with two white houses.")
    source = frame.locator(".part").nth(1).get_attribute("data-strapi-source")
    assert "path=parts.1.heading" in str(source)
    assert "path=cover.alternativeText" in str(frame.locator("img").get_attribute("data-strapi-source"))
    expect(form.get_by_text("Double-click text to edit it")).to_be_visible()


def test_what_the_pointer_is_on_is_outlined(form: Page) -> None:
    frame = shown(form)
    box = frame.locator("html > div[aria-hidden=true]")
    assert not box.is_visible()
    frame.locator("h1").hover()
    until(box.is_visible)
    around, inside = box.bounding_box(), frame.locator("h1").bounding_box()
    assert around
    assert inside
    assert around["y"] < inside["y"] < inside["y"] + inside["height"] < around["y"] + around["height"]
    frame.locator("#rendered").hover()
    until(lambda: not box.is_visible())


def test_what_is_edited_is_outlined(form: Page) -> None:
    frame = shown(form)
    form.get_by_label("Summary").focus()
    box = frame.locator("html > div[aria-hidden=true]")
    until(box.is_visible)
    until(
        lambda: (
            abs((box.bounding_box() or {})["y"] - (frame.locator("#summary").bounding_box() or {})["y"]) < 8
        )
    )


def test_a_double_click_opens_the_field(form: Page) -> None:
    frame = shown(form)
    for clicked, field in [
        ("h1", "field-title"),
        ("#summary", "field-summary"),
        ("#seo", "field-seo--metaTitle"),
        (".part >> nth=0", "field-parts--0--body"),
        (".part >> nth=1", "field-parts--1--heading"),
    ]:
        frame.locator(clicked).dblclick()
        expect(form.locator(f"#{field}")).to_be_focused()
        expect(form.locator(f"#{field}")).to_be_visible()


def test_a_double_click_opens_the_field_in_a_page_that_is_made_smaller(form: Page) -> None:
    frame = shown(form)
    form.get_by_role("button", name="Desktop", exact=True).click()
    until(lambda: frame.locator("html").evaluate("() => innerWidth") == 1280)
    around = form.locator(".preview-frame").bounding_box()
    assert around
    inside = frame.locator("#seo").evaluate("e => e.getBoundingClientRect().toJSON()")
    scale = around["width"] / 1280
    assert scale < 0.6
    middle = inside["y"] + inside["height"] / 2
    form.mouse.dblclick(around["x"] + 30 * scale, around["y"] + middle * scale)
    until(lambda: focused(form) == "field-seo--metaTitle")


def test_a_double_click_on_an_image_opens_its_field(form: Page) -> None:
    shown(form).locator("img").dblclick()
    until(lambda: form.evaluate("document.activeElement.closest('#field-cover') !== null"))


def test_a_link_is_followed_by_one_click_and_not_by_two(form: Page, site: Studio) -> None:
    frame = shown(form)
    frame.locator("#author").click()
    until(lambda: frame.locator("html").evaluate("() => location.hash") == "#author")
    frame.locator("html").evaluate("() => { location.hash = '' }")
    frame.locator("#author").dblclick()
    form.wait_for_url("**/studio/writer/ann?*")
    until(lambda: focused(form) == "field-name")


def test_a_text_of_another_document_opens_that_once_what_is_not_saved_may_be_left(form: Page) -> None:
    frame = shown(form)
    form.get_by_label("Title", exact=True).fill("Not saved")
    frame.locator("#author-seo").dblclick()
    asked = form.get_by_role("dialog", name="Leave the page?")
    asked.get_by_role("button", name="Cancel").click()
    assert "/studio/story/one" in form.url
    frame.locator("#author-seo").dblclick()
    asked.get_by_role("button", name="Leave").click()
    form.wait_for_url("**/studio/writer/ann?*")
    until(lambda: focused(form) == "field-seo--metaTitle")


def test_what_is_typed_is_shown_at_once_and_what_is_saved_from_the_server(form: Page) -> None:
    frame = shown(form)
    form.get_by_label("Title", exact=True).fill("Two")
    until(lambda: frame.locator("h1").inner_text() == "Two")
    frame.locator(".part").nth(1).dblclick()
    until(lambda: focused(form) == "field-parts--1--heading")
    form.keyboard.type(" of ours")
    until(lambda: "of ours" in frame.locator(".part").nth(1).inner_text())
    before = frame.locator("#rendered").inner_text()
    form.keyboard.press("Control+s")
    until(lambda: frame.locator("#rendered").inner_text() != before)
    until(lambda: frame.locator("h1").inner_text() == "Two")
    frame.locator("h1[data-strapi-source]").wait_for()
    assert frame.locator("body").get_attribute("data-scripts") == "1"  # The page was not loaded again.


def test_the_page_receives_blocks_as_an_event(form: Page) -> None:
    frame = shown(form)
    frame.locator("body").evaluate(
        "() => addEventListener('strapiFieldChange', ({detail}) => { window.received = detail; })"
    )
    change = {"field": "body", "type": "blocks", "documentId": "one", "value": [{"type": "paragraph"}]}
    form.locator(".preview-frame").evaluate(
        "(frame, payload) => frame.contentWindow.postMessage({type: 'strapiFieldChange', payload}, '*')",
        change,
    )
    until(lambda: frame.locator("body").evaluate("() => window.received"))
    received = frame.locator("body").evaluate("() => window.received")
    assert received == {"field": "body", "value": [{"type": "paragraph"}]}


def test_what_others_change_is_shown(form: Page, site: Studio) -> None:
    frame = shown(form)
    (site.root / "content/stories/one.json").write_text(json.dumps({**ONE, "title": "By hand"}))
    until(lambda: frame.locator("h1").inner_text() == "By hand")


def test_a_script_that_is_run_twice_opens_a_field_once(form: Page) -> None:
    frame = shown(form)
    frame.locator("html").evaluate("() => parent.postMessage({type: 'previewReady'}, '*')")
    until(lambda: frame.locator("body").get_attribute("data-scripts") == "2")
    expect(frame.locator("html > div[aria-hidden=true]")).to_have_count(1)
    form.evaluate(
        "asked = 0; addEventListener('message', ({data}) => asked += data.type === 'strapiFieldFocusIntent')"
    )
    frame.locator("h1").dblclick()
    until(lambda: focused(form) == "field-title")
    assert form.evaluate("asked") == 1


def test_the_published_version_is_a_click_away(form: Page) -> None:
    frame = shown(form)
    assert frame.locator("body").get_attribute("data-status") == "draft"
    form.get_by_label("Title", exact=True).fill("Draft")
    until(lambda: frame.locator("h1").inner_text() == "Draft")
    form.get_by_role("button", name="Published", exact=True).click()
    until(lambda: shown(form).locator("body").get_attribute("data-status") == "published")
    expect(shown(form).locator("h1")).to_have_text("One")


def test_a_page_without_live_preview_is_loaded_again_after_a_save(
    form: Page, front: Front, site: Studio
) -> None:
    whole = front.text
    front.text = "<!doctype html><title>Plain</title><link rel=icon href=data:,><h1>Plain</h1>"
    try:
        form.reload()
        frame = form.frame_locator(".preview-frame")
        frame.get_by_role("heading", name="Plain").wait_for()
        form.get_by_text("This page has no live preview").wait_for()
        front.text = front.text.replace("Plain", "Again")
        form.get_by_label("Title", exact=True).fill("Two")
        form.keyboard.press("Control+s")
        frame.get_by_role("heading", name="Again").wait_for()
        front.text = front.text.replace("Again", "By the button")
        form.get_by_role("button", name="Reload the preview").click()
        frame.get_by_role("heading", name="By the button").wait_for()
    finally:
        front.text = whole


def test_a_hostile_page_can_do_nothing(form: Page, front: Front, site: Studio) -> None:
    whole, front.text = front.text, HOSTILE.read_text()
    try:
        form.reload()
        frame = form.frame_locator(".preview-frame")
        frame.get_by_role("heading", name="Hostile").wait_for()
        tried = str(frame.locator("body").get_attribute("data-tried")).split(",")
        assert tried == ["SecurityError"] * 2
        form.get_by_label("Summary").focus()
        frame.locator("html").evaluate("() => ask('documentId=one&path=title&model=api::story.story')")
        frame.locator("h1").click()  # None of the page's messages identifies a field.
        form.get_by_text("The part you clicked").wait_for()
        expect(form).to_have_url(f"{site.url}/story/one?panel=preview")
        assert not focused(form).startswith("field-title")
        assert frame.locator("body").get_attribute("data-heard") is None
        assert form.evaluate("({}).x") is None
    finally:
        front.text = whole


def test_only_the_frame_is_heard_by_the_studio_and_only_the_studio_by_the_page(form: Page) -> None:
    frame = shown(form)
    said = {"type": "strapiFieldFocusIntent", "payload": {"path": "documentId=one&path=title"}}
    form.get_by_label("Summary").focus()
    form.evaluate("said => postMessage(said, '*')", said)
    typed = {"type": "strapiFieldChange", "payload": {"field": "title", "value": "Hacked"}}
    frame.locator("html").evaluate("(_, said) => postMessage(said, '*')", typed)
    form.get_by_label("Title", exact=True).fill("Two")
    until(lambda: frame.locator("h1").inner_text() == "Two")
    assert focused(form) == "field-title"  # Only because of the typing above.


def test_a_page_of_this_server_is_framed_as_nobodys(form: Page, site: Studio) -> None:
    form.goto(f"{site.url}/page/about?panel=preview")
    sandbox = form.locator(".preview-frame").get_attribute("sandbox")
    assert "allow-same-origin" not in str(sandbox)
    assert "allow-top-navigation" not in str(sandbox)
    form.goto(f"{site.url}/story/one?panel=preview")
    assert "allow-same-origin" in str(form.locator(".preview-frame").get_attribute("sandbox"))


def test_it_says_how_to_set_a_preview_up(form: Page, site: Studio) -> None:
    form.goto(f"{site.url}/tag/birds?panel=preview")
    form.get_by_text("No preview is set up").wait_for()
    expect(form.locator(".preview-line")).to_contain_text("preview: tag: https://")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(
    site: Studio,
    entered: Any,
    new_page: Callable[..., Page],
    check_access: Callable[[Page], None],
    scheme: str,
) -> None:
    page = new_page(storage_state=entered, color_scheme=scheme)
    for width, height in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{site.url}/story/one?panel=preview")
        shown(page)
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    frame = shown(page)  # The preview covers the form, and closes when a field is chosen.
    frame.locator(".part").nth(1).evaluate(
        "e => { focus(); e.dispatchEvent(new MouseEvent('dblclick', {bubbles: true, composed: true})) }"
    )
    until(lambda: focused(page) == "field-parts--1--heading")
    expect(page.locator("#panel")).to_have_count(0)
