"""Comparison of responses: whether a response contains a secret, and whether the responses of twins are the
same.
"""

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass

import brotli

from tests.matrix.requests import Request
from tests.matrix.secrets import WORDS, probes
from tests.matrix.sites import Identity, Twin
from tests.sites import Answer

_SECRET = re.compile(rf"({'|'.join(WORDS)})[a-z0-9]+")
# Values that always differ between twins, because they are random or depend on the time.
_OWN = (
    # Quotes are preceded by backslashes where a tool's result is JSON inside of a text.
    (re.compile(r"\b[0-9a-f]{40}\b"), "<commit>"),
    (re.compile(r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z"), "<now>"),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"), "<jwt>"),
    (re.compile(r"\bq[0-9a-z]{23}\b"), "<new id>"),
    (re.compile(r"\b(msg|whsec)_[\w+/=-]+"), "<delivery or secret>"),
    (re.compile(r"(?<![\w-])[\w-]{32}(?![\w-])"), "<random>"),
    (re.compile(r"invitation#[\w-]+\.\d+"), "<invitation>"),
    (re.compile(r"\bbifolio_[0-9a-f]{64}"), "<token>"),
    (re.compile(r'\\*"id\\*":\d{9,}'), '"id":<number>'),
    (re.compile(r"_[0-9a-f]{10}\b"), "_<random>"),  # in the name of an uploaded file
    # Of the OpenAPI document, including its examples.
    (re.compile(r'\\*"version\\*":\\*"[0-9a-f]{12}\\*"'), '"version":<digest>'),
    # These numbers also count hidden events (SECURITY.md).
    (re.compile(r'\\*"(seq|last)\\*":\d+'), "<number of an event>"),
    (re.compile(r'\\*"log\\*":\\*"[0-9a-f]{8}\\*"'), '"log":<log>'),
    (re.compile(r'\\*"seconds\\*":\d+\.\d+'), '"seconds":<measured>'),  # how long a delivery took
    (re.compile(r"\bExpires=[\w,: ]+GMT"), "Expires=<now>"),  # of a cookie
    # In a batch result, the entity tag depends on the body beside it, which contains the time of the write.
    (re.compile(r'\\*"etag\\*":\\*"\\*"[^"\\]+\\*"\\*"'), '"etag":<tag>'),
    (re.compile(r"\bid: [0-9a-f]{8}-\d+"), "id: <event>"),
)
_NUMBER = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")
_COUNTS = frozenset({"healthReady"})  # operations that report counts of this process
TAG, LENGTH = "ETag", "Content-Length"
_OF_BODY = (TAG, LENGTH)  # Headers that are compared separately.
_OF_NOW = ("Date", "Expires", "Retry-After")


@dataclass(frozen=True, slots=True)
class Shown:
    """A response in the form in which it is compared: with an uncompressed body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    tag: str
    body: bytes
    length: str

    @classmethod
    def of(cls, answer: Answer) -> "Shown":
        """Return a response with its body decompressed."""
        coding, body = answer.headers.get("Content-Encoding"), answer.raw
        if body and coding == "gzip":
            body = gzip.decompress(body)
        elif body and coding == "br":
            body = brotli.decompress(body)
        headers = tuple(sorted((k, v) for k, v in answer.headers.items() if k not in (*_OF_BODY, *_OF_NOW)))
        length = answer.headers.get("Content-Length", "")
        return cls(answer.status, headers, answer.headers.get("ETag", ""), body, length)

    @property
    def is_public(self) -> bool:
        """Whether this is a successful response that shared caches may store."""
        return self.status == 200 and "public" in dict(self.headers).get("Cache-Control", "")

    @property
    def text(self) -> str:
        """All bytes of the response."""
        head = "\n".join(f"{name}: {value}" for name, value in self.headers)
        return f"{self.status}\n{head}\n{self.tag}\n\n{self.body.decode(errors='replace')}"


def find_leaks(identity: Identity, request: Request, shown: Shown) -> set[str]:
    """Return the secrets in a response that the identity may not see, except for those that the request
    contains.
    """
    hidden = {word for group in identity.hidden for word in probes(group)}
    return {word for word in secrets_in(shown.text, request) if word in hidden}


def secrets_in(text: str, request: Request) -> set[str]:
    """Return the words in a text that secrets begin with, except for those that the request contains.

    A request may contain such a word, because a word alone is not a secret.
    """
    said = request.text
    return {found[1] for found in _SECRET.finditer(text.lower()) if found[0] not in said}


def difference(identity: Identity, request: Request, twins: Sequence[Twin], answers: Sequence[Shown]) -> str:
    """Return how the responses of twins differ apart from random values, or "" if they do not differ."""
    plain = [_plain(request, twin, shown) for twin, shown in zip(twins, answers, strict=True)]
    first = answers[0]
    for number, other in enumerate(answers[1:], 1):
        if plain[number] != plain[0]:
            at = _first_difference(plain[0], plain[number])
            parts = (text[max(at - 200, 0) : at + 400] for text in (plain[0], plain[number]))
            return f"…{next(parts)}…\n--- twin {number}:\n…{next(parts)}…"
        if bool(first.tag) != bool(other.tag):
            return f"{TAG}: {first.tag or None}, {other.tag or None}"
        if first.body == other.body and _tag(identity, first) != _tag(identity, other):
            return f"{TAG}: {first.tag}, {other.tag}"
        if first.body == other.body and first.length != other.length:
            return f"{LENGTH}: {first.length}, {other.length}"
    return ""


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _tag(identity: Identity, shown: Shown) -> str:
    """Return the part of an entity tag that depends only on the body.

    For identities that may write private values, another part depends on these values.
    """
    return shown.tag.partition(".")[2] or shown.tag if identity.sees_tags else shown.tag


def _plain(request: Request, twin: Twin, shown: Shown) -> str:
    """Return a response as text, with random values replaced."""
    text = f"{shown.status}\n{shown.headers}\n{shown.body.decode(errors='replace')}"
    for pattern in (re.compile(r"\b[0-9a-f]{7,40}\b"),):
        text = pattern.sub(lambda found: _commit(twin, found[0]), text)
    for pattern, name in _OWN:
        text = pattern.sub(name, text)
    return _NUMBER.sub("<n>", text) if request.operation in _COUNTS else text


def _commit(twin: Twin, name: str) -> str:
    """Return a placeholder with the position of a commit in the history. The commit is given by its id or an
    id's prefix.
    """
    for again in (False, True):
        known = twin.list_commits() if again and len(name) == 40 else twin.commits
        for place, one in enumerate(known):
            if one.startswith(name):
                return f"<commit {place}>"
    return name
