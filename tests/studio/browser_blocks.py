"""The editor for attributes of the type `blocks`, in a browser: what it writes to the file, and what it
preserves.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.servers import stop
from tests.studio.browser_form import lines_that_changed, open_form, told
from tests.studio.conftest import HELD_FRAMES, Page, Studio, answer_to, expect, is_save
from tests.waiting import until

STORY = """---
title: One   # by hand
body:
  # What it begins with.
  - type: heading
    children: [{text: Slack   water, type: text}]
    level: 2
  - type: paragraph
    anchor: first
    children:
      - type: text
        text: ""
      - type: link
        url: https://example.org/tides
        rel: nofollow
        children:
          - {type: text, text: Tides}
          - {type: text, text: " and", bold: true}
      - {text: " currents turn here.", type: text, colour: red}
      - {type: text, text: Slowly., bold: false}
  - type: list
    format: unordered
    children:
      - {type: list-item, children: [{type: text, text: Buoys}]}
      - type: list
        format: ordered
        indentLevel: 1
        children:
          - {type: list-item, children: [{type: text, text: red}]}
      - {type: list-item, children: [{type: text, text: Lights}]}
  - type: code
    language: c
    children: [{type: text, text: "int main;"}]
createdAt: 2024-01-22T08:00:00.000Z
updatedAt: 2024-01-22T08:00:00.000Z
---
"""
ODD_STORY = """---
title: Odd   # by hand
body:
  - {type: chart, station: Brest, children: [{type: text, text: ""}]}
  - {type: paragraph, children: [{type: text, text: Below}]}
createdAt: 2024-01-22T08:00:00.000Z
updatedAt: 2024-01-22T08:00:00.000Z
---
"""
ODD_BODY = ODD_STORY.partition("body:\n")[2].partition("createdAt")[0]
# Values that the editor displays differently or not at all. It must preserve them as long as nobody edits
# them.
UNTOUCHED = {
    "unknown": ODD_BODY,
    "empty": "  []\n",
    "null": "  null\n",
    "texts": """  - {type: paragraph, children: []}
  - {type: code, language: null, children: [{type: text, text: ""}]}
""",
    "lists": """  - type: list
    format: ordered
    indentLevel: null
    children:
      - {type: list-item, children: []}
      - {type: list, format: unordered, children: [{type: list-item, children: [{type: text, text: red}]}]}
  - {type: list, format: other, children: []}
""",
}
# Stops rendering as soon as the page has received the document.
HOLD_ONCE_READ = """
const ask = window.fetch;
window.fetch = async (asked, ...rest) => {
  const answer = await ask(asked, ...rest);
  if (String(asked.url ?? asked).includes("/api/stories/odd")) holdFrames();
  return answer;
};
"""
# Puts the cursor into a block and presses a key, before the browser has reported the new position of the
# cursor.
KEY_AT_ONCE = """(block) => {
  getSelection().collapse(block, block.childNodes.length);
  for (const name of ["keydown", "keypress"]) {
    block.dispatchEvent(new KeyboardEvent(name, { key: "!", charCode: 33, bubbles: true, cancelable: true }));
  }
}"""
OWN = {"one.md": STORY, "odd.md": ODD_STORY}
SCHEMA = {
    "info": {"singularName": "story", "pluralName": "stories", "displayName": "Story"},
    "attributes": {"title": {"type": "string"}, "body": {"type": "blocks"}},
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with stories."""
    studio = Studio(tmp_path_factory.mktemp("blocks"), separate_modules=True)
    (studio.root / "content-types/story.json").write_text(json.dumps(SCHEMA))
    (studio.root / "content/stories").mkdir()
    for name, written in OWN.items():
        (studio.root / "content/stories" / name).write_text(written)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture(scope="module")
def answers(site: Studio, entered: Any, browser: Any) -> dict[str, str]:
    """The API's responses for the stories, by path, before a test changes the stories."""
    context = browser.new_context(storage_state=entered)
    found = {path: answer_to(context, site, path) for path in ("stories/one", "stories/odd")}
    context.close()
    return found


@pytest.fixture
def form(site: Studio, entered: Any, answers: dict[str, str], new_page: Callable[..., Page]) -> Page:
    """The form of a story, in its initial state."""
    for path in (site.root / "content/stories").iterdir():
        if path.name not in OWN:
            path.unlink()
    for name, written in OWN.items():
        (site.root / "content/stories" / name).write_text(written)
    page = new_page(storage_state=entered)
    until(lambda: all(answer_to(page, site, path) == answer for path, answer in answers.items()))
    open_form(page, site, "story/one")
    body(page).wait_for()
    return page


def body(page: Page) -> Any:
    """Return the element in which the body is edited."""
    return page.get_by_role("textbox", name="Body")


def text(site: Studio) -> str:
    """Return the content of the story's file."""
    return (site.root / "content/stories/one.md").read_text()


def save(page: Page) -> None:
    """Save the form, and wait until it is saved."""
    page.keyboard.press("Control+s")
    told(page, "Saved")


def begin(page: Page, site: Studio) -> Any:
    """Open the form for a new story, and move the focus to its body."""
    open_form(page, site, "story/-/new")
    page.get_by_label("Title").fill("New")
    body(page).click()
    return page.keyboard


def sent(page: Page) -> Any:
    """Save a new story, and return the blocks that the form sends."""
    with page.expect_request(lambda made: is_save(made, "stories", "POST")) as request:
        page.keyboard.press("Control+s")
    page.wait_for_url(lambda url: not url.endswith("/new"))
    return request.value.post_data_json["data"]["body"]


def words(value: str, **modifiers: Any) -> dict[str, Any]:
    """Return a text node."""
    return {"type": "text", "text": value, **modifiers}


def block(kind: str, *children: Any, **members: Any) -> dict[str, Any]:
    """Return a block with children."""
    return {
        "type": kind,
        **members,
        "children": [words(one) if isinstance(one, str) else one for one in children],
    }


def test_one_changed_word_is_one_changed_line(form: Page, site: Studio) -> None:
    body(form).get_by_text("currents turn here").dblclick(position={"x": 20, "y": 8})
    form.keyboard.type("streams")
    save(form)
    changed = lines_that_changed(STORY, text(site))
    assert changed == ['      - {text: " streams turn here.", type: text, colour: red}']
    assert len(lines_that_changed(text(site), STORY)) == 1


def test_what_is_not_edited_stays_as_it_is(form: Page, site: Studio) -> None:
    body(form).get_by_text("int main;").click()
    form.keyboard.press("End")
    form.keyboard.type(" // ends")
    form.locator(".is-changed").wait_for()
    form.keyboard.press("Control+z")
    form.locator(".is-changed").wait_for(state="detached")
    form.get_by_label("Title").fill("Two")
    save(form)
    assert lines_that_changed(STORY, text(site)) == ["title: Two   # by hand"]


def test_what_is_not_known_is_shown_as_it_is_and_stays(form: Page, site: Studio) -> None:
    open_form(form, site, "story/odd")
    body(form).get_by_text('"station": "Brest"').wait_for()
    form.get_by_label("Title").fill("Even")
    save(form)
    path = site.root / "content/stories/odd.md"
    assert lines_that_changed(ODD_STORY, path.read_text()) == ["title: Even   # by hand"]
    body(form).get_by_text("Below").click()
    form.keyboard.press("End")
    form.keyboard.type("!")
    body(form).get_by_text("Below!").wait_for()
    form.keyboard.press("Control+s")
    form.get_by_text("Must be a node of one of the following types").wait_for()
    expect(body(form).get_by_text('"station": "Brest"')).to_be_visible()


def test_what_is_typed_before_the_browser_paints_what_was_saved_stays(form: Page, site: Studio) -> None:
    form.add_init_script(HELD_FRAMES)
    open_form(form, site, "story/odd")
    form.get_by_label("Title").fill("Even")
    body(form).get_by_text("Below").click()
    form.evaluate("holdFrames()")
    save(form)
    form.keyboard.press("End")
    form.keyboard.type("!")
    form.evaluate("releaseFrames()")
    form.get_by_text("One field is not saved").wait_for()
    expect(body(form).get_by_text("Below!")).to_be_visible()


@pytest.mark.parametrize("name", UNTOUCHED)
def test_a_save_before_the_browser_paints_the_form_sends_the_title_alone(
    form: Page, site: Studio, name: str
) -> None:
    written = ODD_STORY.replace(ODD_BODY, UNTOUCHED[name])
    path = site.root / "content/stories/odd.md"
    path.write_text(written)
    until(lambda: '"title":"Odd"' in answer_to(form, site, "stories/odd"))
    form.add_init_script(HELD_FRAMES + HOLD_ONCE_READ)
    open_form(form, site, "story/odd")
    form.get_by_label("Title").fill("Even")
    with form.expect_request(lambda made: is_save(made, "stories/odd")) as request:
        form.keyboard.press("Control+s")
    assert request.value.post_data_json == {"data": {"title": "Even"}}
    told(form, "Saved")
    form.evaluate("releaseFrames()")
    body(form).click()
    told(form, "Saved")
    form.get_by_label("Title").fill("Uneven")
    with form.expect_request(lambda made: is_save(made, "stories/odd")) as request:
        form.keyboard.press("Control+s")
    assert request.value.post_data_json == {"data": {"title": "Uneven"}}
    told(form, "Saved")
    assert lines_that_changed(written, path.read_text()) == ["title: Uneven   # by hand"]


def test_a_key_goes_to_where_the_cursor_is_already(form: Page, site: Studio) -> None:
    open_form(form, site, "story/odd")
    chart = body(form).get_by_text('"station": "Brest"')
    body(form).get_by_text("Below").click()
    form.keyboard.press("ArrowUp")
    body(form).locator(".ProseMirror-selectednode").wait_for()
    body(form).get_by_text("Below").evaluate(KEY_AT_ONCE)
    body(form).locator(".ProseMirror-selectednode").wait_for(state="detached")
    expect(chart).to_be_visible()


def test_markdown_and_keys_make_blocks(form: Page, site: Studio) -> None:
    keyboard = begin(form, site)
    keyboard.type("# Title\nPlain ")
    keyboard.press("Control+b")
    keyboard.type("bold")
    keyboard.press("Control+b")
    keyboard.type(" words\n- one\ntwo\n")
    keyboard.press("Tab")
    keyboard.type("deeper\n")
    keyboard.press("Shift+Tab")
    keyboard.type("three\n\n> Said\n1. first\n\n```let a;\n\nAfter")
    keyboard.press("Shift+Enter")
    keyboard.type("it")
    form.get_by_role("combobox", name="Block type").wait_for()
    assert sent(form) == [
        block("heading", "Title", level=1),
        block("paragraph", "Plain ", words("bold", bold=True), " words"),
        block(
            "list",
            block("list-item", "one"),
            block("list-item", "two"),
            block("list", block("list-item", "deeper"), format="unordered", indentLevel=1),
            block("list-item", "three"),
            format="unordered",
        ),
        block("quote", "Said"),
        block("list", block("list-item", "first"), format="ordered"),
        block("code", "let a;"),
        block("paragraph", "After\nit"),
    ]


def test_the_toolbar_is_used_by_keyboard_alone(form: Page, site: Studio) -> None:
    keyboard = begin(form, site)
    keyboard.type("tide")
    keyboard.press("Control+a")
    keyboard.press("Escape")
    expect(form.get_by_role("combobox", name="Block type")).to_be_focused()
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    expect(form.get_by_role("button", name="Italic")).to_be_focused()
    keyboard.press("Enter")
    expect(form.get_by_role("button", name="Italic")).to_have_attribute("aria-pressed", "true")
    keyboard.press("Control+Shift+8")
    keyboard.press("End")
    keyboard.press("Enter")
    keyboard.press("Escape")
    keyboard.press("Tab")
    keyboard.press("Tab")
    expect(form.locator("#field-body")).not_to_be_focused()
    assert sent(form) == [
        block(
            "list",
            block("list-item", words("tide", italic=True)),
            block("list-item", ""),
            format="unordered",
        )
    ]


def test_a_link_is_made_changed_and_taken_away(form: Page, site: Studio) -> None:
    keyboard = begin(form, site)
    keyboard.type("See the tides")
    keyboard.press("Control+Shift+ArrowLeft")
    form.evaluate(FRAMES)
    keyboard.press("Control+Shift+k")
    dialog = form.get_by_role("dialog", name="Link")
    dialog.get_by_label("Address").fill("javascript:alert(1)")
    keyboard.press("Enter")
    dialog.get_by_text("Must begin with").wait_for()
    dialog.get_by_label("Address").fill("example.org/tides")
    keyboard.press("Enter")
    dialog.wait_for(state="detached")
    link = block("link", "tides", url="https://example.org/tides")
    assert sent(form) == [block("paragraph", "See the ", link)]
    # The dialog stays open because the cursor is still in the link.
    details = form.get_by_role("group", name="Link")
    details.get_by_text("https://example.org/tides").wait_for()
    details.get_by_role("button", name="Change").click()
    dialog.get_by_label("Address").fill("/tides")
    dialog.get_by_role("button", name="Change").click()
    save(form)
    [written] = [path for path in (site.root / "content/stories").iterdir() if path.name not in OWN]
    assert "url: '/tides'" in written.read_text() or 'url: "/tides"' in written.read_text()


def test_no_key_is_lost_after_the_dialog_of_a_link(form: Page, site: Studio) -> None:
    form.add_init_script(HELD_FRAMES)
    keyboard = begin(form, site)
    keyboard.type("See ")
    keyboard.press("Control+Shift+k")
    dialog = form.get_by_role("dialog", name="Link")
    dialog.get_by_label("Address").fill("example.org/tides")
    form.evaluate("holdFrames()")
    keyboard.press("Enter")
    dialog.wait_for(state="detached")
    keyboard.type(" now")
    form.evaluate("releaseFrames()")
    expect(body(form)).to_have_text("See https://example.org/tides now")


def test_a_picture_of_the_site_is_put_in(form: Page, site: Studio) -> None:
    keyboard = begin(form, site)
    form.get_by_role("button", name="Picture").click()
    dialog = form.get_by_role("dialog", name="Choose a picture")
    dialog.get_by_label("Find files").fill("causeway")
    dialog.get_by_role("button", name=re.compile("causeway")).click()
    dialog.wait_for(state="detached")
    form.get_by_role("group", name="Picture").get_by_label("Alternative text").fill("A road in the sea")
    body(form).locator("img").click()
    keyboard.press("Enter")
    keyboard.type("Below")
    image, *others = sent(form)
    assert image["image"]["alternativeText"] == "A road in the sea"
    assert image["image"]["url"].startswith("/uploads/causeway")
    assert others[0] == block("paragraph", "Below")


# Waits until the editor has received the browser's selection.
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
PASTE = """([html]) => {
  const data = new DataTransfer();
  data.setData("text/html", html);
  document.getElementById("field-body").dispatchEvent(
    new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
}"""
WEB = """<style>p {color: red}</style><h2 style="color:red" onclick="alert(1)">From the <u>web</u></h2>
<div><p>One <span style="font-weight:700">bold</span> and <a href="javascript:x()">bad</a>,
<a href="https://example.org/">good</a>.<script>alert(1)</script></p></div>
<ul><li><p>first</p><ul><li>deep</li></ul></li><li>last</li></ul><pre>a
 b</pre><img src="https://example.org/x.png"><table><tr><td>cell</td></tr></table>"""
OFFICE = """<html xmlns:o="urn:schemas-microsoft-com:office:office"><body><!--StartFragment-->
<p class=MsoNormal><b style='mso-bidi-font-weight:normal'>Word<o:p></o:p></b></p>
<p class=MsoListParagraph style='mso-list:l0 level1 lfo1'><span
 style='mso-list:Ignore'>1.<span>&nbsp; </span></span>One</p>
<p class=MsoListParagraph style='mso-list:l0 level2 lfo1'><span style='mso-list:Ignore'>a.</span>Inner</p>
<p class=MsoListParagraph style='mso-list:l0 level1 lfo1'><span style='mso-list:Ignore'>2.</span>Two</p>
<!--EndFragment--></body></html>"""
DOCS = '<meta charset="utf-8"><b style="font-weight:normal;" id="docs-internal-1"><p>Not <i>bold</i></p></b>'
PASTED = {
    "web": (
        WEB,
        [
            block("heading", "From the ", words("web", underline=True), level=2),
            block(
                "paragraph",
                "One ",
                words("bold", bold=True),
                " and bad, ",
                block("link", "good", url="https://example.org/"),
                ".",
            ),
            block(
                "list",
                block("list-item", "first"),
                block("list", block("list-item", "deep"), format="unordered"),
                block("list-item", "last"),
                format="unordered",
            ),
            block("code", "a\n b"),
            block("paragraph", "cell"),
        ],
    ),
    "office": (
        OFFICE,
        [
            block("paragraph", words("Word", bold=True)),
            block(
                "list",
                block("list-item", "One"),
                block("list", block("list-item", "Inner"), format="ordered"),
                block("list-item", "Two"),
                format="ordered",
            ),
        ],
    ),
    "docs": (DOCS, [block("paragraph", "Not ", words("bold", italic=True))]),
}


@pytest.mark.parametrize("source", PASTED)
def test_what_is_pasted_becomes_clean_blocks(form: Page, site: Studio, source: str) -> None:
    pasted, wanted = PASTED[source]
    begin(form, site)
    form.evaluate(PASTE, [pasted])
    assert sent(form) == wanted


def test_what_others_change_comes_in_beside_what_is_typed_there(form: Page, site: Studio) -> None:
    body(form).get_by_text("Buoys").click()
    form.keyboard.press("End")
    path = site.root / "content/stories/one.md"
    path.write_text(STORY.replace("Slack   water", "Slack water by them"))
    body(form).get_by_text("Slack water by them").wait_for()
    form.keyboard.type(" and more")
    expect(body(form).get_by_text("Buoys and more")).to_be_visible()
    path.write_text(path.read_text().replace("int main;", "int theirs;"))
    form.get_by_role("group", name="Body: also changed by someone else").wait_for()
    form.get_by_role("button", name="Use theirs").click()
    body(form).get_by_text("int theirs;").wait_for()
    expect(body(form).get_by_text("Buoys and more")).to_be_hidden()


def test_the_source_can_be_edited_instead(form: Page, site: Studio) -> None:
    form.get_by_role("button", name="JSON").click()
    source = form.locator("#field-body.cm-content")
    source.get_by_text('"Slack   water"').wait_for()
    source.fill("[")
    expect(form.get_by_role("button", name="Editor")).to_be_disabled()
    source.fill(json.dumps([block("paragraph", "By hand")]))
    form.get_by_role("button", name="Editor").click()
    body(form).get_by_text("By hand").wait_for()


def test_where_the_editor_can_not_be_loaded_there_is_the_source(
    site: Studio, entered: Any, new_page: Callable[..., Page]
) -> None:
    page = new_page(storage_state=entered)
    page.route("**/prosemirror.js", lambda route: route.abort())
    open_form(page, site, "story/one")
    page.get_by_text("The editor could not be loaded").wait_for()
    page.locator("#field-body.cm-content").get_by_text('"Slack   water"').wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(
    site: Studio,
    entered: Any,
    new_page: Callable[..., Page],
    scheme: str,
    check_access: Callable[[Page], None],
) -> None:
    page = new_page(storage_state=entered, color_scheme=scheme)
    (site.root / "content/stories/one.md").write_text(STORY)
    open_form(page, site, "story/one")
    body(page).get_by_text("Tides").click()
    page.get_by_role("group", name="Link").wait_for()
    for width, height in ((1280, 800), (320, 640)):
        page.set_viewport_size({"width": width, "height": height})
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


MODIFIERS = st.fixed_dictionaries(
    {},
    optional={
        "bold": st.booleans(),
        "italic": st.just(True),
        "code": st.just(True),
        "colour": st.sampled_from(["red", {"r": 1}]),
    },
)
TEXTS = st.builds(words, st.text("ab \n\t", max_size=3))
MARKED = st.builds(lambda text, more: {**text, **more}, TEXTS, MODIFIERS)
ODD = st.sampled_from(
    [{"type": "mention", "user": 7}, {"type": "text"}, {"type": "link", "children": []}, 3, None]
)
LINKS = st.builds(
    lambda children, more: {"type": "link", "url": "/a", **more, "children": children},
    st.lists(MARKED, max_size=3),
    st.sampled_from([{}, {"rel": "nofollow"}]),
)
INLINE = st.lists(st.one_of(MARKED, MARKED, LINKS, ODD), max_size=5)
MORE = st.sampled_from([{}, {"anchor": "x"}])


def of(kind: str, children: st.SearchStrategy[Any], **members: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for blocks of a type. Some blocks have unknown properties."""
    made = st.fixed_dictionaries({name: st.sampled_from(some) for name, some in members.items()})
    return st.builds(
        lambda known, more, inner: {"type": kind, **more, **known, "children": inner}, made, MORE, children
    )


LISTS = st.recursive(
    of("list-item", INLINE),
    lambda inner: of(
        "list",
        st.lists(inner, min_size=0, max_size=3),
        format=["ordered", "unordered"],
        indentLevel=[0, 1, None],
    ),
    max_leaves=8,
)
BLOCKS = st.lists(
    st.one_of(
        of("paragraph", INLINE),
        of("heading", INLINE, level=[1, 2, 6, "3", 9]),
        of("quote", INLINE),
        of("code", st.lists(MARKED, max_size=3), language=["js", "", None]),
        of("list", st.lists(LISTS, max_size=3), format=["ordered", "unordered", "other"]),
        of("image", st.just([words("")]), image=[{"url": "/a.png", "name": "a"}, None]),
        of("chart", INLINE),
        ODD,
    ),
    max_size=5,
).map(lambda blocks: [*blocks, block("heading", "Last", level=2)])
# Converts blocks to the editor's document and back: unchanged, after copying the document, and with each
# block edited.
THROUGH = """async ([value, root]) => {
  const { blocksOf, documentOf } = await import(root + "blocks/convert.js");
  const { schema } = await import(root + "blocks/schema.js");
  const { EditorState } = await import(root + "vendor/prosemirror.js");
  const copy = (json) => JSON.parse(JSON.stringify(json));
  const document = documentOf(value);
  const again = schema.nodeFromJSON(copy(document.toJSON()));
  const edited = [];
  let at = 0;
  document.children.forEach((node, index) => {
    if (node.isTextblock) {
      const state = EditorState.create({ doc: document });
      const typed = state.apply(state.tr.insertText("!", at + 1));
      edited.push([index, blocksOf(typed.doc, value)]);
    }
    at += node.nodeSize;
  });
  return { same: blocksOf(document, value) === value, again: blocksOf(again, []), edited };
}"""


# The editor joins neighbors with the same properties, so the list becomes shorter.
MERGED = {"type": "text", "text": "a", "italic": True, "code": True, "colour": {"r": 1}}


def test_blocks_go_through_the_editor_without_a_loss(form: Page) -> None:
    root = form.evaluate("new URL('.', document.querySelector('script[src]').src).href")

    @settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
    @given(BLOCKS)
    @example([block("paragraph", None, MERGED, MERGED), block("heading", "Last", level=2)])
    def hold(value: list[Any]) -> None:
        through = form.evaluate(THROUGH, [value, root])
        assert through["same"]
        assert through["again"] == value
        for index, edited in through["edited"]:
            assert edited[:index] + edited[index + 1 :] == value[:index] + value[index + 1 :]
            assert {**edited[index], "children": 0} == {**value[index], "children": 0}
            assert plain(edited[index]) == "!" + plain(value[index])

    hold()


def plain(node: Any) -> str:
    """Return the text in a node."""
    if not isinstance(node, dict):
        return ""
    own = node.get("text", "")
    return str(own) + "".join(map(plain, node.get("children", [])))
