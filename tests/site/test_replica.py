"""Records in the change log: they contain all data, so workers need not read the files, which may have
changed.
"""

import json
import shutil
from pathlib import Path

import pytest

from server.site.record import Record, decode, encode
from server.site.rescan import reload_files_if_needed, rescan_all
from server.site.site import Site
from server.storage.parse_cache import pack_in_blocks
from tests.git import commit_all, git
from tests.site.cluster import show
from tests.sites import schema, write

FILES: dict[str, str | bytes] = {
    "content-types/note.json": schema(
        "note", {"title": "string", "part": {"type": "component", "component": "a.part"}}
    ),
    "content-types/components/a/part.json": json.dumps(
        {"info": {"displayName": "part"}, "attributes": {"text": {"type": "string"}}}
    ),
    "content/notes/a.md": "---\ntitle: A\npart: {text: x}\n---\n",
    "content/notes/b.md": "---\ntitle: B\n---\n",
    "content/uploads/a.txt": "text",
    "content/uploads/a.txt.yaml": "caption: C\n",
    "site.yaml": "name: One\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", FILES)
    return tmp_path / "site"


def loaded(root: Path) -> Site:
    site = Site(root)
    site.load()
    return site


def edit(root: Path) -> None:
    (root / "content/notes/a.md").write_text("---\ntitle: Changed\npart: {text: y}\n---\n")


def add_and_remove(root: Path) -> None:
    write(root, {"content/notes/c.md": "---\ntitle: C\n---\n", "content/uploads/b.txt": "b"})
    (root / "content/notes/b.md").unlink()


def break_one(root: Path) -> None:
    (root / "content/notes/a.md").write_text("---\ntitle: [\n---\n")


def change_description(root: Path) -> None:
    (root / "content/uploads/a.txt.yaml").write_text("caption: Other\n")


def change_settings(root: Path) -> None:
    (root / "site.yaml").write_text("name: Two\nroles:\n  public: {note: [find]}\n")


def break_settings(root: Path) -> None:
    (root / "site.yaml").write_text("name: [\n")


def change_schema(root: Path) -> None:
    write(root, {"content-types/note.json": schema("note", {"title": "string", "more": "integer"})})


def begin_repository(root: Path) -> None:
    commit_all(root)


CHANGES = [
    edit,
    add_and_remove,
    break_one,
    change_description,
    change_settings,
    break_settings,
    change_schema,
    begin_repository,
]


def rescan(site: Site) -> Record | None:
    contents = site._contents
    return rescan_all(contents, None, contents.write_counter, reload_files_if_needed(contents))


@pytest.mark.parametrize("change", CHANGES)
def test_a_record_leads_another_process_to_the_same(change: object, root: Path) -> None:
    one, other = loaded(root), loaded(root)
    assert callable(change)
    change(root)
    found = rescan(one)
    assert found is not None
    data = encode(found)
    one._replica.append(found)
    shutil.rmtree(root / "content")  # The files are gone, so they can't be read again.
    other._replica.append(decode(data, other.state.schema))
    assert show(one.state) == show(other.state)
    assert one.problems == other.problems
    ours, theirs = one._contents, other._contents
    assert ours.configuration.signatures == theirs.configuration.signatures
    assert (ours.git, ours.folder_problems, ours.write_counter) == (
        theirs.git,
        theirs.folder_problems,
        theirs.write_counter,
    )
    assert {p: (e.signature, e.problems, e.beside) for p, e in ours.entries.items()} == {
        p: (e.signature, e.problems, e.beside) for p, e in theirs.entries.items()
    }


def test_a_checkpoint_stands_for_all_records_before_it(root: Path) -> None:
    one, other = loaded(root), loaded(root)
    commit_all(root)
    for change in CHANGES[:-1]:
        change(root)
        one.refresh()
    git(root, "add", "content")
    git(root, "commit", "-qm", "second")
    one.refresh()
    other._replica.append(decode(encode(one._contents.full_record()), other.state.schema))
    assert show(one.state) == show(other.state)
    assert one.problems == other.problems
    assert one._contents.git == other._contents.git


def test_a_document_that_stays_equal_stays_the_same_object(root: Path) -> None:
    dated = "---\ntitle: C\ncreatedAt: 2024-01-01\nupdatedAt: 2024-01-01\n---\n"
    write(root, {"content/notes/c.md": dated})
    one, other = loaded(root), loaded(root)
    before, state = other._contents.entries["content/notes/c.md"], other.state
    (root / "content/notes/c.md").write_text(f"{dated}\n")
    found = rescan(one)
    assert found is not None
    other._replica.append(decode(encode(found), other.state.schema))
    after = other._contents.entries["content/notes/c.md"]
    assert after.signature != before.signature
    assert after.document is before.document
    assert other.state is state


def test_a_large_change_leaves_no_rows_unpacked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.site.replica.MIN_LARGE_FILES", 2)
    one, other = loaded(root), loaded(root)
    for name in ("a", "b"):
        (root / f"content/notes/{name}.md").write_text("---\ntitle: Changed\n---\n")
    found = rescan_all(one._contents, None, one._contents.write_counter)
    assert found is not None
    removed_and_added = other._replica.append(decode(encode(found), other.state.schema))
    assert len(removed_and_added) == 4
    assert not any(document.is_read for document in removed_and_added[2:])
    assert {document.get("title") for document in removed_and_added[2:]} == {"Changed"}


def test_what_is_packed_stays_so_when_a_record_is_made_of_it_again(root: Path) -> None:
    one, other = loaded(root), loaded(root)
    other._replica.append(decode(encode(one._contents.full_record()), other.state.schema))
    again = decode(encode(other._contents.full_record()), other.state.schema)
    ours, theirs = (
        [*pack_in_blocks(entry for entry in found.entries.values() if entry)]
        for found in (other._contents, again)
    )
    assert ours == theirs
    documents = [
        entry.document for found in (again, other._contents) for entry in found.entries.values() if entry
    ]
    assert not any(document.is_read for document in documents if document)
