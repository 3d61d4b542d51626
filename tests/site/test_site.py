"""Rescans of a site: `refresh` finds all changed files and publishes them as one new state."""

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from server.errors import BusyError
from server.index.snapshot import build
from server.site.site import Site
from server.storage.git.command import git
from server.storage.journal import Journal
from server.write.context import Context
from tests.conftest import MakeSite
from tests.git_programs import fake_git
from tests.sites import INTEGER, STRING, collection, documents, write_to

RICH = {"type": "richtext"}
POST = collection("post", {"title": STRING, "count": INTEGER, "body": RICH}, drafts=True)
POSTS = {
    **POST,
    "content/posts/one.md": "---\ntitle: One\n---\n",
    "content/posts/two.md": "---\ntitle: Two\n---\n",
}


def titles(
    site: Site, locale: str = "en", status: str = "published", name: str = "post"
) -> dict[str, object]:
    """Return the title of every document of a content type, by document id."""
    type_ = site.state.schema.subjects[name]
    return {d.document_id: d.get("title") for d in site.state.snapshot.list(type_, locale, status)}


def problems(site: Site) -> list[str]:
    return [str(problem) for problem in site.problems]


OUTSIDE = {"secret.md": "---\ntitle: Secret\n---\n", "secret.txt": "Secret"}


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the site."""
    folder = tmp_path_factory.mktemp("outside")
    for name, text in OUTSIDE.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("hinted", [True, False])
def test_a_link_out_of_the_site_is_not_followed_when_it_appears(
    make_site: MakeSite, outside: Path, hinted: bool
) -> None:
    site = make_site({**POSTS, "content/uploads/a.txt": "A"})
    made = {
        "content/posts/out.md": outside / "secret.md",
        "content/posts/folder": outside,
        "content/uploads/out.txt": outside / "secret.txt",
        "content/uploads/a.txt.yaml": outside / "secret.txt",
    }
    for path, target in made.items():
        (site.root / path).symlink_to(target)
    site.refresh([*made, "content/posts/folder/secret.md"] if hinted else None)
    assert titles(site) == {"one": "One", "two": "Two"}
    assert set(site.state.snapshot.media) == {"a.txt"}
    assert problems(site) == [
        f"{path}: is a symbolic link that points outside the site's folder. Copy the file into the site."
        for path in sorted(made)
    ]


@pytest.mark.parametrize("hinted", [True, False])
def test_a_file_that_becomes_a_link_out_of_the_site_keeps_its_last_good_version(
    make_site: MakeSite, outside: Path, hinted: bool
) -> None:
    site = make_site(POSTS)
    path = site.root / "content/posts/one.md"
    path.unlink()
    path.symlink_to(outside / "secret.md")
    site.refresh(["content/posts/one.md"] if hinted else None)
    assert titles(site) == {"one": "One", "two": "Two"}
    assert problems(site) == [
        "content/posts/one.md: is a symbolic link that points outside the site's folder. Copy the file "
        "into the site."
    ]
    path.unlink()
    path.write_text("---\ntitle: Mended\n---\n")
    site.refresh(["content/posts/one.md"] if hinted else None)
    assert titles(site) == {"one": "Mended", "two": "Two"}
    assert problems(site) == []


def test_a_content_folder_that_is_a_link_out_of_the_site_is_not_followed(
    make_site: MakeSite, tmp_path: Path, outside: Path
) -> None:
    (outside / "posts").mkdir()
    (outside / "posts" / "a.md").write_text("---\ntitle: A\n---\n")
    (tmp_path / "content").symlink_to(outside)
    site = make_site(POST)
    assert titles(site) == {}
    assert problems(site) == [
        "content: is a symbolic link that points outside the site's folder. Copy the file into the site."
    ]


@pytest.mark.parametrize(("old", "new"), [("0", "false"), ("true", "1"), ("1", "1.0")])
def test_a_json_value_that_becomes_one_of_another_type_is_served(
    make_site: MakeSite, old: str, new: str
) -> None:
    files = collection("note", {"data": {"type": "json"}})
    times = '"createdAt": "2024-01-01", "updatedAt": "2024-01-01"'
    site = make_site({**files, "content/notes/a.json": f'{{{times}, "data": {old}}}'})
    (site.root / "content/notes/a.json").write_text(f'{{{times}, "data": {new}}}')
    site.refresh()
    (note,) = site.state.snapshot.list(site.state.schema.subjects["note"], "en", "published")
    assert json.dumps(note.get("data")) == new


def test_of_two_files_that_claim_a_document_the_first_by_path_counts(make_site: MakeSite) -> None:
    claim = "---\ndocumentId: one\ntitle: {}\n---\n"
    files = {"content/posts/one.md": claim.format("Second"), "content/posts/last.md": claim.format("First")}
    site = make_site({**POST, **files})
    assert titles(site) == {"one": "First"}  # the file was read when the site was loaded
    first = site.root / "content/posts/a/first.md"
    first.parent.mkdir()
    first.write_text(claim.format("New"))
    site.refresh()
    assert titles(site) == {"one": "New"}  # the change was found by a later rescan
    (site.root / "content/posts/z.md").write_text(claim.format("Last of all"))
    site.refresh()
    assert titles(site) == {"one": "New"}
    assert [problem.partition(":")[0] for problem in problems(site)] == [
        "content/posts/last.md",
        "content/posts/one.md",
        "content/posts/z.md",
    ]
    first.unlink()
    site.refresh()
    assert titles(site) == {"one": "First"}


def test_the_first_claimant_counts_in_whatever_order_files_are_read(make_site: MakeSite) -> None:
    claim = '{{"documentId": "one", "title": "{}"}}'
    site = make_site({**POST, **{f"content/posts/{name}.json": claim.format(name) for name in "cab"}})
    schema, claims = site.state.schema, site.state.snapshot.claims
    documents = [document for claiming in claims.values() for document in claiming]
    for order in permutations(documents):
        found = build(schema, order).list(schema.subjects["post"], "en", "published")
        assert [document.get("title") for document in found] == ["a"]


def test_a_file_that_is_put_back_under_its_old_signature_is_noticed(make_site: MakeSite) -> None:
    """A full rescan finds the same signatures that the file had before it was changed."""
    site = make_site({**collection("note", {"title": STRING}), **documents("notes", a={"title": "old"})})
    path = site.root / "content/notes/a.json"
    text, before = path.read_text(), path.stat()

    def title() -> object:
        type_ = site.state.schema.subjects["note"]
        document = site.state.snapshot.get(type_, "a", "en", "published")
        return document and document.get("title")

    site.refresh()
    for written, shown in ((text.replace("old", "new"), "new"), (text, "old")) * 2:
        path.write_text(written)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9 * (shown == "new")))
        site.refresh()
        assert title() == shown
        site.refresh()
        assert title() == shown


def put_after(site: Site, path: str, between: Callable[[], None]) -> list[str]:
    """Write a file with the title of document `one`, and call `between` once while the write is being
    prepared.

    Return the title of `one` at each preparation, because the write may be prepared again.
    """
    seen: list[str] = []

    def prepare(_: None, context: Context) -> None:
        type_ = context.snapshot.schema.subjects["post"]
        document = context.snapshot.get(type_, "one", "en", "published")
        seen.append(str(document and document.get("title")))
        if len(seen) == 1:
            between()
        context.changeset.put(path, f"---\ntitle: After {seen[-1]}\n---\n")

    write_to(site, prepare, None)
    return seen


def test_a_write_is_prepared_while_others_write(make_site: MakeSite) -> None:
    site = make_site(POSTS)

    def other() -> None:
        write_to(
            site,
            lambda _, context: context.changeset.put("content/posts/one.md", "---\ntitle: New\n---\n"),
            None,
        )

    assert put_after(site, "content/posts/three.md", other) == ["One", "New"]
    assert titles(site) == {"one": "New", "two": "Two", "three": "After New"}


def test_a_write_that_nobody_disturbs_is_prepared_once(make_site: MakeSite) -> None:
    site = make_site(POSTS)
    assert put_after(site, "content/posts/three.md", lambda: None) == ["One"]
    assert titles(site)["three"] == "After One"


def is_locked(site: Site) -> bool:
    """Return whether the site's write lock is held."""
    descriptor = os.open(site.root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@pytest.mark.parametrize(
    ("disturbed", "limit_s", "held"),
    [(2, 0, [False] * 3), (9, 0, [False] * 4), (9, 9, [False] * 4 + [True])],
    ids=["overtaken twice", "refused", "finished under the lock"],
)
def test_a_write_that_takes_long_is_prepared_under_the_lock_only_at_last(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch, disturbed: int, limit_s: float, held: list[bool]
) -> None:
    monkeypatch.setattr("server.site.writing.preparing.MAX_LOCKED_CPU_S", 0)
    monkeypatch.setattr("server.site.writing.preparing.MAX_LOCKED_CPU_AT_LAST_S", limit_s)
    site, locked = make_site(POSTS), []

    def prepare(_: None, context: Context) -> None:
        locked.append(is_locked(site))
        if len(locked) <= disturbed and not locked[-1]:  # Another write changes the site.
            write = f"---\ntitle: {len(locked)}\n---\n"
            write_to(site, lambda _, other: other.changeset.put("content/posts/two.md", write), None)
        context.changeset.put("content/posts/three.md", "---\ntitle: Three\n---\n")

    if disturbed == 2 or limit_s:
        write_to(site, prepare, None)
        assert locked == held
        assert titles(site) == {"one": "One", "two": str(min(disturbed, 4)), "three": "Three"}
        return
    with pytest.raises(BusyError, match="while this write was being prepared; try again") as refused:
        write_to(site, prepare, None)
    assert locked == held
    assert refused.value.retry_s
    assert titles(site) == {"one": "One", "two": "4"}


def test_a_write_that_waits_for_git_takes_long(make_site: MakeSite, tmp_path: Path) -> None:
    """Waiting for git takes long, but hardly any processor time."""
    site, locked = make_site(POSTS), []

    def prepare(_: None, context: Context) -> None:
        locked.append(is_locked(site))
        with pytest.MonkeyPatch.context() as patch:
            fake_git(patch, tmp_path / "bin", version="sleep 0.1")
            git(site.root, "version")
        if len(locked) == 1:  # Another write changes the site.
            write = "---\ntitle: Other\n---\n"
            write_to(site, lambda _, other: other.changeset.put("content/posts/two.md", write), None)
        context.changeset.put("content/posts/three.md", "---\ntitle: Three\n---\n")

    write_to(site, prepare, None)
    assert locked == [False, False]


def test_a_write_is_prepared_without_the_lock_while_another_server_writes(make_site: MakeSite) -> None:
    site, prepared, holding, done = make_site(POSTS), [], threading.Event(), threading.Event()
    journal = Journal(site.root, site.root / ".bifolio")

    def other() -> None:
        with journal.writing():
            journal.lock.set_counter(
                journal.lock.counter + 1
            )  # as every write does before it replaces a file
            holding.set()
            done.wait(10)

    def prepare(_: None, context: Context) -> None:
        prepared.append(done.is_set())
        done.set()
        context.changeset.put("content/posts/three.md", "---\ntitle: Three\n---\n")

    thread = threading.Thread(target=other)
    thread.start()
    holding.wait()
    write_to(site, prepare, None)
    thread.join()
    assert prepared == [False]
    assert titles(site)["three"] == "Three"


@pytest.mark.parametrize("path", ["content/posts/one.md", "content/posts/link.md"])
@pytest.mark.parametrize("how", ["edited", "replaced", "written", "removed"])
def test_a_link_shows_what_it_leads_to_at_once(make_site: MakeSite, path: str, how: str) -> None:
    site = make_site(POSTS)
    (site.root / "content/posts/link.md").symlink_to("one.md")
    site.refresh({"content/posts/link.md"})
    assert titles(site) == {"one": "One", "two": "Two", "link": "One"}
    text, real = "---\ntitle: New\n---\n", site.root / "content/posts/one.md"
    if how == "written":
        write_to(site, lambda _, context: context.changeset.put(path, text), None)
    elif how == "removed":
        real.unlink()
        site.refresh({"content/posts/one.md"})
        assert titles(site).keys() == {"two", "link"}  # the last valid version is served
        assert [problem.message for problem in site.problems] == ["is a symbolic link to a missing file"]
        return
    else:
        temporary = real.with_name(".one") if how == "replaced" else real
        temporary.write_text(text)
        temporary.replace(real)
        site.refresh({"content/posts/one.md"})
    assert titles(site) == {"one": "New", "two": "Two", "link": "New"}
    assert not site.seems_changed()


def test_a_linked_folder_shows_what_it_leads_to_at_once(make_site: MakeSite) -> None:
    site = make_site({**POSTS, "content/posts/more/three.md": "---\ntitle: Three\n---\n"})
    (site.root / "content/posts/again").symlink_to("more")
    site.refresh({"content/posts/again"})
    before = {name for name, title in titles(site).items() if title == "Three"}
    (site.root / "content/posts/more/three.md").write_text("---\ntitle: New\n---\n")
    site.refresh({"content/posts/more/three.md"})
    assert len(before) == 2
    assert {name for name, title in titles(site).items() if title == "New"} == before


@pytest.mark.parametrize("hints", [None, ["content/posts"], ["content/posts", "content/posts/one.md"]])
def test_documents_are_gone_whose_folder_has_become_a_file(
    make_site: MakeSite, hints: list[str] | None
) -> None:
    site = make_site(POSTS)
    folder = site.root / "content/posts"
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    shutil.rmtree(folder)
    folder.write_text("A file\n")
    site.refresh(hints)
    assert titles(site) == {}
    folder.unlink()
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    site.refresh(hints)
    assert titles(site) == {"one": "One", "two": "Two"}


@pytest.mark.parametrize("hinted", [True, False])
@pytest.mark.parametrize("path", ["content/posts/one.md", "content/uploads/a.txt"])
def test_what_has_become_a_folder_is_gone(make_site: MakeSite, path: str, hinted: bool) -> None:
    site = make_site({**POSTS, "content/uploads/a.txt": "A"})
    file = site.root / path
    file.unlink()
    file.mkdir()
    (file / ".gitkeep").touch()
    site.refresh({path} if hinted else None)
    left = {*titles(site), *site.state.snapshot.media}
    assert left == ({"two", "a.txt"} if path.endswith(".md") else {"one", "two"})
    assert problems(site) == []


def test_writes_of_a_server_that_is_replaced_are_visible_at_once(make_site: MakeSite) -> None:
    def save(title: str, context: Context) -> None:
        context.changeset.put("content/posts/one.md", f"---\ntitle: {title}\n---\n")

    old = make_site(POSTS)
    new = Site(old.root)
    new.load()
    is_running = True
    new.follow_predecessor(lambda: is_running)
    for title in ("Three", "Four"):
        write_to(old, save, title)
        assert new.has_unread_writes
        new.refresh(())
        assert titles(new)["one"] == title
        is_running = False  # The last writes are read after it has ended.
    assert not new.has_unread_writes
    write_to(old, save, "Five")
    assert not new.has_unread_writes
