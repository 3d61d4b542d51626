"""How a recorded answer is compared with one of ours: the rules that the recordings come with.

status   equal.
body     equal, but for what no two services share: `<doc:7>` stands for one document, the same
         one throughout a scenario, `<id>` for a whole number, `<time>` for a moment, `<jwt>` for a
         JSON web token, `<hash>` for the random part of a name. Order of keys does not matter,
         order in lists does. A document may carry `locale` where the recording has none.
errors   status and name equal; the message where it names a key, a missing payload or the lack of
         credentials; for the validation of a body only the set of error paths.
names    only the list of `str` values in data, in order.
has      only the values at the given paths.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
EXACT_MESSAGE = re.compile(
    r'(Invalid key|Missing "data"|Forbidden$|Not Found$|Missing or invalid credentials$'
    r"|Cannot use both|Invalid identifier or password$)"
)
OPTIONAL = ("isUrlSigned", "focalPoint")
SIZES = ("size", "sizeInBytes")
COUNTS = ("nb_users",)
ABSENT: Any = object()


def fill(value: Any, variables: Mapping[str, Any]) -> Any:
    """A part of a step with its `{{variables}}` filled in."""
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


def dig(body: Any, where: str) -> Any:
    """The value at a dotted path, or ABSENT."""
    for key in where.split("."):
        try:
            body = body[int(key)] if isinstance(body, list) else body[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return ABSENT
    return body


class Comparison:
    """The comparisons of one scenario: it remembers which document each `<doc:N>` stands for.

    The recording numbers its documents by first sight, and so may count one that we refuse to make;
    a one-to-one correspondence sees every mix-up that equal numbers would, and no other.
    """

    def __init__(self) -> None:
        self.ours: dict[str, str] = {}
        self.theirs: dict[str, str] = {}

    def same_document(self, theirs: str, ours: str) -> bool:
        """Whether a document of the recording and one of ours are, or from now on are, the same."""
        return self.ours.setdefault(theirs, ours) == ours and self.theirs.setdefault(ours, theirs) == theirs

    def differences(self, expect: Mapping[str, Any], status: int, body: Any) -> list[str]:
        """What is not as recorded, as sentences."""
        return list(self._check(expect, status, body))

    def _check(self, expect: Mapping[str, Any], status: int, body: Any) -> Iterator[str]:
        want = expect.get("body")
        if status != expect["status"]:
            yield f"status: want {expect['status']}, got {status} {str(body)[:300]}"
        elif "names" in expect:
            got = [document.get("str") for document in (body or {}).get("data") or []]
            if got != expect["names"]:
                yield f"names: want {expect['names']}, got {got}"
        elif "has" in expect:
            for where, value in expect["has"].items():
                got = dig(body, where)
                yield from self._same(value, "<absent>" if got is ABSENT else got, where)
        elif isinstance(want, dict) and want.get("error"):
            yield from _error(want["error"], body)
        elif "body" in expect and not (isinstance(want, dict) and "<text>" in want):
            yield from self._same(want, body, "")

    def _same(self, want: Any, got: Any, where: str) -> Iterator[str]:
        if isinstance(want, dict) and isinstance(got, dict):
            yield from self._same_object(want, got, where)
        elif isinstance(want, list) and isinstance(got, list):
            if len(want) != len(got):
                yield f"{where}: want {len(want)} items, got {len(got)}"
            for i, (one, other) in enumerate(zip(want, got, strict=False)):
                yield from self._same(one, other, f"{where}[{i}]")
        elif not self._same_value(want, got):
            yield f"{where}: want {str(want)[:120]!r}, got {str(got)[:120]!r}"

    def _same_object(self, want: dict[str, Any], got: dict[str, Any], where: str) -> Iterator[str]:
        for key, value in want.items():
            if key not in got:
                if key not in OPTIONAL:
                    yield f"{where}.{key}: missing"
            elif key == "formats" and value and got[key]:
                yield from self._same(sorted(value), sorted(got[key]), f"{where}.formats")
            elif key in SIZES:
                if not isinstance(got[key], int | float):
                    yield f"{where}.{key}: want a number, got {got[key]!r}"
            elif key not in COUNTS:
                yield from self._same(value, got[key], f"{where}.{key}")
        for key in got:
            if key not in want and key != "locale":
                yield f"{where}.{key}: unexpected"

    def _same_value(self, want: Any, got: Any) -> bool:
        if want == "<time>":
            return isinstance(got, str) and bool(TIME.fullmatch(got))
        if want == "<id>":
            return isinstance(got, int) and not isinstance(got, bool)
        if want == "<jwt>":
            return isinstance(got, str) and got.count(".") == 2
        if want == "<doc>":
            return isinstance(got, str) and bool(got)
        if isinstance(want, str) and want.startswith("<doc:"):
            return isinstance(got, str) and self.same_document(want, got)
        if isinstance(want, str) and "<hash>" in want:
            return bool(re.fullmatch(re.escape(want).replace("<hash>", "[0-9a-z]{10,}"), str(got)))
        return bool(want == got) and isinstance(want, bool) == isinstance(got, bool)


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
    wanted, found = _paths(want), _paths(got)
    if wanted and wanted != found:
        yield f"error paths: want {wanted}, got {found}"


def _paths(error: Mapping[str, Any]) -> list[str]:
    listed = (error.get("details") or {}).get("errors") or []
    return sorted(".".join(map(str, entry["path"])) for entry in listed if entry.get("path"))
