"""`make test-clients`: existing clients, installed from npm, against a live server of a small site."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from server.accounts import Accounts
from server.users import Users
from tests.making import schema, write

HERE = Path(__file__).parent
ROLES = """
api: {populate_with_pagination: allow}   # for loaders that page through populated lists
roles:
  public: {auth: [callback]}
  authenticated: {post: [find, findOne], tag: [find], user: [me]}
"""
POST = schema(
    "post",
    {
        "title": "string",
        "tags": {
            "type": "relation",
            "relation": "manyToMany",
            "target": "api::tag.tag",
            "inversedBy": "posts",
        },
        "seo": {"type": "component", "component": "shared.seo"},
        "cover": "media",
    },
    drafts=True,
)
TAG = schema(
    "tag",
    {
        "name": "string",
        "posts": {
            "type": "relation",
            "relation": "manyToMany",
            "target": "api::post.post",
            "mappedBy": "tags",
        },
    },
)


def main() -> int:
    """Install, serve, run; the status of node's test runner."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        print("test-clients: SKIPPED, there is no Node.js on this machine")
        return 0
    if not (HERE / "node_modules").exists():
        command = [
            npm,
            "install",
            "--ignore-scripts",
            "--legacy-peer-deps",
            "--no-audit",
            "--no-fund",
            "--silent",
        ]
        subprocess.run(command, cwd=HERE, check=True)
    with tempfile.TemporaryDirectory(prefix="quire-clients-") as folder:
        return _run(node, Path(folder))


def _run(node: str, root: Path) -> int:
    _make_site(root)
    accounts = Accounts(root)
    token = accounts.create_token("clients", "full-access")
    Users(accounts).create("ann", "ann@example.org", "secret12", role="authenticated", confirmed=True)
    accounts.close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "server", "serve", "--site", str(root), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait(port)
        environment = {**os.environ, "QUIRE_URL": f"http://127.0.0.1:{port}", "QUIRE_TOKEN": token}
        return subprocess.run(
            [node, "--test", "clients.mjs"], cwd=HERE, env=environment, check=False
        ).returncode
    finally:
        server.terminate()
        server.wait(10)


def _make_site(root: Path) -> None:
    seo = '{"attributes": {"title": {"type": "string"}}}'
    write(
        root,
        {
            "site.yaml": ROLES,
            "content-types/post.json": POST,
            "content-types/tag.json": TAG,
            "content-types/about.json": schema(
                "about", {"title": "string"}, kind="singleType", plural="abouts"
            ),
            "content-types/components/shared/seo.json": seo,
            "content/tags/sea.yaml": "name: Sea\n",
            **{
                f"content/posts/post-{i}.md": f"---\ntitle: Post {i:02d}\ntags: [sea]\n---\n"
                for i in range(30)
            },
        },
    )


def _wait(port: int) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_health", timeout=2).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("test-clients: the server did not start")


if __name__ == "__main__":
    sys.exit(main())
