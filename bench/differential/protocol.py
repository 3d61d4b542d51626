"""Random requests that test HTTP itself: methods, paths, `Origin`, and content types."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bench.differential.model import Type
from bench.differential.request import PUBLIC, Query, Request
from bench.differential.values import Chance

_SAFE = ("GET", "HEAD", "OPTIONS", "PATCH", "HEAD", "OPTIONS")
_UNSAFE = ("POST", "PUT", "DELETE")
_ORIGINS = (
    "https://site.example",
    "http://localhost:3000",
    "null",
    "not an origin",
    "https://a.example:8443",
)
_ACCEPTED = ("text/html", "application/xml", "application/json", "*/*;q=0.1", "image/png")
_NOWHERE = (
    "/api", "/api/", "/api/nope", "/api/nope/1", "/nope", "/api/users", "/api/users/me", "/api/upload/files",
)  # fmt: skip
_TYPES = (
    "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON",
    "application/vnd.api+json", "application/csp-report", "application/json; charset=latin1", "text/plain",
    "text/json", "text/html", "application/xml", "application/octet-stream", "", "nonsense",
)  # fmt: skip
_BODIES = (
    "",
    "{",
    "{}",
    "[]",
    "null",
    "5",
    '"x"',
    '{"data": {}',
    "{'data': {}}",
    '{"data": {},}',
    "\ufeff{}",
)


def _untouched(types: list[Type], names: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    # These requests change nothing, because the API does not support their methods.
    for type_ in types:
        yield from ((method, type_.path) for method in _SAFE)
        one = [f"{type_.path}/{name}" for name in (*names[type_.uid][:1], "none")]
        if type_.single:
            yield "POST", type_.path
            continue
        yield from ((method, type_.path) for method in ("PUT", "DELETE"))
        yield from ((method, path) for path in one for method in _SAFE)
        yield from (("POST", path) for path in one)
        yield from (("GET", f"{type_.path}{end}") for end in ("/", "//", "/none/more"))
    yield from ((method, path) for path in _NOWHERE for method in _SAFE)
    yield from ((method, path) for path in _NOWHERE[:5] for method in _UNSAFE)


def http_request(chance: Chance, types: list[Type], names: dict[str, list[str]]) -> Request:
    """Return a request that changes nothing. `names` maps uids to references to documents."""
    method, path = chance.choice(list(_untouched(types, names)))
    headers: list[tuple[str, str]] = []
    if chance.random() < 0.5:
        headers.append(("Origin", chance.choice(_ORIGINS)))
        if method == "OPTIONS" and chance.random() < 0.8:
            asked = chance.choice(("GET", "PUT", "DELETE", "PATCH", "NOPE"))
            headers.append(("Access-Control-Request-Method", asked))
            if chance.random() < 0.5:
                wanted = chance.choice(("authorization,content-type", "x-own", ""))
                headers.append(("Access-Control-Request-Headers", wanted))
    if chance.random() < 0.2:
        headers.append(("Accept", chance.choice(_ACCEPTED)))
    who = chance.choice(("full", "full", "reader", PUBLIC, "wrong-token"))
    return Request(method, path, headers=tuple(headers), who=who)


def with_content_type(chance: Chance, request: Request) -> Request:
    roll, text = chance.random(), json.dumps(request.body, ensure_ascii=False)
    if roll < 0.55:
        return replace(request, kind=chance.choice(_TYPES), body=text)
    if roll < 0.85:
        return replace(request, kind=_TYPES[chance.choice((0, 0, 0, 3, 6))], body=chance.choice(_BODIES))
    return replace(request, form=True, body={"data": text})


def with_other_indices(chance: Chance, query: Query) -> Query:
    """Return the query with its lists in a different form, such as with gaps between the indexes."""
    way = chance.choice(("empty", "empty", "gaps", "far", "reversed", "first empty", "bare"))
    made = [(_other_key(key, way), value) for key, value in query]
    if way == "reversed":
        made.reverse()
    if way == "first empty" and made:
        made[0] = (_other_key(made[0][0], "empty"), made[0][1])
    return tuple(made)


def _other_key(key: str, way: str) -> str:
    head, *names = key.replace("]", "").split("[")
    made: list[Any] = []
    for i, name in enumerate(names):
        if not name.isdigit():
            made.append(name)
        elif way == "empty":
            made.append("")
        elif way == "gaps":
            made.append(int(name) * 3 + 2)
        elif way == "far":
            made.append(int(name) + 150)
        elif way != "bare" or i + 1 < len(names):
            made.append(name)
    return head + "".join(f"[{name}]" for name in made)
