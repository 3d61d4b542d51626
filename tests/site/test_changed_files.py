"""Detection of changed files: files are compared one by one only if a walk of the folder finds a
difference.
"""

import os

import pytest

from server.errors import ConflictError
from server.site import loading
from server.site.changed_files import checked_writes, find_changed_files, list_if_needed
from server.site.configure import configure
from server.site.contents import Contents
from server.site.loading import load_contents
from server.site.record import Record
from server.site.rescan import rescan_paths
from server.site.site import Site
from server.storage import entry
from server.storage.changeset import Changeset
from server.storage.files import signature_of, walk
from server.storage.media import SIDECAR_SUFFIX
from server.storage.store import Store
from tests.conftest import MakeSite
from tests.sites import STRING, collection, documents, opened

PATH = "content/notes/a.json"


def loaded(make_site: MakeSite) -> Contents:
    """Return the contents of a site whose two files were last changed some time ago."""
    site = make_site({**collection("note", {"title": STRING}), **documents("notes", a={}, b={})})
    contents = load_contents(site.root, site.image_cache, configure(site.root))
    contents.unsettled.clear()
    return contents


def differing(contents: Contents) -> set[str]:
    return find_changed_files(contents, (), list_if_needed(contents, None))[0]


def test_files_that_a_walk_finds_as_before_are_not_compared(make_site: MakeSite) -> None:
    """Comparing each file would copy the memory pages that contain the entries."""
    contents = loaded(make_site)
    contents.entries[PATH] = contents.entries[PATH]._replace(signature=(1, 2, 3, 4))
    assert differing(contents) == set()


def test_a_start_from_the_cache_compares_each_file_once(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "RACY_WINDOW_NS", -(10**12))  # trust the signatures of files just written
    root = loaded(make_site).root
    site = Site(root)
    with monkeypatch.context() as patch:
        patch.setattr(loading, "find_changed_files", lambda *_: pytest.fail("the files are compared again"))
        contents = load_contents(root, site.image_cache, configure(root))
    assert contents.clean_check == (contents.apply_counter, walk(root, contents.store.layout.roots).digest())
    (root / PATH).write_text('{"title": "changed"}')
    contents = load_contents(root, site.image_cache, configure(root))
    assert contents.clean_check == (contents.apply_counter, walk(root, contents.store.layout.roots).digest())


def test_files_are_compared_after_every_record(make_site: MakeSite) -> None:
    contents = loaded(make_site)
    before = contents.entries[PATH]
    contents.apply(Record({PATH: before._replace(signature=(1, 2, 3, 4))}))
    assert differing(contents) == {PATH}
    contents.apply(Record({PATH: before}))
    assert differing(contents) == set()


def test_a_record_of_what_is_on_disk_does_not_require_another_comparison(make_site: MakeSite) -> None:
    """A comparison of all entries after each edit would copy the memory pages that contain the entries."""
    site = make_site({**collection("note", {"title": STRING}), **documents("notes", a={}, b={}, c={})})
    site.refresh()
    contents, root = site._contents, site.root
    (root / PATH).write_text('{"title": "changed"}')
    (root / "content/notes/b.json").unlink()
    (root / "content/notes/new.json").write_text("{}")
    (root / "content/uploads").mkdir()
    (root / "content/uploads/a.txt").write_text("text")
    (root / f"content/uploads/a.txt{SIDECAR_SUFFIX}").write_text('{"caption": "A text"}')
    site.refresh({PATH, "content/notes/b.json", "content/notes/new.json", "content/uploads/a.txt"})
    listed = list_if_needed(contents, None)
    assert contents.clean_check == (contents.apply_counter, walk(root, contents.store.layout.roots).digest())
    assert listed
    assert listed.is_summary
    assert listed.files == {}
    (root / PATH).write_text('{"title": "changed again"}')
    assert PATH in differing(contents)


def test_files_are_compared_where_one_is_new_changed_or_gone(make_site: MakeSite) -> None:
    contents = loaded(make_site)
    path = contents.root / PATH
    status = path.stat()
    for other in (status.st_mtime_ns + 1, status.st_mtime_ns - 1):
        os.utime(path, ns=(status.st_atime_ns, other))
        assert differing(contents) == {PATH}
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert differing(contents) == {PATH}  # The file's ctime differs.
    path.rename(path.with_name("c.json"))
    assert differing(contents) == {PATH, "content/notes/c.json"}


def test_a_file_that_may_change_unnoticed_is_looked_at_though_a_walk_finds_it_as_before(
    make_site: MakeSite,
) -> None:
    contents = loaded(make_site)
    contents.unsettled.add(PATH)
    assert differing(contents) == set()
    contents.unsettled.add(PATH)
    path = contents.root / PATH
    path.write_bytes(path.read_bytes().replace(b"00:00Z", b"00:01Z"))
    now = signature_of(path)  # as if the file had been written within the same tick of the clock
    contents.entries[PATH] = contents.entries[PATH]._replace(signature=now)
    assert differing(contents) == {PATH}


def test_a_file_that_is_written_in_place_with_its_old_time_is_read(make_site: MakeSite) -> None:
    """`touch -r` and `rsync -t --inplace` write like this: the size, inode and mtime stay the same."""
    contents = loaded(make_site)
    path = contents.root / PATH
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"00:00Z", b"00:01Z"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert differing(contents) == {PATH}
    record = rescan_paths(contents, {PATH})
    before, after = contents.entries[PATH].document, record.entries[PATH]
    assert before
    assert after
    assert after.document
    assert after.document.get("createdAt") != before.get("createdAt")


def test_a_file_of_which_only_the_ctime_is_new_is_not_parsed_and_says_the_same(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a backup with hard links, or a chmod of all files, the served content is the same."""
    contents = loaded(make_site)
    before = contents.entries[PATH]
    (contents.root / PATH).chmod(0o600)
    os.link(contents.root / PATH, contents.root / "backup")
    assert differing(contents) == {PATH}
    monkeypatch.delattr(Store, "read")
    contents.apply(rescan_paths(contents, {PATH}))
    after = contents.entries[PATH]
    assert after == before._replace(signature=signature_of(contents.root / PATH))
    assert after.document is before.document


def test_a_write_of_a_file_that_was_linked_since_it_was_read_is_not_stale(make_site: MakeSite) -> None:
    contents = loaded(make_site)
    os.link(contents.root / PATH, contents.root / "backup")
    changeset = Changeset(contents.root)
    changeset.put(PATH, changeset.text(PATH) + " ")
    assert [write.path for write in checked_writes(contents, changeset)] == [PATH]
    (contents.root / PATH).write_text("{}")
    changeset = Changeset(contents.root)
    changeset.put(PATH, changeset.text(PATH) + " ")
    with pytest.raises(ConflictError):
        checked_writes(contents, changeset)


def test_many_changed_files_are_read_by_readers_of_their_own(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"n{i}" for i in range(8)]
    site = make_site(
        {**collection("note", {"title": STRING}), **documents("notes", **{n: {} for n in names})}
    )
    folder = site.root / "content/notes"
    for name in names[:5]:
        (folder / f"{name}.json").write_text('{"title": "Other"}')
    (folder / "n5.json").write_text('{"title": ')
    (folder / "n6.json").unlink()
    (folder / "n7.json").unlink()
    (folder / "n7.json").symlink_to("/etc/hostname")
    (folder / "new.json").write_text('{"title": "New"}')
    monkeypatch.setattr(loading, "MIN_FILES_FOR_READERS", 3)
    site.refresh()
    entries, fresh = site.basis()[3], opened(site.root).basis()[3]
    assert entries["content/notes/n5.json"].problems == fresh["content/notes/n5.json"].problems
    assert [p.message for p in entries["content/notes/n7.json"].problems] == [
        "is a symbolic link that points outside the site's folder"
    ]
    shown = site.state.snapshot.list(site.state.schema.subjects["note"], "en", "published")
    titles = {document.document_id: document.get("title") for document in shown}
    assert titles == {**{f"n{i}": "Other" for i in range(5)}, "n5": None, "n7": None, "new": "New"}
