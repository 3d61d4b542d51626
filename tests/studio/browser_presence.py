"""Presence: two people open the same document, and each sees the other person and the field that they are
in.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.servers import stop
from tests.studio.browser_form import define
from tests.studio.browser_pages import SIZES
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio, expect, sign_in

ATTRIBUTES = {
    "title": {"type": "string"},
    "summary": {"type": "text"},
    "sections": {"type": "component", "component": "shared.section", "repeatable": True},
}
SECTION = {"info": {"displayName": "Section"}, "attributes": {"words": {"type": "string"}}}
ROLES = """
roles:
  public: {auth: [callback]}
  editor: {paper: [find, findOne, readDraft, create, update]}
  reader: {paper: [find, findOne]}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server with two workers. Its site has two editors and a reader."""
    studio = Studio(tmp_path_factory.mktemp("presence"), "--workers=2")
    (studio.root / "content-types/components/shared").mkdir(parents=True, exist_ok=True)
    (studio.root / "content-types/components/shared/section.json").write_text(json.dumps(SECTION))
    define(studio, "paper", ATTRIBUTES, draftAndPublish=True)
    (studio.root / "content/papers/one.md").write_text("---\ntitle: One\nsections:\n  - words: some\n---\n")
    (studio.root / "content/papers/two.md").write_text("---\ntitle: Two\n---\n")
    (studio.root / "site.yaml").write_text("name: Papers\n" + ROLES)
    for name, role in (("ann.lee", "editor"), ("ben", "editor"), ("rea", "reader")):
        add_user(studio, name, role)
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture
def enter(site: Studio, new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A function that opens a document in a new browser context as a given user."""

    def enter(name: str, document: str = "paper/one", **options: Any) -> Page:
        page = new_page(**options)
        page.goto(f"{site.url}/{document}")
        sign_in(page, name)
        page.get_by_role("heading", level=1).and_(page.get_by_text("One")).wait_for()
        return page

    return enter


def people(page: Page) -> Any:
    return page.get_by_role("list", name="Other people here").get_by_role("listitem")


def field(page: Page, label: str) -> Any:
    """Return the note next to a field's label that shows who is in the field."""
    return (
        page.locator(".form-field").filter(has=page.get_by_text(label, exact=True)).locator(".field-people")
    )


def test_each_sees_who_else_is_there_and_in_which_field(enter: Callable[..., Page], site: Studio) -> None:
    ann, ben = enter("ann.lee"), enter("ben")
    people(ben).filter(has_text="ann.lee").wait_for()
    people(ann).filter(has_text="ben").wait_for()
    ann.get_by_text("ben is also here").wait_for(state="attached")
    ann.get_by_label("Summary").focus()
    field(ben, "Summary").get_by_text("ann.lee is here").wait_for()
    expect(field(ben, "Title")).to_have_count(0)
    expect(people(ben).first).to_have_attribute("title", re.compile("in the field Summary"))
    ben.get_by_label("Summary").focus()  # Another user is already in this field.
    ben.get_by_text("ann.lee is also editing this field").wait_for(state="attached")
    ann.get_by_label("Title").focus()
    field(ben, "Title").get_by_text("ann.lee is here").wait_for()
    field(ben, "Summary").wait_for(state="detached")
    ben.goto(f"{site.url}/paper/two")
    people(ann).wait_for(state="detached")
    ann.get_by_text("ben has left").wait_for(state="attached")
    expect(people(ben)).to_have_count(0)


def test_several_tabs_are_one_person_and_a_closed_one_leaves(
    enter: Callable[..., Page], site: Studio
) -> None:
    ann, ben = enter("ann.lee"), enter("ben")
    second = ben.context.new_page()
    second.goto(f"{site.url}/paper/one")
    second.get_by_label("Title").focus()
    field(ann, "Title").get_by_text("ben is here").wait_for()
    expect(people(ann)).to_have_count(1)
    for page in (ben, second):
        expect(people(page)).to_have_count(1)  # only ann: one's own name is not shown
    second.close()
    field(ann, "Title").wait_for(state="detached")
    ben.close()
    people(ann).wait_for(state="detached")


def test_what_is_within_a_component_is_told_at_its_list_too(enter: Callable[..., Page]) -> None:
    ann, ben = enter("ann.lee"), enter("ben")
    ann.get_by_text("Section: some", exact=True).click()
    ann.get_by_label("Words").focus()
    field(ben, "Sections").first.get_by_text("ann.lee is here").wait_for()


def test_a_reader_is_not_there_and_is_not_told(enter: Callable[..., Page]) -> None:
    ann, rea = enter("ann.lee"), enter("rea")
    ben = enter("ben")
    people(ann).filter(has_text="ben").wait_for()
    people(ben).filter(has_text="ann.lee").wait_for()
    expect(people(ann)).to_have_count(1)
    expect(people(rea)).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_who_is_there_is_shown_well(
    enter: Callable[..., Page], check_access: Callable[[Page], None], scheme: str
) -> None:
    ann = enter("ann.lee", color_scheme=scheme)
    ben = enter("ben")
    ben.get_by_label("Title").focus()
    field(ann, "Title").get_by_text("ben is here").wait_for()
    check_access(ann)
    for width, height in SIZES.values():
        ann.set_viewport_size({"width": width, "height": height})
        assert ann.evaluate("document.documentElement.scrollWidth") <= width
        if folder := os.environ.get("PICTURES"):
            ann.screenshot(path=f"{folder}/presence-{scheme}-{width}.png")
