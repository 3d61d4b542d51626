"""The text of a document file: a new one, or one changed where its values changed and nowhere else.

Every changed text is read back before it is used. If it does not say exactly what it should (an
anchor may be shared by other attributes), the attributes concerned are written out in full. If that
fails as well, the change is refused, so that nothing can be lost.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from server.documents.path_rules import MARKDOWN, TOML
from server.errors import ConflictError
from server.formats import frontmatter
from server.formats.conflicts import has_conflict
from server.formats.edits import REMOVE, same
from server.formats.json import edit_json, json_text, read_json
from server.formats.text_positions import KeyPath, RepeatedKey, newline_of
from server.formats.toml.edit import drop_repeated_toml, edit_toml
from server.formats.toml.reader import NoNull, read_toml, toml_mapping
from server.formats.tree import Plain, SyntaxProblem, Tree, is_null
from server.formats.yaml.edit import drop_repeated_yaml, edit_yaml
from server.formats.yaml.reader import read_yaml
from server.formats.yaml.writer import yaml_mapping
from server.storage.read import BOM, parse

# The formats of front matter that new files can have, by their names in `options.frontMatter`.
FRONT_MATTER: Mapping[str, frontmatter.Handler] = {"yaml": frontmatter.YAML, "toml": frontmatter.TOML}


def new_text(path: str, body: str | None, trees: Mapping[str, Any], matter: str = "yaml") -> str:
    """The text of a new file at `path` that says `trees`; `body` names the Markdown body's attribute.

    `matter` is the format of its front matter, one of FRONT_MATTER. Raises ConflictError for a value
    that the format of the file has no form for.
    """
    if path.endswith(".json"):
        return json_text(dict(trees), indent="  ") + "\n"
    with _no_null(path):
        if path.endswith(TOML):
            return toml_mapping(_without_null(trees))
        if not path.endswith(MARKDOWN):
            return yaml_mapping(trees)
        return _new_markdown(body, trees, FRONT_MATTER[matter])


def _new_markdown(body: str | None, trees: Mapping[str, Any], handler: frontmatter.Handler) -> str:
    matter = {key: value for key, value in trees.items() if key != body}
    text = trees.get(body) if body else None
    if body in trees and text is None:  # The body has a default, which no body would mean.
        matter[str(body)] = None
    if body and isinstance(text, str) and _only_in_matter(text):
        matter[body] = text
        text = None
    if handler is frontmatter.TOML:
        matter = _without_null(matter)
    made = f"{handler.START_DELIMITER}\n{handler.export(matter)}{handler.END_DELIMITER}\n"
    return made + (f"\n{text}\n" if text else "")


def _without_null(trees: Mapping[str, Any]) -> dict[str, Any]:
    """The trees that TOML can say: it has no null, so a key that is null is left out."""
    return {key: tree for key, tree in trees.items() if tree is not None}


@contextmanager
def _no_null(path: str) -> Iterator[None]:
    """Turn a null inside of a value, for which TOML has no form, into a ConflictError."""
    try:
        yield
    except NoNull as error:
        raise ConflictError(f"{path} can't hold the value: {error}; write the document as JSON") from error


WRITTEN_NULL = Plain("null")


def change_text(path: str, text: str, body: str | None, changes: Mapping[str, Any]) -> str:
    """A file's text with other trees under some attributes; REMOVE removes one.

    A body that is null is left out. One that is WRITTEN_NULL is written as null, in the front matter.
    Raises ConflictError for a file that can't be changed without saying something else.
    """
    bom, text = (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
    expected = {**parse(path, text, body), **changes}
    for attempt in (_edit, _edit_expanded):
        with _no_null(path):
            made = attempt(path, text, body, dict(changes))
        try:
            if _says(parse(path, made, body), expected):
                return bom + made
        except SyntaxProblem:
            continue
    raise ConflictError(f"{path} is written in a way that can't be changed safely; edit it by hand")


def drop_repeated_keys(path: str, text: str, keys: Collection[KeyPath]) -> str:
    """A file's text without the values of some keys that stand again below, which do not count.

    Raises ConflictError for a file that would say something else then, as aliases may let it.
    """
    bom, text = (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
    if path.endswith(MARKDOWN):
        parts = frontmatter.split(text)
        matter = parts.handler.drop_repeated(parts.matter, keys) if parts.handler else parts.matter
        made = parts.opening + matter + parts.closing + parts.rest
    else:
        made = drop_repeated_toml(text, keys) if path.endswith(TOML) else drop_repeated_yaml(text, keys)
    left: list[RepeatedKey] = []
    try:
        is_same = same(parse(path, made, None, None, left), parse(path, text, None))
        if is_same and not any(key.at in keys for key in left):
            return bom + made
    except SyntaxProblem:
        pass
    raise ConflictError(f"{path} is written in a way that can't be changed safely; edit it by hand")


def _says(found: Mapping[str, Tree], expected: Mapping[str, Any]) -> bool:
    """Whether a text says what it should; a key whose value is null may be missing."""
    for key in found.keys() | expected.keys():
        new = expected.get(key)
        if new is REMOVE or key not in expected:
            if key in found:
                return False
        elif not same(found.get(key), new):
            return False
    return True


def _edit(path: str, text: str, body: str | None, changes: dict[str, Any]) -> str:
    return _edit_file(path, text, body, changes, expand=False)


def _edit_expanded(path: str, text: str, body: str | None, changes: dict[str, Any]) -> str:
    return _edit_file(path, text, body, changes, expand=True)


def _edit_file(path: str, text: str, body: str | None, changes: dict[str, Any], *, expand: bool) -> str:
    """The edited text; `expand` writes out every attribute that has an anchor or alias."""
    if path.endswith(".json"):
        return edit_json(text, read_json(text), changes)
    if path.endswith(TOML):
        return edit_toml(text, read_toml(text, None, []), changes, expand=expand)
    if not path.endswith(MARKDOWN):
        return edit_yaml(text, read_yaml(text, None, []), changes, expand=expand)
    return _edit_markdown(text, body, changes, expand=expand)


def _edit_markdown(text: str, body: str | None, changes: dict[str, Any], *, expand: bool) -> str:
    newline = newline_of(text)
    parts = frontmatter.split(text)
    matter, rest = parts.matter, parts.rest
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


def _only_in_matter(text: str) -> bool:
    """Whether a body must stand in the front matter: below it, an empty text would read as none.

    One that shows a conflict of git would read as an unresolved one.
    """
    return text == "" or has_conflict(text)


def _change_body(
    rest: str, body: str, tree: Mapping[str, Tree], changes: dict[str, Any], newline: str
) -> str:
    """The new body; a value that only front matter can hold stays in `changes`."""
    new = changes.pop(body)
    if type(new) is Plain and is_null(new):
        changes[body] = None
        return ""
    if not isinstance(new, str) or _only_in_matter(new):
        if isinstance(new, str) or body in tree:
            changes[body] = new
        return ""
    if body in tree:
        changes[body] = REMOVE
    # A blank line before the body and a newline at its end are the file's, and stay as they were,
    # unless the text itself begins or ends with one.
    lead = newline if not rest or rest.startswith(("\n", "\r\n")) or new.startswith(("\n", "\r\n")) else ""
    tail = newline if not rest or rest.endswith("\n") or new.endswith("\n") else ""
    return lead + new + tail
