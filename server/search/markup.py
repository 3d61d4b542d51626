"""Markdown, MDX, HTML and blocks → the text that a reader sees, as far as search needs it.

This is not a parser: patterns remove the markup, and the words stay in their order. Markup that no
pattern recognises adds words to the index; no pattern removes a word of the text.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

_TARGET = r"(?:[^()\s]|\([^()\s]{0,500}\)){0,2000}(?:\s[\"'][^\"'\n]{0,500}[\"'])?"
_LINK = rf"\[([^\[\]]{{0,500}})\]\(\s?{_TARGET}\s?\)"
# Patterns and their replacements, in order. All of them take time in proportion to the text. Groups that look
# ahead are not possessive: with those, Python before 3.11.3 finds nothing.
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r"<!--(?:(?!<!--|-->).)*-->|\{/\*(?:(?!/\*|\*/).)*\*/\}", re.DOTALL), " "),  # comments
    (re.compile(r"<(script|style)\b(?:(?!</?\1\b).)*</\1\s?>", re.DOTALL | re.IGNORECASE), " "),
    (re.compile(r"^(?:import|export) .*?(?:\bfrom .*|; ?|['\"] ?|)$", re.MULTILINE), " "),  # MDX
    (re.compile(r"^ ?(?:`{3,}|~{3,}|:{3,}\w*).*$", re.MULTILINE), " "),  # fences; the code between them stays
    (re.compile(r"^ ?\[[^\[\]\n]{1,500}\]: ?\S.*$", re.MULTILINE), " "),  # link definitions
    # The following are applied to one paragraph.
    (re.compile(rf"!{_LINK}"), r"\1"),  # an image, which may be the text of a link
    (re.compile(_LINK), r"\1"),
    (re.compile(r"!?\[([^\[\]\n]{1,500})\]\[[^\[\]\n]{0,500}\]"), r"\1"),
    (re.compile(r"</?[A-Za-z][^<>]{0,5000}+>|<https?://[^<>\s]{0,2000}+>"), " "),  # tags
    (re.compile(r"^ ?(?:#{1,6} |> ?|[-*+] |\d{1,9}[.)] |(?:[-=*_] ?){3,}+$)", re.MULTILINE), " "),
    (re.compile(r" #++ ?$", re.MULTILINE), ""),  # the end of a closed heading
    (re.compile(r"^ ?\|?(?: ?:?-{2,}+:? ?\|)++.*$|\|", re.MULTILINE), " "),  # tables
    (re.compile(r"(?<!\\)(?:\*\*?|__|~~|`++|(?<!\w)_)(?=\S)|(?<=[^\s\\])(?:\*\*?|__|~~|`++|_(?!\w))"), ""),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)
_FOR_WHOLE_TEXT = 6  # the first patterns, which are applied to the whole text
_PARAGRAPHS = re.compile(r"\n ?\n\s*+|\n(?= ?(?:#|[-*+] |\d{1,9}[.)] |\|))")
_SPACE = re.compile(r"\s+")


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a Markdown text, without markup, each on one line; empty ones left out."""
    for pattern, replacement in _PATTERNS[:_FOR_WHOLE_TEXT]:
        text = pattern.sub(replacement, text)
    found = (_inline(part) for part in _PARAGRAPHS.split(text))
    return [part for part in found if part]


def _inline(text: str) -> str:
    for pattern, replacement in _PATTERNS[_FOR_WHOLE_TEXT:]:
        text = pattern.sub(replacement, text)
    return _SPACE.sub(" ", html.unescape(text)).strip()


def block_texts(blocks: Any) -> Iterator[str]:
    """The text of each block of a rich text of blocks, the descriptions of images included."""
    for block in blocks if isinstance(blocks, list) else ():
        text = "".join(_leaves(block))
        if text.strip():
            yield _SPACE.sub(" ", text).strip()


def _leaves(node: Any) -> Iterator[str]:
    if not isinstance(node, Mapping):
        return
    if isinstance(node.get("text"), str):
        yield node["text"]
    image = node.get("image")
    if isinstance(image, Mapping):
        yield from (f" {image[k]}" for k in ("alternativeText", "caption") if isinstance(image.get(k), str))
    children = node.get("children")
    for child in children if isinstance(children, list) else ():
        yield from _leaves(child)
        if isinstance(child, Mapping) and child.get("type") in ("list-item", "list"):
            yield " "
