"""Tests that no output of a server or command contains a secret, and that some secrets are stored only as
hashes.
"""

import os
import stat
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from json import dumps, loads
from pathlib import Path

import pytest

from server.auth.accounts import Accounts
from server.auth.owner import make_key
from server.auth.session_key import rotate_key, session_key
from server.auth.users import Users
from tests.git import git
from tests.receivers import Received, receiving
from tests.servers import children, free_port, start, stop, wait
from tests.sites import STRING, collection, write
from tests.waiting import until

MARK = "zyxsecret"
SIGNING = b64encode(f"{MARK}-signing-of-webhooks-of-a-site".encode()).decode()
ENVIRONMENT = {
    "BIFOLIO_JWT_SECRET": f"{MARK}-jwt-" + 32 * "j",
    "BIFOLIO_JWT_SECRET_PREVIOUS": f"{MARK}-previous-" + 32 * "j",
    "BIFOLIO_GIT_HOOK_SECRET": f"{MARK}-hook",
    "BIFOLIO_MAIL_PASSWORD": f"{MARK}-mail",
    "PGPASSWORD": f"{MARK}-postgres",
    "AWS_ACCESS_KEY_ID": f"{MARK}-s3-id",
    "AWS_SECRET_ACCESS_KEY": f"{MARK}-s3-key",
    "RATE_STORE": f"redis://:{MARK}-redis@127.0.0.1:1/0",
    "SIGNING": f"whsec_{SIGNING}",
    "HEADER": f"Bearer {MARK}-header",
}
# Code that makes requests to an unreachable bucket fail immediately.
IMPATIENT = (
    "from server.storage.bucket import bucket; bucket.MAX_RETRIES, bucket.COMMAND_REQUEST_TIMEOUT_S = 0, 1"
)
NOBODY = "127.0.0.1:1"  # an address on which nothing listens
SETTINGS = """
api: {{rate_limit: 1000 per minute, rate_store: "env:RATE_STORE"}}
media: {{store: "s3://media-of-tests/site", endpoint: "http://{nobody}"}}
mail: {{host: 127.0.0.1, port: 1, user: bifolio, tls: false}}
webhooks_allow: [127.0.0.1]
webhooks:
  - {{name: told, url: "env:TARGET", secret: "env:SIGNING", headers: {{X-Key: "env:HEADER"}}}}
  - {{name: away, url: "env:AWAY", secret: "env:SIGNING", headers: {{X-Key: "env:HEADER"}}}}
git: {{remote: origin, follow: 1s, push: after}}
roles: {{public: {{note: [find], auth: [callback, forgotPassword, resetPassword]}}}}
"""
PASSWORD = f"{MARK}-of ann"
PATHS = (
    "/", "/access", "/openapi.json", "/metrics", "/_health/ready", "/problems", "/overview", "/events",
    "/history", "/history/uncommitted", "/api/users", "/api/notes?filters[x]=1", "/api/none", "/branches",
    "/uploads/none.png", "/api/content-type-builder/content-types", "/api/users-permissions/roles",
)  # fmt: skip
COMMANDS = (
    ["check"],
    ["user", "list"],
    ["token", "list"],
    ["webhook", "list"],
    ["webhook", "test", "away"],
)


def run(arguments: list[str], environment: Mapping[str, str]) -> str:
    """Run a command and return its output."""
    code = f"{IMPATIENT}\nfrom server.commands.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    return done.stdout + done.stderr


class Client:
    """A client that sends requests to a server."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, credentials: str = "", *, json: object = None, **headers: str
    ) -> str:
        """Send a request and return the response body, even if the request failed."""
        if credentials:
            headers["Authorization"] = f"Bearer {credentials}"
        body = None if json is None else dumps(json)
        return self._send(method, path, body, {"Content-Type": "application/json", **headers})[0]

    def upload(self, credentials: str) -> str:
        """Upload a file and return the response body."""
        body = (
            '--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\ntext\r\n--x--\r\n'
        )
        kind = {"Content-Type": "multipart/form-data; boundary=x", "Authorization": f"Bearer {credentials}"}
        return self._send("POST", "/api/upload", body, kind)[0]

    def sign_in(self, form: object) -> str:
        """Sign in to the studio and return the value of the session cookie."""
        headers = {"Content-Type": "application/json", "Bifolio-Studio": "1", "Sec-Fetch-Site": "same-origin"}
        cookie = self._send("POST", "/studio/-/session", dumps(form), headers)[1]
        return cookie.partition("=")[2].partition(";")[0]

    def _send(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[str, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.read().decode(), answer.headers.get("Set-Cookie", "")
        finally:
            connection.close()


def command_lines(process: int) -> str:
    """Return the command lines of a process and all its descendants."""
    members, told = [process], ""
    while members:
        one = members.pop()
        members += children(one)
        try:
            told += Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode() + "\n"
        except (FileNotFoundError, ProcessLookupError):
            continue
    return told


@pytest.mark.parametrize(("options", "commands"), [(("--verbose",), COMMANDS), (("--log", "json"), ())])
def test_secrets_are_in_no_output_of_a_server_and_its_commands(
    tmp_path: Path, options: tuple[str, ...], commands: Sequence[list[str]]
) -> None:
    root, log = tmp_path / "site", tmp_path / "log"
    write(
        root,
        {
            **collection("note", {"title": STRING}),
            "content/notes/a.json": '{"title": "A"}',
            "content/notes/odd.json": '{"title": 7}',
            "site.yaml": SETTINGS.format(nobody=NOBODY),
        },
    )
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", f"http://bifolio:{MARK}-remote@{NOBODY}/site.git")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "First")
    accounts = Accounts(root, "")
    token, user = accounts.create_token("full", "full-access"), Users(accounts)
    ann = user.create("ann", "ann@example.org", PASSWORD, role="authenticated", confirmed=True)
    code, confirmation, key = user.reset_code(ann), user.confirm_code(ann), make_key(root)
    accounts.close()
    outputs: dict[str, str] = {}
    with receiving() as receiver:
        environment = {
            **os.environ,
            **ENVIRONMENT,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "TARGET": f"{receiver.url}/{MARK}-path",
            "AWAY": f"http://{NOBODY}/{MARK}-path",
        }
        port = free_port()
        with log.open("wb") as out:
            server = start(
                root, port, *options, output=out, first=IMPATIENT, real=True, environment=environment
            )
        try:
            wait(server, port)
            api = Client(port)
            jwt = loads(api.ask("POST", "/api/auth/local", json={"identifier": "ann", "password": PASSWORD}))[
                "jwt"
            ]
            session = api.sign_in({"key": key})
            for credentials in ("", token, jwt, f"{token}x", f"{jwt}x"):
                for path in PATHS:
                    outputs[f"{credentials} {path}"] = api.ask("GET", path, credentials)
            for path, body in (
                ("/api/auth/local", {"identifier": "ann", "password": f"{PASSWORD}x"}),
                ("/api/auth/forgot-password", {"email": "ann@example.org"}),
                ("/api/auth/reset-password", {"code": f"{code}x", "password": PASSWORD}),
                ("/git/hook", {"ref": "refs/heads/main"}),
                ("/api/upload", {"files": "x"}),
            ):
                outputs[path] = api.ask("POST", path, json=body)
            outputs["confirmation"] = api.ask(
                "GET", f"/api/auth/email-confirmation?confirmation={confirmation}x"
            )
            outputs["studio"] = api.ask("GET", f"/studio?key={key}")
            # Mistakes: an extra slash, and a parameter instead of a header.
            outputs["slashes"] = api.ask("GET", f"//studio?key={key}")
            outputs["parameter"] = api.ask("GET", f"/api/notes?sort=title&access_token={token}")
            outputs["upload"] = api.upload(token)
            outputs["write"] = api.ask("POST", "/api/notes", token, json={"data": {"title": "New"}})
            received = receiver.until(1)
            until(lambda: b"away" in log.read_bytes(), 20)
            outputs["command lines"] = command_lines(server.pid)
            for arguments in commands:
                outputs[" ".join(arguments)] = run([*arguments, "--site", str(root)], environment)
            # The webhook did use the secrets: one secret signs the request, and another is in a header.
            assert received[0].headers["x-key"] == ENVIRONMENT["HEADER"]
            outputs |= {f"event {i}": told_of(one) for i, one in enumerate(received)}
        finally:
            stop(server)
    outputs["log"] = log.read_text()
    assert "away" in outputs["log"]
    assert "bifolio" in outputs["command lines"] or "server" in outputs["command lines"]
    secrets = (MARK, SIGNING, token, jwt, session, code, confirmation, key)
    told = [(secret, place) for place, text in outputs.items() for secret in secrets if secret in text]
    # The server prints only its one-time key, for the owner.
    assert told == []
    assert_kept_as_hashes(root, (PASSWORD, token, jwt, session, code, confirmation, key))


def told_of(received: Received) -> str:
    """Return the headers and body that a webhook received, without its own secret header."""
    return dumps({**received.headers, "x-key": ""}) + received.body.decode()


def assert_kept_as_hashes(root: Path, secrets: tuple[str, ...]) -> None:
    """Require that only the owner can read `.bifolio`, and that none of its files contains the secrets."""
    folder = root / ".bifolio"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [secret for secret in secrets if secret.encode() in data], path
        if path.suffix in (".key", ".secret", ".session"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_keys_that_are_made_are_for_their_owner_only(tmp_path: Path) -> None:
    write(tmp_path, {"site.yaml": 'webhooks: [{name: a, url: "http://a.example/"}]\n'})
    run(["webhook", "secret", "a", "--site", str(tmp_path)], {**os.environ, "PYTHONPATH": os.getcwd()})
    session_key(tmp_path)
    rotate_key(tmp_path, 60)
    found = [path for path in (tmp_path / ".bifolio").rglob("*") if path.suffix in (".key", ".secret")]
    assert sorted(path.name for path in found) == ["a.secret", "jwt.key", "jwt.previous.key"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}
