"""Did you mean: suggests the known word that is most like a mistyped one."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from unicodedata import combining, normalize


def suggestion(word: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """`did you mean "title"?`, or "" if no known word is similar.

    `likeness` is how like it has to be: from 0, which all words are, to 1 for the word itself.
    """
    near = get_close_matches(word, list(known), n=1, cutoff=likeness)
    return f'did you mean "{near[0]}"?' if near else ""


def certain_suggestion(word: str, known: Iterable[str]) -> str | None:
    """The one known word that a mistyped one certainly stands for, or None.

    It differs in case, accents and separators alone, or else in two neighbouring letters that changed places.
    """
    words = list(known)
    found = [other for other in words if _folded(word) == _folded(other)]
    found = found or [other for other in words if _is_swapped(word, other)]
    return found[0] if len(found) == 1 else None


def _folded(word: str) -> str:
    """A word without what people write now in one form and then in another."""
    plain = "".join(c for c in normalize("NFKD", word) if not combining(c))
    return re.sub(r"[\s_./-]+", "-", plain.casefold()).strip("-")


def _is_swapped(word: str, other: str) -> bool:
    """Whether two words differ in the order of two neighbouring letters."""
    if len(word) != len(other):
        return False
    different = [i for i, (a, b) in enumerate(zip(word, other, strict=True)) if a != b]
    if len(different) != 2 or different[1] != different[0] + 1:
        return False
    first, second = different
    letters = word[first].isalpha() and word[second].isalpha()
    return letters and (word[first], word[second]) == (other[second], other[first])
