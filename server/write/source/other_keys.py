"""The keys of a document's file that its type does not know, as a text of their own in the file's format."""

from collections.abc import Mapping
from typing import Any

from server.documents.layout import MARKDOWN, TOML
from server.formats import frontmatter
from server.formats.scalars import is_null
from server.formats.tree import SyntaxProblem, Tree
from server.schema.model import FILE_FIELDS, Type


def other_keys(type_: Type, tree: Mapping[str, Tree]) -> dict[str, Tree]:
    """What the tree of a file says under keys that mean nothing to its type; see `options.otherKeys`."""
    if type_.other_keys is not None:
        return {}
    known = {*FILE_FIELDS, *type_.attributes, *([type_.draft_key.name] if type_.draft_key else [])}
    return {key: value for key, value in tree.items() if key not in known}


def text_of_keys(path: str, text: str, keys: Mapping[str, Any]) -> str:
    """Some keys as the file at a path, with this text, would have them if it had nothing else."""
    return _handler_of(path, text).export(dict(keys)).rstrip("\n") + "\n" if keys else ""


def read_keys(path: str, text: str, said: str) -> dict[str, Tree]:
    """The keys that such a text says. Raises SyntaxProblem."""
    tree = _handler_of(path, text).read(said) if said.strip() else None
    if is_null(tree):
        return {}
    if not isinstance(tree, dict):
        raise SyntaxProblem("the other keys must be a mapping", 1, "write them as keys and values", 1)
    return tree


def _handler_of(path: str, text: str) -> frontmatter.Handler:
    """The format of a file's keys: its own, or that of its front matter."""
    if path.endswith(MARKDOWN):
        return frontmatter.split(text).handler or frontmatter.YAML
    if path.endswith(TOML):
        return frontmatter.TOML
    return frontmatter.JSON if path.endswith(".json") else frontmatter.YAML
