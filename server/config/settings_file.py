"""Functions that change settings in the text of site.yaml, or hide the secrets in it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from server.config.model import FILE, KEYS
from server.config.reader import ENTRIES
from server.config.setting import SettingKey
from server.config.webhooks import check_url, shown_url
from server.errors import ConflictError, place_of
from server.formats.config_file import ConfigFile
from server.formats.edits import REMOVE, Replacement, apply_replacements, is_same_value
from server.formats.tree import Node, SyntaxProblem, Tree, is_null, resolve_plain_values
from server.formats.yaml.edit import edit_yaml
from server.formats.yaml.reader import read_yaml, yaml_nodes

BOM = "\ufeff"
HIDDEN = "(hidden)"
WEBHOOKS = "webhooks"
PREVIEWS = "previews"  # Preview URLs can contain secrets. Callers see only those of types that they may edit.
# Kinds of settings whose values are numbers or booleans. The values of all other settings are texts.
_TYPED_KINDS = ("count", "flag", "keep", "numbers", "weights")
_LINE_END = re.compile("[\\r\\n\\x85\\u2028\\u2029]|\\Z")
# An empty file would be rejected, because it could be a file that another program is still writing.
_NO_SETTINGS = "{}\n"

Path = tuple[str, ...]


def find_setting(dotted_name: str) -> tuple[SettingKey, Path] | None:
    """Return a setting and the path of its value in site.yaml, or None if there is no such setting.

    `dotted_name` names a setting (`api.page_size.max`) or one entry of a setting (`preview.article`).
    """
    if dotted_name in KEYS:
        return KEYS[dotted_name], KEYS[dotted_name].path
    for key in KEYS.values():
        if (
            key.value_type in ENTRIES
            and dotted_name.startswith(f"{key.name}.")
            and len(dotted_name) > len(key.name) + 1
        ):
            return key, (*key.path, dotted_name.removeprefix(f"{key.name}."))
    return None


def json_value(file: ConfigFile, key: SettingKey) -> Any:
    value = file.get(*key.path)
    return None if is_null(value) else _as_json(value, key.value_type in _TYPED_KINDS)


def _as_json(tree: Tree, is_typed: bool) -> Any:
    if isinstance(tree, dict):
        return {str(key): _as_json(value, is_typed) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_as_json(value, is_typed) for value in tree]
    try:
        return resolve_plain_values(tree) if is_typed else str(tree)
    except ValueError:
        return str(tree)


def change_settings_text(text: str, changes: Mapping[Path, Any], *, prune: bool = True) -> str:
    """Return the text of site.yaml with changed values. All other lines stay the same.

    `changes` maps the path of each setting to its new value, or to REMOVE. If `prune` is set, sections that
    become empty are removed. Raises ConflictError if the text can't be parsed or changed.
    """
    bom, text = (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
    try:
        tree = _read(text)
        expected = tree
        for path, value in changes.items():
            expected = _with_value(expected, path, value, prune=prune)
        tops = {path[0] for path in changes}
        edits = {top: expected.get(top, REMOVE) for top in sorted(tops)}
        for expand in (False, True):
            edited = edit_yaml(text, tree, edits, expand=expand, flow_lists=True)
            if _contains(edited, expected):
                return bom + (edited if edited.strip() or not text.strip() else _NO_SETTINGS)
    except SyntaxProblem as error:
        place = place_of(FILE, error.line, error.column)
        raise ConflictError(f"{place}: {error.message}; fix the file first") from error
    anchors = ", such as an anchor (&) that is used elsewhere (*)" if "&" in text else ""
    what = f"{FILE} contains syntax that Bifolio can't change safely{anchors}"
    raise ConflictError(f"{what}; edit the file by hand")


def _contains(text: str, expected: Mapping[str, Tree]) -> bool:
    try:
        return is_same_value(_read(text), expected)
    except SyntaxProblem:  # The edit has removed an anchor that is still used.
        return False


def _read(text: str) -> dict[str, Tree]:
    tree = read_yaml(text)
    if is_null(tree):
        return {}
    if not isinstance(tree, dict):
        raise SyntaxProblem("the file must contain a mapping", 1, "write each setting as a key with a value")
    return tree


def _with_value(tree: Mapping[str, Tree], path: Path, value: Any, *, prune: bool) -> dict[str, Tree]:
    first, *rest = path
    others = {key: inner for key, inner in tree.items() if key != first}
    if rest:
        inner = tree.get(first)
        value = _with_value(inner if isinstance(inner, dict) else {}, tuple(rest), value, prune=prune)
        if not value and prune:
            value = REMOVE
    if value is REMOVE:
        return others
    # The order of the keys stays the same.
    return {key: value if key == first else inner for key, inner in tree.items()} | {first: value}


# --- secrets --------------------------------------------------------------------------------------


def mask_settings_text(
    text: str, sent: Collection[str] | None = None, *, keeps_inline_comments: bool = False
) -> str:
    """Return the text of site.yaml with all comments and all possibly secret values hidden.

    By default, the whole `webhooks` section is hidden. If `sent` is given, only this section's secrets,
    header values and ends of URLs are hidden, but header values and URLs in `sent` remain visible. If
    `keeps_inline_comments` is set, comments after a setting on the same line remain visible, except in the
    `webhooks` section. Raises SyntaxProblem if the text can't be parsed.
    """
    root, hidden = _nodes(text), list[tuple[Node, str]]()
    if root:
        masked = [key.path for key in KEYS.values() if key.secret or key.value_type == PREVIEWS]
        if sent is not None:
            masked.remove((WEBHOOKS,))
            for node in _nodes_at(root, (WEBHOOKS,)):
                hidden += _webhook_secrets(node, sent)
        hidden += [(node, HIDDEN) for path in masked for node in _nodes_at(root, path)]
    # The end of a literal or folded block includes the line end.
    spans = [(node.start, len(text[node.start : node.end].rstrip()), shown) for node, shown in hidden]
    replacements = [Replacement(start, start + length, shown) for start, length, shown in spans if length]
    # Any comment can be a secret that was commented out.
    comments = [
        Replacement(start, end, f"# {HIDDEN}")
        for start, end in _comments(text, root, replacements)
        if not (keeps_inline_comments and _is_inline(text, start) and not _is_in_webhooks(text, root, start))
    ]
    return apply_replacements(text, [*replacements, *comments])


def _nodes(text: str) -> Node | None:
    read_yaml(text.removeprefix(BOM))
    return yaml_nodes(text)


def _comments(text: str, root: Node | None, hidden: Iterable[Replacement] = ()) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each comment that is not in a hidden part of the text."""
    scalars = _scalar_spans(text, root) if root else ()
    hashes = [*scalars, *((one.start, one.end) for one in hidden)]
    position = 0
    while (start := text.find("#", position)) >= 0:
        position = max((last for first, last in hashes if first <= start < last), default=0)
        if not position:
            position = next(_LINE_END.finditer(text, start)).start()
            yield start, position


def _is_inline(text: str, comment: int) -> bool:
    return bool(text[:comment].rpartition("\n")[2].strip())


def _is_in_webhooks(text: str, root: Node | None, comment: int) -> bool:
    keys = root.keys if root else ()
    for key in (key for key in keys if key.value == WEBHOOKS):
        end = min((other.start for other in keys if other.start > key.start), default=len(text))
        if key.end <= comment < end:
            return True
    return False


def _scalar_spans(text: str, node: Node) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each scalar. In these spans, a `#` does not begin a comment."""
    if node.kind == "scalar":
        # The first line of a block scalar can end in a comment.
        is_block = node.style in ("|", ">")
        yield next(_LINE_END.finditer(text, node.start)).start() if is_block else node.start, node.end
    for inner in (*node.keys, *node.items):
        yield from _scalar_spans(text, inner)


def _webhook_secrets(webhooks: Node, sent: Collection[str]) -> Iterator[tuple[Node, str]]:
    """Yield each value in the `webhooks` section that can contain a secret, and the text that replaces it."""
    if webhooks.kind != "list":
        yield webhooks, HIDDEN
    for webhook in webhooks.items if webhooks.kind == "list" else ():
        if webhook.kind != "map":
            yield webhook, HIDDEN
        for key, value in zip(webhook.keys, webhook.items, strict=True):
            if key.value == "headers" and value.kind == "map":
                yield from ((node, HIDDEN) for node in value.items if not _is_sent(node, sent))
            elif key.value == "url" and value.kind == "scalar" and not check_url(value.value):
                if not _is_sent(value, sent):
                    yield value, shown_url(value.value)
            elif key.value in ("headers", "url", "secret", "<<"):
                yield value, HIDDEN


def _is_sent(node: Node, sent: Collection[str]) -> bool:
    return node.kind == "scalar" and node.value in sent


def _nodes_at(node: Node, path: Path) -> Iterator[Node]:
    if not path:
        yield node
        return
    for i in node.all(path[0]):
        yield from _nodes_at(node.items[i], path[1:])
