"""Changes values in the text of a JSON file and leaves every other byte as it is (as `edit_yaml`)."""

import re
from collections.abc import Iterator
from typing import Any

from server.formats.brackets import Part, brackets
from server.formats.differences import steps
from server.formats.edits import REMOVE, same
from server.formats.json.nodes import json_nodes
from server.formats.json.writer import json_text
from server.formats.lines import line_start, newline_of
from server.formats.syntax_tree import Node
from server.formats.tree import Tree

_INDENT = re.compile(r"\n([ \t]+)\S")


def edit_json(text: str, tree: Tree, changes: dict[str, Any]) -> str:
    """A JSON text whose top object has new values under some keys; REMOVE removes a key."""
    root = json_nodes(text)
    found = _INDENT.search(text)
    tight = bool(root.keys) and text[root.keys[0].end : root.items[0].start] == ":"
    editor = _JsonEditor(text, found.group(1) if found else None, tight)
    return text[: root.start] + editor.changed(root, tree, {**tree, **changes}) + text[root.end :]


class _JsonEditor:
    """Writes values of one text anew, in the style of that text.

    `unit` is the white space of one level (None: the text is one line), `tight` whether there are no
    spaces after commas and colons.
    """

    def __init__(self, text: str, unit: str | None, tight: bool) -> None:
        self.text, self.unit, self.tight = text, unit, tight
        self.newline = newline_of(text)
        self.ascii_only = text.isascii() and "\\u" in text

    def changed(self, node: Node, tree: Tree, value: Any) -> str:
        """The text of a value that becomes another: of a list or an object, only what differs is new."""
        if same(tree, value):
            return self.text[node.start : node.end]
        if node.kind == "list" and isinstance(value, list | tuple):
            spans = [(item.start, item.end) for item in node.items]
        elif node.kind == "map" and isinstance(value, dict):
            spans = [(key.start, item.end) for key, item in zip(node.keys, node.items, strict=True)]
            value = {key: item for key, item in value.items() if item is not REMOVE}
        else:
            return self.written(value, node.start, "\n" in self.text[node.start : node.end] or not node.items)
        gap = "" if self.tight else " "
        found = brackets(self.text, node.start, node.end, spans, gap=gap, trailing=False)
        if not found or not value:
            return self.written(value, node.start, not node.items)
        like = spans[-1][0]
        if node.kind == "list":
            many = found.has_lines and all(map(self.is_long, node.items))
            return found.written(self.items(node, tree, list(value), like, many))
        return found.written(self.members(node, tree, value, like, found.has_lines))

    def is_long(self, node: Node) -> bool:
        """Whether a value has several lines, as far as it has anything in it."""
        return not node.items or "\n" in self.text[node.start : node.end]

    def items(self, node: Node, tree: list[Tree], value: list[Any], like: int, many: bool) -> Iterator[Part]:
        """The items of a list; new ones are indented like the one at an index, and long if `many`."""
        for step in steps(tree, value):
            if step.kind == "comes":
                yield -1, self.written(step.new, like, many)
            elif step.kind == "changes":
                yield step.old, self.changed(node.items[step.old], tree[step.old], step.new)
            elif step.kind == "goes":
                yield step.old, None
            elif step.kind != "leaves":
                yield step.old, self.text[node.items[step.old].start : node.items[step.old].end]

    def members(
        self, node: Node, tree: dict[str, Tree], value: dict[str, Any], like: int, many: bool
    ) -> Iterator[Part]:
        """The members of an object; new ones as for `items`, behind the others."""
        for i, (key, item) in enumerate(zip(node.keys, node.items, strict=True)):
            if key.value not in value:
                yield i, None
            else:
                made = self.changed(item, tree[key.value], value[key.value])
                yield i, self.text[key.start : item.start] + made
        colon = ":" if self.tight else ": "
        for name, new in value.items():
            if node.find(name) < 0:
                written = json_text(name, ascii_only=self.ascii_only)
                yield -1, written + colon + self.written(new, like, many)

    def written(self, value: Any, at: int, many: bool) -> str:
        """The text of a value on the line of an index, on several lines if `many`."""
        line = self.text[line_start(self.text, at) :]
        indent = self.unit if many else None
        text = json_text(
            value,
            indent=indent,
            ascii_only=self.ascii_only,
            tight=self.tight and indent is None,
            margin=line[: len(line) - len(line.lstrip(" \t"))],
        )
        return text.replace("\n", self.newline)
