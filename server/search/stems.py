"""Stemmers of languages, imported late (docs/packages.py, LAZY)."""

import threading

import snowballstemmer  # type: ignore[import-untyped]

_stemmers = threading.local()  # One for each thread, since stemmers have state.


def stem(word: str, language: str) -> str:
    """Return the stem of a word in a snowballstemmer language (`english`)."""
    kept = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        found = kept[language] = snowballstemmer.stemmer(language)
    return str(found.stemWord(word)) or word
