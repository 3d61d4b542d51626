"""Which files differ from how they were read: all are compared only where a walk finds something else."""

import os
from dataclasses import replace

from server.site.compare import changed, walk_for
from server.site.configure import configure
from server.site.contents import Contents
from server.site.loading import load_contents
from server.site.record import Record
from tests.conftest import MakeSite
from tests.sites import STRING, collection, documents

PATH = "content/notes/a.json"


def loaded(make_site: MakeSite) -> Contents:
    """The contents of a site of two files that nobody has written to for long."""
    site = make_site({**collection("note", {"title": STRING}), **documents("notes", a={}, b={})})
    for path in site.root.glob("content/notes/*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    return load_contents(site.root, site.image_cache, configure(site.root))


def differing(contents: Contents) -> set[str]:
    return changed(contents, (), walk_for(contents, None))[0]


def test_files_that_a_walk_finds_as_before_are_not_compared(make_site: MakeSite) -> None:
    """Since to compare them makes a copy of the memory that their entries are in."""
    contents = loaded(make_site)
    contents.entries[PATH] = replace(contents.entries[PATH], signature=(1, 2, 3))
    assert differing(contents) == set()


def test_files_are_compared_after_every_record(make_site: MakeSite) -> None:
    contents = loaded(make_site)
    before = contents.entries[PATH]
    contents.apply(Record({PATH: replace(before, signature=(1, 2, 3))}))
    assert differing(contents) == {PATH}
    contents.apply(Record({PATH: before}))
    assert differing(contents) == set()


def test_files_are_compared_where_one_is_new_changed_or_gone(make_site: MakeSite) -> None:
    contents = loaded(make_site)
    path = contents.root / PATH
    status = path.stat()
    for other in (status.st_mtime_ns + 1, status.st_mtime_ns - 1):
        os.utime(path, ns=(status.st_atime_ns, other))
        assert differing(contents) == {PATH}
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert differing(contents) == set()
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
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"00:00Z", b"00:01Z"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert differing(contents) == {PATH}
