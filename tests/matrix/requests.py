"""Random requests: any API operation, with any parameters that it accepts.

The paths, parameters and bodies are derived from the table of operations, so new operations are included
automatically.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from urllib.parse import quote

from server.api.operations.operation import Audience, Docs, Operation
from server.documents.values import derive_id
from tests.matrix.secrets import Group, probes

_VARIABLE = re.compile(r"\{(\w+)(?::(\w+))?\}")
_ARTICLES = ("a1", "a1", "a1", "a2", "a2", "a3", "mv", "d1", "d2", "gone", "gone2", "r2", "nope")
_VAULTS = ("v1", "v1", "v2", "vgone", "mv")
_DOCUMENTS: Mapping[str, Sequence[str]] = {
    "articles": _ARTICLES,
    "article": _ARTICLES,
    "vaults": _VAULTS,
    "tags": ("t1", "t2"),
}
_PROBES = tuple(word for group in Group for word in probes(group))
_UIDS = ("api::article.article", "api::vault.vault", "api::home.home", "x.box", "plugin::upload.file")
_FILES = (
    *("pic.txt", "old.txt", "../secret.txt", "..%2Fsecret.txt", "%2e%2e/site.yaml", ".bifolio/notes.txt"),
    *("../../.bifolio/notes.txt", "pic.txt/../../articles/d1.draft.json", "secret.txt"),
)
_COMMITS = (
    "main",
    "main~1",
    "main~2",
    "main~4",
    "next",
    "next~1",
    "2023-01-01",
    "2024-01-01T00:00:02Z",
    "nope",
)
# Values for variables in paths, by name. A variable with another name gets any of these values.
_VARIABLES: Mapping[str, Sequence[str]] = {
    "pluralApiId": (*["articles"] * 8, "vaults", "vaults", "tags", "nope"),
    "singularApiId": ("home", "home", "home", "article", "nope"),
    "type": (*["articles"] * 6, "vaults", "vaults", "home", "article", "tags", "nope"),
    "what": ("diff", "diff", "diff", "blame", "blame", "nope"),
    "name": ("next", "next", "next", "main", "nope", *(f"{word}name" for word in probes(Group.BRANCH))),
    "path": _FILES,
    "uid": _UIDS,
    "provider": ("local", "github"),
    "id": ("1", "2", "4", "5", "pic.txt", "a1", "99", *probes(Group.HIDDEN)),
    "client": ("tab-1", "tab-2"),
    "sessionId": ("1", "nope"),
    "place": ("articles/a1", "x"),
    "version": ("x",),
}
_ANY = tuple(dict.fromkeys([*_ARTICLES, *_VAULTS, *(v for values in _VARIABLES.values() for v in values)]))

# --- parameters -----------------------------------------------------------------------------------

_PATHS = (
    "title",
    "secret",
    "rank",
    "pin",
    "vault",
    "vaults",
    "about",
    "box",
    "box.code",
    "box.vault",
    "tag",
    "owner",
    "friends",
    "ptags",
    "pboxes",
)
_LEADING = ("vault.title", "vaults.title", "tag.name", "box.vault.title", "owner.email", "tag.articles.title")
_OPERATORS = ("$eq", "$contains", "$startsWith", "$null", "$notNull", "$gt", "$in", "$ne")
_WORD_OR_NUMBER = (*_PROBES, "Article", "1711", "1722", "true", "v1", "t1")
_PARAMETERS: Mapping[str, Sequence[str]] = {
    "at": _COMMITS,
    "status": ("draft", "published", "nope"),
    "locale": ("fr", "en", "*", "de"),
    "branch": ("next", "nope", *probes(Group.BRANCH)),
    "dryRun": ("true", "false", "nope"),
    "populate": ("*", "*", "deep", *_PATHS, *_LEADING, "localizations", "articles"),
    "populate[articles][count]": ("true",),
    "populate[vaults][count]": ("true",),
    "fields": (*_PATHS, "name", "updatedAt"),
    "sort": (*_PATHS, *_LEADING, "title:desc", "updatedAt", "id"),
    "_q": _WORD_OR_NUMBER,
    "q": _WORD_OR_NUMBER,
    "publicationFilter": ("modified", "never-published", "has-published-version", "unmodified", "nope"),
    "publicationStatus": ("true",),
    "pagination[pageSize]": ("1", "2", "0"),
    "pagination[withCount]": ("false",),
    "type": ("article", "vault", "vaults", "articles", "home", "nope"),
    "types": ("article", "vault", "upload", "article,vault"),
    "since": ("0", "3", "nope"),
    "from": _COMMITS,
    "to": _COMMITS,
    "deleted": ("true",),
    "path": (
        "/api/articles/a1",
        "/api/vaults/v1",
        "content/vaults/v1.json",
        "content/articles/d1.draft.json",
    ),
    "url": ("/api/articles/a1", "/api/vaults/v1", "/api/articles?populate=*"),
    "documentId": (*_ARTICLES, *_VAULTS),
    "presence": ("article:a1", "vault:v1", "article:d1"),
    "page": ("1", "2", "0"),
    "limit": ("1", "1000"),
    "ids": ("a1", "d1"),
    "count": ("true",),
    "confirmation": ("nope",),
    "severity": ("error", "warning"),
    "fixable": ("true",),
    "nope": ("1",),
}
_OF_CONTENT = (
    *("at", "status", "locale", "populate", "fields", "sort", "_q", "publicationFilter", "publicationStatus"),
    *("populate[articles][count]", "populate[vaults][count]", "sort", "fields"),
    *("pagination[pageSize]", "pagination[withCount]", "filters", "filters", "populate", "dryRun", "branch"),
)
_OF_PATHS = (
    ("/history/{type}/{documentId}/{what}", ("from", "from", "to", "to", "status", "locale")),
    ("/history/uncommitted", ("path",)),
    ("/history", ("deleted", "type", "locale", "status", "page")),
    ("/source", ("status", "locale")),
    ("/uploads", ("at",)),
    ("/search", ("q", "type", "locale", "status")),
    ("/overview", ("status", "at", "locale")),
    ("/api/users", ("populate", "filters", "sort", "_q")),
    ("/openapi", ("at",)),
)
_OF_WRITES = ("status", "status", "locale", "populate", "fields", "branch", "dryRun")
_OF_ALL = ("at", "status", "locale", "branch", "dryRun")

# --- headers --------------------------------------------------------------------------------------

KNOWN_TAG = "<known>"  # the placeholder for the entity tag in the last response for the path
KNOWN_UNDO = "UNDO"  # the placeholder in a path for the undo id of the last write
_HEADERS: Sequence[Mapping[str, str]] = (
    {"If-None-Match": KNOWN_TAG},
    {"If-None-Match": KNOWN_TAG},
    {"If-None-Match": "*"},
    {"If-None-Match": '"nope"'},
    {"If-Match": KNOWN_TAG},
    {"If-Match": "*"},
    {"If-Match": '"nope"'},
    {"If-Match": KNOWN_TAG, "Prefer": "merge"},
    {"Prefer": "undo"},
    {"If-Modified-Since": "Thu, 29 Feb 2024 10:20:30 GMT"},
    {"Range": "bytes=0-3"},
    {"Accept-Encoding": "gzip"},
    {"Accept-Encoding": "br"},
    {"Strapi-Response-Format": "v4"},
    {"strapi-encode-source-maps": "true"},
    {"Accept": "text/markdown"},
    {"Accept": "text/markdown"},
    {"Origin": "https://example.org"},
    {"X-HTTP-Method-Override": "DELETE"},
)

# --- bodies ---------------------------------------------------------------------------------------

_VAULT = {"__type": "api::vault.vault", "documentId": "v1"}
_TAG = {"__type": "api::tag.tag", "documentId": "t1"}
_ARTICLE = ("api::article.article", "a1", "en")  # the strings from which ids in the first article are derived


def _beside(target: str, *others: str) -> Mapping[str, Any]:
    """Return a change to a relation that places a target after each of the others."""
    return {"connect": [{"documentId": target, "position": {"after": other}} for other in others]}


# Values that may refer to current values. If these are secret, an error would reveal them.
GUESSES: Sequence[Mapping[str, Any]] = (
    *({name: _beside("t1", "t2")} for name in ("ptags", "friends")),
    *({name: _beside("t2", "t1")} for name in ("ptags", "friends")),
    {"ptags": {"connect": [*_beside("t1", "t2")["connect"], *_beside("t2", "t1")["connect"]]}},
    {"about": {"connect": [{**_TAG, "position": {"after": "v1", "__type": "api::vault.vault"}}]}},
    *({name: _beside("a2", "a1")} for name in ("parts", "fans")),
    *(
        {name: [{"id": derive_id("\0".join(_ARTICLE), name, place), "label": "x"}]}
        for name in ("boxes", "pboxes")
        for place in "01"
    ),
)
_DATA: Sequence[Mapping[str, Any]] = (
    *GUESSES,
    {"title": "New title"},
    {"title": "New title", "body": "New text", "tag": "t2"},
    {"secret": probes(Group.PRIVATE)[0] + "secret"},
    {"rank": 1711},
    {"pin": "a new password"},
    {"vault": None},
    {"vault": "v1"},
    {"vaults": ["v1"]},
    {"vaults": {"disconnect": ["v2"]}},
    {"about": []},
    {"about": [_VAULT]},
    {"about": [_TAG]},
    {"box": {"label": "New label"}},
    {"box": {"vault": None}},
    {"box": {"label": "x", "code": probes(Group.PRIVATE)[0] + "code"}},
    {"boxes": []},
    {"zone": [{"__component": "x.box", "label": "x"}]},
    {"cover": "pic.txt"},
    {"cover": None},
    {"owner": 4},
    {"name": "New name"},
    {"motto": probes(Group.PRIVATE)[0] + "motto"},
    {"nope": 1},
    {"title": {"a": 1}},
    {},
)
_ATTRIBUTES: Mapping[str, Sequence[str]] = {
    "articles": (
        *(
            "title",
            "body",
            "secret",
            "rank",
            "pin",
            "vault",
            "vaults",
            "about",
            "box",
            "boxes",
            "zone",
            "cover",
        ),
        *("cover", "owner", "tag", "friends", "ptags", "pboxes"),
    ),
    "tags": ("name", "articles", "fans", "parts"),
    "vaults": ("title",),
    "home": ("title", "motto"),
}
_TEXTS = ("text", "main", "main~2", "next", "a1", "v1", "user@example.org", *_PROBES)

_FORMS: Sequence[Mapping[str, str]] = (
    {"nope": "1"},
    {"ref": "api::article.article", "refId": "a1", "field": "cover"},
    {"ref": "api::article.article", "refId": "d1", "field": "cover"},
    {"ref": "api::vault.vault", "refId": "v1", "field": "title"},
    {"ref": "api::article.article", "refId": "1", "field": "secret"},
    {"fileInfo": '{"name": "New name", "alternativeText": "Text"}'},
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is sent to each twin site as each identity (an actor with certain permissions)."""

    operation: str
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    form: Mapping[str, str] = field(default_factory=dict)  # sent together with a file, instead of a body
    part: str = ""  # the part of the operation that is requested, which must succeed for an identity
    is_read: bool = False  # set for a POST that changes nothing

    @property
    def text(self) -> str:
        """All text in the request, which the response may therefore contain."""
        return f"{self.path} {self.body} {dict(self.headers)} {dict(self.form)}".lower()


def make_request(random: Random, operation: Operation, audience: Audience) -> Request:
    """Make a random request for an operation. The operation may reject it."""
    docs = operation.docs
    described = docs if isinstance(docs, Docs) else None
    if callable(docs) and audience.view is None:
        described = docs(audience) if not operation.kind else None
    path = _fill(random, operation.path)
    if operation.path.startswith("/batch/undo") and random.random() < 0.8:
        path = f"/batch/undo/{KNOWN_UNDO}"
    query = _query(random, operation, described)
    data = _data_of(random, path)
    method = operation.method
    if method == "GET" and random.random() < 0.12:
        method = "HEAD"
    elif random.random() < 0.03:
        method = random.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS"])
    if method not in ("GET", "HEAD"):
        # An actor who may write drafts learns which ids have drafts (SECURITY.md, "What is not").
        path = path.replace("/d2", "/d1")
    headers: dict[str, str] = {}
    for _ in range(random.choice([0, 0, 0, 1, 2])):
        headers |= random.choice(_HEADERS)
    if method in ("POST", "PUT", "DELETE") and random.random() < 0.3:
        headers["Prefer"] = "undo"
    address = f"{path}?{query}" if query else path
    if "multipart/form-data" in _content_of(described) and method == "POST" and random.random() < 0.8:
        return Request(operation.id, method, address, headers, form=random.choice(_FORMS))
    body = _body(random, described, data) if method in ("POST", "PUT") else None
    if operation.id in TELLS_TAKEN and isinstance(body, dict) and "email" in body:
        body["email"] = random.choice(_KNOWN_ADDRESSES)
    return Request(operation.id, method, address, headers, body)


def _content_of(docs: Docs | None) -> Mapping[str, Any]:
    """Return the bodies that an operation accepts, by media type."""
    content: Mapping[str, Any] = (docs.body or {}).get("content", {}) if docs else {}
    return content


# Variations of each operation. A long run sends each of them once.
VARIATIONS = ("at=main~1", "status=draft", "locale=fr", "branch=next", "dryRun=true", "HEAD", "conditional")


def vary(request: Request, variation: str) -> Request:
    """Return a request with one of the VARIATIONS applied."""
    reads = request.method in ("GET", "HEAD")
    if variation == "HEAD":
        return replace(request, method="HEAD") if reads else request
    if variation == "conditional":
        header = "If-None-Match" if reads else "If-Match"
        return replace(request, headers={**request.headers, header: KNOWN_TAG})
    name = variation.partition("=")[0]
    if f"{name}=" in request.path:
        return request
    return replace(request, path=f"{request.path}{'&' if '?' in request.path else '?'}{variation}")


def _fill(random: Random, path: str) -> str:
    """Fill in the variables of a path. Ids of documents mostly match the content type."""
    chosen: dict[str, str] = {}

    def fill(found: re.Match[str]) -> str:
        name = found[1]
        of_type = _DOCUMENTS.get(chosen.get("pluralApiId") or chosen.get("type", ""))
        values = _VARIABLES.get(name, _ANY)
        if name == "documentId" and of_type and random.random() < 0.9:
            values = of_type
        chosen[name] = random.choice(values)
        return chosen[name] if found[2] == "path" else chosen[name].replace("/", "%2F")

    return _VARIABLE.sub(fill, path)


def _query(random: Random, operation: Operation, docs: Docs | None) -> str:
    """Make a query string with parameters that the operation, any content, or any request accepts."""
    declared = [str(p["name"]) for p in docs.parameters if p.get("in") == "query"] if docs else []
    required = (
        [str(p["name"]) for p in docs.parameters if p.get("required") and p.get("in") == "query"]
        if docs
        else []
    )
    writes = operation.method != "GET"
    fitting = [*declared, *next((names for path, names in _OF_PATHS if operation.path.startswith(path)), ())]
    if operation.kind:
        fitting += _OF_WRITES if writes else _OF_CONTENT
    names = [*(n for n in required if random.random() < 0.9)]
    names += [random.choice(fitting) for _ in range(random.choice([0, 1, 1, 2, 2])) if fitting]
    if random.random() < 0.2:
        names.append(random.choice([*_OF_ALL, *_OF_ALL, *_PARAMETERS]))
    return "&".join(_parameter(random, name) for name in dict.fromkeys(names))


def _parameter(random: Random, name: str) -> str:
    if name == "filters":
        return _filter(random)
    value = random.choice(_PARAMETERS.get(name, _TEXTS))
    return f"{name}={quote(value, safe='*:,/~')}"


def _filter(random: Random) -> str:
    path = random.choice((*_PATHS, *_LEADING))
    brackets = "".join(f"[{part}]" for part in path.split("."))
    logic = random.choice(["", "", "", "[$not]", "[$or][0]"])
    value = random.choice(_WORD_OR_NUMBER)
    return f"filters{logic}{brackets}[{random.choice(_OPERATORS)}]={value}"


# --- bodies ---------------------------------------------------------------------------------------


def _data_of(random: Random, path: str) -> Mapping[str, Any]:
    """Choose data for a document. The data mostly matches the content type in the path."""
    known = next((names for name, names in _ATTRIBUTES.items() if f"/{name}" in path), ())
    fitting = [data for data in _DATA if data.keys() <= set(known)]
    return random.choice(fitting if fitting and random.random() < 0.85 else _DATA)


def _body(random: Random, docs: Docs | None, data: Mapping[str, Any]) -> Any:
    """Make a body: either one that matches the operation's schema, or the data of a document."""
    described = _content_of(docs).get("application/json", {}).get("schema")
    if described is not None and random.random() < 0.9:
        return sample(random, described)
    return {"data": data}


def sample(random: Random, schema: Any, name: str = "", depth: int = 0) -> Any:
    """Make a value that mostly matches a JSON schema."""
    if not isinstance(schema, Mapping) or depth > 6:
        return random.choice(_TEXTS)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return sample(random, random.choice(schema[key]), name, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    if name == "filters":
        return {random.choice(_PATHS): {random.choice(_OPERATORS): random.choice(_WORD_OR_NUMBER)}}
    if name in ("data", "body"):
        return random.choice(_DATA)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = random.choice(kind) if isinstance(kind, list) else kind
    if kind == "object":
        required = schema.get("required", ())
        return {
            key: sample(random, inner, key, depth + 1)
            for key, inner in schema.get("properties", {}).items()
            if key in required or random.random() < 0.5
        }
    if kind == "array":
        return [
            sample(random, schema.get("items", {}), name, depth + 1) for _ in range(random.choice([1, 2]))
        ]
    return _scalar(random, kind, name)


# Whoever may register can find out whether a user has an email address, because each address can be used only
# once. Strapi's registration does the same (SECURITY.md, "Not covered"). Therefore, random requests for this
# operation never guess the addresses of hidden users; the responses of twins would differ.
TELLS_TAKEN = frozenset({"register"})
_KNOWN_ADDRESSES = ("user@example.org", "new@example.org")  # The first user exists on all twins.
_BY_NAME: Mapping[str, Sequence[str]] = {
    "at": _COMMITS,
    "branch": ("next", "spring"),
    "documentId": (*_ARTICLES, *_VAULTS),
    "type": ("article", "vault", "home"),
    "path": (
        "/api/articles/a1",
        "/api/articles",
        "/api/vaults/v1",
        "/api/vaults",
        "/api/home",
        "/api/nope",
        "content/articles/a1.json",
        "content/articles/d1.draft.json",
        "content/vaults/v1.json",
    ),
    "method": ("PUT", "POST", "DELETE"),
    "fields": ("title", "secret", "box", "vault"),
    "identifier": ("user", "clerk", "victim", *probes(Group.HIDDEN)),
    "email": (*_KNOWN_ADDRESSES, *(f"{word}user@example.org" for word in probes(Group.HIDDEN))),
    "field": ("title", "secret", "box.label", "box.code", "vault"),
    "files": ("content/vaults/v1.json", "content/articles/a1.json", "site.yaml", "secret.txt"),
}


def _scalar(random: Random, kind: str, name: str) -> Any:
    if kind in ("integer", "number"):
        return random.choice([0, 1, 2, 5, 99])
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "null":
        return None
    return random.choice(_BY_NAME.get(name, _TEXTS))
