"""Tests of the tool upload."""

import tracemalloc
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from server.api.mcp.tools.uploading import split_data_url
from tests.git import git
from tests.mcp.agents import Agent, valid
from tests.mcp.sites import EDITOR, GIF, Make
from tests.sites import Api
from tests.sites import write as write_files


@pytest.fixture
def api(make_site: Make) -> Api:
    return make_site()


@pytest.fixture
def agent(api: Api) -> Agent:
    return Agent(api)


def test_a_successful_upload_is_no_error_however_long_its_texts_are(agent: Agent, api: Api) -> None:
    called = agent.call("upload", data=b64encode(GIF).decode(), name="a.gif", caption="c" * 70_000)
    made = valid("upload", called)
    assert "caption" not in made.data
    assert "Long values are left out" in made.content["note"]
    assert made.content["branch"] == "agent/full"
    assert "uploads/a_" in git(api.root, "ls-tree", "-r", "--name-only", "agent/full")


def test_a_name_with_a_line_break_is_rejected(agent: Agent, api: Api) -> None:
    called = agent.call("upload", data=b64encode(GIF).decode(), name="x\r\nSet-Cookie: a.gif")
    assert called.error["status"] == 400
    assert called.error["message"] == "name must not contain line breaks or other control characters"
    assert "agent/full" not in git(api.root, "branch")


class _Images(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/moved"):
            self.send_response(302)
            self.send_header("Location", "/fog.gif")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "image/gif")
        self.end_headers()
        self.wfile.write(GIF)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def images() -> Iterator[str]:
    """A web server with an image, on 127.0.0.1."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Images)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_file_is_uploaded_to_the_branch(agent: Agent, api: Api) -> None:
    data = b64encode(GIF).decode()
    called = agent.call("upload", data=data, name='a "dot".gif', alternativeText="A dot")
    made = valid("upload", called)
    assert made.data["mime"] == "image/gif"
    assert made.data["alternativeText"] == "A dot"
    assert made.content["branch"] == "agent/full"
    assert made.content["problems"] == []
    assert git(api.root, "ls-tree", "-r", "--name-only", "agent/full", "content/uploads") != ""
    assert not (api.root / "content/uploads").exists()


def test_a_file_is_fetched_from_an_allowed_host_only(make_site: Make, images: str) -> None:
    private = "webhooks_allow: 127.0.0.1\n"
    agent = Agent(make_site(", upload_from: [127.0.0.1]", private))
    assert valid("upload", agent.call("upload", url=f"{images}/fog.gif")).data["name"] == "fog.gif"
    assert "status 302" in agent.call("upload", url=f"{images}/moved.gif").line
    localhost = images.replace("127.0.0.1", "localhost")
    assert "mcp.upload_from are: 127.0.0.1" in agent.call("upload", url=f"{localhost}/fog.gif").line


def test_a_private_address_needs_webhooks_allow(make_site: Make, images: str) -> None:
    agent = Agent(make_site(", upload_from: [127.0.0.1]"))
    assert "not a public address" in agent.call("upload", url=f"{images}/fog.gif").line


def test_the_prefix_of_a_data_url_is_bounded() -> None:
    data = "data:" + ";a" * 200_000 + ";"
    tracemalloc.start()
    try:
        assert split_data_url(data) == ("application/octet-stream", data)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_data_url_is_accepted(agent: Agent) -> None:
    data = f"data:image/gif;base64,{b64encode(GIF).decode()}"
    made = valid("upload", agent.call("upload", data=data, name="buoy.gif"))
    assert (made.data["name"], made.data["mime"]) == ("buoy.gif", "image/gif")
    wrong = data.replace("gif", "png")
    assert agent.call("upload", data=wrong, name="buoy").data["name"] == "buoy.gif"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, 'either "data" or "url"'),
        ({"data": "!", "name": "a.gif"}, "not base64"),
        ({"data": "aa=="}, '"name" is missing'),
        ({"data": "aa==", "name": "img/fog.gif"}, "without folders, such as fog.gif"),
        ({"data": "aa==", "name": "img\\\\"}, "without folders, such as fog.jpg"),
        ({"data": "AAAA", "name": "fog"}, "an extension such as .pdf"),
        ({"documentId": "x"}, "give at least one of name, alternativeText"),
        ({"documentId": "x", "data": "aa=="}, 'omit "data" and "url"'),
        ({"documentId": "x", "name": "a/b"}, "without folders"),
        ({"url": "file:///etc/passwd"}, "must be an address"),
        ({"url": "http://me@127.0.0.1/"}, "must be an address"),
        ({"url": "http://127.0.0.1/a b"}, "must be an address"),
        ({"url": "http://[/"}, "not a URL"),
        ({"url": "https://evil.example/x.gif"}, "mcp.upload_from"),
    ],
)
def test_a_wrong_upload_is_told_why(agent: Agent, arguments: dict[str, Any], says: str) -> None:
    called = agent.call("upload", **arguments)
    assert called.is_error
    assert says in called.line


def test_who_may_not_upload_does_not_make_the_server_fetch(make_site: Make, images: str) -> None:
    api = make_site(", write: direct, upload_from: [127.0.0.1]", "webhooks_allow: 127.0.0.1\n")
    api.token("editor", may=EDITOR)
    assert Agent(api, "editor").call("upload", url=f"{images}/fog.gif").error["status"] == 403


@pytest.mark.parametrize(
    ("data", "name", "called", "says"),
    [
        (GIF, "fog.gif", "fog.gif", ""),
        (GIF, "fog.GIF", "fog.GIF", ""),
        (GIF, "fog.jpg", "fog.gif", "image/gif, so the extension .jpg was replaced with .gif"),
        (GIF, "fog", "fog.gif", ".gif was added to the name"),
        (b"Fog", "fog.png", "fog.txt", "text/plain, so the extension .png was replaced with .txt"),
        (b"Fog", "fog.csv", "fog.csv", ""),
    ],
)
def test_a_name_gets_the_ending_of_its_content(
    agent: Agent, data: bytes, name: str, called: str, says: str
) -> None:
    made = valid("upload", agent.call("upload", data=b64encode(data).decode(), name=name))
    assert made.data["name"] == called
    assert made.data["url"].endswith(called.rpartition(".")[2])
    assert ("note" in made.content) == bool(says)
    assert says in made.content.get("note", "")


def test_the_description_of_a_file_is_changed_on_the_branch(agent: Agent, api: Api) -> None:
    write_files(api.root, {"content/uploads/fog.gif": GIF})
    git(api.root, "add", "-A")
    git(api.root, "commit", "-qm", "Add a file")
    api.site.refresh()
    [made] = api.get("/api/upload/files").body
    texts = {"alternativeText": "A pier", "caption": "Fog", "focalPoint": {"x": 12.5, "y": 80}}
    changed = valid("upload", agent.call("upload", documentId=made["documentId"], **texts))
    assert changed.data | texts == changed.data
    assert changed.data["url"] == made["url"]
    assert api.get(f"/api/upload/files/{made['id']}").body["alternativeText"] is None
    on_branch = api.get(f"/api/upload/files/{made['id']}?at=agent/full").body
    assert (on_branch["alternativeText"], on_branch["name"]) == ("A pier", "fog.gif")
    cleared = valid("upload", agent.call("upload", documentId=made["documentId"], caption=""))
    assert (cleared.data["alternativeText"], cleared.data.get("caption", "")) == ("A pier", "")


def test_an_error_names_the_argument_of_the_tool(agent: Agent) -> None:
    focus = {"x": 500, "y": 1}
    called = agent.call("upload", data=b64encode(GIF).decode(), name="fog.gif", focalPoint=focus)
    assert called.error["status"] == 400
    assert "focalPoint" in called.line
    assert "fileInfo" not in str(called)


def test_a_rejected_upload_leaves_no_branch(agent: Agent, api: Api) -> None:
    assert agent.call("upload", documentId="none", caption="x").error["status"] == 404
    assert agent.call("upload", data="", name="a.gif").is_error
    assert git(api.root, "branch", "--format=%(refname:short)").split() == ["main"]
