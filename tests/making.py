"""Small sites for tests: real files in a temporary folder, and a client that talks to them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from server.api.app import create_app
from server.auth.accounts import Accounts
from server.site.site import Site


def schema(
    singular: str,
    attributes: dict[str, Any],
    *,
    kind: str = "collectionType",
    plural: str = "",
    drafts: bool = False,
    localized: bool = False,
    **options: Any,
) -> str:
    """The text of a schema file."""
    names = {"singularName": singular, "pluralName": plural or f"{singular}s", "displayName": singular}
    plugin = {"i18n": {"localized": True}} if localized else {}
    made = {name: {"type": a} if isinstance(a, str) else a for name, a in attributes.items()}
    return json.dumps(
        {
            "kind": kind,
            "info": names,
            "options": {"draftAndPublish": drafts, **options},
            "pluginOptions": plugin,
            "attributes": made,
        }
    )


def write(root: Path, files: dict[str, str | bytes]) -> None:
    """Write files below a folder."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)


@dataclass
class Made:
    """A loaded site, with a client that may do everything."""

    root: Path
    site: Site
    accounts: Accounts
    client: FlaskClient
    token: str

    def send(self, method: str, path: str, data: Any = None, **options: Any) -> TestResponse:
        """A request with the full-access token; `data` is wrapped as the API wants it."""
        headers = {"Authorization": f"Bearer {self.token}", **options.pop("headers", {})}
        if "raw" in options:
            options["data"] = options.pop("raw")
        if data is not None:
            options["json"] = {"data": data}
        return self.client.open(path, method=method, headers=headers, **options)

    def get(self, path: str) -> Any:
        """The data of a GET that must succeed."""
        answer = self.send("GET", path)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.json["data"]

    def put(self, path: str, data: Any) -> Any:
        """The data of a PUT that must succeed."""
        answer = self.send("PUT", path, data)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.json["data"]

    def post(self, path: str, data: Any) -> Any:
        """The data of a POST that must succeed."""
        answer = self.send("POST", path, data)
        assert answer.status_code == 201, answer.get_data(as_text=True)
        return answer.json["data"]

    def read(self, path: str) -> str:
        """The text of a file of the site."""
        return (self.root / path).read_bytes().decode()

    @property
    def files(self) -> set[str]:
        """The paths of all files in content/."""
        content = self.root / "content"
        return {p.relative_to(content).as_posix() for p in content.rglob("*") if p.is_file()}


def make(root: Path, files: dict[str, str | bytes]) -> Made:
    """A site of files, loaded."""
    (root / "content").mkdir(parents=True, exist_ok=True)
    write(root, files)
    site = Site(root)
    site.load()
    accounts = Accounts(root)
    token = accounts.create_token("full", "full-access")
    return Made(root, site, accounts, create_app(site, accounts).test_client(), token)
