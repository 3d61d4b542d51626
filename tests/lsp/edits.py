"""Applies edits as an editor does."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from server.lsp.positions import Text


def apply_edits(text: str, edits: list[dict[str, Any]]) -> str:
    """Return a text after edits, whose positions are those of the text before."""
    before = Text(text)
    spans = [
        tuple(before.index_of_position(edit["range"][end]) for end in ("start", "end")) for edit in edits
    ]
    for (start, end), edit in sorted(zip(spans, edits, strict=True), key=lambda pair: pair[0], reverse=True):
        text = text[:start] + edit["newText"] + text[end:]
    return text


def apply_workspace_edit(edit: dict[str, Any]) -> None:
    """Make the changes of a workspace edit to the files on disk."""
    for change in edit["documentChanges"]:
        if "kind" not in change:
            path = path_of(change["textDocument"]["uri"])
            text = path.read_bytes().decode()
            path.write_bytes(apply_edits(text, change["edits"]).encode())
        elif change["kind"] == "rename":
            new = path_of(change["newUri"])
            new.parent.mkdir(parents=True, exist_ok=True)
            path_of(change["oldUri"]).rename(new)
        else:
            path = path_of(change["uri"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")


def path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))
