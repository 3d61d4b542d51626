"""Creation of the same documents on both servers, in the same order."""
# Each document refers only to earlier ones, and is completed before the next one is begun. Strapi's rows
# therefore have the same order as Bifolio's documents, and unsorted lists can be compared.

import io
import json
from collections.abc import Iterator
from typing import Any

from PIL import Image

from bench.differential.bodies import Bodies, Body
from bench.differential.model import LOCALES, Type, shared
from bench.differential.pair import Pair
from bench.differential.request import Answer, Query, Request
from bench.differential.values import Chance, Values
from bench.differential.world import Document, World

_LATER = 0.35  # probability with which an additional version of each kind is written
Told = tuple[Request, Answer, Answer]


def fill(pair: Pair, world: World, chance: Chance, documents: int) -> Iterator[Told]:
    """Create `documents` documents of each collection type, and one of each single type. Yield each request
    with both responses.
    """
    yield from _upload(pair, world)
    bodies = Bodies(world, Values(chance, "base", plain=True))
    types = sorted(world.model.types.values(), key=lambda type_: type_.uid)
    for i in range(documents):
        for type_ in types:
            if not type_.single or i == 0:
                yield from _make(pair, world, bodies, type_)


def _make(pair: Pair, world: World, bodies: Bodies, type_: Type) -> Iterator[Told]:
    chance, document = bodies.chance, world.add(type_.uid)
    draft = type_.drafts and chance.random() < 0.2
    first = (LOCALES[0], "draft" if draft else "published")
    yield from _write(pair, document, type_, bodies, first)
    for locale in type_.locales[1:]:
        if document.versions and chance.random() < _LATER:
            draft_too = type_.drafts and chance.random() < 0.3
            yield from _write(pair, document, type_, bodies, (locale, "draft" if draft_too else "published"))
    for locale, status in sorted(document.versions):
        if type_.drafts and status == "published" and chance.random() < _LATER:
            yield from _write(pair, document, type_, bodies, (locale, "draft"), 0.2)
    if not document.versions:
        del world.documents[document.name]


def _write(
    pair: Pair, document: Document, type_: Type, bodies: Bodies, version: tuple[str, str], share: float = 0.7
) -> Iterator[Told]:
    """Write one version of a document, and record it if both servers accept it."""
    first = not document.versions
    attributes = {n: found for n, found in type_.attributes.items() if first or not shared(type_, found)}
    body = bodies.body(attributes, version, share, excluded=document.reference)
    request = Request(
        "POST" if first and not type_.single else "PUT",
        type_.path if first or type_.single else f"{type_.path}/{document.reference}",
        version_query(type_, version),
        {"data": body},
    )
    theirs, ours = pair.ask(request)
    yield request, theirs, ours
    if theirs.status < 300 and ours.status < 300:
        took(pair, document, version, body, theirs, ours, type_.drafts)
    elif theirs.status < 300 or ours.status < 300:
        _undo(pair, document, type_, theirs, ours)


def _undo(pair: Pair, document: Document, type_: Type, theirs: Answer, ours: Answer) -> None:
    for server, answer in ((pair.theirs, theirs), (pair.ours, ours)):
        if answer.status < 300:
            server.names.setdefault(f"doc:{document.name}", answer.data["documentId"])
        path = type_.path if type_.single else f"{type_.path}/{document.reference}"
        server.ask(Request("DELETE", path, (("locale", "*"),) if type_.localized else ()))
    document.versions.clear()


def version_query(type_: Type, version: tuple[str, str]) -> Query:
    locale, status = version
    made: Query = (("locale", locale),) if type_.localized and locale != LOCALES[0] else ()
    return made + ((("status", status),) if type_.drafts and status == "draft" else ())


def took(
    pair: Pair,
    document: Document,
    version: tuple[str, str],
    body: Body,
    theirs: Answer,
    ours: Answer,
    drafts: bool,
) -> None:
    pair.theirs.names[f"doc:{document.name}"] = theirs.data["documentId"]
    pair.ours.names[f"doc:{document.name}"] = ours.data["documentId"]
    document.versions.add(version)
    if version[1] == "published":
        document.versions |= {(version[0], "draft")} if drafts else set()
    document.said |= body


def learn(pair: Pair, world: World) -> None:
    """Read the row numbers and times of all versions, with which references to them are replaced."""
    for type_ in world.model.types.values():
        for status in type_.statuses:
            for server in (pair.theirs, pair.ours):
                known = {server.names.get(f"doc:{d.name}"): d for d in world.of(type_.uid)}
                for found in _versions(server, type_, status):
                    document = known.get(found["documentId"])
                    if document:
                        locale = found.get("locale") or LOCALES[0]
                        server.names[f"id:{document.name}:{status}:{locale}"] = found["id"]
                        server.names[f"created:{document.name}"] = found["createdAt"]


def _versions(server: Any, type_: Type, status: str) -> list[dict[str, Any]]:
    query: Query = (("status", status),)
    if type_.localized and not type_.single:
        query += (("locale", "*"),)
    if not type_.single:
        query += (("pagination[pageSize]", "100"),)
    data = server.ask(Request("GET", type_.path, query)).data
    return data if isinstance(data, list) else [data] if data else []


def _upload(pair: Pair, world: World) -> Iterator[Told]:
    for i, (name, kind, content) in enumerate(FILES):
        info = json.dumps({"alternativeText": f"About {name}", "caption": f"Caption {i}"} if i % 2 else {})
        request = Request(
            "POST", "/api/upload", body={"fileInfo": info}, files=(("files", name, kind, content),)
        )
        theirs, ours = pair.ask(request)
        for server, answer in ((pair.theirs, theirs), (pair.ours, ours)):
            server.names[f"file:{i}"] = answer.body[0]["id"]
            server.names[f"doc:file{i}"] = answer.body[0]["documentId"]
        world.files.append(f"«file:{i}»")
        yield request, theirs, ours


def picture(width: int, height: int, kind: str) -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(file, kind)
    return file.getvalue()


FILES = (
    ("shore.jpg", "image/jpeg", picture(640, 420, "JPEG")),
    ("chart.png", "image/png", picture(300, 200, "PNG")),
    ("dot.png", "image/png", picture(60, 40, "PNG")),
    ("read-me.txt", "text/plain", b"Plain text.\n"),
    ("data.json", "application/json", b'{"a": 1}\n'),
)
