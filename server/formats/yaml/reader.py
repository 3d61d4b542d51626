"""YAML parser that keeps unquoted values as text, unlike PyYAML's loaders."""

from collections.abc import Iterator, Set
from typing import Any

import yaml

from server.formats.text_positions import DuplicateKey, KeyPath, Position, Positions, position_at
from server.formats.tree import MAX_DEPTH, MAX_NODES, Node, Plain, SyntaxProblem, Tree, depth_of, size_of

LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

# libyaml 0.2.6 and later reject 1000 nested brackets. Because it parses ahead, its error comes before ours.
_DEPTH_PROBLEM = "exceeded maximum nesting depth"
_TOO_DEEP = f"the values are nested more than {MAX_DEPTH} levels deep"
_TOO_DEEP_FIX = "use fewer levels"


def read_yaml(
    text: str, positions: Positions | None = None, duplicates: list[DuplicateKey] | None = None
) -> Tree:
    """Parse YAML, or return None if the text is empty. Raises SyntaxProblem.

    Positions are added to `positions`, and duplicate keys to `duplicates`. If `duplicates` is None, a
    duplicate key is an error.
    """
    loader = LOADER(text)
    try:
        builder = _Builder(positions, duplicates)
        tree = builder.build(loader)
        # Reporting duplicate keys requires positions, so the text is parsed again with them.
        if builder.duplicates_found and positions is None:
            return read_yaml(text, {}, duplicates)
        if duplicates is not None:
            duplicates.extend(builder.duplicates_found)
        return tree
    except yaml.MarkedYAMLError as error:
        if error.problem == _DEPTH_PROBLEM:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            raise SyntaxProblem(_TOO_DEEP, line, _TOO_DEEP_FIX) from error
        opening = _open_quote(text, error)
        if opening:
            what = "invalid YAML: the quote that opens here is not closed"
            fix = "close the quote on this line"
            raise SyntaxProblem(what, opening.line + 1, fix, opening.column + 1) from error
        if opening := _open_bracket(error):
            what = "invalid YAML: the bracket that opens here is not closed"
            fix = "close the bracket, and separate its items with commas"
            raise SyntaxProblem(what, opening.line + 1, fix, opening.column + 1) from error
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        what = f"invalid YAML: {error.problem or error.context}"
        raise SyntaxProblem(what, line, _fix(error, text), column) from error
    except yaml.reader.ReaderError as error:
        line, column, _ = position_at(text, error.position)
        what = f"invalid YAML: {error.reason}"
        raise SyntaxProblem(what, line, "remove the invalid character", column) from error
    finally:
        loader.dispose()


def _open_quote(text: str, error: yaml.MarkedYAMLError) -> yaml.Mark | None:
    if error.context == "while scanning a quoted scalar":
        return error.context_mark
    last: Any = None
    loader = LOADER(text)
    try:
        while True:
            event = loader.get_event()
            if type(event) is yaml.ScalarEvent:
                last = event
    except yaml.YAMLError:
        quoted = last is not None and last.style in ("'", '"') and last.start_mark.line < last.end_mark.line
        ends_there = quoted and error.problem_mark and last.end_mark.line == error.problem_mark.line
        return last.start_mark if ends_there else None
    finally:
        loader.dispose()


def _open_bracket(error: yaml.MarkedYAMLError) -> yaml.Mark | None:
    opening, found = error.context_mark, error.problem_mark
    in_brackets = str(error.context).startswith("while parsing a flow ")
    return opening if in_brackets and opening and found and opening.line < found.line else None


def _fix(error: yaml.MarkedYAMLError, text: str) -> str:
    problem, mark = str(error.problem), error.problem_mark
    line = "".join(text.split("\n")[mark.line : mark.line + 1]) if mark else ""
    found = line[mark.column : mark.column + 1] if mark else ""
    if "mapping values are not allowed" in problem:
        return "put strings that contain a colon in quotes, or check the indentation"
    if found == "\t" or "\\t" in problem or "tab" in problem:
        return "indent with spaces, not tabs"
    if "cannot start any token" in problem:
        return "put strings that begin with this character in quotes"
    if "undefined alias" in problem or "alias" in problem:
        return "put strings that begin with * in quotes"
    return "check the quotes and the indentation nearby"


class _Builder:
    """Builder of trees from libyaml's events. It uses its own stack instead of recursion."""

    def __init__(self, positions: Positions | None, duplicates: list[DuplicateKey] | None) -> None:
        self.positions = positions
        self.is_strict = duplicates is None
        self.duplicates_found: list[DuplicateKey] = []
        # values that were replaced; they are kept in memory so that the ids in `merged` remain unique
        self.replaced: list[Tree] = []
        self.anchors: dict[str, Tree] = {}
        self.stack: list[Tree] = []
        # for each open list or mapping: the key that needs a value, or _NO_KEY
        self.keys: list[Any] = []
        self.path: list[Any] = []  # for each open list or mapping: its key or index in the parent
        self.root: Tree = None
        self.nodes = 0
        self.merged: set[tuple[int, str]] = set()  # (id of the mapping, key) for keys from a << merge

    def build(self, loader: Any) -> Tree:
        get, seen, stack, keys = loader.get_event, 0, self.stack, self.keys
        tracked = self.positions is not None
        while True:
            event = get()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                value = _scalar(event)
                # The code of `put` is duplicated here for scalars, because parsing takes most of the startup
                # time without a cache.
                if not stack or tracked or event.anchor is not None:
                    self.put(value, event)
                    continue
                container, key = stack[-1], keys[-1]
                self.nodes += 1
                if type(container) is list:
                    container.append(value)
                elif key is _NO_KEY:
                    keys[-1] = self.key(container, value, event)
                elif key is not _MERGE:
                    keys[-1] = _NO_KEY
                    container[key] = value
                else:
                    self.put(value, event)
            elif kind is yaml.MappingStartEvent:
                self.open({}, event)
            elif kind is yaml.SequenceStartEvent:
                self.open([], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.close(event)
            elif kind is yaml.AliasEvent:
                self.put(self.alias(event), event)
            elif kind is yaml.DocumentStartEvent:
                seen += 1
                if seen > 1:
                    fix = "keep only one YAML document in each file"
                    raise _refusal(event, "a second YAML document begins here", fix)
            elif kind is yaml.StreamEndEvent:
                self.count(0, event)
                # Aliases can increase the depth.
                if self.anchors and depth_of(self.root) > MAX_DEPTH:
                    raise SyntaxProblem(_TOO_DEEP, None, _TOO_DEEP_FIX)
                return self.root

    def open(self, container: Tree, event: Any) -> None:
        _check_tag(event)
        key = self.put(container, event)
        if len(self.stack) >= MAX_DEPTH:
            raise _refusal(event, _TOO_DEEP, _TOO_DEEP_FIX)
        self.stack.append(container)
        self.keys.append(_NO_KEY)
        self.path.append(key)

    def close(self, event: Any) -> None:
        closed = self.stack.pop()
        self.keys.pop()
        self.path.pop()
        if self.keys and self.keys[-1] is _MERGE:  # The mapping that is the value of << is complete.
            self.keys[-1] = _NO_KEY
            self.merge(self.stack[-1], closed, event)

    def alias(self, event: Any) -> Tree:
        # Values of aliases are counted again, so that aliases can't multiply the size without limit.
        target = self.anchors.get(event.anchor, _NO_KEY)
        if target is _NO_KEY:
            what = f"the alias *{event.anchor} is used, but no anchor &{event.anchor} is defined before it"
            raise _refusal(event, what, "put strings that begin with * in quotes")
        if any(target is container for container in self.stack):
            raise _refusal(
                event,
                f"the alias *{event.anchor} is used inside its own anchor, &{event.anchor}",
                "replace the alias with a value",
            )
        self.count(size_of(target), event)
        return target

    def count(self, nodes: int, event: Any) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise _refusal(event, f"the file has more than {MAX_NODES} values", "split the file")

    def put(self, value: Tree, event: Any) -> Any:
        self.count(1, event)
        anchor = event.anchor
        if anchor is not None and type(event) is not yaml.AliasEvent:
            self.anchors[anchor] = value
        if not self.stack:
            self.root = value
            return None
        container, key = self.stack[-1], self.keys[-1]
        if type(container) is list:
            container.append(value)
            self.note(len(container) - 1, event)
            return len(container) - 1
        if key is _NO_KEY:
            key = self.keys[-1] = self.key(container, value, event)
            self.note(_key_text(key), event)
        elif key is not _MERGE:
            self.keys[-1] = _NO_KEY
            container[key] = value
            self.note_value(key, event)
        elif type(event) not in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
            self.keys[-1] = _NO_KEY
            self.merge(container, value, event)
        return _key_text(key)

    def key(self, container: dict[str, Tree], key: Tree, event: Any) -> Any:
        """Return a key as a string, or _MERGE if it is `<<` without quotes."""
        if not isinstance(key, str):
            raise _refusal(event, "a key must be a string", "put the key in quotes")
        if key == "<<" and type(key) is Plain:
            return _MERGE
        if key in container and not self._overrides_merged(container, key):
            if self.is_strict:
                raise _refusal(event, f'the key "{key}" occurs twice', "remove one of the two")
            self.repeat(container, key, event)
        return str(key)

    def repeat(self, container: dict[str, Tree], key: str, event: Any) -> None:
        # The positions of the earlier value, and of everything in it, are removed.
        at, start, old = (*self.path[1:], str(key)), event.start_mark, container[key]
        positions = self.positions if self.positions is not None else {}
        earlier = positions.get(at, Position(start.line + 1, start.column + 1))
        text = str(old) if isinstance(old, str) else ""
        self.duplicates_found.append(DuplicateKey(at, earlier.line, earlier.column, start.line + 1, text))
        self.replaced.append(old)
        for inner in [path for path in positions if path[: len(at)] == at]:
            del positions[inner]

    def merge(self, container: dict[str, Tree], value: Tree, event: Any) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise _refusal(event, "<< must refer to a mapping", "refer to the anchor of a mapping")
            for key, item in source.items():
                if key not in container:
                    container[key] = item
                    self.merged.add((id(container), str(key)))

    def _overrides_merged(self, container: dict[str, Tree], key: str) -> bool:
        if (id(container), str(key)) not in self.merged:
            return False
        self.merged.discard((id(container), str(key)))
        return True

    def note(self, key: Any, event: Any) -> None:
        if self.positions is not None:
            start = event.start_mark
            self.positions[(*self.path[1:], key)] = Position(start.line + 1, start.column + 1)

    def note_value(self, key: Any, event: Any) -> None:
        # only for a scalar on the same line as its key
        at, start = (*self.path[1:], key), event.start_mark
        if self.positions is not None and hasattr(event, "value"):
            position = self.positions[at]
            if position.line == start.line + 1:
                self.positions[at] = position._replace(value_column=start.column + 1)


_NO_KEY: Any = object()
_MERGE: Any = object()  # the key << without quotes


def _refusal(event: Any, message: str, fix: str) -> SyntaxProblem:
    return SyntaxProblem(message, event.start_mark.line + 1, fix, event.start_mark.column + 1)


def _key_text(key: Any) -> Any:
    return "<<" if key is _MERGE else key


def _scalar(event: Any) -> Tree:
    tag = event.tag
    if tag is not None:
        _check_tag(event)
    if not event.style and tag != "tag:yaml.org,2002:str":
        return Plain(event.value)
    return event.value


def _check_tag(event: Any) -> None:
    if event.tag is not None and event.tag != "!" and not event.tag.startswith("tag:yaml.org,2002:"):
        raise _refusal(event, f"the tag {event.tag} is unknown", "remove the tag")


# --- keys -----------------------------------------------------------------------------------------


def yaml_keys(text: str, mappings: Set[KeyPath]) -> Iterator[tuple[KeyPath, int, int, str]]:
    """Yield the path, start, end and quotation mark of each key in the mappings whose paths are given.

    If a path is in `mappings`, all its parents must be in it too.
    """
    loader: Any = LOADER(text)
    # for each open list or mapping: its path (None if it is not in `mappings`), and its next key or index
    stack: list[list[Any]] = []
    try:
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                at = _next_path(stack[-1]) if stack else ()
                first = _NO_KEY if kind is yaml.MappingStartEvent else 0
                stack.append([at if at in mappings else None, first])
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                stack.pop()
            elif kind is yaml.StreamEndEvent:
                return
            elif kind not in (yaml.ScalarEvent, yaml.AliasEvent) or not stack or stack[-1][0] is None:
                continue
            elif _next_path(stack[-1]) is None and kind is yaml.ScalarEvent:
                stack[-1][1] = event.value
                at = (*stack[-1][0], event.value)
                yield at, event.start_mark.index, event.end_mark.index, event.style or ""
    finally:
        loader.dispose()


def _next_path(container: list[Any]) -> KeyPath | None:
    """Advance to the container's next node, and return its path. Return None if the node is a key."""
    at, key = container
    if at is None:
        return None
    if key is _NO_KEY:
        container[1] = ""  # Placeholder. The caller replaces it if the key is a scalar.
        return None
    container[1] = key + 1 if type(key) is int else _NO_KEY
    return (*at, key)


# --- nodes ----------------------------------------------------------------------------------------


def yaml_nodes(text: str) -> Node | None:
    """Parse YAML to a syntax tree, or return None if the text is empty."""
    loader = LOADER(text)
    root: Node | None = None
    stack: list[Node] = []
    try:
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.StreamEndEvent:
                return root
            if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                _close(stack.pop(), event)
                continue
            node = _node(event)
            if node is None:
                continue
            if stack:
                _add(stack[-1], node)
            else:
                root = node
            if node.kind in ("map", "list"):
                stack.append(node)
    finally:
        loader.dispose()


def _node(event: Any) -> Node | None:
    start, end = event.start_mark.index, event.end_mark.index
    kind = type(event)
    if kind is yaml.AliasEvent:
        return Node("alias", start, end, value=event.anchor)
    if kind is yaml.ScalarEvent:
        node = Node("scalar", start, end, event.style or "", event.value)
    elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
        style = "flow" if event.flow_style else "block"
        node = Node("map" if kind is yaml.MappingStartEvent else "list", start, end, style)
    else:
        return None
    node.anchored = event.anchor is not None or event.tag not in (None, "!")
    return node


def _add(parent: Node, node: Node) -> None:
    if parent.kind == "map" and len(parent.keys) == len(parent.items):
        parent.keys.append(node)
    else:
        parent.items.append(node)


def _close(node: Node, event: Any) -> None:
    # libyaml reports the end of a block only at the next token.
    if node.style == "flow":
        node.end = event.end_mark.index
    elif node.items:
        node.end = max(node.items[-1].end, node.keys[-1].end + 1 if node.keys else 0)
