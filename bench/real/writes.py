"""Writes of unchanged and changed documents to the server, checked with `git diff`."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.real.answers import normalise
from bench.real.changes import body_of, choose, own_body_of
from bench.real.client import Client
from bench.real.differences import Differences, shorten
from bench.real.expected import NOT_ATTRIBUTES, Unreadable, expected, is_same
from bench.real.layout import Document
from bench.real.reader import Reading, read
from bench.real.trees import commit
from bench.real.values import Served
from tests.git import git

STAMPS = ("createdAt", "updatedAt", "publishedAt")
_STAMP = re.compile(rf"""[+-]\s*["']?(?:{"|".join(STAMPS)})["']?\s*[:=].*""")
_FILE = re.compile(r"\+\+\+ (?:b/(.*?)|/dev/null)\t?$")
_WAS = re.compile(r"--- (?:a/(.*?)|/dev/null)\t?$")


@dataclass(frozen=True, slots=True)
class Change:
    """One attribute of a document and its new value."""

    served: Served
    name: str
    value: Any


def choose_documents(served: Sequence[Served], limit: int | None) -> list[Served]:
    """Return at most `limit` documents, from all types in turn."""
    if limit is None or len(served) <= limit:
        return list(served)
    by_type: dict[str, list[Served]] = defaultdict(list)
    for one in served:
        by_type[one.document.type.singular].append(one)
    share = max(1, limit // len(by_type))
    spread = [_spread(documents, share) for documents in by_type.values()]
    rest = limit - sum(map(len, spread))
    largest = max(by_type.values(), key=len)
    taken = {id(one) for documents in spread for one in documents}
    more = _spread([one for one in largest if id(one) not in taken], max(0, rest))
    return [one for documents in (*spread, more) for one in documents][:limit]


def write_unchanged(client: Client, root: Path, written: Sequence[Served], differences: Differences) -> None:
    for served in written:
        _put(client, served, body_of(served), "unchanged", differences)
    for path, hunks in diff(root, with_timestamps=True).items():
        differences.add(f"unchanged: {_describe(hunks)}", f"{path}: {shorten(' | '.join(hunks[0]))}")
    commit(root, "written back")


def write_changed(
    client: Client, root: Path, reader: Path, written: Sequence[Served], differences: Differences
) -> int:
    """Change an attribute of each document, and check that the diff has only one hunk. Return the number of
    writes.
    """
    changes: dict[str, Change] = {}
    for turn, served in enumerate(written):
        chosen = choose(served, turn)
        if chosen is None:
            continue
        name, value = chosen
        if _put(client, served, {**own_body_of(served), name: value}, "changed", differences):
            changes[served.document.reading.path] = Change(served, name, value)
    hunks = diff(root)
    for path in hunks.keys() - changes.keys():
        differences.add("changed: a file of another document", f"{path}: {shorten(hunks[path][0])}")
    for path in changes.keys() - hunks.keys():
        change = changes[path]
        differences.add("changed: no file", f"{path}: {change.name}: {shorten(change.value)}")
    for path in changes.keys() & hunks.keys():
        if len(hunks[path]) > 1:
            told = f"{path}: {changes[path].name}: {shorten(hunks[path])}"
            differences.add("changed: more than one hunk", told)
    _compare_readings(read(reader, root, changes), changes, differences)
    return len(changes)


def diff(root: Path, *, with_timestamps: bool = False) -> Mapping[str, list[list[str]]]:
    """Return the changed lines of each hunk in each file, by default without hunks that only change
    timestamps.
    """
    git(root, "add", "-A", "--intent-to-add")
    text = git(root, "-c", "core.quotePath=off", "diff", "--no-color", "--no-ext-diff", "--no-renames", "-U0")
    found: dict[str, list[list[str]]] = {}
    path, in_head = "", True
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            in_head = True
        elif line.startswith("@@ "):
            in_head = False
            found.setdefault(path, []).append([])
        elif in_head and (match := _WAS.match(line) or _FILE.match(line)) and match[1]:
            path = match[1]
        elif not in_head and line[:1] in "+-" and line:
            found[path][-1].append(line)
    if with_timestamps:
        return found
    kept = {name: [hunk for hunk in hunks if not _has_only_timestamps(hunk)] for name, hunks in found.items()}
    return {name: hunks for name, hunks in kept.items() if hunks}


def _has_only_timestamps(hunk: Sequence[str]) -> bool:
    # In JSON, the comma on the line above may change, too.
    others = [line for line in hunk if not _STAMP.match(line)]
    removed, added = ([line[1:].rstrip(",") for line in others if line[0] == sign] for sign in "-+")
    return removed == added


def _spread(documents: Sequence[Served], limit: int) -> list[Served]:
    if len(documents) <= limit:
        return list(documents)
    return [documents[index * len(documents) // limit] for index in range(limit)]


def _put(
    client: Client, served: Served, body: Mapping[str, Any], stage: str, differences: Differences
) -> bool:
    """Send a document to the server. Return whether it was accepted."""
    document = served.document
    path = document.type.path
    if not document.type.is_single:
        path += "/" + quote(document.document_id, safe="")
    query = [f"locale={quote(document.locale)}"] if document.locale else []
    query += ["status=draft"] if document.is_draft else []
    code, answer = client.send("PUT", f"{path}?{'&'.join(query)}", body)
    if code != 200:
        message = answer["error"]["message"] if answer else ""
        cause = re.sub(r'"[^"]*"', '"…"', message)
        differences.add(f"{stage}: refused, {cause}", f"{document.reading.path}: {code} {shorten(message)}")
    return code == 200


def _describe(hunks: Sequence[Sequence[str]]) -> str:
    lines = [line for hunk in hunks for line in hunk]
    if all(line.startswith("+") for line in lines):
        return "lines are added"
    return "lines are removed" if all(line.startswith("-") for line in lines) else "lines are changed"


def _compare_readings(
    readings: Mapping[str, Reading], changes: Mapping[str, Change], differences: Differences
) -> None:
    """Compare the values in changed files with the earlier values, both as read by the independent reader."""
    for path, change in changes.items():
        before, after = change.served.document.reading, readings[path]
        if after.error:
            differences.add("changed: the other reader can't read the file", f"{path}: {after.error}")
            continue
        content_type = change.served.document.type
        keys = _changed_keys(before, after)
        if change.name == content_type.options.get("otherKeys"):
            keys -= set(change.value) | set(before.typed)
        for key in sorted(keys - {change.name, *NOT_ATTRIBUTES}):
            differences.add("changed: another key", f"{path}: {key}, not only {change.name}")
        if after.body != before.body and change.name != content_type.body:
            differences.add("changed: the body", f"{path}: {change.name}")
        document = Document(
            content_type,
            change.served.document.document_id,
            change.served.document.locale,
            change.served.document.is_draft,
            change.served.document.name,
            after,
        )
        _compare_value(document, change, differences)


def _changed_keys(before: Reading, after: Reading) -> set[str]:
    return {
        key
        for key in before.typed.keys() | after.typed.keys()
        if not is_same(before.typed.get(key), after.typed.get(key))
        or not is_same(before.text.get(key), after.text.get(key))
    }


def _compare_value(document: Document, change: Change, differences: Differences) -> None:
    attribute = document.type.attributes[change.name]
    sent = normalise(attribute, change.value, document.type.components)
    try:
        wanted = expected(document, change.name, attribute)
    except Unreadable as error:
        wanted = error
    if not is_same(wanted, sent):
        told = f"{document.reading.path}: {change.name}: sent {shorten(sent)}, file {shorten(wanted)}"
        differences.add(f"changed: {attribute['type']}, another value in the file", told)
