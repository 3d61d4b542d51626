"""The media library of the studio: each task, as each of four roles, and uploads during an outage."""

import io
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from tests.git import commit_all, git
from tests.servers import start, stop, wait
from tests.sites import Files, collection, documents, write
from tests.studio.browser_pages import SHOWN, SIZES, is_shown, picture
from tests.studio.browser_sign_in import serving_users
from tests.studio.conftest import Page, Studio, expect, signed_in_at, signed_in_users
from tests.waiting import until

NAMES = (
    "Ferry at dusk",
    "Knots",
    "Lighthouse",
    "Old quay",
    "Tide curve",
    "Low tide",
    "Causeway",
    "Fog signal",
)
COUNT = 16


def drawing(number: int, side: int = 200) -> bytes:
    colors = [(number * step) % 200 + 30 for step in (53, 97, 31)]
    image = Image.new("RGB", (side * 3 // 2, side), tuple(colors))
    ImageDraw.Draw(image).ellipse((side // 2, side // 8, side, side // 2), fill=(colors[1], colors[2], 120))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def library() -> dict[str, str | bytes]:
    """Return the files of the library: every fourth picture is in a folder, every third has no text."""
    files: dict[str, str | bytes] = {
        "content/uploads/tides.pdf": b"%PDF-1.4",
        "content/uploads/tides.pdf.yaml": "createdAt: 2026-11-20T10:00:00.000Z\n",
    }
    for i in range(COUNT):
        path = f"content/uploads/{'ships/2024/' if i % 4 == 3 else ''}photo-{i}.png"
        text = f"alternativeText: {NAMES[i % 8]}\n" if i % 3 else ""
        stamps = "".join(f"{name}: 2026-11-{i + 1:02}T10:00:00.000Z\n" for name in ("createdAt", "updatedAt"))
        files |= {path: drawing(i), f"{path}.yaml": f"name: {NAMES[i % 8]} {i}.png\n{text}{stamps}"}
    return files


CONTENT: Files = {
    **documents("posts", one={"title": "The night ferry", "cover": "photo-1.png"}, two={"title": "Birds"}),
    **documents("vaults", v={"title": "Secret", "cover": "photo-2.png"}),
    **library(),
}
FILES: Files = {
    **collection("post", {"title": {"type": "string"}, "cover": {"type": "media"}}),
    **collection("vault", {"title": {"type": "string"}, "cover": {"type": "media"}}),
    **CONTENT,
    "site.yaml": """
name: Slack Water
roles:
  public: {auth: [callback]}
  editor: {post: [find, findOne, update], upload: [find, findOne, upload, destroy]}
  uploader: {post: [find], upload: [upload]}
  reader: {post: [find]}
""",
}
ROLES = ("editor", "uploader", "reader")
PAGE = "site/-/media"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    studio = Studio(tmp_path_factory.mktemp("media"), files=FILES)
    with serving_users(studio, {role: role for role in ROLES}):
        yield studio


@pytest.fixture(scope="module")
def sessions(site: Studio, browser: Any) -> dict[str, Any]:
    """The browser state in which the role's user is signed in, by role."""
    return {"owner": signed_in_at(site, browser), **signed_in_users(site, browser, ROLES)}


@pytest.fixture
def enter(site: Studio, sessions: dict[str, Any], new_page: Callable[..., Page]) -> Callable[..., Page]:
    """A function that opens the library as the user of a role, after all files were restored."""
    shutil.rmtree(site.root / "content/uploads")
    write(site.root, CONTENT)

    def enter(role: str = "owner", query: str = "", **options: Any) -> Page:
        page = new_page(storage_state=sessions[role], **options)
        open_library(page, site, query)
        return page

    return enter


def open_library(page: Page, site: Studio, query: str = "") -> None:
    page.goto(f"{site.url}/{PAGE}{query}")
    is_shown(page)


def total(page: Page, text: str) -> None:
    """Wait until the list has this number of files."""
    expect(page.get_by_role("navigation", name="Pages").get_by_role("status")).to_have_text(text)


def names(page: Page) -> list[str]:
    page.locator("[aria-busy=true]").wait_for(state="detached")
    return [str(name) for name in page.locator(".media-tile .media-name").all_inner_texts()]


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label, exact=True).select_option(label=option)


def test_files_are_found_by_folder_name_text_type_size_and_use(enter: Callable[..., Page]) -> None:
    page = enter()
    total(page, "17 files")
    assert names(page)[:3] == ["tides.pdf", "Fog signal 15.png", "Causeway 14.png"]
    choose(page, "Folder", "ships/2024 (4)")
    total(page, "4 files")
    choose(page, "Show", "No alternative text")
    total(page, "2 files")
    assert names(page) == ["Fog signal 15.png", "Old quay 3.png"]
    choose(page, "Folder", "All folders")
    total(page, "6 files")
    choose(page, "Show", "Unused")
    total(page, "15 files")
    choose(page, "Type", "PDF")
    total(page, "1 file")
    choose(page, "Type", "All types")
    choose(page, "Show", "All files")
    choose(page, "Size", "Over 0.5 MB")
    page.get_by_role("button", name="Show all").click()
    total(page, "17 files")
    page.get_by_role("searchbox", name="Search Media").fill("lighthouse")
    total(page, "2 files")
    page.get_by_role("searchbox", name="Search Media").fill("")
    total(page, "17 files")
    choose(page, "Sort by", "Name")
    expect(page.locator(".media-tile .media-name").first).to_have_text("Causeway 14.png")
    page.go_back()
    expect(page.locator(".media-tile .media-name").first).to_have_text("tides.pdf")


def test_details_show_where_a_file_is_used(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("editor", "?file=photo-1.png")
    details = page.get_by_role("dialog", name="Details of Knots 1.png")
    details.get_by_role("heading", name="Used in 1 place").wait_for()
    expect(details.get_by_role("group", name="Crops around the focal point")).to_be_visible()
    details.get_by_label("Caption").fill("A large flock")
    details.get_by_role("button", name="Save").click()
    details.wait_for(state="detached")
    assert "caption: A large flock" in (site.root / "content/uploads/photo-1.png.yaml").read_text()
    page.go_back()
    page.get_by_role("link", name="The night ferry").click()
    page.get_by_role("heading", level=1, name="The night ferry").wait_for()
    open_library(page, site, "?file=photo-2.png")  # of a document that the editor can't see
    page.get_by_text("Only documents that your role can't see use this file.").wait_for()
    assert "Secret" not in page.content()


def test_alternative_texts_are_written_down_the_list_with_the_keyboard(
    enter: Callable[..., Page], site: Studio
) -> None:
    page = enter("editor", "?view=list&show=no-text&sort=name%3Aasc")
    inputs = page.locator(".media-text input")
    expect(inputs).to_have_count(6)
    inputs.first.focus()
    for text in ("A fog horn", "Low water"):
        page.keyboard.type(text)
        page.keyboard.press("Enter")
    expect(inputs.nth(2)).to_be_focused()
    page.keyboard.type("not kept")
    page.keyboard.press("Escape")
    expect(page.locator(".media-text [role=status]", has_text="Saved")).to_have_count(2)
    expect(inputs.nth(2)).to_have_value("")
    saved = [path.read_text() for path in sorted((site.root / "content/uploads").rglob("*.yaml"))]
    assert sum("alternativeText: A fog horn" in text for text in saved) == 1
    assert sum("alternativeText: Low water" in text for text in saved) == 1


def test_a_file_is_replaced_moved_and_deleted_with_undo(
    enter: Callable[..., Page], site: Studio, tmp_path: Path
) -> None:
    page, uploads = enter("editor", "?file=photo-1.png"), site.root / "content/uploads"
    new = tmp_path / "new.png"
    new.write_bytes(drawing(77))
    bar = page.get_by_role("region", name="Undo")
    page.get_by_label("Replace").set_input_files(new)
    expect(bar.get_by_role("status")).to_have_text("The content of Knots 1.png was replaced")
    assert (uploads / "photo-1.png").read_bytes() == new.read_bytes()
    bar.get_by_role("button", name="Undo").click()
    expect(bar.get_by_role("status")).to_have_text("Undone")
    assert (uploads / "photo-1.png").read_bytes() == drawing(1)

    page.get_by_role("link", name="Knots 1.png").click()
    page.get_by_role("button", name="Move or rename").click()
    dialog = page.get_by_role("dialog", name="Move or rename")
    dialog.get_by_label("Folder").fill("birds")
    dialog.get_by_label("File name").fill("knots.png")
    dialog.get_by_role("button", name="Move").click()
    expect(bar.get_by_role("status")).to_have_text("1 file moved")
    assert "birds/knots.png" in (site.root / "content/posts/one.json").read_text()
    bar.get_by_role("button", name="Undo").click()
    expect(bar.get_by_role("status")).to_have_text("Undone")
    assert "photo-1.png" in (site.root / "content/posts/one.json").read_text()

    for name in ("Select Knots 1.png", "Select Lighthouse 2.png"):
        page.get_by_role("checkbox", name=name).check()
    page.get_by_role("button", name="Delete 2").click()
    page.get_by_role("dialog", name="Delete 2 files?").get_by_role("button", name="Delete").click()
    expect(bar.get_by_role("status")).to_have_text("2 files deleted")
    total(page, "15 files")
    bar.get_by_role("button", name="Undo").click()
    total(page, "17 files")
    assert (uploads / "photo-2.png").read_bytes() == drawing(2)


def test_a_file_that_is_used_is_deleted_after_a_question(enter: Callable[..., Page], site: Studio) -> None:
    page, uploads = enter("owner", "?file=photo-1.png"), site.root / "content/uploads"
    bar = page.get_by_role("region", name="Undo").get_by_role("status")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete Knots 1.png?")
    question.get_by_text("Used in 1 place: The night ferry.").wait_for()
    question.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    for name in ("Select Knots 1.png", "Select Lighthouse 2.png", "Select Old quay 3.png"):
        page.get_by_role("checkbox", name=name).check()
    page.get_by_role("button", name="Delete 3").click()
    question = page.get_by_role("dialog", name="Delete 3 files?")
    question.get_by_text("Used in 2 places: Secret, The night ferry.").wait_for()
    question.get_by_role("button", name="Cancel").click()
    assert all((uploads / name).is_file() for name in ("photo-1.png", "photo-2.png"))
    for name in ("Select Knots 1.png", "Select Lighthouse 2.png"):
        page.get_by_role("checkbox", name=name).uncheck()
    page.get_by_role("button", name="Delete 1").click()  # not used
    expect(bar).to_have_text("1 file deleted")
    page = enter("editor", "?file=photo-2.png")  # of a document that the editor can't see
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    question = page.get_by_role("dialog", name="Delete Lighthouse 2.png?")
    question.get_by_text("Documents that your role can't see may use this.").wait_for()
    question.get_by_role("button", name="Delete").click()
    page.get_by_text("Lighthouse 2.png deleted").wait_for()


def test_typed_texts_are_saved_before_a_file_is_replaced_or_moved(
    enter: Callable[..., Page], site: Studio, tmp_path: Path
) -> None:
    page, uploads = enter("editor", "?file=photo-1.png"), site.root / "content/uploads"
    details = page.get_by_role("dialog", name="Details of Knots 1.png")
    details.get_by_label("Name").fill("Birds.png")
    details.get_by_label("Alternative text").fill("A flock")
    new = tmp_path / "new.png"
    new.write_bytes(drawing(77))
    page.get_by_label("Replace").set_input_files(new)
    page.get_by_text("The content of Birds.png was replaced").wait_for()
    sidecar = (uploads / "photo-1.png.yaml").read_text()
    assert "name: Birds.png" in sidecar
    assert "alternativeText: A flock" in sidecar

    page.get_by_role("link", name="Birds.png").click()
    details = page.get_by_role("dialog", name="Details of Birds.png")
    details.get_by_label("Caption").fill("Above the quay")
    page.get_by_role("button", name="Move or rename").click()
    page.get_by_label("File name").fill("birds.png")
    page.get_by_role("dialog", name="Move or rename").get_by_role("button", name="Move").click()
    page.get_by_text("1 file moved").wait_for()
    assert "caption: Above the quay" in (uploads / "birds.png.yaml").read_text()


def test_texts_that_are_not_saved_are_discarded_after_a_question(
    enter: Callable[..., Page], site: Studio
) -> None:
    page = enter("editor", "?file=photo-1.png")
    details = page.get_by_role("dialog", name="Details of Knots 1.png")
    question = page.get_by_role("dialog", name="Discard 1 unsaved change?")
    caption = details.get_by_label("Caption")
    caption.fill("A large flock")
    for _ in range(2):  # Otherwise, Chromium would close both dialogs.
        page.keyboard.press("Escape")
        question.get_by_text("Caption").wait_for()
        page.keyboard.press("Escape")
        question.wait_for(state="detached")
    expect(caption).to_have_value("A large flock")
    details.get_by_role("link", name="The night ferry").click()
    question.get_by_role("button", name="Cancel").click()
    expect(caption).to_have_value("A large flock")
    details.get_by_role("button", name="Cancel").click()
    question.get_by_role("button", name="Discard").click()
    details.wait_for(state="detached")
    assert page.url.endswith(PAGE)
    assert "caption" not in (site.root / "content/uploads/photo-1.png.yaml").read_text()


IS_COLORED = """(image, color) => {  // in the corner; a compressed picture is not exact
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const seen = context.getImageData(0, 0, 1, 1).data;
  return image.complete && color.every((value, i) => Math.abs(value - seen[i]) < 12);
}"""


def test_a_replaced_picture_is_shown_at_once(enter: Callable[..., Page], tmp_path: Path) -> None:
    page = enter("editor")
    page.get_by_role("link", name="Causeway 14.png").click()
    shown = page.locator(".focal img")
    old, new_color = ([(number * step) % 200 + 30 for step in (53, 97, 31)] for number in (14, 77))
    until(lambda: shown.evaluate(IS_COLORED, old))
    new = tmp_path / "new.png"
    new.write_bytes(drawing(77))
    page.get_by_label("Replace").set_input_files(new)
    page.get_by_text("The content of Causeway 14.png was replaced").wait_for()
    tile = page.get_by_role("link", name="Causeway 14.png").locator("img")
    until(lambda: tile.evaluate(IS_COLORED, new_color))
    page.reload()
    until(lambda: tile.evaluate(IS_COLORED, new_color))
    tile.click()
    until(lambda: shown.evaluate(IS_COLORED, new_color))


def test_a_keyboard_is_enough(enter: Callable[..., Page]) -> None:
    page = enter("editor")
    tiles = page.locator(".media-open")
    tiles.first.focus()
    page.keyboard.press("ArrowRight")
    expect(tiles.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(tiles.nth(16)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    expect(tiles.nth(16)).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.get_by_role("region", name="Selected files").get_by_role("status")).to_have_text("1 selected")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Details of Ferry at dusk 0.png").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert page.url.endswith(PAGE)


def test_each_role_sees_what_it_may_use(enter: Callable[..., Page], site: Studio) -> None:
    page = enter("uploader")
    page.get_by_text("You can upload files, but not see which files there are.").wait_for()
    page.locator("input[type=file]").set_input_files(
        {"name": "n.txt", "mimeType": "text/plain", "buffer": b"x"}
    )
    page.get_by_text("1 file uploaded.").wait_for()
    assert list((site.root / "content/uploads").glob("n_*.txt"))
    page = enter("reader")
    page.get_by_text("An administrator can grant it with upload: [find]").wait_for()
    expect(page.get_by_role("link", name="Media")).to_have_count(0)
    assert page.locator("input[type=file]").count() == 0


FILES_TO_UPLOAD = 200


def test_an_outage_during_the_upload_of_200_files_loses_and_doubles_none(
    enter: Callable[..., Page], site: Studio
) -> None:
    page = enter("owner", "?folder=ships%2F2024")
    sent = [
        {"name": f"n{i}.txt", "mimeType": "text/plain", "buffer": b"%d" % i} for i in range(FILES_TO_UPLOAD)
    ]
    folder = site.root / "content/uploads/ships/2024"
    page.locator("input[type=file]").set_input_files(sent)
    until(lambda: len(list(folder.glob("n*.txt"))) >= 40)
    site.process.kill()
    site.process.wait()
    page.get_by_text("The upload continues when the server is back.").wait_for()
    assert len(list(folder.glob("n*.txt"))) < FILES_TO_UPLOAD
    with site.log.open("ab") as out:
        site.process = start(site.root, site.port, "--workers=1", output=out)
    wait(site.process, site.port)
    page.get_by_text(f"{FILES_TO_UPLOAD} files uploaded.").wait_for()
    numbers = sorted(int(path.read_text()) for path in folder.glob("n*.txt"))
    assert numbers == list(range(FILES_TO_UPLOAD))
    total(page, f"{FILES_TO_UPLOAD + 4} files")


def test_files_that_are_not_accepted_are_named_and_can_be_tried_again(
    enter: Callable[..., Page], tmp_path: Path
) -> None:
    page = enter("editor")
    held: list[Any] = []
    phase = ["hold"]

    def answer(route: Any) -> None:
        content = route.request.post_data_buffer or b""
        if phase[0] == "hold":
            held.append(route)
        elif phase[0] == "refuse" and b"bad.txt" in content:
            body = '{"data": null, "error": {"status": 413, "message": "The upload is too large"}}'
            route.fulfill(status=413, content_type="application/json", body=body)
        elif phase[0] == "refuse" and b"cut.txt" in content:
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route(re.compile("/api/upload$"), answer)
    choice = page.locator("input[type=file]")
    names = ("a.txt", "bad.txt", "cut.txt")
    choice.set_input_files([{"name": name, "mimeType": "text/plain", "buffer": b"x"} for name in names])
    gone = tmp_path / "gone.txt"
    gone.write_text("deleted before it is sent")
    choice.set_input_files(gone)
    gone.unlink()
    page.get_by_text("0 of 4 files uploaded").wait_for()
    phase[0] = "refuse"
    for route in held:
        answer(route)
    page.get_by_text("1 file uploaded, 3 files not uploaded:").wait_for()
    failed = page.get_by_role("list", name="Files that were not uploaded").get_by_role("listitem")
    assert sorted(failed.all_inner_texts()) == [
        "bad.txt: The upload is too large",
        "cut.txt: The connection was lost several times during this upload",
        "gone.txt: The browser can't read this file. Folders can't be uploaded",
    ]
    phase[0] = ""
    page.get_by_role("button", name="Try these again").click()
    page.get_by_text("3 files uploaded, 1 file not uploaded:").wait_for()
    page.get_by_role("button", name="Dismiss").click()
    expect(failed).to_have_count(0)


VIEWS = {"": "media", "?view=list": "media-list", "?file=photo-1.png": "media-file"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(
    enter: Callable[..., Page], site: Studio, check_access: Callable[[Page], None], scheme: str
) -> None:
    page = enter("owner", color_scheme=scheme)
    for query, name in VIEWS.items():
        open_library(page, site, query)
        if "file" in query:
            page.get_by_role("heading", name="Used in 1 place").wait_for()
        until(lambda: page.evaluate("[...document.images].every((image) => image.complete || image.loading)"))
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            check_access(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            picture(page, f"{name}-{scheme}{SHOWN[size]}")


def test_a_text_of_somebody_else_is_shown_before_it_is_replaced(
    enter: Callable[..., Page], site: Studio
) -> None:
    page, other = enter("editor", "?view=list&q=tide+curve+4"), enter("owner", "?view=list&q=tide+curve+4")
    for editor, text in ((other, "The tide at the quay"), (page, "A curve")):
        editor.locator(".media-text input").fill(text)
        editor.keyboard.press("Enter")
        editor.locator(".media-text [role]").get_by_text(re.compile("Saved|Somebody else")).wait_for()
    page.get_by_text("Somebody else has changed this text to “The tide at the quay”.").wait_for()
    sidecar = site.root / "content/uploads/photo-4.png.yaml"
    assert "The tide at the quay" in sidecar.read_text()
    page.locator(".media-text input").press("Enter")
    page.locator(".media-text").get_by_text("Saved").wait_for()
    assert "alternativeText: A curve" in sidecar.read_text()


def test_on_a_branch_files_are_written_there(
    tmp_path: Path, browser: Any, new_page: Callable[..., Page]
) -> None:
    studio = Studio(tmp_path, files={".gitignore": ".bifolio/\n", **FILES})
    commit_all(studio.root)
    git(studio.root, "branch", "next")
    studio.start()
    try:
        page = new_page(storage_state=signed_in_at(studio, browser))
        open_library(page, studio, "?branch=next&q=lighthouse+2")
        page.locator("input[type=file]").set_input_files(
            {"name": "lighthouse 2 at night.txt", "mimeType": "text/plain", "buffer": b"x"}
        )
        total(page, "2 files")
        page.get_by_role("link", name="Lighthouse 2.png").click()
        page.get_by_text("Files can be moved only on the live site.").wait_for()
        expect(page.get_by_role("button", name="Move or rename")).to_have_count(0)
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        page.get_by_role("dialog", name="Delete Lighthouse 2.png?").get_by_role(
            "button", name="Delete"
        ).click()
        total(page, "1 file")
        expect(page.get_by_role("region", name="Undo").get_by_role("button", name="Undo")).to_have_count(0)
        assert (studio.root / "content/uploads/photo-2.png").is_file()
        files = git(studio.root, "ls-tree", "-r", "--name-only", "next", "content/uploads")
        assert "photo-2.png" not in files
        assert "lighthouse_2_at_night" in files
    finally:
        stop(studio.process)
