"""Changes values in the text of a TOML file and leaves every other byte as it is (as `edit_yaml`).

tomlkit could change TOML as well, but not to this promise: in a file whose lines end in CRLF it adds lines
that end in LF, it is eight times as slow, and the places of values for problems have to be found anyway.
"""

import re
from typing import Any

from server.formats.edits import REMOVE, Cut, apply_cuts, differences, same
from server.formats.lines import comments_start, line_end, line_start, newline_of, next_line
from server.formats.positions import KeyPath
from server.formats.toml.statements import Entry, Statement, Value, statements
from server.formats.toml.writer import is_section, toml_entry, toml_key, toml_section, toml_value
from server.formats.tree import Tree

_COMMA = re.compile(r"[ \t]*,")


def edit_toml(text: str, tree: Tree, changes: dict[str, Any], *, expand: bool = False) -> str:
    """A TOML text whose top table has new values under some keys; REMOVE removes a key, and so does None.

    `expand` writes the changed keys anew as a whole. Raises NoNull for a null inside of a value.
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


class _TomlEditor:
    """Collects the cuts of one text, and what is to be added at its top and its end."""

    def __init__(self, text: str) -> None:
        self.text, self.newline = text, newline_of(text)
        self.statements = statements(text)
        self.cuts: list[Cut] = []
        self.top = ""  # the lines of new keys, in a text that has none above its first header
        self.sections: list[str] = []

    def result(self) -> str:
        """The text after all cuts."""
        if self.top:
            self.insert_at_top(self.top)
        made = apply_cuts(self.text, self.cuts)
        for section in self.sections:
            if made and not made.endswith("\n"):
                made += self.newline
            gap = self.newline if made.strip() and not made.endswith(("\n\n", "\n\r\n")) else ""
            made += gap + section.replace("\n", self.newline)
        return made

    def below(self, path: KeyPath) -> list[Statement]:
        """The statements of a path, and of everything in it."""
        return [s for s in self.statements if s.path[: len(path)] == path]

    def change(self, path: KeyPath, old: Tree, new: Any) -> None:
        """Let a path that has a value have another one."""
        if new is REMOVE:
            return self.remove(path)
        if same(old, new):
            return None
        written = next((s.value for s in self.statements if s.path == path and s.value), None)
        if written:
            return self.value(written, old, new, lines=True)
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
        """Write a path anew as a whole."""
        self.remove(path)
        self.add(path[:-1], path[-1], new)

    def remove(self, path: KeyPath) -> None:
        """Remove the lines of a path."""
        for s in self.below(path):
            end = next_line(self.text, line_end(self.text, s.end))
            self.cuts.append(Cut(line_start(self.text, s.start), end, ""))

    def add(self, table: KeyPath, key: str | int, value: Any) -> None:
        """Add a key to a table: below its last one, or as a section at the end of the text."""
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
        """Insert lines below that on which a statement ends."""
        self.insert(next_line(self.text, line_end(self.text, statement.end)), lines)

    def insert_at_top(self, lines: str) -> None:
        """Insert the lines of keys before the first header and the comments right above it."""
        if self.statements:
            self.insert(comments_start(self.text, self.statements[0].start), lines + "\n")
        else:
            self.insert(len(self.text), lines)

    def insert(self, at: int, lines: str) -> None:
        """Insert lines at the beginning of a line; a text without a last newline stays without."""
        lines = lines.replace("\n", self.newline)
        if at == len(self.text) and self.text and not self.text.endswith("\n"):
            lines = self.newline + lines.removesuffix(self.newline)
        self.cuts.append(Cut(at, at, lines))

    def tables(self, path: KeyPath, old: list[Tree], new: list[Any]) -> None:
        """Change a list of tables where it differs; those that stay keep their bytes."""
        names = [str(part) for part in path if isinstance(part, str)]
        for found in differences(old, new):
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

    def value(self, value: Value, old: Tree, new: Any, *, lines: bool = False) -> None:
        """Change a value where it stands, or the parts of it that differ; `lines` as for `toml_value`."""
        if same(old, new):
            return
        undotted = value.kind == "table" and all(len(entry.path) == 1 for entry in value.entries)
        if undotted and isinstance(new, dict) and old.keys() == new.keys():
            for entry in value.entries:
                self.value(entry.value, old[entry.path[0]], new[entry.path[0]])
            return
        if value.kind == "array" and isinstance(new, list | tuple) and self.array(value, old, list(new)):
            return
        written = self.text[value.start : value.end]
        margin = self.margin(value) if value.kind == "array" else None
        made = toml_value(new, lines=lines, margin=margin, quote=written[:1])
        self.cuts.append(Cut(value.start, value.end, made.replace("\n", self.newline)))

    def margin(self, array: Value) -> str | None:
        """What stands before the items of an array that has each on a line of its own, else None."""
        if not array.entries or "\n" not in self.text[array.start : array.entries[0].start]:
            return None
        first = array.entries[0].start
        return self.text[line_start(self.text, first) : first]

    def array(self, array: Value, old: list[Tree], new: list[Any]) -> bool:
        """Change an array item by item; False where it has to be written anew."""
        if not old or not new:
            return False
        for found in differences(old, new):
            changed = range(found.start, min(found.end, found.start + len(found.new)))
            for i, item in zip(changed, found.new, strict=False):
                self.value(array.entries[i].value, old[i], item)
            if changed.stop < found.end:
                self.cut_items(array.entries, changed.stop, found.end)
            elif len(changed) < len(found.new):
                self.add_items(array, found.end, found.new[len(changed) :])
        return True

    def cut_items(self, entries: list[Entry], start: int, end: int) -> None:
        """Remove items of an array, each with its comma and the comment behind it."""
        first, last = entries[start], entries[end - 1]
        if all(self.has_own_lines(entry) for entry in entries[start:end]):
            for entry in entries[start:end]:
                behind = next_line(self.text, self.behind_comma(entry))
                self.cuts.append(Cut(line_start(self.text, entry.start), behind, ""))
            return
        before = entries[start - 1].value.end if start else first.start
        behind = entries[end].start if end < len(entries) else last.value.end
        if "\n" in self.text[last.value.end : behind] or "\n" in self.text[before : first.start]:
            comma = self.behind_comma(last)
            ends = comma == line_end(self.text, comma)
            begins = len(self.text[: first.start].rstrip(" \t")) if ends else first.start
            self.cuts.append(Cut(begins, comma, ""))
        else:
            self.cuts.append(Cut(first.start, behind, "") if end < len(entries) else Cut(before, behind, ""))

    def add_items(self, array: Value, at: int, items: list[Any]) -> None:
        """Add items to an array before the one at an index, or behind the last."""
        made = [toml_value(item) for item in items]
        next_to = array.entries[min(at, len(array.entries) - 1)]
        if not self.has_own_lines(next_to):
            between = ", "
            if at < len(array.entries):
                self.cuts.append(Cut(next_to.start, next_to.start, between.join(made) + between))
            else:
                end = next_to.value.end
                self.cuts.append(Cut(end, end, between + between.join(made)))
            return
        margin = self.text[line_start(self.text, next_to.start) : next_to.start]
        lines = [f"{margin}{item},{self.newline}" for item in made]
        end = next_to.value.end
        if at < len(array.entries):
            above = array.entries[at - 1].value.end if at else array.start
            start = comments_start(self.text, next_to.start, above)
            self.cuts.append(Cut(start, start, "".join(lines)))
            return
        if self.behind_comma(next_to) == end:
            self.cuts.append(Cut(end, end, ","))
            lines[-1] = f"{margin}{made[-1]}{self.newline}"
        start = next_line(self.text, end)
        self.cuts.append(Cut(start, start, "".join(lines)))

    def has_own_lines(self, entry: Entry) -> bool:
        """Whether nothing but a comment stands beside an array's item on the lines that it takes."""
        before = self.text[line_start(self.text, entry.start) : entry.start]
        behind = self.behind_comma(entry)
        rest = self.text[behind : line_end(self.text, behind)].lstrip(" \t")
        return not before.strip(" \t") and (not rest or rest.startswith("#"))

    def behind_comma(self, entry: Entry) -> int:
        """The index behind an array item's comma on the same line, else behind its value."""
        found = _COMMA.match(self.text, entry.value.end)
        return found.end() if found else entry.value.end
