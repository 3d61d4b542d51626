"""Stemmers by language. This module is imported only when it is first needed (docs/packages.py, LAZY)."""

import threading

import snowballstemmer  # type: ignore[import-untyped]

_stemmers = threading.local()  # stemmers are not thread-safe


def stem(word: str, language: str) -> str:
    kept = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        found = kept[language] = snowballstemmer.stemmer(language)
    return str(found.stemWord(word)) or word
