"""`make test-openapi`: use schemathesis to check that a running server's responses agree with
`/openapi.json`.

PHASES=examples,fuzzing leaves out the longest phase, which tries every limit of every value.

The site has the content types of the recorded conversations, with attributes of every type, some documents, a
picture and a user. Requests use a full-access token first, and are then repeated without credentials.
"""

import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from server.auth.accounts import Accounts
from server.auth.users import Users
from tests.ci import skipped
from tests.servers import free_port, serving
from tests.signals import restore_in_children
from tests.sites import schema, write

HERE = Path(__file__).parent
TYPES = HERE.parent / "conformance" / "site" / "content-types"
EXAMPLES, SEED = "20", "20240229"
SITE = {
    "name": "Recorded",
    "locales": {"default": "en", "available": ["en", "fr", "de"]},
    "api": {"populate_with_pagination": "allow"},
    "roles": {"public": {"thing": ["find", "findOne"], "upload": ["find"], "auth": ["callback", "register"]}},
}
KEPT = ("thing", "tag", "place", "home")
# `owner` leads to another type, and `near` is the other side of a relation. Only one small type has a
# password, because hashing passwords takes long.
LEFT_OUT = ("owner", "near", "pw", "secret")
THING = {
    "str": "A thing",
    "uniq": "only",
    "txt": "text",
    "rich": "*rich*",
    "enu": "green",
    "mail": "a@example.org",
    "slug": "a-thing",
    "d": "2024-02-29",
    "t": "10:20:30",
    "dt": "2024-02-29T10:20:30Z",
    "i": 7,
    "big": "123",
    "f": 1.5,
    "dec": 2.25,
    "b": True,
    "j": {"a": [1]},
    "re": "abc",
    "tags": ["x"],
    "pic": "x.png",
    "one": {"name": "n", "number": 1, "inners": [{"label": "l"}]},
    "dz": [{"__component": "shared.quote", "title": "t"}],
    "blocks": [{"type": "paragraph", "children": [{"type": "text", "text": "x"}]}],
}
DOCUMENTS = {
    "content/things/x.json": THING,
    "content/things/spare.json": {"str": "Another"},
    "content/vaults/x.json": {"label": "Kept"},
    "content/tags/x.json": {"name": "red"},
    "content/places/x.json": {"name": "Here"},
    "content/places/x.fr.json": {"name": "Ici", "nearOf": "x"},
    "content/home.json": {"title": "Home"},
}


def main() -> int:
    """Serve the site and run schemathesis. Return the exit status of schemathesis."""
    restore_in_children()
    if importlib.util.find_spec("schemathesis") is None:
        return skipped("test-openapi", "schemathesis is not installed")
    with tempfile.TemporaryDirectory(prefix="bifolio-openapi-") as folder:
        root = Path(folder, "site")
        _make_site(root)
        token = _make_accounts(root)
        log = Path(folder, "serve.log")
        with log.open("wb") as out, serving(root, free_port(), output=out) as url:
            status = _ask(url, folder, token) or _ask(url, folder, None)
        if status:
            print(log.read_text()[-4000:])
        return status


def _ask(url: str, folder: str, token: str | None) -> int:
    """Run schemathesis with requests that are valid according to the document, and with many invalid ones."""
    program = Path(sys.executable).with_name("schemathesis")
    # Without a token, the document only lists the public's operations, but `Allow` lists all methods.
    told_more = ["--exclude-checks", "allow_header_conformance"]
    credentials = ["-H", f"Authorization: Bearer {token}"] if token else told_more
    phases = os.environ.get("PHASES", "examples,coverage,fuzzing")
    command = [
        str(program), "--config-file", str(HERE / "schemathesis.toml"), "run", f"{url}/openapi.json",
        "--phases", phases, "--max-examples", EXAMPLES, "--seed", SEED, "--workers", "1",
        *credentials, *sys.argv[1:],
    ]  # fmt: skip
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.openapi.hooks", "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=folder, env={**environment, "PYTHONPATH": str(HERE.parents[1])}, check=False
    ).returncode


def _make_site(root: Path) -> None:
    for path in TYPES.rglob("*.json"):
        if path.parent.parent.name == "components" or path.stem in KEPT:
            described = json.loads(path.read_text())
            attributes = described["attributes"]
            described["attributes"] = {
                n: a for n, a in attributes.items() if n not in LEFT_OUT and _is_kept(a.get("target"))
            }
            described["attributes"].get("nearOf", {}).pop("inversedBy", None)
            write(root, {f"content-types/{path.relative_to(TYPES)}": json.dumps(described)})
    write(root, {"content-types/vault.json": schema("vault", {"key": "password", "label": "string"})})
    picture = io.BytesIO()
    Image.new("RGB", (400, 300), "red").save(picture, "PNG")
    for name in ("x", "spare"):
        said = {f"content/uploads/{name}.png.yaml": f"documentId: {name}\n"}
        write(root, {f"content/uploads/{name}.png": picture.getvalue(), **said})
    documents = {path: json.dumps(values) for path, values in DOCUMENTS.items()}
    write(root, {**documents, "site.yaml": json.dumps(SITE)})


def _is_kept(target: str | None) -> bool:
    """Whether the target of a relation is part of the site."""
    return target is None or target.rpartition(".")[2] in (*KEPT, "user", "file")


def _make_accounts(root: Path) -> str:
    """Create a full-access token and two users. Return the token."""
    accounts = Accounts(root)
    token = accounts.create_token("full", "full-access")
    for name in ("ann", "ben"):
        Users(accounts).create(name, f"{name}@example.org", "secret12", role="authenticated", confirmed=True)
    accounts.close()
    return token


if __name__ == "__main__":
    sys.exit(main())
