"""Several changes to a content type, which are saved together: one plan, one commit, one undo."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.git import commit_all, git
from tests.studio.browser_sign_in import serving_users
from tests.studio.browser_types import FILES, PAPER, apply, change, listed, plan_of, review, schema_of
from tests.studio.conftest import Page, Studio, expect, signed_in_users

NOTE = """\
kind: collectionType
info: {singularName: note, pluralName: notes, displayName: Note}
attributes:
  title: {type: string}
  slug: {type: uid, targetField: title}
  left: {type: string}
  right: {type: string}
"""
MAY = "[find, findOne, create, update, delete]"
MORE = {
    "content-types/note.yaml": NOTE,
    "content-types/scrap.yaml": NOTE.replace("note", "scrap")
    .replace("Note", "Scrap")
    .replace("title", "text"),
    "content-types/memo.yaml": PAPER.replace("paper", "memo").replace("Paper", "Memo"),
    "content/notes/n.yaml": "title: One\nslug: one\nleft: L\nright: R\n",
    "content/memos/m.yaml": "title: Tides\npages: '3'\n",
    "site.yaml": FILES["site.yaml"].replace(
        "  chief:\n", f"  chief:\n    note: {MAY}\n    memo: {MAY[:-1]}, readDraft]\n"
    ),
}
USERS = {"chief": "chief", "second": "chief"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site with two users who may change content types."""
    studio = Studio(tmp_path_factory.mktemp("types"), files={**FILES, **MORE})
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
        page.locator(".save-bar").wait_for()
        return page

    return enter


def test_several_changes_are_one_plan_one_commit_and_one_undo(
    enter: Callable[..., Page], site: Studio
) -> None:
    before = contents(site)
    commits = git(site.root, "rev-list", "--count", "HEAD")
    page = enter("chief")
    told = page.locator(".save-bar").get_by_role("status")
    page.get_by_role("button", name="Add attribute").press("Enter")
    page.get_by_label("Name", exact=True).fill("subtitle")
    page.get_by_label("Maximum length").fill("80")
    page.keyboard.press("Enter")
    expect(told).to_have_text("1 unsaved change")
    expect(page.get_by_role("button", name="Add attribute")).to_be_focused()
    page.get_by_role("button", name="Change title").press("Enter")
    page.get_by_label("Name", exact=True).fill("headline")
    page.keyboard.press("Enter")
    expect(told).to_have_text("2 unsaved changes")
    page.get_by_role("button", name="Move subtitle, with the arrow keys").focus()
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    page.get_by_role("button", name="Remove pages").press("Enter")
    expect(told).to_have_text("4 unsaved changes")
    assert contents(site) == before
    dialog = review(page)
    for text in ("subtitle:", "headline: Tides  # ours", "2 document files change.", "2 losses."):
        expect(dialog).to_contain_text(text)
    dialog.get_by_label("Lose 2 values").check()
    apply(page)
    expect(told).to_have_text("")
    assert "  headline: {type: string}\n  subtitle:\n" in schema_of(site)
    assert "pages" not in schema_of(site)
    assert (site.root / "content/papers/a.yaml").read_text() == "headline: Tides  # ours\n"
    assert int(git(site.root, "rev-list", "--count", "HEAD")) == int(commits) + 1
    # The form of a document has the new attributes without another visit.
    page.get_by_role("navigation", name="Content").get_by_role("link", name=re.compile("^Paper")).click()
    page.get_by_role("link", name="Tides").click()
    page.get_by_role("textbox", name="Subtitle").wait_for()
    page.goto(f"{site.url}/site/-/types?type=paper")
    page.get_by_role("button", name="Undo: paper was changed.").click()
    page.get_by_role("button", name="Change title").wait_for()
    assert contents(site) == before


def contents(site: Studio) -> dict[str, str]:
    """Return the texts of schemas and documents, by path."""
    paths = (path for path in site.root.glob("content*/**/*") if path.is_file())
    return {path.relative_to(site.root).as_posix(): path.read_text() for path in paths}


def test_changes_that_depend_on_each_other_are_made_in_a_possible_order(
    enter: Callable[..., Page], site: Studio
) -> None:
    page = enter("chief", "?type=note")
    # Later changes replace and cancel earlier ones.
    change(page, "", Name="draft")
    change(page, "draft", Name="topic")
    assert listed(page) == ["Add topic"]
    page.get_by_role("button", name="Remove topic").click()
    change(page, "left", Name="middle")
    change(page, "middle", Name="left")
    expect(page.get_by_role("button", name="Review changes")).to_be_disabled()
    assert listed(page) == []
    # Two attributes swap their names; one replaces another; the text of the slug comes from a new one.
    change(page, "left", Name="other")
    change(page, "right", Name="left", Maximum_length="9")
    change(page, "other", Name="right")
    page.get_by_role("button", name="Remove title").click()
    change(page, "", Name="title", Type="text")
    change(page, "title", Name="heading")
    change(page, "slug", Name="path", Derived_from="heading")
    # The other side of this relation is added to the same type.
    change(
        page, "", Name="parent", Type="relation", Target="api::note.note", Attribute_on_the_other_side="notes"
    )
    change(page, "", Name="title", Type="integer")
    for _ in range(2):
        page.get_by_role("button", name="Move heading, with the arrow keys").press("ArrowUp")
    assert listed(page) == [
        "Rename left to right", "Rename right to left", "Delete title", "Add heading", "Rename slug to path",
        "Add parent", "Add title", "Change the order",
    ]  # fmt: skip
    # A name can't be taken back while another attribute has it.
    page.get_by_role("button", name="Take back: Delete title").click()
    page.get_by_role("alert").filter(has_text="There is already an attribute title.").wait_for()
    dialog = review(page)
    expect(dialog).to_contain_text("1 document file changes.")
    dialog.get_by_label("Lose 1 value").check()
    apply(page)
    assert contents(site)["content/notes/n.yaml"] == "path: one\nright: L\nleft: R\n"
    schema = schema_of(site, "note").partition("attributes:")[2]
    assert re.findall(r"^  (\w+):", schema, re.MULTILINE) == [
        "path",
        "heading",
        "right",
        "left",
        "parent",
        "notes",
        "title",
    ]
    assert "targetField: heading" in schema


def test_changes_are_taken_back_kept_and_discarded(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "?type=place")
    # A name that the server refuses: the changes stay, and can be corrected.
    change(page, "", Name="documentId", Regular_expression="^[A-Z]")
    change(page, "name", Maximum_length="20")
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("dialog").get_by_role("alert").filter(has_text="documentId").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Change documentId").click()
    expect(page.get_by_label("Regular expression")).to_have_value("^[A-Z]")
    page.get_by_label("Name", exact=True).fill("name")
    page.get_by_role("dialog").get_by_role("button", name="Change", exact=True).click()
    message = page.get_by_label("Name", exact=True).evaluate("input => input.validationMessage")
    assert message == "There is already an attribute name."
    page.keyboard.press("Escape")
    # Nothing is lost without a question, nor afterwards.
    chooser = page.get_by_label("Content type or component")
    chooser.select_option("paper")
    page.get_by_role("dialog", name="Leave the page?").get_by_role("button", name="Cancel").click()
    expect(chooser).to_have_value("place")
    chooser.select_option("paper")
    page.get_by_role("dialog", name="Leave the page?").get_by_role("button", name="Leave").click()
    page.get_by_role("heading", level=2, name="Paper").wait_for()
    expect(page.get_by_role("button", name="Discard")).to_be_disabled()
    page.go_back()
    expect(page.get_by_role("button", name="Rename Place")).to_be_disabled()
    assert listed(page) == ["Add documentId", "Change name"]
    page.get_by_role("button", name="Take back: Add documentId").press("Enter")
    expect(page.locator(".save-bar").get_by_role("status")).to_have_text("1 unsaved change")
    expect(page.get_by_role("heading", name="Attributes")).to_be_focused()
    page.get_by_role("button", name="Discard").click()
    question = page.get_by_role("dialog", name="Discard 1 unsaved change?")
    expect(question).to_contain_text("Change name")
    question.get_by_role("button", name="Discard").click()
    assert listed(page) == []
    page.reload()
    page.get_by_role("heading", level=2, name="Place").wait_for()
    assert listed(page) == []


def test_changes_by_others_stay_and_are_shown(enter: Callable[..., Page], site: Studio) -> None:
    page, other = enter("chief", "?type=memo"), enter("second", "?type=memo")
    change(page, "title", Name="headline")
    change(page, "pages", Maximum_length="5")
    page.get_by_role("button", name="Move place, with the arrow keys").press("ArrowUp")
    change(other, "title", Maximum_length="60")
    change(other, "pages", Name="sheets")
    change(other, "", Name="year", Type="integer")
    review(other)
    apply(other)
    dialog = review(page)
    dialog.get_by_text("Content types or documents have changed meanwhile.").wait_for()
    expect(dialog).not_to_contain_text("year: {")
    apply(page)
    assert "headline: {type: string, maxLength: 60}" in schema_of(site, "memo")
    assert re.findall(r"^  (\w+):", schema_of(site, "memo"), re.MULTILINE) == [
        "headline",
        "place",
        "sheets",
        "year",
    ]


def test_changes_to_a_type_that_others_delete_are_kept(enter: Callable[..., Page]) -> None:
    page, other = enter("chief", "?type=scrap"), enter("second", "?type=scrap")
    change(page, "text", Maximum_length="30")
    other.get_by_role("button", name="Delete Scrap").click()
    plan_of(other)
    apply(other)
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("alert").filter(has_text="scrap no longer exists").wait_for()
    other.get_by_role("button", name="Undo: scrap was deleted.").click()
    other.get_by_role("main").get_by_role("link", name="Scrap").wait_for()
    page.reload()
    page.get_by_role("heading", level=2, name="Scrap").wait_for()
    assert listed(page) == ["Change text"]


def test_changes_on_a_branch_are_one_commit_of_it(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief", "?type=paper&branch=rework")
    before, commits = contents(site), int(git(site.root, "rev-list", "--count", "rework"))
    change(page, "title", Name="headline")
    change(page, "", Name="year", Type="integer")
    expect(review(page)).to_contain_text("This changes the branch rework.")
    apply(page)
    assert listed(page) == []
    expect(page.get_by_role("heading", name="Attributes")).to_be_focused()
    assert int(git(site.root, "rev-list", "--count", "rework")) == commits + 1
    assert "headline: {type: string}" in git(site.root, "show", "rework:content-types/paper.yaml")
    assert contents(site) == before


def test_changes_outlive_the_session(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("chief")
    change(page, "title", Name="headline")
    page.route(
        re.compile("/changes"), lambda route: route.fulfill(status=503, json={"error": {"message": "Busy"}})
    )
    page.get_by_role("button", name="Review changes").click()
    page.get_by_role("dialog").get_by_role("alert").filter(has_text="Busy").wait_for()
    page.unroute(re.compile("/changes"))
    page.get_by_role("button", name="Check again").click()
    plan_of(page)
    page.keyboard.press("Escape")
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    page.get_by_role("heading", level=2, name="Paper").wait_for()
    assert listed(page) == ["Rename title to headline"]
