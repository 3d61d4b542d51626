"""The edits that insert a completed key or value."""

import re
from dataclasses import dataclass
from functools import cached_property

from server.formats.json import json_text
from server.formats.tree import Plain, is_null, resolve_plain_values
from server.lsp.keys import Cursor
from server.lsp.positions import Span, Text
from server.lsp.protocol import Json

_SIMPLE = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./ @-]*(?<! )")


@dataclass(frozen=True, eq=False)
class Insertion:
    """Builder of the edits that insert text at a cursor.

    `snippets` tells whether the editor supports snippets.
    """

    text: Text
    cursor: Cursor
    snippets: bool

    def insert_key(self, name: str, suffix: str) -> Json:
        cursor, text = self.cursor, self.text
        start, end = cursor.span
        if cursor.is_followed:
            new, suffix = name, ""
        elif cursor.style == "json":
            if cursor.quote:
                end += text.value[end : end + 1] == cursor.quote
            new = f'{name}": ' if cursor.quote else f'"{name}": '
        elif cursor.style == "toml":
            new = f"{name} = "
        else:
            if cursor.quote:
                end += text.value[end : end + 1] == cursor.quote
            new = f"{name}{cursor.quote}:" + ("" if suffix.startswith("\n") else " ")
        return self.replace_span((start, end), new, suffix)

    def replace_span(self, span: tuple[int, int], text: str, suffix: str = "") -> Json:
        if not self.snippets:
            suffix = suffix.replace("$0", "").replace("\\}", "}")
        elif suffix:
            text = re.sub(r"([\\$}])", r"\\\1", text)
        found: Json = {
            "textEdit": {"range": self._range(span), "newText": text + suffix},
            "insertTextMode": 1,
        }
        if suffix and self.snippets:
            found["insertTextFormat"] = 2
        return found

    def _range(self, span: Span) -> Json:
        return self._cursor_range if span == self.cursor.span else self.text.range(span)

    @cached_property
    def _cursor_range(self) -> Json:
        return self.text.range(self.cursor.span)

    def insert_value(self, value: str, prefix: str = "") -> Json:
        start, end = self.cursor.span
        file_text = self.text.value
        if (
            self.cursor.style in ("yaml", "flow")
            and file_text[max(start - 1, 0) : start] == ":"
            and self.cursor.role == "value"
        ):
            prefix = " "
        closes = self.cursor.quote and file_text[end : end + 1] != self.cursor.quote
        return self.replace_span((start, end), prefix + value + (self.cursor.quote if closes else ""))

    def quoted(self, word: str) -> str:
        if self.cursor.quote:
            return word
        if self.cursor.style in ("json", "toml"):
            return json_text(word)
        simple = (
            _SIMPLE.fullmatch(word)
            and not is_null(Plain(word))
            and isinstance(resolve_plain_values(Plain(word)), str)
        )
        return word if simple else json_text(word)
