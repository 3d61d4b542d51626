"""The words of a text, and the terms under which a word is found: folded, and by its stem.

`Goémon's tides` has the words `goemon`, `s` and `tides`; in English, `tides` and `tide` have the
same term. Chinese, Japanese and Korean characters are words each: what stands together is a phrase.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import cast

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\uff66-\uff9f"
_WORD = re.compile(f"[{_CJK}]|[^\\W_{_CJK}]+")
_MARKS = re.compile("[\u0300-\u036f]+")
# Letters that have no accent to take off but are written otherwise on other keyboards.
_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})

# The language codes whose words have stems, and what the stemmer calls the language.
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian",
    "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian",
    "ne": "nepali", "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
PLAIN = "plain"  # the language of a locale without a stemmer
LONGEST = 64  # characters of a word that count; what is longer is no word of any language
MOST_KNOWN = 50_000  # words whose terms are kept; they take some 400 bytes each, or 1 kB at most


def language_of(locale: str) -> str:
    """The language code of a locale, `pt` of `pt-BR`; PLAIN where it has no stemmer."""
    code = re.split("[-_]", locale, maxsplit=1)[0].lower()
    return code if code in STEMMERS else PLAIN


def spans(text: str) -> Iterator[re.Match[str]]:
    """The words of a text as they are written, each with its place."""
    return _WORD.finditer(text)


def beginning(starts: Iterable[str]) -> re.Pattern[str]:
    """A pattern for the words of a text that, folded, begin with one of some letters."""
    letters = "".join(re.escape(c) for start in sorted(set(starts)) for c in _forms().get(start, start))
    inside = f"[^\\W_{_CJK}]"
    return re.compile(f"[{letters}](?:(?<=[{_CJK}])|(?<!{inside}.){inside}*)" if letters else "(?!)")


@lru_cache(maxsize=1)
def _forms() -> dict[str, str]:
    """Every letter of the alphabets with cases and accents that folds to a letter, by that letter."""
    found: dict[str, str] = {}
    for code in (*range(0x30, 0x530), *range(0x1E00, 0x2000)):
        if chr(code).isalnum():
            start = fold(chr(code))[0]
            found[start] = found.get(start, "") + chr(code)
    return found


def split(text: str) -> list[str]:
    """The words of a text, folded: `L'Été` → `l`, `ete`."""
    return [fold(found) for found in _WORD.findall(text)]


def fold(word: str) -> str:
    """A word without upper case and accents."""
    word = word[:LONGEST]
    if word.isascii():
        return word.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", word.casefold()))
    return (bare.translate(_LETTERS) or word.casefold())[:LONGEST]  # some letters fold to many


def terms(word: str, language: str) -> tuple[str, ...]:
    """The terms of a word as it is written: one, or a second one where accents change its stem.

    The first makes `publiee` find what `publiée` does, and the second keeps `publié` with them.
    """
    return _terms(word[:LONGEST].casefold(), language)  # whoever asks may send words of any length


@lru_cache(maxsize=MOST_KNOWN)
def _terms(word: str, language: str) -> tuple[str, ...]:
    folded = fold(word)
    bare = _stem(folded, language)
    if folded == word or word.isascii():
        return (bare,)
    proper = fold(_stem(word, language))
    return (bare,) if proper == bare else (bare, proper)


def _stem(word: str, language: str) -> str:
    if language == PLAIN or len(word) < 3 or word.isdigit():
        return word
    return _stemmer()(word, STEMMERS[language])


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str, str], str]:
    """Loaded when a word is first looked for: a server that starts need not wait for it."""
    return cast(Callable[[str, str], str], import_module("server.search.stems").stem)
