"""Stemmers by language. This module is imported when it is first needed (docs/packages.py, LAZY)."""

import threading

import snowballstemmer  # type: ignore[import-untyped]

_stemmers = threading.local()  # Each thread has its own stemmers, because stemmers are not thread-safe.


def stem(word: str, language: str) -> str:
    """Return a word's stem. `language` is a language that snowballstemmer supports, such as `english`."""
    kept = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        found = kept[language] = snowballstemmer.stemmer(language)
    return str(found.stemWord(word)) or word
