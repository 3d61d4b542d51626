"""The form of a document, in a browser: what it writes to the file, and how it handles changes by others."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import HELD_FRAMES, SLOW, Page, Studio, answer_to, expect, sign_in
from tests.waiting import until

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "title": {"type": "string", "required": True, "maxLength": 20},
    "slug": {"type": "uid", "targetField": "title"},
    "summary": {"type": "text"},
    "email": {"type": "email"},
    "secret": {"type": "password"},
    "colour": {"type": "enumeration", "enum": ["red", "green"]},
    "day": {"type": "date"},
    "clock": {"type": "time"},
    "moment": {"type": "datetime"},
    "count": {"type": "integer", "min": 1, "max": 60},
    "big": {"type": "biginteger"},
    "ratio": {"type": "float"},
    "price": {"type": "decimal"},
    "open": {"type": "boolean"},
    "data": {"type": "json"},
    "rich": {"type": "blocks"},
    "body": {"type": "richtext"},
}
UNREACHED = "The server can't be reached. Your changes are kept in this page."
SAMPLE = """---
# Who edits this by hand likes it as it is.
title:   "One"     # in quotes
slug: one
email: one@example.org
secret: "$2b$10$abcdefghijklmnopqrstuuFgX0u4rW0bq0m0Zb8a5n5yq5G3l1m1K"
colour:  red
day: 2024-02-29
clock: 10:20:30.000
moment: 2024-02-29T10:20:00.000Z
count: 7           # of them
big: 12345678901234567890
ratio: 0.50
price: 12.30
open: yes
data: {b: 1, a: [1,   2]}
rich:
  - {type: paragraph, children: [{type: text, text: Hello}]}
other: "no schema knows this"
createdAt: 2024-01-22T08:00:00.000Z
updatedAt: 2024-01-22T08:00:00.000Z
summary: >-
  Folded,
  by hand.
---
The body,
in *Markdown*.
"""
# The value that is typed into each field, and the resulting lines of the file.
EDITS = {
    "Title": ("Two", 'title:   "Two"     # in quotes'),
    "Slug": ("two", "slug: two"),
    "Email": ("two@example.org", "email: two@example.org"),
    "Day": ("2024-03-01", "day: 2024-03-01"),
    "Clock": ("11:05:00", "clock: 11:05:00.000"),
    "Moment": ("2024-02-29T12:00", "moment: 2024-02-29T11:00:00.000Z"),
    "Count": ("8", "count: 8           # of them"),
    "Big": ("12345678901234567899", "big: 12345678901234567899"),
    "Ratio": ("0.75", "ratio: 0.75"),
    "Price": ("0.1234567890123456789", "price: 0.1234567890123456789"),
    "Data": ('{"b": 2, "a": [1, 2]}', "data: {b: 2, a: [1,   2]}"),
    "Summary": ("Another", "summary: Another"),
    "Body": ("The body,\nin **Markdown**.", "in **Markdown**."),
}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f0005000501ae2a3b3b0000000049454e44ae426082"
)
ROLES = """
roles:
  public: {auth: [callback]}
  writer: {page: [find, findOne, readDraft, updateDraft], tag: [find, findOne], author: [find, findOne],
    article: [find, findOne]}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with two content types: one has attributes of every type, the other has no
    drafts.
    """
    studio = Studio(tmp_path_factory.mktemp("form"))
    define(studio, "sample", ATTRIBUTES, draftAndPublish=True)
    define(studio, "plain", ATTRIBUTES)
    many = {f"field{number}": {"type": "string"} for number in range(60)}
    define(studio, "large", many)
    studio.start()
    yield studio
    stop(studio.process)


def define(studio: Studio, name: str, attributes: dict[str, Any], **options: Any) -> None:
    """Add a content type and a document named `one` to a site whose server has not been started yet."""
    schema = {
        "info": {"singularName": name, "pluralName": f"{name}s", "displayName": name.title()},
        "options": options,
        "attributes": attributes,
    }
    (studio.root / f"content-types/{name}.json").write_text(json.dumps(schema))
    folder = studio.root / f"content/{name}s"
    folder.mkdir()
    (folder / "one.md").write_text(SAMPLE if name != "large" else "---\nfield1: one\n---\n")


@pytest.fixture(scope="module")
def answers(site: Studio, entered: Any, browser: Any) -> dict[str, str]:
    """The API's responses for the documents that tests change, by path, before the first change."""
    context = browser.new_context(storage_state=entered)
    found = {path: answer_to(context, site, path) for path in ("samples/one", "plains/one")}
    context.close()
    return found


@pytest.fixture
def form(site: Studio, entered: Any, new_page: Callable[..., Page], answers: dict[str, str]) -> Page:
    """A page in which the owner is signed in, with the time zone of Paris. The documents of `site` are in
    their initial state.
    """
    for name in ("sample", "plain"):
        folder = site.root / f"content/{name}s"
        for path in folder.iterdir():
            if path.name != "one.md":
                path.unlink()
        (folder / "one.md").write_text(SAMPLE)
    page = new_page(storage_state=entered, timezone_id="Europe/Paris")
    until(lambda: all(answer_to(page, site, path) == answer for path, answer in answers.items()))
    return page


def open_form(page: Page, site: Studio, path: str) -> None:
    """Open a document's page, and wait for its fields."""
    page.goto(f"{site.url}/{path}")
    page.locator(".form-field").first.wait_for()


def told(page: Page, text: str) -> None:
    """Wait until the form displays a message."""
    page.get_by_role("status").filter(has_text=re.compile(f"^\\s*{re.escape(text)}")).wait_for()


def lines_that_changed(before: str, after: str) -> list[str]:
    """Return the lines that are in only one of two texts. Ignore the timestamps that each write sets."""
    old = before.splitlines()
    return [line for line in after.splitlines() if line not in old and not line.startswith("updatedAt:")]


def test_a_save_writes_what_was_edited_and_no_other_line(form: Page, site: Studio) -> None:
    path = site.root / "content/plains/one.md"
    open_form(form, site, "plain/one")
    wrong = {}
    for label, (text, wanted) in EDITS.items():
        before = path.read_text()
        form.get_by_label(label, exact=True).fill(text)
        told(form, "One field is not saved")  # The message about the previous save has disappeared.
        form.keyboard.press("Control+s")
        told(form, "Saved")
        after = path.read_text()
        added, removed = lines_that_changed(before, after), lines_that_changed(after, before)
        expected = lines_that_changed(before, wanted)
        if (added, len(removed)) != (expected, 3 if label == "Summary" else 1):
            wrong[label] = (added, removed)
    assert wrong == {}


def test_choices_and_passwords_are_written_as_well(form: Page, site: Studio) -> None:
    open_form(form, site, "plain/one")
    form.get_by_role("group", name="Secret").get_by_role("button", name="Replace").click()
    form.get_by_label("Secret").fill("rope and chain")
    form.get_by_label("Colour").select_option("green")
    form.get_by_role("radio", name="No", exact=True).check()
    form.get_by_role("button", name="JSON").click()
    form.get_by_label("Rich").fill('[{"type": "paragraph", "children": [{"type": "text", "text": "Hi"}]}]')
    form.get_by_role("button", name="Save").click()
    told(form, "Saved")
    expect(form.get_by_role("button", name="Save")).to_be_focused()
    after = lines_that_changed(SAMPLE, (site.root / "content/plains/one.md").read_text())
    assert [line.partition(":")[0].strip() for line in after] == ["secret", "colour", "open", "- {type"]


def test_a_draft_is_saved_beside_what_is_published_and_published(form: Page, site: Studio) -> None:
    folder = site.root / "content/samples"
    open_form(form, site, "sample/one")
    expect(form.get_by_role("button", name="Publish")).to_be_disabled()
    form.get_by_label("Title").fill("Draft")
    form.get_by_role("button", name="Save draft").click()
    told(form, "Saved as a draft")
    form.get_by_text("Modified").wait_for()
    assert (folder / "one.md").read_text() == SAMPLE
    form.get_by_label("Count").fill("9")
    form.get_by_role("button", name="Publish").click()
    told(form, "Published")
    form.locator(".status.is-published").wait_for()
    expect(form.get_by_role("button", name="Publish")).to_be_focused()
    published = lines_that_changed(SAMPLE, (folder / "one.md").read_text())
    assert published[:2] == ['title:   "Draft"     # in quotes', "count: 9           # of them"]
    assert [path.name for path in folder.iterdir()] == ["one.md"]


def test_what_breaks_a_rule_is_told_at_its_field(form: Page, site: Studio) -> None:
    open_form(form, site, "sample/one")
    title, count = form.get_by_label("Title"), form.get_by_label("Count")
    title.fill("A title that is far too long for it")
    count.fill("many")
    form.keyboard.press("Control+s")
    told(form, "2 fields are invalid")
    expect(title).to_be_focused()
    form.get_by_role("status").get_by_role("button", name="Count").click()
    expect(count).to_be_focused()
    expect(title).to_have_attribute("aria-invalid", "true")
    error = form.locator(f"#{title.get_attribute('aria-describedby').split()[-1]}")
    expect(error).to_have_text("Must be at most 20 characters")
    expect(count).to_have_attribute("aria-invalid", "true")
    expect(title).to_have_value("A title that is far too long for it")
    expect(count).to_have_value("many")
    title.fill("")
    count.fill("3")
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")  # A draft can be created.
    form.get_by_role("button", name="Publish").click()
    told(form, "One field is invalid")
    expect(error).to_have_text("Is required")


def test_what_the_server_refuses_is_told_at_its_field(form: Page, site: Studio) -> None:
    (site.root / "content/plains/two.md").write_text("---\ntitle: Other\nslug: other\n---\n")
    until(lambda: "Other" in answer_to(form, site, "plains/two"))
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Typed")
    form.get_by_label("Slug").fill("other")
    form.get_by_label("Slug").press("Control+s")
    form.get_by_text("This attribute must be unique").wait_for()
    told(form, "One field is invalid")
    expect(form.get_by_label("Slug")).to_be_focused()
    expect(form.get_by_label("Slug")).to_have_value("other")
    expect(form.get_by_label("Title")).to_have_value("Typed")


def test_edits_of_different_fields_are_both_kept(form: Page, site: Studio) -> None:
    path = site.root / "content/plains/one.md"
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Mine")
    path.write_text(SAMPLE.replace("one@example.org", "them@example.org"))
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert lines_that_changed(SAMPLE, path.read_text())[:2] == [
        'title:   "Mine"     # in quotes',
        "email: them@example.org",
    ]
    expect(form.get_by_label("Email")).to_have_value("them@example.org")


@pytest.mark.parametrize("choice", ["Keep mine", "Use theirs"])
def test_of_one_field_that_both_have_changed_both_are_shown(form: Page, site: Studio, choice: str) -> None:
    path = site.root / "content/plains/one.md"
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Mine")
    form.get_by_label("Count").fill("9")
    path.write_text(SAMPLE.replace('"One"', '"Theirs"'))
    form.keyboard.press("Control+s")
    both = form.get_by_role("group", name="Title: also changed by someone else")
    both.wait_for()
    expect(both.get_by_role("region")).to_have_text(["Theirs", "Mine"], use_inner_text=True)
    assert 'title:   "Theirs"' in path.read_text()
    both.get_by_role("button", name=choice).click()
    form.keyboard.press("Control+s")
    told(form, "Saved")
    wanted = "Mine" if choice == "Keep mine" else "Theirs"
    assert f'title:   "{wanted}"' in path.read_text()
    assert "count: 9 " in path.read_text()


def test_unsaved_work_is_offered_again_with_a_comparison(form: Page, site: Studio) -> None:
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Not saved")
    form.get_by_role("group", name="Secret").get_by_role("button", name="Replace").click()
    form.get_by_label("Secret").fill("never kept")
    until(lambda: "Not saved" in str(form.evaluate("JSON.stringify(localStorage)")))
    assert "never kept" not in form.evaluate("JSON.stringify(localStorage)")
    form.on("dialog", lambda dialog: dialog.accept())
    form.reload()
    offer = form.get_by_role("region", name="Unsaved work")
    offer.wait_for()
    expect(form.get_by_label("Title")).to_have_value("One")
    expect(offer.get_by_role("region")).to_have_text(["One", "Not saved"], use_inner_text=True)
    offer.get_by_role("button", name="Restore", exact=True).click()
    expect(form.get_by_label("Title")).to_have_value("Not saved")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    until(lambda: "bifolio-unsaved" not in str(form.evaluate("JSON.stringify(localStorage)")))
    form.reload()
    expect(form.get_by_label("Title")).to_have_value("Not saved")
    expect(form.get_by_role("button", name="Save")).to_be_disabled()
    expect(offer).to_be_hidden()


def test_nobody_leaves_unsaved_work_unasked(form: Page, site: Studio) -> None:
    dialog = form.get_by_role("dialog", name="Leave the page?")
    form.goto(f"{site.url}/plain")
    form.get_by_role("link", name="One").click()
    form.get_by_label("Title").fill("Not saved")
    form.get_by_role("link", name="Tags").click()
    dialog.get_by_role("button", name="Cancel").click()
    form.go_back()
    dialog.get_by_role("button", name="Cancel").click()
    expect(form.get_by_label("Title")).to_have_value("Not saved")
    expect(form).to_have_url(f"{site.url}/plain/one")
    form.get_by_label("Title").fill("One")
    form.get_by_role("link", name="Tags").click()
    form.get_by_role("heading", level=1, name="Tags").wait_for()


def test_of_a_new_document_nothing_is_edited_before_somebody_does(form: Page, site: Studio) -> None:
    open_form(form, site, "article/-/new")
    expect(form.get_by_role("button", name="Save draft")).to_be_enabled()
    expect(form.locator(".actions-told")).to_have_text("")
    form.get_by_label("Title").first.fill("Marsh")
    told(form, "2 fields are not saved")  # the second one is the slug
    form.get_by_label("Title").first.fill("")
    form.get_by_label("Slug").fill("")
    form.get_by_role("link", name="Tags", exact=False).first.click()
    form.get_by_role("heading", level=1, name="Tags").wait_for()


def test_a_document_is_made_duplicated_and_deleted(form: Page, site: Studio) -> None:
    folder = site.root / "content/samples"
    more = form.get_by_role("button", name="More", exact=True)
    missing: list[str] = []  # URLs of responses with status 404, which the browser would log as errors
    form.on("response", lambda answer: missing.append(answer.url) if answer.status == 404 else None)
    open_form(form, site, "sample/-/new")
    form.get_by_label("Title").fill("Là & où")
    expect(form.get_by_label("Slug")).to_have_value("la-and-ou")
    form.get_by_role("button", name="Save draft").click()
    more.click()
    form.get_by_role("button", name="Duplicate").wait_for()
    expect(form.get_by_role("heading", level=1)).to_have_text("Là & où")
    assert (folder / "la-and-ou.draft.md").exists() or (folder / "la-and-ou.md").exists()
    form.get_by_role("button", name="Duplicate").click()
    form.get_by_text("Generate from title").wait_for()
    assert missing == []
    form.get_by_label("Title").fill("Copy")
    form.get_by_role("button", name="Publish").click()
    form.locator(".status.is-published").wait_for()
    assert (folder / "copy.md").exists()
    more.click()
    form.get_by_role("button", name="Delete").click()
    form.get_by_role("heading", level=1, name="Samples").wait_for()
    assert not (folder / "copy.md").exists()


def test_a_slug_that_is_typed_by_hand_before_the_browser_paints_stays(form: Page, site: Studio) -> None:
    form.add_init_script(HELD_FRAMES)
    open_form(form, site, "plain/-/new")
    form.evaluate("holdFrames()")
    form.get_by_label("Title").fill("Là & où")
    form.get_by_label("Slug").fill("by-hand")
    form.evaluate("releaseFrames()")
    form.get_by_label("Count").fill("3")
    told(form, "3 fields are not saved")
    expect(form.get_by_label("Slug")).to_have_value("by-hand")


def test_a_role_that_may_only_write_drafts_sees_no_publish(
    tmp_path: Path, new_page: Callable[..., Page]
) -> None:
    studio = Studio(tmp_path)
    settings = studio.root / "site.yaml"
    settings.write_text(settings.read_text().partition("roles:")[0] + ROLES)
    add_user(studio, "nell", "writer")
    studio.start()
    try:
        page = new_page()
        page.goto(f"{studio.url}/page")
        sign_in(page, "nell")
        page.get_by_role("heading", level=1, name="Pages").wait_for()
        open_form(page, studio, "page/about")
        shown = page.locator(".actions").get_by_role("button")
        expect(shown).to_have_text(["More", "Save draft"], use_inner_text=True)
        page.get_by_label("Title").fill("About them")
        page.keyboard.press("Control+s")
        told(page, "Saved as a draft")
        assert "About them" in (studio.root / "content/pages/about.draft.md").read_text()
        open_form(page, studio, "tag/fog")
        expect(page.get_by_label("Name")).to_be_disabled()
        expect(shown).to_have_count(0)
        open_form(page, studio, "author/nell-trevanion")
        listed = page.get_by_role("listitem").filter(has_text="What slack water is")
        expect(listed.get_by_role("link")).to_be_visible()
        expect(listed.get_by_role("button")).to_have_count(0)
        biography = page.locator("#field-bio.cm-content")
        expect(biography).to_have_attribute("contenteditable", "false")
        expect(biography).to_have_attribute("aria-readonly", "true")
        page.locator(".form-field").get_by_role("button", name="Preview of Bio", exact=True).click()
        page.get_by_role("region", name="Preview of Bio", exact=True).wait_for()
    finally:
        stop(studio.process)


def test_without_a_network_what_was_typed_stays(form: Page, site: Studio) -> None:
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Typed")
    form.context.set_offline(True)
    form.keyboard.press("Control+s")
    told(form, UNREACHED)
    form.context.set_offline(False)
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert '"Typed"' in (site.root / "content/plains/one.md").read_text()


def test_a_late_answer_does_not_say_that_the_server_is_back(form: Page, site: Studio) -> None:
    asked: list[Any] = []
    form.route(re.compile(r":\d+/presence/"), lambda route: asked.append(route))
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Typed")
    until(lambda: form.evaluate("1") == 1 and bool(asked))  # lets Playwright process the request
    form.context.set_offline(True)
    form.keyboard.press("Control+s")
    told(form, UNREACHED)
    with form.expect_event("requestfinished", lambda request: "/presence/" in request.url):
        asked[0].fulfill(json={"data": []})
    form.evaluate("new Promise((done) => setTimeout(done))")
    assert form.get_by_role("status").filter(has_text=UNREACHED).count() == 1
    form.context.set_offline(False)
    expect(form.get_by_role("status").filter(has_text=UNREACHED)).to_have_count(0)


def test_what_others_change_appears_at_once(form: Page, site: Studio) -> None:
    path = site.root / "content/plains/one.md"
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Mine")
    path.write_text(SAMPLE.replace("one@example.org", "them@example.org"))
    expect(form.get_by_label("Email")).to_have_value("them@example.org")
    expect(form.get_by_label("Title")).to_have_value("Mine")
    path.write_text(SAMPLE.replace('"One"', '"Theirs"'))
    both = form.get_by_role("group", name="Title: also changed by someone else")
    both.wait_for()
    expect(form.get_by_label("Email")).to_have_value("one@example.org")
    form.keyboard.press("Control+s")
    told(form, "Someone else changed the same fields")
    assert '"Theirs"' in path.read_text()
    both.get_by_role("button", name="Keep mine").click()
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert '"Mine"' in path.read_text()


def test_text_stays_if_its_attribute_or_content_type_is_gone(form: Page, site: Studio) -> None:
    schema, page = site.root / "content-types/plain.json", site.root / "content/plains/one.md"
    before = schema.read_text()
    lost = form.get_by_role("region", name="Text that was not saved")
    try:
        open_form(form, site, "plain/one")
        form.get_by_label("Summary").fill("Not lost")
        form.get_by_label("Title").fill("Mine")
        schema.write_text(before.replace('"summary"', '"abstract"'))
        lost.wait_for()
        expect(lost).to_contain_text("Summary no longer exists. This text was not saved:")
        expect(lost.get_by_role("region")).to_have_text("Not lost")
        form.get_by_label("Abstract").wait_for()
        form.keyboard.press("Control+s")
        told(form, "Saved")
        assert '"Mine"' in page.read_text()
        form.reload()
        expect(lost.get_by_role("region")).to_have_text("Not lost")
        # Once the attribute is back, the text is in its field again.
        schema.write_text(before)
        expect(lost).to_have_count(0)
        form.get_by_role("group", name="Summary: also changed by someone else").wait_for()
        form.get_by_role("button", name="Keep mine").click()
        expect(form.get_by_label("Summary")).to_have_value("Not lost")
        # Without an event, a refused save says what has changed.
        form.route(re.compile("/events"), lambda route: route.abort())
        form.reload()
        form.get_by_role("button", name="Restore", exact=True).click()
        schema.write_text(before.replace('"summary"', '"abstract"'))
        until(lambda: "abstract" in answer_to(form, site, "plains/one"))
        form.keyboard.press("Control+s")
        told(form, "The content type has changed meanwhile")
        expect(lost.get_by_role("region")).to_have_text("Not lost")
        form.get_by_label("Title").fill("Typed")
        schema.rename(site.root / "plain.json")
        until(lambda: not answer_to(form, site, "plains/one"))
        form.keyboard.press("Control+s")
        form.get_by_text("The content type Plain was deleted").wait_for()
        expect(lost.get_by_role("region")).to_have_text(["Not lost", "Typed"])
        lost.get_by_role("button", name="Discard").first.click()
        form.reload()
        expect(lost.get_by_role("region")).to_have_text("Typed")
    finally:
        (site.root / "plain.json").unlink(missing_ok=True)
        schema.write_text(before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_form(
    studio: Studio,
    signed_in: Any,
    new_page: Callable[..., Page],
    scheme: str,
    check_access: Callable[[Page], None],
) -> None:
    page = new_page(storage_state=signed_in, color_scheme=scheme)
    open_form(page, studio, "article/2025--goemon")
    page.get_by_role("link", name=re.compile("^Articles [0-9]")).wait_for()
    for name, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"form-{scheme}{SHOWN[name]}")


def test_a_form_of_60_fields_opens_at_once(form: Page, site: Studio) -> None:
    form.goto(f"{site.url}/large")
    link = form.get_by_role("link", name="one")
    took = []
    for _ in range(5):
        link.wait_for()
        took.append(form.evaluate(OPENING_MS))
        form.go_back()
    assert min(took) < 200 * SLOW


OPENING_MS = """() => new Promise((done) => {
  const begun = performance.now();
  [...document.querySelectorAll("main a")].find((a) => a.textContent === "one").click();
  const look = () => document.querySelectorAll(".form-field").length === 60
    ? requestAnimationFrame(() => done(performance.now() - begun)) : setTimeout(look, 1);
  look();
})"""


def test_what_is_typed_while_a_document_is_made_stays(form: Page, site: Studio) -> None:
    waiting: list[Any] = []

    def hold(route: Any) -> None:
        waiting.append(route)

    def let_go() -> None:
        until(lambda: form.evaluate("1") == 1 and bool(waiting))  # lets Playwright process the request
        waiting.pop().continue_()

    open_form(form, site, "plain/-/new")
    form.get_by_label("Title").fill("Made")
    form.get_by_label("Email").focus()
    form.route(re.compile(r"/api/plains\?fields\[0\]=documentId|/api/plains/\w"), hold)
    form.keyboard.press("Control+s")
    form.get_by_role("button", name="Saving…").wait_for()
    form.keyboard.type("ada")
    let_go()
    form.wait_for_url(lambda url: not url.endswith("/new"))
    form.keyboard.type("@example")
    let_go()
    form.unroute_all()
    form.get_by_role("button", name="More", exact=True).wait_for()
    form.get_by_text("Changed just now").wait_for()
    form.keyboard.type(".org")
    told(form, "One field is not saved")
    expect(form.get_by_label("Email")).to_have_value("ada@example.org")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    written = (site.root / "content/plains/made.md").read_text()
    assert "title: Made\n" in written
    assert "email: ada@example.org\n" in written
