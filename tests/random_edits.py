"""Random edits of texts, as people make them: half lines, wrong values, lines twice, lines gone."""

import random
from collections.abc import Callable

SNIPPETS = (
    "title:", "title: 'half", "author: nobody", "author:\n  - a\n  - b", "tags: [fog, night", "tags: [fog]",
    "draft: true", "documentId: other", "colour: red", "---\n", "  ", "- ", "é", "\U0001f30a", "locale: fr",
    "<<<<<<< HEAD\n", "{", "}", "\t", "cover: none.png", "seo:\n  metaTitle: a", "slug: equinox-walk\n",
    "![picture](a.png)", "[link](../b.md#c)", "# Heading\n", "\r\n", "null", '"', "key: value\nkey: value\n",
)  # fmt: skip


def edit(chance: random.Random, text: str) -> str:
    """Return a text after one random edit."""
    return chance.choice(_EDITS)(chance, text)


def _insert(chance: random.Random, text: str) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + chance.choice(SNIPPETS) + text[at:]


def _insert_line(chance: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(chance.randint(0, len(lines)), chance.choice(SNIPPETS) + "\n")
    return "".join(lines)


def _delete(chance: random.Random, text: str) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + text[at + chance.randint(1, 12) :]


def _drop_line(chance: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        del lines[chance.randrange(len(lines))]
    return "".join(lines)


def _repeat_line(chance: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        at = chance.randrange(len(lines))
        lines.insert(at, lines[at])
    return "".join(lines)


def _swap_letters(chance: random.Random, text: str) -> str:
    at = chance.randint(0, max(len(text) - 2, 0))
    return text[:at] + text[at : at + 2][::-1] + text[at + 2 :]


def _truncate(chance: random.Random, text: str) -> str:
    return text[: chance.randint(0, len(text))]


_EDITS: tuple[Callable[[random.Random, str], str], ...] = (
    _insert, _insert, _insert_line, _insert_line, _delete, _drop_line, _repeat_line, _swap_letters, _truncate,
)  # fmt: skip
