"""TOML editor that, unlike tomlkit, keeps line endings and changes only the necessary bytes."""

from collections.abc import Collection, Iterator
from typing import Any

from server.formats.differences import compare_lists, find_differences
from server.formats.edits import REMOVE, Part, Replacement, apply_replacements, is_same_value, split_brackets
from server.formats.text_positions import KeyPath, comments_start, line_end, line_start, newline_of, next_line
from server.formats.toml.reader import (
    blank_duplicate_keys,
    is_section,
    toml_entry,
    toml_key,
    toml_section,
    toml_value,
)
from server.formats.toml.statements import Statement, Value, parse_statements
from server.formats.tree import Tree


def edit_toml(text: str, tree: Tree, changes: dict[str, Any], *, expand: bool = False) -> str:
    """Change top-level keys in a TOML text. A key with the value REMOVE or None is removed.

    If `expand` is set, changed keys are rewritten completely. Raises NullError if a new value contains a
    null.
    """
    editor = _TomlEditor(text)
    for key, value in changes.items():
        new = REMOVE if value is None else value
        if key not in tree:
            editor.add((), key, new)
        elif expand:
            editor.rewrite((key,), new)
        else:
            editor.change((key,), tree[key], new)
    return editor.result()


def remove_duplicate_toml_keys(text: str, keys: Collection[KeyPath]) -> str:
    counting = {s.start for s in parse_statements(blank_duplicate_keys(text))}
    gone = [s for s in parse_statements(text) if s.path in keys and s.start not in counting]
    replacements = [
        Replacement(line_start(text, s.start), next_line(text, line_end(text, s.end)), "") for s in gone
    ]
    return apply_replacements(text, replacements)


class _TomlEditor:
    def __init__(self, text: str) -> None:
        self.text, self.newline = text, newline_of(text)
        self.statements = parse_statements(blank_duplicate_keys(text))
        self.all_statements = parse_statements(text)  # includes the earlier values of duplicate keys
        self.replacements: list[Replacement] = []
        self.top = ""  # text of new keys, if there are no keys above the first table yet
        self.sections: list[str] = []

    def result(self) -> str:
        if self.top:
            self.insert_at_top(self.top)
        made = apply_replacements(self.text, self.replacements)
        for section in self.sections:
            if made and not made.endswith("\n"):
                made += self.newline
            gap = self.newline if made.strip() and not made.endswith(("\n\n", "\n\r\n")) else ""
            made += gap + section.replace("\n", self.newline)
        return made

    def below(self, path: KeyPath) -> list[Statement]:
        return [s for s in self.statements if s.path[: len(path)] == path]

    def change(self, path: KeyPath, old: Tree, new: Any) -> None:
        if new is REMOVE:
            return self.remove(path)
        if is_same_value(old, new):
            return None
        existing = next((s.value for s in self.statements if s.path == path and s.value), None)
        if existing:
            made = self.value(existing, old, new, lines=True)
            self.replacements.append(Replacement(existing.start, existing.end, made))
            return None
        if isinstance(old, dict) and isinstance(new, dict):
            for key in old.keys() - new.keys():
                self.remove((*path, key))
            for key, item in new.items():
                if key in old:
                    self.change((*path, key), old[key], item)
                else:
                    self.add(path, key, item)
            return None
        if new and isinstance(old, list) and is_section(new) and not isinstance(new, dict):
            return self.tables(path, old, new)
        return self.rewrite(path, new)

    def rewrite(self, path: KeyPath, new: Any) -> None:
        self.remove(path)
        self.add(path[:-1], path[-1], new)

    def remove(self, path: KeyPath) -> None:
        for s in self.all_statements:
            if s.path[: len(path)] != path:
                continue
            end = next_line(self.text, line_end(self.text, s.end))
            self.replacements.append(Replacement(line_start(self.text, s.start), end, ""))

    def add(self, table: KeyPath, key: str | int, value: Any) -> None:
        if value is REMOVE:
            return
        names = [part for part in table if isinstance(part, str)]
        listed = len(names) < len(table)
        header = next((s for s in self.statements if s.path == table and s.value is None), None)
        if is_section(value) and not listed and (not table or header):
            self.sections.append(toml_section((*names, str(key)), value))
            return
        entry = toml_entry(str(key), value)
        own = [s for s in self.statements if s.table == table and (s.value or header)]
        dotted = [s for s in self.below(table) if len(s.table) < len(table)]
        if own:
            self.insert_below(own[-1], entry)
        elif not table:
            self.top += entry
        elif dotted:
            above = [toml_key(str(part)) for part in table[len(dotted[-1].table) :]]
            self.insert_below(dotted[-1], ".".join([*above, entry]))
        elif not listed:
            self.sections.append(f"[{'.'.join(map(toml_key, names))}]\n{entry}")

    def insert_below(self, statement: Statement, lines: str) -> None:
        self.insert(next_line(self.text, line_end(self.text, statement.end)), lines)

    def insert_at_top(self, lines: str) -> None:
        if self.statements:
            self.insert(comments_start(self.text, self.statements[0].start), lines + "\n")
        else:
            self.insert(len(self.text), lines)

    def insert(self, index: int, lines: str) -> None:
        # If the text had no final newline, none is added.
        lines = lines.replace("\n", self.newline)
        if index == len(self.text) and self.text and not self.text.endswith("\n"):
            lines = self.newline + lines.removesuffix(self.newline)
        self.replacements.append(Replacement(index, index, lines))

    def tables(self, path: KeyPath, old: list[Tree], new: list[Any]) -> None:
        names = [str(part) for part in path if isinstance(part, str)]
        for found in find_differences(old, new):
            changed = range(found.start, min(found.end, found.start + len(found.new)))
            for i, item in zip(changed, found.new, strict=False):
                self.change((*path, i), old[i], item)
            for i in range(changed.stop, found.end):
                self.remove((*path, i))
            added = found.new[len(changed) :]
            if added and found.end:
                self.insert_below(self.below((*path, found.end - 1))[-1], "\n" + toml_section(names, added))
            elif added:
                header = self.below((*path, 0))[0]
                above = self.statements[: self.statements.index(header)]
                at = comments_start(self.text, header.start, above[-1].end if above else 0)
                self.insert(at, toml_section(names, added) + "\n")

    def value(self, value: Value, old: Tree, new: Any, *, lines: bool = False) -> str:
        if is_same_value(old, new):
            return self.text[value.start : value.end]
        if value.kind == "table" and isinstance(new, dict) and (made := self.inline_table(value, old, new)):
            return made
        if (
            value.kind == "array"
            and isinstance(new, list | tuple)
            and (made := self.array(value, old, list(new)))
        ):
            return made
        quote = self.text[value.start : value.end][:1]
        return toml_value(new, multiline=lines, quote=quote).replace("\n", self.newline)

    def inline_table(self, table: Value, old: dict[str, Tree], new: dict[str, Any]) -> str | None:
        if not new or any(len(entry.path) > 1 for entry in table.entries):
            return None
        spans = [(entry.start, entry.value.end) for entry in table.entries]
        found = split_brackets(self.text, table.start, table.end, spans, trailing_comma=False)
        return found.render(self.members(table, old, new)) if found else None

    def members(self, table: Value, old: dict[str, Tree], new: dict[str, Any]) -> Iterator[Part]:
        for i, entry in enumerate(table.entries):
            key = str(entry.path[0])
            if key in new:
                made = self.value(entry.value, old[key], new[key])
                yield i, self.text[entry.start : entry.value.start] + made
            else:
                yield i, None
        yield from (
            (-1, f"{toml_key(key)} = {toml_value(item)}") for key, item in new.items() if key not in old
        )

    def array(self, array: Value, old: list[Tree], new: list[Any]) -> str | None:
        spans = [(entry.value.start, entry.value.end) for entry in array.entries]
        found = split_brackets(self.text, array.start, array.end, spans) if new else None
        return found.render(self.items(array, old, new)) if found else None

    def items(self, array: Value, old: list[Tree], new: list[Any]) -> Iterator[Part]:
        for step in compare_lists(old, new):
            if step.kind == "added":
                yield -1, toml_value(step.new)
            elif step.kind == "changed":
                yield step.old, self.value(array.entries[step.old].value, old[step.old], step.new)
            elif step.kind == "removed":
                yield step.old, None
            elif step.kind != "moved_away":
                value = array.entries[step.old].value
                yield step.old, self.text[value.start : value.end]
