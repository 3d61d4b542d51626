"""Did-you-mean: the known word that a mistyped one is nearest to."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean "title"?`, or nothing where no known word is near."""
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""
