"""The editors for Markdown and JSON in a form, in a browser, and the parts of a text that they must not
change.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_form import PNG, define, open_form, told
from tests.studio.conftest import HELD_FRAMES, Page, Studio, answer_to, expect
from tests.waiting import until

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "title": {"type": "string"},
    "data": {"type": "json"},
    "list": {"type": "array"},
    "price": {"type": "decimal", "max": 100},
    "ratio": {"type": "float"},
    "big": {"type": "biginteger"},
    "summary": {"type": "text"},
    "body": {"type": "richtext"},
    "more": {"type": "richtext"},
}
NUMBERS = """{
  "title": "One",
  "data": {"large": 12345678901234567890, "whole": 1.0, "zero": -0.0, "power": 1E5, "text": "1.0", "a": 1},
  "list": [2.50, 12345678901234567891],
  "price": 12.30, "ratio": 1.0, "big": "12345678901234567890"
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with a content type for texts."""
    studio = Studio(tmp_path_factory.mktemp("editors"), separate_modules=True)
    define(studio, "note", ATTRIBUTES)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def form(site: Studio, entered: Any, new_page: Callable[..., Page]) -> Page:
    """A page in which the owner is signed in."""
    return new_page(storage_state=entered)


def write(page: Page, site: Studio, name: str, content: bytes) -> Path:
    """Write the file of a note, and wait until the server serves it."""
    path = site.root / "content/notes" / name
    path.unlink(missing_ok=True)
    until(lambda: not answer_to(page, site, f"notes/{path.stem}"))
    path.write_bytes(content)
    until(lambda: answer_to(page, site, f"notes/{path.stem}") != "")
    return path


def editor(page: Page, name: str) -> Any:
    """Return the editor of an attribute once it has been loaded."""
    page.locator(f"#field-{name}").evaluate("(area) => area.scrollIntoView({block: 'center'})")
    found = page.locator(f"#field-{name}.cm-content")
    found.wait_for()
    return found


def saved(page: Page, path: Path) -> bytes:
    """Save, and return the content of the file without the timestamps that each write sets."""
    page.keyboard.press("Control+s")
    told(page, "Saved")
    lines = path.read_bytes().splitlines(keepends=True)
    return b"".join(line for line in lines if b"updatedAt" not in line and b"createdAt" not in line)


def test_numbers_stay_as_they_are_written(form: Page, site: Studio) -> None:
    path = write(form, site, "numbers.json", NUMBERS.encode())
    open_form(form, site, "note/numbers")
    expect(form.get_by_label("Price")).to_have_value("12.30")
    data = editor(form, "data")
    text = data.inner_text()
    assert json.loads(text, parse_int=str, parse_float=str) == {
        "large": "12345678901234567890",
        "whole": "1.0",
        "zero": "-0.0",
        "power": "100000.0",
        "text": "1.0",
        "a": "1",
    }
    data.fill(text.replace('"a": 1', '"a": 2'))
    form.keyboard.press("Control+s")
    told(form, "Saved")
    [before], [after] = (
        [line for line in lines.splitlines() if '"data"' in line] for lines in (NUMBERS, path.read_text())
    )
    assert after == before.replace('"a": 1', '"a": 2')
    assert '"list": [2.50, 12345678901234567891]' in path.read_text()
    assert '"price": 12.30, "ratio": 1.0, "big": "12345678901234567890"' in path.read_text()


def test_numbers_that_were_not_saved_are_kept_as_they_are_written(form: Page, site: Studio) -> None:
    path = write(form, site, "kept.json", NUMBERS.encode())
    open_form(form, site, "note/kept")
    editor(form, "list").fill("[2.50, 3.0, 12345678901234567892]")
    until(lambda: "12345678901234567892" in str(form.evaluate("JSON.stringify(localStorage)")))
    form.on("dialog", lambda dialog: dialog.accept())
    form.reload()
    form.get_by_role("button", name="Restore", exact=True).click()
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert '"list": [2.50, 3.0, 12345678901234567892]' in path.read_text()


def test_a_decimal_is_held_to_its_bounds_however_it_is_written(form: Page, site: Studio) -> None:
    write(form, site, "bounds.json", NUMBERS.encode())
    open_form(form, site, "note/bounds")
    form.get_by_label("Price").fill("100.10")
    form.keyboard.press("Control+s")
    form.get_by_text("Must be less than or equal to 100").wait_for()


ODD = (
    b"---\r\ntitle: One\r\n---\r\n\xef\xbb\xbfTrailing  \r\n\ttab \x01\x7f\r\nmiddle\r\n"
    b"Unix\nbefore\r\n\r\n\xe2\x80\xa8 \xf0\x9f\x8c\x8a no end"
)


def test_of_a_text_only_what_was_typed_is_written(form: Page, site: Studio) -> None:
    for number, at in enumerate((b"One", b"middle", b"Unix", b"before", b"no end")):
        path = write(form, site, f"odd-{number}.md", ODD)
        open_form(form, site, f"note/odd-{number}")
        if at == b"One":
            form.get_by_label("Title").fill("One!")
        else:
            editor(form, "body").locator(".cm-line", has_text=at.decode()).click()
            form.keyboard.press("End")
            form.keyboard.type("!")
        assert saved(form, path) == ODD.replace(at, at + b"!")


def test_new_lines_end_as_the_others(form: Page, site: Studio) -> None:
    path = write(form, site, "ends.md", ODD)
    open_form(form, site, "note/ends")
    editor(form, "body").get_by_text("middle").click()
    form.keyboard.press("End")
    form.keyboard.press("Enter")
    form.keyboard.type("new")
    assert saved(form, path) == ODD.replace(b"middle", b"middle\r\nnew")


def test_undoing_is_of_each_field_and_leaves_nothing_to_save(form: Page, site: Studio) -> None:
    write(form, site, "undo.md", ODD)
    open_form(form, site, "note/undo")
    body, more = editor(form, "body"), editor(form, "more")
    more.press_sequentially("more")
    body.get_by_text("middle").click()
    form.keyboard.type("new")
    form.get_by_text("2 fields are not saved").wait_for()
    form.keyboard.press("Control+z")
    form.get_by_text("One field is not saved").wait_for()
    expect(more).to_have_text("more")


def test_what_others_write_comes_in_and_the_cursor_stays(form: Page, site: Studio) -> None:
    path = write(form, site, "live.md", b"---\ntitle: One\n---\nfirst\n\nsecond\n\nthird\n")
    open_form(form, site, "note/live")
    body = editor(form, "body")
    body.get_by_text("second").click()
    form.keyboard.press("End")
    path.write_bytes(b"---\ntitle: One\n---\nAnother first\n\nsecond\n\nthird\n")
    body.get_by_text("Another first").wait_for()
    form.keyboard.type("!")
    assert saved(form, path) == b"---\ntitle: One\n---\nAnother first\n\nsecond!\n\nthird\n"
    body.press_sequentially("?")
    path.write_bytes(b"---\ntitle: One\n---\nTheirs\n")
    form.get_by_role("button", name="Use theirs").click()
    body.get_by_text("Theirs").wait_for()
    expect(body).not_to_contain_text("?")


def test_without_its_modules_a_text_area_is_there_of_the_same_size(form: Page, site: Studio) -> None:
    path = write(form, site, "area.md", ODD)
    open_form(form, site, "note/area")
    sizes = "['data', 'body', 'more'].map((name) => document.getElementById(`field-${name}`)"
    sizes += ".closest('.source').firstElementChild.getBoundingClientRect())"
    sizes += ".map(({ width, height }) => [width, height])"
    form.route("**/codemirror.js", lambda route: route.abort())
    form.reload()
    for name in ("data", "body", "more"):
        form.locator(f"textarea#field-{name}").wait_for()
    form.get_by_text("The editor could not be loaded.").first.wait_for()
    plain = form.evaluate(sizes)
    area = form.locator("textarea#field-body")
    area.evaluate("(area) => area.setSelectionRange(0, 0)")
    area.press_sequentially("Begun: ")
    assert saved(form, path) == ODD.replace(b"\xef\xbb\xbf", b"Begun: \xef\xbb\xbf")
    path.write_bytes(ODD)
    form.unroute("**/codemirror.js")
    open_form(form, site, "note/area")
    for name in ("data", "body", "more"):
        editor(form, name)
    # After it has been created, an editor measures its lines once more.
    until(lambda: form.evaluate(sizes) == plain)


def test_the_keyboard_leaves_an_editor_and_a_failed_save_leads_into_it(form: Page, site: Studio) -> None:
    write(form, site, "keys.json", NUMBERS.encode())
    open_form(form, site, "note/keys")
    data = editor(form, "data")
    data.fill('{"a": }')
    form.get_by_label("Title").focus()
    form.keyboard.press("Control+s")
    expect(data).to_be_focused()
    expect(data).to_have_attribute("aria-invalid", "true")
    error = form.locator(f"#{data.get_attribute('aria-describedby').split()[-1]}")
    expect(error).to_have_text("Must be JSON: line 1, column 7: expected a value")
    form.keyboard.press("Tab")
    expect(form.locator("#field-list")).to_be_focused()
    form.keyboard.press("Shift+Tab")
    expect(data).to_be_focused()
    form.locator("label", has_text=re.compile("^Data$")).click()
    expect(data).to_be_focused()
    form.keyboard.type("1")
    expect(data).to_contain_text("1")


FORMATS = {
    "Bold": ("Control+b", b"One **word** here.\nAnother line.\n"),
    "Italic": ("Control+i", b"One *word* here.\nAnother line.\n"),
    "Code": ("Control+e", b"One `word` here.\nAnother line.\n"),
    "Link": ("Control+Shift+k", b"One [word](https://) here.\nAnother line.\n"),
    "Heading": ("", b"## One word here.\nAnother line.\n"),
    "List": ("", b"- One word here.\nAnother line.\n"),
    "Quote": ("", b"> One word here.\nAnother line.\n"),
}


def test_buttons_and_keys_change_what_is_selected(form: Page, site: Studio) -> None:
    for label, (keys, wanted) in FORMATS.items():
        check_format(form, site, label, keys, wanted)


def check_format(form: Page, site: Studio, label: str, keys: str, wanted: bytes) -> None:
    """Check a toolbar button and its keyboard shortcut, each in a new note."""
    content = b"---\ntitle: One\n---\nOne word here.\nAnother line.\n"
    path = write(form, site, f"{label.lower()}.md", content)
    open_form(form, site, f"note/{path.stem}")
    body = editor(form, "body")
    button = form.locator(".markdown", has=form.locator("#field-body")).get_by_role("button", name=label)
    for press in [button.click, lambda: form.keyboard.press(keys)][: 2 if keys else 1]:
        body.click(position={"x": 60, "y": 20})
        expect(body).to_be_focused()
        press()
        expect(body.locator(".cm-line")).to_have_text(wanted.decode().splitlines())
        expect(body).to_be_focused()
        form.keyboard.press("Control+z")
        form.get_by_text("One field is not saved").wait_for(state="detached")
    button.click()
    assert saved(form, path) == content.replace(b"One word here.\nAnother line.\n", wanted)


def test_the_toolbar_is_one_stop_of_the_tab_key(form: Page, site: Studio) -> None:
    write(form, site, "bar.md", ODD)
    open_form(form, site, "note/bar")
    editor(form, "body").focus()
    form.keyboard.press("Shift+Tab")
    field = form.locator(".markdown", has=form.locator("#field-body"))
    expect(field.get_by_role("button", name="Preview")).to_be_focused()
    form.keyboard.press("Shift+Tab")
    tools = field.get_by_role("toolbar", name="Formatting")
    for key, wanted in [("", "Bold"), ("ArrowRight", "Italic"), ("End", "Picture"), ("ArrowRight", "Bold")]:
        if key:
            form.keyboard.press(key)
        expect(tools.get_by_role("button", name=wanted)).to_be_focused()
    expect(tools.locator("[tabindex='0']")).to_have_count(1)
    form.keyboard.press("Tab")
    form.keyboard.press("Control+k")
    form.get_by_role("dialog").wait_for()


def test_enter_goes_on_with_a_list(form: Page, site: Studio) -> None:
    path = write(form, site, "list.md", b"---\ntitle: One\n---\n- one\n")
    open_form(form, site, "note/list")
    editor(form, "body").get_by_text("one").click()
    form.keyboard.press("End")
    form.keyboard.press("Enter")
    form.keyboard.type("two")
    assert saved(form, path) == b"---\ntitle: One\n---\n- one\n- two\n"


SHOWN = b"""---
title: One
---
# A heading

[Elsewhere](https://elsewhere.example/a), [a page](/articles/b), [a file](/uploads/knots.pdf)

![Knots](/uploads/knots.png)

![Theirs](https://elsewhere.example/k.png)

<kbd class="button" id="studio">Enter</kbd>
"""
VECTORS = [
    "<script>hacked = 1</script>",
    "<img src=x onerror=hacked=1>",
    "<img src=`x`onerror=hacked=1//>",
    "[a](javascript:hacked=1)",
    "[a](<java\tscript:hacked=1>)",
    "<a href='&#106;avascript:hacked=1'>x</a>",
    "<a href=data:text/html,<script>hacked=1</script>>x</a>",
    "![x](javascript:hacked=1)",
    "<svg onload=hacked=1><script>hacked=1</script></svg>",
    "<svg><animate onbegin=hacked=1 attributeName=x dur=1s></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=hacked=1&gt;'>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=hacked=1></form>",
    "<noscript><p title='</noscript><img src=x onerror=hacked=1>'>",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "<object data='//evil.example/x'></object><embed src='//evil.example/x'>",
    "<video src='//evil.example/x' onerror=hacked=1><source src='//evil.example/x'></video>",
    "<img srcset='//evil.example/a.png 1x' src='https://evil.example/b.png'>",
    "<link rel=stylesheet href='//evil.example/a.css'><style>@import '//evil.example/b.css'</style>",
    "<base href='//evil.example/'><meta http-equiv=refresh content='0;url=//evil.example/'>",
    "<form action='//evil.example/' id=studio><input name=attributes><button>Go</button></form>",
    "<details open ontoggle=hacked=1>x</details>",
    "<p style='position: fixed; inset: 0' class=panel id=main tabindex=0 data-x=1 is=x-y>x</p>",
    "<img src='http://['>",
]
# Return the names of all elements and attributes that the page renders from Markdown texts.
BECOMES = """async (vectors) => {
  const files = document.querySelector("script[type=module]").src;  // the page runs no others
  const { rendered } = await import(new URL("editor/rendering.js", files).href);
  const place = document.createElement("div");
  document.body.append(place);
  for (const vector of vectors) place.append(rendered(vector));
  await new Promise((done) => setTimeout(done, 300));
  const found = [...place.querySelectorAll("*")];
  const names = (list) => [...new Set(list)].sort();
  return {
    elements: names(found.map((one) => one.localName)),
    attributes: names(found.flatMap((one) => one.getAttributeNames())),
    addresses: names(found.flatMap(({ href, src }) => href ?? src ?? []).map((url) => url.split(":")[0])),
    hacked: typeof hacked,
  };
}"""


def test_the_preview_shows_images_of_the_site_and_opens_links_beside_it(form: Page, site: Studio) -> None:
    path = write(form, site, "shown.md", SHOWN)
    asked: list[str] = []
    form.on("request", lambda request: asked.append(request.url))
    open_form(form, site, "note/shown")
    editor(form, "body")
    field = form.locator(".markdown", has=form.locator("#field-body"))
    field.get_by_role("button", name="Preview").press("Enter")
    shown = field.get_by_role("region", name="Preview")
    shown.get_by_role("heading", name="A heading").wait_for()
    link = shown.get_by_role("link", name="Elsewhere")
    assert (link.get_attribute("target"), link.get_attribute("rel")) == ("_blank", "noopener noreferrer")
    assert shown.get_by_text("a page").get_attribute("href") is None
    root = site.url.removesuffix("/studio")
    assert shown.get_by_role("link", name="a file").get_attribute("href") == f"{root}/uploads/knots.pdf"
    assert shown.get_by_role("img", name="Knots").get_attribute("src") == f"{root}/uploads/knots.png"
    assert shown.get_by_role("link", name="Theirs").get_attribute("href") == "https://elsewhere.example/k.png"
    assert shown.locator("kbd").evaluate("(key) => key.getAttributeNames()") == []
    assert [url for url in asked if "elsewhere" in url] == []
    editor(form, "body").get_by_text("A heading").click()
    form.keyboard.press("End")
    form.keyboard.type(" that changes")
    shown.get_by_role("heading", name="A heading that changes").wait_for()
    assert saved(form, path) == SHOWN.replace(b"A heading", b"A heading that changes")


def test_nothing_in_a_text_runs_or_loads_or_looks_like_the_studio(
    site: Studio, entered: Any, browser: Any
) -> None:
    # A new context, because the page may log that its content security policy has blocked something.
    context = browser.new_context(storage_state=entered)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.url)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    made = page.evaluate(BECOMES, VECTORS)
    context.close()
    assert made["hacked"] == "undefined"
    assert set(made["elements"]) <= {"a", "code", "details", "img", "p", "table"}
    assert set(made["attributes"]) <= {"href", "src", "alt", "title", "target", "rel", "loading"}
    assert set(made["addresses"]) <= {"", "http", "https"}
    assert [url for url in asked if "evil" in url] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_editors(
    site: Studio,
    entered: Any,
    new_page: Callable[..., Page],
    check_access: Callable[[Page], None],
    scheme: str,
) -> None:
    page = new_page(storage_state=entered, color_scheme=scheme)
    write(page, site, "access.md", SHOWN)
    open_form(page, site, "note/access")
    editor(page, "data")
    editor(page, "body").click()
    page.keyboard.press("Control+f")
    page.get_by_role("textbox", name="Find").fill("heading")
    check_access(page)
    page.keyboard.press("Escape")
    page.locator(".form-field").get_by_role("button", name="Preview").first.click()
    page.get_by_role("heading", name="A heading").wait_for()
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 700})
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_text_grows_with_what_is_in_it(form: Page, site: Studio) -> None:
    write(form, site, "long.md", ODD)
    open_form(form, site, "note/long")
    summary = form.get_by_label("Summary")
    height = 0
    for lines in (1, 8, 15, 200):
        summary.fill("line\n" * lines)
        until(lambda lower=height: summary.evaluate("(area) => area.offsetHeight") > lower)
        height = summary.evaluate("(area) => area.offsetHeight")
    assert height < 600


def test_line_ends_of_a_long_text_stay(form: Page, site: Studio) -> None:
    content = b'{"title": "One", "summary": "one\\r\\ntwo\\nthree\\r\\nfour"}\n'
    path = write(form, site, "summary.json", content)
    open_form(form, site, "note/summary")
    form.get_by_label("Summary").press("Control+Home")
    form.get_by_label("Summary").press_sequentially("Begun: ")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert json.loads(path.read_text())["summary"] == "Begun: one\r\ntwo\nthree\r\nfour"


def test_nothing_moves_while_editors_load(form: Page, site: Studio) -> None:
    write(form, site, "moves.md", SHOWN)
    form.add_init_script(
        "window.moved = 0; new PerformanceObserver((list) => list.getEntries().forEach((entry) => {"
        " moved += entry.value })).observe({type: 'layout-shift', buffered: true})"
    )
    open_form(form, site, "note/moves")
    for name in ("data", "list", "body"):
        form.locator(f"#field-{name}.cm-content").wait_for()
    form.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert form.evaluate("moved") < 0.01


GIVE = """([how, name, bytes, before]) => {
  const files = new DataTransfer();
  files.items.add(new File([new Uint8Array(bytes)], `${name}.png`, {type: "image/png"}));
  const options = {bubbles: true, cancelable: true};
  const body = document.getElementById("field-body");
  const texts = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  while (!texts.nextNode().data.includes(before));
  const place = document.createRange();
  place.setStart(texts.currentNode, texts.currentNode.data.indexOf(before));
  const {left: clientX, top: clientY} = place.getBoundingClientRect();
  body.dispatchEvent(how === "paste"
    ? new ClipboardEvent("paste", {clipboardData: files, ...options})
    : new DragEvent("drop", {dataTransfer: files, clientX, clientY, ...options}));
}"""


def give(form: Page, how: str, name: str, before: str = "") -> None:
    """Paste a picture at the cursor in the body, or drop it before a given text."""
    form.evaluate(GIVE, [how, name, list(PNG), before])


def without_hashes(text: bytes) -> str:
    return re.sub(r"_\w+(?=\.png)", "", text.decode())


def choose_picture(form: Page, body: Any) -> Any:
    """Open the dialog for inserting a picture. Return the button for a picture."""
    form.locator(".markdown", has=body).get_by_role("button", name="Picture").click()
    dialog = form.get_by_role("dialog", name="Choose a picture")
    dialog.get_by_role("searchbox").fill("knots")
    return dialog.get_by_role("button", name=re.compile("knots"))


def test_pictures_are_chosen_dropped_and_pasted(form: Page, site: Studio) -> None:
    form.add_init_script(HELD_FRAMES)
    path = write(form, site, "pictures.md", b"---\ntitle: One\n---\nBefore after\n")
    open_form(form, site, "note/pictures")
    body = editor(form, "body")
    body.click()
    form.keyboard.press("Home")
    for _ in "Before ":
        form.keyboard.press("ArrowRight")
    picture = choose_picture(form, body)
    picture.wait_for()
    form.evaluate("holdFrames()")
    picture.click()
    expect(body).to_be_focused()
    form.keyboard.type(" and ")
    form.evaluate("releaseFrames()")
    give(form, "paste", "paste")
    body.get_by_text("paste_").wait_for()
    give(form, "drop", "drop", "after")
    body.get_by_text("drop_").wait_for()
    text = without_hashes(saved(form, path))
    assert re.search(r"^Before !\[[^\]]+\]\(/uploads/knots\.png\) and ", text, re.MULTILINE)
    assert text.endswith(" and ![](/uploads/paste.png)![](/uploads/drop.png)after\n")


def test_no_key_is_lost_after_a_dialog_was_left(form: Page, site: Studio) -> None:
    form.add_init_script(HELD_FRAMES)
    path = write(form, site, "left.md", b"---\ntitle: One\n---\nBefore after\n")
    open_form(form, site, "note/left")
    body = editor(form, "body")
    body.click()
    form.keyboard.press("End")
    choose_picture(form, body).wait_for()
    form.evaluate("holdFrames()")
    form.get_by_role("button", name="Cancel").click()
    expect(body).to_be_focused()
    form.keyboard.type(" that")
    form.evaluate("releaseFrames()")
    assert saved(form, path).decode().endswith("\nBefore after that\n")


def test_uploads_arrive_where_they_were_dropped_in_any_order(form: Page, site: Studio) -> None:
    path = write(form, site, "order.md", b"---\ntitle: One\n---\none two three four\n")
    open_form(form, site, "note/order")
    body = editor(form, "body")
    body.click()
    form.keyboard.press("End")
    uploads: list[Any] = []
    form.route("**/api/upload", lambda route: uploads.append(route))
    for number, (how, name) in enumerate({"drop": "dropped", "paste": "pasted"}.items(), start=1):
        give(form, how, name, "three")
        until(lambda count=number: form.evaluate("1") == 1 and len(uploads) == count)
    give(form, "drop", "early", "two")
    form.keyboard.press("End")
    form.keyboard.press("Shift+Home")
    form.keyboard.press("ArrowRight")
    form.keyboard.type(" five")
    form.keyboard.press("Shift+ArrowLeft")  # the selected text must remain in the body
    until(lambda: form.evaluate("1") == 1 and len(uploads) == 3)
    for upload, name in ((1, "pasted"), (2, "early"), (0, "dropped")):
        uploads[upload].continue_()
        body.get_by_text(f"{name}_").wait_for()
    form.get_by_text("Uploading…").wait_for(state="detached")
    form.keyboard.type("X")
    line = without_hashes(saved(form, path)).splitlines()[-1]
    line = re.sub(r"!\[\]\(/uploads/(\w+)\.png\)", r"[\1]", line)
    assert line == "one [early]two [dropped][pasted]three four fivX"


def test_a_selection_is_replaced_by_what_was_pasted_unless_it_has_changed(form: Page, site: Studio) -> None:
    path = write(form, site, "selection.md", b"---\ntitle: One\n---\none\n\ntwo\n")
    open_form(form, site, "note/selection")
    body = editor(form, "body")
    uploads: list[Any] = []
    form.route("**/api/upload", lambda route: uploads.append(route))
    for number, word in enumerate(("one", "two"), start=1):
        body.get_by_text(word).dblclick()
        give(form, "paste", word)
        until(lambda count=number: form.evaluate("1") == 1 and len(uploads) == count)
    form.keyboard.type("three")
    for upload, name in zip(uploads, ("one", "two"), strict=True):
        upload.continue_()
        body.get_by_text(f"{name}_").wait_for()
    text = without_hashes(saved(form, path))
    assert text.endswith("---\n![](/uploads/one.png)\n\n![](/uploads/two.png)three\n")
