"""Private attributes, whose values are never displayed, in a browser: they are kept, replaced or cleared."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_form import lines_that_changed, open_form, told
from tests.studio.browser_pages import SIZES
from tests.studio.conftest import Page, Studio, answer_to, expect
from tests.waiting import until

PRIVATE: dict[str, dict[str, Any]] = {
    "code": {"type": "string", "maxLength": 9},
    "remark": {"type": "text"},
    "notes": {"type": "richtext"},
    "rich": {"type": "blocks"},
    "colour": {"type": "enumeration", "enum": ["red", "green"]},
    "count": {"type": "integer", "max": 60, "required": True},
    "ratio": {"type": "float"},
    "open": {"type": "boolean"},
    "day": {"type": "date"},
    "data": {"type": "json"},
    "cover": {"type": "media", "allowedTypes": ["images"]},
    "tag": {"type": "relation", "relation": "manyToOne", "target": "api::tag.tag"},
    "tags": {"type": "relation", "relation": "manyToMany", "target": "api::tag.tag"},
    "part": {"type": "component", "component": "page.part"},
}
DESK: dict[str, dict[str, Any]] = {
    "title": {"type": "string", "required": True},
    **{name: {**attribute, "private": True} for name, attribute in PRIVATE.items()},
    "secret": {"type": "password"},
    "drawer": {"type": "component", "component": "page.drawer"},
}
DRAWER = {"caption": {"type": "string"}, "depth": {"type": "integer", "max": 60, "private": True}}
FILE = """title: One   # in quotes
code: kept-1
remark: "As it is."
notes: '*Kept*'
rich:
- {type: paragraph, children: [{type: text, text: Kept}]}
colour: red
count: 7     # of them
ratio: 0.50
open: yes
day: 2024-02-29
data: {b: 1, a: [1,   2]}
cover: knots.png
tag: fog
tags: [fog, night]
part: {caption: Kept}
secret: "$2b$10$abcdefghijklmnopqrstuuFgX0u4rW0bq0m0Zb8a5n5yq5G3l1m1K"
drawer:
  caption: Upper
  depth: 5   # deep
createdAt: 2024-01-22T08:00:00.000Z
updatedAt: 2024-01-22T08:00:00.000Z
"""
# The value that is typed for each attribute, and the resulting line of the file.
TYPED = {
    "Code": ("xyz", "code: xyz"),
    "Remark": ("Another", 'remark: "Another"'),
    "Notes": ("**New**", "notes: '**New**'"),
    "Count": ("8", "count: 8     # of them"),
    "Ratio": ("0.75", "ratio: 0.75"),
    "Day": ("2024-03-01", "day: 2024-03-01"),
    "Data": ('{"b": 2}', "data: {b: 2}"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with a content type in which all attributes but one are private."""
    studio = Studio(tmp_path_factory.mktemp("private"))
    schema = {
        "info": {"singularName": "desk", "pluralName": "desks", "displayName": "Desk"},
        "attributes": DESK,
    }
    (studio.root / "content-types/desk.json").write_text(json.dumps(schema))
    parts = studio.root / "content-types/components/page"
    parts.mkdir(parents=True, exist_ok=True)
    for name, attributes in (("drawer", DRAWER), ("part", {"caption": {"type": "string"}})):
        component = {"info": {"displayName": name.title()}, "attributes": attributes}
        (parts / f"{name}.json").write_text(json.dumps(component))
    (studio.root / "content/desks").mkdir()
    (studio.root / "content/desks/one.yaml").write_text(FILE)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def path(site: Studio) -> Path:
    """The path of a document's file, in its initial state."""
    file = site.root / "content/desks/one.yaml"
    file.write_text(FILE)
    return file


@pytest.fixture(scope="module")
def answer(site: Studio, entered: Any, browser: Any) -> str:
    """The API's response for the document, before a test changes it."""
    context = browser.new_context(storage_state=entered)
    found = answer_to(context, site, "desks/one")
    context.close()
    return found


@pytest.fixture
def form(site: Studio, answer: str, path: Path, entered: Any, new_page: Callable[..., Page]) -> Page:
    page = new_page(storage_state=entered)
    until(lambda: answer_to(page, site, "desks/one") == answer)
    open_form(page, site, "desk/one")
    return page


def field(page: Page, label: str) -> Any:
    return page.get_by_role("group", name=label, exact=True)


def replace(page: Page, label: str) -> None:
    field(page, label).get_by_role("button", name="Replace").click()


def test_what_is_not_shown_stays_when_another_field_is_saved(form: Page, path: Path) -> None:
    closed = form.get_by_text("Your role can't see this value.")
    expect(closed).to_have_count(len(PRIVATE) + 2)  # also a password, and an attribute in a component
    expect(form.locator(".fields input")).to_have_count(2)  # the title, and the caption in the component
    form.get_by_label("Title").fill("Two")
    field(form, "Drawer").get_by_label("Caption").fill("Lower")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    wanted = ["title: Two   # in quotes", "  caption: Lower"]
    assert lines_that_changed(FILE, path.read_text()) == wanted
    assert len(lines_that_changed(path.read_text(), FILE)) == 2


def test_what_is_typed_instead_is_written_and_nothing_else(form: Page, path: Path) -> None:
    for label, (text, wanted) in TYPED.items():
        before = path.read_text()
        replace(form, label)
        expect(form.locator(f"#field-{label.lower()}")).to_be_focused()
        form.get_by_label(label, exact=True).fill(text)
        told(form, "One field is not saved")  # The message about the previous save has disappeared.
        form.keyboard.press("Control+s")
        told(form, "Saved")
        assert lines_that_changed(before, path.read_text()) == [wanted]
        assert len(lines_that_changed(path.read_text(), before)) == 1
        # The field is closed again.
        field(form, label).get_by_text("Your role can't see this value.").wait_for()
        expect(form.get_by_role("button", name="Save")).to_be_disabled()


def test_what_is_chosen_instead_is_written(form: Page, path: Path) -> None:
    replace(form, "Colour")
    form.get_by_label("Colour", exact=True).select_option("green")
    replace(form, "Open")
    form.get_by_role("radio", name="No", exact=True).check()
    replace(form, "Tags")
    box = form.get_by_role("combobox", name="Tags")
    for name in ("Birds", "Fog"):
        box.fill(name)
        form.get_by_role("option", name=name).click()
    replace(form, "Tag")
    form.get_by_role("combobox", name="Tag", exact=True).fill("Birds")
    form.get_by_role("option", name="Birds").click()
    replace(form, "Part")
    field(form, "Part").get_by_role("button", name="Add").click()
    field(form, "Part").get_by_label("Caption").fill("New")
    replace(form, "Secret")
    form.get_by_label("Secret", exact=True).fill("rope and chain")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    written = lines_that_changed(FILE, path.read_text())
    assert [line for line in written if "secret" not in line] == [
        "colour: green",
        "open: false",
        "tag: birds",
        "tags: [birds, fog]",
        "part: {caption: New}",
    ]
    expect(form.get_by_text("Your role can't see this value.")).to_have_count(len(PRIVATE) + 2)


def test_a_value_in_a_component_is_replaced(form: Page, path: Path) -> None:
    replace(form, "Depth")
    form.get_by_label("Depth", exact=True).fill("61")
    form.keyboard.press("Control+s")
    form.get_by_text("Must be less than or equal to 60").wait_for()
    form.get_by_label("Depth", exact=True).fill("6")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert lines_that_changed(FILE, path.read_text()) == ["  depth: 6   # deep"]
    field(form, "Depth").get_by_text("Your role can't see this value.").wait_for()


def test_a_value_is_cleared_and_only_by_saying_so(form: Page, path: Path) -> None:
    save = form.get_by_role("button", name="Save")
    # The attribute is required, so it can't be cleared.
    expect(field(form, "Count").get_by_role("button")).to_have_text(["Replace"])
    field(form, "Code").get_by_role("button", name="Clear").click()
    field(form, "Code").get_by_text("Saving clears it.").wait_for()
    expect(save).to_be_enabled()
    expect(field(form, "Code").get_by_role("button", name="Keep it")).to_be_focused()
    form.keyboard.press("Enter")
    expect(save).to_be_disabled()
    replace(form, "Ratio")
    form.get_by_label("Ratio", exact=True).fill("1")
    form.get_by_label("Ratio", exact=True).fill("")  # Finally, nothing has been typed.
    expect(save).to_be_disabled()
    form.get_by_role("button", name="Keep the current value").click()
    for label in ("Code", "Tags", "Day"):
        field(form, label).get_by_role("button", name="Clear").click()
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert "kept-1" not in path.read_text()
    cleared = [line.partition(":")[0] for line in lines_that_changed(path.read_text(), FILE)]
    assert cleared == ["code", "day", "tags"]
    assert all(
        line.partition(": ")[2] in ("null", "[]", "") for line in lines_that_changed(FILE, path.read_text())
    )


TYPED_AND_DELETED = """async (input) => {
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  for (const text of ["1", ""]) {
    set.call(input, text);
    input.dispatchEvent(new InputEvent("input", {bubbles: true}));
    await new Promise((rendered) => queueMicrotask(() => queueMicrotask(rendered)));  // but not painted
  }
}"""


def test_what_is_typed_and_deleted_before_it_was_painted_leaves_the_field_open(form: Page) -> None:
    replace(form, "Ratio")
    form.get_by_label("Ratio", exact=True).evaluate(TYPED_AND_DELETED)
    form.get_by_label("Title").fill("Two")  # rendered after the field above
    expect(form.get_by_role("button", name="Save")).to_be_enabled()
    expect(form.get_by_role("button", name="Keep the current value")).to_be_visible()
    expect(form.get_by_label("Ratio", exact=True)).to_be_visible()


def test_what_others_change_beside_it_is_no_conflict(form: Page, path: Path) -> None:
    replace(form, "Code")
    form.get_by_label("Code", exact=True).fill("mine")
    path.write_text(FILE.replace("One ", "Theirs ").replace("ratio: 0.50", "ratio: 0.25"))
    expect(form.get_by_label("Title")).to_have_value("Theirs")
    expect(form.get_by_label("Code", exact=True)).to_have_value("mine")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    assert lines_that_changed(FILE, path.read_text()) == [
        "title: Theirs   # in quotes",
        "code: mine",
        "ratio: 0.25",
    ]


def test_a_copy_begins_without_what_is_not_shown(form: Page, site: Studio, path: Path) -> None:
    open_form(form, site, "desk/-/new?from=one")
    expect(form.get_by_label("Title")).to_have_value("One")
    expect(form.get_by_text("Your role can't see this value.")).to_have_count(0)
    form.get_by_label("Title").fill("Copy")
    form.get_by_label("Count", exact=True).fill("3")
    form.keyboard.press("Control+s")
    form.wait_for_url(lambda url: "/-/new" not in url)
    form.get_by_text("Your role can't see this value.").first.wait_for()
    [copy] = [file for file in path.parent.iterdir() if file != path]
    written = copy.read_text()
    copy.unlink()
    assert "count: 3" in written
    assert "Upper" in written
    assert "kept-1" not in written
    assert "depth: 5" not in written
    assert "Symbol" not in written


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(
    site: Studio,
    path: Path,
    entered: Any,
    new_page: Callable[..., Page],
    check_access: Callable[[Page], None],
    size: str,
    scheme: str,
) -> None:
    viewport = dict(zip(("width", "height"), SIZES[size], strict=True))
    page = new_page(storage_state=entered, viewport=viewport, color_scheme=scheme)
    open_form(page, site, "desk/one")
    replace(page, "Remark")
    field(page, "Code").get_by_role("button", name="Clear").click()
    field(page, "Code").get_by_text("Saving clears it.").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    check_access(page)
