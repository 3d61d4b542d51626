"""Hover: descriptions of relations, media paths, keys and links."""

from server.lsp.configuration import hover_configuration
from server.lsp.describe import describe_key, describe_target, describe_type
from server.lsp.flow import Node
from server.lsp.markdown import link_at, resolve_link
from server.lsp.navigation import key_of_link
from server.lsp.positions import Span, Text
from server.lsp.protocol import Json
from server.lsp.view import Source, View
from server.site.configure import is_configuration


def hover(view: View, path: str, params: Json) -> Json | None:
    """Describe the key, value or link at a position. Return None if nothing is known about it."""
    if is_configuration(path):
        return hover_configuration(view, path, params)
    source = view.source(path)
    if source is None:
        return None
    index = source.text.index_of_position(params.get("position"))
    node = source.node_at(index)
    if node is not None:
        in_value = node.value is not None and node.value[0] <= index <= node.value[1]
        text = _describe(view, source, node, in_value=in_value)
        return _shown(source.text, text, node.value if in_value and node.value else node.key)
    link = link_at(source.text, path, index)
    return _shown(source.text, _describe_link(view, path, link.destination), link.span) if link else None


def _describe(view: View, source: Source, node: Node, *, in_value: bool) -> str:
    if in_value:
        target = source.target_at(node.path)
        if target is not None:
            return describe_target(view, target[1], source.claim.locale)
        if node.path[-1] == "__component":
            type_ = view.schema.types.get(source.value(node.path))
            return describe_type(type_) if type_ else ""
    name = next((key for key in reversed(node.path) if isinstance(key, str)), "")
    keys = node.path[: len(node.path) - node.path[::-1].index(name)]
    return describe_key(source.type_at(keys[:-1]), name)


def _describe_link(view: View, path: str, link: str) -> str:
    key, found = key_of_link(view, path, link), resolve_link(view, path, link)
    other = view.layout.claim(found[0]) if found else None
    return describe_target(view, key, other.locale if other else "") if key else ""


def _shown(text: Text, markdown: str, span: Span) -> Json | None:
    if not markdown:
        return None
    return {"contents": {"kind": "markdown", "value": markdown}, "range": text.range(span)}
