"""Changes values in the text of a JSON file and leaves every other byte as it is (as `edit_yaml`)."""

import re
from typing import Any

from server.formats.edits import REMOVE, Cut, apply_cuts, same
from server.formats.json.nodes import json_nodes
from server.formats.json.writer import json_text
from server.formats.syntax_tree import Node
from server.formats.tree import Tree

_INDENT = re.compile(r"\n([ \t]+)\S")


def edit_json(text: str, tree: Tree, changes: dict[str, Any]) -> str:
    """A JSON text whose top object has new values under some keys; REMOVE removes a key."""
    root = json_nodes(text)
    found = _INDENT.search(text)
    editor = _JsonEditor(text, found.group(1) if found else None)
    editor.mapping(root, tree, changes)
    return apply_cuts(text, editor.cuts)


class _JsonEditor:
    """Collects the cuts of one text, in the style of that text.

    `unit` is the white space of one level (None: the text is one line), `tight` whether there are no
    spaces after commas and colons.
    """

    def __init__(self, text: str, unit: str | None) -> None:
        self.text, self.unit = text, unit
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.ascii_only = text.isascii() and "\\u" in text
        self.tight = re.search(r'"\s*:\s', text) is None and bool(re.search(r'"\s*:', text))
        self.cuts: list[Cut] = []

    def mapping(self, node: Node, tree: dict[str, Tree], changes: dict[str, Any]) -> None:
        """Change, remove and add members of an object."""
        removed = [i for key, v in changes.items() if v is REMOVE and (i := node.find(key)) >= 0]
        for key, value in changes.items():
            i = node.find(key)
            if i >= 0 and value is not REMOVE and not same(tree[key], value):
                self.value(node.items[i], tree[key], value)
        self.remove(node, removed)
        added = {k: v for k, v in changes.items() if v is not REMOVE and node.find(k) < 0}
        if added:
            self.add(node, added, len(removed) == len(node.keys))

    def value(self, node: Node, tree: Tree, value: Any) -> None:
        """Write a value again; of an object, only the members that differ."""
        if node.kind == "map" and isinstance(value, dict) and value and node.keys:
            return self.mapping(node, tree, {**value, **{k: REMOVE for k in tree if k not in value}})
        many = "\n" in self.text[node.start : node.end] or (not node.items and isinstance(value, list | dict))
        self.cuts.append(Cut(node.start, node.end, self.written(value, node.start, many)))
        return None

    def written(self, value: Any, at: int, many: bool) -> str:
        """The text of a value at an index, on several lines if `many`."""
        line = self.text.rfind("\n", 0, at) + 1
        margin = self.text[line : line + len(self.text[line:at]) - len(self.text[line:at].lstrip())]
        text = json_text(
            value,
            indent=self.unit if many else None,
            ascii_only=self.ascii_only,
            tight=self.tight and not many,
            margin=margin,
        )
        return text.replace("\n", self.newline)

    def remove(self, node: Node, positions: list[int]) -> None:
        """Remove members, each with the comma that is not needed any more."""
        kept = [i for i in range(len(node.keys)) if i not in positions]
        for i in positions:
            if any(k < i for k in kept):
                self.cuts.append(Cut(node.items[i - 1].end, node.items[i].end, ""))
            elif i + 1 < len(node.keys):
                self.cuts.append(Cut(node.keys[i].start, node.keys[i + 1].start, ""))
            else:
                self.cuts.append(Cut(node.keys[i].start, node.items[i].end, ""))

    def add(self, node: Node, added: dict[str, Any], empty: bool) -> None:
        """Append members to an object; `empty` where all that were there are being removed."""
        colon = ":" if self.tight else ": "
        first = node.keys[0].start if node.keys else node.start
        own_lines = "\n" in self.text[node.start : first] or (not node.keys and self.unit is not None)
        line = self.text.rfind("\n", 0, first) + 1
        indent = self.text[line:first] if node.keys else (self.unit or "")
        lead = self.newline + indent if own_lines else ("" if self.tight else " ")
        out = []
        for key, value in added.items():
            name = json_text(key, ascii_only=self.ascii_only)
            body = json_text(
                value,
                indent=self.unit if own_lines else None,
                ascii_only=self.ascii_only,
                tight=self.tight and not own_lines,
                margin=indent if own_lines else "",
            )
            out.append(name + colon + body.replace("\n", self.newline))
        if not node.keys:
            closing = self.newline if own_lines else ""
            inner = (lead if own_lines else "") + f",{lead}".join(out) + closing
            self.cuts.append(Cut(node.start + 1, node.end - 1, inner))
            return
        at = node.items[-1].end
        joined = f",{lead}".join(out)
        self.cuts.append(Cut(at, at, joined if empty else f",{lead}{joined}"))
