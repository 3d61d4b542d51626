"""The stemmers of languages. A module of its own, since loading it takes a while (see `words`)."""

import threading

import snowballstemmer  # type: ignore[import-untyped]

_stemmers = threading.local()  # of each thread, since a stemmer is not to be shared


def stem(word: str, language: str) -> str:
    """The stem of a word in a language that snowballstemmer has (`english`)."""
    kept = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        found = kept[language] = snowballstemmer.stemmer(language)
    return str(found.stemWord(word)) or word
