"""Tests of an export behind web servers: nginx as configured in docs/static.md, and Python's own server."""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPMessage
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.servers import free_port
from tests.sites import Api, opened
from tests.tools.test_export import exported

ROOT = Path(__file__).parent.parent
SETTINGS = re.findall(r"^```yaml\n(export:.*?)^```", (ROOT / "docs/static.md").read_text(), re.M | re.S)
NGINX = re.findall(r"^```nginx\n(.*?)^```", (ROOT / "docs/static.md").read_text(), re.M | re.S)
MAIN = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {config}
}}
"""
needs_nginx = pytest.mark.skipif(not shutil.which("nginx"), reason="nginx is not installed")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The repository's own site, with the settings from docs/static.md."""
    root = tmp_path_factory.mktemp("site")
    for name in ("content", "content-types"):
        shutil.copytree(ROOT / name, root / name)
    settings = [(ROOT / "site.yaml").read_text(), SETTINGS[0]]
    (root / "site.yaml").write_text("\n".join(settings))
    site = opened(root)
    api = Api.of(site)
    yield api
    api.accounts.close()


@pytest.fixture(scope="module")
def public(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with an export of the site."""
    folder = tmp_path_factory.mktemp("public")
    exported(api.site.root, folder)
    # the resized pictures (formats) that the export has created
    api.site.refresh([d.path for d in api.site.state.snapshot.media.values()])
    return folder


@pytest.fixture(scope="module")
def plain(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export without settings. It contains each list and document as a request without parameters returns
    it.
    """
    root = tmp_path_factory.mktemp("plain-site")
    shutil.copytree(api.site.root, root, dirs_exist_ok=True)
    shutil.copy(ROOT / "site.yaml", root)
    folder = tmp_path_factory.mktemp("plain")
    exported(root, folder)
    return folder


@contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[str]:
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        for _ in range(500):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/none", timeout=5)
            except urllib.error.HTTPError as error:
                error.close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def nginx(public: Path, folder: Path) -> Iterator[str]:
    public.parent.chmod(0o755)
    public.chmod(0o755)
    with run_nginx(NGINX[0].replace("/srv/slackwater/public", str(public)), folder) as address:
        yield address


@contextmanager
def run_nginx(config: str, folder: Path) -> Iterator[str]:
    """Context manager: run nginx with the content of a page's `http` block. nginx stores its own files in
    `folder`.
    """
    port = free_port()
    config = config.replace("listen 80;", f"listen 127.0.0.1:{port};")
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, config=config))
    command = ["nginx", "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    command += ["-g", "user root;"] if is_root() else []
    with running(command, port, folder / "log") as address:
        yield address


def is_root() -> bool:
    return Path("/proc/self").stat().st_uid == 0


def ask(url: str, **headers: str) -> tuple[int, bytes, HTTPMessage]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def live(api: Api, request: str) -> bytes:
    answer = api.client.get(request)
    body = answer.get_data()
    answer.close()
    assert answer.status_code == 200, (request, body)
    return body


def entries(public: Path) -> dict[str, str]:
    """Return the path of each exported file with the request that it replaces."""
    files = json.loads((public / "bifolio-export.json").read_text())["files"]
    return {path: entry["request"] for path, entry in files.items()}


def test_pythons_own_server_answers_what_a_running_one_does(api: Api, public: Path, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "http.server", "--directory", str(public), "--bind", "127.0.0.1"]
    with running([*command, str(port)], port, tmp_path / "log") as address:
        for path, request in entries(public).items():
            status, body, headers = ask(f"{address}/{quote(path)}")
            assert (status, body) == (200, live(api, request)), path
            if path.endswith(".json"):
                assert headers["Content-Type"] == "application/json"


def _kind(request: str) -> str:
    name = request.partition("?")[0].rpartition(".")[2]
    kind = {"md": "text/markdown", "txt": "text/plain"}.get(name, "application/json")
    return f"{kind}; charset=utf-8"


@needs_nginx
def test_nginx_answers_what_a_running_server_does(api: Api, plain: Path, tmp_path: Path) -> None:
    asked = list(entries(plain).values())
    assert "/api/articles/2025--goemon?locale=fr" in asked
    with nginx(plain, tmp_path) as address:
        for request in asked:
            status, body, headers = ask(address + request)
            assert (status, body) == (200, live(api, request)), request
            if request.startswith(("/api/", "/llms")):
                assert headers["Content-Type"] == _kind(request)
                assert headers["Access-Control-Allow-Origin"] == "*"
                assert ask(address + request, **{"If-None-Match": headers["ETag"]})[0] == 304
        for request in (
            "/api/pages/?locale=fr",  # with a trailing slash, as some loaders send it
            "/api/pages?locale=en&pagination[page]=1",
            "/api/pages?pagination%5Bpage%5D=1&locale=fr",
            "/api/tags?locale=fr",  # a content type without locales
            "/api/tags/fog?locale=fr",
            "/api/pages.md?pagination%5Bpage%5D=1&locale=fr",
            "/api/tags/fog.md?locale=fr",
        ):
            assert ask(address + request)[:2] == (200, live(api, request)), request


@needs_nginx
@pytest.mark.parametrize(
    "request_",
    [
        "/api/pages?filters[slug]=about",
        "/api/pages?populate=*",
        "/api/pages?locale=fr&sort=title",
        "/api/pages?pagination[pageSize]=1",
        "/api/pages?locale=../..",
        "/api/pages?locale=..%2f",
        "/api/pages?pagination[page]=99",
        "/api/nothing",
        "/api/nothing.md",
        "/api/pages.md?sort=title",
        "/api/pages/nothing.md",
        "/api/articles/2024--sixteen-forty-two?locale=fr",
        "/api/articles?sort=publishedOn:asc&pagination[pageSize]=5&fields=title,slug",
        "/bifolio-export.json",
        "/api",
    ],
)
def test_nginx_answers_nothing_that_it_does_not_know(public: Path, tmp_path: Path, request_: str) -> None:
    with nginx(public, tmp_path) as address:
        status, body, headers = ask(address + request_)
    assert status == 404
    assert json.loads(body)["error"]["name"] == "NotFoundError"
    assert headers["Content-Type"].startswith("application/json")


@needs_nginx
def test_nginx_answers_named_queries_and_populated_lists(api: Api, public: Path, tmp_path: Path) -> None:
    found = entries(public)
    with nginx(public, tmp_path) as address:
        assert ask(address + found["queries/latest.json"])[:2] == (
            200,
            live(api, found["queries/latest.json"]),
        )
        for path, address_ in (
            ("api/articles.json", "/api/articles"),
            ("locale/fr/api/articles.json", "/api/articles?locale=fr"),
            ("api/articles/2024--night-ferry.json", "/api/articles/2024--night-ferry"),
            ("api/tags.json", "/api/tags"),
        ):
            assert found[path] != address_
            assert ask(address + address_)[:2] == (200, live(api, found[path]))
        second = json.loads(ask(f"{address}/api/articles?pagination[page]=2")[1])
    assert second["meta"]["pagination"] == {"page": 2, "pageSize": 10, "pageCount": 3, "total": 21}
    assert second["data"][0]["author"].keys() == {"id", "documentId", "name", "slug"}
