"""Accounts in PostgreSQL: the same as in SQLite, against a real server where there is one."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.auth.accounts import Accounts
from server.auth.users import Users
from server.errors import SetupError, TakenError

BINARIES = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    initdb = BINARIES[-1] if BINARIES else shutil.which("initdb")
    if not initdb:
        pytest.skip("there is no PostgreSQL server on this machine")
    binaries = Path(initdb).parent
    # A server refuses to run as root: there, it runs as the user that the package made.
    user = "postgres" if os.getuid() == 0 else None
    if user and user not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("there is no user postgres to run a server as")
    folder = Path(tempfile.mkdtemp(prefix="quire-pg-"))
    data = folder / "data"
    if user:
        shutil.chown(folder, user)
    start = ["-D", str(data), "-o", f"-k {folder} -c listen_addresses=", "-l", str(folder / "log"), "-w"]
    run = {"check": True, "capture_output": True, "cwd": folder, "user": user}
    subprocess.run([initdb, "-D", str(data), "-A", "trust", "-U", "quire"], **run)
    subprocess.run([str(binaries / "pg_ctl"), "start", *start], **{**run, "capture_output": False})
    try:
        yield f"postgresql://quire@/postgres?host={folder}"
    finally:
        subprocess.run([str(binaries / "pg_ctl"), "stop", "-D", str(data), "-m", "immediate"], **run)
        shutil.rmtree(folder, ignore_errors=True)


def test_tokens_and_users_live_there(url: str, tmp_path: Path) -> None:
    here, there = Accounts(tmp_path, url), Accounts(tmp_path, url)
    token = here.create_token("one", "custom", ["note.find"])
    found = there.find_token(token)
    assert found is not None
    assert found.actor().may("note", "find")
    assert not (tmp_path / ".quire" / "accounts.db").exists()
    with pytest.raises(SetupError, match='there is a token named "one"'):
        there.create_token("one", "read-only")
    assert here.revoke_token("one")
    assert there.find_token(token) is None
    user = Users(here).create("ann", "ann@example.org", "secret12", role="authenticated", confirmed=True)
    assert Users(there).with_password("ann", "secret12") == user
    assert Users(there).update(user.id, {"password": "secret34"}) is not None
    assert Users(here).with_password("ann", "secret12") is None
    here.close()
    there.close()


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="the accounts database can't be used") as caught:
        Accounts(tmp_path, "postgresql://nobody@127.0.0.1:1/none")
    assert "\n" not in str(caught.value)


def test_names_are_one_and_changes_are_counted_there_too(url: str, tmp_path: Path) -> None:
    here, there = Accounts(tmp_path, url), Accounts(tmp_path, url)
    before = Users(there).version
    Users(here).create("zoë", "zoe@example.org", "secret12", role="authenticated", confirmed=True)
    assert Users(there).version == Users(here).version > before
    with pytest.raises(TakenError):
        Users(there).create("ZOË", "other@example.org", "secret12", role="authenticated", confirmed=True)
    here.close()
    there.close()
