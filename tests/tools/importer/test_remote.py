"""Imports from a running Strapi server: with its recorded responses, and with invalid responses."""

import http.server
import json
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server.commands.cli import main
from server.errors import SetupError
from server.tools.importer.importing import ImportOptions, ImportResult, import_source
from server.tools.importer.readers import download
from server.tools.importer.readers.archive import Archive
from server.tools.importer.readers.remote import Remote
from tests.tools.importer.archives import EXPORT, members
from tests.tools.importer.replay import JSON, Answer, Ask, recorded, serving

TOKEN = "its-token"
ANSWERS = json.loads((Path(__file__).parent / "remote.json").read_bytes())
FILES = {
    f"/uploads/{n.rpartition('/')[2]}": d for n, d in members().items() if n.startswith("assets/uploads/")
}
PRIVATE = ("note: ", "secret: ")  # attributes that the API does not return


@pytest.fixture(scope="module")
def there() -> Iterator[str]:
    with serving(recorded(ANSWERS, FILES, TOKEN)) as address:
        yield address


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_MIN_BACKOFF_S", 0.001)


def fetched(root: Path, address: str, token: str = TOKEN, **options: bool) -> ImportResult:
    root.mkdir(parents=True, exist_ok=True)
    return import_source(root, Remote(address, token), ImportOptions(**options), lambda *_: None)


def texts(root: Path) -> dict[str, str]:
    """Return the content of each file in a site, without the attributes that only an archive contains."""
    found = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file() and ".bifolio" not in p.parts):
        lines = path.read_bytes().decode("latin-1").splitlines(keepends=True)
        found[str(path.relative_to(root))] = "".join(line for line in lines if not line.startswith(PRIVATE))
    return found


def test_an_installation_gives_what_its_archive_gives(tmp_path: Path, there: str) -> None:
    result = fetched(tmp_path / "a/site", there)
    (tmp_path / "b/site").mkdir(parents=True)
    import_source(tmp_path / "b/site", Archive(EXPORT), ImportOptions(), lambda *_: None)
    assert texts(tmp_path / "a/site") == texts(tmp_path / "b/site")
    notes = [f"{subject}: {sentence}" for subject, sentence, _ in result.source.notes]
    assert (
        'api::writer.writer: "note" is private, so the API does not return it; an archive from `strapi '
        "export` contains it" in notes
    )


def test_twice_changes_nothing_and_fetches_no_file_again(tmp_path: Path, there: str) -> None:
    fetched(tmp_path / "site", there)
    before = texts(tmp_path / "site")
    with serving(recorded(ANSWERS, {}, TOKEN)) as without_files:
        # The server now has another port, so another URL. The recorded state must not depend on the URL.
        assert fetched(tmp_path / "site", without_files).file_count == 0
    assert texts(tmp_path / "site") == before


def test_what_the_api_does_not_tell_stays(tmp_path: Path, there: str) -> None:
    root = tmp_path / "site"
    root.mkdir()
    import_source(root, Archive(EXPORT), ImportOptions(), lambda *_: None)
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file() and ".bifolio" not in p.parts}
    fetched(root, there, overwrite=True)
    assert {p: p.read_bytes() for p in before} == before
    assert any(b"note: not for the public" in data for data in before.values())


@pytest.mark.parametrize("ending", ["", "/", "/api", "/api/"])
def test_an_address_may_be_written_in_any_way(tmp_path: Path, there: str, ending: str) -> None:
    assert fetched(tmp_path / "site", there + ending, dry_run=True).file_count > 60
    assert list((tmp_path / "site").iterdir()) == []


def refused(tmp_path: Path, ask: Ask, token: str = TOKEN) -> str:
    with serving(ask) as address, pytest.raises(SetupError) as caught:
        fetched(tmp_path / "site", address, token)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "site/content").exists()
    assert not (tmp_path / "site/content-types").exists()
    return str(caught.value)


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (401, "rejected the token"),
        (403, "does not allow the token to read this"),
        (404, "was not found"),
        (301, "redirects to http://127.0.0.1:9/elsewhere"),
        (500, "responded with status 500"),
        (503, "responded with status 503"),
    ],
)
def test_an_answer_that_is_an_error(tmp_path: Path, status: int, what: str) -> None:
    assert what in refused(tmp_path, lambda path, who: (status, JSON, b"{}"))


def test_every_text_names_the_same_kind_of_token(tmp_path: Path) -> None:
    said = [
        refused(tmp_path, lambda path, who, status=status: (status, JSON, b"{}")) for status in (401, 403)
    ]
    page = (Path(__file__).parents[3] / "docs" / "import.md").read_text(encoding="utf-8")
    for text in (*said, page, command("--help").output):
        assert "full-access API token" in " ".join(text.split())


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]", b'{"data": 1}', b'{"data": [{"uid": 1}]}', b"{"])
def test_an_answer_that_is_none(tmp_path: Path, body: bytes) -> None:
    assert ". " in refused(tmp_path, lambda path, who: (200, JSON, body))


def test_one_bad_moment_is_waited_out(tmp_path: Path) -> None:
    good, seen = recorded(ANSWERS, FILES, TOKEN), set[str]()

    def ask(path: str, who: str) -> Answer:
        if path in seen:
            return good(path, who)
        seen.add(path)
        return 503, JSON, b"{}"

    with serving(ask) as address:
        assert fetched(tmp_path / "site", address).file_count == 67


def test_nobody_there(tmp_path: Path) -> None:
    with serving(lambda *_: (200, JSON, b"{}")) as address:
        pass
    with pytest.raises(SetupError, match=r"did not respond: .*refused"):
        fetched(tmp_path / "site", address)


def test_an_answer_that_breaks_off(tmp_path: Path) -> None:
    class Broken(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"{")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Broken)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(SetupError, match="the download failed"):
            fetched(tmp_path / "site", f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_file_that_is_missing_there_stops_the_import_and_the_next_goes_on(tmp_path: Path) -> None:
    names = sorted(FILES)
    good, asked = recorded(ANSWERS, FILES, TOKEN), list[str]()
    lost = next(name for name in names if name.startswith("/uploads/read_me"))

    def ask(path: str, who: str) -> Answer:
        asked.append(path)
        return (404, JSON, b"{}") if path == lost and broken else good(path, who)

    with serving(ask) as address:
        broken = True
        with pytest.raises(SetupError, match="was not found"):
            fetched(tmp_path / "site", address)
        assert not (tmp_path / "site/content").exists()
        broken = False
        first = {path for path in asked if path in FILES}
        asked.clear()
        fetched(tmp_path / "site", address)
        assert {path for path in asked if path in FILES} == {lost}
        assert len(first) > 1


def test_the_token_goes_to_the_installation_alone(tmp_path: Path) -> None:
    told: list[str] = []

    def elsewhere(path: str, who: str) -> Answer:
        told.append(who)
        return recorded({}, FILES, "")(path, who)

    with serving(elsewhere) as other:
        moved = json.loads(json.dumps(ANSWERS).replace('"url": "/uploads/', f'"url": "{other}/uploads/'))
        with serving(recorded(moved, {}, TOKEN)) as address:
            fetched(tmp_path / "site", address)
    assert told == [""] * 4


# --- the command -----------------------------------------------------------------------------------


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["import", "strapi", *arguments])


def test_the_command_with_a_url(tmp_path: Path, there: str) -> None:
    done = command(there, "--token", TOKEN, "--site", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "67 files written." in done.output


def test_the_command_asks_for_a_token(tmp_path: Path, there: str) -> None:
    done = command(there, "--site", str(tmp_path))
    assert done.exit_code == 1
    assert "--token is required to import from a URL. Create a full-access API token in Strapi" in done.output
    assert done.output.count("\n") == 1


def test_the_command_ends_with_1_where_something_was_kept(tmp_path: Path) -> None:
    assert command(str(EXPORT), "--site", str(tmp_path)).exit_code == 0
    path = tmp_path / "content/books/the-salt-road.md"
    path.write_text(path.read_text().replace("title: The Salt Road", "title: Mine"))
    (tmp_path / ".bifolio/imports.json").unlink()
    done = command(str(EXPORT), "--site", str(tmp_path))
    assert done.exit_code == 1
    assert "content/books/the-salt-road.md already exists with other content" in done.output


def test_the_command_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    for source in ("nothing.tar.gz", str(tmp_path), str(Path(__file__))):
        done = command(source, "--site", str(tmp_path))
        assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
        assert source in done.output


def test_the_recorded_archive_is_small() -> None:
    assert EXPORT.stat().st_size < 300_000
    with tarfile.open(EXPORT) as archive:
        assert "metadata.json" in archive.getnames()
