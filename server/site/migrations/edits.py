"""Edits of files that leave the rest of the text unchanged."""

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from server.documents.path_rules import MARKDOWN
from server.errors import ConflictError
from server.formats import frontmatter
from server.formats.edits import REMOVE, is_same_value
from server.formats.rename_keys import rename_keys
from server.formats.text_positions import KeyPath
from server.formats.tree import SyntaxProblem, Tree
from server.formats.yaml.nesting import nest_keys, unnest_keys
from server.storage.document_text import change_text
from server.storage.read import BOM, parse


@dataclass(frozen=True, slots=True)
class Edits:
    """Edits of one file, by key path. Key paths use the names from before the edits.

    If a value is REMOVE, its key is removed. `refused` maps each key path that can't be edited to the reason.
    """

    renames: dict[KeyPath, str] = field(default_factory=dict)
    values: dict[KeyPath, Any] = field(default_factory=dict)
    refused: dict[KeyPath, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.renames or self.values or self.refused)

    def add(self, other: "Edits", prefix: KeyPath = ()) -> None:
        self.renames.update({(*prefix, *path): name for path, name in other.renames.items()})
        self.values.update({(*prefix, *path): value for path, value in other.values.items()})
        self.refused.update({(*prefix, *path): reason for path, reason in other.refused.items()})

    def applied_to(self, tree: Tree) -> Any:
        edited = (*self.renames, *self.values)
        return self._applied(tree, (), {path[:end] for path in edited for end in range(len(path))})

    def _applied(self, tree: Tree, key_path: KeyPath, above: Set[KeyPath]) -> Any:
        if key_path not in above:
            return tree
        if isinstance(tree, dict):
            made: dict[Any, Any] = {}
            for key, value in tree.items():
                here = (*key_path, key)
                new = self.values[here] if here in self.values else self._applied(value, here, above)
                if new is not REMOVE:
                    made[self.renames.get(here, key)] = new
            added = {
                p[-1]: v for p, v in self.values.items() if p and p[:-1] == key_path and p[-1] not in tree
            }
            return {**made, **{key: value for key, value in added.items() if value is not REMOVE}}
        if isinstance(tree, list):
            items = [
                self.values.get((*key_path, i), self._applied(item, (*key_path, i), above))
                for i, item in enumerate(tree)
            ]
            return [item for item in items if item is not REMOVE]
        return tree


def edit_text(
    path: str,
    text: str,
    body: str | None,
    edits: Edits,
    new_body: str | None = None,
    tree: Mapping[str, Tree] | None = None,
) -> str:
    """Return the text of a file after the edits.

    `body` and `new_body` are the names of the attribute in the Markdown body before and after the edits.
    Raises SyntaxProblem if the text is invalid, and ConflictError if other values would change, too.
    """
    bom, text = (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
    expected = edits.applied_to(parse(path, text, body) if tree is None else tree)
    edited = rename_keys(path, text, edits.renames, markdown=path.endswith(MARKDOWN))
    moved_body = edits.renames.get((body,), body) if body else None
    if edits.values:
        edited = _with_values(path, edited, moved_body, expected)
    _require_same(path, edited, new_body, expected)
    return bom + edited


def _with_values(path: str, text: str, body: str | None, expected: Mapping[str, Any]) -> str:
    text = _with_moves(path, text, body, expected)
    now = parse(path, text, body)
    changes = {key: value for key, value in expected.items() if not is_same_value(now.get(key), value)}
    changes |= dict.fromkeys(now.keys() - expected.keys(), REMOVE)
    return change_text(path, text, body, changes) if changes else text


def _with_moves(path: str, text: str, body: str | None, expected: Mapping[str, Any]) -> str:
    now = parse(path, text, body)
    gone, new = now.keys() - expected.keys(), expected.keys() - now.keys()
    for holder in new:
        if _holds(expected[holder], now, gone):
            value = expected[holder]
            moved = _in_yaml(path, text, partial(nest_keys, names=value.keys(), parent=holder))
            return _if_same(path, moved, body, {**_without(now, value), holder: value}) or text
    for holder in gone:
        if _holds(now[holder], expected, new):
            moved = _in_yaml(path, text, partial(unnest_keys, parent=holder))
            return _if_same(path, moved, body, {**_without(now, [holder]), **now[holder]}) or text
    return text


def _holds(value: Any, values: Mapping[str, Any], keys: Set[str]) -> bool:
    if not isinstance(value, dict) or not value or not value.keys() <= keys:
        return False
    return _is_same(value, {key: values[key] for key in value})


def _without(values: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in keys}


def _in_yaml(path: str, text: str, change: Callable[[str], str | None]) -> str | None:
    if path.endswith((".yaml", ".yml")):
        return change(text)
    parts = frontmatter.split_front_matter(text) if path.endswith(MARKDOWN) else None
    if parts is None or not isinstance(parts.handler, frontmatter.YamlHandler):
        return None
    matter = change(parts.front_matter)
    return None if matter is None else parts.opening + matter + parts.closing + parts.body_text


def _if_same(path: str, text: str | None, body: str | None, expected: Mapping[str, Any]) -> str | None:
    try:
        return text if text is not None and _is_same(parse(path, text, body), expected) else None
    except SyntaxProblem:
        return None


def _require_same(path: str, text: str, body: str | None, expected: Mapping[str, Any]) -> None:
    try:
        found: Any = parse(path, text, body)
    except SyntaxProblem:
        found = None
    if found is None or not _is_same(found, expected):
        raise ConflictError(f"{path} contains syntax that Bifolio can't change safely; edit the file by hand")


def _is_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return found.keys() == expected.keys() and all(is_same_value(found[key], expected[key]) for key in found)
