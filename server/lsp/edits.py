"""Edits to texts and files, which an editor applies."""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path

from server.lsp.positions import Span, Text, uri_of
from server.lsp.protocol import Json
from server.service.unsaved import EditorPlan

MAX_COMPARED_LINES = 4000  # With more lines, one edit replaces all of them.


def text_edits(old: str, new: str) -> list[Json]:
    text = Text(old)
    return [{"range": text.range(span), "newText": added} for span, added in _changes(old, new)]


def _changes(old: str, new: str) -> Iterator[tuple[Span, str]]:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    at = sum(map(len, before[:start]))
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if max(len(before), len(after)) > MAX_COMPARED_LINES:
        yield (at, at + sum(map(len, before))), "".join(after)
        return
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            begin = at + sum(map(len, before[:a]))
            yield _trim_common_text(begin, "".join(before[a:b]), "".join(after[c:d]))


def _trim_common_text(begin: int, old: str, new: str) -> tuple[Span, str]:
    start, limit = 0, min(len(old), len(new))
    while start < limit and old[start] == new[start]:
        start += 1
    end = 0
    while end < limit - start and old[-1 - end] == new[-1 - end]:
        end += 1
    if old[start : len(old) - end].endswith("\r") or old[:start].endswith("\r"):
        # The change would begin or end between \r and \n, where an editor's position can't be.
        return (begin, begin + len(old)), new
    return (begin + start, begin + len(old) - end), new[start : len(new) - end]


def workspace_edit(root: Path, plan: EditorPlan, versions: Mapping[str, int | None]) -> Json:
    """Convert a plan to an LSP workspace edit. `versions` maps the path of each open text to its version."""
    changes: list[Json] = []
    for path, (old, new) in sorted(plan.texts.items()):
        identifier = {"uri": uri_of(root / path), "version": versions.get(path)}
        changes.append({"textDocument": identifier, "edits": text_edits(old, new)})
    for path, new_path in sorted(plan.renames.items()):
        old_uri, new_uri = uri_of(root / path), uri_of(root / new_path)
        changes.append({"kind": "rename", "oldUri": old_uri, "newUri": new_uri})
    return {"documentChanges": changes}
