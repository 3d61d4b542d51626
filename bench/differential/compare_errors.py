"""Comparison of two responses if Strapi's response is an error."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from bench.differential.difference import ABSENT, WORDING, Difference
from tests.conformance.compare import EXACT_MESSAGE

Error = Mapping[str, Any]


def error_differences(theirs: Mapping[str, Any], ours: Any) -> Iterator[Difference]:
    """Yield the differences between two errors. Differences in wording have the kind `message`."""
    error = ours.get("error") if isinstance(ours, dict) else None
    if not isinstance(error, dict):
        yield Difference("error", "error", theirs["error"], ours)
        return
    if theirs.keys() != ours.keys():
        yield Difference("", "error", sorted(theirs), sorted(ours))
    yield from _heads(theirs["error"], error)
    yield from _details(theirs["error"].get("details") or {}, error.get("details") or {})


def _heads(theirs: Error, ours: Error) -> Iterator[Difference]:
    # This compares everything except the details.
    if theirs.get("name") != ours.get("name"):
        there, here = (f"{error.get('name')}: {error.get('message')}" for error in (theirs, ours))
        yield Difference("error.name", "error", there, here)
    elif theirs.get("message") != ours.get("message"):
        exact = EXACT_MESSAGE.match(str(theirs.get("message")))
        yield Difference("error.message", "error" if exact else WORDING, theirs["message"], ours["message"])
    for key in sorted({*theirs, *ours} - {"name", "message", "details"}):
        if theirs.get(key, ABSENT) != ours.get(key, ABSENT):
            yield Difference(f"error.{key}", "error", theirs.get(key, ABSENT), ours.get(key, ABSENT))


def _details(theirs: Error, ours: Error) -> Iterator[Difference]:
    for key in sorted({*theirs, *ours} - {"errors"}):
        if theirs.get(key, ABSENT) != ours.get(key, ABSENT):
            yield Difference(
                f"error.details.{key}", "details", theirs.get(key, ABSENT), ours.get(key, ABSENT)
            )
    there, here = (_by_path(details.get("errors")) for details in (theirs, ours))
    if there.keys() != here.keys():
        kind = "more" if there and there.keys() < here.keys() else "error"
        yield Difference("error.details.errors", kind, sorted(there), sorted(here))
    for path in sorted(there.keys() & here.keys()):
        yield from _entries(there[path], here[path])


def _by_path(errors: Any) -> dict[str, list[Error]]:
    made: dict[str, list[Error]] = {}
    for entry in errors if isinstance(errors, list) else []:
        made.setdefault(".".join(map(str, entry.get("path") or [])), []).append(entry)
    return made


def _entries(theirs: list[Error], ours: list[Error]) -> Iterator[Difference]:
    """Compare the errors at one path."""
    for key in sorted({key for entry in (*theirs, *ours) for key in entry} - {"path"}):
        there, here = (
            Counter(repr(entry.get(key, ABSENT)) for entry in entries) for entries in (theirs, ours)
        )
        if there != here:
            kind = WORDING if key == "message" else "details"
            yield Difference(f"error.details.errors[].{key}", kind, sorted(there), sorted(here))
