"""The parse cache: it must return the same as reading the files, and must not be used if a file may have
changed.
"""

import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from server.site import loading
from server.site.rescan import rescan_paths
from server.site.site import Site
from server.storage import entry as entry_module
from server.storage.parse_cache import pack, unpack
from server.storage.store import Store
from tests.sites import schema, write

NOTE = schema(
    "note",
    {
        "title": "string",
        "price": "decimal",
        "data": "json",
        "body": "richtext",
        "part": {"type": "component", "component": "shared.part"},
    },
)
PART = '{"info": {"displayName": "Part"}, "attributes": {"name": {"type": "string"}}}'
FILES: dict[str, str | bytes] = {
    "content-types/note.json": NOTE,
    "content-types/components/shared/part.json": PART,
    **{
        f"content/notes/{i}.md": f"---\ntitle: N{i}\nprice: 1.0\ndata: {{a: 1}}\npart: {{name: p}}\n---\nB\n"
        for i in range(10)
    },
    "content/notes/odd.md": "---\ntitle: Odd\nunknown: 1\n---\n",
    "content/notes/broken.md": "---\ntitle: [\n---\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    age(tmp_path)
    return tmp_path


def age(root: Path) -> None:
    """Set the mtime of all files to a time in the past."""
    for path in root.rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


@pytest.fixture
def aged(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site whose file signatures are trusted although the files have just been written.

    The required age is reduced, because a test can't set a file's ctime.
    """
    monkeypatch.setattr(entry_module, "RACY_WINDOW_NS", -(10**12))
    return root


def told(root: Path, cores: int = 1) -> Any:
    """Load a site, and return all its documents and problems."""
    site = Site(root)
    site.load(None, cores)
    table = site.state.snapshot.tables["api::note.note"]
    rows = sorted((key, repr(d.row), d.path) for key, d in table.versions.items())
    return rows, site.problems


def cache(root: Path) -> Path:
    return root / ".bifolio/cache/documents"


def test_a_second_start_says_what_the_first_did_and_reads_no_file(
    aged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = told(aged)
    assert len(first[0]) == 11
    assert len(first[1]) == 2
    monkeypatch.setattr(loading, "read_bytes", lambda *_: pytest.fail("a file was read"))
    read, files = Store.read, list[str]()
    monkeypatch.setattr(Store, "read", lambda store, path: (files.append(path), read(store, path))[1])
    assert told(aged) == first
    assert files == ["content/notes/broken.md"]


def test_a_file_that_was_written_in_place_with_its_old_time_is_read_at_the_next_start(aged: Path) -> None:
    """The size, inode and mtime stay the same, as with `touch -r` or `rsync -t --inplace`."""
    told(aged)
    path = aged / "content/notes/3.md"
    stat = path.stat()
    path.write_text(path.read_text().replace("title: N", "title: M"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    rows, _ = told(aged)
    assert any("'M3'" in row for _, row, where in rows if where.endswith("/3.md"))


def test_a_file_that_changed_is_read_again(root: Path) -> None:
    first = told(root)
    (root / "content/notes/3.md").write_text("---\ntitle: Other\n---\n")
    (root / "content/notes/4.md").unlink()
    rows, _ = told(root)
    assert len(rows) == len(first[0]) - 1
    assert any("'Other'" in row for _, row, path in rows if path.endswith("/3.md"))


def test_a_file_that_may_have_changed_unnoticed_is_compared_by_its_bytes(root: Path) -> None:
    path = root / "content/notes/3.md"
    path.write_text("---\ntitle: A\n---\n")  # written too recently for the file's signature to be trusted
    told(root)
    stat = path.stat()
    path.write_text("---\ntitle: B\n---\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    rows, _ = told(root)
    assert any("'B'" in row for _, row, where in rows if where.endswith("/3.md"))


def test_unchanged_files_from_the_cache_are_still_unchanged_when_they_are_read_again(aged: Path) -> None:
    told(aged)
    site = Site(aged)
    site.load()
    assert not rescan_paths(site._replica.contents, ["content/notes/3.md"]).entries


def test_files_of_a_new_clone_are_known_by_their_bytes(root: Path) -> None:
    first = told(root)
    for path in (root / "content/notes").glob("*.md"):
        text = path.read_bytes()
        path.unlink()
        path.write_bytes(text)
    age(root)
    assert told(root) == first


def test_another_schema_reads_everything_anew(root: Path) -> None:
    told(root)
    changed = NOTE.replace('"type": "decimal"', '"type": "string"')
    assert changed != NOTE
    (root / "content-types/note.json").write_text(changed)
    rows, _ = told(root)
    assert "'1.0'" in rows[0][1]


def test_any_damage_is_noticed(root: Path) -> None:
    first, whole = told(root), None
    chance = random.Random(1)
    for _ in range(40):
        told(root)
        whole = cache(root).read_bytes()
        at = chance.randrange(len(whole))
        damaged = chance.choice(
            [
                whole[:at],
                whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :],
                whole[at:],
                whole + b"more",
            ]
        )
        cache(root).write_bytes(damaged)
        assert told(root) == first


def test_nothing_in_a_cache_is_run(root: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(root / "trapped"),)

    trap = pickle.dumps([Trap()])
    with pytest.raises(ValueError, match="not a block"):
        list(unpack(len(trap).to_bytes(8, "big") + trap, {}))
    assert not (root / "trapped").exists()


def test_several_cores_read_what_one_reads(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.site.loading.MIN_PARALLEL_FILES", 1)
    monkeypatch.setattr("server.site.loading.BLOCK_ENTRIES", 3)
    several = told(root, 2)
    cache(root).unlink()
    assert told(root) == several


def test_what_is_packed_is_unpacked(root: Path) -> None:
    site = Site(root)
    site.load()
    entries = sorted(site._replica.contents.entries.values(), key=lambda entry: entry.path)
    kept = [entry._replace(read_at_ns=5) for entry in entries]
    again = sorted(unpack(pack(kept), site.state.schema.types), key=lambda e: e.path)
    assert [(e.path, e.signature, e.problems, e.read_at_ns) for e in again] == [
        (e.path, e.signature, e.problems, 5) for e in entries
    ]
    rows = [repr(e.document.row) for e in again if e.document]
    assert rows == [repr(e.document.row) for e in entries if e.document]


def test_documents_keep_only_their_rows_in_memory(root: Path) -> None:
    site = Site(root)
    site.load()
    documents = site._replica.contents.documents
    block = pack(site._replica.contents.entries.values())
    unpacked = [entry.document for entry in unpack(block, site.state.schema.types)]
    [rows] = {document.packed for document in unpacked if document}
    assert rows is not None
    assert len(rows) == len(documents)
    [data] = rows.packed()[1]
    assert len(data) == len(data.obj)  # The bytes hold nothing else, such as paths and signatures.


def test_what_an_interrupted_start_has_read_is_not_read_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "BLOCK_ENTRIES", 4)
    seen: list[int] = []

    def stop(done: int, total: int) -> None:
        seen.append(done)
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Site(root).load(stop)
    seen.clear()
    Site(root).load(lambda done, total: seen.append(done))
    assert seen[0] >= 8  # the four files that were read before, and the first new ones


def test_a_large_cache_is_read_while_another_core_sees_what_has_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.site.loading.MIN_PARALLEL_CACHE_BYTES", 0)
    told(root, 2)
    assert told(root, 2) == told(root)
    (root / "content/notes/3.md").write_text("---\ntitle: Other\n---\n")
    assert any("'Other'" in row for _, row, path in told(root, 2)[0] if path.endswith("/3.md"))
    for i in range(4, 9):  # so many changes that the whole index is built again
        (root / f"content/notes/{i}.md").unlink()
    (root / "content/notes/new.md").write_text("---\ntitle: New\n---\n")
    several = told(root, 2)
    assert [path for _, _, path in several[0]].count("content/notes/new.md") == 1
    cache(root).unlink()
    assert several == told(root)
