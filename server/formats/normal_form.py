"""Unicode normalization in linear time."""

import re
import unicodedata
from typing import Literal

# Python sorts the combining marks after a letter in quadratic time: 20,000 marks take seconds. No word, user
# name or file name has this many.
_MANY_MARKS = re.compile(r"[^\w\s\x00-\x7f]{256}")


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Normalize a text to a Unicode form.

    A text with 256 or more combining marks or symbols in a row is returned unchanged, because normalizing it
    could take quadratic time.
    """
    if text.isascii() or _MANY_MARKS.search(text):
        return str(text)
    return unicodedata.normalize(form, text)
