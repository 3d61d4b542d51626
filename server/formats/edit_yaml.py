"""Changes values in the text of a YAML file (`edit_json`: of a JSON file) and leaves every other byte.

`edit_yaml` takes the text, its tree, and the new values of some keys of its top
mapping; it cuts at the spans of `outline` and puts in what `emit` writes. Whoever calls it reads
the result back and compares: an edit that says anything else than it should is not used.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from server.formats.scalars import is_null, typed
from server.formats.syntax_tree import Node, outline_yaml
from server.formats.tree import Plain, Tree
from server.formats.yaml_writer import ESCAPED, yaml_entry

REMOVE: Any = object()


@dataclass(frozen=True, slots=True)
class Cut:
    """Characters `start` to `end` of a text become `text`."""

    start: int
    end: int
    text: str


def apply_cuts(text: str, cuts: list[Cut]) -> str:
    """The text with cuts that don't overlap; those at one place keep their order."""
    for _, _, cut in sorted(((c.start, i, c) for i, c in enumerate(cuts)), reverse=True, key=lambda x: x[:2]):
        text = text[: cut.start] + cut.text + text[cut.end :]
    return text


def same(old: Tree, new: Any) -> bool:
    """Whether a tree as it was read already says a value."""
    if isinstance(new, dict):
        return isinstance(old, dict) and old.keys() == new.keys() and all(same(old[k], new[k]) for k in new)
    if isinstance(new, list | tuple):
        return isinstance(old, list) and len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, dict | list):
        return False
    if is_null(new) or is_null(old):
        return is_null(new) and is_null(old)
    if isinstance(new, str):
        return isinstance(old, str) and str(old) == str(new)
    if type(old) is Plain:
        try:
            return Decimal(str(old)) == new if isinstance(new, Decimal) else _equal(typed(old), new)
        except (ValueError, ArithmeticError):
            return False
    return _equal(old, new)


def _equal(old: Any, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)


def edit_yaml(text: str, tree: Tree, changes: dict[str, Any], *, expand: bool = False) -> str:
    """A YAML text whose top mapping has new values under some keys; REMOVE takes a key out.

    `expand` also writes out every key that has an anchor or alias in it.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    root = outline_yaml(text)
    if root is None or is_null(tree):
        return _append(
            text, "".join(yaml_entry(k, v) for k, v in changes.items() if v is not REMOVE), newline
        )
    editor = _YamlEditor(text, newline)
    if expand:
        editor.forced = {
            k.value for k, v in zip(root.keys, root.items, strict=True) if k.value == "<<" or _shares(v)
        }
        changes = {**{k: tree[k] for k in tree if k in editor.forced or "<<" in editor.forced}, **changes}
        changes.update({"<<": REMOVE} if "<<" in editor.forced else {})
    if root.style == "flow":
        editor.rewrite(root, {**tree, **changes})
    else:
        editor.mapping(root, tree, changes)
    return apply_cuts(text, editor.cuts)


def _append(text: str, entries: str, newline: str) -> str:
    if text and not text.endswith("\n"):
        text += newline
    return text + entries.replace("\n", newline)


class _YamlEditor:
    """Collects the cuts of one text."""

    def __init__(self, text: str, newline: str) -> None:
        self.text, self.newline = text, newline
        self.cuts: list[Cut] = []
        self.forced: set[str] = set()

    def mapping(self, node: Node, tree: dict[str, Tree], changes: dict[str, Any]) -> None:
        """Change, remove and add keys of a block mapping."""
        margin = self.margin(node.keys[0].start)
        added = ""
        for key, value in changes.items():
            i = node.find(key)
            if i < 0:
                if value is not REMOVE:
                    added += yaml_entry(key, value, offset=self.offset(node))
            elif value is REMOVE:
                self.cut_lines(node.keys[i].start, self.trimmed_end(node.items[i]))
            elif key in self.forced or not same(tree[key], value):
                self.entry(node.keys[i], node.items[i], tree[key], value, self.offset(node))
        if added:
            self.insert_after(node.items[-1], node.keys[-1], self.indented(added, margin))

    def entry(self, key: Node, node: Node, tree: Tree, value: Any, offset: int) -> None:
        """Give the value of one key of a block mapping another text."""
        if node.style == "block" and not (self.forced and _shares(node)):
            if (
                node.kind == "map"
                and isinstance(value, dict)
                and "<<" not in tree
                and tree.keys() & value.keys()
            ):
                gone = {k: REMOVE for k in tree if k not in value}
                return self.mapping(node, tree, {**value, **gone})
            if node.kind == "list" and isinstance(value, list | tuple) and value:
                return self.sequence(node, tree, list(value))
        flow = node.style == "flow" and isinstance(value, list | dict) and bool(value) and _shallow(value)
        quote = node.style if node.kind == "scalar" and node.style in ("'", '"') else ""
        if self.swallows(key, node):
            quote = ESCAPED
        self.replace(key, node, _value_lines(value, offset=offset, flow=flow, quote=quote))
        return None

    def swallows(self, key: Node, node: Node) -> bool:
        """Whether an indented comment follows, which a literal block in this place would take in."""
        rest = self.text[self.next_line(self.trimmed_end(node)) :].lstrip("\r\n")
        line = rest.partition("\n")[0]
        return line.lstrip(" ").startswith("#") and len(line) - len(line.lstrip(" ")) > len(
            self.margin(key.start)
        )

    def replace(self, key: Node, node: Node, written: tuple[str, str]) -> None:
        """Put a value's first line behind the colon and the rest below, keeping the comment there."""
        text, (first, rest) = self.text, written
        colon = text.index(":", key.end)
        below = self.indented(rest, self.margin(key.start)).removesuffix(self.newline)
        comment = self.comment(node, colon)
        if first and self.line_end(colon) >= node.start > colon + 1:
            first = text[colon + 1 : node.start] + first.removeprefix(" ")  # the gap that people left
        end = max(self.trimmed_end(node), colon + 1)
        self.cuts.append(
            Cut(colon + 1, self.line_end(end), first + comment + (self.newline + below if below else ""))
        )

    def comment(self, node: Node, colon: int) -> str:
        """The comment behind the first line of a block, or behind the last of anything else."""
        line_end = self.line_end(colon)
        if node.start > line_end:
            return self.text[colon + 1 : line_end].rstrip()
        if node.style in ("|", ">"):
            found = re.search(r"[ \t]+#[^\r\n]*", self.text[node.start : self.line_end(node.start)])
            return found.group(0) if found else ""
        end = max(node.end, colon + 1)
        return self.text[end : self.line_end(end)].rstrip()

    def sequence(self, node: Node, tree: list[Tree], value: list[Any]) -> None:
        """Change a block list where it differs: items before and after that stay as they are."""
        head = 0
        while head < min(len(tree), len(value)) and same(tree[head], value[head]):
            head += 1
        tail = 0
        while tail < min(len(tree), len(value)) - head and same(tree[-1 - tail], value[-1 - tail]):
            tail += 1
        old, new = range(head, len(tree) - tail), value[head : len(value) - tail]
        if len(old) == len(new) and all(
            self.same_shape(node.items[i], tree[i], v) for i, v in zip(old, new, strict=True)
        ):
            for i, item in zip(old, new, strict=True):
                gone = {k: REMOVE for k in tree[i] if k not in item}
                self.mapping(node.items[i], tree[i], {**item, **gone})
            return
        dash = self.dash(node)
        margin = " " * (dash - self.line_start(dash))
        lines = "".join(self.item(v, margin) for v in new)
        if old:
            start = self.line_start(self.dash(node.items[old[0]]))
            end = self.next_line(self.trimmed_end(node.items[old[-1]]))
            self.cuts.append(Cut(start, end, self.closed(lines, end)))
        elif head < len(tree):
            at = self.line_start(self.dash(node.items[head]))
            self.cuts.append(Cut(at, at, lines))
        else:
            at = self.next_line(self.trimmed_end(node.items[-1]))
            self.cuts.append(Cut(at, at, self.opened(lines, at)))

    def same_shape(self, node: Node, tree: Tree, value: Any) -> bool:
        """Whether a list's item can be changed key by key."""
        return (
            node.kind == "map"
            and node.style == "block"
            and not node.anchored
            and isinstance(tree, dict)
            and isinstance(value, dict)
            and "<<" not in tree
            and next(iter(tree), None) in value
        )

    def item(self, value: Any, margin: str) -> str:
        """`- value` as indented lines."""
        lines = yaml_entry("k", [value], offset=0).partition("\n")[2]
        return self.indented(lines, margin)

    def dash(self, node: Node) -> int:
        """The position of the dash before a block list's item (or of the list's first)."""
        if node.kind == "list" and node.style == "block":
            return node.start
        return self.text.rindex("-", 0, node.start)

    def rewrite(self, node: Node, value: dict[str, Any]) -> None:
        """Write a whole flow mapping anew."""
        kept = {k: v for k, v in value.items() if v is not REMOVE}
        self.cuts.append(Cut(node.start, node.end, _value_lines(kept, flow=True)[0].strip()))

    # --- places in the text ----------------------------------------------------------------------

    def line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        """The end of a line, before its line break."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > at and self.text[end - 1] == "\r" else end

    def next_line(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end + 1

    def margin(self, at: int) -> str:
        """White space as wide as what stands before a key on its line (`? ` marks a key, too)."""
        before = self.text[self.line_start(at) : at]
        return " " * (before.index("?") if before.endswith("? ") else len(before))

    def trimmed_end(self, node: Node) -> int:
        """The end of a node without what a block scalar takes along: line breaks, the next indentation."""
        end = node.end
        blank = " \t\r\n" if node.style in ("|", ">") else "\r\n"
        while end > node.start and self.text[end - 1] in blank:
            end -= 1
        return end

    def offset(self, node: Node) -> int:
        """How far the first list in a mapping has its dashes indented below its key; 2 if none has."""
        for key, item in zip(node.keys, node.items, strict=True):
            if (
                item.kind == "list"
                and item.style == "block"
                and self.line_start(key.start) != self.line_start(item.start)
            ):
                return (item.start - self.line_start(item.start)) - (key.start - self.line_start(key.start))
        return 2

    def indented(self, lines: str, margin: str) -> str:
        made = "".join(margin + line + "\n" if line else "\n" for line in lines.split("\n")[:-1])
        return made.replace("\n", self.newline)

    def closed(self, lines: str, end: int) -> str:
        """Lines that replace the end of a text that has no final newline have none either."""
        whole = end == len(self.text) and not self.text.endswith("\n")
        return lines.removesuffix(self.newline) if whole else lines

    def opened(self, lines: str, at: int) -> str:
        """Lines that follow a text without a final newline begin with one, and end without."""
        if at == len(self.text) and self.text and not self.text.endswith("\n"):
            return self.newline + lines.removesuffix(self.newline)
        return lines

    def insert_after(self, node: Node, key: Node, lines: str) -> None:
        keep = node.style in ("|", ">") and "+" in self.text[node.start : self.line_end(node.start)]
        at = node.end if keep else self.next_line(max(self.trimmed_end(node), key.end))
        self.cuts.append(Cut(at, at, self.opened(lines, at)))

    def cut_lines(self, start: int, end: int) -> None:
        self.cuts.append(Cut(self.line_start(start), self.next_line(max(start, end)), ""))


def _value_lines(value: Any, **style: Any) -> tuple[str, str]:
    """How a value is written below a key: what stands behind the colon, and the lines below."""
    first, _, rest = yaml_entry("k", value, **style).partition("\n")
    return first.removeprefix("k:"), rest


def _shares(node: Node) -> bool:
    """Whether a value has an anchor, a tag or an alias in it."""
    return node.anchored or node.kind == "alias" or any(map(_shares, (*node.keys, *node.items)))


def _shallow(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return not any(
        isinstance(item, dict | list) or (isinstance(item, str) and "\n" in item) for item in items
    )
