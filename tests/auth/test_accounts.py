"""Tests of API tokens: kinds, expiry, revocation while the app is running, and how tokens are stored."""

import os
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from server.auth import passwords
from server.auth.accounts import Accounts
from server.auth.session_key import session_key
from server.documents.timestamps import from_datetime
from server.errors import SetupError
from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, documents, load

FILES = {
    **collection("note", {"text": STRING}),
    **documents("notes", a={"text": "x"}),
    "site.yaml": "roles: {public: {note: [find, findOne]}}",
}
ROOT = Path(__file__).parents[2]


# --- permissions of a token -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    """A site that is shared by all tests that only read."""
    return Api.of(load(tmp_path_factory.mktemp("site"), FILES))


def test_each_kind_may_what_its_name_says(make_api: MakeApi) -> None:
    api = make_api(FILES)
    api.token("reading", "read-only")
    api.token("custom", "custom", ["note.create"])
    for who, may in (("full", (200, 201)), ("reading", (200, 403)), ("custom", (403, 201))):
        assert (api.get("/api/notes", who).status, api.post("/api/notes", {}, who).status) == may


@pytest.mark.parametrize("header", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer  {} "])
def test_how_a_token_is_sent(make_api: MakeApi, header: str) -> None:
    api = make_api({**FILES, "site.yaml": ""})
    token = api.token("reading", "read-only")
    headers = {"Authorization": header.format(token)}
    assert api.get("/api/notes", "public", headers=headers).status == 200


@pytest.mark.parametrize(
    "token", ["nope", "bifolio_" + "0" * 64, "é", "a.b.c", "..", "x" * 10_000, "' or 1=1 --"]
)
def test_a_token_that_nobody_gave_is_refused_even_where_the_public_is_not(api: Api, token: str) -> None:
    assert api.get("/api/notes", "public").status == 200
    error = api.get("/api/notes", token).error
    assert error == {
        "status": 401,
        "name": "UnauthorizedError",
        "message": "Missing or invalid credentials",
        "details": {},
    }


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "Token x", "nonsense"])
def test_other_headers_are_the_public(api: Api, header: str) -> None:
    assert api.get("/api/notes", "public", headers={"Authorization": header}).status == 200


# --- while the app runs --------------------------------------------------------------------------


def test_a_token_of_another_process_counts_at_once_and_revoked_no_more(make_api: MakeApi) -> None:
    api = make_api({**FILES, "site.yaml": ""})
    assert api.get("/api/notes").status == 200
    others = Accounts(api.site.root)
    api.tokens["new"] = others.create_token("new", "read-only")
    for _ in range(3):
        assert api.get("/api/notes", "new").status == 200
    assert others.revoke_token("new")
    assert api.get("/api/notes", "new").status == 401
    assert api.get("/api/notes").status == 200
    others.close()


def test_a_token_of_the_same_process_is_revoked_as_well(make_api: MakeApi) -> None:
    api = make_api(FILES)
    api.token("new", "read-only")
    assert api.get("/api/notes", "new").status == 200
    assert api.accounts.revoke_token("new")
    assert api.get("/api/notes", "new").status == 401
    assert not api.accounts.revoke_token("new")


def test_a_revoked_name_is_free_again(make_api: MakeApi) -> None:
    api = make_api(FILES)
    first = api.token("new", "read-only")
    api.accounts.revoke_token("new")
    second = api.token("new", "full-access")
    assert first != second
    assert api.get("/api/notes", first).status == 401
    assert api.post("/api/notes", {}, second).status == 201


def test_a_token_expires_under_the_running_app(make_api: MakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api = make_api(FILES)
    api.token("short", "read-only", expires=timedelta(hours=1))
    api.token("long", "read-only", expires=timedelta(days=1))
    assert api.get("/api/notes", "short").status == 200
    later = from_datetime(datetime.now(UTC) + timedelta(hours=2))
    monkeypatch.setattr("server.auth.accounts.now", lambda: later)
    assert api.get("/api/notes", "short").status == 401
    assert api.get("/api/notes", "long").status == 200
    assert [(t.name, t.expired) for t in api.accounts.tokens()] == [
        ("full", False),
        ("long", False),
        ("short", True),
    ]


def test_a_name_is_given_once(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    accounts.create_token("a", "read-only")
    with pytest.raises(SetupError, match='a token named "a" already exists'):
        accounts.create_token("a", "full-access")
    accounts.close()


def test_a_file_elsewhere_and_what_is_no_database(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path, f"sqlite:///{tmp_path}/others.db")
    assert accounts.find_token(accounts.create_token("a", "read-only"))
    accounts.close()
    assert (tmp_path / "others.db").exists()
    assert not (tmp_path / ".bifolio").exists()
    with pytest.raises(SetupError, match="can't be used: the URL must be postgresql://"):
        Accounts(tmp_path, "mysql://localhost/accounts")


# --- stored tokens --------------------------------------------------------------------------------


def test_only_a_hash_is_kept(make_api: MakeApi) -> None:
    api = make_api(FILES)
    token = api.token("new", "read-only")
    api.get("/api/notes", "new")
    assert len(token) == len("bifolio_") + 64
    for path in api.site.root.rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes(), path
            assert token[6:].encode() not in path.read_bytes(), path
    with sqlite3.connect(api.site.root / ".bifolio/accounts.db") as database:
        (kept,) = database.execute("select hash from tokens where name = 'new'").fetchone()
    database.close()
    assert api.get("/api/notes", kept).status == 401


def test_nobody_else_can_read_the_accounts(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    accounts.create_token("a", "read-only")
    folder = tmp_path / ".bifolio"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"
    for path in folder.glob("accounts.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    accounts.close()


def test_what_was_found_open_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / ".bifolio"
    Accounts(tmp_path).close()
    session_key(tmp_path)
    opened = (folder, folder / "accounts.db", folder / "jwt.key")
    for path in opened:
        path.chmod(0o777)
    Accounts(tmp_path).close()
    session_key(tmp_path)
    assert [stat.S_IMODE(path.stat().st_mode) for path in opened] == [0o700] * 3


def test_a_site_that_can_not_be_written_is_named_with_the_user(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path\n"
        "from server.auth.session_key import session_key; from server.errors import SetupError\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "try: session_key(Path())\n"
        "except SetupError as error: print(error)\n"
    )
    tmp_path.chmod(0o555)
    environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    tmp_path.chmod(0o755)
    assert told.stdout.startswith(f"{tmp_path}: the user ")
    ending = (
        " can't write to the folder, in which Bifolio must create .bifolio/. "
        "Change the folder's owner, or run Bifolio as its owner.\n"
    )
    assert told.stdout.endswith(ending)


def test_two_processes_make_tokens_at_once(tmp_path: Path) -> None:
    """Several processes use a site for the first time. All of them must find or create the tables, and no
    token may get lost.
    """
    code = (
        "import sys; from pathlib import Path; from server.auth.accounts import Accounts\n"
        "accounts = Accounts(Path(sys.argv[1]))\n"
        "print(*[accounts.create_token(f'{sys.argv[2]}{i}', 'read-only') for i in range(10)])"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    ends = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [0, 0], ends
    made = [token for out, _ in ends for token in out.split()]
    accounts = Accounts(tmp_path)
    assert len(made) == len(set(made)) == 20
    assert len(accounts.tokens()) == 20
    assert all(accounts.find_token(token) for token in made)
    accounts.close()


def test_where_nobody_is_the_password_takes_as_long() -> None:
    assert not passwords._HASHER.check_needs_rehash(passwords._NOBODY)
    assert not passwords.check_password(None, "")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux lists the open files of a process")
def test_no_file_stays_open_when_accounts_are_closed(tmp_path: Path) -> None:
    def opened() -> list[str]:
        names = (os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd"))
        return [os.readlink(name) for name in names if os.path.lexists(name)]

    accounts = Accounts(tmp_path)
    token = accounts.create_token("full", "full-access")
    assert accounts.find_token(token)
    assert any(str(tmp_path) in path for path in opened())
    accounts.close()
    accounts.close()
    assert not any(str(tmp_path) in path for path in opened())
