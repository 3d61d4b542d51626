"""Comparison of two responses, ignoring details that differ between any two servers."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from bench.differential.compare_errors import error_differences
from bench.differential.compare_headers import header_differences
from bench.differential.difference import ABSENT, Difference
from bench.differential.request import Answer
from tests.conformance.compare import HASH, TIME, TIMES

_HASHED = ("hash", "url", "name")


class Comparison:
    """Comparison of responses. DocumentIds are equal if they belong to the same document.

    `written` is the name of the document that was written last, or "".
    """

    # Two unknown documentIds at the same place are assumed to mean the same document.

    def __init__(self, theirs: dict[str, Any], ours: dict[str, Any], written: str = "") -> None:
        self._names, self._written = (theirs, ours), written
        self._theirs = {v: k for k, v in theirs.items() if k.startswith("doc:")}
        self._ours = {v: k for k, v in ours.items() if k.startswith("doc:")}
        self._inside: list[str] = []  # Bifolio's documentIds of the documents that contain the compared value
        # the same documents, as in the response
        self._holders: list[dict[str, Any]] = []
        self.ignored_keys: set[str] = set()  # keys that were not compared, because they always differ

    def differences(
        self, theirs: Answer, ours: Answer, *, unordered: bool = False, cross_origin: bool = False
    ) -> list[Difference]:
        """Return the differences. With `unordered`, the list in `data` can have any order."""
        # `cross_origin`: the request had an `Origin` header.
        if theirs.status != ours.status:
            return [Difference("status", "status", _told(theirs), _told(ours))]
        found = [
            *header_differences(theirs, ours, cross_origin=cross_origin),
            *self._bodies(theirs.body, ours.body),
        ]
        return [d for d in found if not (unordered and d.kind == "order" and d.where == "data")]

    def _bodies(self, theirs: Any, ours: Any) -> Iterator[Difference]:
        if isinstance(theirs, dict) and theirs.get("error"):
            yield from error_differences(theirs, ours)
        elif isinstance(theirs, str) and isinstance(ours, str) and theirs != ours:
            yield Difference("text", "message", theirs, ours)
        else:
            yield from self._any(theirs, ours, "")

    def bind(self, theirs: str, ours: str) -> None:
        if theirs not in self._theirs and ours not in self._ours:
            name = f"doc:bound{len(self._theirs)}"
            self._theirs[theirs] = self._ours[ours] = name
            self._names[0][name], self._names[1][name] = theirs, ours

    def _bind_new(self, theirs: list[Any], ours: list[Any]) -> None:
        there = [item for item in theirs if item["documentId"] not in self._theirs]
        here = [item for item in ours if item["documentId"] not in self._ours]
        if len(there) == len(here):
            for one, other in zip(sorted(there, key=_called), sorted(here, key=_called), strict=True):
                self.bind(one["documentId"], other["documentId"])

    def _label(self, found: dict[str, Any], *, ours: bool, locales: bool) -> str:
        known = self._ours if ours else self._theirs
        name = str(known.get(found["documentId"], found["documentId"]))
        return f"{name} {_locale(found)}" if locales else name

    def _different(self, where: str, kind: str, theirs: Any, ours: Any) -> Difference:
        return Difference(where, kind, theirs, ours, self._holders[-1] if self._holders else {})

    def names(self) -> tuple[dict[str, str], dict[str, str]]:
        return self._theirs, self._ours

    def _any(self, theirs: Any, ours: Any, where: str) -> Iterator[Difference]:
        if theirs is None and isinstance(ours, dict) and ours.get("documentId") in self._inside[-1:]:
            yield self._different(where, "itself", theirs, ours)
        elif theirs is None and isinstance(ours, dict) and self._is_written(ours):
            yield self._different(where, "written", theirs, ours)
        elif isinstance(theirs, dict) and isinstance(ours, dict):
            yield from self._objects(theirs, ours, where)
        elif isinstance(theirs, list) and isinstance(ours, list):
            yield from self._lists(theirs, ours, where)
        elif isinstance(theirs, bool) != isinstance(ours, bool) or theirs != ours:
            kind = "value" if type(theirs) is type(ours) else "type"
            yield self._different(where, kind, theirs, ours)

    def _objects(self, theirs: dict[str, Any], ours: dict[str, Any], where: str) -> Iterator[Difference]:
        holds = isinstance(ours.get("documentId"), str)
        other = self._other(theirs, ours) if self._inside and holds else ""
        if other:
            yield self._different(where, other, *(_identity(found) for found in (theirs, ours)))
            return
        self._inside += [ours["documentId"]] if holds else []
        self._holders += [ours] if holds else []
        yield from self._members(theirs, ours, where)
        if holds:
            self._inside.pop()
            self._holders.pop()

    def _is_written(self, ours: dict[str, Any]) -> bool:
        known = self._ours.get(ours.get("documentId", ""))
        return bool(self._written and self._inside) and known == self._written

    def _rest(self, labels: list[str]) -> list[str]:
        written = self._written if self._inside else ""
        return [label for label in labels if _document(label) != written]

    def _other(self, theirs: dict[str, Any], ours: dict[str, Any]) -> str:
        labels = self._theirs.get(theirs.get("documentId", "")), self._ours.get(ours["documentId"])
        if None not in labels and labels[0] != labels[1]:
            return "other document"
        locales = _locale(theirs), _locale(ours)
        return "other locale" if None not in locales and locales[0] != locales[1] else ""

    def _members(self, theirs: dict[str, Any], ours: dict[str, Any], where: str) -> Iterator[Difference]:
        if isinstance(theirs.get("documentId"), str) and isinstance(ours.get("documentId"), str):
            self.bind(theirs["documentId"], ours["documentId"])
        for key, their in theirs.items():
            at = f"{where}.{key}".lstrip(".")
            if key not in ours:
                yield self._different(at, "missing", their, ABSENT)
            elif key == "size" and theirs.get("width") and isinstance(ours[key], int | float):
                pass  # The value depends on the library that encodes the picture.
            elif not self._same(key, their, ours[key]):
                yield from self._any(their, ours[key], at)
        for key in ours:
            if key == "locale" and key not in theirs:
                self.ignored_keys.add("locale")
            elif key not in theirs:
                yield self._different(f"{where}.{key}".lstrip("."), "extra", ABSENT, ours[key])

    def _same(self, key: str, theirs: Any, ours: Any) -> bool:
        """Return whether two values are equal under the special rule for their key."""
        if key == "id" and isinstance(theirs, int) and isinstance(ours, int):
            self.ignored_keys.add("id")
            return True
        if key == "locale" and theirs is None:
            self.ignored_keys.add("locale")
            return True
        if key == "jwt" and isinstance(theirs, str) and isinstance(ours, str):
            return theirs.count(".") == ours.count(".") == 2
        if key == "documentId" and isinstance(theirs, str) and isinstance(ours, str):
            return self._theirs.get(theirs, theirs) == self._ours.get(ours, ours)
        if key in TIMES and isinstance(theirs, str) and isinstance(ours, str):
            return bool(TIME.fullmatch(theirs) and TIME.fullmatch(ours))
        if key == "formats" and theirs and ours:
            return set(theirs) == set(ours)
        if key in _HASHED and isinstance(theirs, str) and isinstance(ours, str):
            return HASH.sub("_", theirs) == HASH.sub("_", ours)
        return False

    def _lists(self, theirs: list[Any], ours: list[Any], where: str) -> Iterator[Difference]:
        if all(isinstance(item, dict) and item.get("documentId") for item in (*theirs, *ours)):
            yield from self._documents(theirs, ours, where)
            return
        if all(isinstance(item, dict) and item.get("uid") for item in (*theirs, *ours)):
            yield from self._types(theirs, ours, where)
            return
        if len(theirs) != len(ours):
            yield self._different(where, "members", f"{len(theirs)} items", f"{len(ours)} items")
        for their, our in zip(theirs, ours, strict=False):
            yield from self._any(their, our, f"{where}[]")

    def _types(self, theirs: list[Any], ours: list[Any], where: str) -> Iterator[Difference]:
        # The items are compared by uid, because their order does not matter.
        there, here = ({item["uid"]: item for item in items} for items in (theirs, ours))
        if missing := sorted(there.keys() - here.keys()):
            yield self._different(where, "fewer members", missing, [])
        if extra := sorted(here.keys() - there.keys()):
            yield self._different(where, "more members", [], extra)
        for uid in sorted(there.keys() & here.keys()):
            yield from self._any(there[uid], here[uid], f"{where}[]")

    def _documents(self, theirs: list[Any], ours: list[Any], where: str) -> Iterator[Difference]:
        """Compare two lists of documents: their members, their order, and then each document."""
        self._bind_new(theirs, ours)
        locales = any(_locale(item) for item in theirs)
        there = [self._label(item, ours=False, locales=locales) for item in theirs]
        here = [self._label(item, ours=True, locales=locales) for item in ours]
        pairs = _matched(_published_first(zip(there, theirs, strict=True)), zip(here, ours, strict=True))
        more, fewer = Counter(here) - Counter(there), Counter(there) - Counter(here)
        others = Counter(map(_document, fewer.elements())) & Counter(map(_document, more.elements()))
        if self._inside and others:
            yield self._different(where, "other locale", there, here)
            more, fewer = _without(more, others), _without(fewer, others)
        own = [self._label({"documentId": i}, ours=True, locales=False) for i in self._inside[-1:]]
        if not fewer and len(more) == 1 and [_document(label) for label in more] == own:
            yield self._different(where, "itself", there, here)
        elif fewer and not more and set(there) == set(here):
            yield self._different(where, "repeated", there, here)
        elif others and not more and not fewer:
            pass  # Only the locales differ, and the order therefore differs too.
        elif there != here and not fewer and self._rest(there) == self._rest(here):
            yield self._different(where, "written" if more else "moved", there, here)
        elif more or fewer:
            kind = "members" if more and fewer else "more members" if more else "fewer members"
            yield self._different(where, kind, there, here)
        elif there != here:
            yield self._different(where, "order", there, here)
        for item, other in pairs:
            yield from self._any(item, other, f"{where}[]")


def _matched(there: Iterable[tuple[str, Any]], here: Iterable[tuple[str, Any]]) -> list[tuple[Any, Any]]:
    waiting: dict[str, list[Any]] = {}
    for label, item in here:
        waiting.setdefault(label, []).append(item)
    return [(item, waiting[label].pop(0)) for label, item in there if waiting.get(label)]


def _published_first(labelled: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return sorted(labelled, key=lambda pair: "publishedAt" in pair[1] and pair[1]["publishedAt"] is None)


def _document(label: str) -> str:
    return label.partition(" ")[0]


def _without(labels: Counter[str], documents: Counter[str]) -> Counter[str]:
    # Remove each label as many times as `documents` counts its document.
    left, kept = Counter(documents), Counter[str]()
    for label in labels.elements():
        if left[_document(label)]:
            left[_document(label)] -= 1
        else:
            kept[label] += 1
    return kept


def _called(found: dict[str, Any]) -> str:
    return str(found.get("name") or found.get("username") or "")


def _identity(found: dict[str, Any]) -> str:
    return f"{found.get('documentId')} {_locale(found)}"


def _locale(found: dict[str, Any]) -> Any:
    inner = found.get("attributes")
    return (inner if isinstance(inner, dict) else found).get("locale")


def _told(answer: Answer) -> str:
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    if isinstance(error, dict):
        return f"{answer.status} {error.get('name')}: {error.get('message')}"
    return str(answer.status) if answer.status else str(answer.body)
