"""Creation of Bifolio's documents on the other servers, through their API or data file."""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.host import HOST
from bench.model import REFERRED
from bench.serving import Serving

# documents by plural API id, populated one level deep
Documents = dict[str, list[dict[str, Any]]]
Ids = dict[str, str]  # maps Bifolio's documentIds to the other server's documentIds
_OURS = ("id", "documentId", "createdAt", "updatedAt", "publishedAt", "locale", "localizations")
_SINGLE, _MANY = ("author", "category"), ("tags", "related")
_PAGE = 100


def read_documents(serving: Serving) -> Documents:
    return {plural: list(_pages(serving, plural)) for plural in (*REFERRED, "articles")}


def _pages(serving: Serving, plural: str) -> Iterator[dict[str, Any]]:
    populate = "&populate=*" if plural == "articles" else ""
    page, pages = 1, 1
    while page <= pages:
        where = f"pagination[page]={page}&pagination[pageSize]={_PAGE}{populate}"
        answer = json.loads(serving.get(f"/api/{plural}?{where}"))
        yield from answer["data"]
        page, pages = page + 1, answer["meta"]["pagination"]["pageCount"]


def fill_strapi(serving: Serving, token: str, documents: Documents, say: Callable[[str], None]) -> Ids:
    """Create every document in order, and then the relations between articles."""
    ids: Ids = {}
    api = Api(serving.port, token)
    for plural, found in documents.items():
        say(f"creating {len(found):,} {plural}")
        for document in found:
            made = api.send("POST", f"/api/{plural}", _body(document, ids))
            ids[document["documentId"]] = made["documentId"]
    say("relating articles")
    for document in documents["articles"]:
        body = {"related": [ids[other["documentId"]] for other in document["related"]]}
        api.send("PUT", f"/api/articles/{ids[document['documentId']]}", body)
    return ids


def _body(document: Mapping[str, Any], ids: Ids) -> dict[str, Any]:
    """Return a document's values, without the fields that a server adds."""
    body = {name: value for name, value in document.items() if name not in _OURS}
    for name in _SINGLE:
        if name in body:
            body[name] = ids[body[name]["documentId"]]
    if "tags" in body:
        body["tags"] = [ids[tag["documentId"]] for tag in body["tags"]]
        del body["related"]
    return {name: _without_ids(value) for name, value in body.items()}


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_ids(item) for key, item in value.items() if key != "id"}
    return [_without_ids(item) for item in value] if isinstance(value, list) else value


class Api:
    """Client for a JSON API. It uses a token and one connection."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def send(self, method: str, path: str, data: object) -> Any:
        self._connection.request(method, path, json.dumps({"data": data}), self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {answer.status} {body[:300]!r}")
        return json.loads(body)["data"]


def write_db(path: Path, documents: Documents) -> None:
    """Write json-server's data file, with the same documents."""
    db: dict[str, list[dict[str, Any]]] = {}
    for plural, found in documents.items():
        db[plural] = []
        for document in found:
            row = {**document, "id": document["documentId"]}
            for name in _SINGLE:
                if name in row:
                    row[f"{name}Id"] = row.pop(name)["documentId"]
            for name in _MANY:
                if name in row:
                    row[name] = [other["documentId"] for other in row[name]]
            db[plural].append(row)
    path.write_text(json.dumps(db, indent=1))
