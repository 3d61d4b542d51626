"""The history of documents, in a browser: what each version changed, and how to restore earlier values."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from tests.git import git
from tests.servers import free_port, start, stop, wait
from tests.studio.browser_form import open_form, told
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import add_user
from tests.studio.conftest import Page, Studio, answer_to, expect, sign_in
from tests.waiting import until

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

NOTE = {
    "title": {"type": "string", "required": True},
    "body": {"type": "richtext"},
    "open": {"type": "boolean"},
    "tags": {"type": "relation", "relation": "manyToMany", "target": "api::tag.tag"},
    "cover": {"type": "media"},
    "parts": {"type": "component", "component": "page.part", "repeatable": True},
    "data": {"type": "json"},
}
PART = {
    "heading": {"type": "string"},
    "text": {"type": "text"},
    "secret": {"type": "string", "private": True},
}
FIRST = """---
title: Tides
subtitle: In the bay
tags: [fog]
cover: knots.png
open: true
parts:
  - heading: One
    text: The first part.
    secret: kept
data: {high: 5, low: 1}
---
The tide comes in twice a day.

Nobody knows why.
"""
SECOND = """---
title: Tides
tags: [fog, night]
open: false
parts:
  - heading: One
    text: The first part of two.
    secret: kept
  - heading: Two
    text: Another part.
data: {high: 6, low: 1}
---
The tide comes in twice each day.

Nobody knows why.
"""
ROLES = """
roles:
  public: {auth: [callback]}
  writer: {note: [find, findOne, update], history: [read]}
  reader: {note: [find, findOne, update]}
"""


def commit(root: Path, day: int, message: str, author: str) -> str:
    """Commit all changes as the given author, on a day in October 2024."""
    git(root, "add", "-A")
    at = f"2024-10-{day:02d}T09:00:00Z"
    git(
        root,
        "commit",
        "-qm",
        message,
        f"--author={author} <{author.lower()}@example.org>",
        f"--date={at}",
        at=at,
    )
    return git(root, "rev-parse", "HEAD").strip()


def make(folder: Path) -> Studio:
    """Return a site in a git repository, in which several people have changed the documents."""
    studio = Studio(folder)
    for name, drafts in (("note", False), ("essay", True)):
        schema = {
            "info": {"singularName": name, "pluralName": f"{name}s", "displayName": name.title()},
            "options": {"draftAndPublish": drafts},
            "attributes": NOTE,
        }
        (studio.root / f"content-types/{name}.json").write_text(json.dumps(schema))
        (studio.root / f"content/{name}s").mkdir()
    parts = studio.root / "content-types/components/page"
    parts.mkdir(parents=True, exist_ok=True)
    (parts / "part.json").write_text(json.dumps({"info": {"displayName": "Part"}, "attributes": PART}))
    (studio.root / ".gitignore").write_text(".bifolio/\n")
    (studio.root / "site.yaml").write_text((studio.root / "site.yaml").read_text().split("roles:")[0] + ROLES)
    add_user(studio, "writer", "writer")
    add_user(studio, "reader", "reader")
    git(studio.root, "init", "-q", "-b", "main")
    return studio


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of the site that `make` returns."""
    studio = make(tmp_path_factory.mktemp("history"))
    for name in ("note", "essay"):
        (studio.root / f"content/{name}s/tides.md").write_text(FIRST)
    commit(studio.root, 1, "Begin", "Ada")
    for name in ("note", "essay"):
        (studio.root / f"content/{name}s/tides.md").write_text(SECOND)
    commit(studio.root, 2, "Say how often\n\nAs the tables have it.", "Bo")
    studio.start()
    yield studio
    stop(studio.process)


@pytest.fixture(scope="module")
def answers(site: Studio, entered: Any, browser: Any) -> dict[str, str]:
    """The API's responses for the documents that tests change, by path, before the first change."""
    context = browser.new_context(storage_state=entered)
    paths = [f"{name}s/tides{query}" for name in ("note", "essay") for query in ("", "?status=draft")]
    found = {path: answer_to(context, site, path) for path in paths}
    context.close()
    return found


@pytest.fixture
def form(site: Studio, entered: Any, answers: dict[str, str], new_page: Callable[..., Page]) -> Page:
    """A page in which the owner is signed in. The documents of `site` are as in the last commit."""
    git(site.root, "reset", "-q", "--hard", "main")
    git(site.root, "clean", "-qfd", "content")
    page = new_page(storage_state=entered)
    until(lambda: all(answer_to(page, site, path) == answer for path, answer in answers.items()))
    return page


def open_history(page: Page, site: Studio, path: str) -> Any:
    """Open a document with its history panel. Return the panel once it lists the versions."""
    open_form(page, site, f"{path}?panel=history")
    panel = page.get_by_role("complementary", name="History")
    panel.get_by_role("list", name="Versions").wait_for()
    return panel


def version(panel: Any, text: str) -> Any:
    """Return the button for a version in the panel."""
    return panel.get_by_role("list", name="Versions").get_by_role("button").filter(has_text=text)


def change(panel: Any, label: str) -> Any:
    """Return the part of a comparison that shows a field."""
    return panel.get_by_role("group", name=label, exact=True)


def test_the_versions_say_who_when_why_and_what(form: Page, site: Studio) -> None:
    open_form(form, site, "note/tides")
    form.get_by_role("button", name=re.compile("^Changed ")).click()
    panel = form.get_by_role("complementary", name="History")
    bo, ada = version(panel, "Bo"), version(panel, "Ada")
    told_of_bo = "Bo Oct 2, 2024 Body, Open, Tags, Cover and 2 more Say how often"
    expect(bo).to_have_text(told_of_bo, use_inner_text=True)
    expect(bo.locator("time")).to_have_attribute("title", re.compile("2024"))
    expect(ada).to_have_text("Ada Oct 1, 2024 Created Begin", use_inner_text=True)
    form.get_by_role("textbox", name="Title").fill("Tides and times")
    form.keyboard.press("Control+s")
    told(form, "Saved")
    expect(version(panel, "Not committed yet")).to_contain_text("Title")


def test_a_version_shows_what_it_changed(form: Page, site: Studio) -> None:
    panel = open_history(form, site, "note/tides")
    version(panel, "Bo").click()
    body = change(panel, "Body")
    expect(body.locator("del")).to_have_text(["a"])
    expect(body.locator("ins")).to_have_text(["each"])
    expect(change(panel, "Open").locator("del, ins")).to_have_text(["Yes", "No"])
    expect(change(panel, "Tags").locator("ins")).to_have_text(["Night"])
    expect(change(panel, "Cover").locator("del")).to_have_text(["knots.png"])
    expect(change(panel, "Data").locator("del, ins")).to_have_text(["5", "6"])
    parts = change(panel, "Parts")
    expect(parts).to_contain_text("Part 1 › Text")
    expect(parts).to_contain_text("Heading: Two Text: Another part.", use_inner_text=True)
    expect(parts).not_to_contain_text("secret")
    expect(panel).to_contain_text("“subtitle” is no longer part")
    expect(panel.get_by_text("As the tables have it.")).to_be_visible()
    panel.get_by_role("button", name="All versions").click()
    expect(version(panel, "Bo")).to_be_focused()


def choose(panel: Any, label: str, text: str) -> None:
    """Select a version to compare."""
    chooser = panel.get_by_role("combobox", name=label)
    chooser.select_option(chooser.locator("option").filter(has_text=text).get_attribute("value"))


def test_any_two_versions_are_compared(form: Page, site: Studio) -> None:
    panel = open_history(form, site, "essay/tides")
    for title in ("Second title", "Third title"):
        form.get_by_role("textbox", name="Title").fill(title)
        form.keyboard.press("Control+s")
        told(form, "Saved as a draft")
        if title == "Second title":
            form.get_by_role("button", name="Publish", exact=True).click()
            told(form, "Published")
    version(panel, "Draft created").wait_for()
    panel.get_by_role("button", name="Compare the draft with the published version").click()
    title = change(panel, "Title")
    expect(title.locator("del, ins")).to_have_text(["Second", "Third"])
    choose(panel, "Compare", "Ada")
    # The older version is on the left.
    expect(title.locator("del, ins")).to_have_text(["Tides", "Second title"])
    choose(panel, "with", "Bo")
    title.wait_for(state="detached")
    expect(change(panel, "Body").locator("del, ins")).to_have_text(["a", "each"])


def test_the_draft_is_compared_as_newer_than_what_is_committed(form: Page, site: Studio) -> None:
    panel = open_history(form, site, "essay/tides")
    form.get_by_role("textbox", name="Title").fill("Currents")
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    panel.get_by_role("button", name="Compare the draft with the published version").click()
    title = change(panel, "Title")
    expect(title.locator("del")).to_have_text(["Tides"])
    expect(title.locator("ins")).to_have_text(["Currents"])


def test_both_sides_leave_out_what_is_the_same(form: Page, site: Studio) -> None:
    path = site.root / "content/essays/tides.md"
    path.write_text(path.read_text() + "".join(f"{number} fathoms\n" for number in range(20)))
    panel = open_history(form, site, "essay/tides")
    body = form.get_by_role("textbox", name="Body")
    body.get_by_text("19 fathoms").wait_for()
    body.press("Control+End")
    form.keyboard.type("By the mark twain.")
    form.keyboard.press("Control+s")
    told(form, "Saved as a draft")
    panel.get_by_role("button", name="Compare the draft with the published version").click()
    change(panel, "Body").locator("ins", has_text="twain").wait_for()
    expect(change(panel, "Body").get_by_text("unchanged lines")).to_have_count(2)


def test_a_field_is_put_back_as_unsaved_work(form: Page, site: Studio) -> None:
    path = site.root / "content/notes/tides.md"
    panel = open_history(form, site, "note/tides")
    version(panel, "Bo").click()
    for label in ("Body", "Tags", "Cover", "Parts"):
        change(panel, label).get_by_role("button", name="Use the older value").click()
        told(form, f"The older value of {label} was copied into the form and is not saved yet")
    assert path.read_text() == SECOND
    form.keyboard.press("Control+s")
    told(form, "Saved")
    written = path.read_text()
    assert "comes in twice a day." in written
    assert "open: false" in written
    shown = json.loads(answer_to(form, site, "notes/tides?populate=*"))["data"]
    assert [tag["documentId"] for tag in shown["tags"]] == ["fog"]
    assert (shown["cover"]["name"], [part["text"] for part in shown["parts"]]) == (
        "knots.png",
        ["The first part."],
    )
    assert "secret: kept" in written  # the private value of a component that remains


def test_what_is_typed_is_never_replaced_without_a_word(form: Page, site: Studio) -> None:
    panel = open_history(form, site, "note/tides")
    form.get_by_role("textbox", name="Body").fill("Mine")
    version(panel, "Bo").click()
    put = change(panel, "Body").get_by_role("button", name="Use the older value")
    put.click()
    question = form.get_by_role("dialog", name="Replace unsaved changes?")
    form.keyboard.press("Escape")
    question.wait_for(state="hidden")
    expect(form.get_by_role("textbox", name="Body")).to_have_text("Mine")
    put.click()
    question.get_by_role("button", name="Replace").click()
    expect(form.get_by_role("textbox", name="Body")).to_contain_text("twice a day")


def test_a_version_is_restored_whole_beside_what_is_not_saved(form: Page, site: Studio) -> None:
    panel = open_history(form, site, "essay/tides")
    form.get_by_role("textbox", name="Title").fill("Mine")
    form.get_by_role("textbox", name="Body").fill("Mine as well")
    version(panel, "Ada").click()
    panel.get_by_role("button", name="Restore this version").click()
    question = form.get_by_role("dialog", name="Restore this version?")
    question.get_by_text("in the draft").wait_for()
    expect(question.get_by_role("listitem")).to_have_text(["Body", "Open", "Tags", "Cover", "Parts", "Data"])
    stays = "Your unsaved values stay in the form, next to the restored ones: Body."
    expect(question).to_contain_text(stays, use_inner_text=True)
    expect(question).to_contain_text("“subtitle” is no longer part")
    question.get_by_role("button", name="Restore").click()
    told(form, "Version restored")
    expect(form.get_by_role("textbox", name="Title")).to_have_value("Mine")
    expect(form.get_by_role("radio", name="Yes", exact=True)).to_be_checked()
    form.get_by_role("group", name="Body: also changed by someone else").wait_for()
    assert (site.root / "content/essays/tides.md").read_text() == SECOND
    assert "twice a day" in (site.root / "content/essays/tides.draft.md").read_text()


def test_a_restore_does_not_write_over_what_somebody_else_has_changed(form: Page, site: Studio) -> None:
    panel = open_history(form, site, "note/tides")
    version(panel, "Ada").click()
    form.route(f"{site.url.removesuffix('/studio')}/events*", lambda route: route.abort())
    panel.get_by_role("button", name="Restore this version").click()
    question = form.get_by_role("dialog", name="Restore this version?")
    question.get_by_role("listitem").first.wait_for()
    form.route("**/restore*", lambda route: (_edit(site), route.continue_())[1])
    question.get_by_role("button", name="Restore").click()
    question.get_by_text("Someone else changed the document").wait_for()
    assert "title: Theirs" in (site.root / "content/notes/tides.md").read_text()


def _edit(site: Studio) -> None:
    path = site.root / "content/notes/tides.md"
    path.write_text(path.read_text().replace("title: Tides", "title: Theirs"))


def test_the_panel_says_who_changed_each_field_last(form: Page, site: Studio) -> None:
    panel = open_history(form, site, "note/tides")
    panel.get_by_text("Last change of each field").click()
    table = panel.get_by_role("table")
    table.wait_for()
    rows = dict(row.split("\t") for row in table.get_by_role("row").all_inner_texts()[1:])
    assert rows["Title"].startswith("Ada, ")
    assert rows["Body"].startswith("Bo, ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(
    scheme: str, form: Page, site: Studio, check_access: Callable[[Page], None]
) -> None:
    form.emulate_media(color_scheme=scheme)
    panel = open_history(form, site, "essay/tides")
    for name, (width, height) in SIZES.items():
        form.set_viewport_size({"width": width, "height": height})
        check_access(form)
        version(panel, "Bo").click()
        change(panel, "Body").wait_for()
        check_access(form)
        assert form.evaluate("document.documentElement.scrollWidth") <= width
        picture(form, f"history-{scheme}{SHOWN[name]}")
        panel.get_by_role("button", name="All versions").click()


def test_who_may_not_see_the_history_is_not_led_to_it(site: Studio, new_page: Callable[..., Page]) -> None:
    page = come_in(new_page(), site, "reader")
    open_form(page, site, "note/tides?panel=history")
    page.get_by_text("Your role can't see the history").wait_for()
    page.locator(".actions time").wait_for()
    expect(page.get_by_role("button", name="History")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Changed "))).to_have_count(0)


def test_who_may_not_restore_puts_fields_back_alone(site: Studio, new_page: Callable[..., Page]) -> None:
    page = come_in(new_page(), site, "writer")
    panel = open_history(page, site, "note/tides")
    version(panel, "Ada").click()
    change(panel, "Body").get_by_role("button", name="Use the older value").wait_for()
    expect(panel.get_by_role("button", name="Restore this version")).to_have_count(0)
    # The user has no permission to find the targets of the relation.
    expect(change(panel, "Tags")).to_have_count(0)


def come_in(page: Page, site: Studio, name: str) -> Page:
    """Sign in as a user, and return the page."""
    page.goto(site.url)
    sign_in(page, name)
    page.get_by_role("heading", level=1, name="Recently changed").wait_for()
    return page


def test_a_site_in_no_repository_says_what_to_do(page: Page, studio: Studio) -> None:
    open_form(page, studio, "article/2025--goemon?panel=history")
    page.get_by_text("No history available").wait_for()
    page.get_by_text("git init").wait_for()


def test_a_past_state_says_so_and_offers_nothing_that_writes(
    site: Studio, new_page: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    git(site.root, "reset", "-q", "--hard", "main")
    port, log = free_port(), site.log.with_name("past")
    with log.open("wb") as out:
        server = start(site.root, port, "--workers=1", "--at=main~1", output=out)
    try:
        wait(server, port)
        past = copy(site)
        past.port = port
        page = come_in(new_page(), past, "writer")
        page.get_by_text("This is the site as it was on").wait_for()
        page.get_by_text("It is read-only").wait_for()
        check_access(page)
        page.goto(f"{past.url}/note")
        page.get_by_role("link", name="Tides", exact=True).click()
        page.get_by_role("textbox", name="Title").wait_for()
        expect(page.get_by_role("radio", name="Yes", exact=True)).to_be_checked()  # as in that version
        page.get_by_role("button", name="History", exact=True).wait_for()
        buttons = page.get_by_role("main").get_by_role("button").all_inner_texts()
        assert not {"Save", "Delete", "Publish", "Duplicate"} & set(buttons)
        page.get_by_role("button", name="History", exact=True).click()
        panel = page.get_by_role("complementary", name="History")
        version(panel, "Ada").click()
        change(panel, "Body").wait_for()
        expect(panel.get_by_role("button", name=re.compile("Restore|Use the"))).to_have_count(0)
    finally:
        stop(server)


@pytest.mark.parametrize("name", ["note", "essay"])
def test_a_deleted_document_comes_back(
    name: str, form: Page, site: Studio, check_access: Callable[[Page], None]
) -> None:
    drafts = name == "essay"
    open_form(form, site, f"{name}/tides")
    form.get_by_role("button", name="More", exact=True).click()
    form.get_by_role("button", name="Delete", exact=True).click()
    form.get_by_text("No documents yet").wait_for()
    form.get_by_role("link", name="Deleted documents").click()
    form.get_by_role("heading", level=1, name=f"Deleted {name}s").wait_for()
    form.get_by_text("come back as drafts" if drafts else "are public again immediately").wait_for()
    form.get_by_role("button", name="Restore Tides").wait_for()
    for width, height in SIZES.values():
        form.set_viewport_size({"width": width, "height": height})
        check_access(form)
        assert form.evaluate("document.documentElement.scrollWidth") <= width
    form.get_by_role("button", name="Restore Tides").click()
    form.get_by_text("Restored", exact=True).wait_for()
    form.get_by_role("main").get_by_role("link", name="Tides", exact=True).click()
    form.get_by_role("textbox", name="Title").wait_for()
    written = site.root / f"content/{name}s/tides{'.draft' if drafts else ''}.md"
    assert "twice each day" in written.read_text()
    assert [path.name for path in written.parent.iterdir()] == [written.name]


def test_what_may_not_be_restored_is_not_offered(site: Studio, new_page: Callable[..., Page]) -> None:
    page = come_in(new_page(), site, "writer")
    page.goto(f"{site.url}/note")
    page.get_by_role("link", name="Tides").wait_for()
    expect(page.get_by_role("link", name="Deleted documents")).to_have_count(0)
    page.goto(f"{site.url}/note/-/deleted")
    page.get_by_text("Your role can't restore documents").wait_for()
