"""Values → the text that stands for them in a JSON file, in the style of what is around."""

import json
import re
from decimal import Decimal
from typing import Any

from server.formats.tree import Plain

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def json_text(
    value: Any, *, indent: str | None = None, ascii_only: bool = False, tight: bool = False, margin: str = ""
) -> str:
    """A value as JSON; decimals, and numbers as they were read from JSON, keep their digits.

    `indent` is one level's white space (None: all on one line), `margin` what stands before the line
    that the value begins on; `tight` leaves out the spaces after `,` and `:`.
    """
    if isinstance(value, Decimal):
        return format(value, "f")
    if type(value) is Plain and _NUMBER.fullmatch(value):
        return str(value)
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=ascii_only)
    if not isinstance(value, dict | list | tuple) or not value:
        return json.dumps(list(value) if isinstance(value, tuple) else value)
    inner = margin + (indent or "")
    options: Any = {"indent": indent, "ascii_only": ascii_only, "tight": tight, "margin": inner}
    if isinstance(value, dict):
        colon = ":" if tight else ": "
        parts = [
            json.dumps(k, ensure_ascii=ascii_only) + colon + json_text(v, **options) for k, v in value.items()
        ]
        opening, closing = "{}"
    else:
        parts = [json_text(item, **options) for item in value]
        opening, closing = "[]"
    if indent is None:
        return opening + ("," if tight else ", ").join(parts) + closing
    lines = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{lines}\n{margin}{closing}"
