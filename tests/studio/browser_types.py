"""Content types in the studio: attributes, the plan of each change, and who may change what."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import serving_users
from tests.studio.conftest import Page, Studio, expect, signed_in_users

PAPER = """\
# What people read.
kind: collectionType
info: {singularName: paper, pluralName: papers, displayName: Paper}
options: {draftAndPublish: true}
attributes:
  title: {type: string}
  # Old.
  pages: {type: string}
  place: {type: relation, relation: manyToOne, target: api::place.place}
"""
PLACE = """\
kind: collectionType
info: {singularName: place, pluralName: places, displayName: Place}
attributes:
  name: {type: string}
"""
SITE = """\
name: Harbour
git: {commit: each}
roles:
  public: {auth: [callback]}
  chief:
    paper: [find, findOne, create, update, delete, readDraft, updateDraft]
    place: [find, findOne]
    content-type: [find, findOne, write]
    source: [read]
    branch: [find, create, update]
  clerk: {paper: [find], content-type: [find]}
  partly: {paper: [find, findOne], content-type: [find, write], source: [read]}
  nobody: {paper: [find]}
"""
FILES = {
    "content-types/paper.yaml": PAPER,
    "content-types/place.yaml": PLACE,
    "content/papers/a.yaml": "title: Tides  # ours\npages: '3'\n",
    "content/papers/b.yaml": "title: Fog\npages: many\n",
    "content/places/h.yaml": "name: Harbour\n",
    "site.yaml": SITE,
    ".gitignore": ".bifolio/\n",
}
USERS = {"chief": "chief", "second": "chief", "clerk": "clerk", "partly": "partly", "nobody": "nobody"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with a user in each role."""
    studio = Studio(tmp_path_factory.mktemp("types"), files=FILES)
    commit_all(studio.root)
    git(studio.root, "branch", "rework")
    with serving_users(studio, USERS):
        yield studio


@pytest.fixture(scope="module")
def sessions(site: Studio, browser: Any) -> dict[str, Any]:
    """The browser state in which each user is signed in, by name."""
    return signed_in_users(site, browser, USERS)


@pytest.fixture
def enter(site: Studio, sessions: dict[str, Any], new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A function that opens the page of content types as a user."""

    def enter(name: str, query: str = "?type=paper", **options: Any) -> Page:
        page = new_page(storage_state=sessions[name], **options)
        page.goto(f"{site.url}/site/-/types{query}")
        page.get_by_role("heading", level=1, name="Content types").wait_for()
        return page

    return enter


def schema_of(site: Studio, name: str = "paper") -> str:
    return (site.root / f"content-types/{name}.yaml").read_text()


def plan_of(page: Page) -> Any:
    """Return the dialog that shows a plan, when it has been loaded."""
    dialog = page.get_by_role("dialog")
    dialog.locator(".code").first.wait_for()
    return dialog


def review(page: Page) -> Any:
    """Return the dialog that shows the plan for the changes that are not saved, when it has been loaded."""
    page.get_by_role("button", name="Review changes").click()
    return plan_of(page)


def apply(page: Page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    done = page.get_by_role("region", name="Undo").get_by_role("status")
    expect(done).to_have_text(re.compile("was (created|changed|renamed to .+|deleted)\\.$"))
    expect(page.get_by_role("dialog")).to_have_count(0)


def change(page: Page, name: str, **values: str) -> None:
    """Change an attribute, or add one if `name` is empty. The values are those of the dialog, by label."""
    page.get_by_role("button", name=f"Change {name}" if name else "Add attribute", exact=True).click()
    for label, value in values.items():
        field = page.get_by_label(label.replace("_", " "), exact=True)
        if label in ("Type", "Derived_from", "Target"):
            field.select_option(value)
        else:
            field.fill(value)
    page.get_by_role("dialog").get_by_role("button", name="Change" if name else "Add", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def listed(page: Page) -> list[str]:
    """Return the changes that are not saved."""
    texts: list[str] = (
        page.get_by_role("list", name="Changes").locator("li > span:first-child").all_inner_texts()
    )
    return texts


def test_only_those_who_may_change_types_find_the_page(enter: Callable[..., Page]) -> None:
    for name in ("chief", "clerk", "partly", "nobody"):
        page = enter(name)
        side = page.get_by_role("navigation", name="Content")
        expect(side.get_by_role("link", name="Content types")).to_have_count(int(name in ("chief", "partly")))
        if name == "nobody":
            page.get_by_text("Your role can't see content types").wait_for()
            continue
        page.get_by_role("heading", level=2, name="Paper").wait_for()
        expect(page.get_by_role("button", name="Add attribute")).to_have_count(
            int(name in ("chief", "partly"))
        )
        page.context.close()
    # This role may not read drafts, so the plan is refused.
    page = enter("partly")
    page.get_by_role("button", name="Remove title").click()
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("dialog").get_by_text("so it needs the permission paper.readDraft").wait_for()
    expect(page.get_by_role("button", name="Apply")).to_have_count(0)


def test_two_people_at_the_same_type_see_each_others_change(enter: Callable[..., Page], site: Studio) -> None:
    pages = [enter(name) for name in ("chief", "second")]
    for page in pages:
        page.get_by_role("button", name="Remove pages").click()
        review(page)
    # Lost values must be allowed.
    dialog = pages[1].get_by_role("dialog")
    expect(dialog).to_contain_text("content/papers/b.yaml:2:8")
    expect(dialog.get_by_role("button", name="Apply")).to_be_disabled()
    dialog.get_by_label("Lose 2 values").check()
    pages[0].keyboard.press("Escape")
    pages[0].get_by_role("button", name="Take back: Delete pages").click()
    pages[0].get_by_role("button", name="Change pages").click()
    pages[0].get_by_label("Required").check()
    pages[0].get_by_role("button", name="Change", exact=True).click()
    review(pages[0])
    apply(pages[0])
    dialog.get_by_role("button", name="Apply").click()
    dialog.get_by_text("Content types or documents have changed meanwhile.").wait_for()
    expect(dialog).to_contain_text("required: true")
    expect(dialog.get_by_label("Lose 2 values")).not_to_be_checked()
    dialog.get_by_label("Lose 2 values").check()
    apply(pages[1])
    assert "pages" not in schema_of(site)


def test_a_type_is_deleted_with_its_documents_and_undone(enter: Callable[..., Page], site: Studio) -> None:
    before = {path: path.read_bytes() for path in site.root.glob("content*/**/*") if path.is_file()}
    page = enter("chief", "?type=place")
    page.get_by_role("button", name="Delete Place").click()
    plan_of(page)
    dialog = page.get_by_role("dialog")
    for text in ("drop paper.place", "content/places/h.yaml: this document would be deleted"):
        expect(dialog).to_contain_text(text)
    button = dialog.get_by_role("button", name="Apply")
    dialog.get_by_label("To delete 1 document file, type 1").fill("2")
    expect(button).to_be_disabled()
    dialog.get_by_label("To delete 1 document file, type 1").fill("1")
    apply(page)
    assert not list(site.root.glob("content*/place*/**/*"))
    assert "place" not in schema_of(site)
    # The page shows all types, and not another one with the same buttons.
    expect(page.get_by_role("main").get_by_role("link", name="Paper")).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("^Delete "))).to_have_count(0)
    places = page.get_by_role("navigation", name="Content").get_by_role("link", name="Places")
    expect(places).to_have_count(0)
    # The offer to undo it outlives the page.
    page.reload()
    page.get_by_role("button", name="Undo: place was deleted.").press("Enter")
    page.get_by_text("Undone").wait_for()
    places.wait_for()
    page.get_by_role("main").get_by_role("link", name="Place").click()
    page.get_by_role("heading", level=2, name="Place").wait_for()
    assert {path: path.read_bytes() for path in site.root.glob("content*/**/*") if path.is_file()} == before
    # A default that the attribute does not allow is an error of its field.
    page.get_by_role("button", name="Add attribute").click()
    page.get_by_label("Name", exact=True).fill("depth")
    for type_, default in (("integer", "1.5"), ("integer", "3"), ("biginteger", "ten")):
        page.get_by_label("Type", exact=True).select_option(type_)
        page.get_by_label("Minimum").fill("5")
        page.get_by_label("Default").fill(default)
        page.get_by_role("button", name="Add", exact=True).click()
        assert page.get_by_label("Default").evaluate("input => input.validationMessage")
    page.get_by_role("button", name="Cancel").click()
    # All options of an attribute. After a later change, the undo is refused, and says why.
    page.get_by_role("button", name="Change name").click()
    for label, value in {"Minimum length": "2", "Regular expression": "^[A-Z]", "Default": "Sea"}.items():
        page.get_by_label(label).fill(value)
    page.get_by_label("Required").check()
    page.get_by_role("dialog").get_by_role("button", name="Change", exact=True).click()
    review(page)
    apply(page)
    assert re.search("name: {type: string, .*minLength: 2, regex: .*, default: Sea, required: true}",
                     schema_of(site, "place"))  # fmt: skip
    with (site.root / "content-types/place.yaml").open("a") as file:
        file.write("# More.\n")
    page.get_by_role("region", name="Undo").get_by_role("button", name="Undo").click()
    page.get_by_text("changed later: content-types/place.yaml").wait_for()


def test_a_lost_answer_is_followed_by_the_present_state(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "?type=place")
    change(page, "name", Name="label")
    review(page)

    def lose(route: Any) -> None:
        route.fetch()  # The server makes the change, but its answer doesn't arrive.
        route.abort()

    page.route(re.compile("/changes$"), lose)
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    page.get_by_text("The server did not answer").wait_for()
    page.unroute(re.compile("/changes$"))
    # The page shows the present state, in which there is nothing left to review.
    page.get_by_role("button", name="Check again").click()
    page.get_by_role("button", name="Change label").wait_for()
    assert listed(page) == ["name no longer exists"]
    expect(page.get_by_role("button", name="Review changes")).to_be_disabled()
    page.get_by_role("button", name="Take back").click()
    assert listed(page) == []
    assert "label: Harbour" in (site.root / "content/places/h.yaml").read_text()


def test_a_new_type_is_made_on_a_branch(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "?branch=rework")
    page.get_by_role("button", name="New type").click()
    page.get_by_label("Name of one document").fill("story")
    page.get_by_label("Name of several documents").fill("stories")
    page.get_by_role("button", name="Show the plan").click()
    expect(plan_of(page)).to_contain_text("This changes the branch rework.")
    apply(page)
    page.get_by_role("heading", level=2, name="story").wait_for()
    assert "stories" in git(site.root, "show", "rework:content-types/story.json")
    assert not (site.root / "content-types/story.json").exists()
    # It becomes localized, and so does an attribute.
    page.get_by_role("button", name="Options of story").click()
    page.get_by_label("Documents can be translated").check()
    page.get_by_label("Display name").fill("Story")
    page.get_by_role("button", name="Show the plan").click()
    plan_of(page)
    apply(page)
    page.get_by_role("button", name="Add attribute").click()
    page.get_by_label("Name", exact=True).fill("text")
    page.get_by_label("Another value in each locale").check()
    page.get_by_role("button", name="Add", exact=True).click()
    review(page)
    apply(page)
    page.get_by_role("button", name="Change text").click()
    page.get_by_label("Another value in each locale").uncheck()
    page.get_by_role("dialog").get_by_role("button", name="Change", exact=True).click()
    expect(review(page)).to_contain_text("This changes the branch rework.")
    expect(plan_of(page)).to_contain_text('"localized": false')
    apply(page)
    assert '"displayName": "Story"' in git(site.root, "show", "rework:content-types/story.json")
    # The values of an enumeration are those of the documents.
    page.get_by_label("Content type or component").select_option("paper")
    page.get_by_role("button", name="Change title").click()
    page.get_by_label("Type", exact=True).select_option("enumeration")
    page.get_by_role("dialog").get_by_role("button", name="Change", exact=True).click()
    expect(review(page)).to_contain_text("Tides")
    expect(page.get_by_role("dialog")).to_contain_text("type: enumeration")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_and_its_dialogs_are_accessible_at_every_size(
    scheme: str, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("chief", color_scheme=scheme)
    connections = page.get_by_role("group", name="Connections of Paper")
    expect(connections.get_by_role("link", name="Place: place, many to one")).to_have_count(1)
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), size
        buttons = ("Add attribute", "New type", "New component", "Options of Paper", "Rename Paper")
        for button in (*buttons, "Review changes", "Discard"):
            if button == "Review changes":
                page.get_by_role("button", name="Remove place").click()
                page.evaluate("scrollTo(0, 0)")
                picture(page, f"types-{scheme}{SHOWN[size]}")
            page.get_by_role("button", name=button).click()
            dialog = page.get_by_role("dialog")
            if button == "Review changes":
                plan_of(page)
                expect(dialog.get_by_role("heading", level=2)).to_be_focused()
                assert dialog.evaluate("(dialog) => dialog.scrollWidth <= dialog.clientWidth"), size
            check_access(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (size, button)
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
        page.get_by_role("button", name="Take back").click()
    connections.get_by_role("link", name="Place: place, many to one").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=2, name="Place").wait_for()
