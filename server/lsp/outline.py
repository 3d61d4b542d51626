"""Outline and folding ranges of a file."""

from collections.abc import Mapping

from server.documents.path_rules import MARKDOWN
from server.formats.text_positions import KeyPath
from server.lsp.flow import Node
from server.lsp.keys import MAX_SCANNED_CHARS, find_region, scan_nodes
from server.lsp.markdown import Heading, body_start, find_headings
from server.lsp.positions import Span, Text
from server.lsp.protocol import Json
from server.lsp.view import View

# kinds of symbols in the protocol
_PROPERTY, _OBJECT, _ARRAY, _HEADING = 7, 19, 18, 15
MAX_DETAIL_CHARS = 60


def document_symbols(view: View, path: str, params: Json) -> list[Json]:
    """Return a file's keys and headings as symbols."""
    text = view.text(path)
    if text is None or len(text.value) > MAX_SCANNED_CHARS:
        return []
    nodes, start = scan_nodes(path, text.value), body_start(path, text.value)
    symbols = _key_symbols(path, text, nodes)
    found = find_headings(text.value, start) if start is not None else []
    symbols += _heading_symbols(text, found)
    if view.client.nests_symbols:
        return symbols
    return list(_flat(symbols, view.uri(path)))


def _key_symbols(path: str, text: Text, nodes: list[Node]) -> list[Json]:
    top: list[Json] = []
    known: dict[KeyPath, Json] = {(): {"children": top}}
    components = _component_uids(nodes, text)
    for node, end in zip(nodes, _value_ends(path, text.value, nodes), strict=True):
        parent = known.get(node.path[:-1])
        if parent is None or (isinstance(node.path[-1], int) and node.value is not None):
            continue  # Items that are plain values get no symbols of their own.
        value = text.value[slice(*node.value)] if node.value else ""
        symbol = {
            "name": _name(node, components) or " ",
            "detail": value[:MAX_DETAIL_CHARS],
            "kind": _PROPERTY if node.value else _OBJECT,
            "range": text.range((node.key[0], max(end, node.key[1]))),
            "selectionRange": text.range(node.key),
            "children": [],
        }
        known[node.path] = symbol
        parent["children"].append(symbol)
    return top


def _component_uids(nodes: list[Node], text: Text) -> dict[KeyPath, str]:
    found: dict[KeyPath, str] = {}
    for node in nodes:
        if node.path[-1] == "__component" and node.value:
            found.setdefault(node.path[:-1], text.value[slice(*node.value)])
    return found


def _name(node: Node, components: Mapping[KeyPath, str]) -> str:
    if isinstance(node.path[-1], str):
        return node.path[-1]
    return f"{node.path[-1] + 1} {components.get(node.path, '')}".rstrip()


def _value_ends(path: str, text: str, nodes: list[Node]) -> list[int]:
    ends: list[int] = []
    region_end = find_region(path, text).end
    open_nodes: list[int] = []
    ends = [region_end] * len(nodes)
    for at, node in enumerate(nodes):
        while open_nodes and nodes[open_nodes[-1]].path != node.path[: len(nodes[open_nodes[-1]].path)]:
            ends[open_nodes.pop()] = node.key[0]
        open_nodes.append(at)
    trimmed: dict[int, int] = {}
    for node, end in zip(nodes, ends, strict=True):
        # Of the nodes with the same end, the first is the longest.
        if end not in trimmed:
            trimmed[end] = _trim_end(text, node.key[0], end)
    return [max(trimmed[end], node.key[0]) for node, end in zip(nodes, ends, strict=True)]


def _trim_end(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in " \t\r\n-,\"'":
        end -= 1
    return end


def _heading_symbols(text: Text, found: list[Heading]) -> list[Json]:
    top: list[Json] = []
    above: list[tuple[int, Json]] = []
    for heading, span in zip(found, _sections(text, found), strict=True):
        while above and above[-1][0] >= heading.level:
            above.pop()
        symbol = {
            "name": heading.text or " ",
            "kind": _HEADING,
            "range": text.range(span),
            "selectionRange": text.range(heading.span),
            "children": [],
        }
        (above[-1][1]["children"] if above else top).append(symbol)
        above.append((heading.level, symbol))
    return top


def _sections(text: Text, found: list[Heading]) -> list[Span]:
    spans: list[Span] = []
    following: dict[int, int] = {}  # by level: where the next heading begins
    for heading in reversed(found):
        end = min((at for level, at in following.items() if level <= heading.level), default=len(text.value))
        end = heading.span[0] + len(text.value[heading.span[0] : end].rstrip())
        spans.append((heading.span[0], max(end, heading.span[1])))
        following[heading.level] = heading.span[0]
    return spans[::-1]


def _flat(symbols: list[Json], uri: str) -> list[Json]:
    found: list[Json] = []
    for symbol in symbols:
        found.append(
            {
                "name": symbol["name"],
                "kind": symbol["kind"],
                "location": {"uri": uri, "range": symbol["range"]},
            }
        )
        found += _flat(symbol["children"], uri)
    return found


# --- folding --------------------------------------------------------------------------------------


def folding_ranges(view: View, path: str, params: Json) -> list[Json]:
    """Return the folding ranges of front matter, keys, lists and headings."""
    text = view.text(path)
    if text is None or len(text.value) > MAX_SCANNED_CHARS:
        return []
    spans: list[Span] = []
    region = find_region(path, text.value)
    if path.endswith(MARKDOWN) and region.start:
        spans.append((0, min(region.body, len(text.value)) - 1))
    nodes = scan_nodes(path, text.value)
    spans += [
        (node.key[0], end) for node, end in zip(nodes, _value_ends(path, text.value, nodes), strict=True)
    ]
    start = body_start(path, text.value)
    if start is not None:
        spans += _sections(text, find_headings(text.value, start))
    lines = {(text.line_of(begin), text.line_of(max(end, begin))) for begin, end in spans}
    return [{"startLine": first, "endLine": last} for first, last in sorted(lines) if last > first]
