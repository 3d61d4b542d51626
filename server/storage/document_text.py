"""Creation and editing of the text of document files."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from server.documents.path_rules import MARKDOWN, TOML
from server.errors import ConflictError
from server.formats import frontmatter
from server.formats.conflicts import has_conflict
from server.formats.edits import REMOVE, is_same_value
from server.formats.json import edit_json, json_text, read_json
from server.formats.text_positions import DuplicateKey, KeyPath, newline_of
from server.formats.toml.edit import edit_toml, remove_duplicate_toml_keys
from server.formats.toml.reader import NullError, read_toml, toml_mapping
from server.formats.tree import Plain, SyntaxProblem, Tree, is_null
from server.formats.yaml.edit import edit_yaml, remove_duplicate_yaml_keys
from server.formats.yaml.reader import read_yaml
from server.formats.yaml.writer import yaml_mapping
from server.storage.read import BOM, parse

# Front matter formats for new files, by their names in `options.frontMatter`.
FRONT_MATTER: Mapping[str, frontmatter.Handler] = {"yaml": frontmatter.YAML, "toml": frontmatter.TOML}


def new_text(path: str, body: str | None, trees: Mapping[str, Any], front_matter_format: str = "yaml") -> str:
    """Return the text of a new document file.

    `trees` contains the attributes' values. `body` is the name of the attribute that is written below the
    front matter. Raises ConflictError if the file format can't represent a value.
    """
    if path.endswith(".json"):
        return json_text(dict(trees), indent="  ") + "\n"
    with _no_null(path):
        if path.endswith(TOML):
            return toml_mapping(_without_null(trees))
        if not path.endswith(MARKDOWN):
            return yaml_mapping(trees)
        return _new_markdown(body, trees, FRONT_MATTER[front_matter_format])


def _new_markdown(body: str | None, trees: Mapping[str, Any], handler: frontmatter.Handler) -> str:
    matter = {key: value for key, value in trees.items() if key != body}
    text = trees.get(body) if body else None
    # Write an explicit null, because in a file with no body the attribute would get its default value.
    if body in trees and text is None:
        matter[str(body)] = None
    if body and isinstance(text, str) and _must_be_in_matter(text):
        matter[body] = text
        text = None
    if handler is frontmatter.TOML:
        matter = _without_null(matter)
    made = f"{handler.START_DELIMITER}\n{handler.export(matter)}{handler.END_DELIMITER}\n"
    return made + (f"\n{text}\n" if text else "")


def _without_null(trees: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tree for key, tree in trees.items() if tree is not None}


@contextmanager
def _no_null(path: str) -> Iterator[None]:
    try:
        yield
    except NullError as error:
        raise ConflictError(
            f"The file format of {path} can't represent the value: {error}; write the document as JSON"
        ) from error


# Writes an explicit null for an attribute that is stored as the body. None would remove the body.
WRITTEN_NULL = Plain("null")


def change_text(path: str, text: str, body: str | None, changes: Mapping[str, Any]) -> str:
    """Return a file's text after changing attributes in it. The value REMOVE removes an attribute.

    Raises ConflictError if the values of other attributes would change too.
    """
    bom, text = (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
    expected = {**parse(path, text, body), **changes}
    # If values share a YAML anchor, the first method may also change other attributes. The second method
    # expands anchors.
    for attempt in (_edit, _edit_expanded):
        with _no_null(path):
            edited = attempt(path, text, body, dict(changes))
        try:
            if _is_expected(parse(path, edited, body), expected):
                return bom + edited
        except SyntaxProblem:
            continue
    raise ConflictError(f"{path} contains syntax that Bifolio can't change safely; edit the file by hand")


def drop_repeated_keys(path: str, text: str, keys: Collection[KeyPath]) -> str:
    """Return a file's text with only the last occurrence of each of the `keys`.

    Raises ConflictError if this would change a value.
    """
    bom, text = (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
    if path.endswith(MARKDOWN):
        parts = frontmatter.split_front_matter(text)
        matter = (
            parts.handler.remove_duplicates(parts.front_matter, keys) if parts.handler else parts.front_matter
        )
        edited = parts.opening + matter + parts.closing + parts.body_text
    else:
        edited = (
            remove_duplicate_toml_keys(text, keys)
            if path.endswith(TOML)
            else remove_duplicate_yaml_keys(text, keys)
        )
    repeated: list[DuplicateKey] = []
    try:
        is_same = is_same_value(parse(path, edited, None, None, repeated), parse(path, text, None))
        if is_same and not any(key.path in keys for key in repeated):
            return bom + edited
    except SyntaxProblem:
        pass
    raise ConflictError(f"{path} contains syntax that Bifolio can't change safely; edit the file by hand")


def _is_expected(actual: Mapping[str, Tree], expected: Mapping[str, Any]) -> bool:
    for key in actual.keys() | expected.keys():
        new = expected.get(key)
        if new is REMOVE or key not in expected:
            if key in actual:
                return False
        elif not is_same_value(actual.get(key), new):
            return False
    return True


def _edit(path: str, text: str, body: str | None, changes: dict[str, Any]) -> str:
    return _edit_file(path, text, body, changes, expand=False)


def _edit_expanded(path: str, text: str, body: str | None, changes: dict[str, Any]) -> str:
    return _edit_file(path, text, body, changes, expand=True)


def _edit_file(path: str, text: str, body: str | None, changes: dict[str, Any], *, expand: bool) -> str:
    if path.endswith(".json"):
        return edit_json(text, read_json(text), changes)
    if path.endswith(TOML):
        return edit_toml(text, read_toml(text, None, []), changes, expand=expand)
    if not path.endswith(MARKDOWN):
        return edit_yaml(text, read_yaml(text, None, []), changes, expand=expand)
    return _edit_markdown(text, body, changes, expand=expand)


def _edit_markdown(text: str, body: str | None, changes: dict[str, Any], *, expand: bool) -> str:
    newline = newline_of(text)
    parts = frontmatter.split_front_matter(text)
    matter, rest = parts.front_matter, parts.body_text
    if body is not None and body in changes:
        rest = _change_body(rest, body, parts.load(None, []), changes, newline)
    if not changes and parts.handler is None:
        return rest
    if changes:
        matter = (parts.handler or frontmatter.YAML).edit(matter, changes, expand=expand)
    opening, closing = parts.opening, parts.closing
    if parts.handler is None:
        opening = closing = f"---{newline}"
    if opening and matter and not matter.endswith("\n"):
        matter += newline
    if rest and not closing.endswith("\n"):
        closing += newline
    return opening + matter + closing + rest


def _must_be_in_matter(text: str) -> bool:
    # Such text must be in the front matter. Below it, empty text would be read as a missing value, and
    # conflict markers as a conflict.
    return text == "" or has_conflict(text)


def _change_body(
    rest: str, body: str, tree: Mapping[str, Tree], changes: dict[str, Any], newline: str
) -> str:
    """Return the changed text below the front matter.

    Afterwards, `changes` contains only the changes to the front matter.
    """
    new = changes.pop(body)
    if type(new) is Plain and is_null(new):
        changes[body] = None
        return ""
    if not isinstance(new, str) or _must_be_in_matter(new):
        if isinstance(new, str) or body in tree:
            changes[body] = new
        return ""
    if body in tree:
        changes[body] = REMOVE
    # Keep the file's blank line before the body and newline after it, unless the new text has its own.
    lead = newline if not rest or rest.startswith(("\n", "\r\n")) or new.startswith(("\n", "\r\n")) else ""
    tail = newline if not rest or rest.endswith("\n") or new.endswith("\n") else ""
    return lead + new + tail
