"""Comparison of response headers that matter to clients."""

from collections.abc import Iterator, Mapping
from email.message import Message

from bench.differential.difference import ABSENT, Difference
from bench.differential.request import Answer

_COMPARED = ("content-type", "location", "allow", "vary", "www-authenticate")
_CORS = "access-control-"
_LISTS = ("allow", "vary", "access-control-allow-methods", "access-control-allow-headers")


def compared(headers: Message) -> Mapping[str, str]:
    made: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        if key in _COMPARED or key.startswith(_CORS):
            made[key] = f"{made[key]}, {value}" if key in made else str(value)
    return made


def header_differences(theirs: Answer, ours: Answer, *, cross_origin: bool) -> Iterator[Difference]:
    """Yield the headers that differ, ignoring the order of items in lists."""
    # Compare CORS headers and `Vary` only if the request has an `Origin` header.
    for name in sorted({*theirs.headers, *ours.headers}):
        if not cross_origin and (name == "vary" or name.startswith(_CORS)):
            continue
        there, here = (answer.headers.get(name, ABSENT) for answer in (theirs, ours))
        if _meant(name, there) != _meant(name, here):
            yield Difference(f"header.{name}", "header", there, here)


def _meant(name: str, value: str) -> object:
    parts = [part.strip().lower() for part in value.split("," if name in _LISTS else ";")]
    return sorted(parts) if name in _LISTS else parts
