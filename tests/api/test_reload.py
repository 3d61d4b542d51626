"""Tests of pages that reload when their content changes, with a real browser and a real server."""

import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import MakeApi
from tests.servers import free_port, serving, start, stop, wait
from tests.sites import relation, schema, write
from tests.waiting import until

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
FILES: Mapping[str, str | bytes] = {
    "content-types/article.json": schema(
        "article", {"title": "string", "author": relation("manyToOne", "author", inversedBy="articles")}
    ),
    "content-types/author.json": schema(
        "author",
        {"name": "string", "articles": relation("oneToMany", "article", mappedBy="author")},
    ),
    "content-types/note.json": schema("note", {"title": "string"}),
    "site.yaml": "roles:\n  public: {article: [find, findOne], author: [find, findOne], upload: [find]}\n",
    "content/articles/a.md": "---\ntitle: A\nauthor: ida\n---\n",
    "content/articles/b.md": "---\ntitle: B\n---\n",
    "content/authors/ida.yaml": "name: Ida\n",
    "content/authors/nell.yaml": "name: Nell\n",
    "content/notes/n.yaml": "title: N\n",
    "content/uploads/pier.svg": "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
}
NAMES = ("one", "populated", "list", "missing", "picture", "said", "unknown")
# What a page specifies itself, in its head and on the script element.
ABOUT = {
    "picture": ("", 'data-tags="none"'),
    "said": ('<meta name="cache-tag" content="article:b, author">',),
}
QUIET_S = 1.0  # after this time, a page that has not yet reloaded will not reload


# --- the server's responses -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/api/articles/a", ["_site", "article:a"]),
        ("/api/articles/a?populate[author]=true", ["_site", "article:a", "author:ida"]),
        ("/api/articles?filters[author][name]=Ida", ["_site", "article", "author"]),
        ("/api/articles/none", ["_site", "article:none"]),
        ("/uploads/pier.svg", ["_site", "upload:pier.svg"]),
        ("/uploads/small_new.png", ["_site", "upload:small_new.png"]),
        ("/search?q=a", ["_site", "article", "author", "upload"]),
        ("/api/users/me", ["_site"]),
    ],
)
def test_the_script_is_told_the_tags_of_an_address(
    make_api: MakeApi, address: str, expected: list[str]
) -> None:
    api = make_api(FILES)
    answer = api.client.get("/events/tags", query_string={"of": address})
    assert answer.json == {"data": expected}


def test_nobody_is_told_the_tags_of_what_they_may_not_read(make_api: MakeApi) -> None:
    api = make_api(FILES)
    assert api.get("/events/tags?of=/api/notes/n", "public").status == 403
    assert api.get("/events/tags?of=/api/notes/n").data == ["_site", "note:n"]
    assert api.get("/events/tags").error["message"].startswith('"of" must be')


def test_the_script_is_small_and_asked_for_again_each_time(make_api: MakeApi) -> None:
    api = make_api(FILES)
    answer = api.get("/events/reload.js", "public")
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Cache-Control"] == "public, no-cache"
    again = api.get("/events/reload.js", "public", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304
    sent = api.get("/events/reload.js", "public", headers={"Accept-Encoding": "br"})
    assert len(sent.raw) < 1000
    assert "KINDS" not in answer.text
    assert "//" not in re.sub(r'"[^"]*"', "", answer.text)


# --- in a browser --------------------------------------------------------------------------------

needs_browser = pytest.mark.skipif(BROWSER is None, reason=f"there is none of {', '.join(BROWSERS)}")


class Pages:
    """A web server with a front end's pages, which counts how often each page is loaded."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self.loads: Counter[str] = Counter()
        loads = self.loads

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = pages.get(self.path)
                loads[self.path] += 1
                self.send_response(404 if page is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write((page or "").encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    @contextmanager
    def served(self) -> Iterator["Pages"]:
        """Context manager: serve the pages."""
        thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            thread.join()
            self.server.server_close()


@contextmanager
def showing(folder: Path, address: str) -> Iterator[None]:
    """Context manager: open a page in a browser. All hosts under `.test` resolve to this machine."""
    command = [
        BROWSER or "",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={folder}",
        "--remote-debugging-port=0",
        "--host-resolver-rules=MAP *.test 127.0.0.1",
        address,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def page(server: str, body: str = "", head: str = "", script: str = "") -> str:
    """Return a page that includes the reload script."""
    return f'<!doctype html>{head}<script src="{server}/events/reload.js" {script}></script>{body}'


def fetching(server: str, *paths: str) -> str:
    """Return a script element that fetches the given paths, and then `/fetched` to report that it is done."""
    asked = "".join(f"await (await fetch('{server}{path}')).json();" for path in paths)
    return f"<script>(async () => {{ {asked} fetch('/fetched' + location.pathname) }})()</script>"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", FILES)
    return tmp_path / "site"


def settled(pages: Pages, *paths: str) -> Callable[[], bool]:
    return lambda: all(pages.loads[path] for path in paths)


@needs_browser
def test_a_page_reloads_when_what_it_shows_has_changed_and_not_otherwise(root: Path) -> None:
    with ExitStack() as stack:
        port = free_port()
        stack.enter_context(serving(root, port, "--workers", "1"))
        # A browser opens at most six connections per host, and the event stream of each page occupies one.
        hosts = {name: f"http://{name}.test:{port}" for name in NAMES}
        made = {
            "one": fetching(hosts["one"], "/api/articles/a"),
            "populated": fetching(hosts["populated"], "/api/articles/a?populate=author"),
            "list": fetching(hosts["list"], "/api/articles"),
            "missing": fetching(hosts["missing"], "/api/articles/new"),
            "picture": f'<img src="{hosts["picture"]}/uploads/pier.svg">',
        }
        pages = stack.enter_context(
            Pages(
                {
                    **{
                        f"/{name}": page(hosts[name], made.get(name, ""), *ABOUT.get(name, ()))
                        for name in NAMES
                    },
                    "/all": "".join(f'<iframe src="/{name}"></iframe>' for name in NAMES),
                }
            ).served()
        )
        names = [f"/{name}" for name in NAMES]
        stack.enter_context(showing(root.parent / "browser", f"{pages.address}/all"))
        fetched = ("/fetched/one", "/fetched/populated", "/fetched/list", "/fetched/missing")
        until(settled(pages, *names, *fetched), 30)
        time.sleep(QUIET_S)  # Wait until each page has requested its tags.

        def reloaded(changes: Mapping[str, str]) -> set[str]:
            """Change some files and return the pages that reload. Each page may reload only once."""
            before = Counter(pages.loads)
            write(root, changes)
            time.sleep(0.5)
            until(lambda: pages.loads != before, 10)
            time.sleep(QUIET_S)
            more = pages.loads - before
            assert len(changes) > 1 or set(more.values()) == {1}, more
            return {name for name in names if more[name]}

        nell = {"content/authors/nell.yaml": "name: Nelly\n"}
        assert reloaded(nell) == {"/said", "/unknown"}
        both = {
            "content/articles/a.md": "---\ntitle: AA\nauthor: ida\n---\n",
            "content/notes/n.yaml": "title: NN\n",
        }
        assert reloaded(both) == {"/one", "/populated", "/list", "/unknown"}
        assert reloaded({"content/authors/ida.yaml": "name: Idah\n"}) == {"/populated", "/said", "/unknown"}
        assert reloaded({"content/articles/b.md": "---\ntitle: BB\n---\n"}) == {"/list", "/said", "/unknown"}
        assert reloaded({"content/articles/new.md": "---\ntitle: New\n---\n"}) == {
            "/list",
            "/missing",
            "/unknown",
        }
        svg = "<svg xmlns='http://www.w3.org/2000/svg' width='90' height='90'/>"
        assert reloaded({"content/uploads/pier.svg": svg}) == {"/picture", "/unknown"}


@needs_browser
def test_a_page_goes_on_after_the_server_has_restarted(root: Path) -> None:
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    process = start(root, port, "--workers", "1", output=subprocess.DEVNULL)
    try:
        wait(process, port)
        pages = Pages({"/one": page(server, fetching(server, "/api/articles/a"))})
        with pages.served(), showing(root.parent / "browser", pages.address + "/one"):
            until(settled(pages, "/fetched/one"), 30)
            time.sleep(QUIET_S)
            stop(process)
            write(root, {"content/articles/b.md": "---\ntitle: while it was away\n---\n"})
            process = start(root, port, "--workers", "1", output=subprocess.DEVNULL)
            wait(process, port)
            time.sleep(5)
            assert pages.loads["/one"] == 1
            stop(process)
            for number in range(5):
                write(root, {"content/articles/a.md": f"---\ntitle: A{number}\n---\n"})
            process = start(root, port, "--workers", "1", output=subprocess.DEVNULL)
            wait(process, port)
            until(lambda: pages.loads["/one"] == 2, 15)
            time.sleep(QUIET_S)
            assert pages.loads["/one"] == 2
    finally:
        stop(process)
