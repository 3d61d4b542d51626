"""Recent versions, which are kept after they are replaced: their number is limited, and they survive a
kill.
"""

import stat
from pathlib import Path

import pytest

from server.documents.document import Document, make_version
from server.documents.values import Component
from server.schema.model import Attribute, Schema, Type
from server.storage.recent_versions import RecentVersions


def schema_of(**options: str) -> Schema:
    part = Type(
        "shared.part", "component", "part", "", "Part", {"text": Attribute("text", "string", **options)}
    )
    note = Type(
        "api::note.note",
        "collectionType",
        "note",
        "notes",
        "Note",
        {
            "title": Attribute("title", "string"),
            "part": Attribute("part", "component", component="shared.part"),
        },
    )
    return Schema({"shared.part": part, "api::note.note": note})


SCHEMA = schema_of()
NOTE, PART = SCHEMA.types["api::note.note"], SCHEMA.types["shared.part"]


def note(title: str, name: str = "a", locale: str = "en") -> Document:
    times = ("2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00.000Z", None)
    return make_version(
        NOTE, name, (title, Component(PART, (1, title))), times, locale, f"content/notes/{name}.md"
    )


def titles(recent: RecentVersions, name: str = "a", locale: str = "en", schema: Schema = SCHEMA) -> list[str]:
    found = recent.find(schema, schema.types["api::note.note"], name, locale)
    return [document.get("title") for document in found]


def test_versions_are_found_by_document_the_newest_first(tmp_path: Path) -> None:
    recent = RecentVersions(tmp_path)
    assert titles(recent) == []
    recent.keep([note("one"), note("other", "b"), note("un", "a", "fr")], SCHEMA)
    recent.keep([note("two")], SCHEMA)
    again = RecentVersions(tmp_path)  # as another process does
    assert titles(again) == ["two", "one"]
    assert (titles(again, "b"), titles(again, "a", "fr"), titles(again, "c")) == (["other"], ["un"], [])
    [version, _] = again.find(SCHEMA, NOTE, "a", "en")
    assert (version.row, version.type, version.status) == (note("two").row, NOTE, "draft")


def test_only_the_owner_can_read_them(tmp_path: Path) -> None:
    RecentVersions(tmp_path).keep([note("hidden")], SCHEMA)
    files = sorted((tmp_path / ".bifolio/cache/versions").iterdir())
    assert [file.name for file in files] == ["data", "index"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_versions_of_another_schema_are_not_found(tmp_path: Path) -> None:
    recent = RecentVersions(tmp_path)
    recent.keep([note("one")], SCHEMA)
    assert titles(recent, schema=schema_of()) == ["one"]
    assert titles(recent, schema=schema_of(regex="x")) == []


@pytest.mark.parametrize(("most_bytes", "most"), [(10**9, 50), (20_000, 10**9)])
def test_the_oldest_are_given_up(tmp_path: Path, most_bytes: int, most: int) -> None:
    recent = RecentVersions(tmp_path, most_bytes, most)
    for number in range(300):
        recent.keep([note(f"{number}")], SCHEMA)
    found = titles(recent)
    assert found == [str(number) for number in range(299, 299 - len(found), -1)]
    assert 40 <= len(found) <= 200
    assert sum(file.stat().st_size for file in tmp_path.rglob("data")) < 60_000


def test_what_a_crash_cut_off_hides_nothing_else(tmp_path: Path) -> None:
    recent = RecentVersions(tmp_path)
    recent.keep([note("one")], SCHEMA)
    index, data = (tmp_path / ".bifolio/cache/versions" / name for name in ("index", "data"))
    for file in (index, data):
        file.write_bytes(file.read_bytes() + b"half")
    recent.keep([note("two")], SCHEMA)
    assert titles(recent) == ["two", "one"]
    data.write_bytes(data.read_bytes()[:-1])
    assert titles(recent) == ["one"]
    index.unlink()
    assert titles(recent) == []


def test_many_versions_at_once_are_kept(tmp_path: Path) -> None:
    recent = RecentVersions(tmp_path)
    recent.keep((note(f"{number}", f"n{number}") for number in range(2500)), SCHEMA)
    assert [titles(recent, f"n{number}") for number in (0, 1250, 2499)] == [["0"], ["1250"], ["2499"]]


def test_a_site_that_cannot_be_written_to_keeps_none(tmp_path: Path) -> None:
    (tmp_path / ".bifolio").write_text("in its place")
    recent = RecentVersions(tmp_path)
    recent.keep([note("one")], SCHEMA)
    assert titles(recent) == []
