"""Imports into a site: the first and second import, after changes in Strapi or in the site, and with
failures.
"""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from server.errors import SetupError
from server.site.site import Site
from server.storage.journal import Journal
from server.tools.importer.importing import ImportOptions, ImportResult, import_source
from server.tools.importer.readers.archive import Archive
from server.tools.importer.report import report
from tests.tools.importer.archives import EXPORT, Json, changed, link, members, small

SALT = "content/books/the-salt-road.md"
TITLE = {"title": {"type": "string"}}
NAME = {"name": {"type": "string"}}


def imported(root: Path, path: Path = EXPORT, **options: bool) -> ImportResult:
    root.mkdir(parents=True, exist_ok=True)
    return import_source(root, Archive(path), ImportOptions(**options), lambda *_: None)


def files(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return each file of a site, including those in .bifolio, with its content and modification time."""
    found = [p for p in sorted(root.rglob("*")) if p.is_file()]
    return {str(p.relative_to(root)): (p.read_bytes(), p.stat().st_mtime_ns) for p in found}


def texts(root: Path) -> dict[str, bytes]:
    return {name: data for name, (data, _) in files(root).items() if not name.startswith(".bifolio/")}


def kept(result: ImportResult) -> list[str]:
    return [path for path, _ in result.merge.kept]


def renamed(data: Json) -> Json:
    """Return an entity of the archive. If it is a certain book, change its summary, as someone might in
    Strapi.
    """
    if data["type"] == "api::book.book" and data["data"]["slug"] == "the-salt-road":
        data["data"]["summary"] = "Changed there"
    return data


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("once") / "site"
    imported(root)
    return root


@pytest.fixture
def root(once: Path, tmp_path: Path) -> Path:
    """A site into which the recorded archive has been imported."""
    return Path(shutil.copytree(once, tmp_path / "site"))


# --- once, twice -----------------------------------------------------------------------------------


def test_what_there_is_came(root: Path) -> None:
    site = Site(root)
    site.load()
    assert site.problems == ()
    tables = site.state.snapshot.tables
    counts = {uid: len({key[0] for key in table.versions}) for uid, table in tables.items() if table.versions}
    assert counts["api::book.book"] == 5
    assert counts["api::sample.sample"] == 14
    assert counts["plugin::upload.file"] == 4
    assert site.state.settings.locales.available == ("en", "fr", "de")


def test_twice_changes_nothing(root: Path) -> None:
    before = files(root)
    time.sleep(0.01)
    result = imported(root)
    assert files(root) == before
    assert result.file_count == 0
    assert result.merge.kept == []
    assert "Nothing to write" in "\n".join(report(result, dry_run=False))


def test_twice_changes_nothing_in_a_fresh_clone(root: Path) -> None:
    shutil.rmtree(root / ".bifolio")
    before = texts(root)
    assert imported(root).file_count == 0
    assert texts(root) == before
    assert imported(root, changed(root.parent / "new.tar.gz", renamed)).merge.kept == []


def test_a_dry_run_writes_nothing_and_tells_the_same(tmp_path: Path) -> None:
    result = imported(tmp_path / "dry", dry_run=True)
    assert list((tmp_path / "dry").iterdir()) == []
    lines = list(report(result, dry_run=True))
    assert "67 files would be written." in lines
    real = list(report(imported(tmp_path / "real"), dry_run=False))
    assert [line for line in lines if "written" not in line] == [
        line for line in real if "written" not in line
    ]


def test_the_report_names_what_did_not_come(tmp_path: Path) -> None:
    text = "\n".join(report(imported(tmp_path / "site"), dry_run=False))
    assert "plugin::users-permissions.role: define roles in site.yaml" in text
    assert "plugin::upload.folder: folders of the media library" in text
    assert "      book: [find, findOne]" in text


def test_files_look_as_the_api_writes_them(root: Path) -> None:
    text = (root / "content/genres/non-fiction.md").read_text()
    assert text.startswith("---\nname: Non-fiction\nslug: non-fiction\ndocumentId: ")
    assert (root / "content/samples/every-type.md").read_text().endswith("---\n\n\n\nleading lines\n")


def test_odd_characters_come_as_they_are(root: Path) -> None:
    site = Site(root)
    site.load()
    type_ = site.state.schema.types["api::sample.sample"]
    found = site.state.snapshot.tables[type_.uid].versions.values()
    bell = next(d for d in found if "bell" in str(d.get("label")))
    assert bell.get("label") == "a bell \a rings"
    assert bell.get("rich") == "with\r\ntwo\r\nlines"


def test_what_markdown_cannot_say_is_json(tmp_path: Path) -> None:
    odd = "a null \0, alone"
    types = {"api::tag.tag": {**TITLE, "body": {"type": "richtext"}}}
    path = small(tmp_path / "a.tar.gz", types, [("api::tag.tag", 1, {"title": odd, "body": odd})])
    imported(tmp_path / "site", path)
    assert [p.suffix for p in (tmp_path / "site/content/tags").iterdir()] == [".json"]
    site = Site(tmp_path / "site")
    site.load()
    (found,) = site.state.snapshot.tables["api::tag.tag"].versions.values()
    assert found.get("title") == odd
    assert imported(tmp_path / "site", path).file_count == 0


# --- changed in Strapi -----------------------------------------------------------------------------


def test_what_changed_there_comes(root: Path) -> None:
    before = texts(root)
    result = imported(root, changed(root.parent / "new.tar.gz", renamed))
    after = texts(root)
    assert {name for name in after if after[name] != before.get(name)} == {
        SALT,
        "content/books/the-salt-road.draft.md",
    }
    assert after[SALT] == before[SALT].replace(b"summary: 'A: b # c'", b"summary: 'Changed there'")
    assert result.merge.kept == []
    assert imported(root, root.parent / "new.tar.gz").file_count == 0


def test_a_draft_that_was_published_there_is_no_file_any_more(root: Path) -> None:
    def publish(data: Json) -> Json | None:
        if data["type"] == "api::genre.genre" and data["data"]["name"] == "Charts, renamed":
            # Leaves out the draft, so only the published version remains; a draft that is the same has no
            # file.
            return None
        return data

    draft = next(root.glob("content/genres/*.draft.md"), None)
    assert draft is not None
    result = imported(root, changed(root.parent / "new.tar.gz", publish))
    assert len(result.merge.removed) == 1
    assert not (root / result.merge.removed[0]).exists()


def test_what_is_gone_there_stays_here(root: Path) -> None:
    before = texts(root)
    path = changed(root.parent / "new.tar.gz", lambda d: None if d["type"] == "api::shelf.shelf" else d)
    imported(root, path)
    assert {n for n in before if "shelves" in n} <= texts(root).keys()


# --- changed in the site ---------------------------------------------------------------------------


def edit(path: Path, old: str = "title: The Salt Road", new: str = "title: Mine  # my own") -> bytes:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path.read_bytes()


def test_a_change_here_is_no_conflict_as_long_as_nothing_changed_there(root: Path) -> None:
    mine = edit(root / SALT)
    result = imported(root)
    assert (result.file_count, result.merge.kept) == (0, [])
    assert (root / SALT).read_bytes() == mine


def test_what_changed_on_both_sides_stays_and_is_named(root: Path) -> None:
    mine = edit(root / SALT)
    path = changed(root.parent / "new.tar.gz", renamed)
    result = imported(root, path)
    assert kept(result) == [SALT]
    assert (root / SALT).read_bytes() == mine
    assert "Changed there" in (root / "content/books/the-salt-road.draft.md").read_text()
    assert kept(imported(root, path)) == [SALT]  # The conflict remains.
    text = "\n".join(report(result, dry_run=False))
    assert f"  {SALT} was changed both in this site and in Strapi" in text


def test_overwrite_takes_what_the_source_says_and_no_more(root: Path) -> None:
    edit(root / SALT)
    edit(root / SALT, "pages: 312", "pages: 312  # counted twice")
    result = imported(root, changed(root.parent / "new.tar.gz", renamed), overwrite=True)
    text = (root / SALT).read_text()
    assert result.merge.kept == []
    assert "title: The Salt Road" in text
    assert "summary: 'Changed there'" in text
    assert "pages: 312  # counted twice" in text


def test_without_a_record_other_words_are_a_persons(root: Path) -> None:
    shutil.rmtree(root / ".bifolio")
    mine = edit(root / SALT)
    assert kept(imported(root)) == [SALT]
    assert (root / SALT).read_bytes() == mine


def test_what_was_removed_here_stays_removed(root: Path) -> None:
    (root / SALT).unlink()
    (root / "content/uploads").rename(root / "elsewhere")
    result = imported(root)
    assert (result.file_count, result.merge.kept) == (0, [])
    assert not (root / SALT).exists()
    assert kept(imported(root, changed(root.parent / "new.tar.gz", renamed))) == [SALT]
    imported(root, overwrite=True)
    assert (root / SALT).exists()


def test_what_was_moved_here_is_found_again(root: Path) -> None:
    (root / "content/books/2024").mkdir()
    moved = root / "content/books/2024/salt.md"
    (root / SALT).rename(moved)
    before = texts(root)
    assert imported(root).file_count == 0
    assert texts(root) == before


def test_a_broken_file_is_left_to_its_owner(root: Path) -> None:
    (root / SALT).write_text("---\ntitle: [\n---\n")
    before = texts(root)
    imported(root)
    assert texts(root)[SALT] == before[SALT]
    assert kept(imported(root, changed(root.parent / "new.tar.gz", renamed))) == [SALT]
    assert texts(root)[SALT] == before[SALT]


def test_a_changed_schema_stays(root: Path) -> None:
    path = root / "content-types/genre.json"
    path.write_text(path.read_text().replace('"Genre"', '"Kind"'))
    mine = path.read_bytes()
    assert imported(root).file_count == 0
    assert path.read_bytes() == mine


def test_another_file_under_the_name_of_an_upload_stays(tmp_path: Path) -> None:
    root = tmp_path / "site"
    imported(root)
    name = next(root.glob("content/uploads/shore_*.jpg")).name
    other = tmp_path / "other"
    (other / "content/uploads").mkdir(parents=True)
    (other / "content/uploads" / name).write_bytes(b"mine")
    assert kept(imported(other)) == [f"content/uploads/{name}"]
    assert (other / "content/uploads" / name).read_bytes() == b"mine"


# --- a site that already has content ---------------------------------------------------------------


def test_a_site_keeps_what_it_has(tmp_path: Path) -> None:
    root = tmp_path / "site"
    root.mkdir()
    (root / "site.yaml").write_text(
        "# ours\nname: Ours  # and stays\nlocales: {default: en, available: [en, nl]}\n"
    )
    (root / "content-types").mkdir()
    (root / "content-types/leaf.yaml").write_text(
        "info: {singularName: leaf, pluralName: leaves}\nattributes: {a: {type: string}}\n"
    )
    result = imported(root)
    assert "site.yaml" not in [subject for subject, _, _ in result.source.notes]
    text = (root / "site.yaml").read_text()
    assert text.startswith("# ours\nname: Ours  # and stays\n")
    site = Site(root)
    site.load()
    assert site.state.settings.api.populate_with_pagination
    assert site.state.settings.locales.available == ("en", "nl", "fr", "de")
    assert "api::leaf.leaf" in site.state.schema.types


def test_a_site_that_refuses_to_populate_paged_lists_is_told_what_its_clients_need(tmp_path: Path) -> None:
    root = tmp_path / "site"
    root.mkdir()
    (root / "site.yaml").write_text("api:\n  populate_with_pagination: reject  # on purpose\n")
    result = imported(root)
    assert ("site.yaml", 1) in [(subject, count) for subject, _, count in result.source.notes]
    assert "populate_with_pagination: reject  # on purpose\n" in (root / "site.yaml").read_text()


def test_another_default_locale_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/site.yaml").write_text("locales: {default: fr, available: [fr]}\n")
    with pytest.raises(SetupError, match="the content to import has the default locale en"):
        imported(tmp_path / "site")
    assert not (tmp_path / "site/content").exists()


def test_a_broken_site_is_named_first(tmp_path: Path) -> None:
    (tmp_path / "site/content-types").mkdir(parents=True)
    (tmp_path / "site/content-types/x.json").write_text("{")
    with pytest.raises(SetupError, match=r"content-types/x\.json"):
        imported(tmp_path / "site")


# --- impossible imports ----------------------------------------------------------------------------


def test_a_type_that_cannot_be_is_left_out_with_what_needs_it(tmp_path: Path) -> None:
    info = {"singularName": "user", "pluralName": "users", "displayName": "User"}
    path = small(
        tmp_path / "a.tar.gz",
        {
            "api::user.user": {"kind": "collectionType", "info": info, "attributes": NAME},
            "api::tag.tag": {
                **NAME,
                "owner": {"type": "relation", "relation": "oneToOne", "target": "api::user.user"},
                "stage": {"type": "relation", "relation": "oneToOne", "target": "plugin::x.stage"},
                "hue": {"type": "plugin::paint.hue"},
            },
        },
        [("api::user.user", 1, {"name": "Ann"}), ("api::tag.tag", 1, {"name": "sea"})],
    )
    result = imported(tmp_path / "site", path)
    notes = "\n".join(f"{subject}: {sentence}" for subject, sentence, _ in result.source.notes)
    assert 'api::tag.tag: "stage" refers to plugin::x.stage' in notes
    assert 'api::tag.tag: "owner" requires api::user.user' in notes
    assert 'api::tag.tag: "hue" has the type plugin::paint.hue' in notes
    assert "the import leaves out this type" in notes
    assert len(list((tmp_path / "site/content/tags").iterdir())) == 1
    assert imported(tmp_path / "site", path).file_count == 0


def test_values_that_are_none_are_noted_and_the_rest_comes(tmp_path: Path) -> None:
    schema = {**TITLE, "count": {"type": "integer"}, "kind": {"type": "enumeration", "enum": ["a", "b"]}}
    row = {"title": "Fine", "count": "many", "kind": "c"}
    path = small(tmp_path / "a.tar.gz", {"api::tag.tag": schema}, [("api::tag.tag", 1, row)])
    result = imported(tmp_path / "site", path)
    notes = [sentence for _, sentence, _ in result.source.notes]
    assert any("count must be a whole number" in sentence for sentence in notes)
    assert any("kind must be one of a, b" in sentence for sentence in notes)
    assert "title: Fine" in next((tmp_path / "site/content/tags").iterdir()).read_text()


def test_files_of_a_type_without_a_uid_are_named_after_their_title(tmp_path: Path) -> None:
    rows = ["Ærø – a guide?", "Twice", "Twice", "…", None, "../../etc/passwd", "a.draft", "long " * 40]
    entities = [("api::tag.tag", i, {"title": title}) for i, title in enumerate(rows, 1)]
    path = small(tmp_path / "a.tar.gz", {"api::tag.tag": TITLE}, entities)
    imported(tmp_path / "site", path)
    there = {file.name: file.read_text() for file in (tmp_path / "site/content/tags").iterdir()}
    assert set(there) == {
        "aero-a-guide.md",
        "twice.md",
        f"twice-{3:024d}.md",
        f"{4:024d}.md",
        f"{5:024d}.md",
        "etc-passwd.md",
        "a-draft.md",
        f"{'-'.join(['long'] * 16)}.md",
    }
    assert f"documentId: '{1:024d}'\n" in there["aero-a-guide.md"]
    before = {file.name for file in (tmp_path / "site/content/tags").iterdir()}
    imported(tmp_path / "site", path)
    assert {file.name for file in (tmp_path / "site/content/tags").iterdir()} == before


def test_a_type_whose_api_has_another_name(tmp_path: Path) -> None:
    info = {"singularName": "article", "pluralName": "articles", "displayName": "Article"}
    tags = {"type": "relation", "relation": "manyToMany", "target": "api::meta.tag"}
    tag = {"singularName": "tag", "pluralName": "tags", "displayName": "Tag"}
    path = small(
        tmp_path / "a.tar.gz",
        {
            "api::blog.article": {
                "kind": "collectionType",
                "info": info,
                "attributes": {**TITLE, "tags": tags},
            },
            "api::meta.tag": {"kind": "collectionType", "info": tag, "attributes": NAME},
        },
        [
            ("api::blog.article", 1, {"title": "One", "documentId": "one"}),
            ("api::meta.tag", 7, {"name": "sea", "documentId": "sea"}),
            ("api::meta.tag", 8, {"name": "salt", "documentId": "salt"}),
        ],
        [
            link(("api::blog.article", 1, "tags"), ("api::meta.tag", 7, None), pos=2),
            link(("api::blog.article", 1, "tags"), ("api::meta.tag", 8, None), pos=1),
        ],
    )
    imported(tmp_path / "site", path)
    assert "tags:\n  - salt\n  - sea\n" in (tmp_path / "site/content/articles/one.md").read_text()


def test_the_order_of_the_other_side_is_noted_where_it_changes(tmp_path: Path) -> None:
    schemas = {
        "api::tag.tag": {
            **NAME,
            "notes": {
                "type": "relation",
                "relation": "manyToMany",
                "target": "api::note.note",
                "mappedBy": "tags",
            },
        },
        "api::note.note": {
            **TITLE,
            "tags": {
                "type": "relation",
                "relation": "manyToMany",
                "target": "api::tag.tag",
                "inversedBy": "notes",
            },
        },
    }
    rows: list[Any] = [("api::tag.tag", 1, {"name": "sea", "documentId": "sea"})]
    rows += [("api::note.note", n, {"title": str(n), "documentId": f"n{n}"}) for n in (1, 2)]
    for first, noted in ((1, False), (2, True)):
        links = [
            link(("api::note.note", n, "tags"), ("api::tag.tag", 1, "notes"), mirror=1 if n == first else 2)
            for n in (1, 2)
        ]
        path = small(tmp_path / f"{first}.tar.gz", schemas, rows, links)
        notes = [sentence for _, sentence, _ in imported(tmp_path / f"site{first}", path).source.notes]
        assert any("order of creation" in sentence for sentence in notes) is noted


# --- all or nothing ----------------------------------------------------------------------------------


def test_a_full_disk_leaves_the_site_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "site"
    real, count = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal count
        count += 1
        if count == 30:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SetupError, match=r"No space left on device.*run the command again"):
        imported(root)
    assert texts(root) == {}
    monkeypatch.undo()
    assert imported(root).file_count == 67


def test_a_disk_that_is_full_of_media(tmp_path: Path) -> None:
    staging = tmp_path / "site/.bifolio/import"
    staging.mkdir(parents=True)
    for name in members():
        (staging / hashlib.sha256(name.encode()).hexdigest()).symlink_to("/dev/full")
    with pytest.raises(SetupError, match=r"can't be written: No space left on device.*Free some disk space"):
        imported(tmp_path / "site")
    assert texts(tmp_path / "site") == {}


def test_a_killed_import_is_finished_or_was_never_begun(tmp_path: Path, once: Path) -> None:
    whole = texts(once)
    # Python's audit hook is called for each rename, by which a file is put in its place. There are 67 files,
    # and the record of the import.
    code = (
        "import os, sys\n"
        "left = int(sys.argv[2])\n"
        "def told(event, _):\n"
        "    global left\n"
        "    left -= event == 'os.rename'\n"
        "    if left < 0: os._exit(9)\n"
        "sys.addaudithook(told)\n"
        "from server.commands.cli import main\n"
        "main(['import', 'strapi', sys.argv[1], '--site', sys.argv[3]])\n"
    )
    for left in (0, 2, 6, 30, 67):
        root = tmp_path / str(left) / "site"
        root.mkdir(parents=True)
        done = subprocess.run(
            [sys.executable, "-c", code, str(EXPORT), str(left), str(root)], capture_output=True
        )
        assert done.returncode == 9
        journal = Journal(root, root / ".bifolio")
        with journal.writing():
            journal.recover()
        found = {n for n in texts(root) if not n.startswith("site.yaml")}
        assert found in (set(), {n for n in whole if n != "site.yaml"})
        imported(root)
        assert texts(root) == whole
        assert not list((root / ".bifolio").glob("import/*"))


def test_somebody_writes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "site"
    root.mkdir()

    def meddle(what: str, done: int, total: int) -> None:
        if what == "Writing":
            (root / "content/books").mkdir(parents=True)
            (root / SALT).write_text("---\ntitle: First\n---\n")

    with pytest.raises(SetupError, match=r"the-salt-road\.md appeared"):
        import_source(root, Archive(EXPORT), ImportOptions(), meddle)
    assert texts(root) == {SALT: b"---\ntitle: First\n---\n"}
