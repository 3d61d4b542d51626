"""The form of a document, with a browser: what it writes into the file, and what it does beside others."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio
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
# What is typed into each field, and what the file says then.
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
ROLES = """
roles:
  public: {auth: [callback]}
  writer: {page: [find, findOne, readDraft, updateDraft], tag: [find, findOne]}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with a type of every kind of attribute, and one without drafts."""
    studio = Studio(tmp_path_factory.mktemp("form"))
    define(studio, "sample", ATTRIBUTES, draftAndPublish=True)
    define(studio, "plain", ATTRIBUTES)
    many = {f"field{number}": {"type": "string"} for number in range(60)}
    define(studio, "large", many)
    studio.start()
    yield studio
    stop(studio.process)


def define(studio: Studio, name: str, attributes: dict[str, Any], **options: Any) -> None:
    """Add a content type to a site that is not served yet, with a document called `one`."""
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
def entered(site: Studio, browser: Any) -> Any:
    """The state of a browser in which the owner of `site` has signed in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.entrance)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def form(site: Studio, entered: Any, new_page: Callable[..., Page]) -> Page:
    """A page that has signed in, in the time zone of Paris; the documents of `site` are as they were."""
    for name in ("sample", "plain"):
        folder = site.root / f"content/{name}s"
        for path in folder.iterdir():
            if path.name != "one.md":
                path.unlink()
        (folder / "one.md").write_text(SAMPLE)
    page = new_page(storage_state=entered, timezone_id="Europe/Paris")
    until(lambda: title_of(page, site, "plains") == title_of(page, site, "samples") == "One")
    return page


def title_of(page: Page, site: Studio, plural: str) -> str:
    """The title of the document `one`, as the server knows it."""
    url = f"http://127.0.0.1:{site.port}/api/{plural}/one"
    answer = page.request.get(url, headers={"Quire-Studio": "1", "Sec-Fetch-Site": "same-origin"})
    return str(answer.json()["data"]["title"]) if answer.ok else ""


def open_form(page: Page, site: Studio, path: str) -> None:
    """Open a page of a document, and wait for its fields."""
    page.goto(f"{site.url}/{path}")
    page.locator(".form-field").first.wait_for()


def told(page: Page, text: str) -> None:
    """Wait until the form says something of itself."""
    page.get_by_role("status").filter(has_text=re.compile(f"^\\s*{re.escape(text)}")).wait_for()


def lines_that_changed(before: str, after: str) -> list[str]:
    """The lines that one text has and another has not, but the timestamps that every write brings."""
    old = before.splitlines()
    return [line for line in after.splitlines() if line not in old and not line.startswith("updatedAt:")]


@pytest.mark.parametrize("label", EDITS)
def test_a_save_writes_what_was_edited_and_no_other_line(form: Page, site: Studio, label: str) -> None:
    text, wanted = EDITS[label]
    open_form(form, site, "plain/one")
    form.get_by_label(label, exact=True).fill(text)
    form.keyboard.press("Control+s")
    told(form, "Saved")
    after = (site.root / "content/plains/one.md").read_text()
    assert lines_that_changed(SAMPLE, after) == lines_that_changed(SAMPLE, wanted)
    assert len(lines_that_changed(after, SAMPLE)) == (3 if label == "Summary" else 1)


def test_choices_and_passwords_are_written_as_well(form: Page, site: Studio) -> None:
    open_form(form, site, "plain/one")
    assert form.get_by_label("Secret").input_value() == ""
    form.get_by_label("Secret").fill("rope and chain")
    form.get_by_label("Colour").select_option("green")
    form.get_by_role("radio", name="No", exact=True).check()
    form.get_by_label("Rich").fill('[{"type": "paragraph", "children": [{"type": "text", "text": "Hi"}]}]')
    form.get_by_role("button", name="Save").click()
    told(form, "Saved")
    after = lines_that_changed(SAMPLE, (site.root / "content/plains/one.md").read_text())
    assert [line.partition(":")[0].strip() for line in after] == ["secret", "colour", "open", "- {type"]
    assert form.get_by_label("Secret").input_value() == ""


def test_a_draft_is_saved_beside_what_is_published_and_published(form: Page, site: Studio) -> None:
    folder = site.root / "content/samples"
    open_form(form, site, "sample/one")
    assert form.get_by_role("button", name="Publish").is_disabled()
    form.get_by_label("Title").fill("Draft")
    form.get_by_role("button", name="Save draft").click()
    told(form, "Saved as a draft")
    form.get_by_text("Modified").wait_for()
    assert (folder / "one.md").read_text() == SAMPLE
    form.get_by_label("Count").fill("9")
    form.get_by_role("button", name="Publish").click()
    told(form, "Published")
    form.locator(".status.is-published").wait_for()
    published = lines_that_changed(SAMPLE, (folder / "one.md").read_text())
    assert published[:2] == ['title:   "Draft"     # in quotes', "count: 9           # of them"]
    assert [path.name for path in folder.iterdir()] == ["one.md"]


def test_what_breaks_a_rule_is_told_at_its_field(form: Page, site: Studio) -> None:
    open_form(form, site, "sample/one")
    title, count = form.get_by_label("Title"), form.get_by_label("Count")
    title.fill("A title that is far too long for it")
    count.fill("many")
    form.keyboard.press("Control+s")
    told(form, "2 fields are not right yet")
    until(lambda: form.evaluate("document.activeElement.id") == "field-title")
    error = form.locator(f"#{title.get_attribute('aria-describedby').split()[-1]}")
    assert error.inner_text() == "Must be at most 20 characters"
    assert count.get_attribute("aria-invalid") == "true"
    title.fill("")
    count.fill("3")
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")  # A draft may be begun.
    form.get_by_role("button", name="Publish").click()
    told(form, "One field is not right yet")
    assert error.inner_text() == "Is required"


def test_what_the_server_refuses_is_told_at_its_field(form: Page, site: Studio) -> None:
    (site.root / "content/plains/two.md").write_text("---\ntitle: Other\nslug: other\n---\n")
    open_form(form, site, "plain/one")
    form.get_by_label("Slug").fill("other")
    form.get_by_label("Slug").press("Control+s")
    form.get_by_text("Must be unique: another document has this value").wait_for()


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
    assert form.get_by_label("Email").input_value() == "them@example.org"


@pytest.mark.parametrize("choice", ["Keep mine", "Take theirs"])
def test_of_one_field_that_both_have_changed_both_are_shown(form: Page, site: Studio, choice: str) -> None:
    path = site.root / "content/plains/one.md"
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Mine")
    form.get_by_label("Count").fill("9")
    path.write_text(SAMPLE.replace('"One"', '"Theirs"'))
    form.keyboard.press("Control+s")
    both = form.get_by_role("group", name="Title: changed by somebody else as well")
    both.wait_for()
    assert both.get_by_role("region").all_inner_texts() == ["Theirs", "Mine"]
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
    form.get_by_label("Secret").fill("never kept")
    until(lambda: "Not saved" in str(form.evaluate("JSON.stringify(localStorage)")))
    assert "never kept" not in form.evaluate("JSON.stringify(localStorage)")
    form.on("dialog", lambda dialog: dialog.accept())
    form.reload()
    offer = form.get_by_role("region", name="Unsaved work")
    offer.wait_for()
    assert form.get_by_label("Title").input_value() == "One"
    assert offer.get_by_role("region").all_inner_texts() == ["One", "Not saved"]
    offer.get_by_role("button", name="Put it back").click()
    assert form.get_by_label("Title").input_value() == "Not saved"
    form.keyboard.press("Control+s")
    told(form, "Saved")
    form.reload()
    form.get_by_label("Title").wait_for()
    assert not offer.is_visible()


def test_nobody_leaves_unsaved_work_unasked(form: Page, site: Studio) -> None:
    asked: list[str] = []
    form.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    form.goto(f"{site.url}/plain")
    form.get_by_role("link", name="One").click()
    form.get_by_label("Title").fill("Not saved")
    form.get_by_role("link", name="Tags").click()
    form.go_back()
    until(lambda: form.title() != "" and len(asked) == 2)  # Asking for the title, it hears of dialogs.
    assert form.get_by_label("Title").input_value() == "Not saved"
    assert form.url == f"{site.url}/plain/one"
    form.get_by_label("Title").fill("One")
    form.get_by_role("link", name="Tags").click()
    form.get_by_role("heading", level=1, name="Tags").wait_for()


def test_a_document_is_made_duplicated_and_deleted(form: Page, site: Studio) -> None:
    folder = site.root / "content/samples"
    form.on("dialog", lambda dialog: dialog.accept())
    open_form(form, site, "sample/-/new")
    form.get_by_label("Title").fill("Là & où")
    until(lambda: form.get_by_label("Slug").input_value() == "la-and-ou")
    form.get_by_role("button", name="Save draft").click()
    form.get_by_role("link", name="Duplicate").wait_for()
    assert form.get_by_role("heading", level=1).inner_text() == "Là & où"
    assert (folder / "la-and-ou.draft.md").exists() or (folder / "la-and-ou.md").exists()
    form.get_by_role("link", name="Duplicate").click()
    form.get_by_text("Make from title").wait_for()
    form.get_by_label("Title").fill("Copy")
    form.get_by_role("button", name="Publish").click()
    form.locator(".status.is-published").wait_for()
    assert (folder / "copy.md").exists()
    form.get_by_role("button", name="Delete").click()
    form.get_by_role("heading", level=1, name="Samples").wait_for()
    assert not (folder / "copy.md").exists()


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
        page.get_by_label("E-mail address or user name").fill("nell")
        page.get_by_label("Password").fill("slack water")
        page.keyboard.press("Enter")
        page.get_by_role("heading", level=1, name="Pages").wait_for()
        open_form(page, studio, "page/about")
        shown = page.locator(".actions").get_by_role("button")
        assert shown.all_inner_texts() == ["Save draft"]
        page.get_by_label("Title").fill("About them")
        page.keyboard.press("Control+s")
        told(page, "Saved as a draft")
        assert "About them" in (studio.root / "content/pages/about.draft.md").read_text()
        open_form(page, studio, "tag/fog")
        assert shown.count() == 0
        assert page.get_by_label("Name").is_disabled()
    finally:
        stop(studio.process)


def test_without_a_network_what_was_typed_stays(form: Page, site: Studio) -> None:
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Typed")
    form.context.set_offline(True)
    form.keyboard.press("Control+s")
    told(form, "The server can't be reached. What you have typed is kept here.")
    form.context.set_offline(False)
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert '"Typed"' in (site.root / "content/plains/one.md").read_text()


def test_relations_are_found_ordered_and_taken_away(form: Page, site: Studio) -> None:
    path = site.root / "content/articles/2025/goemon.md"
    before = path.read_text()
    open_form(form, site, "article/2025--goemon")
    tags = form.get_by_role("combobox", name="Tags")
    tags.fill("isl")
    form.get_by_role("option", name="Islands").wait_for()
    tags.press("Enter")
    form.get_by_role("button", name="Move Islands, with the arrow keys").press("ArrowUp")
    form.get_by_role("button", name="Remove History").click()
    form.get_by_role("button", name="Remove Ewen Gourvellec").click()
    author = form.get_by_role("combobox", name="Author")
    author.fill("winif")
    form.get_by_role("option", name="Winifred Stannage").click()
    form.get_by_role("button", name="Publish").click()
    told(form, "Published")
    changed = lines_that_changed(before, path.read_text())
    assert changed[:2] == ["author: winifred-stannage", "tags: [seaweed, islands]"]
    handles = form.locator("[id^=field-tags-move]")
    handles.nth(1).drag_to(handles.nth(0))
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    assert "tags: [islands, seaweed]" in path.with_name("goemon.draft.md").read_text()


def test_what_others_change_appears_at_once(form: Page, site: Studio) -> None:
    path = site.root / "content/plains/one.md"
    open_form(form, site, "plain/one")
    form.get_by_label("Title").fill("Mine")
    path.write_text(SAMPLE.replace("one@example.org", "them@example.org"))
    until(lambda: form.get_by_label("Email").input_value() == "them@example.org")
    assert form.get_by_label("Title").input_value() == "Mine"
    path.write_text(SAMPLE.replace('"One"', '"Theirs"'))
    both = form.get_by_role("group", name="Title: changed by somebody else as well")
    both.wait_for()
    assert form.get_by_label("Email").input_value() == "one@example.org"
    form.keyboard.press("Control+s")
    told(form, "Somebody else has changed the same")
    assert '"Theirs"' in path.read_text()
    both.get_by_role("button", name="Keep mine").click()
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert '"Mine"' in path.read_text()


def test_locales_are_made_and_what_they_share_says_so(form: Page, site: Studio) -> None:
    path = site.root / "content/articles/hand-made.draft.md"
    path.write_text(ZONE)
    until(lambda: listed(form, site, "hand-made"))
    open_form(form, site, "article/hand-made")
    form.get_by_label("Reading minutes").fill("4")
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    form.get_by_role("link", name=re.compile("^French")).click()
    form.wait_for_url("**/hand-made?locale=fr")
    title = form.get_by_label("Title", exact=True)
    until(lambda: title.input_value() == "")
    minutes = form.get_by_label("Reading minutes")
    assert minutes.input_value() == "4"
    assert form.get_by_text("1 to 60 · Shared by all locales").is_visible()
    title.fill("Fait main")
    form.get_by_role("button", name="Make from title").click()
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    french = path.with_name("hand-made.fr.draft.md")
    assert "title: Fait main" in french.read_text()
    assert "readingMinutes: 4" in french.read_text()
    form.get_by_role("link", name="English").click()
    until(lambda: title.input_value() == "Hand made")
    assert not form.get_by_text("not yet").is_visible()


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f0005000501ae2a3b3b0000000049454e44ae426082"
)
GIVE = """([field, how, bytes]) => {
  const files = new DataTransfer();
  files.items.add(new File([new Uint8Array(bytes)], `${how}.png`, {type: "image/png"}));
  const [name, made] = how === "paste"
    ? ["paste", new ClipboardEvent("paste", {clipboardData: files, bubbles: true, cancelable: true})]
    : ["drop", new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true})];
  document.querySelector(`#${field} .media`).dispatchEvent(made);
}"""


def test_media_are_chosen_uploaded_dropped_pasted_and_described(form: Page, site: Studio) -> None:
    path = site.root / "content/articles/hand-made.draft.md"
    path.write_text(ZONE)
    until(lambda: listed(form, site, "hand-made"))
    open_form(form, site, "article/hand-made")
    cover = form.get_by_role("group", name="Cover", exact=True)
    cover.get_by_role("button", name="Choose").click()
    chosen = cover.get_by_role("group", name="Files to choose from").get_by_role("button").first
    name = chosen.inner_text()
    chosen.click()
    cover.locator(".media-card").get_by_text(name).wait_for()
    with form.expect_file_chooser() as opened:
        cover.get_by_text("Upload").click()
    opened.value.set_files({"name": "button.png", "mimeType": "image/png", "buffer": PNG})
    cover.locator(".media-card").get_by_text("button.png").wait_for()
    for how in ("drop", "paste"):
        form.evaluate(GIVE, ["field-cover", how, list(PNG)])
        cover.locator(".media-card").get_by_text(f"{how}.png").wait_for()
    cover.get_by_label("Alternative text").fill("One pixel")
    cover.get_by_label("Alternative text").press("Tab")
    cover.get_by_text("Saved, for all places that show it").wait_for()
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    [line] = lines_that_changed(ZONE, path.read_text())
    assert re.fullmatch(r"cover: .*paste_\w+\.png", line)
    [described] = (site.root / "content/uploads").glob("paste_*.png.yaml")
    assert "One pixel" in described.read_text()


def test_of_a_list_of_relations_what_joins_and_leaves_is_sent(form: Page, site: Studio) -> None:
    open_form(form, site, "article/what-slack-water-is")
    before = form.locator("[id^=field-tags-move]").count()
    form.get_by_role("combobox", name="Tags").fill("isl")
    form.get_by_role("option", name="Islands").click()
    with form.expect_request(lambda request: request.method == "PUT") as sent:
        form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    assert sent.value.post_data_json == {"data": {"tags": {"connect": ["islands"], "disconnect": []}}}
    assert form.locator("[id^=field-tags-move]").count() == before + 1


ZONE = """---
title: Hand made   # by hand
slug: hand-made
createdAt: 2024-01-22T08:00:00.000Z
updatedAt: 2024-01-22T08:00:00.000Z
sections:
  - __component: shared.quote   # the first
    body: Long foretold, long last.
  - __component: shared.callout
    title: "Reading a barometer"   # in quotes
    link: {label: Subscribe, url: /pages/subscribe}
---
"""


def test_components_are_edited_added_moved_and_removed(form: Page, site: Studio) -> None:
    path = site.root / "content/articles/hand-made.draft.md"
    path.write_text(ZONE)
    until(lambda: listed(form, site, "hand-made"))
    open_form(form, site, "article/hand-made")
    zone = form.get_by_role("group", name="Sections")
    zone.get_by_text("Callout: Reading a barometer").click()
    zone.get_by_label("Title").fill("A barometer")
    zone.get_by_label("Url").fill("/subscribe")
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    assert lines_that_changed(ZONE, path.read_text()) == [
        '    title: "A barometer"   # in quotes',
        "    link: {label: Subscribe, url: '/subscribe'}",
    ]
    zone.get_by_role("button", name="Callout", exact=True).click()
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    assert form.locator("#field-sections-2-title").is_visible()
    zone.get_by_text("Callout", exact=True).first.click()
    form.get_by_role("button", name="Publish").click()
    told(form, "One field is not right yet")
    until(lambda: form.evaluate("document.activeElement.id") == "field-sections-2-title")
    form.keyboard.type("New")
    zone.get_by_role("button", name=re.compile("^Move Callout: New")).press("ArrowUp")
    zone.get_by_role("button", name=re.compile("^Remove Quote")).click()
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    kept = re.findall(r"(?<=title: )\S.*", path.read_text())
    assert kept == ["Hand made   # by hand", "New", '"A barometer"   # in quotes']


def listed(page: Page, site: Studio, document_id: str) -> bool:
    """Whether the server knows the draft of an article."""
    url = f"http://127.0.0.1:{site.port}/api/articles/{document_id}?status=draft"
    return bool(page.request.get(url, headers={"Quire-Studio": "1", "Sec-Fetch-Site": "same-origin"}).ok)


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
    assert min(took) < 200


OPENING_MS = """() => new Promise((done) => {
  const begun = performance.now();
  [...document.querySelectorAll("main a")].find((a) => a.textContent === "one").click();
  const look = () => document.querySelectorAll(".form-field").length === 60
    ? requestAnimationFrame(() => done(performance.now() - begun)) : setTimeout(look, 1);
  look();
})"""
