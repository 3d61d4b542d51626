"""Tests of a running server's output: reads, writes, new problems and fixed problems."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.commands.test_cli import run
from tests.servers import children, free_port, is_alive, is_free, start, stop, wait
from tests.sites import STRING, collection, documents, relation, write
from tests.waiting import until

FILES = {
    **collection("author", {"name": STRING}),
    **collection("article", {"title": STRING, "author": relation("manyToOne", "author")}),
    **documents("authors", ann={"name": "Ann"}),
    **documents("articles", a={"title": "A", "author": "ann"}, b={"title": "B"}),
    "site.yaml": "name: Test\nroles: {public: {article: [create, update, delete]}}\nsearch: {index: false}\n",
}


class Server:
    """A running server with two workers and its output."""

    def __init__(self, folder: Path, *options: str, **files: str) -> None:
        self.root, self.log, self.port = folder / "site", folder / "log", free_port()
        write(self.root, {**FILES, **files})
        with self.log.open("wb") as out:
            self.process = start(self.root, self.port, "--workers=2", *options, output=out)
        wait(self.process, self.port)
        self.until("Ctrl-C stops it")

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def until(self, text: str) -> str:
        """Wait until a line of the output contains the text, and return this line."""
        until(lambda: any(text in line for line in self.lines), 15)
        return next(line for line in self.lines if text in line)

    def ask(self, method: str, path: str, data: object = None) -> None:
        body = json.dumps({"data": data}).encode() if data else None
        url = f"http://127.0.0.1:{self.port}/api/{path}"
        asked = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(asked, timeout=10) as answer:
            answer.read()

    def edit(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path)
    yield running
    stop(running.process)


def test_a_write_has_a_line_as_an_edit_has(server: Server) -> None:
    server.edit("content/articles/a.json", '{"title": "An edit"}')
    assert server.until("content/articles/a.json").startswith("  ↻ read content/articles/a.json (")
    server.ask("PUT", "articles/b", {"title": "A write"})
    assert server.until("content/articles/b.json").startswith("  ✎ wrote content/articles/b.json (")
    server.ask("DELETE", "articles/b")
    assert server.until("deleted").startswith("  ✎ deleted content/articles/b.json (")
    assert sum("b.json" in line for line in server.lines) == 2


def test_a_problem_of_a_file_is_told_once_and_when_it_is_gone(server: Server) -> None:
    path = "content/articles/a.json"
    server.edit(path, '{"title": "A", "titel": "A"}')
    assert "titel" in server.until(f"  ! {path}:1:")
    server.edit(path, '{\n "title": "A2",\n "titel": "A"}')
    until(lambda: sum("read" in line for line in server.lines) == 3)
    assert sum("  ! " in line for line in server.lines) == 1
    server.edit(path, '{"title": "A3"}')
    assert server.until("fixed") == f'  ✓ fixed: {path}: api::article.article has no attribute "titel"'


def test_a_schema_tells_what_it_makes_wrong_and_right(server: Server) -> None:
    schema = (server.root / "content-types/article.json").read_text()
    server.edit("content-types/article.json", schema.replace('"title"', '"name"'))
    assert "title" in server.until("  ! content/articles/a.json:1:")
    server.edit("content-types/article.json", schema)
    server.until("fixed: content/articles/b.json: ")


def test_problems_in_other_files_come_and_go(server: Server) -> None:
    author = server.root / "content/authors/ann.json"
    text = author.read_text()
    author.unlink()
    assert "the document" in server.until("author: ")
    author.write_text(text)
    server.until("fixed: content/articles/a.json: author: the document")
    server.edit("content/articles/b.yaml", "title: B\n")
    server.until('✗ content/articles/b.yaml: the document "b"')
    (server.root / "content/articles/b.yaml").unlink()
    server.until("fixed: content/articles/b.yaml: the document")
    server.ask("PUT", "articles/b", {"title": "A write"})
    server.until("wrote content/articles/b.json")


def test_one_upload_is_one_upload(tmp_path: Path) -> None:
    running = Server(tmp_path, **{"content/uploads/a.txt": "A\n"})
    try:
        assert running.until("articles").endswith(", 1 upload")
    finally:
        stop(running.process)


def test_quiet_prints_the_address_and_errors_alone(tmp_path: Path) -> None:
    server = Server(tmp_path, "--quiet", **documents("articles", odd={"titel": "a warning"}))
    try:
        server.ask("PUT", "articles/b", {"title": "A write"})
        server.edit("content/articles/a.json", "[")
        server.until("✗ content/articles/a.json")
    finally:
        stop(server.process)
    assert [line[:9] for line in server.lines] == ["  http://", "  ✗ conte"]


def test_verbose_prints_every_problem_and_every_file(tmp_path: Path) -> None:
    odd = {f"odd{i}": {"titel": "a warning"} for i in range(12)}
    server = Server(tmp_path, "--verbose", **documents("articles", **odd))
    try:
        assert sum("  ! content/articles/odd" in line for line in server.lines) == 12
        write(server.root, documents("authors", bea={"name": "Bea"}, cid={"name": "Cid"}))
        server.until("    content/authors/bea.json" if "read 2" in server.until("↻ read") else "bea.json")
    finally:
        stop(server.process)


def test_quiet_and_verbose_exclude_each_other(tmp_path: Path) -> None:
    assert run("serve", "--quiet", "--verbose").exit_code == 2


def test_a_terminal_that_is_gone_fails_no_write(tmp_path: Path) -> None:
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    process = start(root, port, "--workers=1", output=subprocess.PIPE)
    wait(process, port)
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    for title in ("One", "Two"):
        body = json.dumps({"data": {"title": title}}).encode()
        url, headers = f"http://127.0.0.1:{port}/api/articles/b", {"Content-Type": "application/json"}
        asked = urllib.request.Request(url, body, headers, method="PUT")
        with urllib.request.urlopen(asked, timeout=10) as answer:
            assert answer.status == 200
    process.terminate()
    process.wait(20)
    process.stderr.close()


def test_a_stopped_server_leaves_the_port_though_its_report_is_not_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    root, port = tmp_path / "site", free_port()
    write(root, FILES)
    with os.fdopen(reader, "rb") as unread, os.fdopen(writer, "wb") as output:
        process = start(root, port, "--workers=1", output=output)
        wait(process, port)
        forked = {one for generation in children(process.pid) for one in children(generation)}
        process.terminate()
        process.wait(20)
        assert is_free(port)
        until(lambda: not any(map(is_alive, forked)), 5)
        assert unread.read(1)


def test_a_file_named_like_a_draft_is_told_of_where_there_are_none(server: Server) -> None:
    server.edit("content/articles/a.draft.json", '{"title": "A"}')
    told = server.until("is named like a draft")
    assert "content/articles/a.draft.json" in told
    assert "Set options.draftAndPublish to true in content-types/article.json" in told


def test_problems_that_the_site_leaves_out_are_not_printed(tmp_path: Path) -> None:
    settings = FILES["site.yaml"] + "check: {ignore: {unknown-key: [content/articles/*]}}\n"
    odd = {"content/articles/odd.json": '{"title": "Odd", "colour": "red"}', "site.yaml": settings}
    running = Server(tmp_path, "--verbose", **odd)
    try:
        running.edit("content/articles/a.json", '{"title": "A", "shape": "round"}')
        running.until("read content/articles/a.json")
        running.edit("content/authors/ann.json", '{"name": "Ann", "age": 5}')
        running.until('has no attribute "age"')
        assert not any("colour" in line or "shape" in line for line in running.lines)
        running.edit("content/articles/a.json", '{"title": "A"}')
        until(lambda: sum("read content/articles/a.json" in line for line in running.lines) == 2, 15)
        assert not any("fixed" in line for line in running.lines)
    finally:
        stop(running.process)


def sign_in(server: Server, key: str) -> int:
    """Sign in to the studio and return the status code of the response."""
    headers = {"Bifolio-Studio": "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    url = f"http://127.0.0.1:{server.port}/studio/-/session"
    asked = urllib.request.Request(url, json.dumps({"key": key}).encode(), headers)
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_address_of_the_studio_has_a_key_for_one_sign_in_whichever_worker_is_asked(
    server: Server,
) -> None:
    address = server.until("/studio?key=").split()[0]
    key = address.rpartition("=")[2]
    assert address == f"http://127.0.0.1:{server.port}/studio?key={key}"
    assert [sign_in(server, key) for _ in range(8)] == [204] + [400] * 7


@pytest.mark.parametrize(
    ("options", "settings"),
    [(("--host=0.0.0.0",), ""), (("--quiet",), ""), ((), "api: {trusted_proxies: [127.0.0.1]}\n")],
)
def test_no_key_is_printed_where_others_may_come_in_or_read(
    tmp_path: Path, options: tuple[str, ...], settings: str
) -> None:
    running = Server(tmp_path, *options, **{"site.yaml": FILES["site.yaml"] + settings})
    stop(running.process)
    assert "key" not in running.log.read_text()
    assert not list(running.root.glob(".bifolio/studio/*"))


def test_open_shows_the_studio_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {tmp_path}/opened.part; mv {tmp_path}/opened.part {tmp_path}/opened\n'
    )
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    running = Server(tmp_path, "--open", "--quiet")
    until(lambda: (tmp_path / "opened").exists())
    stop(running.process)
    key = (tmp_path / "opened").read_text().strip().rpartition("?key=")[2]
    assert len(key) == 43
    assert key not in running.log.read_text()
