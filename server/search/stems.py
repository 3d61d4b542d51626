"""The stemmers of languages. A module of its own, since it is loaded late (docs/packages.py, LAZY)."""

import threading

import snowballstemmer  # type: ignore[import-untyped]

_stemmers = threading.local()  # Each thread has its own, since a stemmer has state.


def stem(word: str, language: str) -> str:
    """The stem of a word in a language that snowballstemmer has (`english`)."""
    kept = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        found = kept[language] = snowballstemmer.stemmer(language)
    return str(found.stemWord(word)) or word
