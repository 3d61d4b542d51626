"""Tests of the command line: tokens, and the start, error messages and shutdown of a server."""

import os
import platform
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from server import __version__
from server.api.wsgi_server import bind, listen
from server.auth.accounts import Accounts
from server.commands.cli import COMMANDS, WINDOWS_MESSAGE, main
from server.errors import SetupError
from tests.git import commit_all, git
from tests.servers import free_port, get, start, wait
from tests.sites import STRING, collection, documents, write

ROOT = Path(__file__).parents[2]
FILES = {
    **collection("article", {"title": STRING}),
    **documents("articles", a={"title": "A"}),
    "site.yaml": "name: Test\nroles:\n  public:\n    article: [find]\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)


def token(root: Path, *arguments: str) -> Result:
    return run("token", *arguments, "--site", str(root))


# --- help ----------------------------------------------------------------------------------------


def test_the_help_names_every_command_and_loads_none() -> None:
    code = (
        "import sys; from server.commands.cli import COMMANDS, main\n"
        "main(['--help'], standalone_mode=False)\n"
        "print([entry.module for entry in COMMANDS.values() if entry.module in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "said"),
    [("sevre", 'Did you mean "serve"?'), ("help", "Run bifolio --help"), ("zzz", 'No such command "zzz".')],
)
def test_a_command_that_there_is_not_is_told_what_was_meant(typed: str, said: str) -> None:
    done = run(typed)
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_a_system_without_file_locks_is_told_in_one_line(name: str) -> None:
    without = "import sys; sys.modules['fcntl'] = None; from server.commands.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", without, name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", WINDOWS_MESSAGE + "\n")
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert WINDOWS_MESSAGE in page


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: main {name} ")


def test_the_version_says_the_commit_and_the_python() -> None:
    told = run("--version").stdout
    commit = git(ROOT, "rev-parse", "--short", "HEAD").strip()
    assert told == f"bifolio {__version__} (commit {commit}, Python {platform.python_version()})\n"


# --- tokens --------------------------------------------------------------------------------------


def test_a_token_is_the_last_line_of_stdout(root: Path) -> None:
    done = token(root, "create", "ci", "--type", "read-only")
    assert done.exit_code == 0
    assert re.fullmatch(r"bifolio_[0-9a-f]{64}\n", done.stdout)
    assert "not be shown again" in done.stderr
    accounts = Accounts(root)
    assert accounts.find_token(done.stdout.strip())
    accounts.close()


def test_tokens_are_listed_and_revoked(root: Path) -> None:
    assert token(root, "list").stdout == ""
    may = ["--permission", "article.find", "--permission", "upload.find"]
    made = [
        token(root, "create", "one", "--type", "custom", *may).stdout.strip(),
        token(root, "create", "two", "--type", "full-access", "--expires", "30d").stdout.strip(),
    ]
    listed = token(root, "list").stdout
    assert "one  custom  for ever  article.find upload.find" in listed
    assert re.search(r"two  full-access  until \d{4}-\d\d-\d\dT", listed)
    assert not any(secret in listed for secret in made)
    assert token(root, "revoke", "one").stdout == "revoked one\n"
    assert "one" not in token(root, "list").stdout


def test_the_site_is_this_folder_or_the_one_of_the_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("token", "create", "a", "--type", "read-only", BIFOLIO_SITE=str(root)).exit_code == 0
    monkeypatch.chdir(root)
    assert "a  read-only" in run("token", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "x", "--type", "custom"], "requires at least one permission"),
        (
            ["create", "x", "--type", "read-only", "--permission", "article.find"],
            "can't have additional permissions",
        ),
        (["create", "x", "--type", "custom", "--permission", "artcle.find"], 'Did you mean "article"'),
        (
            ["create", "x", "--type", "custom", "--permission", "article.fnd"],
            'unknown action "fnd" in the permission for article',
        ),
        (["create", "x", "--type", "custom", "--permission", "find"], 'unknown content type ""'),
        (
            ["create", "x", "--type", "custom", "--permission", "upload.create"],
            'unknown action "create" in the permission for upload',
        ),
        (["create", "x", "--type", "read-only", "--expires", "soon"], "must be a duration"),
        (["create", "x", "--type", "read-only", "--expires", "9999y"], "must be a duration"),
        (["create", "taken", "--type", "read-only"], 'a token named "taken" already exists'),
        (["revoke", "takn"], 'unknown token "takn"'),
    ],
)
def test_errors_are_one_line_and_status_1(root: Path, arguments: list[str], words: str) -> None:
    token(root, "create", "taken", "--type", "read-only")
    done = token(root, *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("bifolio: ")
    assert words in done.stderr


def test_a_type_of_token_that_is_not_known_is_a_wrong_use(root: Path) -> None:
    done = token(root, "create", "x", "--type", "admin")
    assert done.exit_code == 2
    assert "full-access" in done.stderr


def test_a_site_that_is_not_there(tmp_path: Path) -> None:
    for command in (["token", "list"], ["serve"]):
        done = run(*command, "--site", str(tmp_path / "none"))
        assert done.exit_code == 1
        assert done.stderr.startswith("bifolio: ")
        assert "the folder does not exist" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["serve"],
        ["check"],
        ["export", "out"],
        ["types"],
        ["search", "word"],
        ["token", "list"],
        ["token", "create", "x", "--type", "read-only"],
        ["user", "list"],
    ],
    ids=" ".join,
)
def test_in_a_folder_that_is_no_site_nothing_is_done(tmp_path: Path, command: list[str]) -> None:
    write(tmp_path, {"content/articles/a.md": "Not a site yet\n"})
    done = run(*command, "--site", str(tmp_path))
    assert done.exit_code == 1
    assert done.stderr == (
        f"bifolio: {tmp_path} is not a site: site.yaml and content-types/ are missing. "
        "Create a site with `bifolio init`.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["content"]


def test_a_site_that_is_not_checked_out_is_no_reason_to_make_one(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    write(tmp_path / "made", FILES)
    commit_all(tmp_path / "made")
    git(tmp_path, "clone", "-q", "--no-checkout", "made", "clone")
    done = run("check", "--site", str(clone))
    said = "the site's files are in git, but are not checked out. Run `git checkout HEAD -- .`."
    assert (done.exit_code, done.stderr) == (1, f"bifolio: {clone}: {said}\n")
    git(clone, "checkout", "HEAD", "--", ".")
    done = run("check", "--site", str(clone))
    assert (done.exit_code, "not checked out" in done.output) == (0, False), done.output


# --- serve ---------------------------------------------------------------------------------------


@pytest.fixture
def served(root: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    port = free_port()
    process = start(root, port, real=True)
    try:
        wait(process, port)
        yield process, port
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_answers_until_it_is_told_to_end(
    served: tuple[subprocess.Popen[str], int], number: signal.Signals
) -> None:
    process, port = served
    assert get(port, "/api/articles")[0] == 200
    assert get(port, "/api/none")[0] == 404
    began = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert time.monotonic() - began < 5
    assert process.returncode == 0, err
    assert "Test: 1 content type" in out
    assert "1 article" in out
    with pytest.raises(OSError, match="refused"):
        get(port, "/_health")


def test_a_request_that_is_under_way_is_finished(
    served: tuple[subprocess.Popen[str], int], root: Path
) -> None:
    process, port = served
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET /api/articles HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        time.sleep(0.1)  # the server is handling the request once it has read it
        process.send_signal(signal.SIGTERM)
        answer = b""
        while part := slow.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"title":"A"' in answer
    process.communicate(timeout=10)
    assert process.returncode == 0


def refused(root: Path, port: int) -> str:
    """Start a server that must fail. Return the single line that it prints."""
    process = start(root, port, real=True)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, ""), err
    assert err.count("\n") == 1
    return err


def test_a_port_that_is_in_use(root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in refused(root, port)


def test_of_two_servers_that_begin_at_once_on_a_port_one_is_told(root: Path) -> None:
    """Both servers can bind the same address until one of them listens."""
    first = bind("127.0.0.1", free_port())
    host, port = first.getsockname()
    second = bind(host, port)
    with first, second:
        listen(first)
        fix = r"Choose a different port with --port \(with make: PORT=8080\)\."
        with pytest.raises(SetupError, match=f"{host}:{port}: can't listen: .* {fix}"):
            listen(second)


@pytest.mark.parametrize(
    ("path", "text", "where", "words"),
    [
        ("site.yaml", "name: x\napi:\n  page_sise: 3\n", "site.yaml:3", "page_siz"),
        (
            "site.yaml",
            "name: x\nroles:\n  public:\n    article: [fnd]\n",
            "site.yaml:4",
            'Did you mean "find"',
        ),
        ("site.yaml", "auth:\n  session: 99999y\n", "site.yaml:2", "must be a duration"),
        ("site.yaml", "name: [x\n", "site.yaml:", "invalid YAML"),
        (
            "site.yaml",
            "locales: {default: en, available: [fr]}\n",
            "site.yaml:1",
            'locales.default must be one of the locales in locales.available (found "en")',
        ),
        ("content-types/article.json", '{\n"info": {\n', "content-types/article.json:", "invalid JSON"),
        (
            "content-types/b.json",
            collection("b", {"x": {"type": "strng"}})["content-types/b.json"],
            "content-types/b.json:",
            'Did you mean "string"',
        ),
        (
            "content-types/b.json",
            collection(
                "b", {"x": {"type": "relation", "relation": "manyToOne", "target": "api::artcle.artcle"}}
            )["content-types/b.json"],
            "content-types/b.json:",
            "api::article.article",
        ),
    ],
)
def test_a_site_that_is_broken_is_named_with_file_and_line(
    root: Path, path: str, text: str, where: str, words: str
) -> None:
    (root / path).write_text(text)
    line = run("serve", "--site", str(root), "--port", str(free_port()))
    assert (line.exit_code, line.stdout) == (1, "")
    assert line.stderr.count("\n") == 1
    assert re.match(rf"bifolio: {re.escape(where)}[\d:]*: ", line.stderr), line.stderr
    assert words in line.stderr


def test_a_broken_schema_ends_the_process_with_one_line(root: Path) -> None:
    (root / "content-types/article.json").write_text("{")
    assert "content-types/article.json:1" in refused(root, free_port())
