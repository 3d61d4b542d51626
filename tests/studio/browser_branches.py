"""Branches in the studio: the list, changes, merges with conflicts, and working on a branch."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from tests.git import commit_all, git
from tests.sites import schema, write
from tests.studio.browser_form import told
from tests.studio.browser_loading import MOST_MOVED, WATCH
from tests.studio.browser_pages import SHOWN, SIZES, picture
from tests.studio.browser_sign_in import serving_users
from tests.studio.conftest import Page, Studio, expect, signed_in_users

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")

CONTENT = {
    "content/papers/harbour.md": """---
title: The harbour at night
summary: Lamps on the quay, seen from the water.
tags: [fog]
---
The harbour lies open to the west.

Boats come in with the tide, and leave with it.

Nobody rings the bell.
""",
    "content/papers/tides.md": "---\ntitle: Tides\nsummary: Twice a day.\n---\nThe tide comes in.\n",
    "content/papers/weirs.md": "---\ntitle: Weirs\nsummary: Out of the water.\ntags: [fog]\n---\nFish.\n",
    "content/tags/fog.yaml": "name: Fog\n",
    "content/tags/night.yaml": "name: Night\n",
}
FILES = {
    ".gitignore": ".bifolio/\n",
    "content-types/paper.json": schema(
        "paper",
        {
            "title": {"type": "string", "required": True},
            "summary": "text",
            "body": "richtext",
            "tags": {"type": "relation", "relation": "manyToMany", "target": "api::tag.tag"},
        },
        drafts=True,
    ),
    "content-types/tag.json": schema("tag", {"name": "string"}),
    **CONTENT,
    "site.yaml": """
name: Papers
preview:
  paper: /page?id={documentId}&branch={branch}
  tag: /tag?id={documentId}
roles:
  public: {auth: [callback]}
  merger:
    paper: [find, findOne, readDraft, create, update, delete]
    tag: [find, findOne, create, update, delete]
    branch: [find, create, update, delete, merge]
    history: [read]
  writer:
    paper: [find, findOne, readDraft, create, update, delete]
    tag: [find, findOne]
    branch: [find, update]
  tagger: {paper: [find, findOne], tag: [find, findOne, update], branch: [find, merge]}
  architect:
    paper: [find, findOne, readDraft, update]
    branch: [find, create, update, merge]
    content-type: [find, write]
    source: [read]
  finder: {paper: [find, findOne], tag: [find, findOne], branch: [find]}
  curator: {paper: [find, findOne], upload: [find], branch: [find]}
  nobody: {paper: [find, findOne], tag: [find, findOne]}
""",
}
ROLES = ("merger", "writer", "finder", "nobody")
USERS = (*ROLES, "tagger", "curator", "architect")
BODY_OF_BRANCH = (
    "The harbour lies open to the north-west.\n\nBoats come in with the tide.\n\nNobody rings the bell.\n"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server of a site in a git repository, with a user in each role."""
    studio = Studio(tmp_path_factory.mktemp("branches"), files=FILES)
    commit_all(studio.root)
    with serving_users(studio, {role: role for role in USERS}):
        yield studio


@pytest.fixture(scope="module")
def sessions(site: Studio, browser: Any) -> dict[str, Any]:
    """The browser state in which the role's user is signed in, by role."""
    return signed_in_users(site, browser, USERS)


@pytest.fixture
def enter(site: Studio, sessions: dict[str, Any], new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A function that opens a page of the studio as the user of a role.

    The site has the branch "next", with three changed documents, and the branch "agent/translate", with one.
    """
    first = git(site.root, "rev-list", "--max-parents=0", "HEAD").strip()
    git(site.root, "checkout", "-q", "-f", "main")
    git(site.root, "reset", "-q", "--hard", first)
    git(site.root, "clean", "-qfd", "content")
    for name in git(site.root, "for-each-ref", "--format=%(refname:short)", "refs/heads").split():
        if name != "main":
            git(site.root, "branch", "-qD", name)
    commit_on(site, "next", NEXT, "Nell")
    commit_on(site, "agent/translate", {"content/tags/night.yaml": "name: Nacht\n"}, "Translator")

    def enter(role: str, path: str, **options: Any) -> Page:
        page = new_page(storage_state=sessions[role], **options)
        page.goto(f"{site.url}/{path}".rstrip("/"))
        page.locator("main h1").wait_for()
        page.locator("[aria-busy=true]").wait_for(state="detached")
        return page

    return enter


NEXT = {
    "content/papers/harbour.md": CONTENT["content/papers/harbour.md"]
    .replace("at night", "by night")
    .replace("[fog]", "[fog, night]")
    .partition("---\nThe")[0]
    + f"---\n{BODY_OF_BRANCH}",
    "content/papers/lamps.md": "---\ntitle: Lamps\nsummary: New on the quay.\n---\nLight.\n",
    "content/papers/weirs.md": None,
}


def commit_on(site: Studio, branch: str, files: Mapping[str, str | bytes | None], author: str) -> str:
    """Commit changes to a branch, which is created if necessary, in a worktree that is removed afterwards."""
    folder = site.root.with_name("worktree")
    known = git(site.root, "branch", "--list", branch).strip()
    git(
        site.root, "worktree", "add", "-q", *([str(folder), branch] if known else ["-b", branch, str(folder)])
    )
    for path, text in files.items():
        if text is None:
            (folder / path).unlink()
        else:
            write(folder, {path: text})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "Change", f"--author={author} <{author.lower()}@example.org>")
    commit = git(folder, "rev-parse", "HEAD").strip()
    git(site.root, "worktree", "remove", "--force", str(folder))
    return commit


def change_live(site: Studio, old: str, new: str, path: str = "content/papers/harbour.md") -> None:
    """Change a document on the live site, and commit it."""
    file = site.root / path
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    git(site.root, "commit", "-qam", "Change the live site")


def merge(page: Page) -> None:
    page.get_by_role("button", name="Merge into the live site").click()
    page.get_by_role("dialog").get_by_role("button", name="Merge", exact=True).click()


def live(site: Studio, path: str = "content/papers/harbour.md") -> str:
    return (site.root / path).read_text()


def test_branches_are_listed_with_author_age_and_size(
    enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("merger", "")
    page.get_by_role("navigation", name="Content").get_by_role("link", name="Branches").click()
    expect(page.get_by_role("heading", level=1, name="Branches")).to_be_focused()
    rows = page.locator(".branch-row")
    expect(rows).to_have_count(2)
    row = rows.filter(has_text="next")
    expect(row).to_contain_text("Last change by Nell")
    expect(row).to_contain_text("3 changed documents")
    agent = rows.filter(has_text="agent/translate")
    expect(agent).to_contain_text("1 changed document")
    check_access(page)
    agent.get_by_role("link", name="agent/translate", exact=True).click()
    page.get_by_role("heading", level=1, name="agent/translate").wait_for()
    assert page.url.endswith("/site/-/branches/agent/translate")
    expect(page.locator("del, ins")).to_have_text(["Night", "Nacht"], use_inner_text=True)
    page.reload()
    page.get_by_role("heading", level=1, name="agent/translate").wait_for()


def test_a_branch_shows_what_it_changes(
    enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("finder", "site/-/branches/next")
    harbour = page.locator("details").filter(has_text="The harbour by night")
    title = harbour.get_by_role("group", name="Title", exact=True)
    expect(title.locator("del, ins")).to_have_text(["at", "by"], use_inner_text=True)
    expect(harbour.get_by_role("group", name="Body").locator("ins")).to_have_text(
        ["north-"], use_inner_text=True
    )
    expect(harbour.get_by_role("group", name="Tags").locator("ins")).to_have_text(
        ["Night"], use_inner_text=True
    )
    expect(page.locator("details[open]")).to_have_count(1)
    check_access(page)
    page.get_by_role("heading", name="Lamps").click()
    lamps = page.locator("details").filter(has_text="Lamps")
    expect(lamps.locator("ins")).to_have_text(["Lamps", "New on the quay.", "Light."], use_inner_text=True)
    lamps.get_by_role("link", name="Open on next").click()
    page.get_by_role("heading", level=1, name="Lamps").wait_for()
    page.get_by_text("You are working on the branch next").wait_for()
    assert "/studio/paper/lamps?branch=next" in page.url


def test_a_document_that_a_branch_publishes_is_one_change(
    site: Studio, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    text, tides = "---\ntitle: Ice\n---\nCold.\n", CONTENT["content/papers/tides.md"]
    (site.root / "content/papers/ice.draft.md").write_text(text)
    git(site.root, "add", "-A")
    git(site.root, "commit", "-qm", "Add a draft")
    files = {
        "content/papers/ice.draft.md": None,
        "content/papers/ice.md": text.replace("Cold", "Colder"),
        "content/papers/tides.md": None,
        "content/papers/tides.draft.md": tides,
    }
    commit_on(site, "pub", files, "Nell")
    page = enter("merger", "site/-/branches/pub")
    page.get_by_text("2 changed documents, compared with the live site").wait_for()
    rows = page.locator("details")
    expect(rows.locator(".changed-action")).to_have_text(["Published", "Unpublished"])
    rows.first.locator("summary").click()
    expect(rows.first.get_by_role("group")).to_have_count(1)
    expect(rows.first.locator("del, ins")).to_have_text(["Cold", "Colder"], use_inner_text=True)
    rows.last.locator("summary").click()
    rows.last.get_by_text("No visible field changed").wait_for()
    check_access(page)
    page.get_by_role("button", name="Discard").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("The changes to 2 documents on this branch will be lost").wait_for()
    expect(dialog.get_by_role("listitem")).to_have_text(["Ice", "Tides"])


def test_a_branch_shows_which_media_files_it_changes(
    site: Studio, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    gif = BytesIO()
    Image.new("RGB", (90, 60), "teal").save(gif, "GIF")
    image = gif.getvalue()
    write(site.root, {"content/uploads/old.gif": image, "content/uploads/both.gif": image})
    git(site.root, "add", "-A")
    git(site.root, "commit", "-qm", "Add files")
    git(site.root, "branch", "-f", "pictures", "main")
    changed = {
        "content/uploads/old.gif": None,
        "content/uploads/both.gif.yaml": "alternativeText: A dot\n",
        "content/uploads/new.gif": image,
        "content/uploads/new.gif.yaml": "alternativeText: A dot\n",
        "content/uploads/terms.pdf": "%PDF-1.4\n",
    }
    commit_on(site, "pictures", changed, "Nell")
    page = enter("curator", "site/-/branches/pictures")
    rows = page.locator(".branch-media-list li")
    expect(rows).to_have_text(
        [
            re.compile(r"both\.gif\s+Description\s*New"),
            re.compile(r"new\.gif\s*New"),
            re.compile(r"old\.gif\s*Deleted"),
            re.compile(r"terms\.pdf\s*New"),
        ]
    )
    text = rows.first.get_by_role("group", name="Alternative text")
    expect(text.locator("ins")).to_have_text("A dot", use_inner_text=True)
    expect(rows.nth(1).get_by_role("group", name="Alternative text")).to_be_visible()
    expect(rows.locator("img")).to_have_count(3)
    assert page.evaluate("[...document.querySelectorAll('.branch-media-list img')].every((i) => i.complete)")
    page.set_viewport_size({"width": 320, "height": 700})
    check_access(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_changed_content_types_are_shown_and_used_by_the_forms(
    site: Studio, enter: Callable[..., Page]
) -> None:
    renamed = str(FILES["content-types/paper.json"]).replace('"summary"', '"intro"')
    commit_on(site, "rework", {"content-types/paper.json": renamed}, "Nell")
    page = enter("architect", "site/-/branches/rework")
    section = page.get_by_role("region", name="Content types and settings")
    expect(section).to_contain_text("content-types/paper.json")
    expect(section.locator("ins")).to_contain_text('"intro"')
    page.get_by_role("button", name="Merge into the live site").click()
    expect(page.get_by_role("dialog").locator("ins")).to_contain_text('"intro"')
    page.goto(f"{site.url}/paper/tides?branch=rework")
    page.get_by_label("Intro").fill("Twice a day.")
    page.keyboard.press("Control+s")
    told(page, "Saved as a draft")
    assert "intro: Twice" in git(site.root, "show", "rework:content/papers/tides.draft.md")
    page = enter("finder", "site/-/branches/rework")
    page.get_by_text("1 changed file is not shown.").wait_for()


@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_shown_what_it_may_do(role: str, site: Studio, enter: Callable[..., Page]) -> None:
    page = enter(role, "")
    navigation = page.get_by_role("navigation", name="Content")
    page.get_by_role("link", name="Papers").first.wait_for()
    expect(navigation.get_by_role("link", name="Branches")).to_have_count(int(role != "nobody"))
    expect(page.get_by_role("button", name="Switch branch")).to_have_count(int(role != "nobody"))
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Sign out").wait_for()
    expect(page.get_by_role("option", name="Branches")).to_have_count(int(role != "nobody"))
    page.keyboard.press("Escape")
    page.goto(f"{site.url}/site/-/branches/next")
    if role == "nobody":
        page.get_by_text("Your role can't see branches").wait_for()
        assert "harbour" not in page.content()
        return
    page.get_by_role("heading", name="The harbour by night").wait_for()
    for button in ("Merge into the live site", "Discard"):
        expect(page.get_by_role("button", name=button)).to_have_count(int(role == "merger"))
    page.goto(f"{site.url}/site/-/branches")
    page.locator(".branch-row").first.wait_for()
    for button in ("New branch", "Discard next"):
        expect(page.get_by_role("button", name=button)).to_have_count(int(role == "merger"))
    page.goto(f"{site.url}/paper/harbour?branch=next")
    expect(page.get_by_label("Title")).to_be_editable(editable=role in ("merger", "writer"))
    cannot = page.get_by_text("Your role can't change it")
    expect(cannot).to_have_count(int(role == "finder"))


def test_the_api_refuses_what_a_role_may_not_do(enter: Callable[..., Page]) -> None:
    allowed = {"merger": (200, 204), "writer": (403, 403), "finder": (403, 403), "nobody": (403, 403)}
    for role, expected in reversed(allowed.items()):
        page = enter(role, "")
        got = page.evaluate(
            """async () => {
              const headers = {"Bifolio-Studio": "1"};
              const merged = await fetch("/branches/next/merge", {method: "POST", headers});
              const deleted = await fetch("/branches/next", {method: "DELETE", headers});
              return [merged.status, deleted.status];
            }"""
        )
        assert tuple(got) == expected, role


def test_a_branch_is_created_worked_on_and_merged(
    site: Studio, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("merger", "paper/tides")
    page.get_by_role("button", name="Switch branch").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("link", name="Live site")).to_have_attribute("aria-current", "true")
    check_access(page)
    dialog.get_by_role("button", name="New branch").click()
    dialog.get_by_label("Name").fill("spring sale")
    page.keyboard.press("Enter")
    dialog.get_by_text("is not a valid branch name").wait_for()
    dialog.get_by_label("Name").fill("team/spring")
    page.keyboard.press("Enter")
    notice = page.get_by_role("region", name="Branch", exact=True)
    notice.get_by_text("You are working on the branch team/spring. Visitors do not see it.").wait_for()
    notice.get_by_role("link", name="Nothing to merge").wait_for()
    assert page.url.endswith("/paper/tides?branch=team%2Fspring")
    page.get_by_label("Title").fill("Spring tides")
    page.get_by_role("button", name="Publish").click()
    told(page, "Published")
    assert "Spring tides" in git(site.root, "show", "team/spring:content/papers/tides.md")
    check_access(page)
    notice.get_by_role("link", name="1 changed document").click()
    page.get_by_role("heading", level=1, name="team/spring").wait_for()
    expect(page.locator("ins")).to_have_text(["Spring tides"], use_inner_text=True)
    page.get_by_role("button", name="Merge into the live site").click()
    check_access(page)
    page.get_by_label("Commit message").fill("Call them spring tides")
    page.keyboard.press("Enter")
    page.get_by_text("team/spring was merged into the live site. 1 document changed.").wait_for()
    page.get_by_text("The live site already has everything on this branch").wait_for()
    assert "Spring tides" in live(site, "content/papers/tides.md")
    page.get_by_role("button", name="Discard").click()
    page.get_by_text("Nothing is lost").wait_for()
    page.get_by_role("button", name="Discard branch").click()
    page.get_by_role("heading", level=1, name="Branches").wait_for()
    expect(page.locator(".branch-row")).to_have_count(2)
    assert "branch=" not in page.url


def test_what_is_lost_is_listed_before_a_branch_is_discarded(
    site: Studio, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    page = enter("merger", "site/-/branches")
    page.get_by_role("button", name="Discard next").click()
    dialog = page.get_by_role("dialog", name="Discard next?")
    dialog.get_by_text("The changes to 3 documents on this branch will be lost").wait_for()
    expect(dialog.get_by_role("listitem")).to_have_text(["The harbour by night", "Lamps", "Weirs"])
    check_access(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Discard next")).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_role("listitem").first.wait_for()
    # Meanwhile, someone else adds a document to the branch.
    commit_on(site, "next", {"content/papers/more.md": "---\ntitle: More\n---\n"}, "Bo")
    dialog.get_by_role("button", name="Discard branch").click()
    dialog.get_by_text("Someone has changed this branch").wait_for()
    dialog.get_by_text("The changes to 4 documents").wait_for()
    dialog.get_by_role("button", name="Discard branch").click()
    page.get_by_text("The branch next was discarded").wait_for()
    expect(page.locator(".branch-row")).to_have_count(1)
    assert git(site.root, "branch", "--list", "next") == ""


def in_conflict(site: Studio) -> None:
    """Change the live site so that a merge of "next" has conflicts in two attributes and a document."""
    change_live(site, "at night", "in the evening")
    change_live(site, "the west.", "the south.")
    change_live(site, "Out of", "Far out of", "content/papers/weirs.md")


def test_conflicts_are_solved_side_by_side(
    site: Studio, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    in_conflict(site)
    page = enter("merger", "site/-/branches/next")
    merge(page)
    expect(page.get_by_role("heading", name="Conflicts")).to_be_focused()
    title = page.get_by_role("group", name="Title")
    expect(title.locator("del, ins")).to_have_text(["in the evening", "by night"])
    check_access(page)
    send = page.get_by_role("button", name="Merge with these choices")
    expect(send).to_be_disabled()
    title.get_by_label("Another value").check()
    title.get_by_label("Another value: Title").fill("The harbour after dark")
    page.get_by_role("group", name="Body").get_by_label("Branch next").check()
    page.get_by_text("2 of 3 decided").wait_for()
    page.get_by_role("region", name="Weirs").get_by_label("Live site").check()
    page.get_by_text("3 of 3 decided").wait_for()
    before = git(site.root, "rev-parse", "main").strip()
    send.click()
    page.get_by_text("next was merged into the live site. 2 documents changed.").wait_for()
    assert "title: The harbour after dark" in live(site)
    assert BODY_OF_BRANCH in live(site)
    assert "Far out of" in live(site, "content/papers/weirs.md")
    assert before in git(site.root, "log", "-1", "--format=%P")


def test_conflicts_are_solved_with_the_keyboard(site: Studio, enter: Callable[..., Page]) -> None:
    in_conflict(site)
    page = enter("merger", "site/-/branches/next")
    begin = page.get_by_role("button", name="Merge into the live site")
    expect(begin).to_be_enabled()
    begin.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Commit message")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Conflicts")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Use all of the branch")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("group", name="Title").get_by_label("Live site")).to_be_checked()
    send = page.get_by_role("button", name="Merge with these choices")
    expect(send).to_be_enabled()
    send.focus()
    page.keyboard.press("Enter")
    page.get_by_text("was merged into the live site").wait_for()
    assert "title: The harbour in the evening" in live(site)
    assert not (site.root / "content/papers/weirs.md").exists()


def test_two_people_do_not_merge_what_one_of_them_has_not_seen(
    site: Studio, enter: Callable[..., Page]
) -> None:
    reviewer, editor = enter("merger", "site/-/branches/next"), enter("writer", "paper/tides?branch=next")
    reviewer.get_by_role("heading", name="The harbour by night").wait_for()
    reviewer.get_by_role("button", name="Merge into the live site").click()
    editor.get_by_label("Title").fill("Neap tides")
    editor.get_by_role("button", name="Publish").click()
    told(editor, "Published")
    reviewer.get_by_role("dialog").get_by_role("button", name="Merge", exact=True).click()
    reviewer.get_by_text("Someone has changed this branch since this page was loaded").wait_for()
    assert "by night" not in live(site)
    reviewer.get_by_role("heading", name="Neap tides").wait_for()
    merge(reviewer)
    reviewer.get_by_text("next was merged into the live site. 4 documents changed.").wait_for()
    # The editor's page notices that the branch is gone.
    reviewer.get_by_role("button", name="Discard").click()
    reviewer.get_by_role("button", name="Discard branch").click()
    reviewer.get_by_text("The branch next was discarded").wait_for()
    editor.get_by_text("The branch next does not exist anymore").wait_for()
    editor.get_by_role("link", name="Go to the live site").click()
    expect(editor.get_by_label("Title")).to_have_value("Neap tides")
    assert "branch=" not in editor.url


def test_conflicts_that_change_meanwhile_are_shown_again(site: Studio, enter: Callable[..., Page]) -> None:
    in_conflict(site)
    page = enter("merger", "site/-/branches/next")
    merge(page)
    page.get_by_role("button", name="Use all of the branch").click()
    # The live site gets the branch's title, so this is no conflict anymore.
    change_live(site, "in the evening", "by night")
    page.get_by_role("button", name="Merge with these choices").click()
    page.get_by_text("Start the merge again").wait_for()
    page.get_by_role("button", name="Cancel").click()
    merge(page)
    page.get_by_text("0 of 2 decided").wait_for()


def test_invalid_documents_are_named_and_nothing_is_merged(site: Studio, enter: Callable[..., Page]) -> None:
    commit_on(site, "next", {"content/papers/tides.md": "---\nsummary: Untitled\n---\n"}, "Bo")
    page = enter("merger", "site/-/branches/next")
    merge(page)
    page.get_by_text("these documents would be invalid").wait_for()
    fault = page.locator(".branch-faults li")
    expect(fault).to_have_text(["tides: title is required"], use_inner_text=True)
    assert "by night" not in live(site)
    fault.get_by_role("link", name="tides").click()
    page.get_by_text("You are working on the branch next").wait_for()
    assert "/paper/tides?branch=next" in page.url


def test_uncommitted_changes_of_the_live_site_are_pointed_out(
    site: Studio, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    file = site.root / "content/papers/harbour.md"
    page = enter("merger", "site/-/branches/next?branch=next")
    page.get_by_role("heading", name="The harbour by night").wait_for()
    expect(page.get_by_text("uncommitted")).to_have_count(0)
    file.write_text(file.read_text().replace("Lamps", "Lanterns"))
    page.reload()
    page.get_by_text("1 file of the live site has uncommitted changes, which are not on this").wait_for()
    expect(page.get_by_role("link", name="Go to the uncommitted changes")).to_have_count(1)
    check_access(page)
    merge(page)
    alert = page.get_by_role("alert").filter(has_text="would overwrite uncommitted changes of the live site")
    alert.get_by_text("content/papers/harbour.md. Commit them").wait_for()
    alert.get_by_role("link", name="Go to the uncommitted changes").click()
    page.get_by_role("heading", level=1, name="Changes").wait_for()
    page.get_by_text("The harbour at night", exact=True).wait_for()
    assert "branch=" not in page.url


def test_what_a_role_may_not_change_is_not_merged(site: Studio, enter: Callable[..., Page]) -> None:
    page = enter("tagger", "site/-/branches/next")
    merge(page)
    page.get_by_text("your role may not make all of its changes on the live site").wait_for()
    assert "by night" not in live(site)


@pytest.mark.parametrize("arrives", [True, False], ids=["arrives", "does not arrive"])
def test_an_outage_during_a_merge(arrives: bool, site: Studio, enter: Callable[..., Page]) -> None:
    page = enter("merger", "site/-/branches/next")
    page.get_by_role("heading", name="The harbour by night").wait_for()

    def lose(route: Any) -> None:
        if arrives and route.request.method == "POST":
            route.fetch()
        route.abort()

    page.route(re.compile("/(branches|_health|api|overview)"), lose)
    merge(page)
    page.get_by_text("this page checks whether it succeeded").wait_for()
    assert ("by night" in live(site)) == arrives
    page.unroute_all()
    if arrives:
        page.get_by_text("next was merged into the live site.").wait_for()
        page.get_by_text("Nothing to merge").wait_for()
    else:
        page.get_by_text("the branch was not merged. Merge it again.").wait_for()
        merge(page)
        page.get_by_text("next was merged into the live site. 3 documents changed.").wait_for()
        assert "by night" in live(site)


def test_what_needs_the_live_site_is_disabled_with_the_reason(enter: Callable[..., Page]) -> None:
    page = enter("merger", "paper/harbour?branch=next")
    navigation = page.get_by_role("navigation", name="Content")
    expect(navigation.get_by_text("Live site only")).to_have_count(2)
    expect(navigation.get_by_role("link", name="Events")).to_have_count(0)
    expect(navigation.get_by_role("link", name="Changes")).to_have_count(0)
    history = page.get_by_role("button", name="History", exact=True)
    expect(history).to_be_disabled()
    expect(history).to_have_accessible_description("only on the live site")


def test_a_preview_shows_the_branch(enter: Callable[..., Page]) -> None:
    page = enter("merger", "paper/harbour?branch=next&panel=preview")
    frame = page.locator(".preview-frame")
    expect(frame).to_have_attribute("src", re.compile(r"/page\?id=harbour&branch=next"))
    page.get_by_role("region", name="Branch", exact=True).get_by_role(
        "link", name="Go to the live site"
    ).click()
    expect(frame).to_have_attribute("src", re.compile(r"/page\?id=harbour&branch=(&|$)"))


def test_no_preview_is_taken_for_that_of_a_branch(site: Studio, enter: Callable[..., Page]) -> None:
    page = enter("merger", "tag/fog?branch=next&panel=preview")
    page.get_by_text("The preview shows only the live site").wait_for()
    page.goto(f"{site.url}/tag/fog?panel=preview")
    page.locator(".preview-frame").wait_for()


@pytest.mark.parametrize("size", SIZES)
def test_nothing_moves_while_a_page_of_a_branch_loads(
    size: str, site: Studio, enter: Callable[..., Page]
) -> None:
    width, height = SIZES[size]
    page = enter("merger", "", viewport={"width": width, "height": height})
    page.add_init_script(WATCH)
    pages = {
        "site/-/branches": ".branch-row",
        "site/-/branches/next": ".branch-change",
        "paper?branch=next": "tr",
    }
    for path, shown in pages.items():
        page.goto(f"{site.url}/{path}")
        page.locator(shown).first.wait_for()
        page.wait_for_load_state("networkidle")
        moved = page.evaluate("moved")
        assert sum(one[0] for one in moved) < MOST_MOVED, (path, moved)


def test_unsaved_work_is_not_lost_by_switching(site: Studio, enter: Callable[..., Page]) -> None:
    page = enter("writer", "paper/tides")
    page.get_by_label("Title").fill("Typed")
    page.get_by_role("button", name="Switch branch").click()
    page.get_by_role("dialog").get_by_role("link", name=re.compile("^next")).click()
    question = page.get_by_role("dialog", name="Leave the page?")
    question.get_by_role("button", name="Cancel").click()
    expect(page.get_by_label("Title")).to_have_value("Typed")
    page.get_by_role("button", name="Switch branch").click()
    page.get_by_role("dialog").get_by_role("link", name=re.compile("^next")).click()
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    question.get_by_role("button", name="Leave").click()
    page.get_by_role("region", name="Branch", exact=True).wait_for()
    expect(page.get_by_label("Title")).to_have_value("Tides")
    assert asked == []  # The browser does not ask again.


def test_the_served_branch_is_the_live_site(site: Studio, enter: Callable[..., Page]) -> None:
    page = enter("writer", "paper/tides?branch=main")
    page.wait_for_url("**/paper/tides")
    expect(page.get_by_label("Title")).to_have_value("Tides")
    page.goto(f"{site.url}/site/-/branches/main")
    page.get_by_text("This is the live site").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_in_each_size(
    scheme: str, site: Studio, enter: Callable[..., Page], check_access: Callable[[Page], None]
) -> None:
    in_conflict(site)
    page = enter("merger", "site/-/branches", color_scheme=scheme)
    states = {
        "branches": lambda: page.locator(".branch-row").first.wait_for(),
        "branch": lambda: page.goto(f"{site.url}/site/-/branches/next"),
        "conflicts": lambda: merge(page),
        "on-branch": lambda: page.goto(f"{site.url}/paper?branch=next"),
    }
    shown = {
        "branches": ".branch-row",
        "branch": ".branch-change",
        "conflicts": ".conflict",
        "on-branch": "tbody tr",
    }
    for name, go in states.items():
        page.set_viewport_size({"width": 1280, "height": 800})
        go()
        page.locator(shown[name]).first.wait_for()
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            check_access(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            picture(page, f"{name}-{scheme}{SHOWN[size]}")


def test_forced_colours_show_the_branch_and_the_choice(site: Studio, enter: Callable[..., Page]) -> None:
    in_conflict(site)
    page = enter("merger", "site/-/branches/next?branch=next", forced_colors="active")
    merge(page)
    page.get_by_role("group", name="Title").get_by_label("Live site").check()
    chosen = "e => getComputedStyle(e).borderTopColor"
    sides = page.get_by_role("group", name="Title").locator(".conflict-side")
    assert sides.nth(0).evaluate(chosen) != sides.nth(1).evaluate(chosen)
    notice = page.get_by_role("region", name="Branch", exact=True)
    assert notice.evaluate("e => getComputedStyle(e).borderTopWidth") == "2px"
