"""Invalid archives: whatever an archive contains, the site is not damaged, and one line reports the
problem.
"""

import io
import json
import tarfile
from pathlib import Path

import pytest

from server.errors import SetupError
from server.tools.importer.importing import ImportOptions, import_source
from server.tools.importer.readers import archive as module
from server.tools.importer.readers.archive import Archive
from tests.tools.importer.archives import EXPORT, members, pack, small

TAG = {"api::tag.tag": {"name": {"type": "string"}}}


def refused(root: Path, path: Path) -> str:
    """Assert that an archive is rejected and nothing is written. Return the error line."""
    with pytest.raises(SetupError) as caught:
        import_source(root, Archive(path), ImportOptions(), lambda *_: None)
    assert not (root / "content").exists()
    assert not (root / "content-types").exists()
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    return line


@pytest.mark.parametrize(
    "name", ["../../outside.txt", "/etc/outside", "assets/uploads/../../../x", "a\\..\\b"]
)
def test_a_member_may_not_lead_out(tmp_path: Path, name: str) -> None:
    path = pack(tmp_path / "bad.tar", {**members(), name: b"x"}, "w")
    (tmp_path / "site").mkdir()
    assert "points outside the archive" in refused(tmp_path / "site", path)
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_member_must_be_a_file(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "bad.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("assets/uploads/link.png")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    assert "is not a regular file" in refused(tmp_path, path)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{nope}\n", "entities/entities_00001.jsonl, line 106: invalid JSON"),
        (b"[1]\n", "line 106: not an object"),
        (b'{"type": "api::book.book"}\n', "line 106: unexpected content"),
        (b'{"a": "\xff"}\n', "line 106: not UTF-8"),
        (b"[" * 100_000 + b"\n", "line 106"),
        (b'{"type": 1, "id": [], "data": 3}\n', ""),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: bytes, what: str) -> None:
    found = members()
    found["entities/entities_00001.jsonl"] += b"\n" + line
    count = found["entities/entities_00001.jsonl"].count(b"\n")
    said = refused(tmp_path, pack(tmp_path / "bad.tar.gz", found))
    assert what.replace("106", str(count)) in said


def test_a_huge_line_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 1000)
    assert "longer than 1,000 bytes" in refused(tmp_path, EXPORT)


def test_more_json_than_fits_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_JSON_BYTES", 10_000)
    assert "more than 10,000 bytes of JSON" in refused(tmp_path, EXPORT)


@pytest.mark.parametrize("cut", [0, 3, 200, 60_000, -20])
def test_an_archive_that_breaks_off(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "bad.tar.gz"
    path.write_bytes(EXPORT.read_bytes()[:cut])
    assert refused(tmp_path, path)


def test_an_encrypted_archive_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "export.tar.gz.enc"
    path.write_bytes(bytes(range(256)) * 8)
    assert "is encrypted. Export it again: strapi export --no-encrypt" in refused(tmp_path, path)
    other = path.rename(tmp_path / "export.tar.gz")
    assert "strapi export --no-encrypt" in refused(tmp_path, other)


def test_no_such_file(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path, tmp_path / "nothing.tar.gz")


def test_other_archives_and_older_ones_are_refused(tmp_path: Path) -> None:
    assert "is not a Strapi export" in refused(tmp_path, pack(tmp_path / "a.tar", {"readme": b"hello"}, "w"))
    old = {**members(), "metadata.json": json.dumps({"strapi": {"version": "4.25.1"}}).encode()}
    assert "Upgrade Strapi to version 5" in refused(tmp_path, pack(tmp_path / "b.tar", old, "w"))


def test_a_plain_tar_is_read_as_well(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    import_source(
        tmp_path / "a",
        Archive(pack(tmp_path / "export.tar", members(), "w")),
        ImportOptions(),
        lambda *_: None,
    )
    assert (tmp_path / "a/content/books/the-salt-road.md").exists()


@pytest.mark.parametrize("name", ["../../up", "a/b", ".hidden", "x\0y"])
def test_a_file_with_a_name_that_leads_away_does_not_come(tmp_path: Path, name: str) -> None:
    row = {"hash": name, "ext": ".txt", "name": "n", "mime": "text/plain", "size": 1}
    path = tmp_path / "a.tar.gz"
    small(
        path, {**TAG, "plugin::upload.file": {"name": {"type": "string"}}}, [("plugin::upload.file", 1, row)]
    )
    found = _members(path)
    (tmp_path / "site").mkdir()
    import_source(tmp_path / "site", Archive(pack(path, found)), ImportOptions(), lambda *_: None)
    assert not (tmp_path / "site/content").exists()


def _members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {m.name: (archive.extractfile(m) or io.BytesIO()).read() for m in archive}


@pytest.mark.parametrize("document_id", ["../../../up", "a/b", "..", "", 7, None, ["x"], "x" * 300])
def test_a_document_with_an_id_that_leads_away(tmp_path: Path, document_id: object) -> None:
    path = small(tmp_path / "a.tar.gz", TAG, [("api::tag.tag", 1, {"documentId": document_id, "name": "x"})])
    root = tmp_path / "deep/er/site"
    root.mkdir(parents=True)
    import_source(root, Archive(path), ImportOptions(), lambda *_: None)
    assert not (root / "content").exists()
    outside = {p for p in tmp_path.rglob("*") if p.is_file() and root not in p.parents}
    assert outside == {path}
