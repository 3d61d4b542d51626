"""Stemmers for the supported languages. Imported only when needed (docs/packages.py, LAZY)."""

import threading

import snowballstemmer  # type: ignore[import-untyped]

_stemmers = threading.local()  # stemmers are not thread-safe


def stem(word: str, language: str) -> str:
    kept = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        found = kept[language] = snowballstemmer.stemmer(language)
    return str(found.stemWord(word)) or word
