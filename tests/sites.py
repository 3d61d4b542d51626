"""What tests make sites from, and what they ask them with: real files, the real app."""

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
    """The text of a content type's schema; its plural is its name and an s, "string" an attribute of that."""
    described = {
        "kind": "singleType" if single else "collectionType",
        "info": {"singularName": name, "pluralName": f"{name}s", "displayName": name.title()},
        "options": {"draftAndPublish": drafts, **options},
        "pluginOptions": {"i18n": {"localized": True}} if localized else {},
        "attributes": {n: {"type": a} if isinstance(a, str) else a for n, a in attributes.items()},
    }
    return json.dumps(described, indent=1)


def collection(name: str, attributes: Mapping[str, Any], **described: Any) -> dict[str, str]:
    """The schema file of a content type; see `schema`."""
    return {f"content-types/{name}.json": schema(name, attributes, **described)}


def component(uid: str, attributes: Mapping[str, Any]) -> dict[str, str]:
    """The schema file of a component, `category.name`."""
    described = {"info": {"displayName": uid}, "attributes": attributes}
    return {f"content-types/components/{uid.replace('.', '/')}.json": json.dumps(described, indent=1)}


def relation(kind: str, target: str, **options: Any) -> dict[str, Any]:
    """A relation attribute to the content type `target`."""
    return {"type": "relation", "relation": kind, "target": f"api::{target}.{target}", **options}


def translated(attribute: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute that has a value per locale."""
    return {**attribute, "pluginOptions": {"i18n": {"localized": True}}}


def documents(plural: str, **described: Mapping[str, Any]) -> dict[str, str]:
    """JSON files of a type's documents by name, made one after the other: `documents("tags", red={…})`."""
    return {
        f"content/{plural}/{name}.json": json.dumps({"createdAt": f"2024-01-01T00:00:{i:02d}Z", **values})
        for i, (name, values) in enumerate(described.items())
    }


def write(root: Path, files: Files) -> None:
    """Write files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def with_accounts(files: Files, accounts: str) -> Files:
    """Files of a site, whose accounts and events are somewhere, "" for beside them."""
    settings, more = f"accounts: {accounts}\n" if accounts else "", files.get("site.yaml", "")
    return {**files, "site.yaml": settings + (more.decode() if isinstance(more, bytes) else more)}


def load(root: Path, files: Files) -> Site:
    """The loaded site of some files; see `opened`."""
    write(root, files)
    return opened(root)


def opened(root: Path) -> Site:
    """The loaded site of a folder, to read and write as a server does, but for the log of events."""
    return open_site(root, Mode.SERVER, records=False).site


def write_to(site: Site, prepare: Callable[[Wanted, Context], T], request: Wanted) -> tuple[State, T]:
    """Write to a site in the name of a test."""
    return site.write(Authorship("test", "", ""), prepare, request)[:2]


def bracketed(params: Mapping[str, Any], *, encoded: bool = False) -> str:
    """A query string in bracket notation, as clients write it."""
    return "&".join(part for key, value in params.items() for part in _bracketed(value, key, encoded))


def _bracketed(value: Any, key: str, encoded: bool) -> list[str]:
    if isinstance(value, dict):
        return [part for k, v in value.items() for part in _bracketed(v, f"{key}[{k}]", encoded)]
    if isinstance(value, list):
        return [part for i, v in enumerate(value) for part in _bracketed(v, f"{key}[{i}]", encoded)]
    return [f"{quote(key, safe='' if encoded else '[]$')}={quote(str(value), safe='')}"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its status, the bytes of its body and what they say where they are JSON, the headers."""

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
        """The documentIds of a list."""
        return [document["documentId"] for document in self.data]


@dataclass(frozen=True)
class _NewAccounts:
    """The file of an accounts database, the id of the site and the full-access token in it."""

    file: bytes
    site_id: str
    token: str

    def with_another_id(self) -> bytes:
        """Return the file with a new id of the same length, since no two sites have the same."""
        return self.file.replace(self.site_id.encode(), secrets.token_hex(len(self.site_id) // 2).encode())


@cache
def _new_accounts() -> _NewAccounts:
    """Make an accounts database to copy: to make one for each of a thousand sites takes 40 ms each."""
    with TemporaryDirectory() as folder:
        accounts = Accounts(Path(folder))
        token = accounts.create_token("full", "full-access")
        accounts.close()
        return _NewAccounts(database_file(Path(folder)).read_bytes(), accounts.site_id, token)


@dataclass(slots=True)
class Api:
    """The app of a site, asked with a full-access token unless `who` says otherwise."""

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
        """Make a token; requests name it as `who`."""
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
        """The text of a file of the site."""
        return (self.root / path).read_bytes().decode()

    @property
    def files(self) -> set[str]:
        """The paths of all files in content/."""
        content = self.root / "content"
        return {p.relative_to(content).as_posix() for p in content.rglob("*") if p.is_file()}


def make(root: Path, files: Files) -> Api:
    """A site of some files, and the app that serves it."""
    return Api.of(load(root, files))
