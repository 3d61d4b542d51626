"""Sites that were served by an old version with another name: accounts, keys and unfinished writes must be
kept.
"""

import socket
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from server.paths import STATE_FOLDER
from server.tools.former_folder import FORMER_FOLDER
from tests.commands.test_cli import run
from tests.git import commit_all
from tests.servers import free_port, get, start, stop, wait
from tests.sites import STRING, collection, documents, write

FILES = {
    **collection("article", {"title": STRING}),
    **documents("articles", a={"title": "A"}),
    "site.yaml": "name: Test\nsearch: {index: false}\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A site whose state folder has the former name. The folder contains a token."""
    return former_site(tmp_path)[0]


def former_site(folder: Path) -> tuple[Path, str]:
    """Create a site whose state folder has the former name. Return the folder, and a token with read
    access.
    """
    write(folder, FILES)
    made = run("token", "create", "build", "--type", "read-only", "--site", str(folder))
    (folder / STATE_FOLDER).rename(folder / FORMER_FOLDER)
    return folder, made.stdout.strip()


def test_the_first_command_renames_the_folder_and_says_so_once(root: Path) -> None:
    first, second = (run("token", "list", "--site", str(root)) for _ in range(2))
    assert first.stderr == (
        ".quire/ was renamed to .bifolio/, including the accounts and keys in it, "
        "because Quire is now called Bifolio\n"
    )
    assert "build" in first.stdout
    assert second.stderr == ""
    assert second.stdout == first.stdout
    assert not (root / FORMER_FOLDER).exists()


def test_tokens_of_before_are_valid_on_a_server(tmp_path: Path) -> None:
    folder, token = former_site(tmp_path)
    port = free_port()
    process = start(folder, port)
    try:
        wait(process, port)
        url = f"http://127.0.0.1:{port}/api/articles"
        with urlopen(Request(url, headers={"Authorization": f"Bearer {token}"}), timeout=10) as response:
            assert response.status == 200
        assert get(port, "/api/articles")[0] == 403  # without the token
    finally:
        stop(process)


def test_a_running_server_keeps_its_folder(root: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(root / FORMER_FOLDER / "serve-1337.sock"))
        server.listen()
        refused = run("token", "list", "--site", str(root))
        assert refused.exit_code == 1
        assert "a running server is still using this folder. Stop that server first" in refused.stderr
        assert (root / FORMER_FOLDER).is_dir()
    # The socket now belongs to a server that has ended.
    assert run("token", "list", "--site", str(root)).exit_code == 0


def test_keys_that_others_may_have_chosen_are_not_adopted(root: Path) -> None:
    (root / FORMER_FOLDER / ".gitignore").unlink()
    commit_all(root)
    refused = run("check", "--site", str(root))
    assert refused.exit_code == 1
    assert ".quire: is tracked by git, although it contains the site's secret keys" in refused.stderr
    assert not (root / STATE_FOLDER).exists()


def test_a_link_is_not_adopted(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "state"
    (root / FORMER_FOLDER).rename(elsewhere)
    (root / FORMER_FOLDER).symlink_to(elsewhere)
    assert ".quire: is a symbolic link" in run("check", "--site", str(root)).stderr
    assert elsewhere.is_dir()


def test_a_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    # Getty's Quire stores its version in a file of this name.
    write(tmp_path, {**FILES, FORMER_FOLDER: "1.0.0\n"})
    assert run("token", "list", "--site", str(tmp_path)).exit_code == 0
    assert (tmp_path / FORMER_FOLDER).read_text() == "1.0.0\n"


def test_a_folder_beside_the_new_one_stays(root: Path) -> None:
    (root / STATE_FOLDER).mkdir()
    assert run("token", "list", "--site", str(root)).stderr == ""
    assert (root / FORMER_FOLDER / "accounts.db").exists()
