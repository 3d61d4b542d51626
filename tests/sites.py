"""Helpers that create sites of real files, and that send requests to the real app."""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from urllib.parse import quote

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.datastructures import Headers

from server.api.app import create_app
from server.auth.accounts import Accounts
from server.database.file import database_file
from server.service.opening import Mode, open_site
from server.site.commits.message import Authorship
from server.site.site import Site, State
from server.write.context import Context

T = TypeVar("T")
Wanted = TypeVar("Wanted")
Files = Mapping[str, str | bytes]
STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def schema(
    name: str,
    attributes: Mapping[str, Any],
    *,
    drafts: bool = False,
    localized: bool = False,
    single: bool = False,
    **options: Any,
) -> str:
    """Return the schema file of a content type.

    The plural is the name with an added s. An attribute can be given as the name of its type, such as
    "string".
    """
    described = {
        "kind": "singleType" if single else "collectionType",
        "info": {"singularName": name, "pluralName": f"{name}s", "displayName": name.title()},
        "options": {"draftAndPublish": drafts, **options},
        "pluginOptions": {"i18n": {"localized": True}} if localized else {},
        "attributes": {n: {"type": a} if isinstance(a, str) else a for n, a in attributes.items()},
    }
    return json.dumps(described, indent=1)


def collection(name: str, attributes: Mapping[str, Any], **described: Any) -> dict[str, str]:
    """Return the schema file of a content type by path. See `schema` for the parameters."""
    return {f"content-types/{name}.json": schema(name, attributes, **described)}


def component(uid: str, attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return the schema file of a component by path. The uid is `category.name`."""
    described = {"info": {"displayName": uid}, "attributes": attributes}
    return {f"content-types/components/{uid.replace('.', '/')}.json": json.dumps(described, indent=1)}


def relation(kind: str, target: str, **options: Any) -> dict[str, Any]:
    """Return the schema of a relation to the content type `target`."""
    return {"type": "relation", "relation": kind, "target": f"api::{target}.{target}", **options}


def translated(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an attribute with `localized` set."""
    return {**attribute, "pluginOptions": {"i18n": {"localized": True}}}


def documents(plural: str, **described: Mapping[str, Any]) -> dict[str, str]:
    """Return JSON files of documents by name, with increasing creation times: `documents("tags",
    red={…})`.
    """
    return {
        f"content/{plural}/{name}.json": json.dumps({"createdAt": f"2024-01-01T00:00:{i:02d}Z", **values})
        for i, (name, values) in enumerate(described.items())
    }


def write(root: Path, files: Files) -> None:
    """Write files to a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def with_accounts(files: Files, accounts: str) -> Files:
    """Return a site's files with the setting `accounts`. An empty string means the default, a file in the
    site.
    """
    settings, more = f"accounts: {accounts}\n" if accounts else "", files.get("site.yaml", "")
    return {**files, "site.yaml": settings + (more.decode() if isinstance(more, bytes) else more)}


def load(root: Path, files: Files) -> Site:
    """Write files and return the loaded site. See `opened`."""
    write(root, files)
    return opened(root)


def opened(root: Path) -> Site:
    """Return the loaded site in a folder. It can be read and written as in a server, but records
    no events.
    """
    return open_site(root, Mode.SERVER, records=False).site


def write_to(site: Site, prepare: Callable[[Wanted, Context], T], request: Wanted) -> tuple[State, T]:
    """Write to a site, with a test as the author."""
    return site.write(Authorship("test", "", ""), prepare, request)[:2]


def bracketed(params: Mapping[str, Any], *, encoded: bool = False) -> str:
    """Return a query string in bracket notation, as clients send it."""
    return "&".join(part for key, value in params.items() for part in _bracketed(value, key, encoded))


def _bracketed(value: Any, key: str, encoded: bool) -> list[str]:
    if isinstance(value, dict):
        return [part for k, v in value.items() for part in _bracketed(v, f"{key}[{k}]", encoded)]
    if isinstance(value, list):
        return [part for i, v in enumerate(value) for part in _bracketed(v, f"{key}[{i}]", encoded)]
    return [f"{quote(key, safe='' if encoded else '[]$')}={quote(str(value), safe='')}"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its status, raw body, headers, and the parsed body if it is JSON."""

    status: int
    raw: bytes
    headers: Headers
    body: Any

    @property
    def text(self) -> str:
        return self.raw.decode()

    @property
    def data(self) -> Any:
        assert self.status in (200, 201), self.body
        return self.body["data"]

    @property
    def error(self) -> Any:
        assert self.status >= 400, self.body
        return self.body["error"]

    @property
    def ids(self) -> list[str]:
        """The documentIds in a list."""
        return [document["documentId"] for document in self.data]


@dataclass(frozen=True)
class _NewAccounts:
    """The file of an accounts database, and the site id and full-access token in this file."""

    file: bytes
    site_id: str
    token: str

    def with_another_id(self) -> bytes:
        """Return the file with a new id of the same length, because no two sites have the same id."""
        return self.file.replace(self.site_id.encode(), secrets.token_hex(len(self.site_id) // 2).encode())


@cache
def _new_accounts() -> _NewAccounts:
    """Create an accounts database as a template. Creating one takes 40 ms, which is too long for a thousand
    sites.
    """
    with TemporaryDirectory() as folder:
        accounts = Accounts(Path(folder))
        token = accounts.create_token("full", "full-access")
        accounts.close()
        return _NewAccounts(database_file(Path(folder)).read_bytes(), accounts.site_id, token)


@dataclass(slots=True)
class Api:
    """The app of a site. Requests use a full-access token unless `who` names a different one."""

    site: Site
    app: Flask
    accounts: Accounts
    client: FlaskClient
    tokens: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site) -> "Api":
        url = site.state.settings.accounts
        is_new = not url and database_file(site.root).stat().st_size == 0
        if is_new:
            database_file(site.root).write_bytes(_new_accounts().with_another_id())
        accounts = Accounts(site.root, url)
        app = create_app(site, accounts)
        api = cls(site, app, accounts, app.test_client())
        if is_new:
            api.tokens["full"] = _new_accounts().token
        else:
            api.token("full", "full-access")
        return api

    def token(
        self, name: str, kind: str = "custom", may: Iterable[str] = (), expires: timedelta | None = None
    ) -> str:
        """Create a token. Requests use it by passing its name as `who`."""
        self.tokens[name] = self.accounts.create_token(name, kind, may, expires)
        return self.tokens[name]

    def ask(self, method: str, path: str, who: str = "full", **options: Any) -> Answer:
        headers = dict(options.pop("headers", {}))
        if who != "public":
            headers["Authorization"] = f"Bearer {self.tokens.get(who, who)}"
        answer = self.client.open(path, method=method, headers=headers, **options)
        raw = answer.get_data()
        answer.close()
        plain = answer.is_json and "Content-Encoding" not in answer.headers
        return Answer(answer.status_code, raw, answer.headers, json.loads(raw) if raw and plain else raw)

    def get(self, path: str, who: str = "full", **options: Any) -> Answer:
        return self.ask("GET", path, who, **options)

    def post(self, path: str, data: Any, who: str = "full", **options: Any) -> Answer:
        return self.ask("POST", path, who, json={"data": data}, **options)

    def put(self, path: str, data: Any, who: str = "full", **options: Any) -> Answer:
        return self.ask("PUT", path, who, json={"data": data}, **options)

    @property
    def root(self) -> Path:
        return self.site.root

    def read(self, path: str) -> str:
        """Return the text of a file in the site."""
        return (self.root / path).read_bytes().decode()

    @property
    def files(self) -> set[str]:
        """Return the paths of all files in content/."""
        content = self.root / "content"
        return {p.relative_to(content).as_posix() for p in content.rglob("*") if p.is_file()}


def make(root: Path, files: Files) -> Api:
    """Write a site's files and return the app that serves the site."""
    return Api.of(load(root, files))
