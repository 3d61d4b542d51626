"""YAML writer that quotes strings so that YAML 1.1 and YAML 1.2 parsers read the same values."""

import io
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import yaml
from ruamel.yaml import events
from ruamel.yaml.emitter import Emitter, ScalarAnalysis
from ruamel.yaml.tag import Tag

from server.formats.tree import Plain, resolve_plain_values

_LINE_CHARS = 1_000_000_000  # long lines are not wrapped
ESCAPED = "escaped"
_PLAIN = re.compile(r"[^\W\d][^\n]*|[0-9][^\n]*[^\W\d_][^\n]*")
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
# patterns of unquoted text to which YAML 1.1 gives a type other than string
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_YAML_1_1 = frozenset({"y", "Y", "n", "N"})  # booleans in YAML 1.1 that PyYAML does not recognize
_STRING = Tag(suffix="tag:yaml.org,2002:str")


_BLANK = r"[\x00 \t\r\n\x85\u2028\u2029]"
_LEADING_INDICATOR = re.compile(rf"""[#,\[\]{{}}&*!|>'"%@`]|---|\.\.\.|-(?:{_BLANK}|\Z)""")
_INDICATOR = re.compile(rf":(?:{_BLANK}|\Z)|(?<={_BLANK})#")
_FLOW_INDICATOR = re.compile(r"[,\[\]{}]")
_BREAK_SPACE = re.compile(r"[\n\x85\u2028\u2029] ")
_SPACE_BREAK = re.compile(r" [\n\x85\u2028\u2029]")
_SPECIAL = re.compile(r"[^\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_BREAK = re.compile(r"[\n\x85\u2028\u2029]")
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]')


def _escape(char: str) -> str:
    if char in Emitter.ESCAPE_REPLACEMENTS:
        return "\\" + str(Emitter.ESCAPE_REPLACEMENTS[char])
    return f"\\x{ord(char):02X}" if char <= "\xff" else f"\\u{ord(char):04X}"


# Building the table at first use instead of at import saves 5 ms at each start.
@cache
def _escapes() -> Mapping[int, str]:
    return {ord(char): _escape(char) for char in _ESCAPED.findall("".join(map(chr, range(0x10000))))}


class _Emitter(Emitter):
    use_version = (1, 2)

    def analyze_scalar(self, scalar: str) -> ScalarAnalysis:
        if not scalar:
            analysis: ScalarAnalysis = super().analyze_scalar(scalar)
            return analysis
        at_end = " " in (scalar[0], scalar[-1]) or _BREAK.match(scalar[0]) or _BREAK.match(scalar[-1])
        breaks, special = bool(_BREAK.search(scalar)), bool(_SPECIAL.search(scalar))
        break_space, space_break = _BREAK_SPACE.search(scalar), _SPACE_BREAK.search(scalar)
        indicator = _LEADING_INDICATOR.match(scalar) or _INDICATOR.search(scalar, 1)
        begins_key = scalar[0] in "?:" and (len(scalar) == 1 or re.match(_BLANK, scalar[1]))
        flow = indicator or _FLOW_INDICATOR.search(scalar, 1) or scalar in ("?", ":")
        plain = not (at_end or breaks or special or break_space or space_break)
        return ScalarAnalysis(
            scalar=scalar,
            empty=False,
            multiline=breaks,
            allow_flow_plain=plain and not flow,
            allow_block_plain=plain and not indicator and not begins_key,
            allow_single_quoted=not (special or break_space or space_break),
            allow_double_quoted=True,
            allow_block=not (special or scalar[-1] == " " or (space_break and not self.allow_space_break)),
        )

    def write_plain(self, text: str, split: bool = True) -> None:
        if not text or not self.fits(text):
            return super().write_plain(text, split)
        return self.write_indicator(text, True)

    def write_single_quoted(self, text: str, split: bool = True) -> None:
        quoted = "'" + text.replace("'", "''") + "'"
        if not self.fits(quoted):
            return super().write_single_quoted(text, split)
        return self.write_indicator(quoted, True)

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        # `str.translate` reads every character, but calls no function for the escaped ones.
        quoted = '"' + (text.translate(_escapes()) if _ESCAPED.search(text) else text) + '"'
        if not self.fits(quoted):
            return super().write_double_quoted(text, split)
        return self.write_indicator(quoted, True)

    def write_literal(self, text: str, comment: Any = None) -> None:
        if not text or self.root_context or comment or any(found != "\n" for found in _BREAK.findall(text)):
            return super().write_literal(text, comment)
        hints, _, chomping = self.determine_block_hints(text)
        self.write_indicator("|" + hints, True)
        self.open_ended = chomping == "+"
        self.write_line_break()
        margin = " " * (self.indent or 0)
        lines = text.removesuffix("\n").split("\n")
        self.stream.write("\n".join(margin + line if line else "" for line in lines))
        return self.write_line_break()

    def fits(self, written: str) -> bool:
        short = self.column + len(written) < self.best_width
        return short and not self.root_context and not _BREAK.search(written)


def is_safe_plain(text: str, *, flow: bool = False) -> bool:
    """Return True if all YAML parsers read this text as a string when it is not quoted.

    If `flow` is set, this must also be true inside brackets.
    """
    if not _PLAIN.fullmatch(text) or text in _YAML_1_1 or text != text.strip() or _UNSAFE.search(text):
        return False
    if ": " in text or " #" in text or "\t" in text or text.endswith(":"):
        return False
    if flow and re.search(r"[,\[\]{}]|:", text):
        return False
    try:
        if not isinstance(resolve_plain_values(Plain(text)), str):
            return False
    except ValueError:
        return False
    return not any(pattern.match(text) for _, pattern in _RESOLVERS.get(text[0], []))


def yaml_entry(key: str, value: Any, *, offset: int = 2, flow: bool = False, quote: str = "") -> str:
    """Return a key and its value as YAML.

    If `flow` is set, lists and mappings are written in brackets. `offset` is the indentation of lists.
    `quote` is the quotation mark that the value had before, or ESCAPED to write a string on a single line.
    """
    style = _keep_quotes(value, quote)
    return _emit([_text(key), *([_scalar(value, style)] if style else _events(value, flow=flow))], offset)


def yaml_mapping(values: Mapping[str, Any]) -> str:
    entries = [event for key, value in values.items() for event in (_text(key), *_events(value))]
    return _emit(entries, 2) if entries else ""


def _emit(entries: list[events.Event], offset: int) -> str:
    out = io.StringIO()
    _write(_Emitter(out, width=_LINE_CHARS, allow_unicode=True), entries, offset)
    return out.getvalue()


def _write(emitter: Emitter, entries: list[events.Event], offset: int) -> None:
    emitter.best_sequence_indent, emitter.sequence_dash_offset = offset + 2, offset
    emitter.emit(events.StreamStartEvent())
    emitter.emit(events.DocumentStartEvent(explicit=False))
    emitter.emit(events.MappingStartEvent(None, None, True, flow_style=False))
    for event in entries:
        emitter.emit(event)
    emitter.emit(events.MappingEndEvent())
    emitter.emit(events.DocumentEndEvent(explicit=False))
    emitter.emit(events.StreamEndEvent())


def _events(value: Any, *, flow: bool = False) -> Iterator[events.Event]:
    if isinstance(value, dict):
        yield events.MappingStartEvent(None, None, True, flow_style=flow or not value)
        for key, item in value.items():
            yield _text(key, flow=flow)
            yield from _events(item, flow=flow)
        yield events.MappingEndEvent()
    elif isinstance(value, list | tuple):
        yield events.SequenceStartEvent(None, None, True, flow_style=flow or not value)
        for item in value:
            yield from _events(item, flow=flow)
        yield events.SequenceEndEvent()
    elif isinstance(value, str):
        yield _text(value, flow=flow, block=not flow)
    else:
        yield _scalar(_without_quotes(value), "")


def _text(text: str, *, flow: bool = False, block: bool = False) -> events.Event:
    if type(text) is Plain or is_safe_plain(text, flow=flow):
        return _scalar(text, "")
    if block and _fits_block(text):
        return _scalar(text, "|")
    if _UNSAFE.search(text) or any(c in text for c in "\n\t"):
        return _scalar(text, '"')
    quotes = "'" in text and '"' not in text and "\\" not in text
    return _scalar(text, '"' if quotes else "'")


def _scalar(text: str, style: str) -> events.Event:
    return events.ScalarEvent(None, _STRING, (style == "", True, False), str(text), style=style or None)


def _without_quotes(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    return repr(value) if isinstance(value, float) else str(value)


def _keep_quotes(value: Any, quote: str) -> str:
    if not isinstance(value, str) or type(value) is Plain or ("\n" in value and quote != ESCAPED):
        return ""
    if quote == "'" and not _UNSAFE.search(value) and "\t" not in value:
        return "'"
    return '"' if quote in ('"', ESCAPED) else ""


def _fits_block(text: str) -> bool:
    # A literal block is used only if it preserves the string and is easy to read.
    if "\n" not in text.rstrip("\n") or _UNSAFE.search(text):
        return False
    lines = text.split("\n")
    return not text[0].isspace() and all(line == line.rstrip() for line in lines) and "\t" not in text
