"""Tests that run the scripts and the nginx.conf of deploy/ as compose.yaml does, but without containers.

The remote, three machines and nginx are processes on this machine. Service names are replaced by addresses.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

from server.auth.accounts import Accounts
from tests.buckets import KEYS, NAME, PREFIX, S3, s3_server
from tests.git import git
from tests.postgres import Postgres, postgres
from tests.servers import ROOT, free_port, get, stop, wait
from tests.test_static_servers import ask, needs_nginx, run_nginx
from tests.waiting import until

DEPLOY = ROOT / "deploy"
NAMES = ("one", "two", "three")


@dataclass
class Deployment:
    """The services of compose.yaml as processes, each with its own subfolder."""

    folder: Path
    database: str
    bucket: str
    git_port: int = field(default_factory=free_port)
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in NAMES})
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def script(self, name: str) -> Path:
        """Copy a script from deploy/, with this machine's folders and addresses."""
        folders = {"/tmp/site": "first", "/site.yaml": "site.yaml", "/site": "remote"}
        text = re.sub(
            r"(?<!\w)(/tmp/site|/site\.yaml|/site)\b",
            lambda found: f"{self.folder}/{folders[found[1]]}",
            (DEPLOY / name).read_text(),
        )
        path = self.folder / name
        path.write_text(text.replace("--reuseaddr", f"--reuseaddr --listen=127.0.0.1 --port={self.git_port}"))
        return path

    def start_remote(self) -> None:
        (self.folder / "remote").mkdir(exist_ok=True)
        settings = (DEPLOY / "site.yaml").read_text()
        settings = settings.replace("postgresql://bifolio@database/bifolio", self.database)
        settings = settings.replace("http://bucket:7070", self.bucket).replace(
            "s3://media", f"s3://{NAME}/{PREFIX}"
        )
        settings = re.sub(r"trusted_proxies: \[.*\]", "trusted_proxies: [127.0.0.1]", settings)
        (self.folder / "site.yaml").write_text(settings)
        self._start("remote", "remote.sh")
        command = ["git", "ls-remote", f"git://127.0.0.1:{self.git_port}/site.git"]
        until(lambda: subprocess.run(command, capture_output=True, check=False).returncode == 0)

    def start_machine(self, name: str) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        remote = f"git://127.0.0.1:{self.git_port}/site.git"
        clone = str(self.folder / name / "clone")
        options = ("--host", "127.0.0.1", "--port", str(self.ports[name]), "--workers", "1")
        self._start(name, "machine.sh", *options, REMOTE=remote, BIFOLIO_SITE=clone)
        wait(self.running[name], self.ports[name])

    def _start(self, name: str, script: str, *options: str, **environment: str) -> None:
        """Run a script in which `bifolio` runs the code in this repository."""
        binaries = self.folder / "bin"
        binaries.mkdir(exist_ok=True)
        (binaries / "bifolio").write_text(f'#!/bin/sh\nexec {sys.executable} -m server "$@"\n')
        (binaries / "bifolio").chmod(0o755)
        path = f"{binaries}:{os.environ['PATH']}"
        secret = {"BIFOLIO_JWT_SECRET": "s" * 40, "PYTHONPATH": str(ROOT), "PATH": path, **KEYS}
        with (self.folder / f"{name}.log").open("wb") as log:
            self.running[name] = subprocess.Popen(
                ["sh", str(self.script(script)), *options],
                env={**os.environ, **secret, **environment},
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def nginx(self) -> str:
        """Return nginx's configuration with the ports of the machines."""
        config = (DEPLOY / "nginx.conf").read_text()
        for name, port in self.ports.items():
            config = config.replace(f"server {name}:1337", f"server 127.0.0.1:{port}")
        return config


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture(scope="module")
def bucket() -> Iterator[S3]:
    with s3_server() as running:
        yield running


@dataclass(frozen=True, slots=True)
class Running:
    """Three machines, and nginx in front of them."""

    deployment: Deployment
    address: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, database: Postgres, bucket: S3) -> Iterator[Running]:
    """The running deployment. The tests share it, because it takes 5 s of processor time to start."""
    database.empty()
    bucket.empty()
    made = Deployment(tmp_path_factory.mktemp("deployment"), database.url, bucket.url)
    try:
        made.start_remote()
        for name in NAMES:
            made.start_machine(name)
        (made.folder / "nginx").mkdir()
        with run_nginx(made.nginx(), made.folder / "nginx") as address:
            yield Running(made, address)
    finally:
        for process in made.running.values():
            if process.poll() is None:
                stop(process)


@needs_nginx
def test_three_machines_behind_nginx(running: Running) -> None:
    deployment, address = running.deployment, running.address
    clones = [deployment.folder / name / "clone" for name in NAMES]
    assert len({git(clone, "rev-parse", "HEAD") for clone in clones}) == 1
    assert len({get(port, "/api/articles")[1] for port in deployment.ports.values()}) == 1
    assert ask(f"{address}/metrics")[0] == 404
    stop(deployment.running["two"])  # Readers must not notice.
    assert Counter(ask(f"{address}/api/articles")[0] for _ in range(60)) == {200: 60}
    deployment.start_machine("two")  # The machine continues with its existing clone.
    assert Counter(ask(f"{address}/api/articles")[0] for _ in range(20)) == {200: 20}


@needs_nginx
def test_uploads_and_streams_pass_nginx(running: Running, bucket: S3) -> None:
    deployment, address = running.deployment, running.address
    accounts = Accounts(deployment.folder / "one/clone", deployment.database)
    token = {"Authorization": f"Bearer {accounts.create_token('desk', 'full-access')}"}
    accounts.close()
    boundary, body = encode_multipart({"files": FileStorage(BytesIO(b"x" * 5_000_000), "large.txt")})
    headers = {**token, "Content-Type": f"multipart/form-data; boundary={boundary}"}
    with urlopen(Request(f"{address}/api/upload", body, headers), timeout=30) as told:
        assert told.status == 201
    assert b"x" * 5_000_000 in bucket.objects().values()
    for port in deployment.ports.values():  # Each machine receives the upload from the remote.
        until(lambda port=port: b"large.txt" in get(port, "/api/upload/files")[1])  # type: ignore[misc]
    stream = Request(f"{address}/events", headers={**token, "Accept": "text/event-stream"})
    # A proxy that buffers responses would also delay this line.
    with urlopen(stream, timeout=5) as lines:
        assert lines.readline()


@needs_nginx
def test_clients_are_told_apart_by_their_addresses(running: Running) -> None:
    assert ask(f"{running.address}/api/articles", **{"X-Forwarded-For": "198.51.100.7"})[0] == 200

    def logs() -> str:
        return "".join((running.deployment.folder / f"{name}.log").read_text() for name in NAMES)

    # The server logs the request after sending the response.
    until(lambda: '"path": "/api/articles"' in logs())
    assert "198.51.100.7" not in logs()
