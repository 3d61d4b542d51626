"""Implementation of `make test-clients`: run existing npm clients against a running server of a
small site.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from server.auth.accounts import Accounts
from server.auth.users import Users
from tests.ci import skipped
from tests.clients.npm import install, missing_node
from tests.servers import free_port, serving
from tests.signals import restore_in_children
from tests.sites import schema, write

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
        "mood": {"type": "enumeration", "enum": ["calm", "rough"], "default": "calm"},
        "parts": {"type": "dynamiczone", "components": ["shared.seo", "shared.quote"]},
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
    """Install the clients, start a server and run the tests. Return the status of Node's test runner."""
    restore_in_children()
    if (reason := missing_node() or install(HERE, "--legacy-peer-deps")) is not None:
        return skipped("test-clients", reason)
    with tempfile.TemporaryDirectory(prefix="bifolio-clients-") as folder:
        return _run(Path(folder))


def _compile(root: Path) -> Path | None:
    """Compile typed.ts with the site's types (`tsc --strict`). Return the script, or None if there are
    errors.
    """
    folder = root / "typed"
    folder.mkdir()
    (folder / "node_modules").symlink_to(HERE / "node_modules", target_is_directory=True)
    for name in ("typed.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, folder)
    types = [
        sys.executable,
        "-m",
        "server",
        "types",
        "--site",
        str(root),
        "--out",
        str(folder / "bifolio.ts"),
    ]
    subprocess.run(types, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*types, "--check"], check=True, stdout=subprocess.DEVNULL)
    tsc = HERE / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(["node", str(tsc), "--project", str(folder)], check=False)
    return folder / "made" / "typed.js" if done.returncode == 0 else None


def _run(folder: Path) -> int:
    """Run each script against its own site and server, because one script counts the documents."""
    _make_site(folder / "typed-site")
    typed = _compile(folder / "typed-site")
    if typed is None:
        return 1
    _make_site(folder / "site")
    _make_site(folder / "quoted-site")
    scripts = [("clients.mjs", "site"), ("strapi_client.mjs", "quoted-site"), (str(typed), "typed-site")]
    return max(_run_script(script, folder / site) for script, site in scripts)


def _run_script(script: str, root: Path) -> int:
    accounts = Accounts(root)
    token = accounts.create_token("clients", "full-access")
    Users(accounts).create("ann", "ann@example.org", "secret12", role="authenticated", confirmed=True)
    accounts.close()
    with serving(root, free_port(), output=subprocess.DEVNULL) as url:
        environment = {**os.environ, "BIFOLIO_URL": url, "BIFOLIO_TOKEN": token}
        return subprocess.run(["node", "--test", script], cwd=HERE, env=environment, check=False).returncode


def _make_site(root: Path) -> None:
    seo = '{"attributes": {"title": {"type": "string"}}}'
    quote = '{"attributes": {"body": {"type": "text", "required": true}}}'
    write(
        root,
        {
            "site.yaml": ROLES,
            "content-types/post.json": POST,
            "content-types/tag.json": TAG,
            "content-types/about.json": schema("about", {"title": "string"}, single=True),
            "content-types/components/shared/seo.json": seo,
            "content-types/components/shared/quote.json": quote,
            "content/tags/sea.yaml": "name: Sea\n",
            **{
                f"content/posts/post-{i}.md": f"---\ntitle: Post {i:02d}\ntags: [sea]\n---\n"
                for i in range(30)
            },
        },
    )


if __name__ == "__main__":
    sys.exit(main())
