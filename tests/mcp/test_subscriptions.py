"""Tests of subscriptions to changes, over both doors and in both versions of the protocol."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification, TextResourceContents

from server.api.mcp import changes
from server.api.mcp.changes import EventCursor, NewEvents
from server.api.mcp.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from server.api.mcp.protocol import SUBSCRIPTION_KEY
from server.api.mcp.role_identities import RoleIdentities
from server.api.mcp.stdio import serve
from server.api.mcp.subscription import MAX_URIS, Subscription, WatchedResource
from server.api.wsgi_server import make_app
from server.auth.accounts import Accounts
from server.auth.session_key import session_key
from server.events.model import Event
from server.service.opening import Mode, open_site
from tests.mcp.agents import LEGACY, MODERN, Agent, headers_of, message
from tests.mcp.sites import FILES, SETTINGS
from tests.mcp.test_clients import by_http, command
from tests.servers import free_port, serving
from tests.sites import Api, make, write

ARTICLE, TAG = "api::article.article", "api::tag.tag"
FOG, SCHEMA = "bifolio://article/fog", "bifolio://schema/article"
TIMEOUT_S = 20


# --- requests -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    api = make(tmp_path_factory.mktemp("site"), FILES)
    yield api
    api.accounts.close()


def first_message(agent: Agent, **wanted: Any) -> Any:
    """Subscribe and return the first message of the stream."""
    answer = agent.post("subscriptions/listen", {"notifications": wanted})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    head, _, data = answer.raw.decode().strip().partition("\ndata: ")
    assert head == "event: message"
    return json.loads(data)


def test_a_subscription_is_acknowledged_first(api: Api) -> None:
    wanted = [FOG, "bifolio://none/x", SCHEMA, "file:///etc/passwd", FOG, "bifolio://article/later"]
    found = first_message(
        Agent(api), resourcesListChanged=True, toolsListChanged=True, resourceSubscriptions=wanted
    )
    assert found == {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {
            "_meta": {SUBSCRIPTION_KEY: 1},
            "notifications": {
                "resourcesListChanged": True,
                "resourceSubscriptions": [FOG, SCHEMA, "bifolio://article/later"],
            },
        },
    }


def test_each_resource_is_watched_once_however_its_uri_is_spelled(api: Api) -> None:
    spellings = [f"{FOG}?{'&' * n}locale=en{'&' * n}" for n in range(1, 90)]
    others = [
        FOG,
        "bifolio://articles/f%6Fg",
        f"{FOG}?status=published",
        "bifolio://api%3A%3Aarticle.article/fog",
    ]
    french, draft = f"{FOG}?locale=fr", f"{FOG}?status=draft"
    wanted = [
        *spellings,
        *others,
        french,
        draft,
        f"{draft}&locale=en",
        f"{FOG}?locale=xx",
        SCHEMA,
        f"{SCHEMA}s",
    ]
    found = first_message(Agent(api), resourceSubscriptions=wanted)
    watched = found["params"]["notifications"]["resourceSubscriptions"]
    assert watched == [spellings[0], french, draft, SCHEMA]


def test_resources_of_types_that_the_caller_can_not_see_are_left_out(api: Api) -> None:
    found = first_message(Agent(api, "public"), resourceSubscriptions=[FOG, SCHEMA, "bifolio://tag/sea"])
    assert found["params"]["notifications"] == {"resourceSubscriptions": ["bifolio://tag/sea"]}


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        [],
        {"resourcesListChanged": 1},
        {"resourceSubscriptions": FOG},
        {"resourceSubscriptions": [7]},
        {"resourceSubscriptions": [FOG] * (MAX_URIS + 1)},
        {"resourceSubscriptions": ["bifolio://article/" + "a" * 3000]},
    ],
)
def test_a_wrong_subscription_is_refused(api: Api, wanted: Any) -> None:
    answer = Agent(api).post("subscriptions/listen", {"notifications": wanted})
    assert answer.body["error"]["code"] == INVALID_PARAMS


def test_who_is_not_known_can_not_listen(api: Api) -> None:
    answer = Agent(api, "nonsense").post("subscriptions/listen", {"notifications": {}})
    assert answer.status == 401


def test_the_older_versions_have_no_subscriptions_over_http(api: Api) -> None:
    agent = Agent(api, version=LEGACY)
    for method in ("subscriptions/listen", "resources/subscribe", "resources/unsubscribe"):
        answer = agent.post(method, {"uri": FOG, "notifications": {}})
        assert answer.body["error"]["code"] == METHOD_NOT_FOUND
    about = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    assert agent.ask("initialize", {"protocolVersion": LEGACY, **about})["capabilities"]["resources"] == {}
    found = Agent(api).ask("server/discover")["capabilities"]["resources"]
    assert found == {"subscribe": True, "listChanged": True}


# --- events ---------------------------------------------------------------------------------------

DOCUMENT, TYPE = WatchedResource(FOG, ARTICLE, "fog", "en"), WatchedResource(SCHEMA, ARTICLE, is_schema=True)


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        (Event("entry.update", ARTICLE, "fog", "en"), [DOCUMENT]),
        (Event("entry.delete", ARTICLE, "fog"), [DOCUMENT]),
        (Event("entry.update", ARTICLE, "fog", "fr"), []),
        (Event("entry.update", ARTICLE, "tide", "en"), []),
        (Event("entry.update", TAG, "fog", "en"), []),
        (Event("schema.update", ARTICLE), [TYPE]),
        (Event("schema.update", "shared.quote"), [TYPE]),
        (Event("schema.update", TAG), []),
        (Event("site.update", "", counts={ARTICLE: {}}), [DOCUMENT]),
        (Event("site.update", "", counts={TAG: {}}), []),
    ],
)
def test_an_event_concerns_some_resources(event: Event, changed: list[WatchedResource]) -> None:
    assert [one for one in (DOCUMENT, TYPE) if one.is_changed_by(event)] == changed


def test_only_some_events_change_the_list() -> None:
    listening = Subscription(7, watches_list=True)
    assert [*listening.notifications(Event("entry.update", ARTICLE, "fog"))] == []
    [changed] = listening.notifications(Event("entry.create", ARTICLE, "new"))
    assert changed["method"] == "notifications/resources/list_changed"
    assert changed["params"]["_meta"] == {SUBSCRIPTION_KEY: 7}
    assert [*Subscription(7).notifications(Event("entry.create", ARTICLE, "new"))] == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", FILES)
    return tmp_path / "site"


def test_a_local_agent_is_told_only_what_it_may_see(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts(root)
    token = accounts.create_token("agent", "full-access")
    opened = open_site(root, Mode.COMMAND)
    app, database = make_app(opened.site, session_key(root), opened.past), opened.recorder.database
    full, public = EventCursor(app, f"Bearer {token}", database), EventCursor(app, "", database)
    assert full.read() == public.read() == NewEvents()
    edit(root, "fog", "Mist")
    told, untold = full.read(), public.read()
    assert told
    assert {event.document_id for event in told.events} == {"fog"}
    assert untold == full.read() == NewEvents()
    monkeypatch.setattr(changes, "MAX_EVENTS", 0)
    edit(root, "fog", "Haze")
    assert full.read() == NewEvents(is_incomplete=True)
    accounts.revoke_token("agent")
    accounts.close()
    assert full.read() is None


def test_subscriptions_end_if_the_role_is_removed(root: Path) -> None:
    opened = open_site(root, Mode.COMMAND)
    site, key = opened.site, session_key(root)
    identities = RoleIdentities("editor", site.folder, site.state.settings, key=key)
    app = make_app(site, key, opened.past, identities=identities)
    told = EventCursor(app, "", opened.recorder.database)
    assert told.read() == NewEvents()
    (root / "site.yaml").write_text(SETTINGS.replace("  editor:", "  writer:"))
    assert told.read() is None


def served_lines(root: Path, lines: Iterator[bytes]) -> list[Any]:
    """Serve lines as `bifolio mcp` does, and return the messages that it sends."""
    accounts, opened = Accounts(root), open_site(root, Mode.COMMAND)
    authorization = f"Bearer {accounts.create_token('agent', 'full-access')}"
    accounts.close()
    app = make_app(opened.site, session_key(root), opened.past)
    target = BytesIO()
    serve(app, authorization, opened.recorder.database, Lines(lines), target)  # type: ignore[arg-type]
    return [json.loads(line) for line in target.getvalue().splitlines()]


class Lines:
    """Standard input with lines that are made one by one."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def readline(self, size: int) -> bytes:
        return next(self._lines, b"")


def test_a_local_agent_survives_the_deployment_of_a_folder(root: Path) -> None:
    get = {"name": "get", "arguments": {"type": "article", "documentId": "fog"}}
    away = root.with_name("away")

    def lines() -> Iterator[bytes]:
        def line(id_: Any) -> bytes:
            return json.dumps(message("tools/call", get, MODERN, id_)).encode() + b"\n"

        yield line(1)
        root.rename(away)
        yield line(2)
        yield b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'
        edit(away, "fog", "Mist")
        away.rename(root)
        yield line(3)

    first, second, third = served_lines(root, lines())
    assert first["result"]["structuredContent"]["data"]["title"] == "Fog"
    assert (second["id"], second["error"]["code"]) == (2, INTERNAL_ERROR)
    assert str(root) not in json.dumps(second)
    assert third["result"]["structuredContent"]["data"]["title"] == "Mist"


def test_a_local_subscription_ends_with_a_last_update_if_the_token_is_revoked(root: Path) -> None:
    def lines() -> Iterator[bytes]:
        subscribe = message("resources/subscribe", {"uri": FOG}, LEGACY, 1)
        yield json.dumps(subscribe).encode() + b"\n"
        accounts = Accounts(root)
        accounts.revoke_token("agent")
        accounts.close()
        # The server looks for changes before it processes this message.
        yield json.dumps(message("resources/subscribe", {"uri": FOG}, LEGACY, 2)).encode() + b"\n"

    subscribed, updated, *_ = served_lines(root, lines())
    assert subscribed["result"] == {}
    assert (updated["method"], updated["params"]) == ("notifications/resources/updated", {"uri": FOG})


def test_a_missing_folder_is_logged_once(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened = open_site(root, Mode.COMMAND)
    app = make_app(opened.site, session_key(root), opened.past)
    told, away = EventCursor(app, "", opened.recorder.database), root.with_name("away")
    for _ in range(2):
        assert told.read() == NewEvents()
        root.rename(away)
        assert [told.read() for _ in range(3)] == [NewEvents()] * 3
        away.rename(root)
    assert caplog.text.count("changes can't be read") == 2


# --- clients --------------------------------------------------------------------------------------


def edit(root: Path, name: str, title: str) -> None:
    """Save an article as text editors do: write a new file, then rename it."""
    beside = root / "content/articles" / f".{name}.new"
    beside.write_text(json.dumps({"title": title}))
    beside.replace(root / "content/articles" / f"{name}.json")


async def watch(connecting: AbstractAsyncContextManager[Client], root: Path) -> list[str]:
    """Return the changes of which a client is notified after two edits and a new document."""
    found = []
    async with connecting as client, asyncio.timeout(TIMEOUT_S):
        uris = [FOG, "bifolio://none/x"]
        async with client.listen(resources_list_changed=True, resource_subscriptions=uris) as subscription:
            assert subscription.honored.resource_subscriptions == [FOG]
            edit(root, "tide", "Not watched")
            edit(root, "fog", "Mist")
            events = aiter(subscription)
            found.append(repr(await anext(events)))
            [content] = (await client.read_resource(FOG)).contents
            assert "Mist" in content.text
            edit(root, "new", "New")
            while "ListChanged" not in found[-1]:
                found.append(repr(await anext(events)))
    return found


def check_watched(found: list[str]) -> None:
    assert len([one for one in found if FOG in one]) >= 1
    assert not [one for one in found if "tide" in one]
    assert "ListChanged" in found[-1]


def test_a_client_listens_over_http(root: Path) -> None:
    accounts = Accounts(root)
    token = accounts.create_token("agent", "full-access")
    accounts.close()
    with serving(root, free_port()) as url:
        check_watched(asyncio.run(watch(by_http(url, token, MODERN), root)))


def test_a_client_listens_over_stdio(root: Path) -> None:
    check_watched(asyncio.run(watch(Client(command(root, "--as", "full-access"), mode=MODERN), root)))


def test_a_local_client_is_told_of_writes_through_a_server(root: Path) -> None:
    accounts, port = Accounts(root), free_port()
    token = accounts.create_token("editor", "full-access")
    accounts.close()

    def write_title() -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("PUT", "/api/articles/fog", '{"data": {"title": "Mist"}}', headers)
        assert connection.getresponse().status == 200
        connection.close()

    async def run() -> None:
        connecting = Client(command(root, "--as", "full-access"), mode=MODERN)
        async with (
            connecting as client,
            asyncio.timeout(TIMEOUT_S),
            client.listen(resource_subscriptions=[FOG]) as subscription,
        ):
            await asyncio.to_thread(write_title)
            assert await anext(aiter(subscription)) == ResourceUpdated(FOG)
            [content] = (await client.read_resource(FOG)).contents
            assert isinstance(content, TextResourceContents)
            assert "Mist" in content.text

    with serving(root, port):
        asyncio.run(run())


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_a_client_subscribes_over_stdio(root: Path) -> None:
    """In the older version, a client subscribes to each resource."""
    received: asyncio.Queue[str] = asyncio.Queue()

    async def note(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await received.put(str(message.params.uri))

    async def run() -> None:
        parameters = command(root, "--as", "full-access")
        async with Client(parameters, mode="legacy", message_handler=note) as client:
            async with asyncio.timeout(TIMEOUT_S):
                await client.session.subscribe_resource(FOG)
                await client.session.subscribe_resource(SCHEMA)
                edit(root, "fog", "Mist")
                assert await received.get() == FOG
                await client.session.unsubscribe_resource(FOG)
                edit(root, "fog", "Haze")
                kind = root / "content-types/article.json"
                kind.write_text(kind.read_text().replace('"maxLength": 60', '"maxLength": 61'))
                assert await received.get() == SCHEMA
            assert received.empty()

    asyncio.run(run())


class Listener:
    """A client that reads a stream of notifications over HTTP."""

    def __init__(self, port: int, **wanted: Any) -> None:
        params = {"notifications": wanted}
        headers = {"Content-Type": "application/json", **headers_of("subscriptions/listen", params, MODERN)}
        sent = message("subscriptions/listen", params, MODERN, "me")
        self.connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self.connection.request("POST", "/mcp", json.dumps(sent), headers)
        self.answer = self.connection.getresponse()

    def messages(self) -> Iterator[Any]:
        for line in self.answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def test_a_server_that_ends_tells_its_listeners(root: Path) -> None:
    port = free_port()
    with serving(root, port):
        listener = Listener(port, resourcesListChanged=True)
        messages = listener.messages()
        assert next(messages)["method"] == "notifications/subscriptions/acknowledged"
    ended = list(messages)
    listener.close()
    assert ended[-1]["id"] == "me"
    assert ended[-1]["result"]["resultType"] == "complete"
    assert ended[-1]["result"]["_meta"][SUBSCRIPTION_KEY] == "me"


def test_the_limit_of_streams_includes_subscriptions(root: Path) -> None:
    (root / "site.yaml").write_text(SETTINGS + "events: {streams: 2}\n")
    port = free_port()
    with serving(root, port, "--workers=1"):
        listeners = [Listener(port) for _ in range(3)]
        assert [one.answer.status for one in listeners] == [200, 200, 503]
        for one in listeners:
            one.close()
