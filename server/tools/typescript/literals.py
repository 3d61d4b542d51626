"""The small parts of TypeScript: literals, unions, names of properties, comments."""

import json
import re
from collections.abc import Iterable

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def text(value: str) -> str:
    """A string literal."""
    return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def union(values: Iterable[str]) -> str:
    """A union of string literals; `never` if there are none."""
    return " | ".join(text(value) for value in values) or "never"


def prop(name: str) -> str:
    """A property's name, in quotes if it needs them."""
    return name if _IDENTIFIER.fullmatch(name) else text(name)


def comment(sentences: Iterable[str], indent: str = "") -> str:
    """A doc comment of one line; "" for no sentences."""
    line = " ".join(" ".join(sentence.split()) for sentence in sentences if sentence.strip())
    closed = line.replace("*/", "*\\/")
    return f"{indent}/** {closed} */\n" if line else ""
