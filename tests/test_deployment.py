"""Tests of the examples in docs/deployment.md and docs/cache-tags.md: nginx in front, and a script that drops
cached files.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from server.auth.accounts import Accounts
from server.auth.owner import make_key
from tests.servers import free_port, serving
from tests.sites import STRING, collection, documents, write
from tests.test_static_servers import MAIN, ask, needs_nginx, run_nginx
from tests.waiting import until

PAGE = (Path(__file__).parent.parent / "docs/deployment.md").read_text()
NGINX = re.findall(r"^```nginx\n(.*?)^```", PAGE, re.M | re.S)
# The TLS server block, changed so that it listens without TLS.
PLAIN = re.sub(r"^server \{\n    listen 80;.*?^\}\n|^ *ssl_.*?\n", "", NGINX[0], flags=re.M | re.S)
PLAIN = PLAIN.replace("listen 443 ssl;", "listen 80;")
TAGS = (Path(__file__).parent.parent / "docs/cache-tags.md").read_text()
DROP = re.findall(r"^```python\n(.*?drop\.py.*?)^```", TAGS, re.M | re.S)
FILES = {
    **collection("note", {"title": STRING}, drafts=True),
    **documents("notes", a={"title": "A" * 2000}, secret={"title": "S"}),
    "content/notes/secret.draft.json": '{"title": "not yet"}',
    "content/uploads/a.txt": "text",
    "site.yaml": "roles: {public: {note: [find, findOne]}}\n",
}


@needs_nginx
def test_nginx_in_front_keeps_what_is_public_and_nothing_else(tmp_path: Path) -> None:
    root, folder, port = tmp_path / "site", tmp_path / "nginx", free_port()
    write(root, FILES)
    folder.mkdir()
    accounts = Accounts(root)
    token = {"Authorization": f"Bearer {accounts.create_token('desk', 'full-access')}"}
    accounts.close()
    config = PLAIN.replace("/var/cache/nginx/slackwater", str(folder / "cache"))
    config = config.replace("127.0.0.1:1337", f"127.0.0.1:{port}")
    with serving(root, port), run_nginx(config, folder) as address:
        note = f"{address}/api/notes/a"
        status, body, headers = ask(note)
        assert (status, headers["X-Cache"]) == (200, "MISS")
        assert headers["Cache-Control"] == "public, max-age=60, stale-while-revalidate=600"
        assert headers["Content-Type"] == "application/json; charset=utf-8"
        assert ask(note)[2]["X-Cache"] == "HIT"
        assert ask(note, **{"If-None-Match": headers["ETag"]})[0] == 304
        packed = ask(note, **{"Accept-Encoding": "gzip"})
        assert packed[2]["Content-Encoding"] == "gzip"
        assert ask(note)[1] == body
        assert ask(f"{address}/uploads/a.txt")[1] == b"text"

        draft = f"{address}/api/notes/secret?status=draft"
        status, shown, headers = ask(draft, **token)
        assert (status, b"not yet" in shown) == (200, True)
        assert headers["Cache-Control"] == "private, no-cache"
        assert ask(draft, **token)[2]["X-Cache"] == "BYPASS"
        assert ask(draft)[0] == 403
        assert ask(note, **{"Strapi-Response-Format": "v4"})[1] != body
        assert ask(f"{address}/_health")[0] == 204
        for path in ("/api/auth/local", "/api/users/me", "/api/users", "/api/connect/github"):
            assert ask(f"{address}{path}")[2]["X-Cache"] is None, path
        assert ask(f"{address}/api/none")[2]["Cache-Control"] is None


@needs_nginx
def test_nginx_keeps_nothing_of_the_studio(tmp_path: Path) -> None:
    root, folder, port = tmp_path / "site", tmp_path / "nginx", free_port()
    write(root, FILES)
    folder.mkdir()
    config = PLAIN.replace("/var/cache/nginx/slackwater", str(folder / "cache"))
    config = config.replace("127.0.0.1:1337", f"127.0.0.1:{port}")
    page = {"Bifolio-Studio": "1", "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json"}
    with serving(root, port), run_nginx(config, folder) as address:
        body = json.dumps({"key": make_key(root)}).encode()
        session = Request(f"{address}/studio/-/session", body, page)
        with urlopen(session, timeout=10) as answer:
            editor = {**page, "Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        draft, notes = f"{address}/api/notes/secret?status=draft", f"{address}/api/notes"
        for _ in range(2):
            status, shown, headers = ask(draft, **editor)
            assert (status, b"not yet" in shown) == (200, True)
            assert (headers["Cache-Control"], headers["X-Cache"]) == ("private, no-cache", "BYPASS")
        assert ask(draft)[0] == 403
        assert ask(notes)[2]["X-Cache"] == "MISS"
        assert ask(notes, **editor)[2]["X-Cache"] == "BYPASS"


@needs_nginx
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_nginx_takes_the_configuration_with_tls(tmp_path: Path) -> None:
    names = ["-keyout", "privkey.pem", "-out", "fullchain.pem", "-subj", "/CN=x"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *names]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    config = re.sub(r"/etc/letsencrypt/live/[^/]+", str(tmp_path), NGINX[0])
    config = config.replace("/var/cache/nginx/slackwater", str(tmp_path / "cache"))
    (tmp_path / "nginx.conf").write_text(MAIN.format(folder=tmp_path, config=config))
    command = ["nginx", "-t", "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@needs_nginx
def test_nginx_answers_what_it_has_kept_while_bifolio_is_away(tmp_path: Path) -> None:
    root, folder, port = tmp_path / "site", tmp_path / "nginx", free_port()
    write(root, FILES)
    folder.mkdir()
    config = PLAIN.replace("/var/cache/nginx/slackwater", str(folder / "cache"))
    with run_nginx(config.replace("127.0.0.1:1337", f"127.0.0.1:{port}"), folder) as address:
        with serving(root, port):
            body = ask(f"{address}/api/notes")[1]
        time.sleep(1.1)  # until the cached response has expired
        for _ in range(2):
            assert ask(f"{address}/api/notes")[:2] == (200, body)
        assert ask(f"{address}/api/notes/a")[0] == 502


@needs_nginx
def test_what_has_changed_is_dropped_from_nginx_and_nothing_else(tmp_path: Path) -> None:
    root, folder, port = tmp_path / "site", tmp_path / "nginx", free_port()
    settings = "api: {cache_tags: true}\nroles: {public: {note: [find, findOne]}}\n"
    write(root, {**FILES, **documents("notes", b={"title": "B"}), "site.yaml": settings})
    folder.mkdir()
    (tmp_path / "drop.py").write_text(DROP[0])
    config = PLAIN.replace("/var/cache/nginx/slackwater", str(folder / "cache"))
    config = config.replace("127.0.0.1:1337", f"127.0.0.1:{port}").replace("valid 200 1s", "valid 200 1d")
    with serving(root, port) as bifolio, run_nginx(config, folder) as address:
        command = [sys.executable, str(tmp_path / "drop.py"), str(folder / "cache"), bifolio]
        process = subprocess.Popen(command)
        try:
            time.sleep(2.5)  # When the script starts, it drops everything.
            paths = ("/api/notes/a", "/api/notes/b", "/api/notes", "/uploads/a.txt")
            for path in paths:
                ask(address + path)
            assert [ask(address + path)[2]["X-Cache"] for path in paths] == ["HIT"] * 4
            write(root, {"content/notes/a.json": '{"title": "another"}'})
            until(lambda: b"another" in ask(f"{address}/api/notes/a")[1], 10)
            time.sleep(1.5)  # The script drops changed content twice.
            assert b"another" in ask(f"{address}/api/notes")[1]
            assert [ask(address + path)[2]["X-Cache"] for path in paths[1::2]] == ["HIT"] * 2
        finally:
            process.terminate()
            assert process.wait(10) == -signal.SIGTERM
