"""Editor that renames keys and leaves all other bytes unchanged."""

from collections.abc import Iterator, Mapping

from server.formats import frontmatter
from server.formats.edits import Replacement, apply_replacements
from server.formats.json import json_nodes, json_text
from server.formats.text_positions import KeyPath
from server.formats.toml.reader import toml_key
from server.formats.toml.statements import Value, key_spans, parse_statements
from server.formats.tree import Node
from server.formats.yaml.reader import yaml_keys
from server.formats.yaml.writer import is_safe_plain

# maps the path of a key to its new name
Renames = Mapping[KeyPath, str]


def rename_keys(path: str, text: str, renames: Renames, *, markdown: bool) -> str:
    """Rename keys in a file's text. In Markdown, only keys in the front matter are renamed."""
    if not renames:
        return text
    if not markdown:
        return _rename(_format_of(path), text, renames)
    parts = frontmatter.split_front_matter(text)
    if parts.handler is None:
        return text
    matter = _rename(_FRONT_MATTER[type(parts.handler)], parts.front_matter, renames)
    return parts.opening + matter + parts.closing + parts.body_text


_FRONT_MATTER: Mapping[type, str] = {
    frontmatter.YamlHandler: "yaml",
    frontmatter.TomlHandler: "toml",
    frontmatter.JsonHandler: "json",
}


def _format_of(path: str) -> str:
    return "json" if path.endswith(".json") else "toml" if path.endswith(".toml") else "yaml"


def _rename(format_: str, text: str, renames: Renames) -> str:
    if format_ == "toml":
        return apply_replacements(text, list(_toml_replacements(text, renames)))
    above = {path[:end] for path in renames for end in range(len(path))}
    if format_ == "json":
        root = json_nodes(text)
        return apply_replacements(text, list(_node_replacements(root, (), renames, above))) if root else text
    keys = yaml_keys(text, above)
    replacements = [
        Replacement(start, end, _token(renames[at], style)) for at, start, end, style in keys if at in renames
    ]
    return apply_replacements(text, replacements)


def _node_replacements(
    node: Node, key_path: KeyPath, renames: Renames, above: set[KeyPath]
) -> Iterator[Replacement]:
    # `above` contains the paths of all arrays and objects with keys to rename.
    if key_path not in above:
        return
    for i, item in enumerate(node.items):
        here = (*key_path, node.keys[i].value if node.kind == "map" else i)
        if here in renames:
            key = node.keys[i]
            yield Replacement(key.start, key.end, json_text(renames[here]))
        yield from _node_replacements(item, here, renames, above)


def _token(name: str, style: str) -> str:
    if style == '"':
        return json_text(name)
    if style == "'" or not is_safe_plain(name, flow=True):
        return "'" + name.replace("'", "''") + "'"
    return name


# --- TOML -----------------------------------------------------------------------------------------


def _toml_replacements(text: str, renames: Renames) -> Iterator[Replacement]:
    for statement in parse_statements(text):
        spans = key_spans(text, statement.start)
        if statement.value is None:
            names = [end for end, part in enumerate(statement.path, 1) if isinstance(part, str)]
            paths = [statement.path[:end] for end in names]
        else:
            own = len(statement.path) - len(spans)
            paths = [statement.path[: own + end] for end in range(1, len(spans) + 1)]
            yield from _inner_replacements(text, statement.path, statement.value, renames)
        yield from _key_replacements(text, spans, paths, renames)


def _inner_replacements(
    text: str, key_path: KeyPath, value: Value, renames: Renames
) -> Iterator[Replacement]:
    for entry in value.entries:
        if value.kind == "table":
            spans = key_spans(text, entry.start)
            paths = [(*key_path, *entry.path[:end]) for end in range(1, len(spans) + 1)]
            yield from _key_replacements(text, spans, paths, renames)
        yield from _inner_replacements(text, (*key_path, *entry.path), entry.value, renames)


def _key_replacements(
    text: str, spans: list[tuple[int, int]], paths: list[KeyPath], renames: Renames
) -> Iterator[Replacement]:
    for (start, end), path in zip(spans, paths, strict=True):
        if path in renames:
            name, quote = renames[path], text[start]
            yield Replacement(start, end, f"{quote}{name}{quote}" if quote in "\"'" else toml_key(name))
