"""A running server whose site folder is moved or deleted: the server must not create files in the old
place.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.errors import StorageError
from server.write.context import Context
from tests.search.test_sync import writers
from tests.servers import stop
from tests.site.test_state_folder import FILES, Server
from tests.sites import load, write, write_to
from tests.waiting import until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "site")
    made.begin()
    yield made
    stop(made.process)


def told(server: Server, line: str) -> int:
    return server.log.read_text().count(line)


def test_a_site_that_is_moved_away_is_served_as_it_was_until_it_is_back(server: Server) -> None:
    gone, back = (
        f"the site's folder {server.root} is missing",
        f"the site's folder {server.root} exists again",
    )
    until(lambda: server.titles == {"first"})
    away = server.root.with_name("elsewhere")
    write(
        server.root, {"content/notes/two.md": "---\ntitle: second\n---\n"}
    )  # From here on, the watcher is running.
    until(lambda: server.ask("GET", "/api/notes/two")[0] == 200)
    server.root.rename(away)
    until(lambda: told(server, gone) == 1)
    for _ in range(10):
        assert server.ask("GET", "/api/notes/two")[0] == 200
        status, refusal = server.ask("PUT", "/api/notes/one", {"data": {"title": "lost"}})
        assert (status, refusal["error"]["message"]) == (
            507,
            "The site's folder is missing, so nothing can be written",
        )
    assert not server.root.exists()
    write(away, {"content/notes/one.md": "---\ntitle: moved\n---\n"})
    away.rename(server.root)
    until(lambda: server.titles == {"moved"})
    assert server.put("written") == 200
    counts = told(server, gone), told(server, back), told(server, "Traceback")
    assert counts == (1, 1, 0), server.log.read_text()


def test_while_a_site_is_away_only_the_cause_is_logged(server: Server) -> None:
    """Requests with a token need the accounts database, which is in the folder, as the search index is."""
    until(lambda: {server.ask("GET", "/api/notes", token=server.token)[0] for _ in range(10)} == {200})
    until(lambda: server.ask("GET", "/search?q=first")[1]["meta"]["index"]["used"])
    before, away = server.log.read_text(), server.root.with_name("elsewhere")
    server.root.rename(away)
    until(lambda: told(server, "is missing") == 1)
    until(lambda: not writers(server.root))
    for replaced in (False, True):  # An empty folder is what is left of an unmounted one.
        if replaced:
            server.root.mkdir()
        for _ in range(10):
            assert server.ask("GET", "/api/notes", token=server.token)[0] == 503
            assert server.ask("GET", "/_health/ready")[1]["data"]["accounts"] == "away"
            assert server.ask("GET", "/search?q=first")[0] == 200
    assert not (server.root / ".bifolio/accounts.db").exists()
    server.root.rename(server.root.with_name("empty"))
    away.rename(server.root)
    until(lambda: {server.ask("GET", "/api/notes", token=server.token)[0] for _ in range(10)} == {200})
    until(lambda: server.ask("GET", "/search?q=first")[1]["meta"]["index"]["used"])
    until(lambda: told(server, "exists again"))
    lines = [line for line in server.log.read_text().removeprefix(before).splitlines() if "bifolio:" in line]
    assert [line.partition(f"{server.root} ")[2].partition(";")[0] for line in lines] == [
        "is missing", "exists again",
    ], lines  # fmt: skip


@pytest.mark.parametrize("name", ["content", "content-types"])
def test_a_folder_of_a_site_that_is_away_is_named_once(server: Server, name: str) -> None:
    folder, away = server.root / name, server.root.with_name("elsewhere")
    until(lambda: server.titles == {"first"})
    write(server.root, {"content/notes/two.md": "---\ntitle: second\n---\n"})
    until(lambda: server.ask("GET", "/api/notes/two")[0] == 200)  # From here on, the watcher is running.
    folder.rename(away)
    until(lambda: {server.ask("GET", "/api/notes/two")[0] for _ in range(10)} == {404})
    away.rename(folder)
    until(lambda: {server.ask("GET", "/api/notes/two")[0] for _ in range(10)} == {200})
    until(lambda: told(server, f"the folder {folder} exists again") == 1)
    assert told(server, f"the folder {folder} is missing") == 1


def test_only_a_site_takes_the_place_of_one_that_was_moved(server: Server) -> None:
    until(lambda: server.titles == {"first"})
    write(server.root, {"content/notes/two.md": "---\ntitle: second\n---\n"})
    until(lambda: server.ask("GET", "/api/notes/two")[0] == 200)  # From here on, the watcher is running.
    away, copy = server.root.with_name("elsewhere"), server.root.with_name("copy")
    write(copy, {**FILES, "content/notes/one.md": "---\ntitle: copied\n---\n"})
    server.root.rename(away)
    server.root.mkdir()
    until(lambda: told(server, "is missing") == 1)
    assert server.put("lost") == 507
    assert server.titles == {"first"}
    assert not (server.root / "content").exists()
    server.root.rename(server.root.with_name("empty"))
    copy.rename(server.root)
    until(lambda: server.titles == {"copied"})
    assert told(server, "Traceback") == 0


def test_a_site_that_is_moved_during_a_write_gets_a_clear_error(tmp_path: Path) -> None:
    site = load(tmp_path / "site", FILES)
    away = tmp_path / "elsewhere"

    def move_and_write(request: None, context: Context) -> None:
        context.changeset.put("content/notes/one.md", "---\ntitle: lost\n---\n")
        site.root.rename(away)

    with pytest.raises(StorageError, match="folder is missing"):
        write_to(site, move_and_write, None)
    with pytest.raises(StorageError, match="folder is missing"):
        site.record()  # as the job does that records changes in the event log
    assert not site.root.exists()
    assert (away / "content/notes/one.md").read_text() == FILES["content/notes/one.md"]
