"""Comparison of Bifolio's responses with recorded Strapi responses, by the rules that come with the
recordings.

- `status`: must be equal.
- `body`: must be equal after both sides are normalized. The order of list items matters, the order of keys
  does not. A document may contain `locale` although the recording does not.
- errors: status and name must be equal. The message must be equal if it names a key, a missing payload or
  missing credentials. If the request body is invalid, only the sets of error paths must be equal.
- `names`: compares only the list of `str` values in `data`, in order.
- `has`: compares only the values at the given paths. The placeholders `<time>`, `<id>`, `<doc>` and
  `<absent>` keep their meaning.

Normalizing replaces these values:
- a documentId by the placeholder `<doc:N>` that was first expected in its place (one to one)
- an integer `id` by `<id>`
- createdAt, updatedAt and publishedAt by `<time>`, unless they are null
- a JSON Web Token by `<jwt>`
- the random part of an upload's name by `<hash>`
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TIMES = ("createdAt", "updatedAt", "publishedAt")
HASH = re.compile(r"_[0-9a-z]{10,}(?=\.|$)")
EXACT_MESSAGE = re.compile(
    r'(Invalid key|Missing "data"|Forbidden$|Not Found$|Missing or invalid credentials$'
    r"|Cannot use both|Invalid identifier or password$)"
)
OPTIONAL = ("isUrlSigned", "focalPoint")
SIZES = ("size", "sizeInBytes")
COUNTS = ("nb_users",)
SHORTEST_ID = 13  # A shorter documentId may occur in other text by chance.
ABSENT: Any = object()


def fill(value: Any, variables: Mapping[str, Any]) -> Any:
    """Replace the `{{variables}}` in a part of a step."""
    if isinstance(value, str):
        whole = re.fullmatch(r"\{\{(\w+)\}\}", value)
        if whole:
            return variables.get(whole[1], "missing")
        return re.sub(r"\{\{(\w+)\}\}", lambda m: str(variables.get(m[1], "missing")), value)
    if isinstance(value, list):
        return [fill(item, variables) for item in value]
    if isinstance(value, dict):
        return {fill(key, variables): fill(item, variables) for key, item in value.items()}
    return value


def dig(body: Any, where: str, default: Any = ABSENT) -> Any:
    """Return the value at a dotted path, or the default if the path does not exist."""
    for key in where.split("."):
        try:
            body = body[int(key)] if isinstance(body, list) else body[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return default
    return body


class Comparison:
    """Comparison of all responses in one scenario. It stores which document each `<doc:N>` stands for."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}  # by documentId

    def bind(self, want: Any, got: Any) -> None:
        """Assign each expected `<doc:N>` to the unknown documentId in the same place of the response."""
        if isinstance(want, dict) and isinstance(got, dict):
            alias, document_id = want.get("documentId"), got.get("documentId")
            if isinstance(alias, str) and alias.startswith("<doc:") and isinstance(document_id, str):
                self.same_document(alias, document_id)
            for key in want.keys() & got.keys():
                self.bind(want[key], got[key])
        elif isinstance(want, list) and isinstance(got, list):
            for one, other in zip(want, got, strict=False):
                self.bind(one, other)

    def same_document(self, alias: str, document_id: str) -> bool:
        """Return whether `<doc:N>` stands for the document. If neither is assigned yet, assign them to each
        other.
        """
        if document_id not in self.aliases and alias not in self.aliases.values():
            self.aliases[document_id] = alias
        return self.aliases.get(document_id) == alias

    def normalised(self, value: Any, key: str | None = None) -> Any:
        """Return Bifolio's response in the notation of the recordings."""
        if isinstance(value, dict):
            return {name: self.normalised(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.normalised(item, key) for item in value]
        if key == "id" and isinstance(value, int) and not isinstance(value, bool):
            return "<id>"
        return self._normalised_text(value, key) if isinstance(value, str) else value

    def _normalised_text(self, text: str, key: str | None) -> str:
        if key == "documentId":
            return self.aliases.get(text, "<doc:unknown>")
        if key in TIMES:
            return "<time>" if TIME.fullmatch(text) else text
        if key == "jwt":
            return "<jwt>"
        if key in ("hash", "url"):
            return HASH.sub("_<hash>", text)
        for document_id, alias in self.aliases.items():
            if len(document_id) >= SHORTEST_ID:
                text = text.replace(document_id, alias)
        return text

    def differences(self, expect: Mapping[str, Any], status: int, body: Any) -> list[str]:
        """Return a sentence for each difference from the recording."""
        return list(self._differences(expect, status, body))

    def _differences(self, expect: Mapping[str, Any], status: int, body: Any) -> Iterator[str]:
        want = expect.get("body")
        self.bind(want, body)
        got = self.normalised(body)
        if status != expect["status"]:
            yield f"status: want {expect['status']}, got {status} {str(body)[:300]}"
        elif "names" in expect:
            names = [document.get("str") for document in (body or {}).get("data") or []]
            if names != expect["names"]:
                yield f"names: want {expect['names']}, got {names}"
        elif "has" in expect:
            yield from _has(expect["has"], got)
        elif isinstance(want, dict) and want.get("error"):
            yield from _error(want["error"], body)
        elif "body" in expect and not (isinstance(want, dict) and "<text>" in want):
            yield from _same(want, got, "")


def _has(wanted: Mapping[str, Any], body: Any) -> Iterator[str]:
    for where, value in wanted.items():
        got = dig(body, where)
        if got is ABSENT:
            got = "<absent>"
        elif isinstance(got, str) and got.startswith("<doc:"):
            got = "<doc>"
        if got != value:
            yield f"{where}: want {value!r}, got {got!r}"


def _same(want: Any, got: Any, where: str) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        yield from _same_object(want, got, where)
    elif isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            yield f"{where}: want {len(want)} items, got {len(got)}"
        for i, (one, other) in enumerate(zip(want, got, strict=False)):
            yield from _same(one, other, f"{where}[{i}]")
    elif want != got or isinstance(want, bool) != isinstance(got, bool):
        yield f"{where}: want {str(want)[:120]!r}, got {str(got)[:120]!r}"


def _same_object(want: dict[str, Any], got: dict[str, Any], where: str) -> Iterator[str]:
    for key, value in want.items():
        if key not in got:
            if key not in OPTIONAL:
                yield f"{where}.{key}: missing"
        elif key == "formats" and value and got[key]:
            if set(value) != set(got[key]):
                yield f"{where}.formats: want {sorted(value)}, got {sorted(got[key])}"
        elif key in SIZES:
            if not isinstance(got[key], int | float):
                yield f"{where}.{key}: want a number, got {got[key]!r}"
        elif key not in COUNTS:
            yield from _same(value, got[key], f"{where}.{key}")
    for key in got:
        if key not in want and key != "locale":
            yield f"{where}.{key}: unexpected"


def _error(want: Mapping[str, Any], body: Any) -> Iterator[str]:
    got = (body or {}).get("error")
    if not isinstance(got, dict):
        yield f"want an error, got {str(body)[:160]}"
        return
    if body.get("data", "absent") is not None:
        yield "data must be null beside an error"
    for key in ("status", "name"):
        if want.get(key) != got.get(key) and want.get("name") != "SyntaxError":
            yield f"error.{key}: want {want.get(key)!r}, got {got.get(key)!r}"
    if EXACT_MESSAGE.match(want["message"]) and want["message"] != got.get("message"):
        yield f"error.message: want {want['message']!r}, got {got.get('message')!r}"
    wanted, answered = _paths(want), _paths(got)
    if wanted and wanted != answered:
        yield f"error paths: want {wanted}, got {answered}"


def _paths(error: Mapping[str, Any]) -> list[str]:
    listed = (error.get("details") or {}).get("errors") or []
    return sorted(".".join(map(str, entry["path"])) for entry in listed if entry.get("path"))
