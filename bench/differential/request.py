"""Requests for both servers. They contain references instead of ids, because ids differ between the
servers.
"""
# References are strings: `«doc:3»` is a documentId, `«id:3:draft:en»` the row number of a version,
# `«created:3»` a time, and `«file:2»` the number of a file.
# In a body, `{"«get»": PATH, "at": "data.tags"}` is a part of the server's own response to a GET request. Its
# other keys are edits (`editing.edited`).

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from bench.differential.editing import edited
from tests.conformance.compare import dig

GET = "«get»"
PUBLIC = "public"  # the actor of requests without a token
_REFERENCE = re.compile(r"«([^»]+)»")
Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `body` is JSON, unless `kind` specifies a different content type. `files` are sent in a
    form.
    """

    method: str
    path: str
    query: Query = ()
    body: Any = None
    kind: str = "application/json"
    files: tuple[tuple[str, str, str, bytes], ...] = ()  # (field name, file name, media type, content)
    headers: tuple[tuple[str, str], ...] = ()
    who: str = "full"  # name of a token, reference to a session, or PUBLIC
    form: bool = False  # whether to send a form even if there are no files


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its body as JSON or text, and the headers to compare, by name in lower case."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Any:
        return self.body.get("data") if isinstance(self.body, dict) else None


def fill(value: Any, names: Mapping[str, Any], get: Callable[[str], Any]) -> Any:
    """Replace references with a server's values for them."""
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole:
            return names.get(whole[1], "missing")
        return _REFERENCE.sub(lambda found: str(names.get(found[1], "missing")), value)
    if isinstance(value, list | tuple):
        return [fill(item, names, get) for item in value]
    if isinstance(value, dict) and GET in value:
        found = dig(get(fill(value[GET], names, get)), value["at"], None)
        edits = fill(value.get("edits", []), names, get)
        return edited(found, {**value, "edits": edits})
    if isinstance(value, dict):
        return {fill(key, names, get): fill(item, names, get) for key, item in value.items()}
    return value


def flatten(name: str, tree: Any) -> Query:
    if isinstance(tree, Mapping):
        return tuple(pair for key, inner in tree.items() for pair in flatten(f"{name}[{key}]", inner))
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return tuple(pair for i, inner in enumerate(tree) for pair in flatten(f"{name}[{i}]", inner))
    return ((name, str(tree)),)


def target(request: Request, names: Mapping[str, Any], *, plain: bool = False) -> str:
    """Return the path and query string. With `plain`, brackets are not percent-encoded."""
    safe = "[]$:,*/" if plain else ":,*"
    pairs = (
        f"{quote(str(fill(key, names, _never)), safe)}={quote(str(fill(value, names, _never)), safe)}"
        for key, value in request.query
    )
    query = "&".join(pairs)
    return str(fill(request.path, names, _never)) + (f"?{query}" if query else "")


def _never(_: str) -> Any:
    raise ValueError("a query does not hold parts of answers")


def encode(request: Request, body: Any) -> tuple[bytes | None, dict[str, str]]:
    """Return a body, in which references have been replaced, as bytes, and its headers."""
    headers = dict(request.headers)
    if request.files or request.form:
        return _multipart(request, body)
    if body is None:
        return None, headers
    if request.kind == "application/x-www-form-urlencoded":
        pairs = [pair for key, value in body.items() for pair in flatten(key, value)]
        text = "&".join(f"{quote(k, '')}={quote(v, '')}" for k, v in pairs)
        return text.encode(), {"Content-Type": request.kind, **headers}
    text = body if isinstance(body, str) and request.kind != "application/json" else json.dumps(body)
    kind = {"Content-Type": request.kind} if request.kind else {}
    return text.encode(), {**kind, **headers}


_BOUNDARY = "bifolio-differential-boundary"


def _multipart(request: Request, body: Any) -> tuple[bytes, dict[str, str]]:
    parts = b""
    for key, value in (body or {}).items():
        text = value if isinstance(value, str) else json.dumps(value)
        parts += f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{text}\r\n'.encode()
    for key, name, kind, content in request.files:
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"; filename="{name}"\r\n'
        parts += f"{head}Content-Type: {kind}\r\n\r\n".encode() + content + b"\r\n"
    kind = f"multipart/form-data; boundary={_BOUNDARY}"
    return parts + f"--{_BOUNDARY}--\r\n".encode(), {**dict(request.headers), "Content-Type": kind}


def curl(request: Request, names: Mapping[str, Any]) -> str:
    """Return a request as a curl command, with references for parts copied from responses."""
    words = ["curl", "-sg"]
    if request.method != "GET":
        words += ["-X", request.method]
    words += [part for name, value in request.headers for part in ("-H", f"{name}: {value}")]
    if request.who not in ("full", PUBLIC):
        words += ["-H", f"Authorization: Bearer <{request.who}>"]
    for key, name, _, _ in request.files:
        words += ["-F", f"{key}=@{name}"]
    if request.body is not None:
        named = _named(request.body, names)
        if request.files or request.form:
            words += [part for k, v in named.items() for part in ("-F", f"{k}={v}")]
        elif request.kind == "application/json":
            words += ["--json", json.dumps(named, ensure_ascii=False)]
        else:
            sent = encode(request, named)[0] or b""
            words += ["-H", f"Content-Type: {request.kind}", "-d", sent.decode()]
    public = "  # by the public" if request.who == PUBLIC else ""
    return shlex.join([*words, target(request, names, plain=True)]) + public


def _named(value: Any, names: Mapping[str, Any]) -> Any:
    # Placeholders for parts that are copied from responses are kept.
    if isinstance(value, dict) and GET in value:
        edits = fill(value.get("edits", []), names, _never)
        told = [*value.get("without", ()), *(["numbers of components"] if value.get("plain") else [])]
        made = f"{value['at']} of {fill(value[GET], names, _never)}"
        made += f" without {', '.join(told)}" if told else ""
        return f"«{made} with {edits}»" if edits else f"«{made}»"
    if isinstance(value, dict):
        return {key: _named(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_named(inner, names) for inner in value]
    return fill(value, names, _never)
