"""YAML editor that changes only the necessary bytes. The caller must verify the result."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from server.formats.differences import compare_lists
from server.formats.edits import REMOVE, Part, Replacement, apply_replacements, is_same_value, split_brackets
from server.formats.text_positions import (
    KeyPath,
    comments_start,
    line_end,
    line_start,
    newline_of,
    next_line,
)
from server.formats.tree import Node, Tree, is_null
from server.formats.yaml.reader import yaml_nodes
from server.formats.yaml.writer import ESCAPED, yaml_entry

# --- flow -----------------------------------------------------------------------------------------


def change_flow(text: str, node: Node, tree: Tree, value: Any) -> str | None:
    """Return the new text of a list or mapping in brackets, or None if it must be rewritten completely."""
    if not value or node.style != "flow" or node.anchored:
        return None
    if node.kind == "list" and isinstance(value, list | tuple) and len(tree) == len(node.items):
        spans = [(item.start, item.end) for item in node.items]
        found = split_brackets(text, node.start, node.end, spans)
        return found.render(_items(text, node, tree, list(value))) if found else None
    if node.kind == "map" and isinstance(value, dict) and {key.value for key in node.keys} == tree.keys():
        pairs = zip(node.keys, node.items, strict=True)
        found = split_brackets(text, node.start, node.end, [(k.start, max(k.end, i.end)) for k, i in pairs])
        return found.render(_members(text, node, tree, value)) if found else None
    return None


def _items(text: str, node: Node, tree: list[Tree], value: list[Any]) -> Iterator[Part]:
    for step in compare_lists(tree, value):
        if step.kind == "added":
            yield -1, _write_scalar(step.new)
        elif step.kind == "changed":
            yield step.old, _change_value(text, node.items[step.old], tree[step.old], step.new)
        elif step.kind == "removed":
            yield step.old, None
        elif step.kind != "moved_away":
            yield step.old, text[node.items[step.old].start : node.items[step.old].end]


def _members(text: str, node: Node, tree: dict[str, Tree], value: dict[str, Any]) -> Iterator[Part]:
    for i, (key, item) in enumerate(zip(node.keys, node.items, strict=True)):
        new = value.get(key.value, REMOVE)
        if new is REMOVE:
            yield i, None
        elif is_same_value(tree[key.value], new) or node.find(key.value) != i:
            yield i, text[key.start : max(key.end, item.end)]
        elif item.end > item.start:
            yield i, text[key.start : item.start] + _change_value(text, item, tree[key.value], new)
        else:
            yield i, text[key.start : key.end] + ": " + _write_scalar(new)
    yield from (
        (-1, _write_scalar({k: v})[1:-1]) for k, v in value.items() if k not in tree and v is not REMOVE
    )


def _change_value(text: str, node: Node, tree: Tree, value: Any) -> str:
    made = change_flow(text, node, tree, value)
    return made or _write_scalar(value, node.style if node.kind == "scalar" else "")


def _write_scalar(value: Any, quote: str = "") -> str:
    if quote in ("'", '"'):
        quoted = yaml_entry("k", value, quote=quote).removesuffix("\n").removeprefix("k: ")
        if quoted.startswith(quote):
            return quoted
    return yaml_entry("k", [value], flow=True).removesuffix("]\n").removeprefix("k: [")


# --- edit -----------------------------------------------------------------------------------------

_BETWEEN_ITEMS = re.compile(r"(?:\s|#[^\n]*)*")


def edit_yaml(
    text: str, tree: Tree, changes: dict[str, Any], *, expand: bool = False, flow_lists: bool = False
) -> str:
    """Change top-level keys in a YAML text. A key with the value REMOVE is removed.

    If `expand` is set, aliases are replaced with their values. If `flow_lists` is set, lists in new keys are
    written on one line.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    root = yaml_nodes(text)
    if root is None or is_null(tree):
        entries = "".join(yaml_entry(k, v) for k, v in changes.items() if v is not REMOVE)
        return _append(text, entries, newline)
    if not text.endswith("\n"):
        # Without a final newline, a multi-line string at the end would be parsed differently.
        made = edit_yaml(text + newline, tree, changes, expand=expand, flow_lists=flow_lists)
        return made if expand else made.removesuffix(newline)
    editor = _YamlEditor(text, newline, flow_lists=flow_lists)
    if expand:
        changes = editor.expand(root, tree, changes)
    if root.style == "flow":
        editor.rewrite(root, tree, changes)
    else:
        editor.mapping(root, tree, changes)
    return apply_replacements(text, editor.replacements)


def remove_duplicate_yaml_keys(text: str, keys: Collection[KeyPath]) -> str:
    root = yaml_nodes(text)
    editor = _YamlEditor(text, newline_of(text))
    if root is not None:
        editor.remove_duplicates(root, (), keys)
    return apply_replacements(text, editor.replacements)


def _append(text: str, entries: str, newline: str) -> str:
    if text and not text.endswith("\n"):
        text += newline
    return text + entries.replace("\n", newline)


class _YamlEditor:
    """Editor that collects the replacements in a text. Keys in `forced` are rewritten even if unchanged."""

    def __init__(self, text: str, newline: str, *, flow_lists: bool = False) -> None:
        self.text, self.newline, self.flow_lists = text, newline, flow_lists
        self.replacements: list[Replacement] = []
        self.forced: set[str] = set()

    def expand(self, root: Node, tree: dict[str, Tree], changes: dict[str, Any]) -> dict[str, Any]:
        """Return `changes`, extended so that no anchors, aliases or `<<` merges remain."""
        merges = root.find("<<") >= 0
        shared = {k.value for k, v in zip(root.keys, root.items, strict=True) if _has_anchor_or_alias(v)}
        self.forced = shared | {"<<"} if merges else shared
        expanded = {key: tree[key] for key in tree if merges or key in shared}
        return {**expanded, **changes, **({"<<": REMOVE} if merges else {})}

    def mapping(self, node: Node, tree: dict[str, Tree], changes: dict[str, Any]) -> None:
        margin = self.margin(node.keys[0].start)
        added = ""
        for key, value in changes.items():
            i = node.find(key)
            if i < 0:
                if value is not REMOVE:
                    flow = self.flow_lists and _has_flat_lists(value)
                    added += yaml_entry(key, value, offset=self.list_indent(node), flow=flow)
            elif value is REMOVE:
                for each in node.all(key):
                    self.remove_lines(node.keys[each].start, self.trimmed_end(node.items[each]))
            elif key in self.forced or not is_same_value(tree[key], value):
                self.entry(node.keys[i], node.items[i], tree[key], value, self.list_indent(node))
        if added:
            self.insert_after(node.items[-1], node.keys[-1], self.indented(added, margin))

    def remove_duplicates(self, node: Node, path: KeyPath, keys: Collection[KeyPath]) -> None:
        gone: list[int] = []
        for i, item in enumerate(node.items):
            key = node.keys[i].value if node.kind == "map" else i
            at = (*path, key)
            if node.kind == "map" and node.find(str(key)) != i:
                gone += [i] if at in keys else []
            else:
                self.remove_duplicates(item, at, keys)
        if gone and node.style == "flow":
            spans = [(k.start, max(k.end, v.end)) for k, v in zip(node.keys, node.items, strict=True)]
            found = split_brackets(self.text, node.start, node.end, spans)
            parts = [(i, None if i in gone else self.text[a:b]) for i, (a, b) in enumerate(spans)]
            self.replacements += [Replacement(node.start, node.end, found.render(parts))] if found else []
            return
        for i in gone:
            start = node.keys[i].start
            if self.text[line_start(self.text, start) : start].strip():  # after a list item's dash
                self.replacements.append(Replacement(start, node.keys[i + 1].start, ""))
            else:
                self.remove_lines(start, self.trimmed_end(node.items[i]))

    def entry(self, key: Node, node: Node, tree: Tree, value: Any, offset: int) -> None:
        if node.style == "block" and not (self.forced and _has_anchor_or_alias(node)):
            if (
                node.kind == "map"
                and isinstance(value, dict)
                and "<<" not in tree
                and tree.keys() & value.keys()
            ):
                gone = {k: REMOVE for k in tree if k not in value}
                return self.mapping(node, tree, {**value, **gone})
            if node.kind == "list" and isinstance(value, list | tuple) and value:
                return self.change_sequence(node, tree, list(value))
        if not (self.forced and _has_anchor_or_alias(node)) and self.flow(node, tree, value):
            return None
        flow = node.style == "flow" and isinstance(value, list | dict) and bool(value) and _is_shallow(value)
        quote = node.style if node.kind == "scalar" and node.style in ("'", '"') else ""
        if self.swallows(key, node):
            quote = ESCAPED
        self.replace(key, node, _value_lines(value, offset=offset, flow=flow, quote=quote))
        return None

    def flow(self, node: Node, tree: Tree, value: Any) -> bool:
        # Nested lists or mappings on one line are easier to read in block style.
        one_line = "\n" not in self.text[node.start : node.end]
        if one_line and _is_shallow(tree) and not _is_shallow(value):
            return False
        made = change_flow(self.text, node, tree, value)
        if made:
            self.replacements.append(Replacement(node.start, node.end, made))
        return bool(made)

    def swallows(self, key: Node, node: Node) -> bool:
        # An indented comment below a literal block would become part of the block.
        rest = self.text[next_line(self.text, self.trimmed_end(node)) :].lstrip("\r\n")
        line = rest.partition("\n")[0]
        return line.lstrip(" ").startswith("#") and len(line) - len(line.lstrip(" ")) > len(
            self.margin(key.start)
        )

    def replace(self, key: Node, node: Node, written: tuple[str, str]) -> None:
        """Replace the value of a key, and keep the comment after it.

        `written` contains the new text: the rest of the key's line, and the lines below it.
        """
        text, (first, rest) = self.text, written
        colon = text.index(":", key.end)
        below = self.indented(rest, self.margin(key.start)).removesuffix(self.newline)
        comment = self.comment(node, colon)
        if first and line_end(text, colon) >= node.start > colon + 1:
            # The spaces between the colon and the value are kept.
            first = text[colon + 1 : node.start] + first.removeprefix(" ")
        end = max(self.trimmed_end(node), colon + 1)
        lines = first + comment + (self.newline + below if below else "")
        self.replacements.append(Replacement(colon + 1, line_end(text, end), lines))

    def comment(self, node: Node, colon: int) -> str:
        end_of_key = line_end(self.text, colon)
        if node.start > end_of_key:
            return self.text[colon + 1 : end_of_key].rstrip()
        if node.style in ("|", ">"):
            found = re.search(r"[ \t]+#[^\r\n]*", self.text[node.start : line_end(self.text, node.start)])
            return found.group(0) if found else ""
        end = max(node.end, colon + 1)
        return self.text[end : line_end(self.text, end)].rstrip()

    def change_sequence(self, node: Node, tree: list[Tree], value: list[Any]) -> None:
        """Change a block list. Unchanged and moved items keep their bytes and their comments."""
        lines = self.item_lines(node)
        margin = " " * self.column(lines[0].dash)
        added = ""
        for step in compare_lists(tree, value):
            if step.kind == "added":
                added += self.item(step.new, margin)
            elif step.kind == "moved_here":
                added += lines[step.old].of(self.text)
            elif step.kind == "moved_away":
                self.replacements.append(Replacement(lines[step.old].comments, lines[step.old].end, ""))
            elif step.kind == "removed":
                self.replacements.append(Replacement(lines[step.old].start, lines[step.old].end, ""))
            else:
                self.insert_item(lines, step.old, added)
                added = ""
                if step.kind == "changed":
                    self.change_item(node.items[step.old], lines[step.old], tree[step.old], step.new)
        self.insert_item(lines, len(lines), added)

    def item_lines(self, node: Node) -> list["_ItemLines"]:
        found: list[_ItemLines] = []
        above, dash = 0, node.start
        for item in node.items:
            if found:
                between = _BETWEEN_ITEMS.match(self.text, above)
                dash = between.end() if between else above
            comments = comments_start(self.text, dash, above)
            above = max(self.trimmed_end(item), dash + 1)
            end = item.end if self.keeps_newlines(item) else next_line(self.text, above)
            found.append(_ItemLines(comments, line_start(self.text, dash), dash, end))
        return found

    def insert_item(self, lines: list["_ItemLines"], i: int, added: str) -> None:
        at = lines[i].comments if i < len(lines) else lines[-1].end
        self.replacements.append(Replacement(at, at, added))

    def change_item(self, node: Node, lines: "_ItemLines", tree: Tree, value: Any) -> None:
        if self.same_shape(node, tree, value):
            gone = {k: REMOVE for k in tree if k not in value}
            return self.mapping(node, tree, {**value, **gone})
        if self.flow(node, tree, value):
            return None
        if node.kind == "scalar" and node.end > node.start and not node.anchored:
            first, rest = _value_lines(value, quote=node.style if node.style in ("'", '"') else "")
            if not rest and node.style not in ("|", ">"):
                self.replacements.append(Replacement(node.start, node.end, first.removeprefix(" ")))
                return None
        self.replacements.append(
            Replacement(lines.start, lines.end, self.item(value, " " * self.column(lines.dash)))
        )
        return None

    def same_shape(self, node: Node, tree: Tree, value: Any) -> bool:
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
        lines = yaml_entry("k", [value], offset=0).partition("\n")[2]
        return self.indented(lines, margin)

    def rewrite(self, node: Node, tree: dict[str, Tree], changes: dict[str, Any]) -> None:
        # The whole file is a single mapping in brackets.
        if not self.forced and (made := change_flow(self.text, node, tree, {**tree, **changes})):
            self.replacements.append(Replacement(node.start, node.end, made))
            return
        value = {**tree, **changes}
        kept = {k: v for k, v in value.items() if v is not REMOVE}
        self.replacements.append(Replacement(node.start, node.end, _value_lines(kept, flow=True)[0].strip()))

    def margin(self, index: int) -> str:
        # If the key is written as `? key`, its indentation ends before the question mark.
        before = self.text[line_start(self.text, index) : index]
        return " " * (before.index("?") if before.endswith("? ") else len(before))

    def trimmed_end(self, node: Node) -> int:
        # For a literal or folded block, spaces at the end are also excluded.
        end = node.end
        blank = " \t\r\n" if node.style in ("|", ">") else "\r\n"
        while end > node.start and self.text[end - 1] in blank:
            end -= 1
        return end

    def column(self, index: int) -> int:
        return index - line_start(self.text, index)

    def list_indent(self, node: Node) -> int:
        """Return by how many columns lists are indented below their keys. The default is 2."""
        for key, item in zip(node.keys, node.items, strict=True):
            own_line = line_start(self.text, key.start) != line_start(self.text, item.start)
            if item.kind == "list" and item.style == "block" and own_line:
                return self.column(item.start) - self.column(key.start)
        return 2

    def indented(self, lines: str, margin: str) -> str:
        made = "".join(margin + line + "\n" if line else "\n" for line in lines.split("\n")[:-1])
        return made.replace("\n", self.newline)

    def keeps_newlines(self, node: Node) -> bool:
        header = self.text[node.start : line_end(self.text, node.start)]
        return node.style in ("|", ">") and "+" in header.partition("#")[0]

    def insert_after(self, node: Node, key: Node, lines: str) -> None:
        at = (
            node.end
            if self.keeps_newlines(node)
            else next_line(self.text, max(self.trimmed_end(node), key.end))
        )
        self.replacements.append(Replacement(at, at, lines))

    def remove_lines(self, start: int, end: int) -> None:
        self.replacements.append(
            Replacement(line_start(self.text, start), next_line(self.text, max(start, end)), "")
        )


@dataclass(frozen=True, slots=True)
class _ItemLines:
    """Position of an item in a block list. `comments` is the start of the comments above the item."""

    comments: int
    start: int
    dash: int
    end: int

    def of(self, text: str) -> str:
        return text[self.comments : self.end]


def _value_lines(value: Any, **style: Any) -> tuple[str, str]:
    first, _, rest = yaml_entry("k", value, **style).partition("\n")
    return first.removeprefix("k:"), rest


def _has_anchor_or_alias(node: Node) -> bool:
    return node.anchored or node.kind == "alias" or any(map(_has_anchor_or_alias, (*node.keys, *node.items)))


def _has_flat_lists(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) and value else [value]
    return all(isinstance(one, list | tuple) and _is_shallow(one) for one in inner)


def _is_shallow(value: Any) -> bool:
    if not isinstance(value, dict | list | tuple):
        return True
    items = value.values() if isinstance(value, dict) else value
    return not any(
        isinstance(item, dict | list) or (isinstance(item, str) and "\n" in item) for item in items
    )
