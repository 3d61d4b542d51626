"""Regular expressions in schemas (`regex`), which have JavaScript's syntax and a time limit."""

import struct
from functools import lru_cache
from typing import Any

import regex

MATCH_TIMEOUT_S = 0.1
_TOKEN = regex.compile(
    r"\\k<\w+>|\\[pP]\{[\w=]+\}|\\c[A-Za-z]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\.|"
    r"\[\^?\]|\[\^|\(\?|[*+?}]\+|.",
    regex.DOTALL,
)
_QUANTIFIER = regex.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_QUANTIFIER_END = regex.compile(r"\{[0-9]+(?:,[0-9]*)?\}$")
_GROUP = regex.compile(r"\(\?(?:[:=!]|<[=!]|<[A-Za-z_$][\w$]*>|[ims]+(?:-[ims]+)?:|-[ims]+:)")
_SPACES = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACES = (
    r"\x00-\x08\x0e-\x1f!-\u009f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2fff\u3001-\ufefe\uff00-\uffff"
)
_WORD = "A-Za-z0-9_"
# character classes, as written inside brackets
_CLASSES = {
    r"\d": "0-9",
    r"\D": r"\x00-/:-\uffff",
    r"\w": _WORD,
    r"\W": r"\x00-/:-@\[-\^`{-\uffff",
    r"\s": _SPACES,
    r"\S": _NO_SPACES,
}
_BOUNDARY = f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_NO_BOUNDARY = f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))"
_TRANSLATIONS = {
    "$": r"\Z",
    ".": r"[^\n\r\u2028\u2029]",
    r"\b": _BOUNDARY,
    r"\B": _NO_BOUNDARY,
    "[]": "(?!)",
    "[^]": r"[\x00-\uffff]",
}
_LETTERS = frozenset("fnrtv")  # escapes with the same meaning in the package `regex`


def fault(pattern: str) -> str:
    try:
        _compile(pattern)
    except regex.error as error:
        return str(error)
    return ""


def pattern_error(pattern: str, text: str) -> str:
    """Return an error message if `text` does not match `pattern` or takes too long, otherwise ""."""
    try:
        matched = _compile(pattern).search(_utf16_units(text), timeout=MATCH_TIMEOUT_S)
    except TimeoutError:
        return f'takes too long to match against "/{pattern}/"; shorten it'
    return "" if matched else f'must match the following: "/{pattern}/"'


# For each document with a pattern, the cache saves 3.4 of 163 µs at a startup without a cached index.
@lru_cache(maxsize=256)
def _compile(pattern: str) -> Any:
    return regex.compile(_as_python(_utf16_units(pattern)))


def _utf16_units(text: str) -> str:
    # Convert text to UTF-16 code units, because JavaScript matches these instead of characters.
    if text.isascii() or max(text) < "\U00010000":
        return text
    encoded = text.encode("utf-16-le", "surrogatepass")
    return "".join(map(chr, struct.unpack(f"<{len(encoded) // 2}H", encoded)))


def _as_python(pattern: str) -> str:
    made, is_in_class, before = list[str](), False, ""
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if token in _CLASSES:
            if is_in_class and before == "-":  # The dash does not form a range here, as in `[.-\d]`.
                made[-1] = r"\-"
            made.append(_CLASSES[token] if is_in_class else f"[{_CLASSES[token]}]")
        elif is_in_class:
            is_in_class = token not in ("]", "[]", "[^]")
            made.append(r"\-" if token == "-" and before in _CLASSES else _in_brackets(token))
        else:
            is_in_class = token in ("[", "[^")
            made.append(_outside_of_brackets(token, pattern, found.start()))
        before = token
    return "".join(made)


def _in_brackets(token: str) -> str:
    if token == r"\b":
        return r"\x08"
    if len(token) > 1 and not token.startswith("\\"):
        return "".join(map(_in_brackets, token))
    return r"\[" if token == "[" else _escape(token)


def _outside_of_brackets(token: str, pattern: str, at: int) -> str:
    if token in _TRANSLATIONS:
        return _TRANSLATIONS[token]
    if token == "{" and not _QUANTIFIER.match(pattern, at):
        return r"\{"  # This is a literal brace, which the package `regex` could mistake for a fuzzy match.
    if token == "(?" and not _GROUP.match(pattern, at):
        raise regex.error(f"JavaScript has no group {pattern[at : at + 4]}", pattern, at)
    if token in ("*+", "++", "?+") or (token == "}+" and _QUANTIFIER_END.search(pattern[: at + 1])):
        raise regex.error(f"JavaScript has no quantifier {token}", pattern, at)
    if token.startswith(r"\k<"):
        return f"(?P={token[3:-1]})"
    return _escape(token)


def _escape(token: str) -> str:
    if not token.startswith("\\"):
        return token
    letter = token[1]
    if letter == "c" and len(token) == 3:
        return rf"\x{ord(token[2]) % 32:02x}"
    if letter.isascii() and letter.isalpha() and len(token) == 2 and letter not in _LETTERS:
        return letter
    return token


# --- other programs -------------------------------------------------------------------------------

_SYNTAX = frozenset(r"^$\.*+?()[]{}|/")
# general categories of characters, such as `Lu` for upper-case letters
_CATEGORY = regex.compile("L[Cultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfson]?")
_PORTABLE_GROUP = regex.compile(r"\(\?(?:[:=!]|<[=!]|<[A-Za-z_$][\w$]*>)")
_LOOKAHEAD = regex.compile(r"\(\?[=!]")
_WITHOUT_FLAG = {"[]": "(?!)", "[^]": r"[\s\S]", "[^": "[^", "[": "["}
# With the flag `u`, these match a character beyond U+FFFF as a whole. Without it, such a character counts as
# two.
_WIDE = regex.compile(r"\.|\\[DWSpP]|\[\^|[^\x00-\uffff]")
_BEYOND = r"[^\u0000-\uffff]"


def convert_for_unicode_flag(pattern: str) -> str | None:
    """Convert a pattern so that it works with JavaScript's `u` flag. Return None if this is impossible.

    The result may match more texts than the original pattern.
    """
    parts, is_in_class, before = list[str](), False, ""
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        made = _in_class(token, before) if is_in_class else _outside_of_class(token, pattern, found.start())
        if made is None:
            return None
        parts.append(made)
        is_in_class = token not in ("]", "[]", "[^]") if is_in_class else token in ("[", "[^")
        before = token
    if _repeats_lookahead(pattern):
        return None
    return "".join(parts) + (f"|{_BEYOND}" if _WIDE.search(pattern) else "")


def _in_class(token: str, before: str) -> str | None:
    if token == "-" and before in _CLASSES:
        return r"\-"
    if token in _CLASSES:
        return None if before == "-" else token
    if token == r"\B":
        return None
    if len(token) > 1 and not token.startswith("\\"):
        return "".join(rf"\{c}" if c == "[" else c for c in token)
    return rf"\{token}" if token == "[" else _convert_escape(token, _SYNTAX | {"-"})


def _outside_of_class(token: str, pattern: str, at: int) -> str | None:
    if token in _WITHOUT_FLAG:
        return _WITHOUT_FLAG[token]
    if token == "{" and not _QUANTIFIER.match(pattern, at):
        return r"\{"
    if token == "]" or (token[0] == "}" and not _QUANTIFIER_END.search(pattern[: at + 1])):
        return rf"\{token}"
    if token == "(?" and not _PORTABLE_GROUP.match(pattern, at):
        return None
    return _convert_escape(token, _SYNTAX)


def _convert_escape(token: str, escapable: frozenset[str]) -> str | None:
    """Convert an escape sequence for the `u` flag, or return None if its meaning would change."""
    if not token.startswith("\\"):
        return token
    if token[:2] in (r"\p", r"\P"):
        return token if _CATEGORY.fullmatch(token[3:-1]) else None
    letter = token[1:]
    if len(letter) > 1 or token in _CLASSES or letter in _LETTERS or token in (r"\b", r"\B"):
        return token
    if letter in escapable:
        return token
    # None for a letter without a special meaning, a backreference or an octal number
    return None if not letter or (letter.isascii() and letter.isalnum()) else letter


def _repeats_lookahead(pattern: str) -> bool:
    """Return True if the pattern repeats a lookahead, which the `u` flag forbids."""
    opened, is_in_class = list[bool](), False
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if is_in_class:
            is_in_class = token not in ("]", "[]", "[^]")
        elif token in ("[", "[^"):
            is_in_class = True
        elif token in ("(", "(?"):
            opened.append(bool(_LOOKAHEAD.match(pattern, found.start())))
        elif (
            token == ")"
            and opened
            and opened.pop()
            and pattern[found.end() : found.end() + 1] in tuple("*+?{")
        ):
            return True
    return False
