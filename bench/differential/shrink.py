"""Reduction of a request that reveals a difference to the smallest request that still reveals it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from bench.differential.request import GET, Request

Shows = Callable[[Request], bool]


def shrink(request: Request, shows: Shows, max_attempts: int = 60) -> Request:
    """Return the smallest request for which `shows` is true, after at most `max_attempts` attempts."""
    smaller = True
    while smaller:
        smaller = False
        for attempt in _smaller(request):
            max_attempts -= 1
            if max_attempts < 0:
                return request
            if shows(attempt):
                request, smaller = attempt, True
                break
    return request


def _smaller(request: Request) -> Iterator[Request]:
    """Yield copies of the request, each with one part removed."""
    for pairs in _fewer(request.query):
        yield replace(request, query=pairs)
    if request.headers:
        yield replace(request, headers=())
    for i, (key, _) in enumerate(request.query):
        for shorter in _shorter(key):
            yield replace(request, query=_with(request.query, i, shorter, request.query[i][1]))
    for i, (key, value) in enumerate(request.query):
        if "," in value and not key.startswith("filters"):
            for part in value.split(","):
                yield replace(request, query=_with(request.query, i, key, part))
    if isinstance(request.body, dict) and isinstance(request.body.get("data"), dict):
        for data in _less(request.body["data"]):
            yield replace(request, body={**request.body, "data": data})


def _fewer(pairs: tuple[tuple[str, str], ...]) -> Iterator[tuple[tuple[str, str], ...]]:
    heads = list(dict.fromkeys(key.partition("[")[0] for key, _ in pairs))
    if len(heads) > 1:
        for head in heads:
            yield tuple(pair for pair in pairs if pair[0].partition("[")[0] != head)
    for i in range(len(pairs)):
        yield pairs[:i] + pairs[i + 1 :]


def _shorter(key: str) -> Iterator[str]:
    names = key.rstrip("]").replace("]", "").split("[")
    for i, name in enumerate(names):
        if name in ("$and", "$or") and i + 2 < len(names):
            yield names[0] + "".join(f"[{n}]" for n in names[1:i] + names[i + 2 :])
        if name == "$not" and i + 1 < len(names):
            yield names[0] + "".join(f"[{n}]" for n in names[1:i] + names[i + 1 :])


def _with(pairs: tuple[tuple[str, str], ...], i: int, key: str, value: str) -> tuple[tuple[str, str], ...]:
    return (*pairs[:i], (key, value), *pairs[i + 1 :])


def _less(value: Any) -> Iterator[Any]:
    """Yield copies of an object or list without one item at some depth."""
    if isinstance(value, dict) and GET in value:
        for edits in _less(value.get("edits", [])[:]) if value.get("edits") else ():
            if all(len(edit) == 3 for edit in edits):
                yield {**value, "edits": edits}
    elif isinstance(value, dict):
        for key in value:
            if key != "__component":
                yield {name: inner for name, inner in value.items() if name != key}
        for key, inner in value.items():
            for less in _less(inner):
                yield {**value, key: less}
    elif isinstance(value, list):
        for i in range(len(value)):
            yield [*value[:i], *value[i + 1 :]]
        for i, inner in enumerate(value):
            for less in _less(inner):
                yield [*value[:i], less, *value[i + 1 :]]
