"""Tests of the modules that a server loads: modules that are not needed to read content are loaded on first
use.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from server.api.lazy import Lazy
from server.api.wsgi_server import check_accounts
from server.errors import SetupError
from tests.servers import free_port
from tests.sites import STRING, collection, documents, load

FILES = {
    **collection("note", {"text": STRING}),
    **documents("notes", a={"text": "x"}),
    "content/uploads/a.txt": "text of a file",
    "site.yaml": "roles: {public: {note: [find], auth: [callback]}}",
}
# Requests some paths from a server's app, and prints which modules have been loaded after each.
ASKING = """
import io, json, sys
from pathlib import Path
from server.api.wsgi_server import check_accounts, make_app
from server.commands import serve
from server.service.opening import Mode, open_site

LATE = ("PIL", "flask", "werkzeug", "psycopg", "argon2", "jwt", "server.search.sync")
site = open_site(Path(sys.argv[1]), Mode.SERVER).site
check_accounts(site.root, site.state.settings)
app = make_app(site)
for method, path, header in json.loads(sys.argv[2]):
    path, _, query = path.partition("?")
    told = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SERVER_NAME": "here",
        "SERVER_PORT": "80", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(), "wsgi.errors": sys.stderr}
    if header:
        environ["HTTP_AUTHORIZATION"] = header
    list(app(environ, lambda status, _: told.append(status)))
    print(json.dumps([told[0][:3], [name for name in LATE if name in sys.modules]]))
"""


def test_each_request_loads_what_it_needs(tmp_path: Path) -> None:
    load(tmp_path, FILES)
    asked = [
        ("GET", "/api/notes?populate=*", ""),
        ("HEAD", "/api/notes", ""),
        ("GET", "/api/notes/a", ""),
        ("GET", "/_health", ""),
        ("GET", "/uploads/a.txt", ""),
        ("GET", "/api/notes", "Bearer nonsense"),
        ("POST", "/api/auth/local", ""),
    ]
    command = [sys.executable, "-c", ASKING, str(tmp_path), json.dumps(asked)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [json.loads(line) for line in told.splitlines()] == [
        ["200", []],
        ["200", []],
        ["403", []],
        ["204", []],
        ["200", ["flask", "werkzeug", "argon2"]],
        ["401", ["flask", "werkzeug", "argon2", "jwt"]],
        ["400", ["flask", "werkzeug", "argon2", "jwt"]],
    ]


@pytest.mark.parametrize("data", [b"no database", b"SQLite format 3\0" + b"x" * 5000])
def test_a_broken_accounts_database_is_told_at_the_start(tmp_path: Path, data: bytes) -> None:
    site = load(tmp_path, FILES)
    (tmp_path / ".bifolio").mkdir(exist_ok=True)
    (tmp_path / ".bifolio/accounts.db").write_bytes(data)
    assert "the accounts database can't be used" in str(check_accounts(tmp_path, site.state.settings))


def test_a_server_does_not_begin_without_the_driver_of_its_accounts(tmp_path: Path) -> None:
    load(tmp_path, {**FILES, "site.yaml": "accounts: postgresql://localhost/accounts\n"})
    code = "from server.commands.cli import main\nfrom server.database import address\n"
    code += "address.find_spec = lambda name: None  # as where it is not installed\nmain()"
    command = [sys.executable, "-c", code, "serve", "--site", str(tmp_path), "--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    said = (
        "bifolio: site.yaml: the accounts database requires the Python library psycopg, "
        "which is not installed. "
    )
    assert (done.returncode, done.stderr) == (1, f"{said}Run `pip install 'bifolio[postgres]'`.\n"), done


def test_a_weak_key_of_sessions_ends_the_start(tmp_path: Path) -> None:
    site = load(tmp_path, FILES)
    check_accounts(tmp_path, site.state.settings)
    (tmp_path / ".bifolio/jwt.key").write_text("short")
    with pytest.raises(SetupError, match="is shorter than 32 characters"):
        check_accounts(tmp_path, site.state.settings)


def test_threads_that_need_a_value_at_once_get_the_same() -> None:
    barrier, made = threading.Barrier(8), []

    def make() -> object:
        made.append(object())
        return made[-1]

    lazy, got = Lazy(make), []

    def ask() -> None:
        barrier.wait(timeout=10)
        got.append(lazy())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(made) == 1
    assert got == made * 8


def test_what_could_not_be_made_is_tried_again() -> None:
    results = iter([OSError("not yet"), "a value"])

    def make() -> str:
        result = next(results)
        if isinstance(result, OSError):
            raise result
        return str(result)

    lazy = Lazy(make)
    with pytest.raises(OSError, match="not yet"):
        lazy()
    assert lazy() == "a value"
