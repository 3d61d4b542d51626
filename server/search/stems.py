"""Stemmers by language. Imported at first use (docs/packages.py, LAZY)."""

import threading

import snowballstemmer  # type: ignore[import-untyped]

_stemmers = threading.local()  # one per thread, because stemmers have state


def stem(word: str, language: str) -> str:
    """Return a word's stem. `language` is a name from snowballstemmer, such as `english`."""
    kept = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        found = kept[language] = snowballstemmer.stemmer(language)
    return str(found.stemWord(word)) or word
