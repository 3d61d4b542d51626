"""The parts of a form that involve other documents or parts, in a browser: relations, files, components and
locales.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from server.config.transformation import Transformation
from server.storage.images.geometry import lay_out
from server.storage.images.kinds import ImageSize
from tests.servers import stop
from tests.sites import schema, write
from tests.studio.browser_form import PNG, lines_that_changed, open_form, told
from tests.studio.conftest import STUDIO_HEADERS, Page, Studio, answer_to, expect, is_save
from tests.waiting import until

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
GIVE = """([field, how, bytes]) => {
  const files = new DataTransfer();
  files.items.add(new File([new Uint8Array(bytes)], `${how}.png`, {type: "image/png"}));
  const [name, made] = how === "paste"
    ? ["paste", new ClipboardEvent("paste", {clipboardData: files, bubbles: true, cancelable: true})]
    : ["drop", new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true})];
  document.querySelector(`#${field} .media`).dispatchEvent(made);
}"""

# The attributes of this component have the same names as properties of a field.
SIGN = {
    "info": {"displayName": "Sign"},
    "attributes": {name: {"type": "string"} for name in ("label", "hint", "error", "entry")},
}
WORDED = {
    "content-types/components/shared/sign.json": json.dumps(SIGN),
    "content-types/board.json": schema("board", {"sign": {"type": "component", "component": "shared.sign"}}),
    "content/boards/one.yaml": "sign: {label: Fog, hint: Thick}\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of the repository's example site, which tests change."""
    studio = Studio(tmp_path_factory.mktemp("parts"))
    write(studio.root, WORDED)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def form(site: Studio, entered: Any, new_page: Callable[..., Page]) -> Page:
    """A page in which the owner is signed in."""
    return new_page(storage_state=entered)


def hand_made(page: Page, site: Studio, text: str) -> Path:
    """Write the file of a draft article. Return its path once the server has loaded the file."""
    path = site.root / "content/articles/hand-made.draft.md"
    for earlier in path.parent.glob("hand-made.*"):
        earlier.unlink()
    until(lambda: not answer_to(page, site, "articles/hand-made?status=draft"))
    path.write_text(text)
    until(lambda: answer_to(page, site, "articles/hand-made?status=draft") != "")
    return path


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


def test_locales_are_made_and_what_they_share_says_so(form: Page, site: Studio) -> None:
    path = hand_made(form, site, ZONE)
    open_form(form, site, "article/hand-made")
    form.get_by_label("Reading minutes").fill("4")
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    form.get_by_role("link", name=re.compile("^French")).click()
    form.wait_for_url("**/hand-made?locale=fr")
    title = form.get_by_label("Title", exact=True)
    expect(title).to_have_value("")
    expect(form.get_by_label("Reading minutes")).to_have_value("4")
    expect(form.get_by_text("1 to 60 · Shared by all languages")).to_be_visible()
    title.fill("Fait main")
    form.get_by_role("button", name="Generate from title").click()
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    french = path.with_name("hand-made.fr.draft.md")
    assert "title: Fait main" in french.read_text()
    assert "readingMinutes: 4" in french.read_text()
    form.get_by_role("link", name="English").click()
    expect(title).to_have_value("Hand made")
    expect(form.get_by_text("missing")).to_be_hidden()


def test_media_are_chosen_uploaded_dropped_pasted_and_described(form: Page, site: Studio) -> None:
    path = hand_made(form, site, ZONE)
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
    cover.get_by_text("Saved everywhere this file is used").wait_for()
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    [line] = lines_that_changed(ZONE, path.read_text())
    assert re.fullmatch(r"cover: .*paste_\w+\.png", line)
    [described] = (site.root / "content/uploads").glob("paste_*.png.yaml")
    assert "One pixel" in described.read_text()


# Returns which part of a picture is visible in a box, as fractions of its width and height.
SHOWN_PART = """box => {
    const [outer, inner] = [box, box.firstElementChild].map((element) => element.getBoundingClientRect());
    return [
        (outer.left - inner.left) / inner.width, (outer.top - inner.top) / inner.height,
        (outer.right - inner.left) / inner.width, (outer.bottom - inner.top) / inner.height,
    ];
}"""


def test_a_file_has_a_name_a_caption_and_a_focal_point(
    form: Page, site: Studio, check_access: Callable[[Page], None]
) -> None:
    path = site.root / "content/uploads/goemon-house.jpg.yaml"
    path = path if path.exists() else next((site.root / "content/uploads").glob("causeway.*.yaml"))
    before = path.read_text()
    hand_made(form, site, ZONE.replace("slug: hand-made\n", f"slug: hand-made\ncover: {path.stem}\n"))
    open_form(form, site, "article/hand-made")
    form.get_by_role("button", name=f"Details of {path.stem}").click()
    dialog = form.get_by_role("dialog", name="Details of")
    dialog.get_by_label("Caption").fill("At low water")
    check_access(form)
    picture = dialog.locator(".focal img")
    until(lambda: picture.evaluate("image => image.complete && image.naturalWidth > 0"))
    box = picture.bounding_box()
    assert box
    form.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    point = dialog.get_by_role("button", name=re.compile("^Focal point, 25 % from the left, 50 %"))
    point.press("ArrowRight")
    dialog.get_by_role("button", name=re.compile("^Focal point, 26 %")).press("Shift+ArrowUp")
    dialog.get_by_text("The focal point is at 26 %, 40 %.").wait_for()
    crops = dialog.get_by_role("group", name="Crops around the focal point")
    assert crops.locator("figcaption").all_inner_texts() == ["16:9", "4:3", "1:1", "3:4"]
    with Image.open(path.with_suffix("")) as image:
        width, height = image.size
    wanted = Transformation(72, 72, focus=(0.26, 0.40), enlarges=True)
    shown = lay_out(ImageSize(width, height), wanted).box  # as the server crops it
    square = crops.locator(".crop-picture").nth(2).evaluate(SHOWN_PART)
    assert square == pytest.approx([shown[0] / width, shown[1] / height, shown[2] / width, shown[3] / height])
    dialog.get_by_role("button", name="Save").click()
    form.get_by_text("Saved everywhere this file is used").wait_for()
    expect(form.locator(".is-changed")).to_have_count(0)
    after = path.read_text()
    assert "caption: At low water" in after
    assert "focalPoint:\n  x: 26\n  'y': 40\n" in after
    kept = [line for line in before.splitlines() if not line.startswith(("caption", "updatedAt"))]
    assert [line for line in kept if line not in after.splitlines()] == []


def test_of_a_list_of_relations_what_joins_and_leaves_is_sent(form: Page, site: Studio) -> None:
    open_form(form, site, "article/what-slack-water-is")
    handles = form.locator("[id^=field-tags-move]")
    before = handles.count()
    assert before
    form.get_by_role("combobox", name="Tags").fill("isl")
    form.get_by_role("option", name="Islands").click()
    expect(handles).to_have_count(before + 1)
    with form.expect_request(lambda request: is_save(request, "articles/what-slack-water-is")) as sent:
        form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    assert sent.value.post_data_json == {"data": {"tags": {"connect": ["islands"], "disconnect": []}}}
    expect(handles).to_have_count(before + 1)


def change_types(page: Page, site: Studio, *changes: dict[str, Any]) -> None:
    """Change content types over HTTP, as the user who is signed in on the page."""
    url = f"http://127.0.0.1:{site.port}/api/content-type-builder/changes"
    plan = page.request.post(
        f"{url}?dryRun=true", data={"data": {"changes": changes}}, headers=STUDIO_HEADERS
    )
    headers = {**STUDIO_HEADERS, "If-Match": plan.headers["etag"]}
    assert page.request.post(url, data={"data": {"changes": changes}}, headers=headers).ok


def test_attributes_of_components_may_be_called_as_parts_of_a_field(form: Page, site: Studio) -> None:
    open_form(form, site, "board/one")
    expect(form.get_by_role("textbox", name="Label")).to_have_value("Fog")
    ids = form.evaluate("[...document.querySelectorAll('[id]')].map(({ id }) => id)")
    assert sorted(set(ids)) == sorted(ids)
    form.get_by_text("Hint", exact=True).click()
    expect(form.get_by_role("textbox", name="Hint")).to_be_focused()


def test_text_in_components_stays_if_its_attribute_is_gone(form: Page, site: Studio) -> None:
    file = site.root / "content-types/components/shared/sign.json"
    board, before = site.root / "content/boards/one.yaml", file.read_text()
    sign = form.get_by_role("group", name="Sign")
    lost = form.get_by_role("region", name="Text that was not saved")
    try:
        open_form(form, site, "board/one")
        sign.get_by_label("Hint").fill("Not lost")
        sign.get_by_label("Label").fill("Mist")
        change_types(form, site, {"operation": "rename", "attribute": "shared.sign.hint", "to": "advice"})
        lost.wait_for()
        expect(lost).to_contain_text("Sign › Hint no longer exists. This text was not saved:")
        expect(lost.get_by_role("region")).to_have_text("Not lost")
        expect(sign.get_by_label("Advice")).to_have_value("Thick")
        expect(form.get_by_text("Someone else changed this field.")).to_have_count(0)
        form.keyboard.press("Control+s")
        told(form, "Saved")
        assert "sign: {label: Mist, advice: Thick}" in board.read_text()
        form.reload()
        expect(lost.get_by_role("region")).to_have_text("Not lost")
        lost.get_by_role("button", name="Discard").click()
        expect(lost).to_have_count(0)
        # The attribute is removed while the form is closed.
        sign.get_by_label("Advice").fill("Kept")
        sign.get_by_label("Label").fill("Haze")
        form.goto(site.url)
        file.write_text(before.replace('"hint"', '"height"'))
        until(lambda: "advice" not in answer_to(form, site, "boards/one?populate=*"))
        open_form(form, site, "board/one")
        form.get_by_role("button", name="Restore", exact=True).click()
        expect(sign.get_by_label("Label")).to_have_value("Haze")
        expect(lost.get_by_role("region")).to_have_text("Kept")
    finally:
        file.write_text(before)


def test_a_component_in_a_form_follows_each_of_several_events_of_a_rename(form: Page, site: Studio) -> None:
    lost = form.get_by_role("region", name="Text that was not saved")
    open_form(form, site, "article/what-slack-water-is")
    old, new = "metaTitle", "pageTitle"
    labels = {"metaTitle": "Meta title", "pageTitle": "Page title"}
    saved = form.get_by_role("textbox", name=labels[old]).input_value()
    for _ in range(2):
        form.get_by_role("textbox", name=labels[old]).fill(f"Typed as {old}")
        change_types(form, site, {"operation": "rename", "attribute": f"shared.seo.{old}", "to": new})
        form.get_by_role("textbox", name=labels[new]).wait_for()
        expect(form.get_by_role("textbox", name=labels[new])).to_have_value(saved)
        expect(lost.get_by_role("region")).to_have_text(f"Typed as {old}")
        lost.get_by_role("button", name="Discard").click()
        old, new = new, old


def test_a_number_that_is_being_typed_becomes_text_with_its_attribute(form: Page, site: Studio) -> None:
    write(site.root, {"content-types/gauge.json": schema("gauge", {"height": {"type": "integer"}})})
    write(site.root, {"content/gauges/one.yaml": "height: 4\n"})
    until(lambda: answer_to(form, site, "gauges/one"))
    open_form(form, site, "gauge/one")
    form.get_by_label("Height").fill("55")
    change_types(form, site, {"operation": "retype", "attribute": "gauge.height", "type": "string"})
    form.locator("input[type=text]#field-height").wait_for()
    expect(form.get_by_text("Someone else changed this field.")).to_have_count(0)
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert "height: '55'" in (site.root / "content/gauges/one.yaml").read_text()


def test_a_renamed_attribute_of_a_component_gets_its_saved_value(form: Page, site: Studio) -> None:
    file = site.root / "content-types/components/shared/sign.json"
    board, before = site.root / "content/boards/one.yaml", file.read_text()
    sign = form.get_by_role("group", name="Sign")
    lost = form.get_by_role("region", name="Text that was not saved")
    board.write_text("sign: {label: Fog, hint: Thick}\n")
    try:
        open_form(form, site, "board/one")
        for old, new in (("hint", "advice"), ("advice", "tip"), ("tip", "hint")):
            sign.get_by_label(old.capitalize()).fill(f"Typed as {old}")
            change_types(form, site, {"operation": "rename", "attribute": f"shared.sign.{old}", "to": new})
            expect(sign.get_by_label(new.capitalize())).to_have_value("Thick")
            expect(lost.get_by_role("region")).to_have_text(f"Typed as {old}")
            lost.get_by_role("button", name="Discard").click()
            expect(lost).to_have_count(0)
    finally:
        file.write_text(before)


def test_components_are_edited_added_moved_and_removed(form: Page, site: Studio) -> None:
    path = hand_made(form, site, ZONE)
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
    expect(form.locator("#field-sections--2--title")).to_be_visible()
    zone.get_by_text("Callout", exact=True).first.click()
    form.get_by_role("button", name="Publish").click()
    told(form, "One field is invalid")
    expect(form.locator("#field-sections--2--title")).to_be_focused()
    form.keyboard.type("New")
    zone.get_by_role("button", name=re.compile("^Move Callout: New")).press("ArrowUp")
    zone.get_by_role("button", name=re.compile("^Remove Quote")).click()
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    kept = re.findall(r"(?<=title: )\S.*", path.read_text())
    assert kept == ["Hand made   # by hand", "New", '"A barometer"   # in quotes']
